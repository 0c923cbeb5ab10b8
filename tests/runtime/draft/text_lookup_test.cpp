#include "runtime/draft/text_lookup.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace redline::draft {
namespace {

std::string_view rest(const text_lookup& l, const std::optional<text_lookup::finding>& f) {
  return f ? l.from(f->place, 100) : std::string_view("nothing");
}

TEST(text_lookup, finds_what_followed_the_last_bytes) {
  const text_lookup l({"one two three four", "another text of five"});
  EXPECT_EQ(rest(l, l.find("see one two th", 0)), "ree four");
  EXPECT_EQ(rest(l, l.find("another ", 0)), "text of five");
  EXPECT_EQ(rest(l, l.find("nothing of this", 0)), "nothing");
  EXPECT_EQ(rest(l, l.find("one two", 0)), "nothing") << "too short to be sure";
}

TEST(text_lookup, no_agreement_crosses_the_end_of_a_text) {
  const text_lookup l({"aaaaaaaa", "bbbbbbbbcc"});
  EXPECT_EQ(l.find("aaaaaaaabbbbbbbb", 0)->matched, 8U);
  EXPECT_EQ(rest(l, l.find("aaaaaaaa", 0)), "") << "nothing follows";
}

TEST(text_lookup, the_longest_agreement_wins_and_then_the_nearest_one_ahead) {
  const text_lookup l({"x = compute(1)\ny = compute(2)\nz = compute(3)\n"});
  EXPECT_EQ(rest(l, l.find("y = compute(", 0)).substr(0, 1), "2");
  const auto second = l.find("= compute(", 0)->place;
  EXPECT_EQ(rest(l, l.find(" compute(", second + 1)).substr(0, 1), "2");
  EXPECT_EQ(rest(l, l.find(" compute(", second)).substr(0, 1), "1");
}

TEST(text_lookup, finds_its_way_back_shortly_after_a_change) {
  const text_lookup l({"int count = 10; return count;"});
  const auto place = l.find("int count = ", 0)->place;
  EXPECT_EQ(rest(l, l.find_after("64; r", place)), "eturn count;");
  EXPECT_EQ(rest(l, l.find_after("64", place)), "nothing");
}

TEST(text_lookup, keeps_the_last_bytes_of_too_much_text) {
  const text_lookup l({std::string(1000, 'a'), "0123456789", "abcdefghij"}, 16);
  EXPECT_EQ(rest(l, l.find("abcdefgh", 0)), "ij");
  EXPECT_EQ(rest(l, l.find("01234567", 0)), "nothing") << "cut";
  EXPECT_FALSE(text_lookup({}).find("12345678", 0));
  EXPECT_EQ(text_lookup({}).from(77, 5), "");
}

TEST(text_lookup, knows_where_a_line_and_a_named_text_begin) {
  const std::vector<std::string> texts = {"one\ntwo", "another", std::string(2000, 'a')};
  const text_lookup l(texts, text_lookup::bytes_default, {{"path", 1}});
  EXPECT_EQ(l.from(*l.begin_of("path"), 100), "another");
  EXPECT_FALSE(l.begin_of("content"));
  EXPECT_EQ(l.from(l.line_before(1 + 6), 100), "\ntwo");
  EXPECT_EQ(l.from(l.line_before(1 + 2), 100), "one\ntwo");
  EXPECT_EQ(l.from(l.line_before(*l.begin_of("path")), 100), "another") << "nothing from the text before it";
  EXPECT_EQ(l.line_before(l.last_begin() + 1500), l.last_begin() + 1500 - text_lookup::resync_reach);
  EXPECT_FALSE(text_lookup(texts, 100, {{"path", 1}}).begin_of("path")) << "cut";
}

TEST(text_lookup, whatever_it_finds_ends_with_the_last_bytes) {
  std::mt19937 random(7);
  std::vector<std::string> texts;
  for (int t = 0; t < 20; ++t) {
    std::string text;
    for (int i = 0; i < 300; ++i) text += static_cast<char>('a' + random() % 3);
    texts.push_back(text);
  }
  const text_lookup l(texts);
  for (int i = 0; i < 3000; ++i) {
    std::string tail;
    for (int k = 0; k < 20; ++k) tail += static_cast<char>('a' + random() % 3);
    const auto near = static_cast<std::uint32_t>(random() % 7000);
    const auto found = l.find(tail, near);
    if (!found) continue;
    ASSERT_GE(found->matched, text_lookup::gram_bytes);
    const auto before = l.from(found->place - found->matched, found->matched);
    ASSERT_EQ(before, std::string_view(tail).substr(tail.size() - found->matched));
  }
}

}  // namespace
}  // namespace redline::draft
