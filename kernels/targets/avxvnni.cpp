// Standard headers precede the target: their code is shared with the whole program and must run on every CPU.
#include <immintrin.h>

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
#pragma GCC target("avx2,avxvnni,fma,f16c,bmi,bmi2,lzcnt,popcnt")
namespace redline::kernels::avxvnni {
namespace {
#include "kernels/simd/vec_avx2.inl.hpp"

#include "kernels/simd/ints_avx2.inl.hpp"

#include "kernels/simd/bytes_avx2.inl.hpp"

#include "kernels/simd/byte_dots_avxvnni.inl.hpp"

#include "kernels/ops/chunks.inl.hpp"

#include "kernels/ops/formats.inl.hpp"

/// Used for weights that are not integers.
void gemm(const gemm_args& a) { avx2_table().gemm(a); }

#include "kernels/ops/all_int8.inl.hpp"
}  // namespace
}  // namespace redline::kernels::avxvnni
#pragma GCC pop_options

namespace redline::kernels {
const kernel_table& avxvnni_int8_table() {
  static const kernel_table table = [] {
    kernel_table t = avxvnni::with_int8(avx2_table());
    t.name = "avxvnni";
    return t;
  }();
  return table;
}
}  // namespace redline::kernels
