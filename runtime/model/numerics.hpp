#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/dispatch.hpp"
#include "runtime/base/result.hpp"
#include "runtime/gguf/gguf_file.hpp"

namespace redline::model {

/// How products are computed (kernels/README.md). automatic: float if keys and values are f32, which requests full
/// precision; else int8 if the file has weights in blocks and the target multiplies integers; else the target's
/// default, which is bf16 with AMX and float elsewhere.
enum class numerics : std::uint8_t { automatic, float32, bf16, int8 };

/// Parses "auto", "float", "bf16" or "int8".
result<numerics> parse_numerics(std::string_view name);

/// The table that computes a file's products as requested, on the same target. The failure names what the target or the
/// file's formats do not support. With int8 numerics, weights that are not blocks of integers (norms, and matrices of
/// f32, f16 or bf16 in a file with blocks) are multiplied as floats.
result<const kernels::kernel_table*> table_for(const gguf::gguf_file& file, const kernels::kernel_table& target,
                                               numerics wanted, kernels::element_type kv);

/// Returns "float", "bf16" or "int8", or the name of a target whose bits are unique.
std::string name_of_products(const kernels::kernel_table& table);

/// Describes what a model's answers depend on in addition to its file: "int8 products and f16 keys and values". It
/// names only targets whose bits are unique.
std::string describe_numerics(const kernels::kernel_table& table, kernels::element_type kv);

}  // namespace redline::model
