#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/weight_type.hpp"
#include "runtime/base/result.hpp"
#include "runtime/gguf/gguf_file.hpp"
#include "runtime/gguf/gguf_writer.hpp"

namespace redline::convert {

using kernels::weight_type;

/// How a whole model's weights are stored.
struct output_type {
  weight_type base = weight_type::q8_0;
  /// Keeps in q6_k the output head and, because their errors cost the most, the value and down projections of the first
  /// and last eighth of the layers and of every third layer in between.
  bool mixture = false;

  /// Parses "q8_0", "q4_k", ...; "q4_k_m" and "q5_k_m" are mixtures. Case is ignored.
  static result<output_type> parse(std::string_view name);
  [[nodiscard]] std::string name() const;
  /// The value of general.file_type.
  [[nodiscard]] std::uint32_t file_type() const;
};

/// Writes general.file_type and general.quantization_version.
void put_type(const output_type& type, gguf::gguf_writer& to);

/// Every name that `parse` accepts, separated by commas.
std::string output_type_names();

/// A matrix's role in the model, as far as mixtures depend on it.
struct matrix_place {
  std::string_view tensor;  // "blk.3.attn_v.weight"
  std::uint64_t columns = 0;
  std::uint32_t layers = 0;
  bool tied_head = false;  // the embedding is also the head
};

/// The type for a matrix: the model's or the mixture's. If the columns are not a multiple of its block, the nearest
/// type with smaller blocks: q4_k becomes q5_0, q5_k q5_1, q6_k q8_0; q2_k, q3_k and iq4_xs become iq4_nl, and any type
/// with blocks of 32 becomes f16.
weight_type type_for(const output_type& wanted, const matrix_place& matrix);
/// The type before the fallback for columns, the only difference from `type_for`.
weight_type type_before_fallback(const output_type& wanted, const matrix_place& matrix);

/// Supports even types that can only be read.
gguf::tensor_type to_tensor_type(weight_type type);
/// nullopt for types that are not supported weights.
std::optional<weight_type> to_weight_type(gguf::tensor_type type);

}  // namespace redline::convert
