#include "runtime/huggingface/model_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/support/hf_model.hpp"

namespace redline::huggingface {
namespace {

using testing::HasSubstr;

json llama() {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"hidden_size", 64},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 4},
          {"intermediate_size", 96},
          {"max_position_embeddings", 2048},
          {"vocab_size", 300},
          {"rms_norm_eps", 1e-6}};
}
/// Parses a config as a file would contain it.
result<model_config> read(const json& document) {
  const json parsed = parse_document(document.dump(), "config.json").value();
  return read_model_config(json_object::of(parsed, "config.json").value());
}

/// The failure for a config after one change; a null `value` removes the member.
std::string refusal_with(const std::string& name, const json& value, json document = llama()) {
  document[name] = value;
  const auto config = read(document);
  if (config) return "none";
  EXPECT_TRUE(config.error().context.starts_with("config.json: ")) << config.error().context;
  return config.error().context;
}

TEST(model_config, what_old_files_leave_out_has_its_usual_value) {
  const model_config c = read(llama()).value();
  EXPECT_EQ(c.shape.family_name(), "llama");
  EXPECT_EQ(c.shape.kv_heads, 4U);
  EXPECT_EQ(c.shape.head_dim, 16U);
  EXPECT_EQ(c.shape.rope_base, 10000.0F);
  EXPECT_EQ(c.linear_factor, 1);
  EXPECT_FALSE(c.shape.tied_head);
  EXPECT_TRUE(rope_divisors(c).empty());
}

TEST(model_config, architectures_are_known_by_their_classes) {
  for (const auto& [theirs, ours] : {std::pair("MistralForCausalLM", "llama"), std::pair("Qwen2ForCausalLM", "qwen2"),
                                     std::pair("Qwen3ForCausalLM", "qwen3"), std::pair("GemmaForCausalLM", "gemma"),
                                     std::pair("Starcoder2ForCausalLM", "starcoder2")}) {
    json document = llama();
    document["architectures"] = {theirs};
    document["norm_epsilon"] = 1e-5;  // Starcoder2's name for it
    const auto config = read(document);
    ASSERT_TRUE(config) << config.error().context;
    EXPECT_EQ(config->shape.family_name(), ours);
    EXPECT_EQ(config->shape.tied_head, std::string_view(ours) == "gemma" || std::string_view(ours) == "starcoder2");
    EXPECT_EQ(config->shape.norm_epsilon, std::string_view(ours) == "starcoder2" ? 1e-5F : 1e-6F);
  }
  EXPECT_THAT(refusal_with("architectures", {"BertModel"}),
              HasSubstr("Qwen3_5MoeForConditionalGeneration, found 'BertModel'"));
  EXPECT_THAT(refusal_with("architectures", json::array()), HasSubstr("found an array of 0"));
  EXPECT_THAT(refusal_with("architectures", "LlamaForCausalLM"), HasSubstr("architectures: expected an array"));
}

json mixture(const char* architecture) {
  json document = llama();
  document["architectures"] = {architecture};
  document[std::string_view(architecture).starts_with("Mixtral") ? "num_local_experts" : "num_experts"] = 8;
  document["num_experts_per_tok"] = 2;
  if (std::string_view(architecture).starts_with("Mixtral")) return document;
  document["moe_intermediate_size"] = 48;
  document["shared_expert_intermediate_size"] = 80;
  document["norm_topk_prob"] = std::string_view(architecture).starts_with("Qwen3");
  return document;
}

TEST(model_config, mixtures_say_how_many_experts_there_are_and_how_many_are_used) {
  const auto qwen3 = read(mixture("Qwen3MoeForCausalLM"));
  ASSERT_TRUE(qwen3) << qwen3.error().context;
  EXPECT_EQ(qwen3->shape.family_name(), "qwen3moe");
  EXPECT_EQ(qwen3->shape.experts, 8U);
  EXPECT_EQ(qwen3->shape.experts_used, 2U);
  EXPECT_EQ(qwen3->shape.expert_feed_forward, 48U);
  EXPECT_EQ(qwen3->shape.shared_feed_forward, 0U);
  EXPECT_EQ(read(mixture("Qwen2MoeForCausalLM"))->shape.shared_feed_forward, 80U);
  const auto mixtral = read(mixture("MixtralForCausalLM"));
  ASSERT_TRUE(mixtral) << mixtral.error().context;
  EXPECT_EQ(mixtral->shape.family_name(), "llama");
  EXPECT_EQ(mixtral->shape.expert_feed_forward, mixtral->shape.feed_forward);
}

TEST(model_config, mixtures_that_are_computed_otherwise_are_refused) {
  const auto refusal = [](const char* key, const json& value) {
    json document = mixture("Qwen3MoeForCausalLM");
    document[key] = value;
    const auto config = read(document);
    return config ? "was accepted" : config.error().context;
  };
  EXPECT_THAT(refusal("num_experts", 0), HasSubstr("num_experts"));
  EXPECT_THAT(refusal("num_experts", 1000000), HasSubstr("experts, found 1000000"));
  EXPECT_THAT(refusal("num_experts_per_tok", 9), HasSubstr("expected rows to use 1 to 8 experts, found 9"));
  EXPECT_THAT(refusal("norm_topk_prob", false), HasSubstr("norm_topk_prob: expected true"));
  EXPECT_THAT(refusal("decoder_sparse_step", 2), HasSubstr("decoder_sparse_step: expected 1, found 2"));
  EXPECT_THAT(refusal("mlp_only_layers", {0}), HasSubstr("mlp_only_layers: expected none"));
}

