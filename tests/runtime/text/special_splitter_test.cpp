#include "runtime/text/special_splitter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "runtime/base/pause_point.hpp"
#include "tests/runtime/text/tiny_vocabulary.hpp"

namespace redline::text {
namespace {

/// Ordinary text unchanged, and special tokens as [text].
std::string shown(const test::tiny_vocabulary& tiny, std::string_view text, bool parse_special) {
  const auto vocab = vocabulary::load(*tiny.file());
  EXPECT_TRUE(vocab);
  const special_splitter splitter(*vocab);
  std::string out;
  for (const auto& part : splitter.split(text, parse_special)) {
    EXPECT_NE(part.text.empty(), !part.special.has_value());
    out += part.special ? "[" + std::string(vocab->text(*part.special)) + "]" : "{" + std::string(part.text) + "}";
  }
  return out;
}

TEST(special_splitter, matches_user_defined_tokens_always_and_control_tokens_on_request) {
  const auto tiny = test::tiny_bpe();
  EXPECT_EQ(shown(tiny, "", true), "");
  EXPECT_EQ(shown(tiny, "a<|end|>b<think>c", false), "{a<|end|>b}[<think>]{c}");
  EXPECT_EQ(shown(tiny, "a<|end|>b<think>c", true), "{a}[<|end|>]{b}[<think>]{c}");
  EXPECT_EQ(shown(tiny, "<|end|><|end|>", true), "[<|end|>][<|end|>]");
  EXPECT_EQ(shown(tiny, "<|end|", true), "{<|end|}");
}

TEST(special_splitter, prefers_the_longer_token_even_if_it_starts_later) {
  auto tiny = test::tiny_bpe();
  tiny.add("ab", 4);
  tiny.add("bcd", 4);
  tiny.add("abcde", 4);
  EXPECT_EQ(shown(tiny, "abcd", false), "{a}[bcd]");
  EXPECT_EQ(shown(tiny, "abcde", false), "[abcde]");
  EXPECT_EQ(shown(tiny, "abc", false), "[ab]{c}");
}

TEST(special_splitter, swallows_the_white_space_after_tokens_of_phi3_only) {
  auto tiny = test::tiny_bpe();
  EXPECT_EQ(shown(tiny, "<|end|>\n x", true), "[<|end|>]{\n x}");
  tiny.name = "Phi-3-mini";
  tiny.add("<|endoftext|>", 3);
  EXPECT_EQ(shown(tiny, "<|end|>\n x", true), "[<|end|>]{x}");
  EXPECT_EQ(shown(tiny, "<|end|> \n", true), "[<|end|>]");
  EXPECT_EQ(shown(tiny, "<|endoftext|> x", true), "[<|endoftext|>]{ x}");
}

/// The definition: each token in turn, longest first, is cut out of all remaining text.
std::string cut_one_by_one(std::vector<std::string> wanted, const std::string& text) {
  std::stable_sort(wanted.begin(), wanted.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  std::vector<std::pair<std::string, bool>> parts{{text, false}};
  for (const std::string& w : wanted) {
    std::vector<std::pair<std::string, bool>> finer;
    for (auto& [rest, is_token] : parts) {
      for (std::size_t at = 0; !is_token && (at = rest.find(w)) != std::string::npos;) {
        finer.emplace_back(rest.substr(0, at), false);
        finer.emplace_back(w, true);
        rest.erase(0, at + w.size());
        rest.erase(0, std::min(rest.find_first_not_of(' '), rest.size()));
      }
      finer.emplace_back(rest, is_token);
    }
    parts = std::move(finer);
  }
  std::string out;
  for (const auto& [part, is_token] : parts) {
    if (!part.empty()) out += is_token ? "[" + part + "]" : "{" + part + "}";
  }
  return out;
}

TEST(special_splitter, cuts_as_one_token_after_the_other_would) {
  std::mt19937 random(5);
  const auto letters = [&random](std::size_t most) {
    std::string out;
    for (std::size_t i = 1 + random() % most; i > 0; --i) out += "ab<> "[random() % 5];
    return out;
  };
  for (int world = 0; world < 30; ++world) {
    auto tiny = test::tiny_bpe();
    tiny.name = "Phi-3-mini";  // its tokens swallow the spaces after them
    std::vector<std::string> wanted{"<|end|>", "<|im_start|>", "<think>", "  "};
    for (std::size_t i = 1 + random() % 8; i > 0; --i) {
      std::string token = letters(6);
      if (std::find(tiny.tokens.begin(), tiny.tokens.end(), token) != tiny.tokens.end()) continue;
      wanted.push_back(token);
      tiny.add(std::move(token), 4);
    }
    for (int i = 0; i < 40; ++i) {
      const std::string text = letters(40);
      ASSERT_EQ(shown(tiny, text, true), cut_one_by_one(wanted, text)) << text;
    }
  }
}

// Each byte, and each position of a token, is examined once, not once per token of the vocabulary, nor per piece that
// other tokens have cut.
TEST(special_splitter, takes_steps_in_proportion_to_the_text_however_many_tokens_there_are) {
  for (const std::size_t tokens : {8U, 64U, 512U}) {
    auto tiny = test::tiny_bpe();
    std::vector<std::string> specials;
    for (std::size_t n = 0; n < tokens; ++n) {
      specials.push_back("<|t" + std::to_string(n) + "|>");
      tiny.add(specials.back(), n % 2 == 0 ? 4 : 3);
    }
    const auto vocab = vocabulary::load(*tiny.file());
    ASSERT_TRUE(vocab);
    const special_splitter splitter(*vocab);
    std::string text;
    for (std::size_t n = 0; n < 4096; ++n) text += specials[n * 7 % tokens] + (n % 3 == 0 ? "word " : "");
    const std::uint32_t before = pause_points_passed;
    const auto parts = splitter.split(text, true);
    EXPECT_GE(parts.size(), 4096U);
    EXPECT_LE(pause_points_passed - before, text.size() + 4096) << tokens << " tokens";
  }
}

}  // namespace
}  // namespace redline::text
