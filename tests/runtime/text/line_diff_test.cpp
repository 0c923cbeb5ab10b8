#include "runtime/text/line_diff.hpp"

#include <gtest/gtest.h>

#include <random>

namespace redline::text {
namespace {

std::string side(const std::vector<diff_line>& script, diff_line::kind other) {
  std::string out;
  for (const auto& line : script) {
    if (line.what != other) out += line.text;
  }
  return out;
}

std::size_t lcs(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b) {
  std::vector<std::vector<std::size_t>> t(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < b.size(); ++j) {
      t[i + 1][j + 1] = a[i] == b[j] ? t[i][j] + 1 : std::max(t[i][j + 1], t[i + 1][j]);
    }
  }
  return t[a.size()][b.size()];
}

TEST(line_diff, scripts_are_right_and_shortest) {
  std::mt19937 random(11);
  const auto text = [&] {
    std::string out;
    const auto count = random() % 12;
    for (unsigned i = 0; i < count; ++i) out += std::string(1, static_cast<char>('a' + random() % 4)) + "\n";
    if (!out.empty() && random() % 3 == 0) out.pop_back();
    return out;
  };
  for (int trial = 0; trial < 3000; ++trial) {
    const std::string a = text();
    const std::string b = text();
    const auto script = diff_lines(a, b);
    ASSERT_EQ(side(script, diff_line::kind::added), a);
    ASSERT_EQ(side(script, diff_line::kind::removed), b);
    std::size_t kept = 0;
    for (const auto& line : script) kept += line.what == diff_line::kind::kept ? 1 : 0;
    ASSERT_EQ(kept, lcs(split_lines(a), split_lines(b))) << a << "----\n" << b;
  }
}

TEST(line_diff, files_without_a_common_line_do_not_take_for_ever) {
  std::string a;
  std::string b;
  for (int i = 0; i < 20000; ++i) {
    a += "a" + std::to_string(i) + "\n";
    b += "b" + std::to_string(i) + "\n";
  }
  EXPECT_EQ(diff_lines(a, b).size(), 40000u);
}

}  // namespace
}  // namespace redline::text
