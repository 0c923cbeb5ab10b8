#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/grid_blocks.hpp"
#include "kernels/half_floats.hpp"
#include "kernels/weight_type.hpp"

namespace redline::test {

/// The position of a block's scale, which in formats with minima is followed by another number. Both are halves, except
/// in mxfp4, whose scale is one byte, and iq1_m, where the last four numbers each contain four bits of it.
constexpr std::size_t scale_at(kernels::weight_type type) {
  switch (type) {
    case kernels::weight_type::q6_k:
      return 208;
    case kernels::weight_type::q2_k:
      return 80;
    case kernels::weight_type::q3_k:
      return 108;
    case kernels::weight_type::iq1_m:
      return 48;
    default:
      return 0;
  }
}
constexpr bool has_minimum(kernels::weight_type type) {
  return type == kernels::weight_type::q4_1 || type == kernels::weight_type::q5_1 ||
         type == kernels::weight_type::q4_k || type == kernels::weight_type::q5_k || type == kernels::weight_type::q2_k;
}
constexpr std::size_t scale_bytes(kernels::weight_type type) {
  return type == kernels::weight_type::mxfp4 ? 1 : type == kernels::weight_type::iq1_m ? 8 : has_minimum(type) ? 4 : 2;
}

/// Any bytes form a valid block; this gives it an ordinary scale and minimum.
inline void put_scales(kernels::weight_type type, float scale, float minimum, std::byte* block) {
  if (type == kernels::weight_type::mxfp4) {
    block[0] = static_cast<std::byte>(118 + static_cast<int>(scale * 400) % 4);
    return;
  }
  if (!kernels::is_written(type)) return kernels::put_grid_scale(type, scale, block);
  const std::uint16_t numbers[] = {kernels::narrow_f16(scale), kernels::narrow_f16(minimum)};
  std::memcpy(block + scale_at(type), numbers, scale_bytes(type));
}

}  // namespace redline::test
