#include "kernels/weight_blocks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iomanip>
#include <limits>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/grid_blocks.hpp"
#include "tests/support/test_data.hpp"

namespace redline::kernels {
namespace {

std::vector<std::byte> quantized(weight_type type, const std::vector<float>& x) {
  std::vector<std::byte> row(row_bytes(type, x.size()));
  quantize_row(type, x.data(), x.size(), row.data());
  return row;
}
std::vector<float> dequantized(weight_type type, const std::vector<std::byte>& row) {
  std::vector<float> x(row.size() / block_bytes(type) * block_columns(type));
  dequantize_row(type, row.data(), x.size(), x.data());
  return x;
}
std::vector<float> normals(std::size_t count, float spread, unsigned seed = 3) {
  std::mt19937 random(seed);
  std::normal_distribution<float> pick(0, spread);
  std::vector<float> x(count);
  for (float& v : x) v = pick(random);
  return x;
}
/// The root mean square of the error divided by that of the numbers.
double relative_error(const std::vector<float>& x, const std::vector<float>& y) {
  double error = 0, all = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    error += std::pow(double{x[i]} - y[i], 2);
    all += std::pow(double{x[i]}, 2);
  }
  return std::sqrt(error / all);
}

weight_type type_named(const std::string& name) {
  for (const weight_type type : all_weight_types) {
    if (name_of(type) == name) return type;
  }
  throw std::invalid_argument(name);
}
std::vector<std::byte> bytes_of_hex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}
float float_of_hex(const std::string& hex) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(std::stoul(hex, nullptr, 16)));
}

TEST(weight_blocks, weights_are_the_floats_that_exact_arithmetic_gives) {
  std::istringstream lines(test::read_file(test::source_path("tests/kernels/reference/weight_blocks.txt")));
  std::string name, block, weights;
  std::vector<int> seen(std::size(all_weight_types));
  while (lines >> name >> block >> weights) {
    const weight_type type = type_named(name);
    ++seen[static_cast<std::size_t>(type)];
    const auto row = bytes_of_hex(block);
    ASSERT_EQ(row.size(), block_bytes(type));
    const auto got = dequantized(type, row);
    ASSERT_EQ(weights.size(), got.size() * 8);
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i], float_of_hex(weights.substr(i * 8, 8))) << name << " weight " << i;  // 0 and -0 count as equal
    }
  }
  for (const auto type : all_weight_types) {
    if (block_columns(type) == 1 || !is_written(type)) continue;
    EXPECT_GE(seen[static_cast<std::size_t>(type)], 3) << name_of(type);
  }
}

/// splitmix64 as bytes, the lowest byte of each number first.
class splitmix_bytes {
 public:
  std::byte next() {
    if (left_ == 0) {
      state_ += 0x9e3779b97f4a7c15;
      bits_ = (state_ ^ state_ >> 30) * 0xbf58476d1ce4e5b9;
      bits_ = (bits_ ^ bits_ >> 27) * 0x94d049bb133111eb;
      bits_ ^= bits_ >> 31;
      left_ = 8;
    }
    --left_;
    const auto lowest = static_cast<std::byte>(bits_ & 255);
    bits_ >>= 8;
    return lowest;
  }

 private:
  std::uint64_t state_ = 1, bits_ = 0;
  int left_ = 0;
};

std::string digest_of_all_points(weight_type type) {
  splitmix_bytes source;
  std::uint64_t digest = 14695981039346656037U;
  std::vector<std::byte> block(block_bytes(type));
  for (int i = 0; i < 1000; ++i) {
    for (std::byte& b : block) b = source.next();
    put_grid_scale(type, 1, block.data());
    for (const float w : dequantized(type, block)) digest = (digest ^ std::bit_cast<std::uint32_t>(w)) * 1099511628211U;
  }
  std::ostringstream hex;
  hex << std::hex << std::setw(16) << std::setfill('0') << digest;
  return hex.str();
}

