#include "runtime/base/result.hpp"

#include <gtest/gtest.h>

namespace redline {
namespace {

result<int> half(int n) {
  if (n % 2 != 0) return failure{errc::invalid_argument, "expected an even number, found " + std::to_string(n)};
  return n / 2;
}

result<int> quarter(int n) {
  REDLINE_TRY_ASSIGN(const int h, half(n));
  return half(h);
}

TEST(result, holds_a_value_or_a_failure) {
  EXPECT_EQ(*half(8), 4);
  ASSERT_FALSE(half(7));
  EXPECT_EQ(half(7).error().code, errc::invalid_argument);
}

TEST(result, passes_failures_through) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(6).error().context, "expected an even number, found 3");
}

TEST(result, every_code_has_a_name_and_a_sentence) {
  int known = 0;
  for (int n = 0; n < 256; ++n) {
    const auto code = static_cast<errc>(n);
    if (!is_known(code)) {
      EXPECT_EQ(name_of(code), "unknown");
      continue;
    }
    ++known;
    EXPECT_FALSE(name_of(code).empty());
    EXPECT_GT(sentence_of(code).size(), 10u);
  }
  EXPECT_EQ(known, static_cast<int>(errc::version_conflict) + 1);
}

}  // namespace
}  // namespace redline
