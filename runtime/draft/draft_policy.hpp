#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/draft/source.hpp"

namespace redline::draft {

/// What a round of an answer takes at the moment. The defaults are guesses, for as long as nothing was measured: a CPU
/// and a draft model of about a seventh of the target's size.
struct round_prices {
  double round_us = 1000;      // without a draft: its share of a pass, and what it takes besides
  double row_us = 5;           // one more token to verify
  double model_pass_us = 150;  // a forward of the draft model with one row
  double model_row_us = 0.75;  // one more row in it
};

/// A round: the tokens it is expected to add to the answer, and the draft tokens that it verifies for them.
struct round_value {
  double tokens = 1;
  double rows = 0;
  [[nodiscard]] double us(const round_prices& prices) const { return prices.round_us + rows * prices.row_us; }
};
/// With as much of the draft as gives the most tokens per microsecond.
[[nodiscard]] round_value best_round(std::span<const draft_part> draft, const round_prices& prices);

/// Which of an answer's prediction and lookup was right where the two last disagreed. A prediction that is mostly right
/// and a prompt that holds most of the answer propose the same tokens nearly always: only where they part does a choice
/// between them matter.
class disagreement_record {
 public:
  /// Both drafts of a round, and what came after the same log.
  void learn(std::span<const token> predicted, std::span<const token> looked_up, std::span<const token> came);
  /// Ties go to the prediction: it was given for this answer.
  [[nodiscard]] bool trusts_prediction() const { return predicted_right_ >= looked_up_right_; }

 private:
  double predicted_right_ = 0;  // older disagreements count less
  double looked_up_right_ = 0;
};

/// Decides of one answer whether the draft model drafts in a round, or the copy that is ready (from lookup or the
/// prediction) is verified without it.
///
/// Both ways lead to the same text, so the shorter one wins. After each draft of the model it is known which rounds the
/// answer would have taken without it to the same place: the model saved their time, less that of its own round. What
/// its last drafts saved, at places whose copy had the same grade, is what the next one is expected to save. The model
/// drafts if that is positive and pays for what the model has to read first: what is saved now, and the larger of what
/// rounds without the model lost since its last draft and of what it usually saves in as much text as is to come, less
/// what it has to read of that.
///
/// Pure: no clock, no chance.
class draft_policy {
 public:
  draft_policy();
  /// Of a new answer: begins with what the tenant's answers showed so far, and adds to it.
  explicit draft_policy(std::shared_ptr<draft_policy> tenant);

  /// Where a round begins.
  struct place {
    double tokens_max = 1e9;    // that a draft may have
    std::uint8_t grade = 0;     // of the copy that is ready
    round_value ready;          // with that copy; without any if there is none
    double unread = 0;          // tokens that the model has to read before it can draft
    double tokens_to_come = 0;  // of the answer
  };
  [[nodiscard]] bool chooses_model(const place& here, const round_prices& prices);

  /// What a draft of the model came to.
  struct models_round {
    double extra_tokens = 0;  // more than the ready copy was expected to bring
    double rows = 0;          // that were verified
    double passes = 0;        // forwards of one row that take as long as its own took
    double ready_rounds = 0;  // without the model, to the same place
    double ready_rows = 0;    // that these would have verified
    [[nodiscard]] double saved_us(const round_prices& prices) const;
    friend models_round operator+(const models_round& a, const models_round& b);
    friend models_round operator*(double k, const models_round& r);
  };
  void learn_model(std::uint8_t grade, const models_round& came, const round_prices& prices);
  /// After each round, and after learn_model: how many tokens came.
  void learn_round(double tokens);

 private:
  /// Of the model's drafts; older ones count less.
  struct model_record {
    double drafts = 0;
    models_round sums;
    double first = 0;  // drafts that the guess of an untried model counts for
    void forget(double kept);
  };
  /// The guess of an untried model, at a place with such a copy.
  static models_round first_round(const round_value& ready);

  std::shared_ptr<draft_policy> tenant_;
  std::array<model_record, grades_count> model_;
  double saved_per_token_ = 0;  // us, in the round at hand; negative: what the model would have to read
  double lost_per_token_ = 0;   // us, without the model, in the round at hand
  bool model_drafted_ = false;  // in the round at hand
  double lost_us_ = 0;          // by rounds without the model since its last draft
  double saved_us_ = 0;         // by the model, if it drafted wherever it saves something and read all the rest
  double tokens_ = 0;           // of those rounds and all others
};

}  // namespace redline::draft