// The weights that llama.cpp's own library made from these blocks; reference/grid_blocks.py explains how.
TEST(weight_blocks, points_of_grids_are_the_floats_that_the_formats_first_library_gives) {
  std::istringstream lines(test::read_file(test::source_path("tests/kernels/reference/grid_blocks.txt")));
  std::string name, block, weights;
  int blocks = 0, digests = 0;
  while (lines >> name >> block >> weights) {
    const auto type = type_named(name);
    if (block == "all") {
      EXPECT_EQ(digest_of_all_points(type), weights) << name;
      ++digests;
      continue;
    }
    const auto got = dequantized(type, bytes_of_hex(block));
    ASSERT_EQ(weights.size(), got.size() * 8);
    for (std::size_t i = 0; i < got.size(); ++i) {
      const float expected = float_of_hex(weights.substr(i * 8, 8));
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(got[i])) << name << " weight " << i;
      } else {
        ASSERT_EQ(got[i], expected) << name << " weight " << i;
      }
    }
    ++blocks;
  }
  const auto read_only = std::ranges::count_if(all_weight_types, [](auto type) { return !is_written(type); });
  EXPECT_EQ(digests, read_only);
  EXPECT_EQ(blocks, 5 * read_only);
}

TEST(weight_blocks, plain_numbers_are_rounded_to_nearest_even) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {1, 1 + 0x1p-11F, 1 + 0x3p-11F, 65519.9F, 65520, -inf, 0x1p-24F, 0x1p-25F, -0.0F};
  const auto as_half = dequantized(weight_type::f16, quantized(weight_type::f16, x));
  EXPECT_EQ(as_half, (std::vector<float>{1, 1, 1 + 0x1p-9F, 65504, inf, -inf, 0x1p-24F, 0, -0.0F}));
  const auto as_bf16 =
      dequantized(weight_type::bf16, quantized(weight_type::bf16, {1 + 0x1p-8F, 1 + 0x3p-8F, 3.4e38F}));
  EXPECT_EQ(as_bf16, (std::vector<float>{1, 1 + 0x1p-6F, inf}));
  for (const auto type : {weight_type::f32, weight_type::f16, weight_type::bf16}) {
    EXPECT_TRUE(std::isnan(dequantized(type, quantized(type, {std::numeric_limits<float>::quiet_NaN()}))[0]));
  }
  const auto all = normals(256, 1);
  EXPECT_EQ(dequantized(weight_type::f32, quantized(weight_type::f32, all)), all);
}

TEST(weight_blocks, every_half_comes_back_from_its_float) {
  std::vector<std::byte> halves;
  for (unsigned h = 0; h < 0x10000; ++h) {
    if ((h & 0x7c00) == 0x7c00 && (h & 0x3ff) != 0) continue;  // NaNs become quiet
    halves.push_back(static_cast<std::byte>(h & 255));
    halves.push_back(static_cast<std::byte>(h >> 8));
  }
  EXPECT_EQ(quantized(weight_type::f16, dequantized(weight_type::f16, halves)), halves);
}

TEST(weight_blocks, symmetric_formats_survive_quantising_again_byte_for_byte) {
  for (const auto type : {weight_type::q8_0, weight_type::q4_0, weight_type::q5_0}) {
    for (const float spread : {3e-1F, 0.02F, 300.0F}) {
      const auto once = quantized(type, normals(32 * 500, spread));
      EXPECT_EQ(quantized(type, dequantized(type, once)), once) << name_of(type) << " " << spread;
    }
  }
}

TEST(weight_blocks, quantising_again_loses_next_to_nothing) {
  for (const auto type : all_weight_types) {
    if (!is_written(type)) continue;
    const auto once = dequantized(type, quantized(type, normals(256 * 40, 0.05F)));
    const auto twice = dequantized(type, quantized(type, once));
    EXPECT_LE(relative_error(once, twice), type == weight_type::q4_k ? 0.02 : 0.011) << name_of(type);
  }
}

