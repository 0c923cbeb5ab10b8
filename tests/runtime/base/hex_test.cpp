#include "runtime/base/hex.hpp"

#include <gtest/gtest.h>

#include "runtime/base/hash.hpp"

namespace redline {
namespace {

TEST(hex, digits_have_either_case) {
  EXPECT_EQ(hex_digit('0'), 0);
  EXPECT_EQ(hex_digit('a'), 10);
  EXPECT_EQ(hex_digit('F'), 15);
  for (const char c : {'g', '/', ':', '@', '`', ' ', '\0', '\xff'}) EXPECT_EQ(hex_digit(c), -1) << c;
}

TEST(hex, percent_escapes_are_bytes) {
  EXPECT_EQ(percent_decoded("a%20b%C3%a9%25"), "a b\xc3\xa9%");
  for (const char* text : {"%", "a%2", "%zz", "%00"}) EXPECT_FALSE(percent_decoded(text)) << text;
}

TEST(hex, numbers_have_sixteen_digits) {
  EXPECT_EQ(to_hex(0), "0000000000000000");
  EXPECT_EQ(to_hex(0x0123456789abcdef), "0123456789abcdef");
  EXPECT_EQ(to_hex(UINT64_MAX), "ffffffffffffffff");
}

TEST(hex, bytes_are_shown_on_one_line_in_ascii) {
  EXPECT_EQ(quote_bytes("a\n\xc3\xa9\x7f~ "), "'a\\x0a\\xc3\\xa9\\x7f~ '");
  EXPECT_EQ(quote_bytes(std::string_view("\0", 1)), "'\\x00'");
  EXPECT_EQ(quote_bytes("abcd", 3), "'abc...'");
  EXPECT_EQ(quote_bytes("abc", 3), "'abc'");
  EXPECT_EQ(escape_bytes(""), "");
}

TEST(fnv1a, gives_the_published_values) {
  EXPECT_EQ(fnv1a().value(), 0xcbf29ce484222325);
  EXPECT_EQ(fnv1a().add("a").value(), 0xaf63dc4c8601ec8c);
  EXPECT_EQ(fnv1a().add("foobar").value(), 0x85944171f73967e8);
  EXPECT_EQ(fnv1a().add("foo").add(std::uint8_t{'b'}).add("ar").value(), fnv1a().add("foobar").value());
}

}  // namespace
}  // namespace redline
