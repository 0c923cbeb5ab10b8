#include "runtime/base/utf8.hpp"

#include <gtest/gtest.h>

#include <random>

namespace redline::utf8 {
namespace {

using kind = unit::kind;

std::string encoded(std::uint32_t code_point) {
  if (code_point < 0x80) return {static_cast<char>(code_point)};
  std::string out;
  const auto tail = [&](unsigned shift) { out.push_back(static_cast<char>(0x80 | ((code_point >> shift) & 0x3F))); };
  if (code_point < 0x800) {
    out.push_back(static_cast<char>(0xC0 | (code_point >> 6)));
  } else if (code_point < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | (code_point >> 12)));
    tail(6);
  } else {
    out.push_back(static_cast<char>(0xF0 | (code_point >> 18)));
    tail(12);
    tail(6);
  }
  tail(0);
  return out;
}

TEST(utf8, knows_every_character_and_every_start_of_one) {
  for (std::uint32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
    if (code_point == 0xD800) code_point = 0xE000;
    const std::string bytes = encoded(code_point);
    const unit whole = first_unit(bytes + "x");
    ASSERT_EQ(whole.what, kind::character) << code_point;
    ASSERT_EQ(whole.size_bytes, bytes.size()) << code_point;
    for (std::size_t n = 1; n < bytes.size(); ++n) {
      const unit part = first_unit(bytes.substr(0, n));
      ASSERT_EQ(part.what, kind::incomplete) << code_point;
      ASSERT_EQ(part.size_bytes, n) << code_point;
    }
  }
}

TEST(utf8, takes_characters_apart_and_puts_them_together) {
  for (std::uint32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code == 0xD800) code = 0xE000;
    const std::string bytes = encoded(code);
    const code_point found = decode("x" + bytes + "x", 1);
    ASSERT_EQ(found.value, code);
    ASSERT_EQ(found.size_bytes, bytes.size());
    std::string again;
    append(again, code);
    ASSERT_EQ(again, bytes);
  }
}

TEST(utf8, keeps_each_stray_byte_as_a_code_point_of_its_own) {
  const std::string text = "a\xE2\x82\u00e9\xFF\xED\xA0\x80";
  std::string again;
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) {
    const code_point c = decode(text, at);
    append(again, c.value);
    at += c.size_bytes;
  }
  EXPECT_EQ(again, text);
  EXPECT_EQ(count, 8U);
  EXPECT_EQ(decode(text, 1).value, stray_byte + 0xE2);
  EXPECT_EQ(count_code_points(text), 8U);
  EXPECT_EQ(code_point_offsets(text), (std::vector<std::size_t>{0, 1, 2, 3, 5, 6, 7, 8, 9}));
}

TEST(utf8, refuses_what_only_looks_like_utf8) {
  const std::string_view broken[] = {"\x80",
                                     "\xBF",
                                     "\xC0\x80",
                                     "\xC1\xBF",
                                     "\xE0\x9F\xBF",
                                     "\xED\xA0\x80",
                                     "\xED\xBF\xBF",
                                     "\xF0\x8F\xBF\xBF",
                                     "\xF4\x90\x80\x80",
                                     "\xF5\x80\x80\x80",
                                     "\xFE",
                                     "\xFF",
                                     "\xC3(",
                                     "\xE2\x82(",
                                     "\xF0\x9F\x98("};
  for (const std::string_view bytes : broken) {
    EXPECT_EQ(first_unit(bytes).what, kind::invalid) << testing::PrintToString(bytes);
    EXPECT_EQ(valid_prefix_bytes(bytes), 0U);
    EXPECT_EQ(valid_prefix_bytes("0123456789\u00e9" + std::string(bytes)), 12U);
  }
}

TEST(utf8, replaces_one_maximal_subpart_by_one_character) {
  EXPECT_EQ(sanitize(""), "");
  EXPECT_EQ(sanitize("plain \u00e9 \u20ac \U0001F600"), "plain \u00e9 \u20ac \U0001F600");
  EXPECT_EQ(sanitize("a\xFF"
                     "b"),
            "a\uFFFD"
            "b");
  // The shortened example of the Unicode standard, table 3-8, and a surrogate, whose three bytes each count alone.
  EXPECT_EQ(sanitize("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF"
                     "A"),
            "\uFFFD\uFFFD\uFFFD\uFFFD"
            "A");
  EXPECT_EQ(sanitize("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(sanitize("cut \xF0\x9F\x98"), "cut \uFFFD");
}

TEST(utf8_stream, holds_back_an_incomplete_character) {
  stream pieces;
  EXPECT_EQ(pieces.feed("a\xF0\x9F"), "a");
  EXPECT_EQ(pieces.held_bytes(), 2U);
  EXPECT_EQ(pieces.feed("\x98"), "");
  EXPECT_EQ(pieces.feed("\x80"
                        "b"),
            "\U0001F600"
            "b");
  EXPECT_EQ(pieces.feed(""), "");
  EXPECT_EQ(pieces.flush(), "");
}

TEST(utf8_stream, lets_broken_bytes_out_at_once) {
  stream keeping(stream::invalid_bytes::keep);
  EXPECT_EQ(keeping.feed("\xE2\x82"), "");
  EXPECT_EQ(keeping.feed("x"), "\xE2\x82x");
  EXPECT_EQ(keeping.feed("\xFF"), "\xFF");
  stream replacing;
  EXPECT_EQ(replacing.feed("\xE2\x82"), "");
  EXPECT_EQ(replacing.feed("x\xFF"), "\uFFFDx\uFFFD");
}

TEST(utf8_stream, gives_up_what_it_holds_at_the_end) {
  stream keeping(stream::invalid_bytes::keep);
  EXPECT_EQ(keeping.feed("\xE2\x82"), "");
  EXPECT_EQ(keeping.flush(), "\xE2\x82");
  EXPECT_EQ(keeping.flush(), "");
  stream replacing;
  EXPECT_EQ(replacing.feed("\xE2\x82"), "");
  EXPECT_EQ(replacing.flush(), "\uFFFD");
}

TEST(utf8_stream, gives_the_same_text_however_it_is_cut) {
  std::mt19937_64 random(7);
  constexpr std::string_view alphabet[] = {"a",    "\u00e9", "\u20ac", "\U0001F600", "\xF0\x9F",
                                           "\xE2", "\x80",   "\xFF",   "\xED\xA0"};
  for (int round = 0; round < 5000; ++round) {
    std::string text;
    for (auto n = random() % 12; n > 0; --n) text += alphabet[random() % std::size(alphabet)];
    stream keeping(stream::invalid_bytes::keep);
    stream replacing;
    std::string kept;
    std::string replaced;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t n = 1 + random() % 4;
      const std::string_view piece = std::string_view(text).substr(at, n);
      kept += keeping.feed(piece);
      const std::string shown = replacing.feed(piece);
      ASSERT_EQ(valid_prefix_bytes(shown), shown.size());
      replaced += shown;
      ASSERT_LE(keeping.held_bytes(), 3U);
      at += piece.size();
    }
    ASSERT_EQ(kept + keeping.flush(), text);
    ASSERT_EQ(replaced + replacing.flush(), sanitize(text));
  }
}

}  // namespace
}  // namespace redline::utf8
