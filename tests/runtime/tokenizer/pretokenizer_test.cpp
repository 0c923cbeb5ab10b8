#include "runtime/tokenizer/pretokenizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "runtime/base/utf8.hpp"

namespace redline::text {
namespace {

using pieces = std::vector<std::string_view>;

pieces split(std::string_view name, std::string_view text) {
  const auto cutter = pretokenizer::make(name);
  EXPECT_TRUE(cutter) << name;
  pieces out;
  if (cutter) cutter->split(text, out);
  return out;
}

TEST(pretokenizer, refuses_a_name_it_does_not_know) {
  const auto unknown = pretokenizer::make("tekken");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, errc::unsupported_format);
  EXPECT_THAT(unknown.error().context, testing::HasSubstr("found 'tekken'"));
  EXPECT_THAT(unknown.error().context, testing::HasSubstr("'qwen2'"));
}

TEST(pretokenizer, cuts_as_llama3_does) {
  EXPECT_EQ(split("llama-bpe", ""), (pieces{}));
  EXPECT_EQ(split("llama-bpe", "Hello world"), (pieces{"Hello", " world"}));
  EXPECT_EQ(split("llama-bpe", "12345 6"), (pieces{"123", "45", " ", "6"}));
  EXPECT_EQ(split("llama-bpe", "I'LL we'Ve it's o'clock"),
            (pieces{"I", "'LL", " we", "'Ve", " it", "'s", " o", "'clock"}));
  EXPECT_EQ(split("llama-bpe", "a  b"), (pieces{"a", " ", " b"}));
  EXPECT_EQ(split("llama-bpe", "f(x);\n\n  return"), (pieces{"f", "(x", ");\n\n", " ", " return"}));
  EXPECT_EQ(split("llama-bpe", "a \n \n b"), (pieces{"a", " \n \n", " b"}));
  EXPECT_EQ(split("llama-bpe", "\tx\r\ny"), (pieces{"\tx", "\r\n", "y"}));
  EXPECT_EQ(split("llama-bpe", "end   "), (pieces{"end", "   "}));
  EXPECT_EQ(split("llama-bpe", "\u00e9t\u00e9 \u4e2d\u6587\u0664\u0665"),
            (pieces{"\u00e9t\u00e9", " \u4e2d\u6587", "\u0664\u0665"}));
  // The long s is no s here, as a case-insensitive match would have it: the quote joins the letters.
  EXPECT_EQ(split("llama3", "x'\u017f"), (pieces{"x", "'\u017f"}));
  // A Mongolian vowel separator was white space once.
  EXPECT_EQ(split("llama-bpe", "a\u180e\u180eb"), (pieces{"a", "\u180e\u180e", "b"}));
  EXPECT_EQ(split("llama-bpe", "a\u2003\u00a0b"), (pieces{"a", "\u2003", "\u00a0b"}));
}

TEST(pretokenizer, cuts_as_qwen2_does) {
  EXPECT_EQ(split("qwen2", "x12 = [3]\n"), (pieces{"x", "1", "2", " =", " [", "3", "]\n"}));
  EXPECT_EQ(split("qwen2", "    def f"), (pieces{"   ", " def", " f"}));
}

TEST(pretokenizer, cuts_as_gpt2_does) {
  EXPECT_EQ(split("gpt-2", "x12's 'S  (y)\n\n z"),
            (pieces{"x", "12", "'s", " '", "S", " ", " (", "y", ")", "\n\n", " z"}));
  EXPECT_EQ(split("gpt-2", "a\n\nb"), (pieces{"a", "\n", "\n", "b"}));
}

TEST(pretokenizer, cuts_as_starcoder_does) {
  EXPECT_EQ(split("starcoder", "x = 12"), (pieces{"x", " =", " ", "1", "2"}));
}

TEST(pretokenizer, cuts_as_deepseek_coder_does) {
  EXPECT_EQ(split("deepseek-coder", "if (x1)\n\n\ty"), (pieces{"if", " (", "x", "1", ")", "\n", "\n", "\ty"}));
  EXPECT_EQ(split("deepseek-coder", "a+b"), (pieces{"a", "+", "b"}));
}

TEST(pretokenizer, cuts_by_default_as_files_without_a_name_expect) {
  EXPECT_EQ(split("default", "f(x) = 12345;"), (pieces{"f", "(", "x", ")", " ", "=", " ", "123", "45", ";"}));
}

TEST(pretokenizer, keeps_broken_bytes_in_pieces_of_their_own) {
  EXPECT_EQ(split("qwen2",
                  "ab\xFF\xFE"
                  "cd \xE2\x82"),
            (pieces{"ab", "\xFF\xFE", "cd", " ", "\xE2\x82"}));
  EXPECT_EQ(split("qwen2", "\xC3"), (pieces{"\xC3"}));
}

TEST(pretokenizer, takes_runs_far_longer_than_any_limit_of_the_expression_engine) {
  for (const std::string_view name : {"qwen2", "gpt-2", "starcoder", "deepseek-coder", "llama-bpe", "default"}) {
    for (const std::string_view unit : {" ", "a", "\n", "(", "\u4e2d", " \t", "'"}) {
      std::string text;
      while (text.size() < 300000) text += unit;
      text += "x";
      std::size_t size = 0;
      for (const std::string_view piece : split(name, text)) size += piece.size();
      EXPECT_EQ(size, text.size()) << name;
    }
  }
}

TEST(pretokenizer, loses_no_byte_of_random_text) {
  std::mt19937_64 random(5);
  constexpr std::string_view units[] = {
      "a",      "Z",          "7",    " ",    "\n",       "\r",     "\t",
      "'",      "s",          "+",    "_",    "\u00e9",   "\u4e2d", "\u00a0",
      "\u0300", "\U0001F600", "\xFF", "\xC3", "\xF0\x9F", "\x80",   std::string_view("\0", 1)};
  for (const std::string_view name : {"qwen2", "gpt-2", "starcoder", "deepseek-coder", "llama-bpe", "default"}) {
    const auto cutter = pretokenizer::make(name);
    ASSERT_TRUE(cutter);
    for (int round = 0; round < 1000; ++round) {
      std::string text;
      for (auto n = random() % 30; n > 0; --n) text += units[random() % std::size(units)];
      pieces out;
      cutter->split(text, out);
      std::string joined;
      for (const std::string_view piece : out) {
        ASSERT_FALSE(piece.empty());
        joined += piece;
      }
      ASSERT_EQ(joined, text) << name;
    }
  }
}

}  // namespace
}  // namespace redline::text
