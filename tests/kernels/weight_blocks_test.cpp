#include "kernels/weight_blocks.hpp"

#include <cmath>

#include "tests/kernels/kernel_fixture.hpp"

namespace redline::kernels {
namespace {

/// Relative error (root mean square) that each format may leave on even noise.
double error_allowed(weight_type type) {
  switch (type) {
    case weight_type::f32:
      return 0;
    case weight_type::f16:
      return 3e-4;
    case weight_type::bf16:
      return 2.4e-3;
    case weight_type::q8_0:
      return 6e-3;
    case weight_type::q6_k:
      return 0.02;
    case weight_type::q5_0:
    case weight_type::q5_1:
    case weight_type::q5_k:
      return 0.045;
    default:
      return 0.09;
  }
}

std::vector<float> noise(std::size_t n, unsigned seed) {
  std::vector<float> x(n);
  std::uint32_t state = seed;
  for (float& v : x) {
    state = state * 1664525U + 1013904223U;
    v = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31F;
  }
  return x;
}

std::vector<float> round_trip(weight_type type, const std::vector<float>& x) {
  std::vector<std::byte> row(row_bytes(type, x.size()));
  quantize_row(type, x.data(), x.size(), row.data());
  std::vector<float> y(x.size());
  dequantize_row(type, row.data(), x.size(), y.data());
  return y;
}

TEST(weight_blocks, loses_no_more_than_the_format_must) {
  const auto x = noise(4096, 1);
  for (const weight_type type : all_weight_types) {
    const auto y = round_trip(type, x);
    double error = 0;
    double power = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      error += (x[i] - y[i]) * (x[i] - y[i]);
      power += x[i] * x[i];
    }
    EXPECT_LE(std::sqrt(error / power), error_allowed(type)) << name_of(type);
  }
}

TEST(weight_blocks, keeps_zeros_and_single_spikes) {
  for (const weight_type type : all_weight_types) {
    std::vector<float> x(256, 0.0F);
    for (const float y : round_trip(type, x)) ASSERT_EQ(y, 0) << name_of(type);
    x[37] = -3;
    const auto y = round_trip(type, x);
    EXPECT_NEAR(y[37], -3, 0.01) << name_of(type);
    EXPECT_NEAR(y[36], 0, 0.01) << name_of(type);
  }
}

TEST(weight_blocks, survives_numbers_that_are_none) {
  for (const weight_type type : all_weight_types) {
    for (const float odd : {std::nanf(""), HUGE_VALF, -HUGE_VALF, 1e38F, 1e-42F}) {
      std::vector<float> x = noise(256, 5);
      x[17] = odd;
      round_trip(type, x);  // must not crash or convert out of range; the sanitizers watch
    }
  }
}

// The formats by hand: one block with known fields.

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (const int v : values) out.push_back(static_cast<std::byte>(v));
  return out;
}

TEST(weight_blocks, reads_nibbles_from_the_low_halves_first) {
  auto block = bytes_of({0x00, 0x3c});  // scale 1
  for (int i = 0; i < 16; ++i) block.push_back(static_cast<std::byte>(i | (15 - i) << 4));
  std::vector<float> y(32);
  dequantize_row(weight_type::q4_0, block.data(), 32, y.data());
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(y[static_cast<std::size_t>(i)], static_cast<float>(i - 8));
    EXPECT_EQ(y[static_cast<std::size_t>(i) + 16], static_cast<float>(7 - i));
  }
}

TEST(weight_blocks, adds_the_fifth_bit_of_each_column) {
  auto block = bytes_of({0x00, 0x3c, 0x01, 0x00, 0x01, 0x80});  // scale 1; columns 0, 16 and 31 have the bit
  block.insert(block.end(), 16, std::byte{0});
  std::vector<float> y(32);
  dequantize_row(weight_type::q5_0, block.data(), 32, y.data());
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(y[i], i == 0 || i == 16 || i == 31 ? 0.0F : -16.0F) << i;
}

TEST(weight_blocks, reads_the_cut_scales_of_the_last_groups) {
  // d = 1, dmin = 1; all levels 1. Scales 1..8 would fit plainly; here group 5 is 0x2a = 42 and its minimum 0x15 = 21.
  std::vector<std::byte> block(144, std::byte{0});
  block[1] = block[3] = std::byte{0x3c};
  block[4 + 1] = static_cast<std::byte>(42 >> 4 << 6);            // upper bits of scale 5 above scale 1
  block[4 + 5] = static_cast<std::byte>(21 >> 4 << 6);            // upper bits of minimum 5 above minimum 1
  block[4 + 9] = static_cast<std::byte>((42 & 15) | (21 & 15) << 4);
  for (std::size_t i = 16; i < 144; ++i) block[i] = std::byte{0x11};
  std::vector<float> y(256);
  dequantize_row(weight_type::q4_k, block.data(), 256, y.data());
  for (std::size_t i = 0; i < 256; ++i) EXPECT_EQ(y[i], i / 32 == 5 ? 42.0F - 21.0F : 0.0F) << i;
}

}  // namespace
}  // namespace redline::kernels
