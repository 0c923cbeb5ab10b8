#include "actors/cli/flags/toml_value.hpp"

#include <gmock/gmock.h>

namespace redline::actors::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

TEST(toml_value, strings_are_written_so_that_they_are_read_back) {
  for (const std::string text :
       {"", "plain", "a # b", "say \"hi\"", "C:\\x", "two\nlines\ttab", "caf\xC3\xA9 \xE2\x82\xAC", "\x01\x7F", "'"}) {
    EXPECT_THAT(read_toml_value(toml_string(text)), Optional(ElementsAre(text)));
  }
  EXPECT_EQ(toml_string("a\n\x01\"\\"), R"("a\n\u0001\"\\")");
}

TEST(toml_value, numbers_are_written_without_quotes) {
  for (const char* text : {"0", "12", "-3", "0.5", "1e-06"}) EXPECT_EQ(toml_scalar(text), text);
  for (const char* text : {"007", "1.", "", "-", "0x10", "1_000"}) {
    EXPECT_EQ(toml_scalar(text), "\"" + std::string(text) + "\"");
  }
}

TEST(toml_value, reads_strings_and_arrays_with_comments) {
  EXPECT_THAT(read_toml_value(R"( "a # b"  # c "d")"), Optional(ElementsAre("a # b")));
  EXPECT_THAT(read_toml_value(R"('C:\dir')"), Optional(ElementsAre("C:\\dir")));
  EXPECT_THAT(read_toml_value(R"(["a, b", 'c' , 5,true,] # d)"), Optional(ElementsAre("a, b", "c", "5", "true")));
  EXPECT_THAT(read_toml_value("[]"), Optional(IsEmpty()));
  EXPECT_THAT(read_toml_value(R"("\u20AC\U0001F600")"), Optional(ElementsAre("\xE2\x82\xAC\xF0\x9F\x98\x80")));
}

TEST(toml_value, leaves_everything_else_to_others) {
  for (const char* text : {"", "5", "true", "bare words", "\"open", "\"a\" b", "\"\\q\"", "\"\\uD800\"", "\"\\u12\"",
                           "[\"a\"", "[\"a\" \"b\"]", "[,]", "[[1]"}) {
    EXPECT_EQ(read_toml_value(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace redline::actors::cli
