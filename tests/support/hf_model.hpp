#pragma once

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/tiny_model.hpp"

// The same decoder as a tiny_model, in the form of the Hugging Face hub.

namespace redline::test {

using json = nlohmann::json;

struct hf_tensor {
  std::string type;
  std::vector<std::uint64_t> shape;  // outermost first
  std::vector<std::byte> bytes;
};
using hf_tensors = std::map<std::string, hf_tensor>;

/// A safetensors file with an arbitrary header.
inline std::string safetensors_bytes(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + data;
}

inline std::string safetensors_bytes(const hf_tensors& tensors) {
  json header = {{"__metadata__", {{"format", "pt"}}}};
  std::string data;
  for (const auto& [name, t] : tensors) {
    const std::size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size());
    header[name] = {{"dtype", t.type}, {"shape", t.shape}, {"data_offsets", {begin, data.size()}}};
  }
  return safetensors_bytes(header.dump(), data);
}

struct hf_model {
  json config;
  json tokenizer;
  json tokenizer_config;
  json generation_config;
  hf_tensors tensors;

  /// Leaves out documents that are null, and the file of tensors if there are none.
  void write(const std::filesystem::path& folder) const {
    std::filesystem::create_directories(folder);
    const auto document = [&](const char* name, const json& what) {
      if (!what.is_null()) std::ofstream(folder / name) << what.dump();
    };
    document("config.json", config);
    document("tokenizer.json", tokenizer);
    document("tokenizer_config.json", tokenizer_config);
    document("generation_config.json", generation_config);
    if (!tensors.empty()) std::ofstream(folder / "model.safetensors", std::ios::binary) << safetensors_bytes(tensors);
  }
};

inline const char* qwen2_words =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|"
    "\\s+(?!\\S)|\\s+";

/// Splits by one regular expression and then into bytes.
inline json split_into_bytes(const std::string& expression) {
  const json split = {
      {"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", "Isolated"}, {"invert", false}};
  const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  return {{"type", "Sequence"}, {"pretokenizers", {split, bytes}}};
}

inline json added_token(std::size_t id, const std::string& content, bool special) {
  return {{"id", id},        {"content", content}, {"special", special}, {"single_word", false},
          {"lstrip", false}, {"rstrip", false},    {"normalized", false}};
}

/// The tokenizer of `m` as a tokenizer.json.
inline json hf_tokenizer_of(const tiny_model& m) {
  const auto& texts = std::get<std::vector<std::string>>(m.metadata.at("tokenizer.ggml.tokens"));
  const auto& types = std::get<std::vector<std::int32_t>>(m.metadata.at("tokenizer.ggml.token_type"));
  json vocab = json::object(), added = json::array();
  for (std::size_t id = 0; id < texts.size(); ++id) {
    if (types[id] == 1) vocab[texts[id]] = id;
    if (types[id] == 3) added.push_back(added_token(id, texts[id], true));
  }
  return {{"version", "1.0"},
          {"added_tokens", added},
          {"normalizer", {{"type", "NFC"}}},
          {"pre_tokenizer", split_into_bytes(qwen2_words)},
          {"post_processor", {{"type", "ByteLevel"}, {"trim_offsets", false}}},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", ""},
            {"end_of_word_suffix", ""},
            {"byte_fallback", false},
            {"vocab", vocab},
            {"merges", std::get<std::vector<std::string>>(m.metadata.at("tokenizer.ggml.merges"))}}}};
}

inline std::vector<float> factors_of(const tiny_model& m, const std::string& tensor) {
  const auto it = std::find_if(m.tensors.begin(), m.tensors.end(), [&](const auto& t) { return t.name == tensor; });
  std::vector<float> factors(it->payload.size() / sizeof(float));
  std::memcpy(factors.data(), it->payload.data(), it->payload.size());
  return factors;
}

