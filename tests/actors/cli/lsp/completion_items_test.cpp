#include "actors/cli/lsp/completion_items.hpp"

#include <gtest/gtest.h>

namespace redline::actors::cli::lsp {
namespace {

constexpr auto utf16 = text::position_encoding::utf16;

TEST(completion_items, begin_with_the_word_before_the_cursor) {
  const auto d = *text::text_document::make("\U0001F600 = retu", 100);
  const json list = completion_list(d, d.text().size(), utf16, "rn x");
  EXPECT_EQ(list["items"].size(), 1U);
  const json& one = list["items"][0];
  EXPECT_EQ(one["label"], "return x");
  EXPECT_EQ(one["filterText"], "return x");
  EXPECT_EQ(one["textEdit"]["newText"], "return x");
  EXPECT_EQ(one["textEdit"]["range"], to_json(text::position_range{{0, 5}, {0, 9}}));
}

TEST(completion_items, offer_the_first_line_and_the_whole) {
  const auto d = *text::text_document::make("x", 100);
  const json list = completion_list(d, 1, utf16, "(a,\n  b)");
  ASSERT_EQ(list["items"].size(), 2U);
  EXPECT_EQ(list["items"][0]["textEdit"]["newText"], "x(a,");
  EXPECT_EQ(list["items"][1]["textEdit"]["newText"], "x(a,\n  b)");
  EXPECT_EQ(list["items"][1]["label"], "x(a, (2 lines)");
  const json next = completion_list(d, 1, utf16, "\n  y");
  ASSERT_EQ(next["items"].size(), 1U);
  EXPECT_EQ(next["items"][0]["label"], "y (2 lines)");
}

TEST(completion_items, are_none_for_blanks) {
  const auto d = *text::text_document::make("x", 100);
  EXPECT_EQ(completion_list(d, 1, utf16, " \n"), empty_list());
  EXPECT_EQ(inline_items({0, 1}, "\t")["items"], json::array());
  EXPECT_EQ(inline_items({0, 1}, " y")["items"][0]["insertText"], " y");
}

TEST(completion_items, have_short_labels_of_whole_characters) {
  const auto d = *text::text_document::make(std::string(200, 'w'), 1000);
  std::string text;
  for (int i = 0; i < 100; ++i) text += "\u00e9";
  const json list = completion_list(d, 200, utf16, text);
  EXPECT_LE(list["items"][0]["label"].get<std::string>().size(), 84U);
  EXPECT_NO_THROW(static_cast<void>(list.dump()));
}

}  // namespace
}  // namespace redline::actors::cli::lsp
