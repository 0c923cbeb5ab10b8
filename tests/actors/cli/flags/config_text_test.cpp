#include "actors/cli/flags/config_text.hpp"

#include <gmock/gmock.h>

namespace redline::actors::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::StartsWith;

std::vector<std::string> read_back(const std::string& value) {
  const config_text got = read_config_text("key = " + value);
  EXPECT_EQ(got.complaint, std::nullopt) << value;
  return got.entries.size() == 1 ? got.entries[0].values : std::vector<std::string>{"?"};
}

TEST(config_text, strings_are_written_so_that_they_are_read_back) {
  const std::vector<std::string> texts{
      "", "plain", "a # b", "say \"hi\"", "C:\\x", "two\nlines\ttab", "caf\xC3\xA9 \xE2\x82\xAC", "\x01\x7F", "'"};
  for (const std::string& text : texts) EXPECT_THAT(read_back(toml_string(text)), ElementsAre(text));
  EXPECT_EQ(read_back(toml_array(texts)), texts);
  EXPECT_EQ(toml_string("a\n\x01\"\\"), R"("a\n\u0001\"\\")");
  EXPECT_EQ(toml_string("caf\xC3\xA9"), "\"caf\xC3\xA9\"");
}

TEST(config_text, numbers_are_written_without_quotes_where_they_are_read_back) {
  for (const char* text : {"0", "12", "-3", "0.5", "1.25", "1e-06", "9223372036854775807"}) {
    EXPECT_EQ(toml_scalar(text), text);
    EXPECT_THAT(read_back(text), ElementsAre(text));
  }
  for (const char* text : {"007", "1.", "", "-", "0x10", "1_000", "1.10", "18446744073709551615", "inf", "nan", "e"}) {
    EXPECT_EQ(toml_scalar(text), "\"" + std::string(text) + "\"");
  }
}

TEST(config_text, has_every_key_with_its_line_and_section) {
  const config_text got = read_config_text(
      "# a\nb.c = 0x10 # d\n\n[z.y]\nlist = [\n  'a, b', \"\\u20AC\", 5, true, 0.5,\n]\n[a]\nnone = []\n");
  EXPECT_EQ(got.complaint, std::nullopt);
  std::string told;
  for (const config_entry& e : got.entries) {
    told += std::to_string(e.line) + " " + e.name() + (e.key.empty() ? " opens" : "") + "; ";
  }
  EXPECT_EQ(told, "2 b opens; 2 b.c; 4 z opens; 4 z.y opens; 5 z.y.list; 8 a opens; 9 a.none; ");
  EXPECT_THAT(got.entries[1].values, ElementsAre("16"));
  EXPECT_EQ(got.entries[1].text, "b.c = 0x10 # d");
  EXPECT_THAT(got.entries[4].values, ElementsAre("a, b", "\xE2\x82\xAC", "5", "true", "0.5"));
  EXPECT_THAT(got.entries[6].values, IsEmpty());
}

std::string complaint(const std::string& text) { return read_config_text(text).complaint.value_or("none"); }

TEST(config_text, says_what_is_no_toml) {
  EXPECT_EQ(complaint("a = 1\nb = /tmp/x.gguf\n"),
            "line 2: expected TOML such as threads = 2 or model = \"FILE\", found 'b = /tmp/x.gguf' (value: could not "
            "determine value type)");
  EXPECT_EQ(complaint("a = 18446744073709551615"),
            "line 1: expected TOML such as threads = 2 or model = \"FILE\", found 'a = 18446744073709551615' (decimal "
            "integer: '18446744073709551615' is not representable in 64 bits)");
  EXPECT_THAT(complaint("[serve\n"), StartsWith("line 1: expected a section such as [serve], found '[serve' ("));
  EXPECT_THAT(complaint("a = 1\na = 2\n"), HasSubstr("cannot redefine existing integer 'a'"));
  EXPECT_THAT(complaint("a = \"\x1B[2J\n"), HasSubstr("found 'a = \"\\x1b[2J'"));
  EXPECT_THAT(complaint("a = 1979-05-27\n"),
              HasSubstr("line 1: expected a string, a number, true, false or a list of"));
  EXPECT_THAT(complaint("\n[[a]]\nb = 1\n"),
              HasSubstr("line 2: expected a string, a number, true, false or a list of"));
}

// The destructor of a table is recursive, so deep nesting would exhaust the stack.
TEST(config_text, nesting_is_limited_before_it_is_parsed) {
  std::string deep = "x = {a";
  for (int i = 0; i < 15; ++i)
    deep += std::string(i == 0 ? "" : "= [\n{a") + [] {
      std::string part;
      for (int k = 0; k < 2000; ++k) part += ".a";
      return part;
    }();
  EXPECT_EQ(complaint(deep), "line 2: expected at most 2000 dots outside comments, found more");
  EXPECT_EQ(complaint("# " + std::string(3000, '.') + "\na = 1\n"), "none");
  EXPECT_THAT(complaint("[a.b.c.d.e]\n"), StartsWith("line 1: expected section names of at most 4 parts, found"));
  EXPECT_EQ(complaint("[a.b.c.d]\ne = 1\n"), "none");
}

}  // namespace
}  // namespace redline::actors::cli