/// m: the model with that shape.
inline json hf_config_of(const tiny_shape& s, const tiny_model& m) {
  static const std::map<std::string, std::string> names = {{"llama", "Llama"},
                                                           {"qwen2", "Qwen2"},
                                                           {"qwen3", "Qwen3"},
                                                           {"gemma", "Gemma"},
                                                           {"starcoder2", "Starcoder2"},
                                                           {"qwen2moe", "Qwen2Moe"},
                                                           {"qwen3moe", "Qwen3Moe"},
                                                           {"granite", "Granite"},
                                                           {"granitemoe", "GraniteMoe"},
                                                           {"gemma2", "Gemma2"},
                                                           {"gemma3", "Gemma3"},
                                                           {"gpt-oss", "GptOss"},
                                                           {"phi3", "Phi3"},
                                                           {"olmo2", "Olmo2"},
                                                           {"glm4", "Glm4"},
                                                           {"command-r", "Cohere"},
                                                           {"deepseek2", "DeepseekV2"},
                                                           {"mellum", "Mellum"},
                                                           {"mistral3", "Ministral3"},
                                                           {"qwen35", "Qwen3_5"},
                                                           {"qwen35moe", "Qwen3_5Moe"},
                                                           {"qwen3next", "Qwen3Next"},
                                                           {"lfm2", "Lfm2"},
                                                           {"lfm2moe", "Lfm2Moe"},
                                                           {"gemma4", "Gemma4"}};
  const bool gelu = s.architecture.starts_with("gemma") || s.architecture == "starcoder2";
  const bool mixtral = s.architecture == "llama" && s.experts != 0;
  json config = {{"architectures", {(mixtral ? "Mixtral" : names.at(s.architecture)) + "ForCausalLM"}},
                 {"hidden_size", s.width},
                 {"num_hidden_layers", s.layers},
                 {"num_attention_heads", s.heads},
                 {"num_key_value_heads", s.kv_heads},
                 {"head_dim", s.head_dim},
                 {"intermediate_size", s.feed_forward},
                 {"max_position_embeddings", s.context},
                 {"vocab_size", tiny_model::vocabulary},
                 {s.architecture == "starcoder2"  ? "norm_epsilon"
                  : s.architecture == "command-r" ? "layer_norm_eps"
                                                  : "rms_norm_eps",
                  1e-5},
                 {"rope_theta", 10000.0},
                 {"hidden_act", gelu ? "gelu_pytorch_tanh" : "silu"},
                 {"tie_word_embeddings", s.tied_head}};
  if (s.architecture.starts_with("granite")) {
    config["embedding_multiplier"] = 12;
    config["residual_multiplier"] = 0.22;
    config["attention_multiplier"] = 0.0625;
    config["logits_scaling"] = 8;
  }
  const bool gpt_oss = s.architecture == "gpt-oss", gemma3 = s.architecture == "gemma3";
  if (gpt_oss || gemma3 || s.architecture == "gemma2") {
    config["sliding_window"] = s.window;
    for (std::uint32_t i = 0; i < s.layers; ++i) {
      config["layer_types"].push_back(i % 2 == 0 ? "sliding_attention" : "full_attention");
    }
  }
  if (s.architecture == "mistral3") {
    config["rope_parameters"] = {
        {"rope_type", "yarn"},        {"rope_theta", 10000.0}, {"factor", 4.0}, {"original_max_position_embeddings", 4},
        {"beta_fast", 32.0},          {"beta_slow", 1.0},      {"mscale", 1.0}, {"mscale_all_dim", 1.0},
        {"llama_4_scaling_beta", 0.5}};
  }
  if (s.architecture == "mellum") {
    config["sliding_window"] = s.window;
    config["rope_parameters"] = {{"full_attention", {{"rope_type", "default"}, {"rope_theta", 10000.0}}},
                                 {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 10000.0}}}};
  }
  if (s.architecture == "gemma2") {
    config["attn_logit_softcapping"] = 5.0;
    config["final_logit_softcapping"] = 20.0;
    config["query_pre_attn_scalar"] = s.head_dim;
  }
  if (gemma3) {
    config["sliding_window_pattern"] = 2;
    config["rope_theta"] = 1e6;
    config["rope_local_base_freq"] = 10000.0;
    config["final_logit_softcapping"] = nullptr;
  }
  if (s.architecture == "gemma4") {
    config["head_dim"] = s.head_dim / 2;
    config["global_head_dim"] = s.head_dim;
    config["num_key_value_heads"] = s.heads;
    config["num_global_key_value_heads"] = s.kv_heads;
    config["sliding_window"] = s.window;
    config["num_kv_shared_layers"] = s.sharing_layers;
    config["use_double_wide_mlp"] = true;
    config["hidden_size_per_layer_input"] = s.layer_input;
    config["attention_k_eq_v"] = s.keys_are_values;
    config["final_logit_softcapping"] = 20.0;
    for (std::uint32_t i = 0; i < s.layers; ++i)
      config["layer_types"].push_back(i % 2 == 0 ? "sliding_attention" : "full_attention");
    config["rope_parameters"] = {
        {"full_attention", {{"rope_type", "proportional"}, {"partial_rotary_factor", 0.25}, {"rope_theta", 1e6}}},
        {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 10000.0}}}};
    config.erase("rope_theta");
    if (s.experts == 0) return config;
    config["num_experts"] = s.experts;
    config["top_k_experts"] = s.experts_used;
    config["moe_intermediate_size"] = s.expert_feed_forward;
    return config;
  }
  if (gpt_oss) {
    config["swiglu_limit"] = 7.0;
    if (s.expert_matrices) config["quantization_config"] = {{"quant_method", "mxfp4"}};
  }
  if (s.architecture == "phi3") {
    config["partial_rotary_factor"] = static_cast<double>(s.rotary_dim) / s.head_dim;
    config["original_max_position_embeddings"] = s.context / 8;
    config["rope_scaling"] = {{"type", "longrope"},
                              {"attention_factor", 1.25},
                              {"long_factor", factors_of(m, "rope_factors_long.weight")},
                              {"short_factor", factors_of(m, "rope_factors_short.weight")}};
  }
  if (s.architecture.starts_with("qwen35") || s.architecture == "qwen3next") {
    config["linear_conv_kernel_dim"] = 4;
    config["linear_num_key_heads"] = 2;
    config["linear_num_value_heads"] = 4;
    config["linear_key_head_dim"] = s.delta_head_dim;
    config["linear_value_head_dim"] = s.delta_head_dim;
    for (std::uint32_t i = 0; i < s.layers; ++i)
      config["layer_types"].push_back(i % 2 == 0 ? "linear_attention" : "full_attention");
    config["partial_rotary_factor"] = static_cast<double>(s.rotary_dim) / s.head_dim;
  }
  if (s.architecture == "qwen35moe") config.erase("intermediate_size");
  if (s.architecture.starts_with("lfm2")) {
    config["conv_L_cache"] = 3;
    config["norm_eps"] = 1e-5;
    config["block_auto_adjust_ff_dim"] = false;
    for (std::uint32_t i = 0; i < s.layers; ++i)
      config["layer_types"].push_back(i % 2 == 0 ? "conv" : "full_attention");
    config["num_dense_layers"] = s.dense_layers;
  }
  if (s.architecture == "glm4") config["partial_rotary_factor"] = static_cast<double>(s.rotary_dim) / s.head_dim;
  if (s.architecture == "command-r") {
    config["logit_scale"] = 0.25;
    config["use_qk_norm"] = true;
  }
  if (s.architecture == "deepseek2") {
    config["head_dim"] = s.rotary_dim;  // as in newer files
    config["num_key_value_heads"] = s.heads;
    config["kv_lora_rank"] = s.width;
    config["q_lora_rank"] = s.query_rank == 0 ? json() : json(s.query_rank);
    config["qk_nope_head_dim"] = s.width / 2;
    config["qk_rope_head_dim"] = s.rotary_dim;
    config["v_head_dim"] = s.width / 4;
    config["first_k_dense_replace"] = s.dense_layers;
    config["n_routed_experts"] = s.experts;
    config["n_shared_experts"] = s.shared_feed_forward / s.expert_feed_forward;
    config["num_experts_per_tok"] = s.experts_used;
    config["moe_intermediate_size"] = s.expert_feed_forward;
    config["routed_scaling_factor"] = 1.5;
    config["scoring_func"] = "softmax";
    config["topk_method"] = "greedy";
    if (s.by_sigmoid) {
      config["architectures"] = {"Glm4MoeLiteForCausalLM"};
      config["scoring_func"] = "sigmoid";
      config["topk_method"] = "noaux_tc";
      config["norm_topk_prob"] = true;
      config["n_group"] = s.experts % 2 == 0 ? 2 : 1;
      config["topk_group"] = 1;
      config["num_nextn_predict_layers"] = 1;
    }
    return config;
  }
  const bool granite = s.architecture == "granitemoe";
  if (s.experts == 0) return config;
  config[mixtral || granite || gpt_oss ? "num_local_experts" : "num_experts"] = s.experts;
  config["num_experts_per_tok"] = s.experts_used;
  if (mixtral || granite || gpt_oss) {
    config["intermediate_size"] = s.expert_feed_forward;
    return config;
  }
  config["moe_intermediate_size"] = s.expert_feed_forward;
  config["norm_topk_prob"] = s.architecture != "qwen2moe";
  config["decoder_sparse_step"] = 1;
  config["mlp_only_layers"] = json::array();
  if (s.shared_feed_forward != 0) config["shared_expert_intermediate_size"] = s.shared_feed_forward;
  return config;
}

