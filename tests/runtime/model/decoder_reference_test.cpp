// Compares every architecture with reference/decoder_reference.py, an independent float64 implementation.

#include <gtest/gtest.h>

#include <cstring>
#include <sstream>
#include <stdexcept>

#include "runtime/kv/page_pool.hpp"
#include "runtime/model/transformer.hpp"
#include "tests/support/test_data.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::model {
namespace {

/// The hash that the script uses as well, so that both sides have the same floats.
std::vector<float> hashed(std::uint64_t number, std::uint64_t count, float centre, float spread) {
  std::vector<float> values(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t h = (i * 2654435761 + number * 40503) & 0xffffffff;
    h = ((h ^ (h >> 15)) * 2246822519) & 0xffffffff;
    values[i] = centre + spread * (static_cast<float>(h >> 16) / 32768.0F - 1.0F);
  }
  return values;
}

/// The form of newer files: per head, the transposed matrix of keys, [rank, plain], and that of values, in two tensors.
void split_latent_matrix(test::tiny_model& m, const std::string& prefix, std::uint32_t heads, std::uint32_t plain,
                         std::uint32_t value, std::uint32_t rank) {
  test::tiny_tensor& both = m.tensor(prefix + "attn_kv_b.weight");
  std::vector<float> all(both.payload.size() / sizeof(float)), keys, values;
  std::memcpy(all.data(), both.payload.data(), both.payload.size());
  for (std::uint32_t head = 0; head < heads; ++head) {
    const float* rows = all.data() + std::size_t{head} * (plain + value) * rank;
    for (std::uint32_t r = 0; r < rank; ++r) {
      for (std::uint32_t k = 0; k < plain; ++k) keys.push_back(rows[k * rank + r]);
    }
    values.insert(values.end(), rows + plain * rank, rows + (plain + value) * rank);
  }
  const auto f32 = gguf::tensor_type::f32;
  both = {prefix + "attn_k_b.weight", f32, {plain, rank, heads}, test::tiny_encode(f32, keys)};
  m.tensors.push_back({prefix + "attn_v_b.weight", f32, {rank, value, heads}, test::tiny_encode(f32, values)});
}

/// "deepseek2" has the form of older files, "deepseek2-yarn" that of newer ones, and "deepseek2-sigmoid" chooses
/// experts as DeepSeek 3 does.
test::tiny_model reference_deepseek2(const std::string& name) {
  const bool yarn = name == "deepseek2-yarn", sigmoid = name == "deepseek2-sigmoid";
  test::tiny_shape shape{.architecture = "deepseek2",
                         .rotary_dim = 8,
                         .experts = 6,
                         .shared_feed_forward = 64,
                         .query_rank = yarn ? 64U : 0U,
                         .one_latent_matrix = true,
                         .dense_layers = 1,
                         .by_sigmoid = sigmoid};
  test::tiny_model m = test::make_tiny_model(shape);
  std::uint64_t number = 0;
  const auto set = [&](const std::string& tensor, float centre, float spread) {
    test::tiny_tensor& t = m.tensor(tensor);
    t.payload = test::tiny_encode(t.type, hashed(number++, t.payload.size() / sizeof(float), centre, spread));
  };
  set("token_embd.weight", 0, 0.5F);
  set("output_norm.weight", 1, 0.25F);
  for (const std::string b : {"blk.0.", "blk.1."}) {
    std::vector<std::string> tensors{"attn_norm", "attn_q"};
    if (yarn) tensors = {"attn_norm", "attn_q_a", "attn_q_a_norm", "attn_q_b"};
    for (const char* each : {"attn_kv_a_mqa", "attn_kv_a_norm", "attn_kv_b", "attn_output", "ffn_norm"}) {
      tensors.emplace_back(each);
    }
    const std::vector<std::string> dense{"ffn_gate", "ffn_up", "ffn_down"};
    const std::vector<std::string> mixed{"ffn_gate_inp",   "ffn_gate_exps", "ffn_up_exps",   "ffn_down_exps",
                                         "ffn_gate_shexp", "ffn_up_shexp",  "ffn_down_shexp"};
    const auto& of_layer = b == "blk.0." ? dense : mixed;
    tensors.insert(tensors.end(), of_layer.begin(), of_layer.end());
    for (const std::string& each : tensors) set(b + each + ".weight", each.ends_with("norm") ? 1 : 0, 0.25F);
    if (sigmoid && b == "blk.1.") set(b + "exp_probs_b.bias", 0, 0.5F);
    if (yarn) split_latent_matrix(m, b, shape.heads, shape.width / 2, shape.width / 4, shape.width);
  }
  if (!yarn) return m;
  m.metadata["deepseek2.attention.head_count_kv"] = 1U;
  m.metadata["deepseek2.attention.key_length_mla"] = m.metadata["deepseek2.attention.key_length"];
  m.metadata["deepseek2.attention.value_length_mla"] = m.metadata["deepseek2.attention.value_length"];
  m.metadata["deepseek2.attention.key_length"] = shape.width + shape.rotary_dim;
  m.metadata["deepseek2.attention.value_length"] = shape.width;
  m.metadata["deepseek2.expert_weights_norm"] = true;
  m.metadata["deepseek2.rope.scaling.type"] = std::string("yarn");
  m.metadata["deepseek2.rope.scaling.factor"] = 4.0F;
  m.metadata["deepseek2.rope.scaling.original_context_length"] = 64U;
  m.metadata["deepseek2.rope.scaling.yarn_log_multiplier"] = 0.0707F;
  return m;
}

/// "qwen35" and the families with the same layers and a mixture.
test::tiny_model reference_qwen35(const std::string& name, bool with_mtp = false) {
  const bool is_mixture = name != "qwen35";
  test::tiny_model m = test::make_tiny_model({.architecture = name,
                                              .experts = is_mixture ? 6U : 0,
                                              .shared_feed_forward = is_mixture ? 64U : 0,
                                              .mtp = with_mtp});
  std::uint64_t number = 0;
  const auto set = [&](const std::string& tensor, float centre, float spread) {
    test::tiny_tensor& t = m.tensor(tensor);
    t.payload = test::tiny_encode(t.type, hashed(number++, t.payload.size() / sizeof(float), centre, spread));
  };
  set("token_embd.weight", 0, 0.5F);
  set("output_norm.weight", 1, 0.25F);
  for (const std::string b : {"blk.0.", "blk.1.", "blk.2."}) {
    if (b == "blk.2." && !with_mtp) break;
    set(b + "attn_norm.weight", 1, 0.25F);
    if (b == "blk.0.") {
      set(b + "attn_qkv.weight", 0, 0.25F);
      set(b + "attn_gate.weight", 0, 0.25F);
      set(b + "ssm_conv1d.weight", 0, 0.5F);
      if (name == "qwen3next") {
        set(b + "ssm_ba.weight", 0, 0.25F);
      } else {
        for (const char* each : {"ssm_alpha", "ssm_beta"}) set(b + each + ".weight", 0, 0.25F);
      }
      set(b + "ssm_dt.bias", 0, 0.5F);
      set(b + "ssm_a", -0.5F, 0.25F);
      set(b + "ssm_norm.weight", 1, 0.25F);
      set(b + "ssm_out.weight", 0, 0.25F);
    } else {
      for (const char* each : {"attn_q", "attn_k", "attn_v", "attn_output"}) set(b + each + ".weight", 0, 0.25F);
      for (const char* each : {"attn_q_norm", "attn_k_norm"}) set(b + each + ".weight", 1, 0.25F);
    }
    set(b + "post_attention_norm.weight", 1, 0.25F);
    std::vector<std::string> products{"ffn_gate", "ffn_up", "ffn_down"};
    if (is_mixture) {
      products = {"ffn_gate_inp",       "ffn_gate_exps",  "ffn_up_exps",  "ffn_down_exps",
                  "ffn_gate_inp_shexp", "ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp"};
    }
    for (const std::string& each : products) set(b + each + ".weight", 0, 0.25F);
    if (b != "blk.2.") continue;
    set(b + "nextn.eh_proj.weight", 0, 0.25F);
    for (const char* each : {"enorm", "hnorm", "shared_head_norm"}) set(b + "nextn." + each + ".weight", 1, 0.25F);
  }
  return m;
}

test::tiny_model reference_lfm2(const std::string& name) {
  const bool is_mixture = name == "lfm2moe";
  test::tiny_model m = test::make_tiny_model(
      {.architecture = name, .experts = is_mixture ? 6U : 0, .dense_layers = is_mixture ? 1U : 0});
  std::uint64_t number = 0;
  const auto set = [&](const std::string& tensor, float centre, float spread) {
    test::tiny_tensor& t = m.tensor(tensor);
    t.payload = test::tiny_encode(t.type, hashed(number++, t.payload.size() / sizeof(float), centre, spread));
  };
  set("token_embd.weight", 0, 0.5F);
  set("token_embd_norm.weight", 1, 0.25F);
  for (const std::string b : {"blk.0.", "blk.1."}) {
    set(b + "attn_norm.weight", 1, 0.25F);
    if (b == "blk.0.") {
      set(b + "shortconv.in_proj.weight", 0, 0.25F);
      set(b + "shortconv.conv.weight", 0, 0.5F);
      set(b + "shortconv.out_proj.weight", 0, 0.25F);
    } else {
      for (const char* each : {"attn_q", "attn_k", "attn_v", "attn_output"}) set(b + each + ".weight", 0, 0.25F);
      for (const char* each : {"attn_q_norm", "attn_k_norm"}) set(b + each + ".weight", 1, 0.25F);
    }
    set(b + "ffn_norm.weight", 1, 0.25F);
    const bool mixed = is_mixture && b == "blk.1.";
    std::vector<std::string> products{"ffn_gate", "ffn_up", "ffn_down"};
    if (mixed) products = {"ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"};
    for (const std::string& each : products) set(b + each + ".weight", 0, 0.25F);
    if (mixed) set(b + "exp_probs_b.bias", 0, 0.5F);
  }
  return m;
}

/// "gemma4" has what the small models have, "gemma4-moe" what the mixtures have.
test::tiny_model reference_gemma4(const std::string& name) {
  const bool is_mixture = name == "gemma4-moe";
  test::tiny_shape shape{.architecture = "gemma4", .rotary_dim = 16, .window = 4};
  if (is_mixture) {
    shape.experts = 6;
    shape.keys_are_values = true;
  } else {
    shape.layers = 4;
    shape.sharing_layers = 2;
    shape.layer_input = 8;
  }
  test::tiny_model m = test::make_tiny_model(shape);
  std::uint64_t number = 0;
  for (test::tiny_tensor& t : m.tensors) {
    if (t.name == "rope_freqs.weight") continue;
    const bool is_factor = t.dimensions.size() == 1;
    const float spread = t.name == "token_embd.weight" ? 0.5F : 0.25F;
    t.payload =
        test::tiny_encode(t.type, hashed(number++, t.payload.size() / sizeof(float), is_factor ? 1 : 0, spread));
  }
  return m;
}

test::tiny_model reference_model(const std::string& name) {
  if (name.starts_with("gemma4")) return reference_gemma4(name);
  if (name.starts_with("deepseek2")) return reference_deepseek2(name);
  if (name.starts_with("lfm2")) return reference_lfm2(name);
  if (name.starts_with("qwen35") || name == "qwen3next") return reference_qwen35(name);
  const bool llama = name == "llama", mixtral = name == "mixtral", granite = name == "granite";
  const bool gpt_oss = name == "gpt-oss", gemma2 = name == "gemma2", gemma3 = name == "gemma3";
  const std::string architecture = mixtral                         ? "llama"
                                   : gpt_oss                       ? name
                                   : name.starts_with("command-r") ? "command-r"
                                                                   : name.substr(0, name.find('-'));
  const bool phi3 = architecture == "phi3", olmo2 = architecture == "olmo2", glm4 = architecture == "glm4";
  const bool command_r = name.starts_with("command-r");
  test::tiny_shape shape{.architecture = architecture,
                         .rotary_dim = llama || glm4 ? 8U
                                       : phi3        ? 12U
                                                     : 16U,
                         .tied_head = !llama && !mixtral && !granite};
  const bool shares_expert = architecture == "qwen2moe";
  const bool is_mixture = mixtral || shares_expert || architecture == "qwen3moe" || architecture == "mellum" || gpt_oss;
  shape.window = 4;
  if (is_mixture) {
    shape.experts = 6;
    shape.shared_feed_forward = shares_expert ? 64 : 0;
  }
  test::tiny_model m = test::make_tiny_model(shape);
  std::uint64_t number = 0;
  const auto set = [&](const std::string& tensor, float centre, float spread) {
    test::tiny_tensor& t = m.tensor(tensor);
    std::uint64_t count = 1;
    for (const std::uint64_t d : t.dimensions) count *= d;
    t.payload = test::tiny_encode(t.type, hashed(number++, count, centre, spread));
  };
  set("token_embd.weight", 0, 0.5F);
  const bool starcoder = architecture == "starcoder2";
  const auto set_norm = [&](const std::string& norm) {
    set(norm + ".weight", 1, 0.25F);
    if (starcoder) set(norm + ".bias", 0, 0.25F);
  };
  set_norm("output_norm");
  for (const std::string b : {"blk.0.", "blk.1."}) {
    if (!olmo2) set_norm(b + "attn_norm");
    std::vector<std::string> of_attention{"attn_q", "attn_k", "attn_v", "attn_output"};
    if (phi3) of_attention = {"attn_qkv", "attn_output"};
    for (const std::string& product : of_attention) set(b + product + ".weight", 0, 0.25F);
    if (!olmo2 && !command_r) set_norm(b + (gpt_oss ? "post_attention_norm" : "ffn_norm"));
    std::vector<std::string> products{"ffn_gate", "ffn_up", "ffn_down"};
    if (starcoder || phi3 || glm4) products = {"ffn_up", "ffn_down"};
    if (is_mixture) products = {"ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"};
    const std::vector<std::string> shared{"ffn_gate_inp_shexp", "ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp"};
    if (shares_expert) products.insert(products.end(), shared.begin(), shared.end());
    for (const std::string& product : products) set(b + product + ".weight", 0, 0.25F);
    if (gemma2 || gemma3 || olmo2 || glm4) {
      for (const char* norm : {"post_attention_norm", "post_ffw_norm"}) set_norm(b + norm);
    }
    if (architecture == "llama" || architecture == "mistral3" || architecture == "gemma" || gemma2 || granite || phi3 ||
        name == "command-r")
      continue;
    if (architecture == "qwen3" || architecture == "qwen3moe" || architecture == "mellum" || gemma3 || olmo2 ||
        name == "command-r-plus") {
      for (const char* each : {"attn_q_norm", "attn_k_norm"}) set(b + each + ".weight", 1, 0.25F);
      continue;
    }
    for (const char* each : {"attn_q", "attn_k", "attn_v"}) set(b + each + ".bias", 0, 0.5F);
    if (gpt_oss) {
      for (const char* each : {"attn_output", "ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"}) {
        set(b + each + ".bias", 0, 0.5F);
      }
      set(b + "attn_sinks.weight", 0, 2);
    }
    if (!starcoder) continue;
    for (const char* each : {"attn_output", "ffn_up", "ffn_down"}) set(b + each + ".bias", 0, 0.5F);
  }
  if (!shape.tied_head) set("output.weight", 0, 0.5F);
  if (name == "command-r") {
    std::erase_if(m.tensors, [](const auto& t) { return t.name.find("q_norm") != std::string::npos; });
    std::erase_if(m.tensors, [](const auto& t) { return t.name.find("k_norm") != std::string::npos; });
  }
  if (name == "olmo2-windows") {
    m.metadata["olmo2.attention.sliding_window"] = 4U;
    m.metadata["olmo2.attention.sliding_window_pattern"] = 2U;
  }
  if (name == "mellum") m.metadata["mellum.attention.sliding_window_pattern"] = 2U;
  if (name.ends_with("-yarn") || gpt_oss || name == "mellum" || name == "olmo2-windows") {
    m.metadata[architecture + ".rope.scaling.type"] = std::string("yarn");
    m.metadata[architecture + ".rope.scaling.factor"] = 4.0F;
    m.metadata[architecture + ".rope.scaling.original_context_length"] = 64U;
  }
  if (gemma2) {
    m.metadata["gemma2.attn_logit_softcapping"] = 3.0F;
    m.metadata["gemma2.final_logit_softcapping"] = 15.0F;
  }
  if (gemma3) {
    m.metadata["gemma3.rope.freq_base"] = 20000.0F;
    m.metadata["gemma3.rope.scaling.type"] = std::string("linear");
    m.metadata["gemma3.rope.scaling.factor"] = 8.0F;
  }
  if (phi3) {
    const auto encode = [](const std::vector<float>& factors) {
      return test::tiny_encode(gguf::tensor_type::f32, factors);
    };
    m.tensor("rope_factors_long.weight").payload = encode({1, 1.25F, 2, 5, 11, 30});
    m.tensor("rope_factors_short.weight").payload = encode({1, 1, 1.125F, 1.5F, 2, 2.5F});
    m.metadata["phi3.attention.sliding_window"] = 5U;
  }
  if (llama) {
    m.tensors.push_back(
        {"rope_freqs.weight", gguf::tensor_type::f32, {4}, test::tiny_encode(gguf::tensor_type::f32, {1, 1.5F, 2, 4})});
    m.metadata["llama.rope.scaling.type"] = std::string("linear");
    m.metadata["llama.rope.scaling.factor"] = 4.0F;
  }
  return m;
}

/// Loads a model; for phi3 the file's context is 2048, and up to 256 tokens count as short.
std::shared_ptr<const weights> reference_weights(const std::string& name, const kernels::kernel_table& table,
                                                 kernels::worker_team& team) {
  auto loaded = load_weights(*reference_model(name).file(), table, team, {}, name == "phi3-short" ? 256 : 0);
  if (!loaded) throw std::runtime_error(loaded.error().describe());
  return *loaded;
}

TEST(decoder_reference, logits_equal_an_independent_implementation_within_rounding) {
  std::istringstream text(test::read_file(test::source_path("tests/runtime/model/reference/decoder_logits.txt")));
  kernels::worker_team team(1);
  const kernels::kernel_table& table = kernels::table_for_cache(*kernels::process_table().table, kv_type::f32);
  int rows_checked = 0;
  for (std::string name; text >> name;) {
    std::size_t count = 0;
    text >> count;
    std::vector<token> tokens(count);
    for (token& t : tokens) text >> t;
    auto t = transformer::create(reference_weights(name, table, team), table, team,
                                 {.pages_count = 1, .state_slots = 1, .kv = kv_type::f32});
    ASSERT_TRUE(t);
    kv::page_pool pool(1);
    kv::page_table pages;
    ASSERT_TRUE(pages.append(pool, static_cast<std::uint32_t>(count)));
    const run r{.tokens = tokens, .table = pages.pieces(), .state = {.kept = static_cast<std::uint32_t>(count)}};
    const auto logits = (*t)->forward({&r, 1});
    for (int i = 0; i < 3; ++i, ++rows_checked) {
      std::size_t row = 0;
      text >> row;
      for (std::size_t v = 0; v < test::tiny_model::vocabulary; ++v) {
        double wanted = 0;
        text >> wanted;
        ASSERT_NEAR(logits[row * test::tiny_model::vocabulary + v], wanted, 1e-4) << name << ", row " << row;
      }
    }
  }
  EXPECT_EQ(rows_checked, 96);
}

/// One sequence of a model with an MTP layer, computed run by run.
class drafting_model {
 public:
  drafting_model(const std::string& name, const kernels::kernel_table& table, kernels::worker_team& team)
      : model_(*transformer::create(*load_weights(*reference_qwen35(name, true).file(), table, team), table, team,
                                    {.pages_count = 2, .state_slots = 1, .records_max = 16, .kv = kv_type::f32})),
        pool_(2) {}

