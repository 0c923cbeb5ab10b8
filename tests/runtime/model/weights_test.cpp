#include "runtime/model/weights.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <utility>

#include "runtime/architecture/shape_keys.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::model {
namespace {

using test::make_tiny_model;
using test::tiny_model;
using ::testing::HasSubstr;

class weights_test : public ::testing::Test {
 protected:
  failure refusal(const tiny_model& m) {
    auto loaded = load_weights(*m.file(), table_, team_);
    if (loaded) return {errc::internal, "was accepted"};
    return loaded.error();
  }

  const kernels::kernel_table& table_ = *kernels::choose_table("scalar").table;
  kernels::worker_team team_{2};
};

TEST_F(weights_test, take_as_much_memory_as_computed_from_the_file) {
  for (const auto& t : kernels::list_targets()) {
    if (t.table == nullptr) continue;
    const auto file = make_tiny_model({.matrices = gguf::tensor_type::q5_0, .tied_head = false}).file();
    const auto w = load_weights(*file, *t.table, team_);
    ASSERT_TRUE(w);
    // Matrices follow each other in one block, each aligned to 64 bytes.
    std::set<const std::byte*> places;
    const auto matrix = [&](const kernels::packed_weights& m) {
      places.insert(m.view().panels);
      return kernels::round_up(m.size_bytes(), 64);
    };
    std::uint64_t bytes = matrix((*w)->embedding) + matrix((*w)->head);
    bytes += (*w)->output_norm.scale.size() * 4;
    for (const layer_weights& l : (*w)->layers) {
      for (const auto* m :
           {&l.query, &l.key, &l.value, &l.output, &l.feed_forward.gate, &l.feed_forward.up, &l.feed_forward.down})
        bytes += matrix(*m);
      bytes += (l.attention_norm.scale.size() + l.feed_forward_norm.scale.size()) * 4;
    }
    EXPECT_EQ(weight_bytes(*file, *t.table), bytes) << t.name;
    const kernels::memory_block& block = (*w)->matrices;
    EXPECT_EQ(places.size(), 2 + 7 * (*w)->layers.size());
    EXPECT_EQ(*places.begin(), block.data());
    EXPECT_LT(*places.rbegin(), block.data() + block.size());
    for (const std::byte* place : places) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(place) % 64, 0U);
  }
}

/// A model with latent attention, whose matrices are in one tensor or in two.
test::tiny_shape latent_shape_of(bool one_matrix) {
  return {.architecture = "deepseek2",
          .rotary_dim = 8,
          .matrices = gguf::tensor_type::q8_0,
          .experts = 4,
          .shared_feed_forward = 64,
          .one_latent_matrix = one_matrix,
          .dense_layers = 1};
}

TEST_F(weights_test, lay_out_the_matrices_of_latents_in_the_memory_that_was_computed) {
  for (const auto& t : kernels::list_targets()) {
    if (t.table == nullptr) continue;
    for (const bool one_matrix : {false, true}) {
      const auto file = make_tiny_model(latent_shape_of(one_matrix)).file();
      const auto w = load_weights(*file, *t.table, team_);
      ASSERT_TRUE(w) << w.error().describe();
      const kernels::memory_block& block = (*w)->matrices;
      for (const layer_weights& l : (*w)->layers) {
        for (const auto* of_heads : {&l.latents.of_query, &l.latents.of_value}) {
          ASSERT_EQ(of_heads->size(), 4U);
          for (const kernels::packed_weights& m : *of_heads) {
            EXPECT_GE(m.view().panels, block.data());
            EXPECT_LE(m.view().panels + m.size_bytes(), block.data() + block.size());
          }
        }
      }
      std::uint64_t bytes = block.size();
      for (const gguf::tensor& tensor : file->tensors()) {
        if (tensor.dimensions.size() == 1) bytes += tensor.element_count() * sizeof(float);
      }
      EXPECT_EQ(weight_bytes(*file, *t.table), bytes);
    }
  }
}

