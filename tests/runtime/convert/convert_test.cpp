#include "runtime/convert/convert.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "kernels/weight_blocks.hpp"
#include "runtime/gguf/gguf_file.hpp"
#include "runtime/kv/page_pool.hpp"
#include "runtime/model/transformer.hpp"
#include "runtime/text/tokenizer.hpp"
#include "tests/support/hf_model.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_data.hpp"

namespace redline::convert {
namespace {

using test::hf_model;
using test::make_hf_model;
using test::tiny_shape;
using testing::HasSubstr;

class convert_test : public testing::Test {
 protected:
  std::string folder_of(const hf_model& m) {
    const std::string path = root_ / ("model" + std::to_string(++count_));
    m.write(path);
    return path;
  }
  std::shared_ptr<const gguf::gguf_file> converted(const std::string& folder, std::string_view type = "f32") {
    const std::string path = root_ / (std::to_string(++count_) + ".gguf");
    const auto done = convert_folder(folder, output_type::parse(type).value(), path, team_);
    EXPECT_TRUE(done) << done.error().describe();
    return gguf::gguf_file::open(path).value();
  }
  failure refusal(const std::string& folder) {
    const auto done = convert_folder(folder, output_type::parse("f32").value(), root_ / "refused.gguf", team_);
    EXPECT_FALSE(std::filesystem::exists(root_ / "refused.gguf"));
    return done ? failure{errc::internal, "was accepted"} : done.error();
  }
  /// Returns the failure for a model after one change to it.
  template<class Change>
  std::string refusal_after(Change change) {
    hf_model m = make_hf_model({});
    change(m);
    return refusal(folder_of(m)).context;
  }

