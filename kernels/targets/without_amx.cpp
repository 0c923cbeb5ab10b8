// Instead of amx.cpp and amx_emulated.cpp in a build with REDLINE_KERNELS=native for a CPU without AMX.
#include "kernels/targets/tables.hpp"

namespace redline::kernels {
bool amx_is_built() { return false; }
bool amx_multiplies() { return false; }
// Not listed, and the table of no process.
const kernel_table& amx_table() {
  static const kernel_table none{};
  return none;
}
const kernel_table& amx_emulated_table() { return amx_table(); }
const kernel_table& amx_int8_table() { return amx_table(); }
const kernel_table& amx_emulated_int8_table() { return amx_table(); }
}  // namespace redline::kernels