/// The weights of a norm that multiplies by one plus its weight. This is exact for numbers from 0.5 to 2.
inline std::vector<std::byte> minus_one(std::vector<std::byte> bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(float)) {
    float x = 0;
    std::memcpy(&x, bytes.data() + at, sizeof x);
    x -= 1;
    std::memcpy(bytes.data() + at, &x, sizeof x);
  }
  return bytes;
}

/// The same for LFM2, including a router; empty for experts.
inline std::string lfm2_name(const std::string& ours) {
  static const std::map<std::string, std::string> names = {{"attn_norm.weight", "operator_norm.weight"},
                                                           {"attn_q.weight", "self_attn.q_proj.weight"},
                                                           {"attn_k.weight", "self_attn.k_proj.weight"},
                                                           {"attn_v.weight", "self_attn.v_proj.weight"},
                                                           {"attn_output.weight", "self_attn.out_proj.weight"},
                                                           {"attn_q_norm.weight", "self_attn.q_layernorm.weight"},
                                                           {"attn_k_norm.weight", "self_attn.k_layernorm.weight"},
                                                           {"shortconv.in_proj.weight", "conv.in_proj.weight"},
                                                           {"shortconv.conv.weight", "conv.conv.weight"},
                                                           {"shortconv.out_proj.weight", "conv.out_proj.weight"},
                                                           {"ffn_norm.weight", "ffn_norm.weight"},
                                                           {"ffn_gate.weight", "feed_forward.w1.weight"},
                                                           {"ffn_up.weight", "feed_forward.w3.weight"},
                                                           {"ffn_down.weight", "feed_forward.w2.weight"},
                                                           {"ffn_gate_inp.weight", "feed_forward.gate.weight"},
                                                           {"exp_probs_b.bias", "feed_forward.expert_bias"}};
  if (ours == "token_embd.weight") return "model.embed_tokens.weight";
  if (ours == "token_embd_norm.weight") return "model.embedding_norm.weight";
  if (ours == "output.weight") return "lm_head.weight";
  const std::size_t layer_end = ours.find('.', 4);
  const auto it = names.find(ours.substr(layer_end + 1));
  return it == names.end() ? "" : "model.layers." + ours.substr(4, layer_end - 4) + "." + it->second;
}

