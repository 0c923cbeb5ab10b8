#include "runtime/draft/edit_cursor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace redline::draft {
namespace {

using tokens = std::vector<token>;

tokens ahead(const edit_cursor& c, std::size_t count) {
  const auto found = c.ahead(count);
  return {found.begin(), found.end()};
}
void emit(edit_cursor& c, const tokens& all) {
  for (const token t : all) c.emit(t);
}

/// A cursor that may be used.
edit_cursor cursor_in(tokens known) {
  edit_cursor c(std::move(known));
  EXPECT_TRUE(c.index(1'000'000));
  return c;
}

const tokens text = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};

TEST(edit_cursor, moves_along_with_the_answer) {
  edit_cursor c = cursor_in(text);
  EXPECT_EQ(ahead(c, 3), (tokens{1, 2, 3})) << "before the answer's first token";
  emit(c, {1, 2, 3});
  EXPECT_EQ(ahead(c, 3), (tokens{4, 5, 6}));
  EXPECT_EQ(c.agreed(), 3u);
  emit(c, {4, 5, 6, 7, 8});
  EXPECT_EQ(ahead(c, 80), (tokens{9, 10}));
  emit(c, {9, 10});
  EXPECT_TRUE(ahead(c, 80).empty()) << "at the end of the text";
  c.rewind();
  EXPECT_EQ(ahead(c, 1), (tokens{1}));
  EXPECT_EQ(c.agreed(), 0u);
}

TEST(edit_cursor, finds_its_place_behind_each_kind_of_change) {
  struct change {
    const char* name;
    tokens answer;
    tokens next;
  };
  const change table[] = {
      {"replaced", {1, 2, 3, 77}, {5, 6}},
      {"replaced by more", {1, 2, 3, 77, 78, 5}, {6, 7}},
      {"inserted", {1, 2, 3, 77, 78, 4, 5}, {6, 7}},
      {"deleted", {1, 2, 3, 6}, {7, 8}},
      {"moved back", {5, 6, 7, 1, 2}, {3, 4}},
      {"written twice", {1, 2, 3, 4, 5, 6, 2, 3}, {4, 5}},
      {"text in front", {60, 61, 62, 1, 2}, {3, 4}},
      {"text in front, once begun inside", {60, 61, 62, 63, 64, 65, 66, 4, 5}, {6, 7}},
  };
  for (const change& one : table) {
    edit_cursor c = cursor_in(text);
    emit(c, one.answer);
    EXPECT_EQ(ahead(c, 2), one.next) << one.name;
  }
}

TEST(edit_cursor, waits_at_the_beginning_while_the_answer_has_not_reached_the_text) {
  edit_cursor c = cursor_in(text);
  emit(c, {60, 61, 62});  // a code fence
  EXPECT_EQ(ahead(c, 2), (tokens{1, 2}));
  EXPECT_EQ(c.agreed(), 0u);
}

TEST(edit_cursor, starts_although_the_border_is_split_into_other_tokens) {
  edit_cursor c = cursor_in(text);
  emit(c, {12, 3});  // 12 is the text of 1 and 2 as one token
  emit(c, {4});
  EXPECT_EQ(ahead(c, 2), (tokens{5, 6}));
}

TEST(edit_cursor, prefers_what_lies_ahead_and_then_what_is_near) {
  // 5 6 occurs at 2, 6 and 10.
  edit_cursor c = cursor_in({1, 2, 5, 6, 30, 3, 5, 6, 40, 4, 5, 6, 50});
  emit(c, {1, 2, 5, 6, 30, 90, 91, 5, 6});
  EXPECT_EQ(ahead(c, 1), (tokens{40}));
  emit(c, {5, 6});
  EXPECT_EQ(ahead(c, 1), (tokens{50}));
  emit(c, {5, 6});
  EXPECT_EQ(ahead(c, 1), (tokens{50})) << "there is none ahead, so it returns to the nearest";
  // A longer agreement takes precedence over a nearer position.
  emit(c, {2, 5, 6});
  EXPECT_EQ(ahead(c, 1), (tokens{30}));
}

TEST(edit_cursor, gives_up_after_misses_in_a_row_and_comes_back_at_an_anchor) {
  for (const bool begun : {false, true}) {
    edit_cursor c = cursor_in(text);
    if (begun) emit(c, {1, 2});
    for (std::uint32_t i = 0; i < edit_cursor::misses_max; ++i) {
      EXPECT_FALSE(ahead(c, 1).empty()) << i;
      c.emit(70 + static_cast<token>(i));
    }
    c.emit(80);
    EXPECT_TRUE(ahead(c, 1).empty());
    c.emit(6);
    EXPECT_TRUE(ahead(c, 1).empty()) << "one token is no anchor";
    c.emit(7);
    EXPECT_EQ(ahead(c, 2), (tokens{8, 9}));
    EXPECT_EQ(c.agreed(), 2u);
  }
}

TEST(edit_cursor, of_an_empty_text_says_nothing) {
  edit_cursor c;
  EXPECT_TRUE(c.empty());
  emit(c, {1, 2, 3});
  EXPECT_TRUE(ahead(c, 5).empty());
  EXPECT_TRUE(c.index(1));
  EXPECT_TRUE(ahead(cursor_in({}), 5).empty());
}

TEST(edit_cursor, is_indexed_in_parts) {
  edit_cursor c(text);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(c.index(3)) << i;
  EXPECT_TRUE(c.index(3));
  EXPECT_TRUE(c.index(3)) << "and stays so";
  emit(c, {60, 61, 62, 63, 64, 65, 66, 8, 9});
  EXPECT_EQ(ahead(c, 2), (tokens{10})) << "the last part is among the candidates";
}

TEST(edit_cursor, lets_a_copy_go_its_own_way) {
  edit_cursor c = cursor_in(text);
  emit(c, {1, 2});
  edit_cursor other = c;
  emit(other, {3, 4, 7});
  EXPECT_EQ(ahead(c, 2), (tokens{3, 4}));
  EXPECT_EQ(ahead(other, 2), (tokens{8, 9}));
}

// Whatever is emitted, the proposal is a part of the text, and the tokens said to agree do agree.
TEST(edit_cursor, says_only_what_stands_in_the_text) {
  std::mt19937 random(3);
  for (int world = 0; world < 300; ++world) {
    const auto letters = static_cast<token>(1 + random() % 6);
    tokens known(random() % 60);
    for (token& t : known) t = static_cast<token>(random()) % letters;
    edit_cursor c = cursor_in(known);
    tokens answer;
    for (int i = 0; i < 150; ++i) {
      const auto next = ahead(c, 1 + random() % 10);
      answer.push_back(!next.empty() && random() % 4 != 0 ? next[0] : static_cast<token>(random()) % (letters + 1));
      c.emit(answer.back());
      ASSERT_LE(c.agreed(), std::min<std::size_t>(answer.size(), edit_cursor::agreed_max));
      const tokens rest = ahead(c, 1000);
      ASSERT_LE(rest.size(), known.size());
      ASSERT_TRUE(std::equal(rest.rbegin(), rest.rend(), known.rbegin())) << "the rest of the text";
      if (rest.empty()) continue;
      const std::size_t place = known.size() - rest.size();
      for (std::uint32_t back = 1; back <= c.agreed(); ++back) {
        ASSERT_EQ(known[place - back], answer[answer.size() - back]);
      }
    }
  }
}

}  // namespace
}  // namespace redline::draft