TEST_F(weights_test, turn_what_makes_keys_of_latents_where_it_lies_with_what_makes_values) {
  const tiny_model m = make_tiny_model(latent_shape_of(true));
  const auto file = m.file();
  const auto w = load_weights(*file, table_, team_);
  ASSERT_TRUE(w) << w.error().describe();
  const gguf::tensor& both = *file->find_tensor("blk.1.attn_kv_b.weight");
  constexpr std::size_t rank = 64, keys = 32, values = 16;
  const auto row_of = [&](std::size_t row) {
    std::vector<float> x(rank);
    const std::size_t bytes = kernels::row_bytes(kernels::weight_type::q8_0, rank);
    kernels::dequantize_row(kernels::weight_type::q8_0, both.bytes.data() + row * bytes, rank, x.data());
    return x;
  };
  const latent_weights& found = (*w)->layers[1].latents;
  for (std::size_t head = 0; head < 4; ++head) {
    for (std::size_t r = 0; r < rank; ++r) {
      std::vector<float> turned(keys);
      table_.unpack_row(found.of_query[head].view(), r, turned.data());
      for (std::size_t k = 0; k < keys; ++k) ASSERT_EQ(turned[k], row_of(head * (keys + values) + k)[r]);
    }
    for (std::size_t v = 0; v < values; ++v) {
      std::vector<float> row(rank);
      table_.unpack_row(found.of_value[head].view(), v, row.data());
      ASSERT_EQ(row, row_of(head * (keys + values) + keys + v));
    }
  }
}

/// The rows of a matrix of f32 or q8_0, as bytes.
std::vector<std::byte> rows_of(const test::tiny_tensor& t, std::uint64_t first, std::uint64_t count) {
  const std::uint64_t rows = t.dimensions[1] * (t.dimensions.size() == 3 ? t.dimensions[2] : 1);
  const std::size_t bytes = t.payload.size() / rows;
  const auto begin = t.payload.begin() + static_cast<std::ptrdiff_t>(first * bytes);
  return {begin, begin + static_cast<std::ptrdiff_t>(count * bytes)};
}

// Older files of Qwen3-Next have the rows of each key head together, and files may have gates and ups in one tensor.
TEST_F(weights_test, read_the_same_matrices_from_tensors_that_combine_them) {
  const test::tiny_shape shape{.architecture = "qwen3next", .experts = 4, .shared_feed_forward = 64};
  const tiny_model usual = make_tiny_model(shape);
  tiny_model combined = usual;
  std::erase_if(combined.tensors, [](const auto& t) {
    return t.name == "blk.0.attn_qkv.weight" || t.name == "blk.0.attn_gate.weight" ||
           t.name.find("ffn_gate_exps") != std::string::npos || t.name.find("ffn_up_exps") != std::string::npos;
  });
  tiny_model from = usual;
  const auto append = [](std::vector<std::byte>& to, const std::vector<std::byte>& more) {
    to.insert(to.end(), more.begin(), more.end());
  };
  const std::uint64_t d = shape.delta_head_dim;
  std::vector<std::byte> packed;
  for (const std::uint64_t head : {0, 1}) {
    const test::tiny_tensor& inputs = from.tensor("blk.0.attn_qkv.weight");
    append(packed, rows_of(inputs, head * d, d));
    append(packed, rows_of(inputs, (2 + head) * d, d));
    append(packed, rows_of(inputs, (4 + 2 * head) * d, 2 * d));
    append(packed, rows_of(from.tensor("blk.0.attn_gate.weight"), 2 * head * d, 2 * d));
  }
  combined.tensors.push_back({"blk.0.ssm_in.weight", gguf::tensor_type::f32, {shape.width, 12 * d}, packed});
  for (const std::string b : {"blk.0.", "blk.1."}) {
    std::vector<std::byte> both;
    for (std::uint64_t e = 0; e < shape.experts; ++e) {
      for (const char* name : {"ffn_gate_exps.weight", "ffn_up_exps.weight"})
        append(both, rows_of(from.tensor(b + name), e * shape.expert_feed_forward, shape.expert_feed_forward));
    }
    combined.tensors.push_back({b + "ffn_gate_up_exps.weight",
                                gguf::tensor_type::f32,
                                {shape.width, 2 * shape.expert_feed_forward, shape.experts},
                                both});
  }
  for (const auto& target : kernels::list_targets()) {
    if (target.table == nullptr) continue;
    const auto wanted = load_weights(*usual.file(), *target.table, team_);
    const auto found = load_weights(*combined.file(), *target.table, team_);
    ASSERT_TRUE(wanted && found) << found.error().describe();
    EXPECT_EQ(weight_bytes(*combined.file(), *target.table), weight_bytes(*usual.file(), *target.table));
    const auto expect_same = [](const kernels::packed_weights& a, const kernels::packed_weights& b) {
      ASSERT_EQ(a.size_bytes(), b.size_bytes());
      EXPECT_EQ(std::memcmp(a.view().panels, b.view().panels, a.size_bytes()), 0);
    };
    const delta_weights &a = (*wanted)->layers[0].delta, &b = (*found)->layers[0].delta;
    expect_same(a.input, b.input);
    expect_same(a.gate, b.gate);
    for (std::size_t layer = 0; layer < 2; ++layer) {
      for (std::size_t e = 0; e < shape.experts; ++e) {
        expect_same((*wanted)->layers[layer].mixture.experts[e].gate, (*found)->layers[layer].mixture.experts[e].gate);
        expect_same((*wanted)->layers[layer].mixture.experts[e].up, (*found)->layers[layer].mixture.experts[e].up);
      }
    }
  }
  combined.tensor("blk.0.ssm_in.weight").dimensions = {shape.width / 2, 24 * d};
  EXPECT_THAT(refusal(combined).context, HasSubstr("'blk.0.ssm_in.weight': expected shape [64, 384], found [32, 768]"));
}