/// "blk.3.attn_q.weight" -> "model.layers.3.self_attn.q_proj.weight".
inline std::string hf_name(const std::string& ours, const std::string& architecture) {
  const std::string layer = "model.layers." + ours.substr(4, ours.find('.', 4) - 4) + ".";
  if (const auto own = ours.find(".nextn."); own != std::string::npos) return layer + ours.substr(own + 1);
  const bool glm4 = architecture == "glm4";
  if ((architecture == "phi3" || glm4) && ours.ends_with(".ffn_up.weight")) return layer + "mlp.gate_up_proj.weight";
  if (glm4 && ours.ends_with(".post_attention_norm.weight")) return layer + "post_self_attn_layernorm.weight";
  if (glm4 && ours.ends_with(".post_ffw_norm.weight")) return layer + "post_mlp_layernorm.weight";
  if (const auto shared = ours.find("_shexp."); architecture == "deepseek2" && shared != std::string::npos) {
    const std::size_t name = ours.find("ffn_") + 4;
    return layer + "mlp.shared_experts." + ours.substr(name, shared - name) + "_proj.weight";
  }
  if (architecture == "starcoder2") {
    if (const auto up = ours.find(".ffn_up."); up != std::string::npos) {
      return "model.layers." + ours.substr(4, up - 4) + ".mlp.c_fc." + ours.substr(up + 8);
    }
    if (const auto down = ours.find(".ffn_down."); down != std::string::npos) {
      return "model.layers." + ours.substr(4, down - 4) + ".mlp.c_proj." + ours.substr(down + 10);
    }
  }
  static const std::map<std::string, std::string> names = {{"token_embd", "model.embed_tokens"},
                                                           {"output_norm", "model.norm"},
                                                           {"output", "lm_head"},
                                                           {"attn_norm", "input_layernorm"},
                                                           {"attn_q", "self_attn.q_proj"},
                                                           {"attn_k", "self_attn.k_proj"},
                                                           {"attn_v", "self_attn.v_proj"},
                                                           {"attn_qkv", "self_attn.qkv_proj"},
                                                           {"attn_output", "self_attn.o_proj"},
                                                           {"attn_q_norm", "self_attn.q_norm"},
                                                           {"attn_k_norm", "self_attn.k_norm"},
                                                           {"ffn_norm", "post_attention_layernorm"},
                                                           {"post_attention_norm", "post_attention_layernorm"},
                                                           {"post_ffw_norm", "post_feedforward_layernorm"},
                                                           {"ffn_gate_inp", "mlp.router"},
                                                           {"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
                                                           {"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
                                                           {"ffn_up_shexp", "mlp.shared_expert.up_proj"},
                                                           {"ffn_down_shexp", "mlp.shared_expert.down_proj"},
                                                           {"attn_q_a", "self_attn.q_a_proj"},
                                                           {"attn_q_a_norm", "self_attn.q_a_layernorm"},
                                                           {"attn_q_b", "self_attn.q_b_proj"},
                                                           {"attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa"},
                                                           {"attn_kv_a_norm", "self_attn.kv_a_layernorm"},
                                                           {"ffn_gate", "mlp.gate_proj"},
                                                           {"ffn_up", "mlp.up_proj"},
                                                           {"ffn_down", "mlp.down_proj"}};
  const std::size_t last = ours.rfind('.');
  if (ours.ends_with(".exp_probs_b.bias")) return layer + "mlp.gate.e_score_correction_bias";
  if (!ours.starts_with("blk.")) return names.at(ours.substr(0, last)) + ours.substr(last);
  const std::size_t layer_end = ours.find('.', 4);
  if (ours.ends_with("attn_sinks.weight")) {
    return "model.layers." + ours.substr(4, layer_end - 4) + ".self_attn.sinks";
  }
  const bool has_both = architecture == "gemma2" || architecture == "gemma3";
  if (has_both && ours.ends_with(".ffn_norm.weight")) {
    return "model.layers." + ours.substr(4, layer_end - 4) + ".pre_feedforward_layernorm.weight";
  }
  return "model.layers." + ours.substr(4, layer_end - 4) + "." +
         names.at(ours.substr(layer_end + 1, last - layer_end - 1)) + ours.substr(last);
}

/// The name of a Gemma 4 tensor; empty for gates and ups of experts.
inline std::string gemma4_name(const std::string& ours) {
  static const std::map<std::string, std::string> names = {
      {"ffn_norm.weight", "pre_feedforward_layernorm.weight"},
      {"ffn_gate_inp.weight", "router.proj.weight"},
      {"ffn_gate_inp.scale", "router.scale"},
      {"ffn_down_exps.scale", "router.per_expert_scale"},
      {"ffn_down_exps.weight", "experts.down_proj"},
      {"ffn_gate_exps.weight", ""},
      {"ffn_up_exps.weight", ""},
      {"post_ffw_norm_1.weight", "post_feedforward_layernorm_1.weight"},
      {"pre_ffw_norm_2.weight", "pre_feedforward_layernorm_2.weight"},
      {"post_ffw_norm_2.weight", "post_feedforward_layernorm_2.weight"},
      {"inp_gate.weight", "per_layer_input_gate.weight"},
      {"proj.weight", "per_layer_projection.weight"},
      {"post_norm.weight", "post_per_layer_input_norm.weight"},
      {"layer_output_scale.weight", "layer_scalar"}};
  if (ours == "per_layer_token_embd.weight") return "model.embed_tokens_per_layer.weight";
  if (ours == "per_layer_model_proj.weight") return "model.per_layer_model_projection.weight";
  if (ours == "per_layer_proj_norm.weight") return "model.per_layer_projection_norm.weight";
  const std::size_t layer_end = ours.find('.', 4);
  const auto it = names.find(ours.starts_with("blk.") ? ours.substr(layer_end + 1) : "");
  if (it == names.end()) return hf_name(ours, "gemma4");
  return it->second.empty() ? "" : "model.layers." + ours.substr(4, layer_end - 4) + "." + it->second;
}

/// For a tensor "blk.3.ffn_up_exps.weight", the parts before and after the expert's number in "model.layers.3...";
/// empty for other tensors. A router's whole name is in the first part.
inline std::pair<std::string, std::string> hf_expert_names(const std::string& ours, const std::string& architecture) {
  const bool lfm2 = architecture == "lfm2moe", mixtral = architecture == "llama" || lfm2;
  static const std::map<std::string, std::pair<const char*, const char*>> names = {
      {"ffn_gate_exps", {".w1.weight", ".gate_proj.weight"}},
      {"ffn_up_exps", {".w3.weight", ".up_proj.weight"}},
      {"ffn_down_exps", {".w2.weight", ".down_proj.weight"}}};
  if (!ours.starts_with("blk.")) return {};
  const std::size_t layer_end = ours.find('.', 4);
  const std::string name = ours.substr(layer_end + 1, ours.rfind('.') - layer_end - 1);
  const std::string mlp = "model.layers." + ours.substr(4, layer_end - 4) +
                          (lfm2      ? ".feed_forward."
                           : mixtral ? ".block_sparse_moe."
                                     : ".mlp.");
  if (name == "ffn_gate_inp") {
    if (architecture != "granitemoe") return {mlp + "gate.weight", ""};
    return {"model.layers." + ours.substr(4, layer_end - 4) + ".block_sparse_moe.router.layer.weight", ""};
  }
  const auto it = names.find(name);
  if (it == names.end()) return {};
  return {mlp + "experts.", mixtral ? it->second.first : it->second.second};
}

/// The hub's order of rows in queries and keys: in each head the left sides of all rotated pairs, then the right sides.
inline std::vector<std::byte> halves_apart(const std::vector<std::byte>& pairs, std::size_t row_bytes,
                                           std::size_t head_dim) {
  std::vector<std::byte> out(pairs.size());
  for (std::size_t head = 0; head < pairs.size() / row_bytes / head_dim; ++head) {
    for (std::size_t pair = 0; pair < head_dim / 2; ++pair) {
      for (std::size_t side = 0; side < 2; ++side) {
        const std::size_t ours = head * head_dim + 2 * pair + side;
        const std::size_t theirs = head * head_dim + side * head_dim / 2 + pair;
        std::memcpy(out.data() + theirs * row_bytes, pairs.data() + ours * row_bytes, row_bytes);
      }
    }
  }
  return out;
}

/// Stores gates and ups as one tensor, per expert one after the other, and downs unchanged.
inline void add_stacked_experts(hf_tensors& to, const tiny_tensor& t, const tiny_model& m,
                                const std::string& architecture) {
  const std::string layer = "model.layers." + t.name.substr(4, t.name.find('.', 4) - 4);
  const bool granite = architecture == "granitemoe";
  const std::string ups = granite                    ? ".block_sparse_moe.input_linear.weight"
                          : architecture == "gemma4" ? ".experts.gate_up_proj"
                                                     : ".mlp.experts.gate_up_proj";
  const std::string downs = granite ? ".block_sparse_moe.output_linear.weight" : ".mlp.experts.down_proj";
  const std::vector<std::uint64_t> shape(t.dimensions.rbegin(), t.dimensions.rend());
  if (t.name.find("ffn_down") != std::string::npos) {
    to[layer + downs] = {gguf::name_of(t.type), shape, t.payload};
  } else if (t.name.find("ffn_gate") != std::string::npos) {
    const auto up = std::find_if(m.tensors.begin(), m.tensors.end(), [&](const tiny_tensor& other) {
      return other.name == std::string(t.name).replace(t.name.find("ffn_gate"), 8, "ffn_up");
    });
    std::vector<std::byte> both;
    const std::size_t bytes = t.payload.size() / shape[0];
    for (std::size_t e = 0; e < shape[0]; ++e) {
      for (const auto* one : {&t.payload, &up->payload}) {
        const auto begin = one->begin() + static_cast<std::ptrdiff_t>(e * bytes);
        both.insert(both.end(), begin, begin + static_cast<std::ptrdiff_t>(bytes));
      }
    }
    to[layer + ups] = {gguf::name_of(t.type), {shape[0], 2 * shape[1], shape[2]}, both};
  }
}

/// Stores gates and ups of gpt-oss, whose rows alternate, or downs: as transposed floats, or as MXFP4 with steps and
/// scales in separate tensors and the numbers of a block in their order.
inline void add_gpt_oss_experts(hf_tensors& to, const tiny_tensor& t, const tiny_model& m) {
  const std::string experts = "model.layers." + t.name.substr(4, t.name.find('.', 4) - 4) + ".mlp.experts.";
  const bool is_up = t.name.find("ffn_up") != std::string::npos, is_bias = t.name.ends_with(".bias");
  if (is_up) return;  // stored with the gates
  std::vector<const tiny_tensor*> parts{&t};
  const std::size_t gate = t.name.find("ffn_gate");
  if (gate != std::string::npos) {
    const std::string up = std::string(t.name).replace(gate, 8, "ffn_up");
    parts.push_back(&*std::find_if(m.tensors.begin(), m.tensors.end(), [&](const auto& o) { return o.name == up; }));
  }
  const std::string name = experts + (gate == std::string::npos ? "down_proj" : "gate_up_proj");
  const std::uint64_t count = t.dimensions.back(), step = parts.size();
  if (is_bias) {
    hf_tensor& bias = to[name + "_bias"] = {"F32", {count, t.dimensions[0] * step}, {}};
    for (std::uint64_t i = 0; i < t.dimensions[0] * count; ++i) {
      for (const tiny_tensor* part : parts) {
        const auto begin = part->payload.begin() + static_cast<std::ptrdiff_t>(i * 4);
        bias.bytes.insert(bias.bytes.end(), begin, begin + 4);
      }
    }
    return;
  }
  if (t.type != gguf::tensor_type::mxfp4) {
    const std::uint64_t columns = t.dimensions[0], rows = t.dimensions[1],
                        bytes = t.payload.size() / columns / rows / count;
    hf_tensor& all = to[name] = {gguf::name_of(t.type), {count, columns, rows * step}, {}};
    for (std::uint64_t i = 0; i < count * columns * rows; ++i) {
      const std::uint64_t e = i / (columns * rows), column = i / rows % columns, row = i % rows;
      for (const tiny_tensor* part : parts) {
        const auto begin =
            part->payload.begin() + static_cast<std::ptrdiff_t>(((e * rows + row) * columns + column) * bytes);
        all.bytes.insert(all.bytes.end(), begin, begin + static_cast<std::ptrdiff_t>(bytes));
      }
    }
    return;
  }
  const std::uint64_t blocks = t.dimensions[0] / 32, rows = t.dimensions[1] * count;
  hf_tensor& steps = to[name + "_blocks"] = {"U8", {count, t.dimensions[1] * step, blocks, 16}, {}};
  hf_tensor& scales = to[name + "_scales"] = {"U8", {count, t.dimensions[1] * step, blocks}, {}};
  for (std::uint64_t row = 0; row < rows; ++row) {
    for (const tiny_tensor* part : parts) {
      for (std::uint64_t b = 0; b < blocks; ++b) {
        const std::byte* block = part->payload.data() + (row * blocks + b) * 17;
        scales.bytes.push_back(block[0]);
        const auto number = [&](int i) { return i < 16 ? block[1 + i] & std::byte{15} : block[1 + i - 16] >> 4; };
        for (int i = 0; i < 32; i += 2) steps.bytes.push_back(number(i) | number(i + 1) << 4);
      }
    }
  }
}

/// For each head, stacks what makes keys, transposed back, on what makes values.
inline void add_latents(hf_tensors& to, const tiny_tensor& keys, const tiny_tensor& values) {
  const std::uint64_t plain = keys.dimensions[0], rank = keys.dimensions[1], heads = keys.dimensions[2];
  const std::uint64_t number = keys.payload.size() / plain / rank / heads;
  const std::uint64_t of_values = values.payload.size() / heads;
  std::vector<std::byte> both;
  for (std::uint64_t head = 0; head < heads; ++head) {
    for (std::uint64_t k = 0; k < plain; ++k) {
      for (std::uint64_t r = 0; r < rank; ++r) {
        const auto from = keys.payload.begin() + static_cast<std::ptrdiff_t>(((head * rank + r) * plain + k) * number);
        both.insert(both.end(), from, from + static_cast<std::ptrdiff_t>(number));
      }
    }
    const auto from = values.payload.begin() + static_cast<std::ptrdiff_t>(head * of_values);
    both.insert(both.end(), from, from + static_cast<std::ptrdiff_t>(of_values));
  }
  const std::string layer = "model.layers." + keys.name.substr(4, keys.name.find('.', 4) - 4);
  to[layer + ".self_attn.kv_b_proj.weight"] = {
      gguf::name_of(keys.type), {heads * (plain + values.dimensions[1]), rank}, both};
}

/// Stores a tensor of a recurrent layer, of two key heads and four value heads; false if it is another one. Folders
/// have the value heads of a key head together, so the second and third change places in Qwen3.5's files.
inline bool add_delta(hf_tensors& to, const tiny_tensor& t, const tiny_model& m, const std::string& architecture) {
  static const std::map<std::string, std::string> names = {{"attn_qkv.weight", "in_proj_qkv.weight"},
                                                           {"attn_gate.weight", "in_proj_z.weight"},
                                                           {"ssm_ba.weight", "in_proj_ba.weight"},
                                                           {"ssm_alpha.weight", "in_proj_a.weight"},
                                                           {"ssm_beta.weight", "in_proj_b.weight"},
                                                           {"ssm_conv1d.weight", "conv1d.weight"},
                                                           {"ssm_dt.bias", "dt_bias"},
                                                           {"ssm_a", "A_log"},
                                                           {"ssm_norm.weight", "norm.weight"},
                                                           {"ssm_out.weight", "out_proj.weight"}};
  const std::size_t layer_end = t.name.find('.', 4);
  const auto it = layer_end == std::string::npos ? names.end() : names.find(t.name.substr(layer_end + 1));
  if (it == names.end()) return false;
  const std::string before = "model.layers." + t.name.substr(4, layer_end - 4) + ".linear_attn.";
  std::vector<std::uint64_t> shape(t.dimensions.rbegin(), t.dimensions.rend());
  std::vector<std::byte> bytes = t.payload;
  if (architecture == "qwen3next" && it->first == "attn_gate.weight") return true;  // stored with the input
  if (architecture == "qwen3next" && it->first == "attn_qkv.weight") {
    const auto gate = std::find_if(m.tensors.begin(), m.tensors.end(), [&](const tiny_tensor& other) {
      return other.name == t.name.substr(0, layer_end) + ".attn_gate.weight";
    });
    const std::size_t d = shape[0] / 8, row = bytes.size() / shape[0];
    std::vector<std::byte> packed;
    const auto take = [&](const std::vector<std::byte>& from, std::size_t first, std::size_t rows) {
      const auto begin = from.begin() + static_cast<std::ptrdiff_t>(first * row);
      packed.insert(packed.end(), begin, begin + static_cast<std::ptrdiff_t>(rows * row));
    };
    for (std::size_t head = 0; head < 2; ++head) {
      take(bytes, head * d, d);
      take(bytes, (2 + head) * d, d);
      take(bytes, (4 + 2 * head) * d, 2 * d);
      take(gate->payload, 2 * head * d, 2 * d);
    }
    to[before + "in_proj_qkvz.weight"] = {gguf::name_of(t.type), {12 * d, shape[1]}, packed};
    return true;
  }
  if (it->first == "ssm_a") {
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(float)) {
      float x = 0;
      std::memcpy(&x, bytes.data() + at, sizeof x);
      x = static_cast<float>(std::round(std::log(-x) * 1024) / 1024);
      std::memcpy(bytes.data() + at, &x, sizeof x);
    }
  }
  const auto swap_heads = [&](std::size_t first, std::size_t head) {
    std::swap_ranges(bytes.begin() + static_cast<std::ptrdiff_t>(first + head),
                     bytes.begin() + static_cast<std::ptrdiff_t>(first + 2 * head),
                     bytes.begin() + static_cast<std::ptrdiff_t>(first + 2 * head));
  };
  if (architecture != "qwen3next" && it->first == "ssm_out.weight") {
    const std::size_t row = bytes.size() / shape[0];
    for (std::size_t r = 0; r < shape[0]; ++r) swap_heads(r * row, row / 4);
  } else if (architecture != "qwen3next" && it->first != "ssm_norm.weight") {
    const bool has_keys = it->first == "attn_qkv.weight" || it->first == "ssm_conv1d.weight";
    const std::size_t first = has_keys ? bytes.size() / 2 : 0;
    swap_heads(first, (bytes.size() - first) / 4);
  }
  if (it->first == "ssm_conv1d.weight") shape.insert(shape.begin() + 1, 1);
  to[before + it->second] = {gguf::name_of(t.type), shape, bytes};
  return true;
}

/// The folder whose conversion gives make_tiny_model(s); s.matrices must be f32, f16 or bf16.
inline hf_model make_hf_model(const tiny_shape& s) {
  const tiny_model m = make_tiny_model(s);
  hf_model out;
  out.config = hf_config_of(s, m);
  out.tokenizer = hf_tokenizer_of(m);
  out.tokenizer_config = {{"eos_token", "<|im_end|>"},
                          {"pad_token", {{"content", "<|endoftext|>"}}},
                          {"bos_token", nullptr},
                          {"add_bos_token", false},
                          {"chat_template", std::get<std::string>(m.metadata.at("tokenizer.chat_template"))}};
  for (const tiny_tensor& t : m.tensors) {
    if (t.name.starts_with("rope_")) continue;  // these are in the configuration
    std::vector<std::uint64_t> shape(t.dimensions.rbegin(), t.dimensions.rend());
    if (s.architecture == "gemma4") {
      const std::string name = gemma4_name(t.name);
      if (name.empty()) {
        add_stacked_experts(out.tensors, t, m, s.architecture);
      } else {
        out.tensors[name] = {gguf::name_of(t.type), shape, t.payload};
      }
      continue;
    }
    const bool stacks_experts = s.architecture == "granitemoe" || s.architecture == "qwen35moe";
    if (stacks_experts && t.name.find("_exps.") != std::string::npos) {
      add_stacked_experts(out.tensors, t, m, s.architecture);
      continue;
    }
    if (const std::string name = s.architecture.starts_with("lfm2") ? lfm2_name(t.name) : ""; !name.empty()) {
      if (t.name.ends_with(".shortconv.conv.weight")) shape.insert(shape.begin() + 1, 1);
      out.tensors[name] = {gguf::name_of(t.type), shape, t.payload};
      continue;
    }
    const bool has_states = s.architecture.starts_with("qwen35") || s.architecture == "qwen3next";
    if (has_states && add_delta(out.tensors, t, m, s.architecture)) continue;
    if (t.name.find("attn_k_b.") != std::string::npos) {
      const std::string values = std::string(t.name).replace(t.name.find("attn_k_b"), 8, "attn_v_b");
      add_latents(out.tensors, t,
                  *std::find_if(m.tensors.begin(), m.tensors.end(), [&](const auto& o) { return o.name == values; }));
      continue;
    }
    if (t.name.find("attn_v_b.") != std::string::npos) continue;  // stored with the keys
    const bool gpt_oss = s.architecture == "gpt-oss";
    if (gpt_oss && t.name.find("_exps.") != std::string::npos) {
      add_gpt_oss_experts(out.tensors, t, m);
      continue;
    }
    const auto [before, after] =
        gpt_oss ? std::pair<std::string, std::string>() : hf_expert_names(t.name, s.architecture);
    if (!after.empty()) {
      const std::size_t bytes = t.payload.size() / shape[0];
      for (std::uint64_t e = 0; e < shape[0]; ++e) {
        const auto begin = t.payload.begin() + static_cast<std::ptrdiff_t>(e * bytes);
        out.tensors[before + std::to_string(e) + after] = {
            gguf::name_of(t.type), {shape[1], shape[2]}, {begin, begin + static_cast<std::ptrdiff_t>(bytes)}};
      }
      continue;
    }
    if (t.name.ends_with("ffn_gate_inp_shexp.weight")) shape = {1, shape[0]};
    const bool rotated = t.name.find(".attn_q.") != std::string::npos || t.name.find(".attn_k.") != std::string::npos;
    const bool moved =
        (s.architecture == "llama" || s.architecture == "mistral3" || s.architecture.starts_with("granite")) && rotated;
    const bool less =
        (s.architecture.starts_with("gemma") || has_states) && t.name.find("norm.weight") != std::string::npos;
    out.tensors[before.empty() ? hf_name(t.name, s.architecture) : before] = {
        gguf::name_of(t.type), shape,
        moved  ? halves_apart(t.payload, t.payload.size() / shape[0], s.head_dim)
        : less ? minus_one(t.payload)
               : t.payload};
  }
  if (!s.mtp) return out;
  // The last layer has names of its own.
  out.config["mtp_num_hidden_layers"] = 1;
  const std::string last = "model.layers." + std::to_string(s.layers) + ".";
  const std::map<std::string, std::string> own = {{"nextn.eh_proj.weight", "fc.weight"},
                                                  {"nextn.enorm.weight", "pre_fc_norm_embedding.weight"},
                                                  {"nextn.hnorm.weight", "pre_fc_norm_hidden.weight"},
                                                  {"nextn.shared_head_norm.weight", "norm.weight"}};
  hf_tensors renamed;
  for (auto& [name, tensor] : out.tensors) {
    if (!name.starts_with(last)) {
      renamed[name] = tensor;
      continue;
    }
    const std::string rest = name.substr(last.size());
    renamed[own.contains(rest) ? "mtp." + own.at(rest) : "mtp.layers.0." + rest] = tensor;
  }
  out.tensors = std::move(renamed);
  return out;
}

}  // namespace redline::test
