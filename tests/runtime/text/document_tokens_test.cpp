// The tokens are always those that encoding the whole text gives, whatever was edited before.
#include "runtime/text/document_tokens.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "runtime/base/utf8.hpp"
#include "tests/runtime/text/tiny_vocabulary.hpp"
#include "tests/support/rounds.hpp"
#include "tests/support/test_data.hpp"

namespace redline::text {
namespace {

using ids = std::vector<token>;

std::shared_ptr<const tokenizer> load(const gguf::gguf_file& file) {
  auto loaded = tokenizer::from_file(file);
  if (!loaded) ADD_FAILURE() << loaded.error().describe();
  return loaded ? *loaded : nullptr;
}

/// The start of a character of `text`, at or after a random position.
std::size_t random_boundary(std::string_view text, std::mt19937& random) {
  std::size_t at = random() % (text.size() + 1);
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
  return at;
}

/// A user who types, deletes, moves and pastes short texts, long texts, and those that tokenizers find hard.
struct typist {
  explicit typist(std::uint32_t seed, std::string pasted) : random(seed), source(std::move(pasted)) {}

  std::string writes() {
    static const std::string hard[] = {" ",
                                       "  ",
                                       "\n",
                                       "\r\n",
                                       "\t",
                                       "   \n\n",
                                       "'s",
                                       "'",
                                       "1",
                                       "12345",
                                       "x",
                                       "foo",
                                       " bar",
                                       "}",
                                       ");\n",
                                       "\u00e9",
                                       "\u4e2d\u6587",
                                       "\u00a0",
                                       "\u2028",
                                       "\U0001F642",
                                       "<think>",
                                       "<tag>",
                                       "</s>",
                                       "<|end|>",
                                       "\u2581",
                                       "_",
                                       "a\tb",
                                       "==",
                                       "\xe2\x80\x83",
                                       "A9 z"};
    std::string text;
    for (std::uint32_t n = random() % 4; n > 0; --n) text += hard[random() % std::size(hard)];
    if (random() % 4 == 0 && !source.empty()) {
      const std::size_t begin = random_boundary(source, random);
      std::size_t end = std::min(source.size(), begin + random() % 1200);
      while (end < source.size() && (static_cast<unsigned char>(source[end]) & 0xC0) == 0x80) ++end;
      text += source.substr(begin, end - begin);
    }
    return text;
  }

