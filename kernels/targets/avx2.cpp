// Standard headers precede the target: their code is shared with the whole program and must run on every CPU.
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/panel_layout.hpp"
#include "kernels/targets/tables.hpp"

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt")
namespace redline::kernels::avx2 {
namespace {
#include "kernels/simd/vec_avx2.inl.hpp"

#include "kernels/simd/ints_avx2.inl.hpp"

#include "kernels/simd/bytes_avx2.inl.hpp"

#include "kernels/simd/byte_dots_avx2.inl.hpp"

#include "kernels/ops/all.inl.hpp"

#include "kernels/ops/all_int8.inl.hpp"

constexpr kernel_table table = make_table("avx2");
constexpr kernel_table int8_table = with_int8(table);
}  // namespace
}  // namespace redline::kernels::avx2
#pragma GCC pop_options

namespace redline::kernels {
const kernel_table& avx2_table() { return avx2::table; }
const kernel_table& avx2_int8_table() { return avx2::int8_table; }
}  // namespace redline::kernels
