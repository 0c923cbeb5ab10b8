#include "runtime/text/text_document.hpp"

#include <gtest/gtest.h>

#include <random>

namespace redline::text {
namespace {

constexpr std::size_t roomy = 1 << 20;

text_document document_of(const std::string& text, std::size_t bytes_max = roomy) {
  auto made = text_document::make(text, bytes_max);
  EXPECT_TRUE(made) << made.error().describe();
  return std::move(*made);
}

std::string complaint(const result<byte_range>& r) { return r ? "" : r.error().context; }

text_edit at(text_position begin, text_position end, std::string text = "") {
  return {position_range{begin, end}, std::move(text)};
}

TEST(text_document, replaces_inserts_and_deletes_by_lines_and_characters) {
  auto d = document_of("one\ntwo\nthree");
  EXPECT_EQ(d.lines_count(), 3U);
  EXPECT_EQ(*d.replace(at({1, 0}, {1, 3}, "TWO AND"), position_encoding::utf16), (byte_range{4, 7}));
  EXPECT_EQ(d.text(), "one\nTWO AND\nthree");
  EXPECT_EQ(*d.replace(at({2, 5}, {2, 5}, "!\n"), position_encoding::utf16), (byte_range{17, 17}));
  EXPECT_EQ(d.text(), "one\nTWO AND\nthree!\n");
  EXPECT_EQ(d.lines_count(), 4U);
  EXPECT_EQ(*d.replace(at({0, 3}, {2, 0}), position_encoding::utf16), (byte_range{3, 12}));
  EXPECT_EQ(d.text(), "onethree!\n");
  EXPECT_EQ(*d.replace({whole_text{}, "new"}, position_encoding::utf16), (byte_range{0, 10}));
  EXPECT_EQ(*d.replace({byte_range{1, 2}, "EE"}, position_encoding::utf16), (byte_range{1, 2}));
  EXPECT_EQ(d.text(), "nEEw");
}

TEST(text_document, counts_characters_in_the_units_asked_for) {
  const auto d = document_of("a\u00e9\U0001F642b");  // 1, 2 and 4 bytes; 1, 1 and 2 UTF-16 units
  EXPECT_EQ(*d.offset_of({0, 1}, position_encoding::utf16), 1U);
  EXPECT_EQ(*d.offset_of({0, 2}, position_encoding::utf16), 3U);
  EXPECT_EQ(*d.offset_of({0, 4}, position_encoding::utf16), 7U);
  EXPECT_EQ(*d.offset_of({0, 5}, position_encoding::utf16), 8U);
  EXPECT_EQ(*d.offset_of({0, 3}, position_encoding::utf8), 3U);
  EXPECT_EQ(d.offset_of({0, 3}, position_encoding::utf16).error().context,
            "line 0, character 3 lies inside a surrogate pair");
  EXPECT_EQ(d.offset_of({0, 2}, position_encoding::utf8).error().context,
            "line 0, character 2 lies inside a character's bytes");
}

TEST(text_document, ends_lines_as_the_language_server_protocol_does) {
  const auto d = document_of("a\r\nb\rc\n\n");
  ASSERT_EQ(d.lines_count(), 5U);
  EXPECT_EQ(*d.offset_of({0, 1}, position_encoding::utf16), 1U);
  EXPECT_EQ(d.offset_of({0, 2}, position_encoding::utf16).error().context,
            "line 0, character 2: expected a character up to 1, the line's length");  // within "\r\n"
  EXPECT_EQ(*d.offset_of({1, 1}, position_encoding::utf16), 4U);
  EXPECT_EQ(*d.offset_of({2, 0}, position_encoding::utf16), 5U);
  EXPECT_EQ(*d.offset_of({4, 0}, position_encoding::utf16), 8U);
}

TEST(text_document, refuses_what_is_outside_and_stays_as_it_was) {
  auto d = document_of("ab\nc\u00e9", 10);
  const auto u = position_encoding::utf16;
  EXPECT_EQ(complaint(d.replace(at({2, 0}, {2, 0}), u)), "expected a line below 2, found 2");
  EXPECT_EQ(complaint(d.replace(at({0, 3}, {0, 3}), u)),
            "line 0, character 3: expected a character up to 2, the line's length");
  EXPECT_EQ(complaint(d.replace(at({1, 1}, {0, 0}), u)),
            "expected a range that begins before it ends, found bytes 4 to 0");
  EXPECT_EQ(complaint(d.replace({byte_range{7, 7}, ""}, u)),
            "expected a byte offset up to 6, the text's length, found 7");
  EXPECT_EQ(complaint(d.replace({byte_range{0, 5}, ""}, u)), "byte offset 5 lies inside a character");
  EXPECT_EQ(complaint(d.replace(at({0, 0}, {0, 0}, "\xc3"), u)),
            "expected text in UTF-8, found an invalid byte at offset 0");
  EXPECT_EQ(complaint(d.replace(at({0, 0}, {0, 0}, "12345"), u)), "expected a text of at most 10 bytes, found 11");
  EXPECT_EQ(d.text(), "ab\nc\u00e9");
  EXPECT_TRUE(d.replace(at({0, 0}, {0, 2}, "123456"), u));  // only the size of the result counts
  EXPECT_FALSE(text_document::make("\xff", roomy));
  EXPECT_FALSE(text_document::make("12345", 4));
}

TEST(text_document, reads_positions_behind_the_end_as_the_end) {
  const auto d = document_of("a\r\nb\u00e9\U0001F600c\rlast");
  const auto near = [&](std::uint32_t line, std::uint32_t character, position_encoding units) {
    return d.offset_near({line, character}, units);
  };
  EXPECT_EQ(near(0, 9, position_encoding::utf16), 1U);  // before "\r\n"
  EXPECT_EQ(near(1, 2, position_encoding::utf16), 6U);
  EXPECT_EQ(near(1, 3, position_encoding::utf16), 6U);  // between the halves of a surrogate pair
  EXPECT_EQ(near(1, 4, position_encoding::utf16), 10U);
  EXPECT_EQ(near(1, 5, position_encoding::utf8), 6U);  // within a character's bytes
  EXPECT_EQ(near(1, 99, position_encoding::utf8), 11U);
  EXPECT_EQ(near(2, 99, position_encoding::utf16), 16U);
  EXPECT_EQ(near(3, 0, position_encoding::utf16), 16U);
  EXPECT_EQ(near(0xFFFFFFFF, 0xFFFFFFFF, position_encoding::utf8), 16U);
  EXPECT_EQ(document_of("").offset_near({7, 7}, position_encoding::utf16), 0U);
}

TEST(text_document, finds_the_position_of_every_character) {
  const auto d = document_of("a\r\nb\u00e9\U0001F600c\r\nlast\n");
  for (const auto units : {position_encoding::utf8, position_encoding::utf16}) {
    for (std::size_t at = 0; at <= d.text().size(); ++at) {
      const bool inside = at < d.text().size() && (static_cast<unsigned char>(d.text()[at]) & 0xC0) == 0x80;
      const bool splits_end = at > 0 && d.text()[at - 1] == '\r' && d.text()[at] == '\n';
      const auto back = d.offset_of(d.position_of(at, units), units);
      ASSERT_TRUE(back) << at;
      if (!inside && !splits_end) {
        EXPECT_EQ(*back, at);
      } else {
        EXPECT_LT(*back, at);
      }
    }
  }
  EXPECT_EQ(d.position_of(10, position_encoding::utf16), (text_position{1, 4}));
  EXPECT_EQ(d.position_of(10, position_encoding::utf8), (text_position{1, 7}));
  EXPECT_EQ(d.position_of(999, position_encoding::utf8), (text_position{3, 0}));
}

TEST(text_document, knows_its_lines_after_any_edits) {
  std::mt19937 random(1);
  const std::string parts[] = {"\r", "\n", "\r\n", "x", "\u00e9"};
  auto d = document_of("");
  for (int i = 0; i < 4000; ++i) {
    // A slow but obvious model of the same text.
    std::vector<std::size_t> begins{0};
    for (std::size_t k = 0; k < d.text().size(); ++k) {
      if (d.text()[k] == '\n' || (d.text()[k] == '\r' && d.text()[k + 1] != '\n')) begins.push_back(k + 1);
    }
    ASSERT_EQ(d.lines_count(), begins.size()) << "edit " << i;
    for (std::size_t line = 0; line < begins.size(); ++line) {
      ASSERT_EQ(*d.offset_of({static_cast<std::uint32_t>(line), 0}, position_encoding::utf8), begins[line])
          << "edit " << i;
    }
    std::string with;
    for (std::uint32_t n = random() % 4; n > 0; --n) with += parts[random() % std::size(parts)];
    std::size_t a = random() % (d.text().size() + 1);
    std::size_t b = std::min<std::size_t>(a + random() % 5, d.text().size());
    if (d.text().size() > 40) b = std::min(a + 20, d.text().size());
    while (a > 0 && (static_cast<unsigned char>(d.text()[a]) & 0xC0) == 0x80) --a;
    while (b < d.text().size() && (static_cast<unsigned char>(d.text()[b]) & 0xC0) == 0x80) ++b;
    ASSERT_TRUE(d.replace({byte_range{a, b}, with}, position_encoding::utf8));
  }
}

}  // namespace
}  // namespace redline::text
