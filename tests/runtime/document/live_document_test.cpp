#include "runtime/document/live_document.hpp"

#include <gtest/gtest.h>

#include "tests/runtime/tokenizer/tiny_vocabulary.hpp"

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
  EXPECT_EQ(file.tokens_behind(12), words->encode(" world\n"));
}

TEST_F(live_document_test, changes_nothing_when_one_edit_is_bad) {
  const std::vector<text_edit> edits = {insert(0, 0, "x"), insert(7, 0, "y")};
  const auto done = file.apply(3, 4, edits, position_encoding::utf16);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().context, "edit 1: wanted a line below 2, found 7");
  EXPECT_EQ(file.text(), "hello world\n");
  EXPECT_EQ(file.version(), 3);
  EXPECT_EQ(std::vector<token>(file.tokens().begin(), file.tokens().end()), words->encode("hello world\n"));
}

TEST_F(live_document_test, refuses_an_edit_of_another_version) {
  EXPECT_EQ(file.apply(2, 4, {}, position_encoding::utf16).error().code, errc::version_conflict);
  EXPECT_EQ(file.apply(3, 3, {}, position_encoding::utf16).error().code, errc::version_conflict);
  EXPECT_TRUE(file.apply(3, 4, {}, position_encoding::utf16));
}

}  // namespace
}  // namespace redline::text
