#include "runtime/text/pretokenizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "runtime/base/utf8.hpp"
#include "runtime/text/pretokenizer_table.hpp"
#include "tests/support/test_data.hpp"

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

/// One name for each list of expressions.
constexpr std::string_view distinct[] = {
    "default",        "gpt-2",        "llama-bpe",   "qwen2",    "qwen35", "gpt-4o",  "tekken",    "seed-coder",
    "bailingmoe",     "ufakzeka",     "laguna",      "minicpm5", "youtu",  "kimi-k2", "starcoder", "falcon",
    "deepseek-coder", "deepseek-llm", "deepseek-v3", "spark2_5", "bloom",  "viking"};

TEST(pretokenizer, cuts_where_another_engine_finds_the_published_expressions) {
  const auto vectors =
      nlohmann::json::parse(test::read_file(test::source_path("tests/runtime/text/pretokenizer_vectors.json")));
  ASSERT_EQ(vectors["cuts"].size(), std::size(distinct));
  for (const std::string_view name : distinct) {
    const auto& cuts = vectors["cuts"].at(std::string(name));
    ASSERT_EQ(cuts.size(), vectors["texts"].size());
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      const auto text = vectors["texts"][i].get<std::string>();
      std::vector<std::size_t> sizes;
      for (const std::string_view piece : split(name, text)) sizes.push_back(piece.size());
      EXPECT_EQ(sizes, cuts[i].get<std::vector<std::size_t>>()) << name << ": " << text;
    }
  }
}

TEST(pretokenizer, names_that_share_expressions_may_differ_in_what_else_they_say) {
  ASSERT_NE(find_pretokenizer("llama-bpe"), nullptr);
  EXPECT_TRUE(find_pretokenizer("llama-bpe")->whole_pieces_first);
  EXPECT_TRUE(find_pretokenizer("llama-bpe")->adds_bos);
  EXPECT_EQ(find_pretokenizer("glm4")->patterns.data(), find_pretokenizer("llama-bpe")->patterns.data());
  EXPECT_FALSE(find_pretokenizer("glm4")->whole_pieces_first);
  EXPECT_FALSE(find_pretokenizer("glm4")->adds_bos);
  EXPECT_EQ(find_pretokenizer(""), nullptr);
}

TEST(pretokenizer, always_cuts_between_a_word_and_white_space_as_it_says) {
  constexpr std::string_view lefts[] = {"a", "Z9", "_x", "'s", "(7", "中a", "\u0301b", "12", "A", "...z"};
  constexpr std::string_view rights[] = {" ", "\n", "\tx", " x", "  y", "\r\n", " '", "\n\n(", " 1", " \n/"};
  for (const std::string_view name : distinct) {
    for (const std::string_view left : lefts) {
      for (const std::string_view right : rights) {
        ASSERT_TRUE(pretokenizer::always_cuts(left.back(), right.front()));
        const std::string whole = std::string(left) + std::string(right);
        std::vector<std::string> expected;
        for (const std::string_view part : {left, right}) {
          for (const std::string_view piece : split(name, part)) expected.emplace_back(piece);
        }
        std::vector<std::string> found;
        for (const std::string_view piece : split(name, whole)) found.emplace_back(piece);
        EXPECT_EQ(found, expected) << name << ": " << whole;
      }
    }
  }
}

TEST(pretokenizer, refuses_a_name_it_does_not_know) {
  const auto unknown = pretokenizer::make("superbpe");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, errc::unsupported_format);
  EXPECT_THAT(unknown.error().context, testing::HasSubstr("found 'superbpe'"));
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
  // The long s is not an s here, as it would be for a case-insensitive match, so the quote joins the letters.
  EXPECT_EQ(split("llama3", "x'\u017f"), (pieces{"x", "'\u017f"}));
  // A Mongolian vowel separator was whitespace in old versions of Unicode.
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

TEST(pretokenizer, cuts_as_deepseek_llm_does) {
  EXPECT_EQ(split("deepseek-llm", "if (x12)\n\n\ty  "),
            (pieces{"if", " (", "x", "1", "2", ")", "\n", "\n", "\ty", "  "}));
  EXPECT_EQ(split("deepseek-llm", "été"), (pieces{"é", "t", "é"})) << "ASCII letters are signs, too";
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
  for (const std::string_view name : distinct) {
    for (const std::string_view unit : {" ", "a", "A", "7", "\n", "(", "\u4e2d", " \t", "'", "\u0301", "aB"}) {
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
  for (const std::string_view name : distinct) {
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
