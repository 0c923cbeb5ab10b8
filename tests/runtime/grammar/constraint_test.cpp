#include "runtime/grammar/constraint.hpp"

#include <gmock/gmock.h>

namespace redline::grammar {
namespace {

using ::testing::HasSubstr;

std::string why_not(grammar_kind kind, std::string text) {
  const auto made = compile_automaton(text_constraint({kind, std::move(text)}));
  return made ? "" : made.error().context;
}

TEST(constraint, of_an_expression_is_its_texts_without_quotes) {
  const auto made = compile_automaton(text_constraint({grammar_kind::regex, "yes|no|not sure"}));
  ASSERT_TRUE(made);
  const auto ends = [&](std::string_view text) {
    automaton_state s = (*made)->begin();
    for (const char c : text) {
      if (!(*made)->advance(s, static_cast<std::uint8_t>(c))) return false;
    }
    return (*made)->is_accepting(s);
  };
  EXPECT_TRUE(ends("yes"));
  EXPECT_TRUE(ends("no"));
  EXPECT_FALSE(ends("not sur"));
  EXPECT_FALSE(ends("not a"));
  EXPECT_THAT(why_not(grammar_kind::regex, "("), HasSubstr("a ')' is missing"));
}

TEST(constraint, has_a_text_of_limited_size_in_utf_8) {
  EXPECT_EQ(why_not(grammar_kind::regex, std::string(32'769, 'a')),
            "expression: expected at most 32768 bytes, found 32769");
  EXPECT_EQ(why_not(grammar_kind::rules, std::string(32'769, ' ')),
            "grammar: expected at most 32768 bytes, found 32769");
  EXPECT_EQ(why_not(grammar_kind::rules, "root ::= \"\xFF\""), "grammar: expected text in UTF-8");
  EXPECT_THAT(why_not(grammar_kind::known, ""), HasSubstr("unknown kind of grammar"));
}

}  // namespace
}  // namespace redline::grammar
