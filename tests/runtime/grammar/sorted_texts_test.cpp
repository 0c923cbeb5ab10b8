#include "runtime/grammar/sorted_texts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "runtime/grammar/syntax/steps.hpp"

namespace redline::grammar {
namespace {

TEST(sorted_texts, finds_what_comparing_every_text_finds) {
  std::mt19937 random(3);
  for (std::size_t round = 0; round < 300; ++round) {
    std::vector<std::string> all;
    for (std::size_t count = 1 + random() % 40; count > 0; --count) {
      std::string text(1, 'a');
      for (std::size_t length = random() % 9; length > 0; --length) text += static_cast<char>('a' + random() % 2);
      all.push_back(random() % 8 == 0 ? text + std::string(300, '\xff') : text);
    }
    const sorted_texts texts(all);
    step_count uncounted;
    for (const auto& text : all) {
      const std::uint32_t i = texts.find(text);
      ASSERT_EQ(texts[i], text);
      for (std::uint32_t length = 0; length <= text.size(); ++length) {
        const auto begin = text.substr(0, length);
        const auto alike = texts.find_alike(i, length, uncounted);
        for (std::uint32_t k = 0; k < texts.count(); ++k)
          ASSERT_EQ(texts[k].starts_with(begin), alike.begin <= k && k < alike.end) << text << " " << length;
        for (const char next : {'a', 'b', 'c', '\xff', '\0'}) {
          const auto narrow = texts.narrow(alike, length, static_cast<std::uint8_t>(next), uncounted);
          for (std::uint32_t k = 0; k < texts.count(); ++k)
            ASSERT_EQ(texts[k].starts_with(begin + next), narrow.begin <= k && k < narrow.end) << text << " " << length;
        }
        std::string common = text.substr(length);
        for (std::uint32_t k = alike.begin; k < alike.end; ++k) {
          const auto rest = texts[k].substr(length);
          common.erase(std::mismatch(common.begin(), common.end(), rest.begin(), rest.end()).first, common.end());
        }
        ASSERT_EQ(texts.find_continuation(alike, length, 1000, uncounted), common);
        ASSERT_EQ(texts.find_continuation(alike, length, 3, uncounted), common.substr(0, 3));
      }
    }
  }
}

TEST(sorted_texts, a_step_takes_the_logarithm_of_the_texts_however_long_they_are) {
  std::vector<std::string> all;
  for (int i = 0; i < 4000; ++i) all.push_back(std::string(500, 'x') + std::to_string(i));
  const sorted_texts texts(std::move(all));
  for (const std::uint32_t i : {0U, 1U, 1999U, 3999U}) {
    for (const std::uint32_t length : {0U, 1U, 499U, 500U, 501U}) {
      step_count steps;
      (void)texts.narrow(texts.find_alike(i, length, steps), length, 'x', steps);
      EXPECT_LT(steps.taken(), 5U * 12);
    }
  }
}

}  // namespace
}  // namespace redline::grammar
