#include "runtime/sampling/acceptance.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/support/sample.hpp"

namespace redline::sampling {
namespace {

constexpr std::size_t vocabulary = 6;

/// A model whose logits are a hash of all earlier tokens.
std::vector<float> logits_after(const std::vector<token>& text) {
  std::uint32_t seed = 17;
  for (const token t : text) seed = seed * 31 + static_cast<std::uint32_t>(t);
  std::mt19937 random(seed);
  std::vector<float> out(vocabulary);
  for (auto& l : out) l = static_cast<float>(random() % 1000) / 250.0F;
  return out;
}

TEST(acceptance, any_draft_gives_the_stream_of_plain_decoding) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 200; ++trial) {
    sampling_params p{.temperature = trial % 2 == 0 ? 0.0F : 1.3F, .seed = static_cast<std::uint64_t>(trial)};
    if (trial % 3 == 0) p.frequency_penalty = 0.5F;
    if (trial % 5 == 0) p.repetition_penalty = 1.2F;
    if (trial % 7 == 0) p.presence_penalty = 0.8F;
    if (trial % 4 == 1) p.top_p = 0.8F;
    if (trial % 6 == 1) p.top_k = 3;
    if (trial % 10 == 3) p.banned_early = {static_cast<token>(trial % 6)}, p.banned_before = 30;
    if (trial % 10 == 4) p.logit_bias = {{static_cast<token>(trial % 6), 2.0F}};
    const std::vector<token> prompt{1, 2, 3};
    const auto context_of = [](const std::vector<token>& log) {
      return token_context{log, static_cast<std::uint32_t>(log.size()), 3};
    };
    std::vector<token> plain = prompt;
    while (plain.size() < 60) plain.push_back(test::sample(logits_after(plain), p, context_of(plain)));

    std::vector<token> log = prompt;
    while (log.size() < 60) {
      std::vector<token> draft(random() % 7);
      for (std::size_t i = 0; i < draft.size(); ++i) {
        const bool right = random() % 3 != 0 && log.size() + i < plain.size();
        draft[i] = right ? plain[log.size() + i] : static_cast<token>(random() % vocabulary);
      }
      std::vector<float> rows;
      std::vector<token> text = log;
      for (std::size_t i = 0; i <= draft.size(); ++i) {
        const auto row = logits_after(text);
        rows.insert(rows.end(), row.begin(), row.end());
        if (i < draft.size()) text.push_back(draft[i]);
      }
      const auto got = accept(rows, vocabulary, draft, p, context_of(log), {.logprobs_count = 2});
      ASSERT_EQ(got.tokens.size(), got.accepted_count + 1);
      ASSERT_EQ(got.logprobs.size(), got.tokens.size());
      log.insert(log.end(), got.tokens.begin(), got.tokens.end());
    }
    log.resize(60);
    ASSERT_EQ(log, plain);
  }
}

TEST(acceptance, penalties_count_the_accepted_tokens_of_the_draft_row_by_row) {
  // Every row ranks 0 first and then 1, so that with a penalty the two tokens must alternate.
  const std::vector<float> rows{2, 1, 2, 1, 2, 1, 2, 1};
  const sampling_params p{.frequency_penalty = 1.5F};
  const auto got = accept(rows, 2, std::vector<token>{0, 1, 0}, p, token_context{});
  EXPECT_EQ(got.tokens, (std::vector<token>{0, 1, 0, 1}));
  EXPECT_EQ(got.accepted_count, 3u);
  EXPECT_TRUE(got.logprobs.empty());
  EXPECT_EQ(accept(rows, 2, std::vector<token>{0, 0, 0}, p, token_context{}).tokens, (std::vector<token>{0, 1}));
}

TEST(acceptance, log_probabilities_are_those_of_each_row) {
  const std::vector<float> rows{2, 1, 0, 0, 1, 2};
  const auto got = accept(rows, 2, std::vector<token>{0, 0}, {}, token_context{}, {.logprobs_count = 1});
  ASSERT_EQ(got.tokens, (std::vector<token>{0, 0, 1}));
  for (std::size_t row = 0; row < 3; ++row) {
    EXPECT_EQ(got.logprobs[row], logprob_of(std::span(rows).subspan(row * 2, 2), got.tokens[row], 1));
  }
}

