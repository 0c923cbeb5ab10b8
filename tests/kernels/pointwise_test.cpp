#include <algorithm>
#include <bit>
#include <limits>

#include "tests/kernels/kernel_fixture.hpp"

namespace redline::kernels {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

class pointwise : public kernel_test {};

TEST_P(pointwise, rms_norm_equals_the_definition) {
  for (const std::size_t n : ragged_sizes()) {
    if (n == 0) continue;
    const auto x = uniforms(n);
    const auto weight = uniforms(n);
    std::vector<float> expected(n + 3, nan);
    std::vector<float> found(n + 3, nan);
    scalar().rms_norm(x.data(), weight.data(), 1e-5F, n, expected.data());
    table().rms_norm(x.data(), weight.data(), 1e-5F, n, found.data());
    ASSERT_TRUE(same_bits(expected, found)) << n;
    double squares = 0;
    for (const float v : x) squares += double{v} * v;
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_NEAR(found[i], x[i] * weight[i] / std::sqrt(squares / static_cast<double>(n) + 1e-5), 1e-5);
    }
    ASSERT_TRUE(std::isnan(found[n])) << "nothing is written after the end";
  }
}

TEST_P(pointwise, silu_equals_the_definition) {
  for (const std::size_t n : ragged_sizes()) {
    auto x = uniforms(n + 1);
    for (float& v : x) v *= 120;  // reaches the clamped ends of the exponential
    const auto y = uniforms(n + 1);
    auto expected = x;
    auto found = x;
    scalar().silu_multiply(expected.data(), y.data(), n);
    table().silu_multiply(found.data(), y.data(), n);
    ASSERT_TRUE(same_bits(expected, found)) << n;
    for (std::size_t i = 0; i < n; ++i) {
      const double silu = x[i] / (1 + std::exp(-double{x[i]}));
      ASSERT_NEAR(found[i], silu * y[i], 1e-6 + 4e-7 * std::fabs(silu)) << x[i];
    }
  }
}

TEST_P(pointwise, a_sigmoid_gate_equals_the_definition) {
  for (const std::size_t n : ragged_sizes()) {
    auto gate = uniforms(n + 1);
    for (float& v : gate) v *= 120;
    const auto x = uniforms(n + 1);
    auto expected = x;
    auto found = x;
    scalar().sigmoid_multiply(gate.data(), expected.data(), n);
    table().sigmoid_multiply(gate.data(), found.data(), n);
    ASSERT_TRUE(same_bits(expected, found)) << n;
    for (std::size_t i = 0; i < n; ++i) ASSERT_NEAR(found[i], x[i] / (1 + std::exp(-double{gate[i]})), 4e-7);
  }
}

TEST_P(pointwise, softmax_and_scaled_sums_equal_the_definition) {
  for (const std::size_t n : ragged_sizes()) {
    if (n == 0) continue;
    auto x = uniforms(n + 1);
    for (float& v : x) v *= 20;
    auto expected = x;
    auto found = x;
    scalar().softmax(expected.data(), n);
    table().softmax(found.data(), n);
    ASSERT_TRUE(same_bits(expected, found)) << n;
    double all = 0;
    for (std::size_t i = 0; i < n; ++i) all += std::exp(double{x[i]});
    for (std::size_t i = 0; i < n; ++i) ASSERT_NEAR(found[i], std::exp(double{x[i]}) / all, 1e-6) << n;
    ASSERT_EQ(found[n], x[n]) << "nothing is written after the end";

    const auto y = uniforms(n + 1);
    found = x;
    table().add_scaled(found.data(), 0.7F, y.data(), n);
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(found[i], std::fma(0.7F, y[i], x[i]));
    found = x;
    table().add_scaled(found.data(), 1, y.data(), n);
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(found[i], x[i] + y[i]);
    ASSERT_EQ(found[n], x[n]);
  }
}

TEST_P(pointwise, layer_norm_equals_the_definition) {
  for (const std::size_t n : ragged_sizes()) {
    if (n == 0) continue;
    auto x = uniforms(n);
    for (float& v : x) v += 3;  // a mean that matters
    const auto weight = uniforms(n);
    const auto bias = uniforms(n);
    std::vector<float> expected(n + 3, nan);
    std::vector<float> found(n + 3, nan);
    scalar().layer_norm(x.data(), weight.data(), bias.data(), 1e-5F, n, expected.data());
    table().layer_norm(x.data(), weight.data(), bias.data(), 1e-5F, n, found.data());
    ASSERT_TRUE(same_bits(expected, found)) << n;
    double mean = 0;
    for (const float v : x) mean += v / static_cast<double>(n);
    double variance = 0;
    for (const float v : x) variance += (v - mean) * (v - mean) / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_NEAR(found[i], (x[i] - mean) / std::sqrt(variance + 1e-5) * weight[i] + bias[i], 2e-4) << n;
    }
    ASSERT_TRUE(std::isnan(found[n])) << "nothing is written after the end";
  }
}

