#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/dispatch.hpp"
#include "tests/support/kernel_targets.hpp"
#include "tests/support/missing_instructions.hpp"

namespace redline::kernels {

inline constexpr float nan = std::numeric_limits<float>::quiet_NaN();

using test::targets_of_build;

/// One target per instance; skipped where the CPU lacks it and the missing instructions are not emulated.
class kernel_test : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    choice_ = test::choose_table_or_emulate(GetParam());
    if (choice_.table == nullptr) GTEST_SKIP() << choice_.problem;
  }
  [[nodiscard]] const kernel_table& table() const { return *choice_.table; }
  [[nodiscard]] static const kernel_table& scalar() { return *choose_table("scalar").table; }

  std::mt19937 random_{42};

  float uniform() { return static_cast<float>(static_cast<std::int32_t>(random_())) * 0x1p-31F; }
  std::vector<float> uniforms(std::size_t n) {
    std::vector<float> values(n);
    for (float& v : values) v = uniform();
    return values;
  }
  std::size_t below(std::size_t n) { return random_() % n; }

 private:
  table_choice choice_;
};

inline ::testing::AssertionResult same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " and " << b.size() << " values";
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0) {
      return ::testing::AssertionFailure() << "at " << i << ": " << a[i] << " and " << b[i];
    }
  }
  return ::testing::AssertionSuccess();
}

/// Lengths around the vector width, and a few others.
inline const std::vector<std::size_t>& ragged_sizes() {
  static const std::vector<std::size_t> sizes{0, 1, 2, 15, 16, 17, 31, 32, 33, 100, 257};
  return sizes;
}

inline std::string target_name(const ::testing::TestParamInfo<const char*>& info) { return info.param; }

}  // namespace redline::kernels