TEST(weight_blocks, no_weight_is_off_by_more_than_half_a_step) {
  // Symmetric formats lack one step at one end, where the error is a whole step. 1.01 allows for the scale's rounding.
  const std::pair<weight_type, float> steps[] = {
      {weight_type::q8_0, 127 * 2}, {weight_type::q4_0, 8}, {weight_type::q5_0, 16}};
  const auto x = normals(32 * 300, 1);
  for (const auto& [type, divisor] : steps) {
    const auto y = dequantized(type, quantized(type, x));
    for (std::size_t i = 0; i < x.size(); ++i) {
      float largest = 0;
      for (std::size_t j = i / 32 * 32; j < i / 32 * 32 + 32; ++j) largest = std::max(largest, std::fabs(x[j]));
      ASSERT_LE(std::fabs(x[i] - y[i]), 1.01F * largest / divisor) << name_of(type);
    }
  }
  for (const auto& [type, most] : {std::pair{weight_type::q4_1, 15.0F}, std::pair{weight_type::q5_1, 31.0F}}) {
    const auto y = dequantized(type, quantized(type, x));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto [low, high] = std::minmax_element(&x[i / 32 * 32], &x[i / 32 * 32] + 32);
      ASSERT_LE(std::fabs(x[i] - y[i]), 0.55F * (*high - *low) / most) << name_of(type);
    }
  }
}

TEST(weight_blocks, the_error_on_normal_weights_is_what_the_bits_allow) {
  const auto x = normals(256 * 400, 0.03F);
  const auto error = [&](weight_type type) { return relative_error(x, dequantized(type, quantized(type, x))); };
  EXPECT_LE(error(weight_type::q8_0), 0.0065);
  EXPECT_LE(error(weight_type::q6_k), 0.0185);
  EXPECT_LE(error(weight_type::q5_k), 0.0370);
  EXPECT_LE(error(weight_type::q4_k), 0.0730);
  EXPECT_LE(error(weight_type::q5_1), 0.0400);
  EXPECT_LE(error(weight_type::q5_0), 0.0450);
  EXPECT_LE(error(weight_type::q4_1), 0.0820);
  EXPECT_LE(error(weight_type::q4_0), 0.0910);
  EXPECT_LE(error(weight_type::iq4_nl), 0.0900);
  EXPECT_LE(error(weight_type::iq4_xs), 0.0900);
  EXPECT_LE(error(weight_type::mxfp4), 0.1300);
  EXPECT_LE(error(weight_type::q3_k), 0.1700);
  EXPECT_LE(error(weight_type::q2_k), 0.3200);
  EXPECT_LT(error(weight_type::q4_k), 0.93 * error(weight_type::q4_1))
      << "the search finds better steps than the range";
}

TEST(weight_blocks, weights_of_one_sign_and_constant_rows_keep_their_values) {
  for (const auto type : all_weight_types) {
    if (!is_written(type)) continue;
    for (const float value : {0.0F, 0.75F, -0.75F}) {
      const std::vector<float> x(512, value);
      for (const float y : dequantized(type, quantized(type, x))) ASSERT_NEAR(y, value, 0.004) << name_of(type);
    }
    auto x = normals(512, 0.1F);
    for (float& v : x) v = 0.2F + std::fabs(v);
    const bool has_few_steps = type == weight_type::q2_k || type == weight_type::q3_k || type == weight_type::mxfp4;
    EXPECT_LE(relative_error(x, dequantized(type, quantized(type, x))), has_few_steps ? 0.12 : 0.06) << name_of(type);
  }
}

