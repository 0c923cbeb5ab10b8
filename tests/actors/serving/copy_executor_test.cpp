#include "actors/serving/copy_executor.hpp"

#include <gtest/gtest.h>

#include "tests/support/tiny_model.hpp"

namespace redline::actors {
namespace {

std::shared_ptr<const grammar::token_trie> trie() {
  static const auto t = *grammar::token_trie::make(*text::tokenizer::from_file(*test::make_tiny_model().file()));
  return t;
}

const std::string file = "one\ntwo\r\nthree\n\nlast";

std::shared_ptr<const output_rules> make_rules(copy_options options = {}, const std::string& text = file) {
  return *make_copy_rules(trie(), {text}, options);
}

/// Feeds pieces up to a span and inserts at most `span_tokens_max` of its tokens.
std::string run(copy_executor& e, std::string_view program, std::size_t span_tokens_max = 1000) {
  std::string text;
  e.feed(program, 0.0F, text);
  if (const auto span = e.untokenized()) e.tokenize_span(span->spell());
  for (std::size_t i = 0; i < span_tokens_max && e.in_span(); ++i) e.insert_span_token(text);
  return text;
}

TEST(copy_executor, writes_texts_and_spans) {
  copy_executor e(make_rules());
  EXPECT_EQ(run(e, "<gen>new\n</gen>"), "new\n");
  EXPECT_EQ(run(e, "<copy lines=\"2-3\"/>"), "two\r\nthree\n");
  EXPECT_FALSE(e.in_span());
  EXPECT_EQ(run(e, "</program>"), "");
  EXPECT_EQ(e.report().program, "<gen>new\n</gen><copy lines=\"2-3\"/></program>");
  ASSERT_EQ(e.report().spans.size(), 1u);
  EXPECT_EQ(e.report().spans[0].tokens, trie()->spell("two\r\nthree\n").size());
}

TEST(copy_executor, a_refused_span_copies_whole_lines_and_the_rest_as_text) {
  copy_executor e(make_rules({.trust = copy_trust::verified}));
  const auto inserted = trie()->spell("one\n").size() + 1;
  EXPECT_EQ(run(e, "<copy lines=\"1-3\"/>", inserted), "one\nt");
  EXPECT_TRUE(e.in_span());
  EXPECT_FALSE(e.is_span_forced());
  EXPECT_EQ(e.report().program, "<copy lines=\"1-1\"/><gen>t</gen></program>") << "even while it is open";
  EXPECT_FALSE(e.report().spans.at(0).refused);
  e.refuse_span();
  EXPECT_TRUE(e.report().spans.at(0).refused);
  EXPECT_TRUE(e.span_left().empty());
  EXPECT_EQ(run(e, "<gen>X</gen></program>"), "X");
  EXPECT_EQ(e.report().program, "<copy lines=\"1-1\"/><gen>t</gen><gen>X</gen></program>");
}

TEST(copy_executor, reports_a_text_that_broke_off) {
  copy_executor e(make_rules());
  EXPECT_EQ(run(e, "<gen>half"), "half");
  EXPECT_EQ(e.report().program, "<gen>half</gen></program>");
}

TEST(copy_executor, trust_is_as_the_request_says) {
  const copy::copy_op op{1, copy::unit::lines, 1, 3};
  EXPECT_EQ(decide_trust(*make_rules(), op, {}), std::pair(true, span_reason::option));
  EXPECT_EQ(decide_trust(*make_rules({.trust = copy_trust::verified}), op, {}), std::pair(false, span_reason::option));
}

TEST(copy_executor, auto_trusts_logprobs_that_add_up_to_the_confidence) {
  const auto rules = make_rules({.trust = copy_trust::automatic, .confidence_min = 0.5F});
  const copy::copy_op op{1, copy::unit::lines, 1, 3};
  EXPECT_EQ(decide_trust(*rules, op, {.logprob = -0.6}), std::pair(true, span_reason::confidence));
  EXPECT_EQ(decide_trust(*rules, op, {.logprob = -0.8}), std::pair(false, span_reason::doubt));
  EXPECT_EQ(decide_trust(*rules, op, {.logprob = -0.6, .logprob_known = false}), std::pair(false, span_reason::doubt));
}

TEST(copy_executor, auto_trusts_anchors_of_lines_that_begin_like_no_other) {
  const auto trusts = [](const std::string& text, std::uint32_t last, const copy::anchor_pair& anchors) {
    const auto rules = make_rules({.trust = copy_trust::automatic, .anchors = true}, text);
    return decide_trust(*rules, {1, copy::unit::lines, 1, last}, {.logprob = -100, .anchors = anchors}).first;
  };
  EXPECT_TRUE(trusts(file, 3, {"one", "three"}));
  EXPECT_FALSE(trusts(file, 3, {"one", "last"}));
  EXPECT_FALSE(trusts("a\n}\nb\n}\n", 2, {"a", "}"}));
}

// A token may begin before the choice that it makes; each token counts once.
TEST(copy_executor, gathers_the_logprobs_of_the_tokens_that_chose_a_span) {
  const auto is_forced = [](std::optional<float> of_op, std::optional<float> of_word, std::optional<float> of_last) {
    copy_executor e(make_rules({.trust = copy_trust::automatic, .confidence_min = 0.5F}));
    std::string text;
    e.feed("<copy", of_op, text);
    e.feed(" lines=", of_word, text);
    e.feed("\"1-", 0.0F, text);
    e.feed("3", of_last, text);
    e.feed("\"/>", 0.0F, text);
    return e.is_span_forced();
  };
  EXPECT_TRUE(is_forced(-0.3F, 0.0F, -0.3F));
  EXPECT_FALSE(is_forced(-0.4F, 0.0F, -0.4F)) << "the product counts";
  EXPECT_FALSE(is_forced(std::nullopt, 0.0F, 0.0F));
}

TEST(copy_executor, says_how_programs_usually_go_on) {
  copy_executor e(make_rules());
  EXPECT_EQ(e.likely_continuation(), "<copy lines=\"1-5\"/>");
}

}  // namespace
}  // namespace redline::actors