  const test::temporary_folder root_;
  kernels::worker_team team_{2};
  int count_ = 0;
};

void expect_same_tensors(const gguf::gguf_file& found, const gguf::gguf_file& wanted) {
  ASSERT_EQ(found.tensors().size(), wanted.tensors().size());
  for (const gguf::tensor& t : wanted.tensors()) {
    const gguf::tensor* other = found.find_tensor(t.name);
    ASSERT_NE(other, nullptr) << t.name;
    EXPECT_EQ(other->dimensions, t.dimensions) << t.name;
    EXPECT_EQ(other->type, t.type) << t.name;
    EXPECT_TRUE(std::equal(t.bytes.begin(), t.bytes.end(), other->bytes.begin(), other->bytes.end())) << t.name;
  }
}

std::vector<float> logits_of(const gguf::gguf_file& file, const std::vector<token>& tokens) {
  const kernels::kernel_table& table = *kernels::choose_table("scalar").table;
  kernels::worker_team team(1);
  const auto weights = model::load_weights(file, table, team);
  if (!weights) throw std::runtime_error(weights.error().describe());
  const auto runner =
      model::transformer::create(*weights, table, team,
                                 {.pages_count = 4, .state_slots = 1, .kv = model::kv_type::f32, .rows_max = 64})
          .value();
  kv::page_pool pool(4);
  kv::page_table pages;
  EXPECT_TRUE(pages.append(pool, static_cast<std::uint32_t>(tokens.size())));
  const model::run all{
      .tokens = tokens, .table = pages.pieces(), .state = {.kept = static_cast<std::uint32_t>(tokens.size())}};
  const auto logits = runner->forward({&all, 1});
  return {logits.begin(), logits.end()};
}

TEST_F(convert_test, a_folder_becomes_the_model_it_was_made_of_bit_for_bit) {
  std::vector<std::string> names{"mixtral", "deepseek3", "gemma4 with experts"};
  for (const architecture::family& f : architecture::families()) {
    if (!f.hub.empty()) names.emplace_back(f.name);
  }
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    for (const bool tied : {true, false}) {
      tiny_shape shape = {.architecture = name == "mixtral"     ? "llama"
                                          : name == "deepseek3" ? "deepseek2"
                                                                : name.substr(0, name.find(' ')),
                          .tied_head = tied};
      if (name == "mixtral" || name == "mellum" || name == "qwen3next" || name.ends_with("moe")) shape.experts = 5;
      if (name == "qwen2moe" || name == "qwen35moe" || name == "qwen3next") shape.shared_feed_forward = 64;
      if (name.starts_with("qwen35") || name == "qwen3next") shape.rotary_dim = 4;
      shape.mtp = name == "qwen35" || name == "qwen3next";
      if (name == "lfm2moe") shape.dense_layers = 1;
      if (name == "gemma4") {
        shape.layers = 5;
        shape.sharing_layers = 2;
        shape.layer_input = 8;
      }
      if (name == "gemma4 with experts") {
        shape.experts = 5;
        shape.keys_are_values = true;
      }
      shape.window = 4;
      if (name == "phi3" || name == "glm4") shape.rotary_dim = 12;
      if (name.starts_with("deepseek")) {
        shape.by_sigmoid = name == "deepseek3";
        shape.experts = shape.by_sigmoid ? 6 : 5;
        shape.shared_feed_forward = 64;
        shape.query_rank = tied ? 32 : 0;
        shape.dense_layers = 1;
      }
      if (name == "gpt-oss") {
        shape.experts = 5;
        if (tied) shape.expert_matrices = gguf::tensor_type::mxfp4;  // as published, else as in fine-tuned models
      }
      const auto wanted = test::make_tiny_model(shape).file();
      auto folder = make_hf_model(shape);
      if (shape.by_sigmoid) folder.tensors["model.layers.2.eh_proj.weight"] = {"F32", {1}, std::vector<std::byte>(4)};
      const auto found = converted(folder_of(folder));
      expect_same_tensors(*found, *wanted);
      EXPECT_EQ(architecture::read_shape(*found)->short_context, architecture::read_shape(*wanted)->short_context);
      EXPECT_EQ(logits_of(*found, {17, 3, 250, 99, 262, 17}), logits_of(*wanted, {17, 3, 250, 99, 262, 17}));
      const auto words = text::tokenizer::from_file(*found).value(), mine = text::tokenizer::from_file(*wanted).value();
      EXPECT_EQ(words->digest(), mine->digest());
      EXPECT_EQ(words->vocab().eos(), mine->vocab().eos());
      EXPECT_EQ(words->vocab().padding(), mine->vocab().padding());
      EXPECT_EQ(words->vocab().chat_template(), mine->vocab().chat_template());
      EXPECT_EQ(words->encode("then <|im_end|>", {.parse_special = true}),
                mine->encode("then <|im_end|>", {.parse_special = true}));
    }
  }
}

/// The model as the text part of a vision model; `config` omits what its publishers omit.
hf_model wrapped(const tiny_shape& shape, const std::string& architecture, const std::string& before,
                 const std::string& text_type) {
  const hf_model alone = make_hf_model(shape);
  hf_model m = alone;
  m.config = {{"architectures", {architecture}}, {"text_config", alone.config}, {"vision_config", {{"layers", 1}}}};
  m.config["text_config"].erase("architectures");
  m.config["text_config"]["model_type"] = text_type;
  m.config["text_config"]["query_pre_attn_scalar"] = shape.head_dim;  // the default is that of Gemma's heads
  m.tensors.clear();
  for (const auto& [name, tensor] : alone.tensors) {
    const std::string inner = before.starts_with("model.") && name.starts_with("model.") ? name.substr(6) : name;
    m.tensors[name.starts_with("lm_head.") && before.starts_with("model.") ? name : before + inner] = tensor;
  }
  for (const char* name : {"vision_tower.vision_model.encoder.layers.0.weight", "multi_modal_projector.norm.weight"}) {
    m.tensors[(before.starts_with("model.") ? "model." : "") + std::string(name)] = {
        "F32", {2}, std::vector<std::byte>(8)};
  }
  return m;
}

// Gemma 3 from 4B on and Mistral Small 3.1 are only published in this form.
TEST_F(convert_test, of_a_model_that_sees_the_part_for_text_is_taken) {
  for (const auto& [ours, theirs, type] :
       {std::tuple("gemma3", "Gemma3ForConditionalGeneration", "gemma3_text"),
        std::tuple("gemma4", "Gemma4ForConditionalGeneration", "gemma4_text"),
        std::tuple("llama", "Mistral3ForConditionalGeneration", "mistral"),
        std::tuple("qwen35", "Qwen3_5ForConditionalGeneration", "qwen3_5_text"),
        std::tuple("qwen35moe", "Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe_text")}) {
    for (const std::string before : {"language_model.", "model.language_model."}) {
      SCOPED_TRACE(theirs + (" " + before));
      tiny_shape shape = {.architecture = ours, .tied_head = std::string(ours).starts_with("gemma"), .window = 4};
      if (ours == std::string("qwen35moe")) {
        shape.experts = 4;
        shape.shared_feed_forward = 64;
        shape.mtp = true;
      }
      hf_model m = wrapped(shape, theirs, before, type);
      std::size_t others = 2;
      if (ours == std::string("qwen35")) {
        for (const char* other : {"model.visual.norm.weight", "mtp.fc.weight"}) {  // without its layer
          m.tensors[other] = {"F32", {1}, std::vector<std::byte>(4)};
          ++others;
        }
      }
      const std::string path = root_ / (before + ours);
      const auto left_out = convert_folder(folder_of(m), output_type::parse("f32").value(), path, team_);
      ASSERT_TRUE(left_out) << left_out.error().describe();
      EXPECT_EQ(*left_out, others);
      const auto found = gguf::gguf_file::open(path).value();
      const auto wanted = test::make_tiny_model(shape).file();
      expect_same_tensors(*found, *wanted);
      EXPECT_EQ(logits_of(*found, {17, 3, 250, 99, 262, 17}), logits_of(*wanted, {17, 3, 250, 99, 262, 17}));
    }
  }
  EXPECT_EQ(
      convert_folder(folder_of(make_hf_model({})), output_type::parse("f32").value(), root_ / "a.gguf", team_).value(),
      0U);
}

TEST_F(convert_test, parts_of_a_model_that_sees_are_refused_by_file_and_name) {
  const auto with = [&](auto change) {
    hf_model m = wrapped({.architecture = "gemma3", .window = 4}, "Gemma3ForConditionalGeneration", "language_model.",
                         "gemma3_text");
    change(m);
    const failure why = refusal(folder_of(m));
    EXPECT_THAT(why.context, HasSubstr("/model"));
    return why.context;
  };
  EXPECT_THAT(with([](hf_model& m) { m.tensors.erase("language_model.model.norm.weight"); }),
              HasSubstr("tensor 'model.norm.weight' is missing in the text part of the model"));
  EXPECT_THAT(with([](hf_model& m) {
                m.tensors["language_model.model.norm.weight"].shape = {8, 8};
              }),
              HasSubstr("'language_model.model.norm.weight'.shape: expected [64], found [8, 8]"));
  EXPECT_THAT(
      with([](hf_model& m) { m.tensors["speech_tower.weight"] = m.tensors["language_model.model.norm.weight"]; }),
      HasSubstr("'speech_tower.weight' does not belong in a gemma3 model"));
  EXPECT_THAT(with([](hf_model& m) { m.tensors["model.norm.weight"] = m.tensors["language_model.model.norm.weight"]; }),
              HasSubstr("does not belong in a gemma3 model"));
  EXPECT_THAT(with([](hf_model& m) { m.config.erase("text_config"); }), HasSubstr("config.json: text_config"));
}

TEST_F(convert_test, a_template_that_lies_with_the_processor_is_found) {
  const hf_model m = make_hf_model({});
  const std::string folder = folder_of(m);
  std::ofstream(folder + "/chat_template.json") << test::json{{"chat_template", "{{ 'from the processor' }}"}}.dump();
  const auto of = [&] { return text::tokenizer::from_file(*converted(folder)).value()->vocab().chat_template(); };
  EXPECT_EQ(of(), m.tokenizer_config["chat_template"]) << "the tokenizer's own goes before it";
  test::json without = m.tokenizer_config;
  without.erase("chat_template");
  std::ofstream(folder + "/tokenizer_config.json") << without.dump();
  EXPECT_EQ(of(), "{{ 'from the processor' }}");
}

TEST_F(convert_test, half_precision_is_read_exactly) {
  for (const gguf::tensor_type stored : {gguf::tensor_type::f16, gguf::tensor_type::bf16}) {
    const tiny_shape shape = {.matrices = stored};
    const auto wanted = test::make_tiny_model(shape).file();
    expect_same_tensors(*converted(folder_of(make_hf_model(shape)), gguf::name_of(stored)), *wanted);
  }
}

TEST_F(convert_test, matrices_become_what_quantize_row_makes_of_them) {
  const tiny_shape shape = {.architecture = "qwen2"};
  const auto from = test::make_tiny_model(shape).file();
  const auto to = converted(folder_of(make_hf_model(shape)), "q8_0");
  EXPECT_EQ(to->get_unsigned("general.file_type").value(), 7U);
  const gguf::tensor &exact = *from->find_tensor("blk.1.ffn_up.weight"), &rough = *to->find_tensor(exact.name);
  ASSERT_EQ(rough.type, gguf::tensor_type::q8_0);
  std::vector<std::byte> row(kernels::row_bytes(weight_type::q8_0, shape.width));
  for (std::size_t r = 0; r < shape.feed_forward; ++r) {
    const auto* x = reinterpret_cast<const float*>(exact.bytes.data()) + r * shape.width;
    kernels::quantize_row(weight_type::q8_0, x, shape.width, row.data());
    EXPECT_TRUE(std::equal(row.begin(), row.end(), rough.bytes.begin() + static_cast<std::ptrdiff_t>(r * row.size())));
  }
}

TEST_F(convert_test, llama_biases_are_found_and_their_rows_moved) {
  hf_model m = make_hf_model({.layers = 1});
  for (const auto& [name, length] : {std::pair("q_proj", 64U), std::pair("k_proj", 32U), std::pair("v_proj", 32U)}) {
    std::vector<float> values(length);
    for (std::size_t i = 0; i < length; ++i) values[i] = static_cast<float>(i);
    const auto bytes = std::as_bytes(std::span(values));
    m.tensors["model.layers.0.self_attn." + std::string(name) + ".bias"] = {
        "F32", {length}, {bytes.begin(), bytes.end()}};
  }
  const auto file = converted(folder_of(m));
  const auto number = [&](const char* name, std::size_t i) {
    float x = 0;
    std::memcpy(&x, file->find_tensor(name)->bytes.data() + i * sizeof x, sizeof x);
    return x;
  };
  EXPECT_EQ(number("blk.0.attn_q.bias", 1), 8);    // head_dim is 16: the right side of the first pair
  EXPECT_EQ(number("blk.0.attn_q.bias", 18), 17);  // the second head's second pair
  EXPECT_EQ(number("blk.0.attn_v.bias", 1), 1);
  EXPECT_FALSE(logits_of(*file, {1, 2, 3}).empty());
}

TEST_F(convert_test, scaled_positions_reach_the_loader) {
  hf_model m = make_hf_model({});
  m.config["rope_scaling"] = {{"type", "linear"}, {"factor", 4.0}};
  EXPECT_EQ(architecture::read_shape(*converted(folder_of(m)))->rope_position_scale, 0.25F);
  m.config["rope_scaling"] = {{"rope_type", "llama3"},
                              {"factor", 8.0},
                              {"low_freq_factor", 1.0},
                              {"high_freq_factor", 4.0},
                              {"original_max_position_embeddings", 256}};
  const auto stretched = converted(folder_of(m));
  ASSERT_NE(stretched->find_tensor("rope_freqs.weight"), nullptr);
  EXPECT_NE(logits_of(*stretched, {1, 2, 3}), logits_of(*converted(folder_of(make_hf_model({}))), {1, 2, 3}));
}

TEST_F(convert_test, a_larger_embedding_than_the_tokenizer_is_padded_with_unused_tokens) {
  hf_model m = make_hf_model({});
  m.config["vocab_size"] = 310;
  auto& embedding = m.tensors["model.embed_tokens.weight"];
  embedding.shape[0] = 310;
  embedding.bytes.resize(310 * 64 * 4);
  const auto words = text::tokenizer::from_file(*converted(folder_of(m))).value();
  EXPECT_EQ(words->size(), 310U);
  EXPECT_EQ(words->vocab().type(309), text::token_type::unused);
}

TEST_F(convert_test, the_name_is_the_folders_own) {
  const std::string folder = folder_of(make_hf_model({}));
  const std::string name = std::filesystem::path(folder).filename();
  EXPECT_EQ(converted(folder)->get_string("general.name").value(), name);
  EXPECT_EQ(converted(folder + "/")->get_string("general.name").value(), name);
}

TEST_F(convert_test, shards_are_read_as_the_index_says) {
  const hf_model whole = make_hf_model({});
  hf_model m = whole;
  m.tensors.clear();
  const std::string folder = folder_of(m);
  std::map<std::string, test::hf_tensors> shards;
  test::json weight_map;
  for (const auto& [name, t] : whole.tensors) {
    const std::string file =
        shards.size() % 2 == 0 ? "model-00001-of-00002.safetensors" : "model-00002-of-00002.safetensors";
    const std::string shard = name < "model.layers.1" ? "model-00001-of-00002.safetensors" : file;
    shards[shard][name] = t;
    weight_map[name] = shard;
  }
  for (const auto& [name, tensors] : shards) {
    std::ofstream(folder + "/" + name, std::ios::binary) << test::safetensors_bytes(tensors);
  }
  std::ofstream(folder + "/model.safetensors.index.json") << test::json{{"weight_map", weight_map}}.dump();
  expect_same_tensors(*converted(folder), *test::make_tiny_model({}).file());
}

TEST_F(convert_test, tensors_that_do_not_fit_are_refused_by_name) {
  EXPECT_THAT(refusal_after([](hf_model& m) { m.tensors.erase("model.layers.1.mlp.up_proj.weight"); }),
              HasSubstr("tensor 'model.layers.1.mlp.up_proj.weight' is missing"));
  EXPECT_THAT(refusal_after([](hf_model& m) {
                m.tensors["model.layers.0.mlp.up_proj.weight"].shape = {64, 96};
              }),
              HasSubstr("'model.layers.0.mlp.up_proj.weight'.shape: expected [96, 64], found [64, 96]"));
  EXPECT_THAT(refusal_after([](hf_model& m) {
                m.tensors["model.norm.weight"].shape = {8, 8};
              }),
              HasSubstr("'model.norm.weight'.shape: expected [64], found [8, 8]"));
  EXPECT_THAT(refusal_after([](hf_model& m) { m.tensors["model.norm.weight"].type = "I32"; }),
              HasSubstr("'model.norm.weight'.dtype: expected F32, F16 or BF16, found I32"));
  EXPECT_THAT(refusal_after([](hf_model& m) {
                m.tensors["model.layers.0.self_attn.o_proj.bias"] = {"F32", {0}, {}};
              }),
              HasSubstr("'model.layers.0.self_attn.o_proj.bias' does not belong in a llama model"));
  EXPECT_THAT(refusal_after([](hf_model& m) { m.config["tie_word_embeddings"] = false; }),
              HasSubstr("tensor 'lm_head.weight' is missing"));
}

TEST_F(convert_test, tensors_that_say_nothing_new_are_left_out) {
  hf_model m = make_hf_model({});
  m.tensors["lm_head.weight"] = m.tensors["model.embed_tokens.weight"];
  m.tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = {"F32", {0}, {}};
  expect_same_tensors(*converted(folder_of(m)), *test::make_tiny_model({}).file());
}

TEST_F(convert_test, the_files_that_are_read_are_never_written) {
  const std::string folder = folder_of(make_hf_model({}));
  const std::string before = test::read_file(folder + "/model.safetensors");
  for (const char* name : {"/model.safetensors", "/tokenizer.json", "/config.json"}) {
    const auto done = convert_folder(folder, output_type::parse("f32").value(), folder + name, team_);
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().context, HasSubstr("expected an output file that is not also read"));
  }
  EXPECT_EQ(test::read_file(folder + "/model.safetensors"), before);
}

}  // namespace
}  // namespace redline::convert
