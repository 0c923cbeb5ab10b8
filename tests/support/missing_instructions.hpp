#pragma once

#include <string_view>

#include "kernels/dispatch.hpp"
#include "kernels/int8_tables.hpp"
#include "kernels/machine/cpu_features.hpp"
#include "kernels/targets/tables.hpp"

namespace redline::test {

/// Like kernels::choose_table, but also for a target of which this CPU lacks a few instructions: a SIGILL handler
/// executes those one by one, as Intel's manual defines them. This tests the real object code, thousands of times
/// slower. It emulates what `amx` and `avx512fp16` use beyond AVX-512: tiles, TDPBF16PS and TDPBSSD, VCVTNE2PS2BF16,
/// VFMULCPH. There is no table without AVX-512.
#if defined(__x86_64__)
kernels::table_choice choose_table_or_emulate(std::string_view target);
/// The same for the target's table of integer products. `avxvnni` is emulated too, through the VEX form of VPDPBUSD.
kernels::table_choice choose_int8_table_or_emulate(std::string_view target);
#else
inline kernels::table_choice choose_table_or_emulate(std::string_view target) { return kernels::choose_table(target); }
/// Accepts each of NEON's targets, not only the one that this CPU would choose.
inline kernels::table_choice choose_int8_table_or_emulate(std::string_view target) {
  const kernels::cpu_features& cpu = kernels::this_cpu();
  if (target == "neon") return {.table = &kernels::neon_int8_table()};
  if (target == "neon_dotprod" && cpu.neon_dotprod) return {.table = &kernels::neon_dotprod_int8_table()};
  if (target == "neon_i8mm" && cpu.neon_i8mm) return {.table = &kernels::neon_i8mm_int8_table()};
  auto choice = kernels::choose_table(target);
  if (choice.table != nullptr) choice.table = kernels::int8_table_of(*choice.table);
  return choice;
}
#endif

}  // namespace redline::test