TEST_P(pointwise, gelu_equals_the_definition_with_and_without_a_gate) {
  for (const std::size_t n : ragged_sizes()) {
    auto x = uniforms(n + 1);
    for (float& v : x) v *= 30;
    const auto y = uniforms(n + 1);
    for (const float* up : {y.data(), static_cast<const float*>(nullptr)}) {
      auto expected = x;
      auto found = x;
      scalar().gelu_multiply(expected.data(), up, n);
      table().gelu_multiply(found.data(), up, n);
      ASSERT_TRUE(same_bits(expected, found)) << n;
      for (std::size_t i = 0; i < n; ++i) {
        const double v = x[i];
        const double gelu = v / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
        ASSERT_NEAR(found[i], gelu * (up == nullptr ? 1 : up[i]), 2e-6 + 1e-6 * std::fabs(gelu)) << x[i];
      }
      ASSERT_EQ(found[n], x[n]);
    }
  }
}

TEST_P(pointwise, clamped_swiglu_equals_the_definition) {
  for (const std::size_t n : ragged_sizes()) {
    auto x = uniforms(n + 1), y = uniforms(n + 1);
    for (float& v : x) v *= 60;
    for (float& v : y) v *= 10;
    auto expected = x;
    auto found = x;
    scalar().clamped_swiglu(expected.data(), y.data(), n);
    table().clamped_swiglu(found.data(), y.data(), n);
    ASSERT_TRUE(same_bits(expected, found)) << n;
    for (std::size_t i = 0; i < n; ++i) {
      const double g = std::min(double{x[i]}, 7.0), u = std::clamp(double{y[i]}, -7.0, 7.0);
      ASSERT_NEAR(found[i], g / (1 + std::exp(-1.702 * g)) * (u + 1), 4e-5) << x[i] << ", " << y[i];
    }
  }
}

TEST_P(pointwise, soft_cap_equals_the_definition) {
  for (const std::size_t n : ragged_sizes()) {
    for (const float spread : {0.01F, 20.0F, 1000.0F}) {
      auto x = uniforms(n + 1);
      for (float& v : x) v *= spread;
      auto expected = x;
      auto found = x;
      scalar().soft_cap(expected.data(), 30, n);
      table().soft_cap(found.data(), 30, n);
      ASSERT_TRUE(same_bits(expected, found)) << n;
      for (std::size_t i = 0; i < n; ++i) {
        const double capped = 30 * std::tanh(x[i] / 30.0);
        ASSERT_NEAR(found[i], capped, 6e-7 * std::fabs(capped)) << x[i];
      }
      ASSERT_EQ(found[n], x[n]) << "nothing is written after the end";
    }
  }
}

TEST_P(pointwise, best_of_row_is_the_first_of_the_greatest_numbers) {
  const float odd[] = {nan, -infinity, infinity, 0.0F, -0.0F, 1.0F};
  for (std::size_t n = 0; n < 3000; n = n < 150 ? n + 1 : n * 2 + 1) {
    for (int trial = 0; trial < 8; ++trial) {
      auto x = uniforms(n);
      for (float& v : x) {
        if (trial > 0) v = std::round(v * 4);  // many are equal, including zeros of both signs
        if (trial > 1 && below(10) == 0) v = odd[below(trial == 2 ? 2 : std::size(odd))];
        if (trial == 3) v = odd[below(2)];
      }
      row_best expected;
      for (std::size_t i = 0; i < n; ++i) {
        if (x[i] > expected.value) expected = {x[i], static_cast<std::uint32_t>(i)};
      }
      const row_best found = table().best_of_row(x.data(), n);
      ASSERT_EQ(found.value, expected.value) << n << ", trial " << trial;
      ASSERT_EQ(found.index, expected.index) << n << ", trial " << trial;
    }
  }
}

TEST_P(pointwise, parts_of_a_row_have_its_best_in_every_order) {
  const std::size_t n = 400;
  auto x = uniforms(n);
  for (float& v : x) v = std::round(v * 3);
  const row_best whole = table().best_of_row(x.data(), n);
  for (const bool forward : {true, false}) {
    row_best joined;
    for (std::size_t part = 0; part < 8; ++part) {
      const std::size_t begin = (forward ? part : 7 - part) * 50;
      row_best here = table().best_of_row(x.data() + begin, 50);
      here.index += static_cast<std::uint32_t>(begin);
      joined.join(here);
    }
    EXPECT_EQ(joined.value, whole.value);
    EXPECT_EQ(joined.index, whole.index);
  }
}