  /// The rows after the first `kept` ones become records; the next run applies the first `records` of them.
  void compute(std::span<const token> tokens, std::uint32_t kept) {
    const auto rows = static_cast<std::uint32_t>(tokens.size());
    EXPECT_TRUE(pages_.append(pool_, rows));
    begin_ = count_;
    count_ += rows;
    tokens_.assign(tokens.begin(), tokens.end());
    table_ = pages_.prefix(count_);
    last_ = {.tokens = tokens_,
             .first_position = static_cast<position>(begin_),
             .table = table_,
             .state = {.begins = begin_ == 0, .records = records_, .kept = kept}};
    (void)model_->forward_body({&last_, 1});
    records_ = rows - kept;
  }
  /// Takes the last `count` rows back, all of which are records.
  void refuse(std::uint32_t count) {
    count_ -= count;
    records_ -= count;
    pages_.truncate(pool_, count_);
  }
  /// The logits of a draft with these tokens after a row of the last run.
  std::vector<float> draft(std::uint32_t row, std::span<const token> following) {
    const transformer::mtp_start start{0, row - begin_};
    model_->begin_drafts({&last_, 1}, {&start, 1});
    std::vector<float> all;
    for (const token t : following) {
      const transformer::mtp_row next{0, t};
      const auto logits = model_->draft({&next, 1});
      all.insert(all.end(), logits.begin(), logits.end());
    }
    return all;
  }