TEST_F(weights_test, name_every_tensor_that_is_missing) {
  for (const architecture::family& f : architecture::families()) {
    const std::string architecture(f.name);
    test::tiny_shape shape{.architecture = architecture};
    const bool deepseek = architecture == "deepseek2";
    const bool next = architecture == "qwen3next";
    if (architecture.ends_with("moe") || architecture == "gpt-oss" || architecture == "mellum" || next || deepseek)
      shape.experts = 4;
    if (architecture == "lfm2moe") shape.dense_layers = 1;
    if (architecture == "qwen2moe" || architecture == "qwen35moe" || next || deepseek) shape.shared_feed_forward = 64;
    if (deepseek) shape.query_rank = 64;
    if (architecture == "gemma4") {
      shape.experts = 4;
      shape.layer_input = 8;
    }
    shape.mtp = !f.mtp.empty();
    const tiny_model whole = make_tiny_model(shape);
    const std::string optional = architecture == "glm4"        ? "blk.0.attn_q.bias"
                                 : architecture == "command-r" ? "blk.0.attn_q_norm.weight"
                                 : architecture == "lfm2moe"   ? "blk.1.exp_probs_b.bias"
                                 : architecture == "gemma4"    ? "blk.1.attn_v.weight"
                                                               : "";
    for (const test::tiny_tensor& t : whole.tensors) {
      if (t.name == optional) continue;  // this tensor decides whether there are any
      tiny_model m = whole;
      std::erase_if(m.tensors, [&](const auto& other) { return other.name == t.name; });
      EXPECT_THAT(refusal(m).context, HasSubstr("tensor '" + t.name + "' is missing"));
    }
  }
}

TEST_F(weights_test, read_one_mtp_layer_and_ignore_what_repeats_the_model) {
  const tiny_model whole = make_tiny_model({.architecture = "qwen35", .mtp = true});
  tiny_model m = whole;
  for (const char* name : {"blk.2.nextn.embed_tokens.weight", "blk.2.nextn.shared_head_head.weight"}) {
    m.tensors.push_back(m.tensor("token_embd.weight"));
    m.tensors.back().name = name;
  }
  EXPECT_EQ(refusal(m).context, "was accepted");
  EXPECT_TRUE(architecture::has_mtp(*m.file()));
  m = whole;
  m.tensor("blk.2.nextn.eh_proj.weight").dimensions = {64, 64};
  m.tensor("blk.2.nextn.eh_proj.weight").payload.resize(64 * 64 * sizeof(float));
  EXPECT_THAT(refusal(m).context, HasSubstr("'blk.2.nextn.eh_proj.weight': expected shape [128, 64], found [64, 64]"));
  // If there are two such layers, neither is read.
  m = whole;
  m.metadata["qwen35.nextn_predict_layers"] = 2U;
  EXPECT_FALSE(architecture::has_mtp(*m.file()));
  m.metadata["qwen35.nextn_predict_layers"] = 3U;
  EXPECT_THAT(refusal(m).context, HasSubstr("nextn_predict_layers: expected fewer than the 3 layers of block_count"));
}

