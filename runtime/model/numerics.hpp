#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/dispatch.hpp"
#include "runtime/base/result.hpp"
#include "runtime/gguf/gguf_file.hpp"

namespace redline::model {

/// How products are computed (kernels/README.md). automatic: float where keys and values are f32, which asks for full
/// precision; else int8 where the file has weights in blocks and the target multiplies integers; else the target's own,
/// which is bf16 with AMX and float elsewhere.
enum class numerics : std::uint8_t { automatic, float32, bf16, int8 };

/// "auto", "float", "bf16" or "int8".
result<numerics> parse_numerics(std::string_view name);

/// The table that computes a file's products as wanted, on the same target. Fails, by name, when the target or the
/// file's formats cannot do it. With int8 numerics, weights that are no blocks of integers (norms, and matrices of f32,
/// f16 or bf16 beside others in blocks) are multiplied as floats.
result<const kernels::kernel_table*> table_for(const gguf::gguf_file& file, const kernels::kernel_table& target,
                                               numerics wanted, kernels::element_type kv);

/// "float", "bf16" or "int8"; of a target with bits of its own its name.
std::string name_of_products(const kernels::kernel_table& table);

/// What a model's answers depend on beside its file: "int8 products and f16 keys and values". It names no target but
/// those with bits of their own.
std::string describe_numerics(const kernels::kernel_table& table, kernels::element_type kv);

}  // namespace redline::model