TEST(acceptance, scores_tokens_that_the_model_would_not_have_written) {
  const std::vector<float> rows{2, 1, 0, 0, 1, 2, 3, 0, 1};
  const auto got = score(rows, 3, std::vector<token>{2, 0}, 2);
  EXPECT_EQ(got.tokens, (std::vector<token>{2, 0, 0}));
  EXPECT_EQ(got.accepted_count, 2u);
  ASSERT_EQ(got.logprobs.size(), 3u);
  for (std::size_t row = 0; row < 3; ++row) {
    EXPECT_EQ(got.logprobs[row], logprob_of(std::span(rows).subspan(row * 3, 3), got.tokens[row], 2));
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(score(std::vector<float>{nan, nan, 1, 2}, 2, std::vector<token>{1}, 0).is_usable);
}

TEST(acceptance, logits_that_are_no_numbers_are_no_answer) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float odd : {infinity, -infinity, nan}) {
    const std::vector<float> rows{0, 1, odd, odd};
    const auto got = accept(rows, 2, std::vector<token>{1}, {}, token_context{});
    EXPECT_FALSE(got.is_usable);
    EXPECT_TRUE(got.tokens.empty());
    const auto before = accept(rows, 2, std::vector<token>{0}, {}, token_context{});
    EXPECT_TRUE(before.is_usable) << "the draft ended before that row";
    EXPECT_EQ(before.tokens, std::vector<token>{1});
  }
  EXPECT_TRUE(accept(std::vector<float>{nan, 1}, 2, {}, {}, token_context{}).is_usable) << "1 can be chosen";
}

TEST(acceptance, rows_given_one_by_one_give_the_same_and_none_is_needed_after_a_refusal) {
  std::mt19937 random(6);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<token> draft(random() % 9);
    for (token& t : draft) t = static_cast<token>(random() % 2);
    std::vector<float> rows((draft.size() + 1) * vocabulary);
    for (float& l : rows) l = static_cast<float>(random() % 8);
    for (std::size_t row = 0; row < draft.size(); ++row) {
      if (random() % 4 != 0) rows[row * vocabulary + static_cast<std::size_t>(draft[row])] = 9;  // mostly right
    }
    const sampling_params p{.temperature = trial % 2 == 0 ? 0.0F : 0.2F, .seed = static_cast<std::uint64_t>(trial)};
    const auto expected = accept(rows, vocabulary, draft, p, token_context{});
    draft_verification v(draft, p, token_context{});
    EXPECT_EQ(v.needs_only_best(), trial % 2 == 0);
    for (std::size_t row = 0; !v.is_done(); ++row) {
      ASSERT_EQ(v.next_row(), row);
      ASSERT_EQ(v.rows_left(), draft.size() + 1 - row);
      const auto logits = std::span(rows).subspan(row * vocabulary, vocabulary);
      v.judge({v.needs_only_best() ? std::span<const float>{} : logits, best_of(logits)});
    }
    EXPECT_EQ(v.rows_left(), 0U);
    EXPECT_EQ(v.next_row(), expected.accepted_count + 1);
    const auto got = v.take();
    EXPECT_EQ(got.tokens, expected.tokens);
    EXPECT_EQ(got.accepted_count, expected.accepted_count);
  }
}

TEST(acceptance, the_best_logit_is_enough_only_where_nothing_else_decides) {
  const auto needs_only_best = [](const sampling_params& p, const verification_options& how = {}) {
    return draft_verification({}, p, token_context{}, how).needs_only_best();
  };
  EXPECT_TRUE(needs_only_best({}));
  EXPECT_FALSE(needs_only_best({.temperature = 0.5F}));
  EXPECT_FALSE(needs_only_best({.repetition_penalty = 1.1F}));
  EXPECT_FALSE(needs_only_best({.logit_bias = {{1, 1.0F}}}));
  EXPECT_FALSE(needs_only_best({.banned_early = {1}}));
  EXPECT_FALSE(needs_only_best({.allowed = {1}}));
  EXPECT_FALSE(needs_only_best({.banned_sequences = {{1}}}));
  EXPECT_FALSE(needs_only_best({}, {.logprobs_count = 0}));
}

/// The tokens after four tokens of output: 1, then the logits' choice, then 4.
struct known_answer final : token_chooser {
  [[nodiscard]] std::optional<token> choose(const row& at) const override {
    EXPECT_EQ(at.answer, 9u);
    EXPECT_EQ(at.drafted, static_cast<token>(at.index - 3)) << "the draft's token at this index";
    if (at.index == 5) return std::nullopt;
    return at.index == 4 ? 1 : 4;
  }
};

TEST(acceptance, takes_a_choosers_tokens_in_place_of_the_logits) {
  std::vector<float> rows(4 * vocabulary, 0.0F);
  for (std::size_t row = 0; row < 4; ++row) rows[row * vocabulary + 2] = 1;  // the model chooses 2
  const std::vector<token> draft{1, 2, 3};
  const known_answer known;
  const auto got = accept(rows, vocabulary, draft, {}, {{}, 7, 3}, {.chooser = {&known, 9}});
  EXPECT_EQ(got.accepted_count, 2u);
  EXPECT_EQ(got.tokens, (std::vector<token>{1, 2, 4}));
}