TEST(weight_blocks, any_numbers_give_finite_blocks) {
  std::mt19937 random(5);
  const float inf = std::numeric_limits<float>::infinity();
  const float odd[] = {std::numeric_limits<float>::quiet_NaN(), inf, -inf, 3e38F, -3e38F, 1e-45F, -1e-38F, 0, 65504};
  for (const auto type : all_weight_types) {
    if (block_columns(type) == 1 || !is_written(type)) continue;
    for (int round = 0; round < 200; ++round) {
      std::vector<float> x(256);
      for (float& v : x)
        v = random() % 2 == 0 ? odd[random() % std::size(odd)] : std::bit_cast<float>(std::uint32_t(random()));
      for (const float y : dequantized(type, quantized(type, x))) ASSERT_TRUE(std::isfinite(y)) << name_of(type);
      std::vector<float> tiny(256);
      for (float& v : tiny) v = std::bit_cast<float>(std::uint32_t(random()) & 0x83ffffff);
      for (const float y : dequantized(type, quantized(type, tiny))) ASSERT_LE(std::fabs(y), 1e-3F) << name_of(type);
    }
  }
}

TEST(weight_blocks, not_a_number_counts_as_zero_and_does_not_spoil_its_block) {
  for (const auto type : all_weight_types) {
    if (block_columns(type) == 1 || !is_written(type)) continue;
    auto x = normals(256, 0.1F), clean = x;
    x[17] = std::numeric_limits<float>::quiet_NaN();
    clean[17] = 0;
    EXPECT_EQ(quantized(type, x), quantized(type, clean)) << name_of(type);
  }
}

TEST(weight_blocks, any_bytes_can_be_read) {
  std::mt19937 random(6);
  for (const auto type : all_weight_types) {
    std::vector<std::byte> row(row_bytes(type, 1024));
    for (auto& b : row) b = static_cast<std::byte>(random());
    EXPECT_EQ(dequantized(type, row).size(), 1024U);
  }
}

TEST(weight_blocks, keeps_zeros_and_single_spikes) {
  for (const weight_type type : all_weight_types) {
    if (!is_written(type)) continue;
    std::vector<float> x(256, 0.0F);
    for (const float y : dequantized(type, quantized(type, x))) ASSERT_EQ(y, 0) << name_of(type);
    x[37] = -3;
    const auto y = dequantized(type, quantized(type, x));
    EXPECT_NEAR(y[37], -3, 0.01) << name_of(type);
    // The smallest of iq4's numbers is 1 of 127.
    const bool has_zero = type != weight_type::iq4_nl && type != weight_type::iq4_xs;
    EXPECT_NEAR(y[36], 0, has_zero ? 0.01 : 3.1 / 127) << name_of(type);
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
  auto block = bytes_of({0x00, 0x3c, 0x01, 0x00, 0x01, 0x80});  // scale 1; columns 0, 16 and 31 have the high bit
  block.insert(block.end(), 16, std::byte{0});
  std::vector<float> y(32);
  dequantize_row(weight_type::q5_0, block.data(), 32, y.data());
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(y[i], i == 0 || i == 16 || i == 31 ? 0.0F : -16.0F) << i;
}

TEST(weight_blocks, reads_the_cut_scales_of_the_last_groups) {
  // d = 1, dmin = 1; all levels are 1. Scales 1..8 would fit simply; here group 5 has 0x2a = 42 and minimum 0x15 = 21.
  std::vector<std::byte> block(144, std::byte{0});
  block[1] = block[3] = std::byte{0x3c};
  block[4 + 1] = static_cast<std::byte>(42 >> 4 << 6);  // upper bits of scale 5 above scale 1
  block[4 + 5] = static_cast<std::byte>(21 >> 4 << 6);  // upper bits of minimum 5 above minimum 1
  block[4 + 9] = static_cast<std::byte>((42 & 15) | (21 & 15) << 4);
  for (std::size_t i = 16; i < 144; ++i) block[i] = std::byte{0x11};
  std::vector<float> y(256);
  dequantize_row(weight_type::q4_k, block.data(), 256, y.data());
  for (std::size_t i = 0; i < 256; ++i) EXPECT_EQ(y[i], i / 32 == 5 ? 42.0F - 21.0F : 0.0F) << i;
}

}  // namespace
}  // namespace redline::kernels
