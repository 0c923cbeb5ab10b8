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
/// Both ways lead to the same text, so the shorter one wins. A draft of the model is expected to bring n tokens in
/// t_model. Without it the answer reaches the same place in n / rate, where rate is what rounds without the model had,
/// in tokens per microsecond, over the next n tokens after places like this one: a copy that is lost now and found
/// again one token later makes that rate high. So the model saves
///
///     saved = n / rate - t_model
///
/// microseconds, and drafts if that is positive and pays for what the model has to read first: what was saved now, and
/// the larger of what rounds without it lost since its last draft and of what it is expected to save over as many
/// tokens as it reads (over the rest of the answer, if it has read nothing yet).
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
    bool has_read = true;       // the model has read the prompt
    double tokens_to_come = 0;  // of the answer
  };
  [[nodiscard]] bool chooses_model(const place& here, const round_prices& prices);

  /// What a draft of the model came to, beside the copy that was ready: more (or fewer) accepted tokens and verified
  /// rows, and forwards of one row that take as long as its own took.
  void learn_model(std::uint8_t grade, double extra_tokens, double extra_rows, double passes);
  /// After each round, and after learn_model: what rounds without the model took, or would have taken, for the tokens
  /// that came.
  struct path {
    double tokens = 0;
    double rounds = 0;
    double rows = 0;
  };
  void learn_ready(const path& came);

 private:
  /// Sums over the model's drafts; older ones count less.
  struct model_record {
    double drafts = 0;
    double extra_tokens = 0;
    double extra_rows = 0;
    double passes = 0;
    void age(double kept, const model_record& towards);
  };
  /// A round whose next tokens are to tell the rate of rounds without the model.
  struct open_path {
    std::uint8_t grade = 0;
    double to_come = 0;
    path so_far;
  };
  static const model_record first_model;
  static void age(path& p);

  std::shared_ptr<draft_policy> tenant_;
  std::array<model_record, grades_count> model_;
  std::array<path, grades_count> ready_{};  // sums; older ones count less
  std::vector<open_path> open_;             // no more than a draft of the model has tokens
  double saved_per_token_ = 0;              // us, in the round at hand
  bool model_drafted_ = false;              // in the round at hand
  double lost_us_ = 0;                      // by rounds without the model since its last draft
  double saved_us_ = 0;                     // by the model, if it drafted in all rounds where it would save something
  double tokens_ = 0;                       // of those rounds and all others
};

}  // namespace redline::draft
