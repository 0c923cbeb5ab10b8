#include "bench/studies/edits/copy_study.hpp"

#include <gtest/gtest.h>

#include "tests/support/tiny_model.hpp"

namespace redline::studies {
namespace {

std::shared_ptr<const grammar::token_trie> tokenizer() {
  static const auto file = test::make_tiny_model().file();
  static const auto index = *grammar::token_trie::make(*text::tokenizer::from_file(*file));
  return index;
}

known_edit edit_of(const std::string& before, const std::string& after) {
  return {.id = "e", .task = {"f.py", before, "do"}, .after = after};
}

TEST(speed_up_curve, goes_through_the_measured_lengths) {
  const speed_up_curve s({{.tokens = 1, .run_ms = 10, .steps_ms = 10}, {.tokens = 4, .run_ms = 10, .steps_ms = 40}});
  EXPECT_DOUBLE_EQ(s.at(1), 1);
  EXPECT_NEAR(s.at(2), 2, 1e-9);
  EXPECT_DOUBLE_EQ(s.at(4), 4);
  EXPECT_DOUBLE_EQ(s.at(100), 4);
  const speed_up_curve shared({{.tokens = 4, .run_ms = 10, .steps_ms = 40}}, 5);
  EXPECT_DOUBLE_EQ(shared.at(4), 2);
}

TEST(copy_cover, bounds_what_copying_brings) {
  const speed_up_curve ten({{.tokens = 1, .run_ms = 1, .steps_ms = 10}});
  const copy_cover c{.tokens = 100, .asked = 30, .spans = {50, 40}};
  EXPECT_EQ(c.copied(), 90u);
  EXPECT_DOUBLE_EQ(c.share(), 0.9);
  EXPECT_DOUBLE_EQ(c.bound(ten), 100 / (10 + 9.0));
  EXPECT_DOUBLE_EQ(c.program_bound(ten), 100 / (30 + 9.0));
}

TEST(copy_cover, counts_whole_lines_and_matches_of_tokens) {
  const std::string block = "def first(a, b):\n    return a + b\n\n\ndef second(a, b):\n    return a - b\n";
  const auto e = edit_of(block + "x = 1\n", block + "x = 12\n");
  const auto lines = line_cover(e, tokenizer());
  EXPECT_EQ(lines.tokens, tokenizer()->spell(e.after).size());
  ASSERT_EQ(lines.spans.size(), 1u);
  EXPECT_EQ(lines.spans[0], tokenizer()->spell(block).size());
  EXPECT_GT(lines.asked, lines.tokens - lines.copied());  // the op and its numbers
  const auto tokens = token_cover(e, *tokenizer(), 2);
  EXPECT_GE(tokens.copied(), lines.copied());
  EXPECT_EQ(token_cover(edit_of("aaaa", "bbbb"), *tokenizer(), 2).copied(), 0u);
  EXPECT_EQ(token_cover(e, *tokenizer(), 100'000).copied(), 0u);
}

TEST(clumsy_model, writes_the_file_when_its_ends_are_right) {
  const auto e = edit_of("one long line here\ntwo long line here\nthree long line\nfour long line here\n",
                         "one long line here\ntwo long line here\nnew\nfour long line here\n");
  for (const auto trust : {copy_trust::forced, copy_trust::verified, copy_trust::automatic}) {
    for (const bool anew : {false, true}) {
      EXPECT_TRUE(writes_exactly({.lines = 0, .plans_anew = anew}, e, tokenizer(),
                                 {.trust = trust, .anchors = trust == copy_trust::automatic}));
    }
  }
}

TEST(clumsy_model, is_saved_by_verification_and_by_anchors_when_it_looks_where_it_stands) {
  const auto e =
      edit_of("one long line here\ntwo long line here\nthree long line\nfour long line here\nfive long line here\n",
              "one long line here\ntwo long line here\nnew\nfour long line here\nfive long line here\n");
  int forced = 0, verified = 0, anchored = 0;
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const clumsy_model m{.lines = 2, .plans_anew = true, .seed = seed};
    forced += writes_exactly(m, e, tokenizer(), {.trust = copy_trust::forced}) ? 1 : 0;
    verified += writes_exactly(m, e, tokenizer(), {.trust = copy_trust::verified}) ? 1 : 0;
    anchored += writes_exactly(m, e, tokenizer(), {.trust = copy_trust::automatic, .anchors = true}) ? 1 : 0;
  }
  EXPECT_LT(forced, 15);
  EXPECT_EQ(verified, 20);
  EXPECT_EQ(anchored, 20);
}

TEST(clumsy_model, is_saved_by_its_confidence_as_far_as_it_knows_itself) {
  const auto e =
      edit_of("one long line here\ntwo long line here\nthree long line\nfour long line here\nfive long line here\n",
              "one long line here\ntwo long line here\nnew\nfour long line here\nfive long line here\n");
  const auto exact = [&](double knows) {
    int all = 0;
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
      const clumsy_model m{.lines = 2, .plans_anew = true, .seed = seed, .knows = knows};
      all += writes_exactly(m, e, tokenizer(), {.trust = copy_trust::automatic}) ? 1 : 0;
    }
    return all;
  };
  EXPECT_EQ(exact(1), 20);
  EXPECT_LT(exact(0), 15) << "as bad as forced";
  EXPECT_GT(exact(0.9), exact(0));
}

}  // namespace
}  // namespace redline::studies
