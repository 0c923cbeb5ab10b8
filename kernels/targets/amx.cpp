// Standard headers precede the target: see avx512.cpp.
#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/panel_layout.hpp"
#include "kernels/targets/tables.hpp"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16,avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt")
namespace redline::kernels::amx {
namespace {
#include "kernels/simd/vec_avx512.inl.hpp"

#include "kernels/simd/ints_avx512.inl.hpp"

#include "kernels/simd/bytes_avx512.inl.hpp"

#include "kernels/simd/byte_dots_avx512vnni.inl.hpp"

#include "kernels/simd/tiles_amx.inl.hpp"

#include "kernels/ops/all_tiles.inl.hpp"
}  // namespace
}  // namespace redline::kernels::amx
#pragma GCC pop_options

namespace redline::kernels {
const kernel_table& amx_table() {
  static const kernel_table table = amx::tile_table("amx");
  return table;
}
const kernel_table& amx_int8_table() {
  static const kernel_table table = amx::int8_tile_table("amx", avx512vnni_table());
  return table;
}
bool amx_is_built() { return true; }
bool amx_multiplies() { return amx::tiles_multiply_integers(); }
}  // namespace redline::kernels
