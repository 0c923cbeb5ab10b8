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
  /// Keeps the output head in q6_k, and of the value and down projections, whose errors cost the most, those of the
  /// first and last eighth of the layers and every third between.
  bool mixture = false;

  /// "q8_0", "q4_k", ...; "q4_k_m" and "q5_k_m" for mixtures; case does not matter.
  static result<output_type> parse(std::string_view name);
  [[nodiscard]] std::string name() const;
  /// The value of general.file_type.
  [[nodiscard]] std::uint32_t file_type() const;
};

/// general.file_type and general.quantization_version.
void put_type(const output_type& type, gguf::gguf_writer& to);

/// Every name that `parse` takes, with commas between.
std::string output_type_names();

/// Which place a matrix has in the model, as far as mixtures ask.
struct matrix_place {
  std::string_view tensor;  // "blk.3.attn_v.weight"
  std::uint64_t columns = 0;
  std::uint32_t layers = 0;
  bool tied_head = false;  // the embedding is also the head
};

/// The type for a matrix: the model's, the mixture's, or where the columns are no whole blocks the nearest type of
/// smaller blocks: q4_k to q5_0, q5_k to q5_1, q6_k to q8_0, q2_k, q3_k and iq4_xs to iq4_nl, and any of blocks of 32
/// to f16.
weight_type type_for(const output_type& wanted, const matrix_place& matrix);
/// The same before columns are looked at; `type_for` differs from it only by falling back.
weight_type type_before_fallback(const output_type& wanted, const matrix_place& matrix);

/// Also of types that are only read.
gguf::tensor_type to_tensor_type(weight_type type);
/// nullopt for types that are no weights of ours.
std::optional<weight_type> to_weight_type(gguf::tensor_type type);

}  // namespace redline::convert
