// Standard headers precede the target: their code is shared with the whole program and must run on every CPU.
#include <arm_neon.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/panel_layout.hpp"
#include "kernels/targets/tables.hpp"

#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+dotprod")
namespace redline::kernels::neon_dotprod {
namespace {
#include "kernels/simd/vec_neon.inl.hpp"

#include "kernels/simd/ints_neon.inl.hpp"

#include "kernels/simd/bytes_neon.inl.hpp"

#include "kernels/simd/byte_dots_neon_dotprod.inl.hpp"

#include "kernels/ops/chunks.inl.hpp"

#include "kernels/ops/lane_functions.inl.hpp"

#include "kernels/ops/formats.inl.hpp"

/// Used for weights that are not integers.
void gemm(const gemm_args& a) { neon_table().gemm(a); }

#include "kernels/ops/all_int8.inl.hpp"
}  // namespace
}  // namespace redline::kernels::neon_dotprod
#pragma GCC pop_options

namespace redline::kernels {
const kernel_table& neon_dotprod_int8_table() {
  static const kernel_table table = [] {
    kernel_table t = neon_dotprod::with_int8(neon_table());
    t.name = "neon_dotprod";
    return t;
  }();
  return table;
}
}  // namespace redline::kernels
