#include "actors/cli/lsp/edited_document.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace redline::actors::cli::lsp {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using text::position_encoding;
using text::position_range;

constexpr auto utf16 = position_encoding::utf16;

position_range range(std::uint32_t l1, std::uint32_t c1, std::uint32_t l2, std::uint32_t c2) {
  return {{l1, c1}, {l2, c2}};
}

std::string applied(std::string text, const change_set& changes) {
  for (const byte_edit& e : changes.edits) {
    if (!e.where)
      text = e.text;
    else
      text.replace(e.where->begin, e.where->end - e.where->begin, e.text);
  }
  return text;
}

TEST(edited_document, collects_changes_until_they_are_sent) {
  edited_document d("one\r\n\U0001F600two\n");
  EXPECT_FALSE(d.is_sent());
  d.mark_sent();
  EXPECT_TRUE(d.is_sent());
  d.change(range(1, 2, 1, 5), "2", utf16);
  d.change(range(0, 3, 0, 99), "!", utf16);
  EXPECT_EQ(d.document()->text(),
            "one!\r\n\U0001F600"
            "2\n");
  EXPECT_EQ(d.revision(), 3);
  const auto changes = d.take_unsent();
  EXPECT_EQ(changes.base, 1);
  EXPECT_EQ(changes.next, 3);
  EXPECT_EQ(applied("one\r\n\U0001F600two\n", changes), d.document()->text());
  EXPECT_TRUE(d.is_sent());
}

TEST(edited_document, reads_a_range_that_is_turned_around) {
  edited_document d("abc");
  d.change(range(0, 2, 0, 1), "", utf16);
  EXPECT_EQ(d.document()->text(), "ac");
}

TEST(edited_document, sends_the_whole_text_instead_of_too_many_changes) {
  edited_document d("");
  d.mark_sent();
  for (std::size_t i = 0; i <= edited_document::unsent_edits_max; ++i) d.change(range(0, 0, 0, 0), "x", utf16);
  const auto changes = d.take_unsent();
  ASSERT_THAT(changes.edits, SizeIs(1));
  EXPECT_EQ(changes.edits[0].where, std::nullopt);
  EXPECT_EQ(changes.edits[0].text, d.document()->text());
  d.change(range(0, 0, 0, 0), std::string(edited_document::unsent_bytes_max + 1, 'y'), utf16);
  EXPECT_EQ(d.take_unsent().edits.at(0).where, std::nullopt);
}

TEST(edited_document, is_followed_by_what_was_sent_through_any_changes) {
  std::mt19937 random(3);
  const std::string parts[] = {"\n", "\r\n", "\r", "ab", "\u00e9", "\U0001F600", ""};
  edited_document d("start\n");
  std::string sent = "start\n";
  d.mark_sent();
  for (int i = 0; i < 3000; ++i) {
    const auto where = range(random() % 5, random() % 5, random() % 5, random() % 5);
    if (random() % 50 == 0)
      d.change(std::nullopt, "anew\r\n", utf16);
    else
      d.change(where, parts[random() % std::size(parts)], utf16);
    if (random() % 3 != 0) continue;
    sent = applied(sent, d.take_unsent());
    ASSERT_EQ(sent, d.document()->text());
  }
}

TEST(edited_document, keeps_no_text_that_is_too_large_or_none) {
  edited_document large(std::string(edited_document::bytes_max + 1, 'x'));
  EXPECT_EQ(large.document(), nullptr);
  EXPECT_THAT(large.complaint(), HasSubstr("at most 1048576 bytes"));
  large.change(range(0, 0, 0, 9), "", utf16);
  EXPECT_EQ(large.document(), nullptr);
  large.change(std::nullopt, "small", utf16);
  ASSERT_NE(large.document(), nullptr);
  EXPECT_EQ(large.document()->text(), "small");
  edited_document binary(std::string("ELF\0", 4));
  EXPECT_EQ(binary.document(), nullptr);
  EXPECT_THAT(binary.complaint(), HasSubstr("zero byte"));
  edited_document grows(std::string(edited_document::bytes_max, 'x'));
  ASSERT_NE(grows.document(), nullptr);
  grows.change(range(0, 0, 0, 0), "y", utf16);
  EXPECT_EQ(grows.document(), nullptr);
}

TEST(edited_document, has_a_line_of_a_megabyte) {
  edited_document d(std::string(edited_document::bytes_max - 8, 'x') + "\U0001F600");
  d.change(range(0, 1048568, 0, 1048570), "y", utf16);
  EXPECT_TRUE(d.document()->text().ends_with("xy"));
}

TEST(session_path, needs_no_escape_and_keeps_the_ending) {
  EXPECT_EQ(session_path("file:///home/a/b%20c.py"), "b_20c.py");
  EXPECT_EQ(session_path("untitled:Untitled-1"), "untitled_Untitled-1");
  EXPECT_EQ(session_path("file:///"), "file_");
  EXPECT_EQ(session_path("file:///x/.."), "untitled");
  EXPECT_EQ(session_path(""), "untitled");
  EXPECT_EQ(session_path("git:/x/y.cpp?{\"ref\":\"a/b\"}"), "y.cpp");
  const auto path = session_path("file:///" + std::string(300, 'n') + ".rs");
  EXPECT_EQ(path.size(), 100U);
  EXPECT_TRUE(path.ends_with("n.rs"));
}

}  // namespace
}  // namespace redline::actors::cli::lsp
