#include "runtime/grammar/syntax/regex_dfa.hpp"

#include <gtest/gtest.h>

#include <random>
#include <regex>
#include <string>

#include "runtime/grammar/syntax/steps.hpp"

namespace redline::grammar {
namespace {

bool matches(const regex_dfa& texts, std::string_view text) {
  std::uint32_t at = texts.begin();
  for (const char c : text) {
    at = texts.next(at, static_cast<std::uint8_t>(c));
    if (at == regex_dfa::dead) return false;
  }
  return texts.accepts(at);
}

bool matches(const std::string& pattern, std::string_view text, regex_dfa::match how = regex_dfa::match::whole) {
  const auto texts = regex_dfa::compile(pattern, {.how = how});
  EXPECT_TRUE(texts) << pattern << ": " << texts.error().context;
  return texts && matches(*texts, text);
}

TEST(regex_dfa, agrees_with_the_standard_library) {
  const std::string patterns[] = {
      "a*b+c?", "(ab|a)(bc|c)?", "[a-c]{2,4}", "a{2}|b{0,3}c", "(a|b)*abb", "[^ab]+", "(?:a|(b))+?c",
      "a{,2}",  "\\w+\\s\\d?",   "(a?){3}b",   "[-a]+",        "[a\\-c]",   "a{3,}",  "",
      "|a",     "(a{2}){1,2}"};
  std::mt19937 random(3);
  for (const auto& pattern : patterns) {
    if (pattern == "a{,2}") continue;  // which is literal text here
    const std::regex reference(pattern);
    const auto texts = *regex_dfa::compile(pattern, {});
    for (int i = 0; i < 2000; ++i) {
      std::string text;
      for (auto left = random() % 8; left > 0; --left) text += "aabbcc-0 _{"[random() % 11];
      EXPECT_EQ(matches(texts, text), std::regex_match(text, reference)) << pattern << " on '" << text << "'";
    }
  }
  EXPECT_TRUE(matches("a{,2}", "a{,2}"));
}

TEST(regex_dfa, matches_a_part_where_it_is_not_anchored) {
  const auto part = regex_dfa::match::anywhere;
  EXPECT_TRUE(matches("b", "abc", part));
  EXPECT_FALSE(matches("^b", "abc", part));
  EXPECT_TRUE(matches("^a", "abc", part));
  EXPECT_TRUE(matches("c$", "abc", part));
  EXPECT_FALSE(matches("^abc$|x", "abcd", part));
  EXPECT_TRUE(matches("^abc$|x", "axd", part));
  EXPECT_TRUE(matches("^$", "", part));
}

TEST(regex_dfa, matches_anchors_wherever_they_stand) {
  const std::string patterns[] = {"^a|b|c$",   "(^a|b)c",    "a(b$|c)",       "(^|c)a(c|$)", "(^a+|b$)",
                                  "(^a|^b)+c", "^(a|b)$|cc", "(a|(b|^)c)b?$", "a^b|c",       "a$b|c",
                                  "^^a$$",     "(a$)?b",     "(^a)*b",        "(a|^)$",      "^aab|ba|cab$"};
  std::mt19937 random(4);
  for (const auto& pattern : patterns) {
    const std::regex reference(pattern);
    const auto texts = *regex_dfa::compile(pattern, {.how = regex_dfa::match::anywhere});
    for (int i = 0; i < 3000; ++i) {
      std::string text;
      for (auto left = random() % 7; left > 0; --left) text += "abc"[random() % 3];
      EXPECT_EQ(texts.matches(text), std::regex_search(text, reference)) << pattern << " on '" << text << "'";
    }
  }
}

TEST(regex_dfa, what_was_found_somewhere_needs_no_states_any_more) {
  const auto texts = *regex_dfa::compile("^dev|alpha|beta|rc|RC|stable$", {.how = regex_dfa::match::anywhere});
  EXPECT_LT(texts.states_count(), 100u);
  EXPECT_TRUE(texts.matches("devil") && texts.matches("1-rc-2") && texts.matches("unstable"));
  EXPECT_FALSE(texts.matches("stables") || texts.matches("adev"));
}

TEST(regex_dfa, reads_and_matches_whole_characters) {
  EXPECT_TRUE(matches(".", "\xf0\x9f\x99\x82"));
  EXPECT_FALSE(matches("..", "\xc3\xa9"));
  EXPECT_TRUE(matches("[\xc3\xa0-\xc3\xbf]", "\xc3\xa9"));
  EXPECT_FALSE(matches("[\xc3\xa0-\xc3\xbf]", "\xc3\x80"));
  EXPECT_TRUE(matches("[^\xc3\xa9]", "\xe2\x82\xac"));
  EXPECT_FALSE(matches("[^\xc3\xa9]", "\xc3\xa9"));
  EXPECT_TRUE(matches("\\u20ac\\x41",
                      "\xe2\x82\xac"
                      "A"));
  EXPECT_FALSE(matches(".", "\xed\xa0\x80")) << "half of a pair is no character";
  EXPECT_FALSE(matches(".", "\n"));
}

TEST(regex_dfa, has_no_dead_ends) {
  for (const std::string pattern : {"a(b|c{3}d)*e", "[a-z]{3,9}\\.[0-9]+", "(ab)*"}) {
    const auto texts = *regex_dfa::compile(pattern, {});
    std::mt19937 random(1);
    for (int i = 0; i < 300; ++i) {
      std::string text;
      for (auto at = texts.begin(); !texts.accepts(at) || (texts.goes_on(at) && random() % 4 != 0);) {
        std::vector<std::uint8_t> can;
        for (int byte = 0; byte < 256; ++byte) {
          if (texts.next(at, static_cast<std::uint8_t>(byte)) != regex_dfa::dead)
            can.push_back(static_cast<std::uint8_t>(byte));
        }
        ASSERT_FALSE(can.empty()) << pattern << " after " << text;
        text += static_cast<char>(can[random() % can.size()]);
        at = texts.next(at, static_cast<std::uint8_t>(text.back()));
      }
      EXPECT_TRUE(std::regex_match(text, std::regex(pattern))) << pattern << " " << text;
    }
  }
}

TEST(regex_dfa, refuses_what_it_does_not_know_and_what_would_be_too_much) {
  for (const std::string pattern :
       {"(",    ")",     "a)",    "[",      "[a",    "[b-a]",  "*a",      "a**",         "\\",    "\\1", "\\b",
        "\\pL", "(?=a)", "(?!a)", "(?<=a)", "(?i)a", "a{5,2}", "a{1001}", "[[:alpha:]]", "\\xZZ", "a$b"}) {
    EXPECT_FALSE(regex_dfa::compile(pattern, {})) << pattern;
  }
  EXPECT_FALSE(regex_dfa::compile(std::string(100, '(') + std::string(100, ')'), {}));
  // Each would take more states or steps than any machine has, so compilation ends early.
  const std::string large_class = "[" + std::string(30'000, 'a') + "]";
  for (const std::string& pattern :
       {std::string("(((a{100}){100}){100}){100}"), std::string("(a|b)*a(a|b){30}"), std::string("((a?){500}){500}"),
        std::string("[a-z]{1000}[0-9]{1000}"), std::string("(.*a){200}b(.*c){200}"), large_class + "{1000}",
        "((" + large_class + "{30}){30}){4}"}) {
    step_count steps(regex_dfa::compile_steps_max);
    EXPECT_FALSE(regex_dfa::compile(pattern, {}, steps)) << pattern;
    EXPECT_LT(steps.taken(), 2'000'000u) << pattern;
  }
}

TEST(regex_dfa, a_class_is_as_large_as_its_characters_are_many) {
  const auto once = regex_dfa::compile("[a-cé]{100}", {});
  step_count steps;
  const auto often = regex_dfa::compile("[" + std::string(5'000, 'b') + "a-cébc-ca]{100}", {}, steps);
  ASSERT_TRUE(once && often);
  EXPECT_EQ(once->states_count(), often->states_count());
  EXPECT_LT(steps.taken(), 600'000u);
}

TEST(regex_dfa, says_which_byte_must_follow) {
  const auto made = regex_dfa::compile("ab(c|d)é?", {});
  ASSERT_TRUE(made);
  std::uint32_t at = made->begin();
  std::string only;
  for (const char c : std::string("abc\xc3\xa9")) {
    only += made->only_byte(at).empty() ? "-" : made->only_byte(at);
    at = made->next(at, static_cast<std::uint8_t>(c));
  }
  EXPECT_EQ(only, "ab--\xa9") << "an end is a choice, too";
  EXPECT_EQ(made->only_byte(at), "");
}

}  // namespace
}  // namespace redline::grammar
