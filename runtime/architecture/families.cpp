#include <algorithm>
#include <array>
#include <vector>

#include "runtime/architecture/model_shape.hpp"
#include "runtime/base/edit_distance.hpp"

namespace redline::architecture {
namespace {

using enum role;
using hub_form::same, hub_form::rotated, hub_form::norm, hub_form::one_row, hub_form::each, hub_form::stacked,
    hub_form::interleaved, hub_form::value_heads, hub_form::value_head_columns, hub_form::convolution, hub_form::decay,
    hub_form::key_groups;
using presence::always, presence::untied, presence::norm_shifts, presence::dense, presence::mixture,
    presence::shared_expert, presence::low_rank_queries, presence::direct_queries, presence::qkv_biases,
    presence::own_head_norms, presence::attention, presence::recurrent, presence::own_keys, presence::own_values;
using block = std::span<const tensor_row>;

constexpr std::size_t name_bytes_max =
    64;  // bytes of a name that are compared with known ones, because the work grows with them

// ---- blocks of tensors ---------------------------------------------------------------------------------------------

constexpr tensor_row vector(role is, std::string_view gguf, std::string_view hub, dim length, hub_form form = same,
                            presence when = always) {
  return {is, gguf, hub, length, dim::none, dim::none, form, when};
}
constexpr tensor_row matrix(role is, std::string_view gguf, std::string_view hub, dim rows, dim columns,
                            hub_form form = same, presence when = always) {
  return {is, gguf, hub, rows, columns, dim::none, form, when};
}
/// A matrix for each expert or head, or a vector if there are no columns.
constexpr tensor_row many(role is, std::string_view gguf, std::string_view hub, dim rows, dim columns, dim count,
                          hub_form form = same, presence when = always, std::uint8_t part = 0, std::uint8_t parts = 1) {
  return {is, gguf, hub, rows, columns, count, form, when, part, parts};
}

constexpr tensor_row outer[] = {
    matrix(token_embedding, "token_embd.weight", "model.embed_tokens.weight", dim::vocabulary, dim::width),
    vector(output_norm, "output_norm.weight", "model.norm.weight", dim::width, norm),
    vector(output_norm_shift, "output_norm.bias", "model.norm.bias", dim::width, same, norm_shifts),
    matrix(output, "output.weight", "lm_head.weight", dim::vocabulary, dim::width, same, untied),
};

constexpr tensor_row input_norm[] = {
    vector(attention_norm, "attn_norm.weight", "input_layernorm.weight", dim::width, norm)};
constexpr tensor_row feed_forward_norm_rows[] = {
    vector(feed_forward_norm, "ffn_norm.weight", "post_attention_layernorm.weight", dim::width, norm)};

constexpr tensor_row separate_qkv[] = {
    matrix(query, "attn_q.weight", "self_attn.q_proj.weight", dim::queries, dim::width, rotated),
    matrix(key, "attn_k.weight", "self_attn.k_proj.weight", dim::keys, dim::width, rotated),
    matrix(value, "attn_v.weight", "self_attn.v_proj.weight", dim::keys, dim::width),
};
constexpr tensor_row fused_qkv[] = {
    matrix(query_key_value, "attn_qkv.weight", "self_attn.qkv_proj.weight", dim::query_key_value, dim::width)};
/// Keys and values are computed from a latent vector per token. Older GGUF files store latent_keys and latent_values as
/// one tensor, attn_kv_b.weight.
constexpr tensor_row latents[] = {
    matrix(query, "attn_q.weight", "self_attn.q_proj.weight", dim::queries, dim::width, same, direct_queries),
    matrix(query_down, "attn_q_a.weight", "self_attn.q_a_proj.weight", dim::query_rank, dim::width, same,
           low_rank_queries),
    vector(query_down_norm, "attn_q_a_norm.weight", "self_attn.q_a_layernorm.weight", dim::query_rank, same,
           low_rank_queries),
    matrix(query_up, "attn_q_b.weight", "self_attn.q_b_proj.weight", dim::queries, dim::query_rank, same,
           low_rank_queries),
    matrix(latent_down, "attn_kv_a_mqa.weight", "self_attn.kv_a_proj_with_mqa.weight", dim::latent_and_rotated,
           dim::width),
    vector(latent_norm, "attn_kv_a_norm.weight", "self_attn.kv_a_layernorm.weight", dim::latent_rank),
    many(role::latent_keys, "attn_k_b.weight", "self_attn.kv_b_proj.weight", dim::latent_rank, dim::plain_dim,
         dim::heads, hub_form::latent_keys),
    many(role::latent_values, "attn_v_b.weight", "self_attn.kv_b_proj.weight", dim::value_dim, dim::latent_rank,
         dim::heads, hub_form::latent_values),
};
/// The output projection of attention, and the biases of its inputs.
constexpr tensor_row attention_output_rows[] = {
    matrix(attention_output, "attn_output.weight", "self_attn.o_proj.weight", dim::width, dim::attended),
    vector(query_bias, "attn_q.bias", "self_attn.q_proj.bias", dim::queries, rotated, qkv_biases),
    vector(key_bias, "attn_k.bias", "self_attn.k_proj.bias", dim::keys, rotated, qkv_biases),
    vector(value_bias, "attn_v.bias", "self_attn.v_proj.bias", dim::keys, same, qkv_biases),
};
constexpr tensor_row shared_head_norms[] = {
    vector(query_norm, "attn_q_norm.weight", "self_attn.q_norm.weight", dim::head_dim, norm),
    vector(key_norm, "attn_k_norm.weight", "self_attn.k_norm.weight", dim::head_dim, norm),
};

/// Attention whose output is gated, in layers that are not recurrent.
constexpr tensor_row gated_attention[] = {
    matrix(query, "attn_q.weight", "self_attn.q_proj.weight", dim::queries_and_gates, dim::width, same, attention),
    matrix(key, "attn_k.weight", "self_attn.k_proj.weight", dim::keys, dim::width, same, attention),
    matrix(value, "attn_v.weight", "self_attn.v_proj.weight", dim::keys, dim::width, same, attention),
    matrix(attention_output, "attn_output.weight", "self_attn.o_proj.weight", dim::width, dim::attended, same,
           attention),
    vector(query_norm, "attn_q_norm.weight", "self_attn.q_norm.weight", dim::head_dim, norm, attention),
    vector(key_norm, "attn_k_norm.weight", "self_attn.k_norm.weight", dim::head_dim, norm, attention),
};
constexpr tensor_row delta_inputs[] = {
    matrix(delta_input, "attn_qkv.weight", "linear_attn.in_proj_qkv.weight", dim::delta_channels, dim::width,
           value_heads, recurrent),
    matrix(delta_gate, "attn_gate.weight", "linear_attn.in_proj_z.weight", dim::delta_values, dim::width, value_heads,
           recurrent),
    matrix(delta_decay_input, "ssm_alpha.weight", "linear_attn.in_proj_a.weight", dim::delta_value_heads, dim::width,
           value_heads, recurrent),
    matrix(delta_strength, "ssm_beta.weight", "linear_attn.in_proj_b.weight", dim::delta_value_heads, dim::width,
           value_heads, recurrent),
};
/// Older GGUF files have the first two as one tensor, ssm_in.weight, with the rows of each key head together.
constexpr tensor_row packed_delta_inputs[] = {
    matrix(delta_input, "attn_qkv.weight", "linear_attn.in_proj_qkvz.weight", dim::delta_channels, dim::width,
           key_groups, recurrent),
    matrix(delta_gate, "attn_gate.weight", "linear_attn.in_proj_qkvz.weight", dim::delta_values, dim::width, key_groups,
           recurrent),
    matrix(delta_strength_and_decay_input, "ssm_ba.weight", "linear_attn.in_proj_ba.weight",
           dim::delta_value_heads_twice, dim::width, same, recurrent),
};
constexpr tensor_row delta_net[] = {
    matrix(short_convolution, "ssm_conv1d.weight", "linear_attn.conv1d.weight", dim::delta_channels, dim::taps,
           convolution, recurrent),
    vector(delta_decay_bias, "ssm_dt.bias", "linear_attn.dt_bias", dim::delta_value_heads, value_heads, recurrent),
    vector(delta_decay, "ssm_a", "linear_attn.A_log", dim::delta_value_heads, decay, recurrent),
    vector(delta_norm, "ssm_norm.weight", "linear_attn.norm.weight", dim::delta_head_dim, same, recurrent),
    matrix(state_output, "ssm_out.weight", "linear_attn.out_proj.weight", dim::width, dim::delta_values,
           value_head_columns, recurrent),
};
/// Source: Gloeckle et al., "Better & Faster Large Language Models via Multi-token Prediction" (2024); the form is
/// section 2.2 of DeepSeek-AI, "DeepSeek-V3 Technical Report" (2024).
constexpr tensor_row qwen_mtp[] = {
    matrix(mtp_input, "nextn.eh_proj.weight", "fc.weight", dim::width, dim::width_twice),
    vector(mtp_embedding_norm, "nextn.enorm.weight", "pre_fc_norm_embedding.weight", dim::width, norm),
    vector(mtp_state_norm, "nextn.hnorm.weight", "pre_fc_norm_hidden.weight", dim::width, norm),
    vector(mtp_output_norm, "nextn.shared_head_norm.weight", "norm.weight", dim::width, norm),
};
/// LFM2: attention as in Qwen3 under other names, in layers that are not recurrent, and short convolutions in the
/// others.
constexpr tensor_row lfm2_input_norm[] = {
    vector(attention_norm, "attn_norm.weight", "operator_norm.weight", dim::width)};
constexpr tensor_row lfm2_attention[] = {
    matrix(query, "attn_q.weight", "self_attn.q_proj.weight", dim::queries, dim::width, same, attention),
    matrix(key, "attn_k.weight", "self_attn.k_proj.weight", dim::keys, dim::width, same, attention),
    matrix(value, "attn_v.weight", "self_attn.v_proj.weight", dim::keys, dim::width, same, attention),
    matrix(attention_output, "attn_output.weight", "self_attn.out_proj.weight", dim::width, dim::attended, same,
           attention),
    vector(query_norm, "attn_q_norm.weight", "self_attn.q_layernorm.weight", dim::head_dim, same, attention),
    vector(key_norm, "attn_k_norm.weight", "self_attn.k_layernorm.weight", dim::head_dim, same, attention),
};
constexpr tensor_row lfm2_convolution[] = {
    matrix(convolution_input, "shortconv.in_proj.weight", "conv.in_proj.weight", dim::width_three_times, dim::width,
           same, recurrent),
    matrix(short_convolution, "shortconv.conv.weight", "conv.conv.weight", dim::width, dim::taps, convolution,
           recurrent),
    matrix(state_output, "shortconv.out_proj.weight", "conv.out_proj.weight", dim::width, dim::width, same, recurrent),
};
constexpr tensor_row lfm2_feed_forward[] = {
    vector(feed_forward_norm, "ffn_norm.weight", "ffn_norm.weight", dim::width),
    matrix(gate, "ffn_gate.weight", "feed_forward.w1.weight", dim::feed_forward, dim::width, same, dense),
    matrix(up, "ffn_up.weight", "feed_forward.w3.weight", dim::feed_forward, dim::width, same, dense),
    matrix(down, "ffn_down.weight", "feed_forward.w2.weight", dim::width, dim::feed_forward, same, dense),
};
constexpr tensor_row lfm2_mixture[] = {
    matrix(router, "ffn_gate_inp.weight", "feed_forward.gate.weight", dim::experts, dim::width, same, mixture),
    many(expert_gates, "ffn_gate_exps.weight", "feed_forward.experts.*.w1.weight", dim::expert_feed_forward, dim::width,
         dim::experts, each, mixture),
    many(expert_ups, "ffn_up_exps.weight", "feed_forward.experts.*.w3.weight", dim::expert_feed_forward, dim::width,
         dim::experts, each, mixture),
    many(expert_downs, "ffn_down_exps.weight", "feed_forward.experts.*.w2.weight", dim::width, dim::expert_feed_forward,
         dim::experts, each, mixture),
    vector(role::selection_bias, "exp_probs_b.bias", "feed_forward.expert_bias", dim::experts, same,
           presence::selection_bias),
};
/// Files call the last norm that of the embedding.
constexpr tensor_row lfm2_outer[] = {
    matrix(token_embedding, "token_embd.weight", "model.embed_tokens.weight", dim::vocabulary, dim::width),
    vector(output_norm, "token_embd_norm.weight", "model.embedding_norm.weight", dim::width),
    matrix(output, "output.weight", "lm_head.weight", dim::vocabulary, dim::width, same, untied),
};
constexpr tensor_row middle_norm[] = {
    vector(feed_forward_norm, "post_attention_norm.weight", "post_attention_layernorm.weight", dim::width, norm)};

constexpr tensor_row gated_feed_forward[] = {
    matrix(gate, "ffn_gate.weight", "mlp.gate_proj.weight", dim::feed_forward, dim::width, same, dense),
    matrix(up, "ffn_up.weight", "mlp.up_proj.weight", dim::feed_forward, dim::width, same, dense),
    matrix(down, "ffn_down.weight", "mlp.down_proj.weight", dim::width, dim::feed_forward, same, dense),
};
constexpr tensor_row fused_feed_forward[] = {
    matrix(up, "ffn_up.weight", "mlp.gate_up_proj.weight", dim::gate_and_up, dim::width, same, dense),
    matrix(down, "ffn_down.weight", "mlp.down_proj.weight", dim::width, dim::feed_forward, same, dense),
};

constexpr tensor_row qwen_mixture[] = {
    matrix(router, "ffn_gate_inp.weight", "mlp.gate.weight", dim::experts, dim::width, same, mixture),
    many(expert_gates, "ffn_gate_exps.weight", "mlp.experts.*.gate_proj.weight", dim::expert_feed_forward, dim::width,
         dim::experts, each, mixture),
    many(expert_ups, "ffn_up_exps.weight", "mlp.experts.*.up_proj.weight", dim::expert_feed_forward, dim::width,
         dim::experts, each, mixture),
    many(expert_downs, "ffn_down_exps.weight", "mlp.experts.*.down_proj.weight", dim::width, dim::expert_feed_forward,
         dim::experts, each, mixture),
};
/// Folders have the gates of all experts, followed by the ups, in one tensor.
constexpr tensor_row qwen_stacked_mixture[] = {
    matrix(router, "ffn_gate_inp.weight", "mlp.gate.weight", dim::experts, dim::width, same, mixture),
    many(expert_gates, "ffn_gate_exps.weight", "mlp.experts.gate_up_proj", dim::expert_feed_forward, dim::width,
         dim::experts, stacked, mixture, 0, 2),
    many(expert_ups, "ffn_up_exps.weight", "mlp.experts.gate_up_proj", dim::expert_feed_forward, dim::width,
         dim::experts, stacked, mixture, 1, 2),
    many(expert_downs, "ffn_down_exps.weight", "mlp.experts.down_proj", dim::width, dim::expert_feed_forward,
         dim::experts, stacked, mixture),
};
constexpr tensor_row qwen_shared_expert[] = {
    vector(shared_router, "ffn_gate_inp_shexp.weight", "mlp.shared_expert_gate.weight", dim::width, one_row,
           shared_expert),
    matrix(shared_gate, "ffn_gate_shexp.weight", "mlp.shared_expert.gate_proj.weight", dim::shared_feed_forward,
           dim::width, same, shared_expert),
    matrix(shared_up, "ffn_up_shexp.weight", "mlp.shared_expert.up_proj.weight", dim::shared_feed_forward, dim::width,
           same, shared_expert),
    matrix(shared_down, "ffn_down_shexp.weight", "mlp.shared_expert.down_proj.weight", dim::width,
           dim::shared_feed_forward, same, shared_expert),
};
constexpr tensor_row deepseek_shared_expert[] = {
    vector(role::selection_bias, "exp_probs_b.bias", "mlp.gate.e_score_correction_bias", dim::experts, same,
           presence::selection_bias),
    matrix(shared_gate, "ffn_gate_shexp.weight", "mlp.shared_experts.gate_proj.weight", dim::shared_feed_forward,
           dim::width, same, shared_expert),
    matrix(shared_up, "ffn_up_shexp.weight", "mlp.shared_experts.up_proj.weight", dim::shared_feed_forward, dim::width,
           same, shared_expert),
    matrix(shared_down, "ffn_down_shexp.weight", "mlp.shared_experts.down_proj.weight", dim::width,
           dim::shared_feed_forward, same, shared_expert),
};
constexpr tensor_row mixtral_mixture[] = {
    matrix(router, "ffn_gate_inp.weight", "block_sparse_moe.gate.weight", dim::experts, dim::width, same, mixture),
    many(expert_gates, "ffn_gate_exps.weight", "block_sparse_moe.experts.*.w1.weight", dim::expert_feed_forward,
         dim::width, dim::experts, each, mixture),
    many(expert_ups, "ffn_up_exps.weight", "block_sparse_moe.experts.*.w3.weight", dim::expert_feed_forward, dim::width,
         dim::experts, each, mixture),
    many(expert_downs, "ffn_down_exps.weight", "block_sparse_moe.experts.*.w2.weight", dim::width,
         dim::expert_feed_forward, dim::experts, each, mixture),
};
/// Experts are matrices in one tensor, the gates followed by the ups.
constexpr tensor_row granite_mixture[] = {
    matrix(router, "ffn_gate_inp.weight", "block_sparse_moe.router.layer.weight", dim::experts, dim::width, same,
           mixture),
    many(expert_gates, "ffn_gate_exps.weight", "block_sparse_moe.input_linear.weight", dim::expert_feed_forward,
         dim::width, dim::experts, stacked, mixture, 0, 2),
    many(expert_ups, "ffn_up_exps.weight", "block_sparse_moe.input_linear.weight", dim::expert_feed_forward, dim::width,
         dim::experts, stacked, mixture, 1, 2),
    many(expert_downs, "ffn_down_exps.weight", "block_sparse_moe.output_linear.weight", dim::width,
         dim::expert_feed_forward, dim::experts, stacked, mixture),
};
/// Files give the feed-forward norm the name that Gemma's files use for another norm.
constexpr tensor_row gpt_oss_middle[] = {
    vector(attention_output_bias, "attn_output.bias", "self_attn.o_proj.bias", dim::width),
    vector(sinks, "attn_sinks.weight", "self_attn.sinks", dim::heads),
    vector(feed_forward_norm, "post_attention_norm.weight", "post_attention_layernorm.weight", dim::width, norm),
};
constexpr tensor_row gpt_oss_mixture[] = {
    matrix(router, "ffn_gate_inp.weight", "mlp.router.weight", dim::experts, dim::width),
    vector(router_bias, "ffn_gate_inp.bias", "mlp.router.bias", dim::experts),
    many(expert_gates, "ffn_gate_exps.weight", "mlp.experts.gate_up_proj", dim::expert_feed_forward, dim::width,
         dim::experts, interleaved, always, 0, 2),
    many(expert_ups, "ffn_up_exps.weight", "mlp.experts.gate_up_proj", dim::expert_feed_forward, dim::width,
         dim::experts, interleaved, always, 1, 2),
    many(expert_downs, "ffn_down_exps.weight", "mlp.experts.down_proj", dim::width, dim::expert_feed_forward,
         dim::experts, interleaved),
    many(expert_gate_biases, "ffn_gate_exps.bias", "mlp.experts.gate_up_proj_bias", dim::expert_feed_forward, dim::none,
         dim::experts, interleaved, always, 0, 2),
    many(expert_up_biases, "ffn_up_exps.bias", "mlp.experts.gate_up_proj_bias", dim::expert_feed_forward, dim::none,
         dim::experts, interleaved, always, 1, 2),
    many(expert_down_biases, "ffn_down_exps.bias", "mlp.experts.down_proj_bias", dim::width, dim::none, dim::experts,
         interleaved),
};

constexpr tensor_row gemma_norms[] = {
    vector(attention_post_norm, "post_attention_norm.weight", "post_attention_layernorm.weight", dim::width, norm),
    vector(feed_forward_norm, "ffn_norm.weight", "pre_feedforward_layernorm.weight", dim::width, norm),
    vector(feed_forward_post_norm, "post_ffw_norm.weight", "post_feedforward_layernorm.weight", dim::width, norm),
};
/// Gemma 4: the last layers have queries only. A mixture stands beside a dense part, each with norms of its own.
constexpr tensor_row gemma4_attention[] = {
    matrix(query, "attn_q.weight", "self_attn.q_proj.weight", dim::queries, dim::width),
    matrix(key, "attn_k.weight", "self_attn.k_proj.weight", dim::keys, dim::width, same, own_keys),
    matrix(value, "attn_v.weight", "self_attn.v_proj.weight", dim::keys, dim::width, same, own_values),
    matrix(attention_output, "attn_output.weight", "self_attn.o_proj.weight", dim::width, dim::attended),
    vector(query_norm, "attn_q_norm.weight", "self_attn.q_norm.weight", dim::head_dim),
    vector(key_norm, "attn_k_norm.weight", "self_attn.k_norm.weight", dim::head_dim, same, own_keys),
};
constexpr tensor_row gemma4_feed_forward[] = {
    matrix(gate, "ffn_gate.weight", "mlp.gate_proj.weight", dim::feed_forward, dim::width),
    matrix(up, "ffn_up.weight", "mlp.up_proj.weight", dim::feed_forward, dim::width),
    matrix(down, "ffn_down.weight", "mlp.down_proj.weight", dim::width, dim::feed_forward),
    vector(dense_post_norm, "post_ffw_norm_1.weight", "post_feedforward_layernorm_1.weight", dim::width, same, mixture),
    vector(expert_norm, "pre_ffw_norm_2.weight", "pre_feedforward_layernorm_2.weight", dim::width, same, mixture),
    vector(expert_post_norm, "post_ffw_norm_2.weight", "post_feedforward_layernorm_2.weight", dim::width, same,
           mixture),
    matrix(router, "ffn_gate_inp.weight", "router.proj.weight", dim::experts, dim::width, same, mixture),
    vector(router_scale, "ffn_gate_inp.scale", "router.scale", dim::width, same, mixture),
    many(expert_gates, "ffn_gate_exps.weight", "experts.gate_up_proj", dim::expert_feed_forward, dim::width,
         dim::experts, stacked, mixture, 0, 2),
    many(expert_ups, "ffn_up_exps.weight", "experts.gate_up_proj", dim::expert_feed_forward, dim::width, dim::experts,
         stacked, mixture, 1, 2),
    many(expert_downs, "ffn_down_exps.weight", "experts.down_proj", dim::width, dim::expert_feed_forward, dim::experts,
         stacked, mixture),
    vector(expert_scales, "ffn_down_exps.scale", "router.per_expert_scale", dim::experts, same, mixture),
};
constexpr tensor_row gemma4_layer_input[] = {
    matrix(layer_input_gate, "inp_gate.weight", "per_layer_input_gate.weight", dim::layer_input, dim::width, same,
           presence::layer_input),
    matrix(layer_input_projection, "proj.weight", "per_layer_projection.weight", dim::width, dim::layer_input, same,
           presence::layer_input),
    vector(layer_input_post_norm, "post_norm.weight", "post_per_layer_input_norm.weight", dim::width, same,
           presence::layer_input),
    vector(layer_scale, "layer_output_scale.weight", "layer_scalar", dim::one),
};
constexpr tensor_row gemma4_outer[] = {
    matrix(token_embedding, "token_embd.weight", "model.embed_tokens.weight", dim::vocabulary, dim::width),
    matrix(layer_embedding, "per_layer_token_embd.weight", "model.embed_tokens_per_layer.weight", dim::vocabulary,
           dim::layer_inputs, same, presence::layer_input),
    matrix(layer_projection, "per_layer_model_proj.weight", "model.per_layer_model_projection.weight",
           dim::layer_inputs, dim::width, same, presence::layer_input),
    vector(layer_projection_norm, "per_layer_proj_norm.weight", "model.per_layer_projection_norm.weight",
           dim::layer_input, same, presence::layer_input),
    vector(output_norm, "output_norm.weight", "model.norm.weight", dim::width),
    matrix(output, "output.weight", "lm_head.weight", dim::vocabulary, dim::width, same, untied),
};
constexpr tensor_row glm4_norms[] = {
    vector(attention_post_norm, "post_attention_norm.weight", "post_self_attn_layernorm.weight", dim::width, norm),
    vector(feed_forward_norm, "ffn_norm.weight", "post_attention_layernorm.weight", dim::width, norm),
    vector(feed_forward_post_norm, "post_ffw_norm.weight", "post_mlp_layernorm.weight", dim::width, norm),
};
/// Queries of a row are normalized together, and so are its keys; the input of the layer's halves is not.
constexpr tensor_row olmo_norms[] = {
    vector(query_norm, "attn_q_norm.weight", "self_attn.q_norm.weight", dim::queries),
    vector(key_norm, "attn_k_norm.weight", "self_attn.k_norm.weight", dim::keys),
    vector(attention_post_norm, "post_attention_norm.weight", "post_attention_layernorm.weight", dim::width, norm),
    vector(feed_forward_post_norm, "post_ffw_norm.weight", "post_feedforward_layernorm.weight", dim::width, norm),
};
/// Only larger models have these norms.
constexpr tensor_row command_r_head_norms[] = {
    many(query_norm, "attn_q_norm.weight", "self_attn.q_norm.weight", dim::head_dim, dim::none, dim::heads, same,
         own_head_norms),
    many(key_norm, "attn_k_norm.weight", "self_attn.k_norm.weight", dim::head_dim, dim::none, dim::kv_heads, same,
         own_head_norms),
};
constexpr tensor_row starcoder_input_norm[] = {
    vector(attention_norm, "attn_norm.weight", "input_layernorm.weight", dim::width, norm),
    vector(attention_norm_shift, "attn_norm.bias", "input_layernorm.bias", dim::width),
};
constexpr tensor_row starcoder_feed_forward[] = {
    vector(feed_forward_norm, "ffn_norm.weight", "post_attention_layernorm.weight", dim::width, norm),
    vector(feed_forward_norm_shift, "ffn_norm.bias", "post_attention_layernorm.bias", dim::width),
    vector(attention_output_bias, "attn_output.bias", "self_attn.o_proj.bias", dim::width),
    matrix(up, "ffn_up.weight", "mlp.c_fc.weight", dim::feed_forward, dim::width),
    vector(up_bias, "ffn_up.bias", "mlp.c_fc.bias", dim::feed_forward),
    matrix(down, "ffn_down.weight", "mlp.c_proj.weight", dim::width, dim::feed_forward),
    vector(down_bias, "ffn_down.bias", "mlp.c_proj.bias", dim::width),
};

// ---- layers --------------------------------------------------------------------------------------------------------

constexpr block plain_layer[] = {input_norm, separate_qkv, attention_output_rows, feed_forward_norm_rows,
                                 gated_feed_forward};
constexpr block llama_layer[] = {input_norm,         separate_qkv,   attention_output_rows, feed_forward_norm_rows,
                                 gated_feed_forward, mixtral_mixture};
constexpr block qwen3_layer[] = {input_norm,        separate_qkv,           attention_output_rows,
                                 shared_head_norms, feed_forward_norm_rows, gated_feed_forward};
constexpr block qwen2moe_layer[] = {input_norm,   separate_qkv,      attention_output_rows, feed_forward_norm_rows,
                                    qwen_mixture, qwen_shared_expert};
constexpr block qwen3moe_layer[] = {input_norm,        separate_qkv,           attention_output_rows,
                                    shared_head_norms, feed_forward_norm_rows, qwen_mixture};
constexpr block granitemoe_layer[] = {input_norm, separate_qkv, attention_output_rows, feed_forward_norm_rows,
                                      granite_mixture};
constexpr block gemma2_layer[] = {input_norm, separate_qkv, attention_output_rows, gemma_norms, gated_feed_forward};
constexpr block gemma3_layer[] = {input_norm,        separate_qkv, attention_output_rows,
                                  shared_head_norms, gemma_norms,  gated_feed_forward};
constexpr block gemma4_layer[] = {input_norm, gemma4_attention, gemma_norms, gemma4_feed_forward, gemma4_layer_input};
constexpr block gpt_oss_layer[] = {input_norm, separate_qkv, attention_output_rows, gpt_oss_middle, gpt_oss_mixture};
constexpr block command_r_layer[] = {input_norm, separate_qkv, attention_output_rows, command_r_head_norms,
                                     gated_feed_forward};
constexpr block deepseek2_layer[] = {input_norm,         latents,      attention_output_rows, feed_forward_norm_rows,
                                     gated_feed_forward, qwen_mixture, deepseek_shared_expert};
constexpr block glm4_layer[] = {input_norm, separate_qkv, attention_output_rows, glm4_norms, fused_feed_forward};
constexpr block olmo2_layer[] = {separate_qkv, attention_output_rows, olmo_norms, gated_feed_forward};
constexpr block phi3_layer[] = {input_norm, fused_qkv, attention_output_rows, feed_forward_norm_rows,
                                fused_feed_forward};
constexpr block qwen35_layer[] = {input_norm, gated_attention, delta_inputs,
                                  delta_net,  middle_norm,     gated_feed_forward};
constexpr block qwen35moe_layer[] = {input_norm,  gated_attention,      delta_inputs,      delta_net,
                                     middle_norm, qwen_stacked_mixture, qwen_shared_expert};
constexpr block qwen3next_layer[] = {input_norm,  gated_attention, packed_delta_inputs, delta_net,
                                     middle_norm, qwen_mixture,    qwen_shared_expert};
constexpr block lfm2_layer[] = {lfm2_input_norm, lfm2_attention, lfm2_convolution, lfm2_feed_forward};
constexpr block lfm2moe_layer[] = {lfm2_input_norm, lfm2_attention, lfm2_convolution, lfm2_feed_forward, lfm2_mixture};
constexpr block starcoder2_layer[] = {starcoder_input_norm, separate_qkv, attention_output_rows,
                                      starcoder_feed_forward};

// ---- families ------------------------------------------------------------------------------------------------------

constexpr hub_class llama_classes[] = {{"LlamaForCausalLM"},
                                       {.name = "MistralForCausalLM", .has_windows = true},
                                       {.name = "MixtralForCausalLM", .has_windows = true, .has_experts = true}};
constexpr hub_class mistral3_classes[] = {{"Ministral3ForCausalLM"}};
constexpr hub_class qwen2_classes[] = {{"Qwen2ForCausalLM"}};
constexpr hub_class qwen3_classes[] = {{"Qwen3ForCausalLM"}};
constexpr hub_class qwen35_classes[] = {{"Qwen3_5ForCausalLM"}};
constexpr hub_class qwen35moe_classes[] = {{.name = "Qwen3_5MoeForCausalLM", .has_experts = true}};
constexpr hub_class qwen3next_classes[] = {{.name = "Qwen3NextForCausalLM", .has_experts = true}};
constexpr hub_class lfm2_classes[] = {{"Lfm2ForCausalLM"}};
constexpr hub_class lfm2moe_classes[] = {{.name = "Lfm2MoeForCausalLM", .has_experts = true, .has_sigmoid = true}};
constexpr hub_class qwen2moe_classes[] = {{.name = "Qwen2MoeForCausalLM", .has_experts = true}};
constexpr hub_class qwen3moe_classes[] = {{.name = "Qwen3MoeForCausalLM", .has_experts = true}};
constexpr hub_class mellum_classes[] = {{.name = "MellumForCausalLM", .has_windows = true, .has_experts = true}};
constexpr hub_class granite_classes[] = {{"GraniteForCausalLM"}};
constexpr hub_class granitemoe_classes[] = {{.name = "GraniteMoeForCausalLM", .has_experts = true}};
constexpr hub_class gemma_classes[] = {{"GemmaForCausalLM"}};
constexpr hub_class gemma2_classes[] = {{.name = "Gemma2ForCausalLM", .has_windows = true}};
constexpr hub_class gemma3_classes[] = {{.name = "Gemma3ForCausalLM", .has_windows = true}};
constexpr hub_class gemma4_classes[] = {{.name = "Gemma4ForCausalLM", .has_windows = true, .has_experts = true}};
constexpr hub_class gpt_oss_classes[] = {{.name = "GptOssForCausalLM", .has_windows = true, .has_experts = true}};
constexpr hub_class command_r_classes[] = {{"CohereForCausalLM"}};
constexpr hub_class deepseek2_classes[] = {
    {.name = "DeepseekV2ForCausalLM", .has_experts = true},
    {.name = "DeepseekV3ForCausalLM", .has_experts = true, .has_sigmoid = true},
    {.name = "Glm4MoeLiteForCausalLM", .has_experts = true, .has_sigmoid = true}};
constexpr hub_class glm4_classes[] = {{"Glm4ForCausalLM"}};
constexpr hub_class olmo2_classes[] = {{"Olmo2ForCausalLM"}, {.name = "Olmo3ForCausalLM", .has_windows = true}};
constexpr hub_class phi3_classes[] = {{.name = "Phi3ForCausalLM", .has_windows = true}};
constexpr hub_class starcoder2_classes[] = {{.name = "Starcoder2ForCausalLM", .has_windows = true}};

constexpr factor_key mistral3_factors[] = {
    {"attention.temperature_scale", "", &model_shape::temperature_scale, 0, factor_key::rule::optional}};
constexpr factor_key granite_factors[] = {
    {"embedding_scale", "embedding_multiplier", &model_shape::embedding_scale, 1},
    {"residual_scale", "residual_multiplier", &model_shape::residual_scale, 1},
    {"attention.scale", "attention_multiplier", &model_shape::attention_scale, 0, factor_key::rule::scale},
    {"logit_scale", "logits_scaling", &model_shape::logit_scale, 1},
};
constexpr factor_key gemma2_factors[] = {
    {"attention.scale", "", &model_shape::attention_scale, 0, factor_key::rule::scale},
    {"attn_logit_softcapping", "attn_logit_softcapping", &model_shape::attention_cap, 50, factor_key::rule::optional},
    {"final_logit_softcapping", "final_logit_softcapping", &model_shape::logit_cap, 30, factor_key::rule::optional},
};
constexpr factor_key gemma3_factors[] = {
    {"attention.scale", "", &model_shape::attention_scale, 0, factor_key::rule::scale},
    {"final_logit_softcapping", "final_logit_softcapping", &model_shape::logit_cap, 0, factor_key::rule::optional},
};
constexpr factor_key gemma4_factors[] = {
    {"attention.scale", "", &model_shape::attention_scale, 1},
    {"final_logit_softcapping", "final_logit_softcapping", &model_shape::logit_cap, 0, factor_key::rule::optional},
};
constexpr factor_key command_r_factors[] = {{"logit_scale", "logit_scale", &model_shape::logit_scale}};

constexpr family table[] = {
    // With experts this is Mixtral.
    {.name = "llama",
     .hub = llama_classes,
     .layer = llama_layer,
     .pairs = rope_pairs::adjacent,
     .hub_pairs_apart = true,
     .window_period = 0,
     .experts_key = "num_local_experts",
     .normalises_experts = true},
    {.name = "mistral3",
     .hub = mistral3_classes,
     .layer = plain_layer,
     .pairs = rope_pairs::adjacent,
     .hub_pairs_apart = true,
     .factors = mistral3_factors,
     .yarn_grows = yarn_growth::ratio},
    {.name = "qwen2", .hub = qwen2_classes, .layer = plain_layer, .qkv_biases = true, .window_unless_denied = false},
    {.name = "qwen3",
     .hub = qwen3_classes,
     .layer = qwen3_layer,
     .head_norms = head_norm::shared,
     .window_unless_denied = false},
    // Three of four layers keep a state instead of all tokens.
    {.name = "qwen35",
     .hub = qwen35_classes,
     .layer = qwen35_layer,
     .mtp = qwen_mtp,
     .hub_norms_less_one = true,
     .head_norms = head_norm::shared,
     .gates_attention = true,
     .attention_period = 4,
     .window_unless_denied = false,
     .hub_rotated = 0.25F},
    {.name = "qwen35moe",
     .hub = qwen35moe_classes,
     .layer = qwen35moe_layer,
     .mtp = qwen_mtp,
     .hub_norms_less_one = true,
     .head_norms = head_norm::shared,
     .gates_attention = true,
     .attention_period = 4,
     .window_unless_denied = false,
     .hub_rotated = 0.25F,
     .experts_key = "num_experts",
     .needs_experts = true,
     .normalises_experts = true},
    {.name = "qwen3next",
     .hub = qwen3next_classes,
     .layer = qwen3next_layer,
     .mtp = qwen_mtp,
     .hub_norms_less_one = true,
     .head_norms = head_norm::shared,
     .gates_attention = true,
     .attention_period = 4,
     .groups_value_heads = true,
     .window_unless_denied = false,
     .hub_rotated = 0.25F,
     .experts_key = "num_experts",
     .needs_experts = true,
     .normalises_experts = true},
    {.name = "lfm2",
     .hub = lfm2_classes,
     .layer = lfm2_layer,
     .outer = lfm2_outer,
     .head_norms = head_norm::shared,
     .convolves = true,
     .epsilon_key = "norm_eps",
     .tied_unless_denied = true},
    {.name = "lfm2moe",
     .hub = lfm2moe_classes,
     .layer = lfm2moe_layer,
     .outer = lfm2_outer,
     .head_norms = head_norm::shared,
     .convolves = true,
     .epsilon_key = "norm_eps",
     .tied_unless_denied = true,
     .experts_key = "num_experts",
     .needs_experts = true,
     .says_mixture = true,
     .normalises_experts = true},
    {.name = "qwen2moe",
     .hub = qwen2moe_classes,
     .layer = qwen2moe_layer,
     .qkv_biases = true,
     .window_unless_denied = false,
     .experts_key = "num_experts",
     .needs_experts = true},
    {.name = "qwen3moe",
     .hub = qwen3moe_classes,
     .layer = qwen3moe_layer,
     .head_norms = head_norm::shared,
     .window_unless_denied = false,
     .experts_key = "num_experts",
     .needs_experts = true,
     .normalises_experts = true},
    // Layers without a window may be rotated by YaRN; layers with a window never are.
    {.name = "mellum",
     .hub = mellum_classes,
     .layer = qwen3moe_layer,
     .head_norms = head_norm::shared,
     .window_period = 4,
     .unscaled_windows = true,
     .experts_key = "num_experts",
     .needs_experts = true,
     .normalises_experts = true},
    {.name = "granite",
     .hub = granite_classes,
     .layer = plain_layer,
     .pairs = rope_pairs::adjacent,
     .hub_pairs_apart = true,
     .factors = granite_factors,
     .divides_logits = true,
     .window_unless_denied = false},
    {.name = "granitemoe",
     .hub = granitemoe_classes,
     .layer = granitemoe_layer,
     .pairs = rope_pairs::adjacent,
     .hub_pairs_apart = true,
     .factors = granite_factors,
     .divides_logits = true,
     .window_unless_denied = false,
     .experts_key = "num_local_experts",
     .needs_experts = true,
     .normalises_experts = true},
    {.name = "gemma",
     .hub = gemma_classes,
     .layer = plain_layer,
     .hub_norms_less_one = true,
     .activation = feed_forward_kind::gated_gelu,
     .tied_unless_denied = true,
     .scales_embedding = true,
     .window_unless_denied = false},
    {.name = "gemma2",
     .hub = gemma2_classes,
     .layer = gemma2_layer,
     .hub_norms_less_one = true,
     .activation = feed_forward_kind::gated_gelu,
     .tied_unless_denied = true,
     .scales_embedding = true,
     .factors = gemma2_factors,
     .wide_score_layers = 46,
     .window_period = 2,
     .usual_window = 4096},
    {.name = "gemma3",
     .hub = gemma3_classes,
     .layer = gemma3_layer,
     .hub_norms_less_one = true,
     .head_norms = head_norm::shared,
     .activation = feed_forward_kind::gated_gelu,
     .tied_unless_denied = true,
     .scales_embedding = true,
     .factors = gemma3_factors,
     .wide_score_layers = 62,
     .window_period = 6,
     .window_rope_base = 10000},
    {.name = "gemma4",
     .hub = gemma4_classes,
     .layer = gemma4_layer,
     .outer = gemma4_outer,
     .head_norms = head_norm::shared,
     .varies_layers = true,
     .normalises_values = true,
     .activation = feed_forward_kind::gated_gelu,
     .tied_unless_denied = true,
     .scales_embedding = true,
     .factors = gemma4_factors,
     .window_period = 6,
     .needs_window = true,
     .window_rope_base = 10000,
     .experts_key = "num_experts",
     .normalises_experts = true},
    {.name = "gpt-oss",
     .hub = gpt_oss_classes,
     .layer = gpt_oss_layer,
     .activation = feed_forward_kind::clamped_swiglu,
     .qkv_biases = true,
     .window_period = 2,
     .needs_window = true,
     .yarn_whole_pairs = false,
     .experts_key = "num_local_experts",
     .needs_experts = true,
     .normalises_experts = true,
     .gates = gating::softmax_of_chosen},
    {.name = "command-r",
     .hub = command_r_classes,
     .layer = command_r_layer,
     .pairs = rope_pairs::adjacent,
     .norm = norm_kind::layer,
     .epsilon_key = "layer_norm_eps",
     .tied_unless_denied = true,
     .factors = command_r_factors},
    {.name = "deepseek2",
     .hub = deepseek2_classes,
     .layer = deepseek2_layer,
     .pairs = rope_pairs::adjacent,
     .window_unless_denied = false,
     .yarn_grows = yarn_growth::scores,
     .experts_key = "n_routed_experts",
     .needs_experts = true,
     .says_mixture = true},
    {.name = "glm4", .hub = glm4_classes, .layer = glm4_layer, .pairs = rope_pairs::adjacent, .hub_rotated = 0.5F},
    // With windows this is OLMo 3.
    {.name = "olmo2",
     .hub = olmo2_classes,
     .layer = olmo2_layer,
     .head_norms = head_norm::row,
     .window_period = 4,
     .unscaled_windows = true},
    {.name = "phi3",
     .hub = phi3_classes,
     .layer = phi3_layer,
     .window_period = 0,
     .may_have_long_rope = true,
     .hub_rotated = 1},
    {.name = "starcoder2",
     .hub = starcoder2_classes,
     .layer = starcoder2_layer,
     .norm = norm_kind::layer,
     .activation = feed_forward_kind::gelu,
     .epsilon_key = "norm_epsilon",
     .qkv_biases = true,
     .tied_unless_denied = true,
     .window_period = 0},
};

}  // namespace

namespace {
template<class Is>
bool any_row(const family& f, Is is) {
  return std::ranges::any_of(f.layer, [&](block some) { return std::ranges::any_of(some, is); });
}
}  // namespace

bool family::has(role r) const {
  return any_row(*this, [r](const tensor_row& t) { return t.is == r; });
}
bool family::may_have_own_head_norms() const {
  return any_row(*this, [](const tensor_row& t) { return t.when == presence::own_head_norms; });
}

std::span<const family> families() { return table; }
std::span<const tensor_row> outer_rows() { return outer; }

const family* find_family(std::string_view name) {
  const auto it = std::ranges::find(table, name, &family::name);
  return it == std::end(table) ? nullptr : it;
}

std::string family_names() {
  std::string names;
  for (const family& f : table) names += (names.empty() ? "" : ", ") + std::string(f.name);
  return names;
}

std::vector<const family*> nearest_families(std::string_view name) {
  std::vector<const family*> nearest;
  for (const family& f : table) nearest.push_back(&f);
  const std::string_view some = name.substr(0, name_bytes_max);
  std::ranges::stable_sort(nearest, {}, [&](const family* f) { return edit_distance(some, f->name); });
  nearest.resize(3);
  return nearest;
}

}  // namespace redline::architecture
