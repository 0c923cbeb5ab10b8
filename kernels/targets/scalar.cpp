// Everything standard comes before the target begins: what those headers emit is shared with the whole program and has
// to stay runnable everywhere.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/half_floats.hpp"
#include "kernels/panel_layout.hpp"
#include "kernels/targets/tables.hpp"

namespace redline::kernels::scalar {
namespace {
#include "kernels/simd/vec_scalar.inl.hpp"

#include "kernels/simd/ints_scalar.inl.hpp"

#include "kernels/ops/all.inl.hpp"

constexpr kernel_table table = make_table("scalar");
}  // namespace
}  // namespace redline::kernels::scalar

namespace redline::kernels {
const kernel_table& scalar_table() { return scalar::table; }
}  // namespace redline::kernels