/// Some files of LFM2 call the last norm as those of other families do.
TEST_F(weights_test, find_the_last_norm_under_its_usual_name) {
  tiny_model m = make_tiny_model({.architecture = "lfm2"});
  m.tensor("token_embd_norm.weight").name = "output_norm.weight";
  EXPECT_EQ(refusal(m).context, "was accepted");
  m.tensors.push_back(m.tensor("output_norm.weight"));
  m.tensors.back().name = "token_embd_norm.weight";
  EXPECT_THAT(refusal(m).context, HasSubstr("tensor 'output_norm.weight' is not part of this architecture"));
}

TEST_F(weights_test, name_every_tensor_of_another_shape) {
  const tiny_model whole = make_tiny_model({.tied_head = false});
  for (std::size_t i = 0; i < whole.tensors.size(); ++i) {
    tiny_model m = whole;
    test::tiny_tensor& t = m.tensors[i];
    const std::string before = std::to_string(t.dimensions[0]);
    t.dimensions[0] /= 2;
    t.payload.resize(t.payload.size() / 2);
    const failure f = refusal(m);
    EXPECT_EQ(f.code, errc::file_malformed);
    EXPECT_THAT(f.context, HasSubstr("tensor '" + t.name + "': expected shape [" + before)) << f.context;
  }
}

// The rows of a part need not fill panels.
TEST_F(weights_test, keep_the_parts_of_a_fused_tensor_as_matrices_of_their_own) {
  const test::tiny_shape shape{
      .architecture = "phi3", .heads = 6, .head_dim = 10, .rotary_dim = 8, .feed_forward = 72, .tied_head = false};
  const tiny_model m = make_tiny_model(shape);
  const auto file = m.file();
  const auto loaded = load_weights(*file, table_, team_);
  ASSERT_TRUE(loaded) << loaded.error().describe();
  const layer_weights& l = (*loaded)->layers[1];
  const auto row_of = [&](const std::string& name, std::size_t row) {
    const auto* x = reinterpret_cast<const float*>(file->find_tensor(name)->bytes.data()) + row * shape.width;
    return std::vector<float>(x, x + shape.width);
  };
  const auto unpacked = [&](const kernels::packed_weights& w, std::size_t row) {
    std::vector<float> x(shape.width);
    table_.unpack_row(w.view(), row, x.data());
    return x;
  };
  EXPECT_EQ(unpacked(l.query, 59), row_of("blk.1.attn_qkv.weight", 59));
  EXPECT_EQ(unpacked(l.key, 0), row_of("blk.1.attn_qkv.weight", 60));
  EXPECT_EQ(unpacked(l.value, 19), row_of("blk.1.attn_qkv.weight", 99));
  EXPECT_EQ(unpacked(l.feed_forward.gate, 71), row_of("blk.1.ffn_up.weight", 71));
  EXPECT_EQ(unpacked(l.feed_forward.up, 71), row_of("blk.1.ffn_up.weight", 143));
  std::uint64_t bytes = 0;
  for (const auto* w : {&(*loaded)->embedding, &(*loaded)->head}) bytes += kernels::round_up(w->size_bytes(), 64);
  for (const layer_weights& each : (*loaded)->layers) {
    for (const auto* w : {&each.query, &each.key, &each.value, &each.output, &each.feed_forward.gate,
                          &each.feed_forward.up, &each.feed_forward.down}) {
      bytes += kernels::round_up(w->size_bytes(), 64);
    }
  }
  EXPECT_EQ((*loaded)->matrices.size(), bytes);

  tiny_model bad = m;
  bad.tensor("blk.1.attn_qkv.weight").dimensions = {64, 96};
  bad.tensor("blk.1.attn_qkv.weight").payload.resize(64 * 96 * sizeof(float));
  EXPECT_THAT(refusal(bad).context, HasSubstr("'blk.1.attn_qkv.weight': expected shape [64, 100], found [64, 96]"));
}

