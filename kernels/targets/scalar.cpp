// Standard headers precede the target: their code is shared with the whole program and must run on every CPU.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/half_floats.hpp"
#include "kernels/panel_layout.hpp"
#include "kernels/targets/tables.hpp"

namespace redline::kernels::scalar {
namespace {
#include "kernels/simd/vec_scalar.inl.hpp"

#include "kernels/simd/ints_scalar.inl.hpp"

#include "kernels/simd/bytes_scalar.inl.hpp"

#include "kernels/simd/byte_dots_scalar.inl.hpp"

#include "kernels/ops/all.inl.hpp"

#include "kernels/ops/all_int8.inl.hpp"

constexpr kernel_table table = make_table("scalar");
constexpr kernel_table int8_table = with_int8(table);
}  // namespace
}  // namespace redline::kernels::scalar

namespace redline::kernels {
const kernel_table& scalar_table() { return scalar::table; }
const kernel_table& scalar_int8_table() { return scalar::int8_table; }
}  // namespace redline::kernels
