#include "runtime/convert/output_type.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace redline::convert {
namespace {

struct named_type {
  std::string_view name;
  output_type type;
  std::uint32_t file_type;
};

constexpr auto known = std::to_array<named_type>({
    {"f32", {weight_type::f32, false}, 0},
    {"f16", {weight_type::f16, false}, 1},
    {"bf16", {weight_type::bf16, false}, 32},
    {"q8_0", {weight_type::q8_0, false}, 7},
    {"q4_0", {weight_type::q4_0, false}, 2},
    {"q4_1", {weight_type::q4_1, false}, 3},
    {"q5_0", {weight_type::q5_0, false}, 8},
    {"q5_1", {weight_type::q5_1, false}, 9},
    {"q4_k", {weight_type::q4_k, false}, 14},
    {"q5_k", {weight_type::q5_k, false}, 16},
    {"q6_k", {weight_type::q6_k, false}, 18},
    {"q2_k", {weight_type::q2_k, false}, 10},
    {"q3_k", {weight_type::q3_k, false}, 11},
    {"iq4_nl", {weight_type::iq4_nl, false}, 25},
    {"iq4_xs", {weight_type::iq4_xs, false}, 30},
    {"mxfp4", {weight_type::mxfp4, false}, 38},
    {"q4_k_m", {weight_type::q4_k, true}, 15},
    {"q5_k_m", {weight_type::q5_k, true}, 17},
});

const named_type& entry_of(const output_type& type) {
  return *std::find_if(known.begin(), known.end(), [&](const named_type& k) {
    return k.type.base == type.base && (k.type.mixture == type.mixture);
  });
}

struct type_pair {
  weight_type weights;
  gguf::tensor_type tensor;
};
constexpr auto pairs = std::to_array<type_pair>({
    {weight_type::f32, gguf::tensor_type::f32},         {weight_type::f16, gguf::tensor_type::f16},
    {weight_type::bf16, gguf::tensor_type::bf16},       {weight_type::q8_0, gguf::tensor_type::q8_0},
    {weight_type::q4_0, gguf::tensor_type::q4_0},       {weight_type::q4_1, gguf::tensor_type::q4_1},
    {weight_type::q5_0, gguf::tensor_type::q5_0},       {weight_type::q5_1, gguf::tensor_type::q5_1},
    {weight_type::q4_k, gguf::tensor_type::q4_k},       {weight_type::q5_k, gguf::tensor_type::q5_k},
    {weight_type::q6_k, gguf::tensor_type::q6_k},       {weight_type::q2_k, gguf::tensor_type::q2_k},
    {weight_type::q3_k, gguf::tensor_type::q3_k},       {weight_type::iq4_nl, gguf::tensor_type::iq4_nl},
    {weight_type::iq4_xs, gguf::tensor_type::iq4_xs},   {weight_type::mxfp4, gguf::tensor_type::mxfp4},
    {weight_type::iq2_xxs, gguf::tensor_type::iq2_xxs}, {weight_type::iq2_xs, gguf::tensor_type::iq2_xs},
    {weight_type::iq2_s, gguf::tensor_type::iq2_s},     {weight_type::iq3_xxs, gguf::tensor_type::iq3_xxs},
    {weight_type::iq3_s, gguf::tensor_type::iq3_s},     {weight_type::iq1_s, gguf::tensor_type::iq1_s},
    {weight_type::iq1_m, gguf::tensor_type::iq1_m},
});

/// The layer number in "blk.<layer>.<name>".
std::optional<std::uint32_t> layer_of(std::string_view tensor) {
  if (!tensor.starts_with("blk.")) return std::nullopt;
  std::uint32_t layer = 0;
  const auto [end, problem] = std::from_chars(tensor.data() + 4, tensor.data() + tensor.size(), layer);
  if (problem != std::errc()) return std::nullopt;
  return layer;
}

bool deserves_more(std::uint32_t layer, std::uint32_t layers) {
  const std::uint32_t eighth = layers / 8;
  return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

}  // namespace

result<output_type> output_type::parse(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto it = std::find_if(known.begin(), known.end(), [&](const named_type& k) { return k.name == lower; });
  if (it == known.end()) {
    return failure{errc::invalid_argument,
                   "type: expected one of " + output_type_names() + ", found '" + std::string(name) + "'"};
  }
  return it->type;
}

std::string output_type::name() const { return std::string(entry_of(*this).name); }
std::uint32_t output_type::file_type() const { return entry_of(*this).file_type; }

void put_type(const output_type& type, gguf::gguf_writer& to) {
  to.put_u32("general.file_type", type.file_type());
  to.put_u32("general.quantization_version", 2);
}

std::string output_type_names() {
  std::string names;
  for (const named_type& k : known) names += (names.empty() ? "" : ", ") + std::string(k.name);
  return names;
}

weight_type type_before_fallback(const output_type& wanted, const matrix_place& matrix) {
  // A mixture's routers decide what is computed, and are small.
  if (matrix.tensor.ends_with(".ffn_gate_inp.weight")) return weight_type::f32;
  // So are these of recurrent layers, whose errors in a decay multiply over thousands of tokens.
  for (const char* name :
       {".ssm_conv1d.weight", ".ssm_alpha.weight", ".ssm_beta.weight", ".ssm_ba.weight", ".shortconv.conv.weight"}) {
    if (matrix.tensor.ends_with(name)) return weight_type::f32;
  }
  if (matrix.tensor.ends_with(".bias")) return weight_type::f32;         // biases of all experts
  if (matrix.tensor.ends_with("_norm.weight")) return weight_type::f32;  // norms of all heads
  if (!wanted.mixture) return wanted.base;
  if (matrix.tensor == (matrix.tied_head ? "token_embd.weight" : "output.weight")) return weight_type::q6_k;
  const bool costly = matrix.tensor.ends_with(".attn_v.weight") || matrix.tensor.ends_with(".ffn_down.weight") ||
                      matrix.tensor.ends_with(".ffn_down_exps.weight");
  const auto layer = layer_of(matrix.tensor);
  return costly && layer && deserves_more(*layer, matrix.layers) ? weight_type::q6_k : wanted.base;
}

weight_type type_for(const output_type& wanted, const matrix_place& matrix) {
  weight_type type = type_before_fallback(wanted, matrix);
  const auto fits = [&] { return matrix.columns % kernels::block_columns(type) == 0; };
  if (!fits() && (type == weight_type::q2_k || type == weight_type::q3_k || type == weight_type::iq4_xs)) {
    type = weight_type::iq4_nl;
  }
  if (!fits() && type == weight_type::q4_k) type = weight_type::q5_0;
  if (!fits() && type == weight_type::q5_k) type = weight_type::q5_1;
  if (!fits() && type == weight_type::q6_k) type = weight_type::q8_0;
  return fits() ? type : weight_type::f16;
}

gguf::tensor_type to_tensor_type(weight_type type) {
  return std::find_if(pairs.begin(), pairs.end(), [&](const type_pair& p) { return p.weights == type; })->tensor;
}

std::optional<weight_type> to_weight_type(gguf::tensor_type type) {
  const auto it = std::find_if(pairs.begin(), pairs.end(), [&](const type_pair& p) { return p.tensor == type; });
  return it == pairs.end() ? std::nullopt : std::optional(it->weights);
}

}  // namespace redline::convert
