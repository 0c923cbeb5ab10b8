#include "runtime/model/numerics.hpp"

#include <algorithm>

#include "kernels/int8_tables.hpp"
#include "kernels/weight_type.hpp"

namespace redline::model {
namespace {

using kernels::kernel_table;

bool is_in_blocks(const gguf::tensor& t) {
  return std::ranges::any_of(kernels::all_weight_types, [&](kernels::weight_type known) {
    return kernels::block_columns(known) > 1 && kernels::name_of(known) == gguf::name_of(t.type);
  });
}

bool has_blocks(const gguf::gguf_file& file) { return std::ranges::any_of(file.tensors(), is_in_blocks); }

bool rounds_to_bf16(const kernel_table& table) { return table.name == "amx" || table.name == "amx_emulated"; }

failure refuse(const kernel_table& target, const std::string& why) {
  return {errc::invalid_argument, "kernel target '" + std::string(target.name) + "': " + why};
}

}  // namespace

result<numerics> parse_numerics(std::string_view name) {
  if (name == "auto") return numerics::automatic;
  if (name == "float") return numerics::float32;
  if (name == "bf16") return numerics::bf16;
  if (name == "int8") return numerics::int8;
  return failure{errc::invalid_argument,
                 "numerics: expected auto, float, bf16 or int8, found '" + std::string(name) + "'"};
}

result<const kernel_table*> table_for(const gguf::gguf_file& file, const kernel_table& target, numerics wanted,
                                      kernels::element_type kv) {
  switch (wanted) {
    case numerics::automatic:
      if (kv == kernels::element_type::f32 || !has_blocks(file)) break;
      if (const kernel_table* table = kernels::int8_table_of(target)) return table;
      break;
    case numerics::float32:
      if (target.one_chain) return &target;
      if (target.unrounded != nullptr) return target.unrounded;
      return refuse(target, "it sums in a different order; choose another target for float numerics");
    case numerics::bf16:
      if (rounds_to_bf16(target)) return &target;
      if (target.name.starts_with("avx512") && kernels::choose_table("amx_emulated").table != nullptr) {
        return kernels::choose_table("amx_emulated").table;
      }
      return refuse(target, "bf16 numerics need AMX, or AVX-512 to emulate it; use float or int8");
    case numerics::int8:
      if (!has_blocks(file)) {
        return failure{errc::invalid_argument,
                       file.path() +
                           ": int8 numerics need quantized weights (Q8_0, Q4_K, ...), and this file has "
                           "none; use float, bf16 or auto, or quantize it with 'redline quantize'"};
      }
      if (const kernel_table* table = kernels::int8_table_of(target)) return table;
      return refuse(target, "it has no integer products; choose another target, or float numerics");
  }
  return &kernels::table_for_cache(target, kv);
}

std::string name_of_products(const kernel_table& table) {
  if (kernels::multiplies_integers(table)) return "int8";
  if (rounds_to_bf16(table)) return "bf16";
  // avx512fp16 rotates keys differently.
  if (table.one_chain && table.name != "avx512fp16") return "float";
  return std::string(table.name);
}

std::string describe_numerics(const kernel_table& table, kernels::element_type kv) {
  return name_of_products(table) + " products and " + std::string(kernels::name_of(kv)) + " keys and values";
}

}  // namespace redline::model