 private:
  std::unique_ptr<transformer> model_;
  kv::page_pool pool_;
  kv::page_table pages_;
  std::uint32_t begin_ = 0, count_ = 0, records_ = 0;
  std::vector<token> tokens_;
  std::vector<kv::piece> table_;
  run last_;
};

// The draft's bits do not depend on how its tokens were computed: at once, in chunks, or after a refused draft.
TEST(decoder_reference, drafts_of_an_mtp_layer_equal_an_independent_implementation_within_rounding) {
  std::istringstream text(test::read_file(test::source_path("tests/runtime/model/reference/decoder_drafts.txt")));
  kernels::worker_team team(1);
  const kernels::kernel_table& table = kernels::table_for_cache(*kernels::process_table().table, kv_type::f32);
  int rows_checked = 0;
  for (std::string name; text >> name;) {
    std::size_t count = 0;
    text >> count;
    std::vector<token> tokens(count);
    for (token& t : tokens) text >> t;
    text >> count;
    std::vector<token> following(count);
    std::vector<double> wanted;
    for (token& t : following) {
      text >> t;
      for (std::size_t v = 0; v < test::tiny_model::vocabulary; ++v) text >> wanted.emplace_back();
    }
    const auto last = static_cast<std::uint32_t>(tokens.size() - 1);
    drafting_model at_once(name, table, team);
    at_once.compute(tokens, last + 1);
    const std::vector<float> said = at_once.draft(last, following);
    ASSERT_EQ(said.size(), wanted.size());
    for (std::size_t i = 0; i < said.size(); ++i) ASSERT_NEAR(said[i], wanted[i], 1e-4) << name << ", number " << i;
    rows_checked += static_cast<int>(following.size());

    drafting_model in_chunks(name, table, team);
    for (const token& t : tokens) in_chunks.compute({&t, 1}, 1);
    EXPECT_EQ(in_chunks.draft(last, following), said) << name;

    drafting_model refused(name, table, team);
    std::vector<token> with_draft(tokens.begin(), tokens.end() - 2);
    with_draft.insert(with_draft.end(), {3, 9, 27});
    refused.compute(with_draft, 1);  // the draft, and other rows, become records
    (void)refused.draft(last - 2, following);
    refused.refuse(3);
    const std::vector<token> others{tokens[last - 1], tokens[last], 81, 82};
    refused.compute(others, 1);
    EXPECT_EQ(refused.draft(last, following), said) << name;
    EXPECT_EQ(refused.draft(last, following), said) << "a draft leaves no trace";
  }
  EXPECT_EQ(rows_checked, 15);
}

// Covers both layouts of rotation (qwen2's halves, llama's neighbors with half of a head rotated), windows, and layers
// that rotate differently.
TEST(decoder_reference, logits_after_a_splice_equal_an_independent_implementation_within_rounding) {
  std::istringstream text(test::read_file(test::source_path("tests/runtime/model/reference/decoder_splices.txt")));
  const std::vector<token> tokens{5, 299, 17, 17, 120, 64, 0, 250, 31, 88, 142};
  kernels::worker_team team(1);
  const kernels::kernel_table& table = kernels::table_for_cache(*kernels::process_table().table, kv_type::f32);
  int checked = 0;
  std::string name;
  std::string what;
  std::uint32_t at = 0;
  std::uint32_t removed = 0;
  std::uint32_t inserted = 0;
  while (text >> name >> what >> at >> removed >> inserted) {
    std::vector<token> fresh(inserted);
    for (token& t : fresh) text >> t;
    std::vector<double> wanted(test::tiny_model::vocabulary);
    for (double& v : wanted) text >> v;
    for (const bool eager : {false, true}) {
      if (eager && what != "evict") continue;
      SCOPED_TRACE(name + " " + what + (eager ? " eager" : ""));
      auto t = *transformer::create(reference_weights(name, table, team), table, team,
                                    {.pages_count = 2, .kv = kv_type::f32});
      kv::page_pool pool(2);
      kv::page_table pages;
      const auto compute = [&](std::span<const token> some, std::uint32_t first) {
        EXPECT_TRUE(pages.insert(pool, first, static_cast<std::uint32_t>(some.size())));
        const auto pieces = pages.prefix(first + static_cast<std::uint32_t>(some.size()));
        const run r{some, static_cast<position>(first), pieces, static_cast<std::uint32_t>(some.size()) - 1};
        return t->forward({&r, 1});
      };
      compute(tokens, 0);
      const std::int32_t shift =
          what == "conflict" ? 0 : static_cast<std::int32_t>(inserted) - static_cast<std::int32_t>(removed);
      pages.splice(pool, at, removed, shift);
      if (eager) t->move_tokens(pages.apply_offsets(pool, at));
      if (inserted > 0) compute(fresh, at);
      const token last[] = {77};
      const auto logits = compute(last, pages.token_count());
      for (std::size_t v = 0; v < wanted.size(); ++v) ASSERT_NEAR(logits[v], wanted[v], 1e-4) << v;
      ++checked;
    }
  }
  EXPECT_EQ(checked, 60);
}

}  // namespace
}  // namespace redline::model
