#include "runtime/architecture/shape_keys.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "tests/support/tiny_model.hpp"

namespace redline::architecture {
namespace {

using test::make_tiny_model;
using test::tiny_model;
using ::testing::HasSubstr;

/// The windows by layer; empty if no layer has one.
std::vector<std::uint32_t> windows_of(const model_shape& c) {
  std::vector<std::uint32_t> windows;
  for (std::size_t layer = 0; layer < c.layer_kinds.size(); ++layer) windows.push_back(c.window_of(layer));
  return windows;
}

/// The failure for a tiny llama after `change`.
failure refusal(const std::function<void(tiny_model&)>& change) {
  tiny_model m = make_tiny_model();
  change(m);
  auto config = read_shape(*m.file());
  if (config) return {errc::internal, "was accepted"};
  return config.error();
}

TEST(shape_keys, reads_the_shape_of_both_architectures) {
  const auto llama = read_shape(*make_tiny_model({.rotary_dim = 8}).file());
  ASSERT_TRUE(llama) << llama.error().describe();
  EXPECT_EQ(llama->layers, 2U);
  EXPECT_EQ(llama->width, 64U);
  EXPECT_EQ(llama->heads, 4U);
  EXPECT_EQ(llama->kv_heads, 2U);
  EXPECT_EQ(llama->head_dim, 16U);
  EXPECT_EQ(llama->rotary_dim, 8U);
  EXPECT_EQ(llama->feed_forward, 96U);
  EXPECT_EQ(llama->vocabulary, 300U);
  EXPECT_EQ(llama->kind->pairs, rope_pairs::adjacent);
  EXPECT_FALSE(llama->qkv_biases);
  EXPECT_TRUE(llama->tied_head);
  const auto qwen2 = read_shape(*make_tiny_model({.architecture = "qwen2", .tied_head = false}).file());
  ASSERT_TRUE(qwen2) << qwen2.error().describe();
  EXPECT_EQ(qwen2->kind->pairs, rope_pairs::half_split);
  EXPECT_TRUE(qwen2->qkv_biases);
  EXPECT_FALSE(qwen2->tied_head);
}

TEST(shape_keys, derives_what_files_usually_leave_out) {
  tiny_model m = make_tiny_model({.kv_heads = 4});
  for (const char* key : {"attention.head_count_kv", "attention.key_length", "attention.value_length",
                          "rope.dimension_count", "rope.freq_base"}) {
    m.metadata.erase(std::string("llama.") + key);
  }
  m.metadata.erase("general.name");
  const auto config = read_shape(*m.file());
  ASSERT_TRUE(config) << config.error().describe();
  EXPECT_EQ(config->kv_heads, 4U);
  EXPECT_EQ(config->head_dim, 16U);
  EXPECT_EQ(config->rotary_dim, 16U);
  EXPECT_EQ(config->rope_base, 10000.0F);
}

TEST(shape_keys, reads_linear_position_scaling) {
  tiny_model m = make_tiny_model();
  m.metadata["llama.rope.scaling.type"] = std::string("linear");
  m.metadata["llama.rope.scaling.factor"] = 4.0F;
  EXPECT_EQ(read_shape(*m.file())->rope_position_scale, 0.25F);
}

TEST(shape_keys, reads_yarn) {
  tiny_model m = make_tiny_model();
  m.metadata["llama.rope.scaling.type"] = std::string("yarn");
  m.metadata["llama.rope.scaling.factor"] = 4.0F;
  const auto usual = read_shape(*m.file());
  ASSERT_TRUE(usual && usual->yarn);
  EXPECT_EQ(usual->yarn->factor, 4);
  EXPECT_EQ(usual->yarn->original_context, 2048U) << "the file's value, unless another is given";
  EXPECT_EQ(usual->yarn->turns_kept, 32);
  EXPECT_NEAR(usual->rope_magnitude, 1.1386, 1e-4);
  m.metadata["llama.rope.scaling.original_context_length"] = 512U;
  m.metadata["llama.rope.scaling.attn_factor"] = 0.5F;
  m.metadata["llama.rope.scaling.yarn_beta_fast"] = 16.0F;
  const auto told = read_shape(*m.file());
  EXPECT_EQ(told->yarn->original_context, 512U);
  EXPECT_EQ(told->yarn->turns_kept, 16);
  EXPECT_NEAR(told->rope_magnitude, 0.5693, 1e-4);
  for (const auto& [key, value, text] : {std::tuple("factor", 0.5F, "factor: expected at least 1"),
                                         {"yarn_beta_fast", 1.0F, "more than yarn_beta_slow"},
                                         {"yarn_ext_factor", 0.0F, "yarn_ext_factor: expected 1"},
                                         {"yarn_log_multiplier", 0.1F, "expected 0"}}) {
    tiny_model bad = m;
    bad.metadata["llama.rope.scaling." + std::string(key)] = value;
    EXPECT_THAT(read_shape(*bad.file()).error().context, HasSubstr(text));
  }
}

TEST(shape_keys, reads_granites_multipliers) {
  tiny_model m = make_tiny_model({.architecture = "granite"});
  const auto c = read_shape(*m.file());
  ASSERT_TRUE(c) << c.error().describe();
  EXPECT_EQ(c->attention_scale, 0.0625F);
  EXPECT_EQ(c->embedding_scale, 12);
  EXPECT_EQ(c->residual_scale, 0.22F);
  EXPECT_EQ(c->logit_multiplier(), 0.125F);
  m.metadata.erase("granite.attention.scale");
  EXPECT_EQ(read_shape(*m.file())->attention_scale, 0.25F) << "with heads of 16";
  m.metadata["granite.logit_scale"] = 0.0F;
  EXPECT_THAT(read_shape(*m.file()).error().context, HasSubstr("granite.logit_scale: expected a positive number"));
}

TEST(shape_keys, reads_recurrent_layers_and_which_they_are) {
  const tiny_model m = make_tiny_model({.architecture = "qwen35", .layers = 5});
  const auto kinds = [](const tiny_model& of) {
    const auto c = read_shape(*of.file());
    EXPECT_TRUE(c) << c.error().describe();
    std::string out;
    for (std::size_t layer = 0; c && layer < c->layers; ++layer) out += c->is_recurrent(layer) ? 'r' : 'a';
    return out;
  };
  EXPECT_EQ(kinds(m), "rarar");
  const auto c = *read_shape(*m.file());
  EXPECT_EQ(c.attention_layers(), 2U);
  EXPECT_EQ(c.delta->channels(), 2 * 2 * 32 + 4 * 32U);
  tiny_model other = m;
  other.metadata.erase("qwen35.full_attention_interval");
  EXPECT_EQ(kinds(other), "rrrar") << "every fourth layer has attention";
  other.metadata["qwen35.attention.recurrent_layers"] = std::vector<std::int32_t>{0, 1, 1, 0, 0, 0};
  EXPECT_EQ(kinds(other), "arraa") << "the file says it layer by layer";
  for (const auto& [key, value, text] :
       {std::tuple{"ssm.state_size", 48U, "ssm.state_size: expected a multiple of 32, found 48"},
        {"ssm.time_step_rank", 5U, "ssm.time_step_rank: expected a multiple of the 2 of ssm.group_count, found 5"},
        {"ssm.inner_size", 64U, "ssm.inner_size: expected 128, found 64"},
        {"ssm.conv_kernel", 17U, "ssm.conv_kernel: expected 1 to 16, found 17"}}) {
    tiny_model bad = m;
    bad.metadata["qwen35." + std::string(key)] = value;
    EXPECT_THAT(read_shape(*bad.file()).error().context, HasSubstr(text));
  }
  other.metadata["qwen35.attention.recurrent_layers"] = std::vector<std::int32_t>{1, 1, 1, 1, 1};
  EXPECT_THAT(read_shape(*other.file()).error().context,
              HasSubstr("qwen35.full_attention_interval: expected a layer with attention among 5, found only"));
  other.metadata["qwen35.attention.recurrent_layers"] = std::vector<std::int32_t>{0, 1};
  EXPECT_THAT(read_shape(*other.file()).error().context, HasSubstr("a flag for each of 5 layers, found 2"));
}

TEST(shape_keys, reads_from_the_numbers_of_kv_heads_which_layers_are_convolutions) {
  const tiny_model m = make_tiny_model({.architecture = "lfm2", .layers = 3});
  const auto c = read_shape(*m.file());
  ASSERT_TRUE(c) << c.error().describe();
  using enum layer_kind;
  EXPECT_EQ(c->layer_kinds, (std::vector{recurrent, full, recurrent}));
  EXPECT_EQ(c->kv_heads, 2U);
  EXPECT_EQ(c->convolution_taps, 3U);
  const auto refusal = [&](std::vector<std::int32_t> heads) {
    tiny_model bad = m;
    bad.metadata["lfm2.attention.head_count_kv"] = std::move(heads);
    return read_shape(*bad.file()).error().context;
  };
  EXPECT_THAT(refusal({0, 2}), HasSubstr("head_count_kv: expected a number for each of 3 layers, found 2"));
  EXPECT_THAT(refusal({0, 0, 0}), HasSubstr("head_count_kv: expected a layer with attention, found only 0"));
  EXPECT_THAT(refusal({2, 0, 4}), HasSubstr("expected 0 or one positive number in all layers, found 4"));
  EXPECT_THAT(refusal({-2, 0, 0}), HasSubstr("expected 0 or one positive number in all layers, found -2"));
  EXPECT_THAT(refusal({3, 0, 3}), HasSubstr("expected a divisor of 4 heads, found 3"));
  tiny_model other = m;
  other.metadata["lfm2.shortconv.l_cache"] = 17U;
  EXPECT_THAT(read_shape(*other.file()).error().context, HasSubstr("shortconv.l_cache: expected 1 to 16, found 17"));
  other.metadata["lfm2.shortconv.l_cache"] = 1U;
  EXPECT_THAT(read_shape(*other.file()).error().context, HasSubstr("shortconv.l_cache: expected 2 to 16, found 1"));
}

TEST(shape_keys, reads_sizes_that_differ_among_layers) {
  const tiny_model m =
      make_tiny_model({.architecture = "gemma4", .layers = 6, .rotary_dim = 16, .sharing_layers = 3, .layer_input = 8});
  const auto c = read_shape(*m.file());
  ASSERT_TRUE(c) << c.error().describe();
  std::string kept, read;
  for (std::size_t layer = 0; layer < c->layers; ++layer) {
    kept += c->keeps_tokens(layer) ? 'k' : '.';
    read += static_cast<char>('0' + c->kv_layer_of(layer));
  }
  EXPECT_EQ(kept, "kkk...");
  EXPECT_EQ(read, "012121") << "the last of the kind";
  EXPECT_EQ(c->attention_layers(), 3U);
  EXPECT_EQ(c->of_layer(0).head_dim, 8U);
  EXPECT_EQ(c->of_layer(0).kv_heads, 4U);
  EXPECT_EQ(c->of_layer(1).head_dim, 16U);
  EXPECT_EQ(c->of_layer(1).kv_heads, 2U);
  EXPECT_EQ(c->of_layer(1).feed_forward, 96U);
  EXPECT_EQ(c->of_layer(4).feed_forward, 192U);
  EXPECT_EQ(c->varied->layer_input, 8U);
  EXPECT_FALSE(c->varied->keys_are_values);
  EXPECT_EQ(c->attention_scale, 1);
  EXPECT_TRUE(read_shape(*make_tiny_model({.architecture = "gemma4", .keys_are_values = true}).file())
                  ->varied->keys_are_values);
  const auto refusal = [&](const std::string& key, tiny_model::entry value) {
    tiny_model bad = m;
    bad.metadata["gemma4." + key] = std::move(value);
    const auto read_bad = read_shape(*bad.file());
    return read_bad ? std::string("none") : read_bad.error().context;
  };
  using numbers = std::vector<std::int32_t>;
  EXPECT_THAT(refusal("attention.head_count_kv", numbers{4, 2, 4}),
              HasSubstr("a number for each of 6 layers, found 3"));
  EXPECT_THAT(refusal("attention.head_count_kv", numbers{4, 2, 4, 2, 4, 1}),
              HasSubstr("head_count_kv: expected one number for layers of a kind, found another in layer 5"));
  EXPECT_THAT(refusal("attention.head_count_kv", numbers{3, 2, 3, 2, 3, 2}), HasSubstr("a divisor of the 4 heads"));
  EXPECT_THAT(refusal("attention.head_count_kv", numbers{4, 0, 4, 0, 4, 0}), HasSubstr("found 0.000000 in layer 1"));
  EXPECT_THAT(refusal("feed_forward_length", numbers{96, 64, 96, 192, 192, 192}),
              HasSubstr("feed_forward_length: expected one number for layers of a kind, found another in layer 1"));
  EXPECT_THAT(refusal("attention.shared_kv_layers", 6U), HasSubstr("expected fewer than the 6 layers, found 6"));
  EXPECT_THAT(refusal("attention.shared_kv_layers", 5U),
              HasSubstr("expected one number for layers of a kind"));  // the widths are those of three
  EXPECT_THAT(refusal("attention.key_length_swa", 7U), HasSubstr("expected the key length 7, found 8"));
  EXPECT_THAT(refusal("rope.dimension_count_swa", 10U), HasSubstr("rotated dimensions there from 2 to 8, found 10"));
  EXPECT_THAT(refusal("embedding_length_per_layer_input", 1U << 30), HasSubstr("a token's input to each layer from 0"));
  EXPECT_THAT(refusal("attention.sliding_window", 0U), HasSubstr("sliding_window: expected 1 to"));
  tiny_model one = make_tiny_model({.architecture = "gemma4", .layers = 3, .rotary_dim = 16});
  one.metadata["gemma4.attention.shared_kv_layers"] = 2U;
  EXPECT_THAT(read_shape(*one.file()).error().context,
              HasSubstr("expected a layer of each kind before the last 2, which read its keys and values, found the "
                        "first in layer 1"));
}

TEST(shape_keys, reads_windows_as_each_family_places_them) {
  using numbers = std::vector<std::uint32_t>;
  const auto windows = [](const tiny_model& m) {
    const auto c = read_shape(*m.file());
    EXPECT_TRUE(c) << c.error().describe();
    return c ? windows_of(*c) : numbers();
  };
  EXPECT_EQ(windows(make_tiny_model({.architecture = "gemma2", .layers = 5})), (numbers{20, 0, 20, 0, 20}));
  EXPECT_EQ(windows(make_tiny_model({.architecture = "gpt-oss", .layers = 3, .experts = 4})), (numbers{20, 0, 20}));
  tiny_model gemma3 = make_tiny_model({.architecture = "gemma3", .layers = 7});
  gemma3.metadata.erase("gemma3.attention.sliding_window_pattern");
  EXPECT_EQ(windows(gemma3), (numbers{20, 20, 20, 20, 20, 0, 20}));
  gemma3.metadata["gemma3.attention.sliding_window_pattern"] = std::vector<std::int32_t>{1, 0, 0, 1, 1, 0, 0};
  EXPECT_EQ(windows(gemma3), (numbers{20, 0, 0, 20, 20, 0, 0}));
  gemma3.metadata["gemma3.attention.sliding_window_pattern"] = std::vector<std::int32_t>{1, 0};
  EXPECT_THAT(read_shape(*gemma3.file()).error().context,
              HasSubstr("one number for each of 7 layers, found 2 entries"));
  gemma3.metadata.erase("gemma3.attention.sliding_window_pattern");
  gemma3.metadata.erase("gemma3.attention.sliding_window");
  EXPECT_EQ(windows(gemma3), numbers());
  tiny_model gemma2 = make_tiny_model({.architecture = "gemma2", .context = 8192});
  gemma2.metadata.erase("gemma2.attention.sliding_window");
  EXPECT_EQ(windows(gemma2), (numbers{4096, 0}));

  tiny_model mistral = make_tiny_model();
  mistral.metadata["llama.attention.sliding_window"] = 128U;
  EXPECT_EQ(windows(mistral), (numbers{128, 128}));
  mistral.metadata["llama.attention.sliding_window"] = 2048U;
  EXPECT_EQ(windows(mistral), numbers()) << "as long as the context";
  tiny_model qwen = make_tiny_model({.architecture = "qwen2"});
  qwen.metadata["qwen2.attention.sliding_window"] = 128U;
  EXPECT_THAT(read_shape(*qwen.file()).error().context, HasSubstr("full attention in qwen2, found a window of 128"));
  tiny_model gpt_oss = make_tiny_model({.architecture = "gpt-oss", .experts = 4});
  gpt_oss.metadata.erase("gpt-oss.attention.sliding_window");
  EXPECT_THAT(read_shape(*gpt_oss.file()).error().context, HasSubstr("'gpt-oss.attention.sliding_window' is missing"));
}

TEST(shape_keys, reads_what_is_particular_to_gemma_2_and_3_and_gpt_oss) {
  tiny_model m = make_tiny_model({.architecture = "gemma2"});
  auto c = read_shape(*m.file());
  ASSERT_TRUE(c) << c.error().describe();
  EXPECT_EQ(c->attention_cap, 5);
  EXPECT_EQ(c->logit_cap, 20);
  EXPECT_EQ(c->attention_scale, 0.25F) << "with heads of 16";
  EXPECT_EQ(c->embedding_scale, 8);
  EXPECT_TRUE(c->kind->has(role::attention_post_norm));
  EXPECT_EQ(c->window_rope_base, 0);
  m.metadata.erase("gemma2.attn_logit_softcapping");
  m.metadata["gemma2.final_logit_softcapping"] = 0.0F;
  c = read_shape(*m.file());
  EXPECT_EQ(c->attention_cap, 50) << "the family's value";
  EXPECT_EQ(c->logit_cap, 0);
  m.metadata["gemma2.final_logit_softcapping"] = -1.0F;
  EXPECT_THAT(read_shape(*m.file()).error().context, HasSubstr("final_logit_softcapping: expected a positive number"));
  const auto wide = make_tiny_model({.architecture = "gemma2", .layers = 46, .width = 128});
  EXPECT_FLOAT_EQ(read_shape(*wide.file())->attention_scale, 1 / std::sqrt(32.0F)) << "the 27B model's: width / heads";

  tiny_model gemma3 = make_tiny_model({.architecture = "gemma3"});
  gemma3.metadata["gemma3.attention.scale"] = 0.5F;
  c = read_shape(*gemma3.file());
  ASSERT_TRUE(c) << c.error().describe();
  EXPECT_EQ(c->head_norms(), head_norm::shared);
  EXPECT_EQ(c->attention_cap, 0);
  EXPECT_EQ(c->logit_cap, 0);
  EXPECT_EQ(c->attention_scale, 0.5F);
  EXPECT_EQ(c->rope_base, 1e6F);
  EXPECT_EQ(c->window_rope_base, 10000);
  gemma3.metadata["gemma3.rope.freq_base_swa"] = 5000.0F;
  EXPECT_EQ(read_shape(*gemma3.file())->window_rope_base, 5000);

  tiny_model gpt_oss = make_tiny_model({.architecture = "gpt-oss", .experts = 4});
  gpt_oss.metadata["gpt-oss.rope.scaling.type"] = std::string("yarn");
  gpt_oss.metadata["gpt-oss.rope.scaling.factor"] = 4.0F;
  gpt_oss.metadata["gpt-oss.expert_gating_func"] = 3U;
  c = read_shape(*gpt_oss.file());
  ASSERT_TRUE(c) << c.error().describe();
  EXPECT_TRUE(c->kind->has(role::sinks));
  EXPECT_TRUE(c->kind->has(role::attention_output_bias));
  EXPECT_TRUE(c->qkv_biases);
  EXPECT_TRUE(c->normalises_experts);
  EXPECT_EQ(c->kind->activation, feed_forward_kind::clamped_swiglu);
  EXPECT_FALSE(c->kind->yarn_whole_pairs);
}

TEST(shape_keys, chooses_long_ropes_factors_by_the_context_that_a_model_is_opened_with) {
  tiny_model m = make_tiny_model({.architecture = "phi3", .rotary_dim = 12});
  m.metadata["phi3.rope.scaling.type"] = std::string("longrope");
  const auto c = read_shape(*m.file());
  ASSERT_TRUE(c) << c.error().describe();
  EXPECT_TRUE(c->kind->has(role::query_key_value) && c->kind->has_fused_gate());
  EXPECT_EQ(c->rotary_dim, 12U);
  EXPECT_EQ(c->rope_magnitude, 1.25F);
  EXPECT_EQ(c->short_context, 256U);
  EXPECT_TRUE(uses_long_factors(*c, 0)) << "the model's own context is 2048";
  EXPECT_TRUE(uses_long_factors(*c, 257));
  EXPECT_FALSE(uses_long_factors(*c, 256));
  EXPECT_EQ(describe_rotation(*c, 256), ", rotated for short sequences");
  EXPECT_EQ(describe_rotation(*c, 0), ", rotated for long sequences");
  m.metadata["phi3.context_length"] = 256U;
  EXPECT_FALSE(uses_long_factors(*read_shape(*m.file()), 100000)) << "never longer than the model's own";
  m.metadata.erase("phi3.rope.scaling.original_context_length");
  EXPECT_THAT(read_shape(*m.file()).error().context,
              HasSubstr("'phi3.rope.scaling.original_context_length' is missing"));
  std::erase_if(m.tensors, [](const auto& t) { return t.name.starts_with("rope_factors"); });
  EXPECT_THAT(read_shape(*m.file()).error().context, HasSubstr("found 'longrope'")) << "without its factors";
  m.metadata.erase("phi3.rope.scaling.type");
  const auto plain = read_shape(*m.file());
  ASSERT_TRUE(plain) << plain.error().describe();
  EXPECT_FALSE(uses_long_factors(*plain, 0));
  EXPECT_EQ(describe_rotation(*plain, 0), "");
  m.metadata["phi3.rope.scaling.attn_factor"] = 0.0F;
  EXPECT_THAT(read_shape(*m.file()).error().context, HasSubstr("rope.scaling.attn_factor: expected a positive"));
}

TEST(shape_keys, reads_command_r) {
  tiny_model m = make_tiny_model({.architecture = "command-r", .layers = 1});
  m.metadata["command-r.rope.scaling.type"] = std::string("none");
  auto c = read_shape(*m.file());
  ASSERT_TRUE(c) << c.error().describe();
  EXPECT_EQ(c->kind->pairs, rope_pairs::adjacent);
  EXPECT_EQ(c->kind->norm, norm_kind::layer);
  EXPECT_FALSE(c->kind->has_norm_shifts());
  EXPECT_FALSE(c->kind->has(role::feed_forward_norm)) << "both halves read one norm";
  EXPECT_EQ(c->logit_multiplier(), 0.25F);
  EXPECT_EQ(c->head_norms(), head_norm::own);
  std::erase_if(m.tensors, [](const auto& t) { return t.name.find("q_norm") != std::string::npos; });
  EXPECT_EQ(read_shape(*m.file())->head_norms(), head_norm::none);
  m.metadata.erase("command-r.logit_scale");
  EXPECT_THAT(read_shape(*m.file()).error().context, HasSubstr("'command-r.logit_scale' is missing"));
}

TEST(shape_keys, reads_mistral_3_whose_queries_grow_with_their_position) {
  tiny_model m = make_tiny_model({.architecture = "mistral3"});
  m.metadata["mistral3.attention.temperature_scale"] = 0.1F;
  auto c = read_shape(*m.file());
  ASSERT_TRUE(c) << c.error().describe();
  EXPECT_EQ(c->temperature_scale, 0.1F);
  EXPECT_EQ(c->yarn->original_context, 4U);
  EXPECT_NEAR(c->rope_magnitude, 1, 1e-6) << "mscale is mscale_all_dim";
  m.metadata["mistral3.rope.scaling.yarn_log_multiplier"] = 0.5F;
  EXPECT_NEAR(read_shape(*m.file())->rope_magnitude, (1 + 0.1 * std::log(4)) / (1 + 0.05 * std::log(4)), 1e-6);
  m.metadata["mistral3.rope.scaling.type"] = std::string("none");
  EXPECT_THAT(read_shape(*m.file()).error().context, HasSubstr("temperature_scale: expected YaRN"));
  m.metadata.erase("mistral3.attention.temperature_scale");
  EXPECT_TRUE(read_shape(*m.file()));
}

TEST(shape_keys, reads_glm_4) {
  const auto c = read_shape(*make_tiny_model({.architecture = "glm4", .rotary_dim = 8}).file());
  ASSERT_TRUE(c) << c.error().describe();
  EXPECT_EQ(c->kind->pairs, rope_pairs::adjacent);
  EXPECT_EQ(c->rotary_dim, 8U);
  EXPECT_TRUE(c->kind->has(role::attention_norm) && c->kind->has(role::attention_post_norm));
  EXPECT_TRUE(c->kind->has_fused_gate());
  EXPECT_FALSE(c->kind->has(role::query_key_value));
  EXPECT_TRUE(c->qkv_biases) << "where the file has them";
}

TEST(shape_keys, reads_olmo_2_and_the_windows_of_olmo_3) {
  tiny_model m = make_tiny_model({.architecture = "olmo2", .layers = 5});
  auto c = read_shape(*m.file());
  ASSERT_TRUE(c) << c.error().describe();
  EXPECT_EQ(c->head_norms(), head_norm::row);
  EXPECT_FALSE(c->kind->has(role::attention_norm));
  EXPECT_TRUE(c->kind->has(role::attention_post_norm));
  EXPECT_TRUE(c->layer_kinds.empty());
  m.metadata["olmo2.attention.sliding_window"] = 40U;
  m.metadata["olmo2.rope.scaling.type"] = std::string("yarn");
  m.metadata["olmo2.rope.scaling.factor"] = 8.0F;
  c = read_shape(*m.file());
  ASSERT_TRUE(c) << c.error().describe();
  EXPECT_EQ(windows_of(*c), (std::vector<std::uint32_t>{40, 40, 40, 0, 40}));
  EXPECT_EQ(c->window_rope_base, c->rope_base) << "without YaRN";
  m.metadata["olmo2.attention.sliding_window"] = 4096U;
  EXPECT_FALSE(read_shape(*m.file())->layer_kinds.empty()) << "longer than the context, but rotated differently";
}

struct bad_metadata {
  const char* key;
  tiny_model::entry value;
  errc code;
  const char* text;
};

TEST(shape_keys, refuses_metadata_by_key_and_says_what_it_wanted) {
  const std::vector<bad_metadata> cases{
      {"general.architecture", std::string("mamba"), errc::unsupported_format, "found 'mamba'"},
      {"llama.block_count", 0U, errc::file_malformed, "llama.block_count: expected 1 to"},
      {"llama.block_count", 1U << 30, errc::file_malformed, "llama.block_count: expected 1 to"},
      {"llama.embedding_length", 1U << 31, errc::file_malformed, "llama.embedding_length"},
      {"llama.attention.head_count_kv", 3U, errc::file_malformed, "expected a divisor of 4 heads, found 3"},
      {"llama.attention.key_length", 17U, errc::unsupported_format, "head size: expected an even number"},
      {"llama.attention.key_length", 514U, errc::file_malformed, "attention.key_length: expected 1 to 512, found 514"},
      {"llama.attention.value_length", 32U, errc::unsupported_format, "expected the key length 16, found 32"},
      {"llama.rope.dimension_count", 18U, errc::file_malformed, "rope.dimension_count: expected 1 to 16, found 18"},
      {"llama.rope.dimension_count", 7U, errc::file_malformed, "expected an even number, found 7"},
      {"llama.rope.freq_base", -1.0F, errc::file_malformed, "rope.freq_base: expected a positive number"},
      {"llama.attention.layer_norm_rms_epsilon", 0.0F, errc::file_malformed, "layer_norm_rms_epsilon"},
      {"llama.rope.scaling.type", std::string("longrope"), errc::unsupported_format, "found 'longrope'"},
      {"llama.expert_count", 8U, errc::file_malformed, "metadata 'llama.expert_used_count' is missing"},
      {"llama.expert_count", 1U << 20, errc::file_malformed, "expert_count: expected 1 to 1024, found 1048576"},
      {"llama.attention.sliding_window", 1U << 31, errc::file_malformed, "attention.sliding_window: expected 1 to"},
      {"llama.attn_logit_softcapping", 50.0F, errc::unsupported_format, "attn_logit_softcapping: not supported"},
      {"llama.rope.freq_base_swa", 1000.0F, errc::unsupported_format, "freq_base_swa: expected rope.freq_base 10000"},
      {"llama.logit_scale", 2.0F, errc::unsupported_format, "llama.logit_scale: not supported in llama"},
      {"llama.final_logit_softcapping", 30.0F, errc::unsupported_format, "final_logit_softcapping: not supported"},
      {"tokenizer.ggml.tokens", std::vector<std::string>{"a", "b"}, errc::file_malformed, "expected 300 entries"},
  };
  for (const bad_metadata& c : cases) {
    const failure f = refusal([&](tiny_model& m) { m.metadata[c.key] = c.value; });
    EXPECT_EQ(f.code, c.code) << c.key << ": " << f.describe();
    EXPECT_THAT(f.context, HasSubstr(c.text)) << c.key;
  }
}

TEST(shape_keys, names_the_key_that_is_missing) {
  for (const char* key :
       {"general.architecture", "llama.block_count", "llama.embedding_length", "llama.attention.head_count",
        "llama.feed_forward_length", "llama.context_length", "llama.attention.layer_norm_rms_epsilon"}) {
    const failure f = refusal([&](tiny_model& m) { m.metadata.erase(key); });
    EXPECT_THAT(f.context, HasSubstr(key));
  }
}

tiny_model mixture(const std::string& architecture) {
  return make_tiny_model({.architecture = architecture, .experts = 8, .shared_feed_forward = 64});
}

TEST(shape_keys, reads_mixtures_of_experts) {
  const auto qwen3 = read_shape(*mixture("qwen3moe").file());
  ASSERT_TRUE(qwen3) << qwen3.error().describe();
  EXPECT_EQ(qwen3->experts, 8U);
  EXPECT_EQ(qwen3->experts_used, 2U);
  EXPECT_EQ(qwen3->expert_feed_forward, 32U);
  EXPECT_EQ(qwen3->shared_feed_forward, 0U) << "Qwen3 has no expert that all tokens go to";
  EXPECT_TRUE(qwen3->normalises_experts);

  tiny_model m = mixture("qwen2moe");
  m.metadata["qwen2moe.expert_weights_norm"] = false;
  m.metadata["qwen2moe.expert_gating_func"] = 1U;
  m.metadata.erase("qwen2moe.expert_shared_feed_forward_length");
  const auto qwen2 = read_shape(*m.file());
  ASSERT_TRUE(qwen2) << qwen2.error().describe();
  EXPECT_EQ(qwen2->shared_feed_forward, qwen2->feed_forward);
  EXPECT_FALSE(qwen2->normalises_experts);

  tiny_model mixtral = mixture("llama");
  mixtral.metadata.erase("llama.expert_feed_forward_length");
  EXPECT_EQ(read_shape(*mixtral.file())->expert_feed_forward, 96U) << "the width of a dense layer";
}

TEST(shape_keys, refuses_mixtures_that_cannot_be_and_those_of_other_families) {
  const std::vector<bad_metadata> cases{
      {"expert_count", 0U, errc::file_malformed, "expert_count: expected 1 to 1024, found 0"},
      {"expert_count", 1000000U, errc::file_malformed, "expert_count: expected 1 to 1024, found 1000000"},
      {"expert_used_count", 0U, errc::file_malformed, "expert_used_count: expected 1 to 8, found 0"},
      {"expert_used_count", 9U, errc::file_malformed, "expert_used_count: expected 1 to 8, found 9"},
      {"expert_feed_forward_length", 1U << 30, errc::file_malformed, "expert_feed_forward_length: expected 1 to"},
      {"expert_gating_func", 2U, errc::unsupported_format, "expert_gating_func: expected 1"},
      {"expert_weights_scale", 2.5F, errc::unsupported_format, "expert_weights_scale: expected 1"},
      {"expert_weights_norm", false, errc::unsupported_format, "expert_weights_norm: expected 1"},
      {"expert_group_count", 8U, errc::unsupported_format, "expert_group_count: expected 1"},
      {"leading_dense_block_count", 1U, errc::unsupported_format, "leading_dense_block_count: expected 0"},
  };
  for (const bad_metadata& c : cases) {
    tiny_model m = mixture("qwen3moe");
    m.metadata["qwen3moe." + std::string(c.key)] = c.value;
    const auto config = read_shape(*m.file());
    ASSERT_FALSE(config) << c.key;
    EXPECT_EQ(config.error().code, c.code) << c.key;
    EXPECT_THAT(config.error().context, HasSubstr(c.text));
  }
  tiny_model lacking = mixture("qwen3moe");
  lacking.metadata.erase("qwen3moe.expert_count");
  EXPECT_THAT(read_shape(*lacking.file()).error().context, HasSubstr("'qwen3moe.expert_count' is missing"));
  tiny_model dense = make_tiny_model({.architecture = "gemma"});
  dense.metadata["gemma.expert_count"] = 8U;
  EXPECT_THAT(read_shape(*dense.file()).error().context, HasSubstr("expected a dense model, found 8 experts"));
}

tiny_model deepseek2(bool one_matrix = false) {
  return make_tiny_model({.architecture = "deepseek2",
                          .layers = 3,
                          .rotary_dim = 8,
                          .experts = 8,
                          .shared_feed_forward = 64,
                          .one_latent_matrix = one_matrix,
                          .dense_layers = 1});
}

TEST(shape_keys, reads_latent_attention_as_newer_and_as_older_files_have_it) {
  for (const bool older : {false, true}) {
    const auto c = read_shape(*deepseek2(older).file());
    ASSERT_TRUE(c) << c.error().describe();
    ASSERT_TRUE(c->latent);
    EXPECT_EQ(c->latent->rank, 64U);
    EXPECT_EQ(c->latent->query_rank, 0U);
    EXPECT_EQ(c->latent->plain_dim, 32U);
    EXPECT_EQ(c->latent->value_dim, 16U);
    EXPECT_EQ(c->kv_heads, 1U) << "the part that all heads share";
    EXPECT_EQ(c->head_dim, 64U + 8U);
    EXPECT_EQ(c->attended_width(), 4U * 16U);
    EXPECT_FLOAT_EQ(c->attention_scale, 1 / std::sqrt(40.0F)) << "the part of a head's own key";
    EXPECT_FALSE(c->is_mixture(0));
    EXPECT_TRUE(c->is_mixture(1));
    EXPECT_EQ(c->shared_feed_forward, 64U) << "two experts of 32";
    EXPECT_FALSE(c->kind->has(role::shared_router));
    EXPECT_FLOAT_EQ(c->expert_scale, 1.5F);
    EXPECT_FALSE(c->normalises_experts);
  }
  tiny_model m = deepseek2();
  m.metadata["deepseek2.attention.q_lora_rank"] = 48U;
  m.metadata["deepseek2.expert_weights_norm"] = true;
  m.metadata["deepseek2.expert_gating_func"] = 1U;
  const auto c = read_shape(*m.file());
  ASSERT_TRUE(c) << c.error().describe();
  EXPECT_EQ(c->latent->query_rank, 48U);
  EXPECT_TRUE(c->normalises_experts);
}

TEST(shape_keys, yarn_grows_the_scores_of_latent_attention_and_not_what_is_rotated) {
  tiny_model m = deepseek2();
  m.metadata["deepseek2.rope.scaling.type"] = std::string("yarn");
  m.metadata["deepseek2.rope.scaling.factor"] = 40.0F;
  EXPECT_THAT(read_shape(*m.file()).error().context,
              HasSubstr("'deepseek2.rope.scaling.yarn_log_multiplier' is missing"));
  m.metadata["deepseek2.rope.scaling.yarn_log_multiplier"] = 0.0707F;
  const auto c = read_shape(*m.file());
  ASSERT_TRUE(c) << c.error().describe();
  const float growth = 1 + 0.0707F * std::log(40.0F);
  EXPECT_FLOAT_EQ(c->attention_scale, growth * growth / std::sqrt(40.0F));
  EXPECT_EQ(c->rope_magnitude, 1);
  for (const char* key : {"attn_factor", "yarn_attn_factor"}) {
    tiny_model other = m;
    other.metadata["deepseek2.rope.scaling." + std::string(key)] = 1.5F;
    EXPECT_THAT(read_shape(*other.file()).error().context, HasSubstr(std::string(key) + ": expected 1"));
  }
}

TEST(shape_keys, refuses_latents_and_mixtures_that_cannot_be) {
  const std::vector<bad_metadata> cases{
      {"attention.kv_lora_rank", 0U, errc::file_malformed, "kv_lora_rank: expected 1 to 1016, found 0"},
      {"attention.kv_lora_rank", 5000U, errc::file_malformed, "kv_lora_rank: expected 1 to 1016, found 5000"},
      {"attention.kv_lora_rank", 33U, errc::file_malformed, "kv_lora_rank: expected an even number, found 33"},
      {"attention.kv_lora_rank", 32U, errc::file_malformed, "key_length: expected 40, found 72"},
      {"attention.q_lora_rank", 0U, errc::file_malformed, "q_lora_rank: expected 1 to"},
      {"attention.key_length_mla", 8U, errc::file_malformed, "expected more than the 8 dimensions that are rotated"},
      {"attention.value_length", 32U, errc::file_malformed, "value_length: expected 64, found 32"},
      {"attention.head_count_kv", 4U, errc::file_malformed, "head_count_kv: expected 1, found 4"},
      {"rope.dimension_count", 7U, errc::file_malformed, "expected 71, found 72"},
      {"expert_shared_count", 100000U, errc::file_malformed, "expert_shared_count: expected experts no wider than"},
      {"leading_dense_block_count", 4096U, errc::file_malformed, "leading_dense_block_count: expected less than 4096"},
      {"expert_weights_scale", 0.0F, errc::file_malformed, "expert_weights_scale: expected a positive number"},
      {"expert_used_count", 9U, errc::file_malformed, "expert_used_count: expected 1 to 8, found 9"},
      {"expert_gating_func", 3U, errc::unsupported_format, "expected 1 (softmax) or 2 (sigmoid), found 3"},
      {"expert_group_count", 8U, errc::unsupported_format, "expert_group_count: expected 1 with a softmax, found 8"},
      {"expert_group_count", 5U, errc::file_malformed, "expert_group_count: expected equal groups of 8 experts"},
      {"expert_group_used_count", 2U, errc::file_malformed, "found 2 of 1"},
      {"nextn_predict_layers", 99U, errc::file_malformed, "nextn_predict_layers: expected fewer than the"},
  };
  for (const bad_metadata& c : cases) {
    tiny_model m = deepseek2();
    m.metadata["deepseek2." + std::string(c.key)] = c.value;
    const auto config = read_shape(*m.file());
    ASSERT_FALSE(config) << c.key;
    EXPECT_EQ(config.error().code, c.code) << c.key;
    EXPECT_THAT(config.error().context, HasSubstr(c.text));
  }
  for (const char* key :
       {"attention.kv_lora_rank", "expert_count", "rope.dimension_count", "attention.value_length_mla"}) {
    tiny_model m = deepseek2();
    m.metadata.erase("deepseek2." + std::string(key));
    EXPECT_THAT(read_shape(*m.file()).error().context, HasSubstr("deepseek2." + std::string(key)));
  }
}

TEST(shape_keys, reads_mixtures_that_choose_by_sigmoids) {
  tiny_model m = make_tiny_model(
      {.architecture = "deepseek2", .rotary_dim = 8, .experts = 6, .shared_feed_forward = 64, .by_sigmoid = true});
  auto c = read_shape(*m.file());
  ASSERT_TRUE(c) << c.error().describe();
  EXPECT_EQ(c->gates, gating::sigmoid);
  EXPECT_TRUE(c->selection_bias);
  EXPECT_EQ(c->expert_groups, 2U);
  EXPECT_EQ(c->expert_groups_used, 1U);
  EXPECT_FALSE(c->is_extra("blk.1.attn_norm.weight"));
  m.metadata["deepseek2.nextn_predict_layers"] = 1U;
  c = read_shape(*m.file());
  ASSERT_TRUE(c) << c.error().describe();
  EXPECT_EQ(c->layers, 1U);
  EXPECT_TRUE(c->is_extra("blk.1.attn_norm.weight"));
  EXPECT_FALSE(c->is_extra("blk.0.attn_norm.weight") || c->is_extra("blk.2.attn_norm.weight") || c->is_extra("blk.1") ||
               c->is_extra("output.weight"));
  m.metadata["deepseek2.expert_group_count"] = 3U;
  m.metadata["deepseek2.expert_used_count"] = 3U;
  EXPECT_THAT(read_shape(*m.file()).error().context, HasSubstr("groups with at least 3 experts, found 1 of 2"));
}

TEST(shape_keys, survives_random_numbers_in_every_key) {
  test::tiny_random random(77);
  const tiny_model wholes[] = {make_tiny_model(),
                               make_tiny_model({.architecture = "gemma3"}),
                               make_tiny_model({.architecture = "gpt-oss", .experts = 4}),
                               make_tiny_model({.architecture = "phi3"}),
                               deepseek2(),
                               deepseek2(true),
                               make_tiny_model({.architecture = "command-r"}),
                               make_tiny_model({.architecture = "gemma4", .layers = 4, .sharing_layers = 2})};
  int accepted = 0;
  for (int i = 0; i < 3000; ++i) {
    tiny_model m = wholes[static_cast<std::size_t>(i) % std::size(wholes)];
    for (auto& [key, any] : m.metadata) {
      auto* number = std::get_if<std::uint32_t>(&any);
      if (number != nullptr && random.below(6) == 0)
        *number = static_cast<std::uint32_t>(random.bits() >> random.below(64));
    }
    const auto config = read_shape(*m.file());
    if (!config) continue;
    ++accepted;
    ASSERT_GT(config->head_dim, 0U);
    ASSERT_EQ(config->heads % config->kv_heads, 0U);
    ASSERT_LE(config->rotary_dim, config->head_dim);
    ASSERT_TRUE(config->layer_kinds.empty() || config->layer_kinds.size() == config->layers);
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace redline::architecture
