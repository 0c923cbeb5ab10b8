#pragma once

#include "runtime/draft/draft_options.hpp"
#include "runtime/draft/draft_source.hpp"

namespace redline::draft {

/// What is asked of the target model's MTP layer after a round.
struct mtp_request {
  std::uint32_t tokens = 0;  // at most; 0 means nothing
  float token_cost = 0;      // the time to draft and verify a token, as a share of a round's time without a draft
  bool if_refused = false;   // only if a token of the round's draft is refused: a copy that holds goes on by itself
  static constexpr auto fields(auto& self) { return std::tie(self.tokens, self.token_cost, self.if_refused); }
};

/// How long a draft should be: as long as each token adds more tokens per time than the round has without it.
class mtp_length {
 public:
  explicit mtp_length(double token_cost) : cost_(token_cost) {}
  /// Whether a token of this probability, after those so far, is worth its time. If so, it is added.
  bool add(double probability) {
    const double chance = chance_ * probability;
    if (!pays(chance)) return false;
    chance_ = chance;
    expected_ += chance;
    time_ += cost_;
    return true;
  }
  /// Whether a further token can be worth its time.
  [[nodiscard]] bool may_grow() const { return pays(chance_); }

 private:
  [[nodiscard]] bool pays(double chance) const { return chance * time_ >= cost_ * expected_; }

  double cost_;
  double chance_ = 1;    // that all tokens so far are right
  double expected_ = 1;  // tokens of the round
  double time_ = 1;      // of the round
};

/// What it drafted.
struct mtp_draft {
  std::vector<token> tokens;
  std::vector<std::uint8_t> grades;  // of each token: grade_of_probability
  std::uint32_t rows = 0;            // the layer's rows for it; the last one's token may not be worth verifying
  std::uint32_t row_us = 0;          // the time of each, its share of those for all drafts; 0 if not timed
  bool operator==(const mtp_draft&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.tokens, self.grades, self.rows, self.row_us); }
};

/// Drafts from the target model's MTP layer, which it made in the pass before.
class mtp_source final : public draft_source {
 public:
  /// Replaces the draft by one that continues the log's first `at` tokens. The log may not have all of them yet, or
  /// more.
  void hear(std::uint32_t at, const mtp_draft& draft);

  void append(std::span<const token> committed, bool is_prompt) override;
  void drop(std::uint32_t at, std::uint32_t count) override;
  bool catch_up(std::uint32_t) override { return false; }
  [[nodiscard]] graded_draft look(std::span<const token> pending, std::uint32_t tokens_max) const override;

 private:
  std::uint32_t length_ = 0;  // of the log
  std::uint32_t at_ = 0;
  mtp_draft draft_;  // as far as the log agrees with it; otherwise empty
};

}  // namespace redline::draft
