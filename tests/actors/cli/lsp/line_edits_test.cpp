#include "actors/cli/lsp/line_edits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace redline::actors::cli::lsp {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using text::position_encoding;
using text::text_document;

constexpr std::size_t roomy = 1 << 20;

text_document document_of(std::string text) { return *text_document::make(std::move(text), roomy); }

line_edit edit(text::text_position begin, text::text_position end, std::string text) {
  return {{begin, end}, std::move(text)};
}

/// Applies edits as an editor does: all ranges refer to the text before them.
std::string applied(const text_document& before, const std::vector<line_edit>& edits, position_encoding units) {
  std::string out;
  std::size_t at = 0;
  for (const line_edit& e : edits) {
    const auto begin = before.offset_of(e.where.begin, units);
    const auto end = before.offset_of(e.where.end, units);
    EXPECT_TRUE(begin && end);
    EXPECT_LE(at, *begin);
    out += before.text().substr(at, *begin - at) + e.text;
    at = *end;
  }
  return out + before.text().substr(at);
}

TEST(line_edits, change_the_lines_that_differ) {
  const auto u = position_encoding::utf16;
  EXPECT_THAT(line_edits(document_of("a\nb\nc\n"), "a\nb\nc\n", u), IsEmpty());
  EXPECT_THAT(line_edits(document_of("a\nb\nc\n"), "a\nB\nc\n", u), ElementsAre(edit({1, 0}, {2, 0}, "B\n")));
  EXPECT_THAT(line_edits(document_of("a\nb\nc\nd\n"), "x\na\nb\nd\n", u),
              ElementsAre(edit({0, 0}, {0, 0}, "x\n"), edit({2, 0}, {3, 0}, "")));
  EXPECT_THAT(line_edits(document_of("a\nb"), "a\nb\nc", u), ElementsAre(edit({1, 0}, {1, 1}, "b\nc")));
  EXPECT_THAT(line_edits(document_of("\U0001F600"), "x", u), ElementsAre(edit({0, 0}, {0, 2}, "x")));
  EXPECT_THAT(line_edits(document_of("\U0001F600"), "x", position_encoding::utf8),
              ElementsAre(edit({0, 0}, {0, 4}, "x")));
  EXPECT_THAT(line_edits(document_of(""), "x\n", u), ElementsAre(edit({0, 0}, {0, 0}, "x\n")));
  EXPECT_THAT(line_edits(document_of("x\r\ny\r\n"), "x\r\n", u), ElementsAre(edit({1, 0}, {2, 0}, "")));
}

TEST(line_edits, lead_to_the_new_text_whatever_the_texts) {
  std::mt19937 random(7);
  const std::string parts[] = {"\n", "\r\n", "\r", "x", "\u00e9", "\U0001F600", "x\n", "y\n"};
  const auto make = [&] {
    std::string out;
    for (std::uint32_t n = random() % 12; n > 0; --n) out += parts[random() % std::size(parts)];
    return out;
  };
  for (int i = 0; i < 3000; ++i) {
    const auto before = document_of(make());
    const std::string after = make();
    for (const auto units : {position_encoding::utf8, position_encoding::utf16}) {
      ASSERT_EQ(applied(before, line_edits(before, after, units), units), after) << before.text();
    }
  }
}

TEST(change_story, tells_the_last_hunks_that_fit) {
  const auto before = document_of("a\nb\nc\nd\ne");
  const std::string first = "File: x.py:\n<<<<<<< ORIGINAL\na\n=======\nA\n>>>>>>> UPDATED\n";
  const std::string last = "File: x.py:\n<<<<<<< ORIGINAL\ne\n=======\nE\n>>>>>>> UPDATED\n";
  EXPECT_EQ(change_story("x.py", before, "A\nb\nc\nd\nE", 1000), first + last);
  EXPECT_EQ(change_story("x.py", before, "A\nb\nc\nd\nE", last.size()), last);
  EXPECT_EQ(change_story("x.py", before, "a\nb\nnew\nc\nd\ne", 1000),
            "File: x.py:\n<<<<<<< ORIGINAL\n=======\nnew\n>>>>>>> UPDATED\n");
  EXPECT_EQ(change_story("x.py", before, before.text(), 1000), "");
}

}  // namespace
}  // namespace redline::actors::cli::lsp
