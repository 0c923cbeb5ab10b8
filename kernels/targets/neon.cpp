// Every aarch64 CPU has NEON, so there is no target to enable here.
#include <arm_neon.h>

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

namespace redline::kernels::neon {
namespace {
#include "kernels/simd/vec_neon.inl.hpp"

#include "kernels/simd/ints_neon.inl.hpp"

#include "kernels/simd/bytes_neon.inl.hpp"

#include "kernels/simd/byte_dots_neon.inl.hpp"

#include "kernels/ops/all.inl.hpp"

#include "kernels/ops/all_int8.inl.hpp"

constexpr kernel_table table = make_table("neon");
constexpr kernel_table int8_table = with_int8(table);
}  // namespace
}  // namespace redline::kernels::neon

namespace redline::kernels {
const kernel_table& neon_table() { return neon::table; }
const kernel_table& neon_int8_table() { return neon::int8_table; }
}  // namespace redline::kernels