TEST_P(pointwise, nan_stays_visible) {
  std::vector<float> gate{nan, 1};
  const std::vector<float> up{1, 1};
  table().silu_multiply(gate.data(), up.data(), 2);
  EXPECT_TRUE(std::isnan(gate[0]));
  EXPECT_FALSE(std::isnan(gate[1]));
  gate = {nan, 1};
  table().gelu_multiply(gate.data(), up.data(), 2);
  EXPECT_TRUE(std::isnan(gate[0]));
  EXPECT_FALSE(std::isnan(gate[1]));
  gate = {nan, 1};
  table().soft_cap(gate.data(), 30, 2);
  EXPECT_TRUE(std::isnan(gate[0]));
  EXPECT_FALSE(std::isnan(gate[1]));
  gate = {nan, 1, 1};
  table().clamped_swiglu(gate.data(), std::vector<float>{1, nan, 1}.data(), 3);
  EXPECT_TRUE(std::isnan(gate[0]));
  EXPECT_TRUE(std::isnan(gate[1]));
  EXPECT_FALSE(std::isnan(gate[2]));
}

TEST_P(pointwise, every_half_widens_exactly) {
  std::vector<std::uint16_t> halves(65536);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  for (const element_type type : {element_type::f16, element_type::bf16}) {
    std::vector<float> expected(halves.size());
    std::vector<float> found(halves.size(), nan);
    scalar().widen(type, halves.data(), halves.size(), expected.data());
    table().widen(type, halves.data(), halves.size(), found.data());
    ASSERT_TRUE(same_bits(expected, found));
    std::vector<std::uint16_t> back(halves.size());
    table().narrow(type, found.data(), found.size(), back.data());
    for (std::size_t i = 0; i < halves.size(); ++i) {
      if (std::isnan(found[i])) continue;
      const bool stops_at_largest = type == element_type::f16 && std::isinf(found[i]);
      ASSERT_EQ(back[i], stops_at_largest ? halves[i] - 1 : halves[i]);
    }
  }
  std::vector<float> some(3);
  const std::uint16_t known[] = {0x3c00, 0xc000, 0x0001};
  table().widen(element_type::f16, known, 3, some.data());
  EXPECT_EQ(some, (std::vector<float>{1.0F, -2.0F, 0x1p-24F}));
}

TEST_P(pointwise, floats_narrow_to_nearest_even_on_every_target) {
  std::vector<float> values{0.0F,
                            -0.0F,
                            65504.0F,
                            65519.99F,
                            65520.0F,
                            -65520.0F,
                            1e38F,
                            0x1p-24F,
                            0x1p-25F,
                            0x1.8p-25F,
                            0x1.8p-24F,
                            6.09755e-5F,
                            6.1035e-5F,
                            0x1p-14F,
                            0x1p-140F,
                            1.0F + 0x1p-11F,
                            1.0F + 0x1.8p-10F,
                            1.0F + 0x1p-8F,
                            1.0F + 0x1.8p-7F,
                            3.4028235e38F,
                            nan,
                            -nan,
                            std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()};
  for (int i = 0; i < 200000; ++i) values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random_())));
  for (int i = 0; i < 100000; ++i) values.push_back(uniform() * std::exp2(uniform() * 30));
  for (const element_type type : {element_type::f16, element_type::bf16}) {
    std::vector<std::uint16_t> expected(values.size());
    std::vector<std::uint16_t> found(values.size());
    scalar().narrow(type, values.data(), values.size(), expected.data());
    table().narrow(type, values.data(), values.size(), found.data());
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(expected[i], found[i]) << values[i] << ", bits " << std::bit_cast<std::uint32_t>(values[i]);
    }
    // Nearest: no neighbor is closer, and of two equally close ones the even one was taken.
    for (std::size_t i = 0; i < values.size(); i += 97) {
      const float v = values[i];
      if (!std::isfinite(v) || std::fabs(v) > 65000) continue;
      const auto at = [&](std::uint16_t h) {
        float f = 0;
        table().widen(type, &h, 1, &f);
        return double{f};
      };
      const std::uint16_t h = found[i];
      const double error = std::fabs(at(h) - v);
      for (const int step : {-1, 1}) {
        const auto other = static_cast<std::uint16_t>(h + step);
        if ((other & 0x7fff) == 0x7fff || (h & 0x7fff) == 0) continue;
        const double other_error = std::fabs(at(other) - v);
        ASSERT_LE(error, other_error) << v;
        if (error == other_error) {
          ASSERT_EQ(h % 2, 0) << v;
        }
      }
    }
  }
  // Numbers too large for halves become the largest half: an infinity would spoil rows that do not even attend to it.
  const float odd[] = {65520.0F, 65519.0F, nan, -1e9F, infinity, -infinity};
  std::uint16_t halves[6];
  table().narrow(element_type::f16, odd, 6, halves);
  EXPECT_EQ(halves[0], 0x7bff);
  EXPECT_EQ(halves[1], 0x7bff);
  EXPECT_GT(halves[2] & 0x7fff, 0x7c00);
  EXPECT_EQ(halves[3], 0xfbff);
  EXPECT_EQ(halves[4], 0x7bff);
  EXPECT_EQ(halves[5], 0xfbff);
}

INSTANTIATE_TEST_SUITE_P(targets, pointwise,
                         ::testing::ValuesIn(targets_of_build({"scalar", "neon", "avx2", "avx512"})), target_name);

}  // namespace
}  // namespace redline::kernels