/// Every row copies; token 5 would begin an operation.
struct copied_rows final : row_filter {
  explicit copied_rows(float min) : least(min) {}
  std::span<const std::uint64_t> next_token_mask() override { return mask; }
  [[nodiscard]] std::optional<float> copied_min() const override { return least; }
  bool accept_token(token) override { return true; }

  float least;
  std::vector<std::uint64_t> mask{0b011111};
};

std::vector<token> tokens_of_copy(const std::vector<float>& rows, const std::vector<token>& draft, float least,
                                  std::optional<token> after_draft = std::nullopt) {
  copied_rows filter(least);
  return accept(rows, vocabulary, draft, {}, token_context{}, {.filter = &filter, .after_draft = after_draft}).tokens;
}

TEST(acceptance, a_copied_token_is_compared_with_the_best_one_that_the_mask_allows) {
  const std::vector<float> row{0, 2, 1, 0, 0, 9};
  for (const float least : {1.0F, 0.5F}) {
    EXPECT_EQ(tokens_of_copy(row, {}, least, 1), (std::vector<token>{1}));
    EXPECT_EQ(tokens_of_copy(row, {}, least, 2), (std::vector<token>{1}));
    EXPECT_EQ(tokens_of_copy(row, {}, least, 5), (std::vector<token>{5})) << "what is copied may be chosen";
    EXPECT_EQ(tokens_of_copy(row, {}, least), (std::vector<token>{1})) << "nothing is known to be copied";
  }
}

TEST(acceptance, a_copied_token_is_kept_while_it_is_probable_enough) {
  // Without token 5, the probabilities are 0.5, 0.25, 0.125, 0.0625 and 0.0625.
  const float two = std::log(2.0F);
  const std::vector<float> row{4 * two, 3 * two, 2 * two, two, two, 90};
  EXPECT_EQ(tokens_of_copy(row, {}, 0.24F, 1), (std::vector<token>{1}));
  EXPECT_EQ(tokens_of_copy(row, {}, 0.26F, 1), (std::vector<token>{0}));
  EXPECT_EQ(tokens_of_copy(row, {}, 0.06F, 4), (std::vector<token>{4}));
  EXPECT_EQ(tokens_of_copy(row, {}, 1, 1), (std::vector<token>{0})) << "only the best one";
  EXPECT_EQ(tokens_of_copy(row, {}, 0, 3), (std::vector<token>{3})) << "any";
}

// The rows of a span may come in one pass or in several: what the model says of each does not depend on that.
TEST(acceptance, a_copy_ends_at_the_same_token_however_much_of_it_a_pass_verifies) {
  std::mt19937 random(8);
  int kept_whole = 0, kept_against_the_best = 0;
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<token> copied(8);
    for (auto& t : copied) t = static_cast<token>(random() % vocabulary);
    std::vector<float> rows;
    for (std::size_t i = 0; i < copied.size(); ++i) {
      const auto row = logits_after({static_cast<token>(trial), static_cast<token>(i)});
      rows.insert(rows.end(), row.begin(), row.end());
      rows[i * vocabulary + static_cast<std::size_t>(copied[i])] += 3;
    }
    const float least = trial % 3 == 0 ? 1.0F : 0.1F;
    std::vector<token> one_by_one;
    for (std::size_t i = 0; i < copied.size(); ++i) {
      const std::vector<float> row(rows.begin() + static_cast<std::ptrdiff_t>(i * vocabulary),
                                   rows.begin() + static_cast<std::ptrdiff_t>((i + 1) * vocabulary));
      one_by_one.push_back(tokens_of_copy(row, {}, least, copied[i]).front());
      const token strict = tokens_of_copy(row, {}, 1, copied[i]).front();
      kept_against_the_best += one_by_one.back() == copied[i] && strict != copied[i] ? 1 : 0;
      if (one_by_one.back() != copied[i]) break;
    }
    for (std::size_t count = 0; count < copied.size(); ++count) {
      const std::vector<float> some(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>((count + 1) * vocabulary));
      const std::vector<token> draft(copied.begin(), copied.begin() + static_cast<std::ptrdiff_t>(count));
      auto expected = one_by_one;
      expected.resize(std::min(expected.size(), count + 1));
      EXPECT_EQ(tokens_of_copy(some, draft, least, copied[count]), expected);
    }
    kept_whole += one_by_one == copied ? 1 : 0;
  }
  EXPECT_GT(kept_whole, 30);
  EXPECT_GT(kept_against_the_best, 30);
}

}  // namespace
}  // namespace redline::sampling
