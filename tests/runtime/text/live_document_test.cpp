#include "runtime/text/live_document.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/runtime/text/tiny_vocabulary.hpp"

namespace redline::text {
namespace {

struct live_document_test : testing::Test {
  std::shared_ptr<const tokenizer> words = *tokenizer::from_file(*test::tiny_bpe().file());
  live_document file = std::move(*live_document::make(words, "hello world\n", 3, 64));

  static text_edit insert(std::uint32_t line, std::uint32_t character, std::string text) {
    return {position_range{{line, character}, {line, character}}, std::move(text)};
  }
};

TEST_F(live_document_test, applies_edits_in_order_each_to_the_outcome_of_those_before) {
  const std::vector<text_edit> edits = {insert(0, 5, "\nhello"), insert(1, 5, "!")};
  const auto done = file.apply(3, 5, edits, position_encoding::utf16);
  ASSERT_TRUE(done) << done.error().describe();
  EXPECT_EQ(file.text(), "hello\nhello! world\n");
  EXPECT_EQ(file.version(), 5);
  EXPECT_EQ(done->end, 12U);
  EXPECT_EQ(done->splices.size(), 2U);
  const auto all = words->encode(file.text());
  EXPECT_TRUE(std::equal(all.begin(), all.end(), file.tokens().begin(), file.tokens().end()));
  EXPECT_EQ(file.tokens_before(5), words->encode("hello"));
  EXPECT_EQ(file.tokens_after(12), words->encode(" world\n"));
}

TEST_F(live_document_test, changes_nothing_when_one_edit_is_bad) {
  const std::vector<text_edit> edits = {insert(0, 0, "x"), insert(7, 0, "y")};
  const auto done = file.apply(3, 4, edits, position_encoding::utf16);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().context, "edit 1: expected a line below 2, found 7");
  EXPECT_EQ(file.text(), "hello world\n");
  EXPECT_EQ(file.version(), 3);
  EXPECT_EQ(std::vector<token>(file.tokens().begin(), file.tokens().end()), words->encode("hello world\n"));
}

TEST_F(live_document_test, refuses_an_edit_of_another_version) {
  EXPECT_EQ(file.apply(2, 4, {}, position_encoding::utf16).error().code, errc::version_conflict);
  EXPECT_EQ(file.apply(3, 3, {}, position_encoding::utf16).error().code, errc::version_conflict);
  EXPECT_TRUE(file.apply(3, 4, {}, position_encoding::utf16));
}

/// A text without a position to cut is one chunk, which each of many edits would encode again.
TEST_F(live_document_test, encodes_a_text_of_one_chunk_a_few_times_whatever_the_edits) {
  const std::string text(40'000, 'o');
  auto long_file = std::move(*live_document::make(words, text, 1, 1U << 20));
  std::vector<text_edit> edits;
  for (std::uint32_t i = 0; i < 200; ++i)
    edits.push_back({byte_range{i * 150, i * 150 + 3}, i % 2 == 0 ? "h" : "hello"});
  const auto done = long_file.apply(1, 2, edits, position_encoding::utf16);
  ASSERT_TRUE(done) << done.error().describe();
  EXPECT_LE(long_file.encoded_bytes(), 4 * text.size());
  const auto all = words->encode(long_file.text());
  EXPECT_TRUE(std::equal(all.begin(), all.end(), long_file.tokens().begin(), long_file.tokens().end()));
  auto followed = words->encode(text);
  for (const auto& splice : done->splices) {
    const auto at = followed.begin() + splice.at;
    followed.insert(followed.erase(at, at + splice.remove_count), splice.insert.begin(), splice.insert.end());
  }
  EXPECT_EQ(followed, all);
}

TEST_F(live_document_test, follows_random_edits_together_as_one_by_one) {
  std::mt19937 numbers(7);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(numbers() % n); };
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (int i = 0; i < 60; ++i) text += "helo \n"[below(6)];
    auto together = std::move(*live_document::make(words, text, 1, 1U << 20));
    std::vector<text_edit> edits;
    std::size_t size = text.size();
    for (int i = 0; i < 12; ++i) {
      const std::size_t begin = below(size + 1);
      const std::size_t end = begin + below(std::min<std::size_t>(size - begin, 9) + 1);
      const std::string inserted(below(8), 'l');
      edits.push_back({byte_range{begin, end}, inserted});
      size += inserted.size() - (end - begin);
    }
    ASSERT_TRUE(together.apply(1, 2, edits, position_encoding::utf16));
    const auto all = words->encode(together.text());
    ASSERT_TRUE(std::equal(all.begin(), all.end(), together.tokens().begin(), together.tokens().end()));
  }
}

}  // namespace
}  // namespace redline::text