  std::mt19937 random;
  std::string source;
};

/// Edits `text` at random positions and reports the first difference.
void edit_at_random(const std::shared_ptr<const tokenizer>& tokenizer, std::string text, std::size_t edits,
                    std::uint32_t seed) {
  typist who(seed, text);
  document_tokens document(tokenizer, text);
  ids mirror(document.tokens().begin(), document.tokens().end());
  for (std::size_t i = 0; i < edits; ++i) {
    const std::size_t begin = random_boundary(text, who.random);
    std::size_t end = std::min(text.size(), begin + (who.random() % 3 == 0 ? who.random() % 600 : who.random() % 3));
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    if (text.size() > 6000) end = std::min(text.size(), begin + 3000);
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    const std::string with = who.writes();
    text.replace(begin, end - begin, with);

    const token_splice splice = document.replace(text, begin, end - begin, with.size());
    const ids whole = tokenizer->encode(text);
    ASSERT_EQ(ids(document.tokens().begin(), document.tokens().end()), whole) << "edit " << i << ", seed " << seed;
    mirror.erase(mirror.begin() + splice.at, mirror.begin() + splice.at + splice.remove_count);
    mirror.insert(mirror.begin() + splice.at, splice.insert.begin(), splice.insert.end());
    ASSERT_EQ(mirror, whole) << "the splice gives other tokens; edit " << i << ", seed " << seed;

    const std::size_t cursor = random_boundary(text, who.random);
    ASSERT_EQ(document.before(text, cursor), tokenizer->encode(std::string_view(text).substr(0, cursor)))
        << "edit " << i;
    ASSERT_EQ(document.after(text, cursor), tokenizer->encode(std::string_view(text).substr(cursor))) << "edit " << i;
  }
}

/// Tests the cut itself, with any text before it and after it, at each possible position.
void cut_at_random(const tokenizer& tokenizer, std::size_t rounds, std::uint32_t seed) {
  typist who(seed, "def f(self, x1):\n    return {'a': x1 + 12}\n\n\nclass B:\n\tpass\n");
  std::size_t cuts = 0;
  for (std::size_t i = 0; i < rounds; ++i) {
    std::string whole;
    for (int n = 0; n < 6; ++n) whole += who.writes();
    for (std::size_t at = 1; at < whole.size(); ++at) {
      if (!tokenizer.cuts_between(whole[at - 1], whole[at])) continue;
      ++cuts;
      ids joined = tokenizer.encode(std::string_view(whole).substr(0, at));
      const ids rest = tokenizer.encode(std::string_view(whole).substr(at), {.continues = true});
      joined.insert(joined.end(), rest.begin(), rest.end());
      ASSERT_EQ(joined, tokenizer.encode(whole)) << "cut at " << at << " of " << whole;
    }
  }
  EXPECT_GT(cuts, rounds / 4);  // otherwise nothing was tested
}

TEST(document_tokens, are_those_of_the_whole_text_under_every_pretokenizer) {
  const std::string code =
      "import os\n\n\nclass A(B):\n    x = 'don' 't'\n\n    def f(self, a=12):\n        return a + 1\n";
  for (const char* pre : {"default", "gpt-2", "llama-bpe", "qwen2", "starcoder", "deepseek-coder"}) {
    SCOPED_TRACE(pre);
    const auto tokenizer = load(*test::tiny_bpe(pre).file());
    ASSERT_NE(tokenizer, nullptr);
    cut_at_random(*tokenizer, test::rounds(400, 40), 3);
    for (std::uint32_t seed = 0; seed < test::rounds(8, 1); ++seed)
      edit_at_random(tokenizer, code + code + code, 60, seed);
  }
}

TEST(document_tokens, are_those_of_the_whole_text_under_sentencepiece) {
  const auto tokenizer = load(*test::tiny_spm().file());
  ASSERT_NE(tokenizer, nullptr);
  cut_at_random(*tokenizer, test::rounds(400, 40), 4);
  for (std::uint32_t seed = 0; seed < test::rounds(8, 1); ++seed) {
    edit_at_random(tokenizer, "hello world\n  hello <tag> world\n", 60, seed);
  }
}

class document_tokens_of : public testing::TestWithParam<const char*> {};

TEST_P(document_tokens_of, real_code_are_those_of_the_whole_text) {
  const auto texts = test::data_path("vocab/code_vectors.jsonl");
  const auto vocabulary = test::data_path(std::string("vocab/ggml-vocab-") + GetParam() + ".gguf");
  if (!texts || !vocabulary) GTEST_SKIP() << "the vocabulary data is absent";
  const auto tokenizer = load(**gguf::gguf_file::open(*vocabulary));
  ASSERT_NE(tokenizer, nullptr);
  cut_at_random(*tokenizer, test::rounds(200, 10), 5);
  std::istringstream lines(test::read_file(*texts));
  std::string all;
  std::uint32_t seed = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string hex = nlohmann::json::parse(line)["hex"];
    std::string text;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
      text.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    if (utf8::valid_prefix_bytes(text) != text.size()) continue;
    all += text;
    if (all.size() < 4000) continue;
    if (seed++ >= test::rounds(10, 1)) break;
    edit_at_random(tokenizer, all, 20, seed);
    all.clear();
  }
  EXPECT_GT(seed, 0U);
}

INSTANTIATE_TEST_SUITE_P(real, document_tokens_of,
                         testing::Values("gpt-2", "qwen2-rebuilt", "deepseek-coder", "starcoder", "llama-spm",
                                         "phi-3"));

TEST(document_tokens, encode_no_more_than_what_an_edit_touches) {
  const auto tokenizer = load(*test::tiny_bpe().file());
  std::string text;
  for (int i = 0; i < 500; ++i) text += "word " + std::to_string(i) + " and more\n";
  document_tokens document(tokenizer, text);
  // Every third byte of the far end is changed without the document's knowledge, because it must not be read again.
  const ids far(document.tokens().end() - 100, document.tokens().end());
  text.insert(100, "new");
  for (std::size_t i = text.size() - 300; i < text.size(); i += 3) text[i] = '#';
  const token_splice splice = document.replace(text, 100, 0, 3);
  EXPECT_LE(splice.insert.size(), 12U);
  EXPECT_LE(splice.remove_count, 12U);
  EXPECT_EQ(ids(document.tokens().end() - 100, document.tokens().end()), far);
}

TEST(document_tokens, of_nothing_are_none) {
  const auto tokenizer = load(*test::tiny_bpe().file());
  document_tokens document(tokenizer, "");
  EXPECT_TRUE(document.tokens().empty());
  EXPECT_TRUE(document.before("", 0).empty());
  EXPECT_TRUE(document.after("", 0).empty());
  EXPECT_EQ(document.replace("hello", 0, 0, 5).insert, tokenizer->encode("hello"));
  EXPECT_EQ(document.replace("", 0, 5, 0).remove_count, tokenizer->encode("hello").size());
}

}  // namespace
}  // namespace redline::text
