#include "runtime/tokenizer/special_splitter.hpp"

#include <gtest/gtest.h>

#include "tests/runtime/tokenizer/tiny_vocabulary.hpp"

namespace redline::text {
namespace {

/// Ordinary text as it is, special tokens as [text].
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

}  // namespace
}  // namespace redline::text