TEST(model_config, every_size_is_needed_and_must_be_one_of_a_decoder) {
  for (const char* name : {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
                           "max_position_embeddings", "vocab_size", "rms_norm_eps"}) {
    for (const json& value : {json(nullptr), json(0), json(-1), json("64"), json::array({64})}) {
      EXPECT_THAT(refusal_with(name, value), HasSubstr(std::string(name) + ": expected ")) << value;
    }
  }
  EXPECT_THAT(refusal_with("hidden_size", 1U << 30), HasSubstr("expected "));
  EXPECT_THAT(refusal_with("num_attention_heads", 5), HasSubstr("expected a divisor of the width 64, found 5"));
  EXPECT_THAT(refusal_with("num_key_value_heads", 3),
              HasSubstr("expected a multiple of the 3 heads for keys and values, found 4"));
  EXPECT_THAT(refusal_with("head_dim", 17), HasSubstr("even head size"));
  EXPECT_THAT(refusal_with("num_hidden_layers", 1U << 20), HasSubstr("at most 4096 layers"));
  EXPECT_THAT(refusal_with("vocab_size", 1U << 25), HasSubstr("expected sizes from 1"));
}

TEST(model_config, ways_to_scale_positions_are_followed_or_refused) {
  json document = llama();
  document["rope_scaling"] = {{"type", "linear"}, {"factor", 4}};
  EXPECT_EQ(read(document)->linear_factor, 4);
  document["rope_scaling"] = {{"rope_type", "default"}};
  EXPECT_EQ(read(document)->linear_factor, 1);
  EXPECT_THAT(refusal_with("rope_scaling", {{"type", "longrope"}, {"factor", 4}}),
              HasSubstr("rope_scaling.type: expected 'default', 'linear', 'llama3' or 'yarn', found 'longrope'"));
  EXPECT_THAT(refusal_with("rope_scaling", {{"type", "yarn"}, {"factor", 0.5}}), HasSubstr("expected at least 1"));
  EXPECT_THAT(refusal_with("rope_scaling", {{"type", "yarn"}, {"factor", 4}, {"mscale", 1}}), HasSubstr("mscale"));
  document["rope_scaling"] = {{"type", "yarn"}, {"factor", 4}, {"original_max_position_embeddings", 32768}};
  EXPECT_EQ(read(document)->yarn, (yarn_scaling{.factor = 4, .original_context = 32768}));
  EXPECT_THAT(refusal_with("rope_scaling", {{"rope_type", "dynamic"}}), HasSubstr("rope_scaling.rope_type"));
  EXPECT_THAT(refusal_with("rope_scaling", {{"factor", 4}}), HasSubstr("rope_scaling.type: expected a string"));
  EXPECT_THAT(refusal_with("rope_scaling", {{"type", "linear"}}), HasSubstr("rope_scaling.factor"));
  EXPECT_THAT(refusal_with("rope_scaling", 4), HasSubstr("rope_scaling: expected an object"));
  EXPECT_THAT(refusal_with("rope_theta", 0), HasSubstr("rope_theta: expected a positive number"));
  EXPECT_THAT(refusal_with("partial_rotary_factor", 0.5), HasSubstr("partial_rotary_factor: expected 1"));
}

TEST(model_config, newer_files_keep_the_base_with_the_scaling) {
  json document = llama();
  document["rope_parameters"] = {{"rope_type", "linear"}, {"factor", 2.0}, {"rope_theta", 5e5}};
  const model_config c = read(document).value();
  EXPECT_EQ(c.shape.rope_base, 5e5F);
  EXPECT_EQ(c.linear_factor, 2);
  EXPECT_THAT(refusal_with("rope_parameters", {{"full_attention", {{"rope_type", "default"}}}}),
              HasSubstr("rope_parameters.type: expected a string"));
  EXPECT_THAT(refusal_with("rope_parameters", {{"rope_type", "default"}}), HasSubstr("rope_parameters.rope_theta"));
}

TEST(model_config, llama3_keeps_fast_pairs_and_slows_slow_ones) {
  json document = llama();
  document["head_dim"] = 128;
  document["rope_theta"] = 5e5;
  document["rope_scaling"] = {{"rope_type", "llama3"},
                              {"factor", 8.0},
                              {"low_freq_factor", 1.0},
                              {"high_freq_factor", 4.0},
                              {"original_max_position_embeddings", 8192}};
  const auto divisors = rope_divisors(read(document).value());
  ASSERT_EQ(divisors.size(), 64U);
  // Computed by wavelengths, as the model's authors do it.
  for (std::size_t i = 0; i < divisors.size(); ++i) {
    const double frequency = std::pow(5e5, -2.0 * static_cast<double>(i) / 128);
    const double wavelength = 2 * std::numbers::pi / frequency;
    double wanted = frequency;
    if (wavelength > 8192.0 / 1) {
      wanted = frequency / 8;
    } else if (wavelength >= 8192.0 / 4) {
      const double smooth = (8192 / wavelength - 1) / (4 - 1);
      wanted = (1 - smooth) * frequency / 8 + smooth * frequency;
    }
    EXPECT_NEAR(frequency / divisors[i] / wanted, 1, 1e-6) << i;
  }
  EXPECT_EQ(divisors.front(), 1.0F);
  EXPECT_EQ(divisors.back(), 8.0F);
  document["rope_scaling"]["high_freq_factor"] = 1.0;
  EXPECT_THAT(read(document).error().context, HasSubstr("high_freq_factor: expected more than low_freq_factor"));
}

