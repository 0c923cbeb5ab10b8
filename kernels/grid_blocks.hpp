#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/weight_type.hpp"

namespace redline::kernels {

/// The types whose blocks name points of a grid: iq2_xxs, iq2_xs, iq2_s, iq3_xxs, iq3_s, iq1_s and iq1_m. A point is
/// eight weights (iq3: four) without their signs; a grid has 256 to 2048 of the 3^8 (iq3: 8^4) points that there are.
/// The sets are constants of the published formats.

/// What a block of 256 weights says, in any of these types: weight i is d * scales[i / 16] *
/// grid_values(type)[steps[i]].
struct grid_block {
  float d = 0;                          // any half, by 8 (iq3_xxs: 4; iq3_s: 1), which is exact
  std::array<std::uint8_t, 16> scales;  // of 16 weights each: odd, 31 at most; where 32 share one it is there twice
  std::array<std::uint8_t, 256> steps;
};

/// Any bytes are a block. type: one of these.
void read_grid_block(weight_type type, const std::byte* block, grid_block& out);

/// What steps stand for: iq2 and iq1 have eight values, iq3 sixteen.
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

/// The 256 floats that a block stands for.
void dequantize_grid_block(weight_type type, const std::byte* block, float* out);

/// Makes `d`, rounded to a half, the scale of a block. So random bytes become ordinary weights: no quantizer writes
/// these types here.
void put_grid_scale(weight_type type, float d, std::byte* block);

}  // namespace redline::kernels