TEST_F(weights_test, hold_the_factors_for_the_context_that_a_model_is_opened_with) {
  tiny_model m = make_tiny_model({.architecture = "phi3", .rotary_dim = 8});
  const auto floats = [](const std::vector<float>& x) { return test::tiny_encode(gguf::tensor_type::f32, x); };
  m.tensor("rope_factors_long.weight").payload = floats({1, 2, 3, 4});
  m.tensor("rope_factors_short.weight").payload = floats({1, 1, 2, 2});
  EXPECT_EQ((*load_weights(*m.file(), table_, team_))->rope_factors, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ((*load_weights(*m.file(), table_, team_, {}, 256))->rope_factors, (std::vector<float>{1, 1, 2, 2}));
  tiny_model bad = m;
  bad.tensor("rope_factors_short.weight").payload = floats({1, -1, 2, 2});
  EXPECT_THAT(refusal(bad).context, HasSubstr("'rope_factors_short.weight': expected positive divisors, found -1"));
  bad.tensor("rope_factors_long.weight").dimensions = {2, 2};
  EXPECT_THAT(refusal(bad).context, HasSubstr("'rope_factors_long.weight': expected shape [4], found [2, 2]"));
}

TEST_F(weights_test, refuse_types_without_a_kernel) {
  tiny_model m = make_tiny_model({.width = 256, .head_dim = 64, .rotary_dim = 64});
  test::tiny_tensor& t = m.tensor("blk.1.ffn_gate.weight");
  t.type = gguf::tensor_type::q8_k;
  t.payload.resize(256 * 96 / 256 * 292);
  const failure f = refusal(m);
  EXPECT_EQ(f.code, errc::unsupported_format);
  EXPECT_THAT(f.context, HasSubstr("tensor 'blk.1.ffn_gate.weight': expected one of F32, F16, BF16, Q8_0, Q4_0, Q4_1, "
                                   "Q5_0, Q5_1, Q4_K, Q5_K, Q6_K, Q2_K, Q3_K, IQ4_NL, IQ4_XS, MXFP4, "
                                   "IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS, IQ3_S, IQ1_S, IQ1_M, found Q8_K"));

  tiny_model n = make_tiny_model();
  test::tiny_tensor& norm = n.tensor("output_norm.weight");
  norm.type = gguf::tensor_type::q8_0;
  norm.payload.resize(68);
  EXPECT_THAT(refusal(n).context, HasSubstr("'output_norm.weight': expected F32, F16 or BF16, found Q8_0"));
}

TEST_F(weights_test, take_more_memory_than_the_file_where_points_of_grids_are_written_out) {
  using enum gguf::tensor_type;
  // The bytes of sixteen blocks of 256 weights.
  for (const auto& [type, bytes] : {std::pair{iq2_xxs, 1728},
                                    {iq2_xs, 1856},
                                    {iq2_s, 1856},
                                    {iq3_xxs, 2240},
                                    {iq3_s, 2240},
                                    {iq1_s, 1728},
                                    {iq1_m, 1856}}) {
    tiny_model m = make_tiny_model({.width = 256, .head_dim = 64, .rotary_dim = 64});
    const kernels::kernel_table& packing = *kernels::choose_table("scalar").table;
    const std::uint64_t before = weight_bytes(*m.file(), packing);
    test::tiny_tensor& t = m.tensor("blk.1.ffn_gate.weight");
    const std::uint64_t floats = t.payload.size();
    t.payload = test::tiny_encode(type, std::vector<float>(floats / sizeof(float), 0.1F));
    t.type = type;
    EXPECT_EQ(weight_bytes(*m.file(), packing), before - floats + floats / 16 / 1024 * static_cast<unsigned>(bytes));
    ASSERT_TRUE(load_weights(*m.file(), packing, team_)) << name_of(type);
  }
}

TEST_F(weights_test, refuse_rows_that_are_no_whole_blocks_of_a_grid) {
  using enum gguf::tensor_type;
  for (const auto type : {iq2_xxs, iq2_xs, iq2_s, iq3_xxs, iq3_s, iq1_s, iq1_m}) {
    tiny_model m = make_tiny_model();
    test::tiny_tensor& t = m.tensor("blk.1.ffn_gate.weight");
    t.type = type;
    const auto file = gguf::gguf_file::from_bytes(m.bytes(), "tiny.gguf");
    ASSERT_FALSE(file);
    EXPECT_THAT(file.error().context, HasSubstr("rows of 64 elements are not whole blocks of 256 (" + name_of(type)));
  }
}

TEST_F(weights_test, refuse_tensors_that_would_change_the_arithmetic) {
  for (const char* name : {"blk.0.attn_q_norm.weight", "blk.1.attn_output.bias", "blk.0.ffn_gate_inp.weight",
                           "blk.2.attn_q.weight", "output.bias", "rope_factors_long.weight"}) {
    tiny_model m = make_tiny_model();
    m.tensors.push_back(
        {name, gguf::tensor_type::f32, {64}, test::tiny_encode(gguf::tensor_type::f32, std::vector<float>(64, 1.0F))});
    const failure f = refusal(m);
    EXPECT_EQ(f.code, errc::unsupported_format);
    EXPECT_THAT(f.context, HasSubstr("'" + std::string(name) + "' is not part of this architecture"));
  }
}

TEST_F(weights_test, take_all_of_the_qkv_biases_or_none) {
  tiny_model m = make_tiny_model();
  m.tensors.push_back({"blk.0.attn_q.bias",
                       gguf::tensor_type::f32,
                       {64},
                       test::tiny_encode(gguf::tensor_type::f32, std::vector<float>(64, 1.0F))});
  EXPECT_THAT(refusal(m).context, HasSubstr("'blk.0.attn_k.bias' is missing"));
}

TEST_F(weights_test, refuse_frequency_divisors_that_are_not_positive) {
  tiny_model m = make_tiny_model();
  m.tensors.push_back({"rope_freqs.weight",
                       gguf::tensor_type::f32,
                       {8},
                       test::tiny_encode(gguf::tensor_type::f32, {1, 1, 1, 0, 1, 1, 1, 1})});
  EXPECT_THAT(refusal(m).context, HasSubstr("'rope_freqs.weight': expected positive divisors"));
}

TEST_F(weights_test, report_progress_up_to_all_bytes) {
  std::uint64_t last = 0;
  std::uint64_t all = 0;
  int calls = 0;
  const auto file = make_tiny_model().file();
  ASSERT_TRUE(load_weights(*file, table_, team_, [&](std::uint64_t done, std::uint64_t of) {
    EXPECT_GT(done, last);
    last = done;
    all = of;
    ++calls;
  }));
  EXPECT_EQ(last, all);
  EXPECT_EQ(calls, static_cast<int>(file->tensors().size()));
}

TEST_F(weights_test, unpack_to_the_rows_of_the_file) {
  for (const auto type : {gguf::tensor_type::f32, gguf::tensor_type::f16, gguf::tensor_type::bf16}) {
    const tiny_model m = make_tiny_model({.matrices = type});
    auto loaded = load_weights(*m.file(), table_, team_);
    ASSERT_TRUE(loaded);
    const test::tiny_tensor& t = m.tensors.front();
    ASSERT_EQ(t.name, "token_embd.weight");
    for (const std::size_t row : {0U, 17U, 299U}) {
      std::vector<float> floats(64);
      table_.unpack_row((*loaded)->embedding.view(), row, floats.data());
      const std::vector<std::byte> bytes = test::tiny_encode(type, floats);
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), t.payload.begin() + static_cast<long>(row * bytes.size())));
    }
  }
}

TEST_F(weights_test, a_file_that_changes_while_it_is_loaded_is_refused) {
  const test::temporary_folder folder;
  const std::string path = folder / "m.gguf";
  const auto load_while = [&](const std::function<void()>& meddle) {
    if (!test::make_tiny_model().writer().write(path)) throw std::runtime_error("cannot write");
    const auto file = gguf::gguf_file::open(path).value();
    bool done = false;
    const auto loaded = load_weights(*file, table_, team_, [&](auto, auto) {
      if (!std::exchange(done, true)) meddle();
    });
    return loaded ? std::string("loaded") : std::string(name_of(loaded.error().code));
  };
  EXPECT_EQ(load_while([] {}), "loaded");
  EXPECT_EQ(load_while([&] { std::ofstream(path, std::ios::app) << "more"; }), "file_unreadable");
  EXPECT_EQ(load_while([&] { std::filesystem::rename(path, path + ".old"); }), "loaded");
  EXPECT_EXIT((void)load_while([&] { std::filesystem::resize_file(path, 100); }), ::testing::ExitedWithCode(78),
              "m.gguf: expected [0-9]+ bytes as when it was opened");
}

}  // namespace
}  // namespace redline::model
