#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/weight_type.hpp"

namespace redline::kernels {

/// The types whose blocks refer to points of a grid: iq2_xxs, iq2_xs, iq2_s, iq3_xxs, iq3_s, iq1_s and iq1_m. A point
/// is eight weights (iq3: four) without their signs; a grid contains 256 to 2048 of the 3^8 (iq3: 8^4) possible points.
/// The sets are constants of the published formats.

/// The contents of a block of 256 weights in any of these types: weight i is d * scales[i / 16] *
/// grid_values(type)[steps[i]].
struct grid_block {
  float d = 0;                          // any half float divided by 8 (iq3_xxs: 4; iq3_s: 1), which is exact
  std::array<std::uint8_t, 16> scales;  // for 16 weights each: odd, at most 31; repeated if 32 weights share one
  std::array<std::uint8_t, 256> steps;
};

/// Reads a block of one of these types; any bytes are valid.
void read_grid_block(weight_type type, const std::byte* block, grid_block& out);

/// The values of steps: iq2 and iq1 have eight, iq3 sixteen.
constexpr const std::int8_t* grid_values(weight_type type) {
  switch (type) {
    case weight_type::iq3_xxs:
      return iq3_xxs_values;
    case weight_type::iq3_s:
      return iq3_s_values;
    case weight_type::iq1_s:
    case weight_type::iq1_m:
      return iq1_values;
    default:
      return iq2_values;
  }
}

/// The 256 floats that a block represents.
void dequantize_grid_block(weight_type type, const std::byte* block, float* out);

/// Sets the scale of a block to `d`, rounded to a half float. This makes random bytes ordinary weights, because no
/// quantizer here writes these types.
void put_grid_scale(weight_type type, float d, std::byte* block);

}  // namespace redline::kernels