TEST(model_config, a_window_shorter_than_the_context_ends_it) {
  const auto context_with = [](const json& window, json document) {
    document["sliding_window"] = window;
    return read(document).value().shape.context;
  };
  EXPECT_EQ(context_with(1024, llama()), 1024U);
  EXPECT_EQ(context_with(4096, llama()), 2048U);
  EXPECT_EQ(context_with(nullptr, llama()), 2048U);
  json qwen = llama();
  qwen["architectures"] = {"Qwen2ForCausalLM"};
  EXPECT_EQ(context_with(1024, qwen), 2048U) << "it does not say whether it is used";
  qwen["use_sliding_window"] = true;
  EXPECT_EQ(context_with(1024, qwen), 1024U);
  EXPECT_THAT(refusal_with("sliding_window", 0), HasSubstr("sliding_window: expected"));
  EXPECT_THAT(refusal_with("layer_types", {"full_attention", "sliding_attention"}),
              HasSubstr("expected 'full_attention' in layer 1, found 'sliding_attention'"));
  EXPECT_EQ(refusal_with("layer_types", {"full_attention", "full_attention"}), "none");
}

TEST(model_config, windows_of_families_that_name_them_are_kept) {
  json document = llama();
  document["architectures"] = {"MistralForCausalLM"};
  document["sliding_window"] = 1024;
  auto shape = read(document).value().shape;
  EXPECT_EQ(shape.window, 1024U);
  EXPECT_EQ(shape.context, 2048U);
  document["sliding_window"] = 2048;
  EXPECT_EQ(read(document).value().shape.window, 0U) << "the whole context";

  document["architectures"] = {"Gemma3ForCausalLM"};
  document["hidden_act"] = "gelu_pytorch_tanh";
  document["sliding_window"] = 512;
  document["query_pre_attn_scalar"] = 999;
  document["layer_types"] = {"sliding_attention", "sliding_attention"};
  document.erase("rope_theta");
  shape = read(document).value().shape;
  EXPECT_EQ(shape.window, 512U);
  EXPECT_EQ(shape.window_period, 0U) << "the family's value";
  EXPECT_EQ(shape.rope_base, 1e6F);
  EXPECT_FLOAT_EQ(shape.attention_scale, 1 / std::sqrt(999.0F));
  document["rope_parameters"] = {{"full_attention", {{"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 5e5}}},
                                 {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 3000.0}}}};
  const auto both = read(document).value();
  EXPECT_EQ(both.shape.rope_base, 5e5F);
  EXPECT_EQ(both.shape.window_rope_base, 3000);
  EXPECT_EQ(both.linear_factor, 8);
  document["attn_logit_softcapping"] = 50.0;
  EXPECT_THAT(read(document).error().context, HasSubstr("attn_logit_softcapping: expected none"));
  document["attn_logit_softcapping"] = nullptr;
  document["layer_types"] = {"sliding_attention", "full_attention"};
  EXPECT_THAT(read(document).error().context, HasSubstr("expected 'sliding_attention' in layer 1"));
  document["sliding_window_pattern"] = 2;
  EXPECT_EQ(read(document).value().shape.window_period, 2U);
  document["sliding_window"] = nullptr;
  EXPECT_THAT(read(document).error().context, HasSubstr("sliding_window: expected a number of tokens"));
}

TEST(model_config, gpt_oss_is_taken_as_it_is_published) {
  json document = llama();
  document["architectures"] = {"GptOssForCausalLM"};
  document["num_local_experts"] = 32;
  document["num_experts_per_tok"] = 4;
  document["sliding_window"] = 128;
  document["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 32.0},    {"beta_fast", 32.0},
                              {"beta_slow", 1.0},    {"truncate", false}, {"original_max_position_embeddings", 1024}};
  document["quantization_config"] = {{"quant_method", "mxfp4"}, {"modules_to_not_convert", {"lm_head"}}};
  const auto config = read(document);
  ASSERT_TRUE(config) << config.error().describe();
  EXPECT_EQ(config->shape.experts, 32U);
  EXPECT_EQ(config->shape.window, 128U);
  EXPECT_EQ(config->yarn->original_context, 1024);
  EXPECT_THAT(refusal_with("swiglu_limit", 5.0, document), HasSubstr("swiglu_limit: expected 7"));
  EXPECT_THAT(refusal_with("quantization_config", {{"quant_method", "gptq"}}, document), HasSubstr("expected 'mxfp4'"));
  document["rope_scaling"].erase("truncate");
  EXPECT_THAT(read(document).error().context, HasSubstr("rope_scaling.truncate: expected false"));
}

json phi3() {
  json document = llama();
  document["architectures"] = {"Phi3ForCausalLM"};
  document["partial_rotary_factor"] = 0.75;
  document["original_max_position_embeddings"] = 128;
  document["sliding_window"] = 262144;
  document["rope_scaling"] = {
      {"type", "longrope"}, {"long_factor", {1, 1.5, 2, 3, 5, 9}}, {"short_factor", {1, 1, 1, 1.5, 2, 2}}};
  return document;
}

TEST(model_config, phi_3_has_long_rope_and_rotates_a_part_of_each_head) {
  const auto config = read(phi3());
  ASSERT_TRUE(config) << config.error().describe();
  EXPECT_EQ(config->shape.family_name(), "phi3");
  EXPECT_EQ(config->shape.rotated(), 12U);
  EXPECT_EQ(config->shape.window, 0U) << "longer than the context";
  EXPECT_EQ(config->shape.short_context, 128U);
  EXPECT_FLOAT_EQ(config->shape.rope_magnitude, static_cast<float>(std::sqrt(1 + std::log(16) / std::log(128))));
  EXPECT_EQ(config->factors->long_factors, (std::vector<float>{1, 1.5, 2, 3, 5, 9}));
  EXPECT_EQ(config->factors->short_factors, (std::vector<float>{1, 1, 1, 1.5, 2, 2}));
  json document = phi3();
  document["rope_parameters"] = document["rope_scaling"];  // as in newer files
  document["rope_parameters"]["rope_theta"] = 5e4;
  document["rope_parameters"]["partial_rotary_factor"] = 0.75;
  document["rope_parameters"]["original_max_position_embeddings"] = 128;
  document["rope_parameters"]["attention_factor"] = 1.5;
  for (const char* name : {"rope_scaling", "partial_rotary_factor", "original_max_position_embeddings"}) {
    document.erase(name);
  }
  const auto newer = read(document);
  ASSERT_TRUE(newer) << newer.error().describe();
  EXPECT_EQ(newer->shape.rotated(), 12U);
  EXPECT_EQ(newer->shape.short_context, 128U);
  EXPECT_EQ(newer->shape.rope_magnitude, 1.5F);
  EXPECT_EQ(newer->shape.rope_base, 5e4F);
  document = phi3();
  document["rope_scaling"] = nullptr;
  document["partial_rotary_factor"] = 1.0;
  document["sliding_window"] = 2047;
  const auto mini = read(document);
  ASSERT_TRUE(mini) << mini.error().describe();
  EXPECT_EQ(mini->shape.window, 2047U);
  EXPECT_EQ(mini->shape.short_context, 0U);
  EXPECT_FALSE(mini->factors);
}

TEST(model_config, long_rope_that_does_not_fit_is_refused_by_field) {
  const auto refusal = [](auto change) {
    json document = phi3();
    change(document);
    const auto config = read(document);
    return config ? "was accepted" : config.error().context;
  };
  EXPECT_THAT(refusal([](json& d) { d["rope_scaling"]["long_factor"].push_back(4); }),
              HasSubstr("rope_scaling.long_factor: expected 6 numbers, one for each rotated pair, found 7"));
  EXPECT_THAT(refusal([](json& d) { d["rope_scaling"]["short_factor"][2] = 0; }),
              HasSubstr("rope_scaling.short_factor: expected positive numbers, found 0"));
  EXPECT_THAT(refusal([](json& d) { d["rope_scaling"]["short_factor"][2] = "x"; }),
              HasSubstr("rope_scaling.short_factor: expected positive numbers, found 'x'"));
  EXPECT_THAT(refusal([](json& d) { d["rope_scaling"].erase("long_factor"); }), HasSubstr("rope_scaling.long_factor"));
  EXPECT_THAT(refusal([](json& d) { d.erase("original_max_position_embeddings"); }),
              HasSubstr("original_max_position_embeddings"));
  EXPECT_THAT(refusal([](json& d) { d["rope_scaling"]["long_mscale"] = 1.2; }), HasSubstr("long_mscale: expected"));
  EXPECT_THAT(refusal([](json& d) { d["rope_scaling"]["type"] = "dynamic"; }), HasSubstr("'longrope' or 'yarn'"));
  for (const double part : {0.7, 1.5, 0.05}) {
    EXPECT_THAT(refusal([&](json& d) { d["partial_rotary_factor"] = part; }),
                HasSubstr("partial_rotary_factor: expected a share of 16 dimensions"));
  }
}

json deepseek2() {
  json document = llama();
  document.update({{"architectures", {"DeepseekV2ForCausalLM"}},
                   {"head_dim", 64},  // newer files give this value, which is that of the rotated part
                   {"num_key_value_heads", 4},
                   {"kv_lora_rank", 512},
                   {"q_lora_rank", nullptr},
                   {"qk_nope_head_dim", 128},
                   {"qk_rope_head_dim", 64},
                   {"v_head_dim", 96},
                   {"first_k_dense_replace", 1},
                   {"moe_layer_freq", 1},
                   {"n_routed_experts", 8},
                   {"n_shared_experts", 2},
                   {"num_experts_per_tok", 3},
                   {"moe_intermediate_size", 48},
                   {"norm_topk_prob", false},
                   {"routed_scaling_factor", 2.5},
                   {"scoring_func", "softmax"},
                   {"topk_method", "greedy"},
                   {"rope_scaling",
                    {{"type", "yarn"},
                     {"factor", 40},
                     {"mscale", 0.707},
                     {"mscale_all_dim", 0.707},
                     {"original_max_position_embeddings", 4096}}}});
  return document;
}

TEST(model_config, deepseek_makes_keys_and_values_of_a_vector) {
  const auto c = read(deepseek2());
  ASSERT_TRUE(c) << c.error().describe();
  const architecture::model_shape& s = c->shape;
  EXPECT_EQ(s.family_name(), "deepseek2");
  EXPECT_EQ(s.latent->rank, 512U);
  EXPECT_EQ(s.latent->query_rank, 0U);
  EXPECT_EQ(s.own_head_dim(), 192U);
  EXPECT_EQ(s.head_dim, 512U + 64U) << "as attention reads them";
  EXPECT_EQ(s.rotary_dim, 64U);
  EXPECT_EQ(s.latent->plain_dim, 128U);
  EXPECT_EQ(s.latent->value_dim, 96U);
  EXPECT_EQ(s.kv_heads, 1U);
  EXPECT_EQ(s.attended_width(), 4U * 96U);
  EXPECT_FALSE(s.is_mixture(0));
  EXPECT_TRUE(s.is_mixture(1));
  EXPECT_EQ(s.shared_feed_forward, 96U);
  EXPECT_EQ(s.expert_scale, 2.5F);
  ASSERT_TRUE(c->yarn);
  EXPECT_EQ(c->yarn->log_multiplier, 0.1 * 0.707);
}

TEST(model_config, glm_and_deepseek_3_choose_experts_by_sigmoids) {
  json document = deepseek2();
  document["architectures"] = {"Glm4MoeLiteForCausalLM"};
  document["scoring_func"] = "sigmoid";
  document["norm_topk_prob"] = true;
  document["topk_method"] = "noaux_tc";
  document["n_group"] = 4;
  document["topk_group"] = 2;
  document["num_nextn_predict_layers"] = 1;
  auto c = read(document);
  ASSERT_TRUE(c) << c.error().describe();
  EXPECT_EQ(c->shape.gates, architecture::gating::sigmoid);
  EXPECT_TRUE(c->shape.selection_bias);
  EXPECT_TRUE(c->shape.normalises_experts) << "and is scaled";
  EXPECT_EQ(c->shape.expert_scale, 2.5F);
  EXPECT_EQ(c->shape.expert_groups, 4U);
  EXPECT_EQ(c->shape.expert_groups_used, 2U);
  EXPECT_EQ(c->shape.extra_layers, 1U);
  const auto refusal = [&](const std::string& name, const json& value) { return refusal_with(name, value, document); };
  EXPECT_THAT(refusal("n_group", 3), HasSubstr("equal groups of experts"));
  EXPECT_THAT(refusal("topk_group", 5), HasSubstr("found 5 of 4 groups of 8 experts"));
  EXPECT_THAT(refusal("scoring_func", "softmax"), HasSubstr("scoring_func: expected 'sigmoid', found 'softmax'"));
  EXPECT_THAT(refusal("rope_interleave", false), HasSubstr("rope_interleave: expected true"));
}

TEST(model_config, ministral_3_is_known_alone_and_as_a_part) {
  json document = llama();
  document["architectures"] = {"Ministral3ForCausalLM"};
  document["rope_parameters"] = {{"rope_type", "yarn"},
                                 {"rope_theta", 1e6},
                                 {"factor", 16},
                                 {"original_max_position_embeddings", 128},
                                 {"mscale", 1},
                                 {"mscale_all_dim", 1},
                                 {"llama_4_scaling_beta", 0.1}};
  const auto alone = read(document);
  ASSERT_TRUE(alone) << alone.error().describe();
  EXPECT_EQ(alone->shape.family_name(), "mistral3");
  EXPECT_EQ(alone->shape.temperature_scale, 0.1F);
  EXPECT_EQ(alone->yarn->log_multiplier, 1);
  json part = document;
  part.erase("architectures");
  part["model_type"] = "ministral3";
  json whole = {{"architectures", {"Mistral3ForConditionalGeneration"}}, {"text_config", part}};
  EXPECT_EQ(read(whole)->shape.family_name(), "mistral3");
  whole["text_config"]["model_type"] = "mamba";
  EXPECT_THAT(read(whole).error().context, HasSubstr("expected 'mistral' or 'ministral3', found 'mamba'"));
  document["rope_parameters"]["mscale"] = 2;
  EXPECT_THAT(read(document).error().context, HasSubstr("mscale: expected 1"));
  document["architectures"] = {"LlamaForCausalLM"};
  document["rope_parameters"].erase("mscale");
  document["rope_parameters"].erase("mscale_all_dim");
  EXPECT_THAT(read(document).error().context, HasSubstr("llama_4_scaling_beta: expected none with YaRN"));
}

TEST(model_config, recurrent_layers_are_read_and_refused_by_field) {
  json document = llama();
  document["architectures"] = {"Qwen3_5ForCausalLM"};
  document["num_hidden_layers"] = 5;
  document["head_dim"] = 64;
  document["rope_parameters"] = {
      {"rope_type", "default"}, {"rope_theta", 1e7}, {"partial_rotary_factor", 0.25}, {"mrope_section", {3, 3, 2}}};
  document["linear_conv_kernel_dim"] = 4;
  document["linear_num_key_heads"] = 2;
  document["linear_num_value_heads"] = 6;
  document["linear_key_head_dim"] = 64;
  document["linear_value_head_dim"] = 64;
  auto c = read(document);
  ASSERT_TRUE(c) << c.error().context;
  EXPECT_EQ(c->shape.rotary_dim, 16U);
  EXPECT_EQ(c->shape.rope_base, 1e7F);
  EXPECT_EQ(c->shape.delta->channels(), (2 + 2 + 6) * 64U);
  EXPECT_EQ(c->shape.delta->grouped_place(3), 4U) << "the second value head of key head 1";
  EXPECT_TRUE(c->shape.layer_kinds.empty()) << "every fourth layer has attention";
  const auto refusal = [&](const char* name, const json& value) { return refusal_with(name, value, document); };
  EXPECT_THAT(refusal("linear_value_head_dim", 128),
              HasSubstr("linear_value_head_dim: expected the 64 of linear_key_head_dim, found 128"));
  EXPECT_THAT(refusal("linear_num_value_heads", 5), HasSubstr("value heads up to 2048 and a multiple of 2, found 5"));
  EXPECT_THAT(refusal("linear_conv_kernel_dim", 17), HasSubstr("a convolution up to 16, found 17"));
  EXPECT_THAT(refusal("linear_num_key_heads", nullptr), HasSubstr("linear_num_key_heads"));
  EXPECT_THAT(refusal("attn_output_gate", false), HasSubstr("attn_output_gate: expected true"));
  EXPECT_THAT(refusal("attention_bias", true), HasSubstr("attention_bias: expected false"));
  EXPECT_THAT(refusal("full_attention_interval", 6), HasSubstr("expected a layer with attention among 5"));
  EXPECT_THAT(refusal("layer_types", {"linear_attention"}), HasSubstr("layer_types: expected 5 entries, found 1"));
  EXPECT_THAT(refusal("layer_types", json::array({"full_attention", "full_attention", "chunked_attention",
                                                  "full_attention", "full_attention"})),
              HasSubstr("'linear_attention' or 'full_attention' in layer 2, found 'chunked_attention'"));
  document["full_attention_interval"] = 2;
  c = read(document);
  ASSERT_TRUE(c) << c.error().context;
  using enum architecture::layer_kind;
  EXPECT_EQ(c->shape.layer_kinds, (std::vector{recurrent, full, recurrent, full, recurrent}));
}

TEST(model_config, lfm2_says_which_layers_have_attention_in_two_ways) {
  json document = llama();
  document["architectures"] = {"Lfm2ForCausalLM"};
  document["num_hidden_layers"] = 3;
  document["norm_eps"] = 1e-5;
  document["conv_L_cache"] = 3;
  document["full_attn_idxs"] = {1};
  document["block_ff_dim"] = 12288;  // instead of the usual member, and to be adjusted unless denied
  document["block_multiple_of"] = 256;
  auto c = read(document);
  ASSERT_TRUE(c) << c.error().context;
  using enum architecture::layer_kind;
  EXPECT_EQ(c->shape.layer_kinds, (std::vector{recurrent, full, recurrent}));
  EXPECT_EQ(c->shape.feed_forward, 8192U);
  EXPECT_TRUE(c->shape.tied_head);
  const auto refusal = [&](const char* name, const json& value) { return refusal_with(name, value, document); };
  EXPECT_THAT(refusal("full_attn_idxs", {3}), HasSubstr("expected numbers of layers below 3, found 3"));
  EXPECT_THAT(refusal("full_attn_idxs", json::array()), HasSubstr("expected a layer with attention among 3"));
  EXPECT_THAT(refusal("conv_bias", true), HasSubstr("conv_bias: expected false"));
  EXPECT_THAT(refusal("num_attention_heads", nullptr), HasSubstr("num_attention_heads"));
  EXPECT_THAT(refusal("conv_L_cache", 1), HasSubstr("a convolution of at least 2 rows, found 1"));
  EXPECT_THAT(refusal("conv_L_cache", 40), HasSubstr("a convolution up to 16, found 40"));
  EXPECT_THAT(refusal("block_ffn_dim_multiplier", 1e9), HasSubstr("expected a width of at most"));
  document.erase("full_attn_idxs");
  document["layer_types"] = {"full_attention", "conv", "conv"};
  document["block_auto_adjust_ff_dim"] = false;
  c = read(document);
  ASSERT_TRUE(c) << c.error().context;
  EXPECT_EQ(c->shape.layer_kinds, (std::vector{full, recurrent, recurrent}));
  EXPECT_EQ(c->shape.feed_forward, 12288U);
}

TEST(model_config, deepseeks_that_compute_something_else_are_refused_by_field) {
  const auto refusal = [](const std::string& name, const json& value) {
    return refusal_with(name, value, deepseek2());
  };
  EXPECT_THAT(refusal("kv_lora_rank", nullptr), HasSubstr("kv_lora_rank"));
  EXPECT_THAT(refusal("kv_lora_rank", 1000), HasSubstr("a latent rank from 1 to 960, found 1000"));
  EXPECT_THAT(refusal("q_lora_rank", 0), HasSubstr("q_lora_rank"));
  EXPECT_THAT(refusal("v_head_dim", 513), HasSubstr("a value size from 1 to 512, found 513"));
  EXPECT_THAT(refusal("scoring_func", "sigmoid"), HasSubstr("scoring_func: expected 'softmax', found 'sigmoid'"));
  EXPECT_THAT(refusal("topk_method", "group_limited_greedy"), HasSubstr("topk_method: expected 'greedy'"));
  EXPECT_THAT(refusal("moe_layer_freq", 2), HasSubstr("moe_layer_freq: expected 1, found 2"));
  EXPECT_THAT(refusal("norm_topk_prob", true), HasSubstr("routed_scaling_factor: expected 1"));
  EXPECT_THAT(refusal("attention_bias", true), HasSubstr("attention_bias: expected false"));
  EXPECT_THAT(refusal("num_experts_per_tok", 9), HasSubstr("1 to 8 experts, found 9"));
  json rope = deepseek2()["rope_scaling"];
  rope["mscale"] = 1;
  EXPECT_THAT(refusal("rope_scaling", rope), HasSubstr("mscale: expected mscale_all_dim 0.7"));
  rope.erase("mscale_all_dim");
  EXPECT_THAT(refusal("rope_scaling", rope), HasSubstr("mscale_all_dim"));
}

TEST(model_config, command_r_multiplies_its_logits) {
  json document = llama();
  document["architectures"] = {"CohereForCausalLM"};
  document["layer_norm_eps"] = 1e-5;
  document["logit_scale"] = 0.0625;
  const auto config = read(document);
  ASSERT_TRUE(config) << config.error().describe();
  EXPECT_EQ(config->shape.family_name(), "command-r");
  EXPECT_EQ(config->shape.logit_scale, 0.0625F);
  EXPECT_EQ(config->shape.norm_epsilon, 1e-5F);
  EXPECT_TRUE(config->shape.tied_head);
  EXPECT_FALSE(config->shape.own_head_norms);
  document["use_qk_norm"] = true;
  document["model_max_length"] = 131072;
  EXPECT_TRUE(read(document)->shape.own_head_norms);
  EXPECT_EQ(read(document)->shape.context, 131072U);
  document.erase("logit_scale");
  EXPECT_THAT(read(document).error().context, HasSubstr("logit_scale: expected"));
}

TEST(model_config, glm_4_rotates_half_of_each_head_where_nothing_is_said) {
  json document = llama();
  document["architectures"] = {"Glm4ForCausalLM"};
  const auto config = read(document);
  ASSERT_TRUE(config) << config.error().describe();
  EXPECT_EQ(config->shape.family_name(), "glm4");
  EXPECT_EQ(config->shape.rotated(), 8U);
  document["partial_rotary_factor"] = 1.0;
  EXPECT_EQ(read(document)->shape.rotated(), 16U);
}

TEST(model_config, olmo_3_has_windows_in_three_of_four_layers) {
  json document = llama();
  document["architectures"] = {"Olmo3ForCausalLM"};
  document["num_hidden_layers"] = 4;
  document["sliding_window"] = 1024;
  document["layer_types"] = {"sliding_attention", "sliding_attention", "sliding_attention", "full_attention"};
  const auto config = read(document);
  ASSERT_TRUE(config) << config.error().describe();
  EXPECT_EQ(config->shape.family_name(), "olmo2");
  EXPECT_EQ(config->shape.window, 1024U);
  EXPECT_EQ(config->shape.window_period, 0U) << "the family's value";
  EXPECT_FALSE(config->shape.tied_head);
  document["layer_types"][3] = "sliding_attention";
  EXPECT_THAT(read(document).error().context, HasSubstr("expected 'full_attention' in layer 3"));
  document["architectures"] = {"Olmo2ForCausalLM"};
  document.erase("layer_types");
  document.erase("sliding_window");
  EXPECT_EQ(read(document)->shape.window, 0U);
}

/// As Gemma 3 4B is published: default values are omitted.
json gemma_that_sees() {
  return {{"architectures", {"Gemma3ForConditionalGeneration"}},
          {"eos_token_id", {1, 106}},
          {"text_config",
           {{"hidden_size", 2560},
            {"intermediate_size", 10240},
            {"model_type", "gemma3_text"},
            {"num_hidden_layers", 34},
            {"rope_scaling", {{"factor", 8.0}, {"rope_type", "linear"}}},
            {"sliding_window", 1024}}},
          {"vision_config", {{"hidden_size", 1152}}}};
}

TEST(model_config, of_a_model_that_sees_the_text_part_is_read_with_what_is_usual) {
  const model_config c = read(gemma_that_sees()).value();
  EXPECT_TRUE(c.is_wrapped);
  EXPECT_EQ(c.shape.family_name(), "gemma3");
  EXPECT_EQ(c.shape.width, 2560U);
  EXPECT_EQ(c.shape.heads, 8U);
  EXPECT_EQ(c.shape.kv_heads, 4U);
  EXPECT_EQ(c.shape.head_dim, 256U);
  EXPECT_EQ(c.shape.vocabulary, 262208U);
  EXPECT_EQ(c.shape.context, 131072U);
  EXPECT_EQ(c.shape.window, 1024U);
  EXPECT_EQ(c.shape.rope_base, 1e6F);
  EXPECT_EQ(c.linear_factor, 8);
  EXPECT_EQ(c.shape.attention_scale, 0) << "under the name that readers know";
  EXPECT_TRUE(c.shape.tied_head);
  EXPECT_FALSE(read(llama())->is_wrapped);

  json mistral = llama();
  mistral.erase("architectures");
  mistral["model_type"] = "mistral";
  const json document = {{"architectures", {"Mistral3ForConditionalGeneration"}},
                         {"tie_word_embeddings", false},
                         {"text_config", mistral}};
  EXPECT_EQ(read(document)->shape.family_name(), "llama");
  EXPECT_FALSE(read(document)->shape.tied_head);
}

TEST(model_config, parts_of_a_model_that_sees_are_refused_by_their_path) {
  const auto with = [](const std::string& name, const json& value) {
    json document = gemma_that_sees();
    document["text_config"][name] = value;
    return refusal_with("model_type", "gemma3", document);
  };
  EXPECT_THAT(with("hidden_size", nullptr), HasSubstr("text_config.hidden_size"));
  EXPECT_THAT(with("model_type", "llama"), HasSubstr("text_config.model_type: expected 'gemma3_text', found 'llama'"));
  EXPECT_THAT(with("hidden_activation", "silu"),
              HasSubstr("text_config.hidden_activation: expected 'gelu_pytorch_tanh', found 'silu'"));
  EXPECT_THAT(refusal_with("text_config", nullptr, gemma_that_sees()), HasSubstr("text_config"));
  EXPECT_THAT(refusal_with("text_config", 7, gemma_that_sees()), HasSubstr("text_config: expected"));
  EXPECT_THAT(refusal_with("quantization_config", {{"bits", 4}}, gemma_that_sees()),
              HasSubstr("expected weights that are not quantized"));
  EXPECT_THAT(refusal_with("architectures", {"Llama4ForConditionalGeneration"}, gemma_that_sees()),
              HasSubstr("Gemma3ForConditionalGeneration"));
}

TEST(model_config, tensors_of_the_text_part_have_the_names_that_they_have_alone) {
  EXPECT_EQ(text_name("language_model.model.layers.3.mlp.up_proj.weight"), "model.layers.3.mlp.up_proj.weight");
  EXPECT_EQ(text_name("model.language_model.layers.3.mlp.up_proj.weight"), "model.layers.3.mlp.up_proj.weight");
  EXPECT_EQ(text_name("language_model.lm_head.weight"), "lm_head.weight");
  EXPECT_EQ(text_name("lm_head.weight"), "lm_head.weight");
  EXPECT_EQ(text_name("vision_tower.x"), std::nullopt);
  EXPECT_EQ(text_name("model.multi_modal_projector.x"), std::nullopt);
  EXPECT_EQ(text_name("model.audio_tower.x"), std::nullopt);
  EXPECT_EQ(text_name("speech_tower.x"), "speech_tower.x") << "unknown members are not ignored";
}

TEST(model_config, gemma_4s_layers_differ) {
  const json whole = test::make_hf_model({.architecture = "gemma4", .layers = 4, .sharing_layers = 2}).config;
  const model_config c = read(whole).value();
  EXPECT_EQ(c.shape.head_dim, 16U);
  EXPECT_EQ(c.shape.varied->window_head_dim, 8U);
  EXPECT_EQ(c.shape.varied->sharing_feed_forward, 192U);
  EXPECT_EQ(c.shape.experts, 0U);
  EXPECT_THAT(rope_divisors(c), ::testing::ElementsAre(1, 1, 1e30F, 1e30F, 1e30F, 1e30F, 1e30F, 1e30F));
  const auto refusal = [&](const std::string& name, json value) { return refusal_with(name, std::move(value), whole); };
  EXPECT_THAT(refusal("layer_types", {"sliding_attention"}), HasSubstr("expected 4 entries, found 1"));
  EXPECT_THAT(refusal("layer_types", {"sliding_attention", "full_attention", "sliding_attention", "linear_attention"}),
              HasSubstr("expected 'sliding_attention' or 'full_attention', found 'linear_attention'"));
  EXPECT_THAT(refusal("num_kv_shared_layers", 3), HasSubstr("expected a layer of each kind before the last 3"));
  EXPECT_THAT(refusal("global_head_dim", 514), HasSubstr("expected an even head size up to 512, found 514"));
  json part = whole["rope_parameters"];
  part["full_attention"]["partial_rotary_factor"] = 1;
  json turning = whole;
  turning["rope_parameters"] = part;
  EXPECT_EQ(rope_divisors(read(turning).value()), std::vector<float>(8, 1)) << "a file has them in any case";
  part["full_attention"]["partial_rotary_factor"] = 1.5;
  EXPECT_THAT(refusal("rope_parameters", part), HasSubstr("partial_rotary_factor: expected at most 1, found 1.5"));
}

TEST(model_config, other_arithmetic_is_refused) {
  EXPECT_THAT(refusal_with("hidden_act", "gelu"), HasSubstr("hidden_act: expected 'silu', found 'gelu'"));
  json gemma = llama();
  gemma["architectures"] = {"GemmaForCausalLM"};
  EXPECT_EQ(refusal_with("hidden_act", "gelu", gemma), "none") << "the value in its first files";
  EXPECT_EQ(refusal_with("hidden_activation", "gelu_pytorch_tanh", gemma), "none");
  EXPECT_THAT(refusal_with("hidden_activation", "silu", gemma),
              HasSubstr("hidden_activation: expected 'gelu_pytorch_tanh', found 'silu'"));
  EXPECT_THAT(refusal_with("quantization_config", {{"bits", 4}}), HasSubstr("expected weights that are not quantized"));
}

}  // namespace
}  // namespace redline::huggingface
