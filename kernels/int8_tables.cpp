#include "kernels/int8_tables.hpp"

#include "kernels/machine/cpu_features.hpp"
#include "kernels/targets/tables.hpp"

namespace redline::kernels {

const kernel_table* int8_table_of(const kernel_table& target) {
  if (&target == &scalar_table()) return &scalar_int8_table();
#if defined(__x86_64__)
  const cpu_features& cpu = this_cpu();
  if (&target == &avx2_table()) {
    return cpu.avx2 && __builtin_cpu_supports("avxvnni") ? &avxvnni_int8_table() : &avx2_int8_table();
  }
  if (&target == &avx512_table()) return &avx512_int8_table();
  if (&target == &avx512vnni_table()) return &avx512vnni_int8_table();
  if (&target == &amx_table()) {
    return cpu.amx_int8 && cpu.avx512_vnni ? &amx_int8_table() : int8_table_of(best_avx512_table());
  }
  if (&target == &amx_emulated_table()) return &amx_emulated_int8_table();
#else
  if (&target == &neon_table()) {
    if (this_cpu().neon_i8mm) return &neon_i8mm_int8_table();
    return this_cpu().neon_dotprod ? &neon_dotprod_int8_table() : &neon_int8_table();
  }
#endif
  return nullptr;
}

bool multiplies_integers(const kernel_table& table) {
  const auto is_it = [&table](const kernel_table& one) { return &one == &table; };
#if defined(__x86_64__)
  if (is_it(avx2_int8_table()) || is_it(avxvnni_int8_table()) || is_it(avx512_int8_table()) ||
      is_it(avx512vnni_int8_table()) || is_it(amx_int8_table()) || is_it(amx_emulated_int8_table())) {
    return true;
  }
#else
  if (is_it(neon_int8_table()) || is_it(neon_dotprod_int8_table()) || is_it(neon_i8mm_int8_table())) return true;
#endif
  return is_it(scalar_int8_table());
}

}  // namespace redline::kernels
