#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/draft/source.hpp"

namespace redline::draft {

/// What drafting costs, as shares of one forward of the target model with a single row. The defaults are guesses of a
/// CPU with a draft model of a tenth of the target's size, for as long as nothing was measured.
struct draft_prices {
  double pass = 1;              // what a round pays of a pass: less where other sessions share it
  double row = 0.005;           // one more token to verify
  double round = 0;             // what a round takes beside the pass: messages, threads that wake
  double model_pass = 0.15;     // one forward of the draft model
  double model_first = 0;       // what it has to read of the prompt before its first token; paid once
  double model_catch_up = 0;    // what it has to read of the answer that came without it
  double tokens_to_come = 128;  // whose drafts share that price
  bool measured = false;        // by a scheduler that verifies of a draft only what pays
};

/// What one source could give in a round.
struct draft_offer {
  source from = source::lookup;
  std::uint32_t matched = 0;  // last tokens of the text that speak for it, or for the copy that the model checks
  std::uint32_t tokens = 0;   // at most
  double expected = 0;        // tokens to be accepted, where the record has seen none of its kind; 0: a usual number
};

/// Which of a session's prediction and lookup was right where the two last disagreed. A prediction that is mostly right
/// and a prompt that holds most of the answer propose the same tokens nearly always: what a choice between them is
/// worth shows only where they part.
class source_rivalry {
 public:
  /// Both drafts of a round, and what came behind the same log.
  void learn(std::span<const token> predicted, std::span<const token> looked_up, std::span<const token> came);
  /// Ties go to the prediction: it was given for this answer.
  [[nodiscard]] bool trusts_prediction() const { return predicted_right_ >= looked_up_right_; }
  /// One of them was right when they disagreed.
  [[nodiscard]] bool has_seen() const { return predicted_right_ + looked_up_right_ > 0; }

 private:
  double predicted_right_ = 0;  // older disagreements count less
  double looked_up_right_ = 0;
};

/// What became of an offer.
struct draft_result {
  std::uint32_t drafted = 0;
  std::uint32_t accepted = 0;
  /// All that is known of the text agrees; more of the draft might have. (The draft was cut, or another one was tried.)
  bool open = false;
  double model_passes = 0;  // in short ones: one that checks much counts as several
};

/// What drafts that are ready took for tokens of the answer, or would have taken.
struct ready_stretch {
  double tokens = 0;
  double passes = 0;
  double rows = 0;  // of drafts
};

/// Learns of one session which source of drafts pays, and how long its drafts should be. Pure: no clock, no chance.
///
/// It keeps what each source gave, forgetting exponentially, apart by how much spoke for the draft: behind a long match
/// follow long copies, behind a single token hardly any. The most tokens expected per cost win. What fails misses_max
/// times in a row is left out for 1, 2, 4, ... rest_max rounds between trials, until it has given something again; what
/// promises less than it costs, for rest_max. Drafts get shorter when they fail and four times as long when all was
/// accepted.
///
/// The model competes with what ready drafts take for as many tokens as it brings, not with what they promise in this
/// round: where an answer leaves the old text they promise next to nothing, and a token later, back in it, everything.
/// What they take is known behind every round, and kept by the same grades. What the model has to catch up on is read
/// once, whenever it is used next, so it is put off until rounds without the model have lost as much (as one who rents
/// skis buys them when the rents would have paid for them).
///
/// Where prices are measured, whoever verifies a draft cuts it to what pays. Then one that costs nothing to make is
/// never left out or shortened: only the model has to be worth its passes. All are weighed by what was verified of
/// their drafts lately, and what of that was right.
///
/// Passes, and rows per token, when the edited file is the output and the old one is in the prompt and the prediction
/// (Qwen2 tokens, all of blazedit_like and 60 of git_edits, no draft model):
///
///                  lookup, 80 tokens     longest match, 80     chosen
///     blazedit     26,182 / 11.56        26,507 / 13.48        26,756 / 4.60
///     git_edits     4,449 /  2.08         4,463 /  2.29         4,514 / 1.57
class source_chooser {
 public:
  source_chooser();
  /// Of a new session: expects what `typical` saw of the sessions before it, comes back to that, and adds to it.
  explicit source_chooser(std::shared_ptr<source_chooser> typical);

  /// The source of this round's draft and its length; nothing when plain decoding promises more. Counts as one round
  /// for the sources that rest. The model's offer comes last.
  struct choice {
    source from = source::lookup;
    std::uint32_t tokens = 0;
  };
  [[nodiscard]] std::optional<choice> choose(std::span<const draft_offer> offers, const draft_prices& prices = {});
  /// The length that a draft of this offer would get now.
  [[nodiscard]] std::uint32_t length(const draft_offer& offer, const draft_prices& prices = {}) const;
  /// Tokens that are accepted of such a draft.
  [[nodiscard]] double gain(const draft_offer& offer) const;
  /// Of a draft that was verified.
  void learn(const draft_offer& offer, const draft_result& result);
  /// Behind each round: what ready drafts took for the tokens that came, or would have taken where the model drafted.
  void learn_ready(const ready_stretch& came);
  /// Of a ready draft of which `accepted` tokens are right: tokens that are verified, about.
  [[nodiscard]] double rows(const draft_offer& offer, std::uint32_t accepted) const;
  /// Of a draft that was only compared with what came: it costs nothing to know better.
  void learn_untried(const draft_offer& offer, const draft_result& result);

  static constexpr std::uint32_t length_min = 16;
  static constexpr std::uint32_t misses_max = 6;
  static constexpr std::uint32_t rest_max = 16;

 private:
  struct record {
    double gain = 0;    // accepted tokens per draft, had it been verified whole
    double seen = 0;    // drafts that the gain was learned from
    double passes = 0;  // of the draft model per draft
    double rows = 0;    // tokens per draft that were verified
    double right = 0;   // of those, the accepted ones
    double length = 0;
    ready_stretch ready;       // for as many tokens as a draft of the model brings, from here on; sums
    std::uint32_t misses = 0;  // in a row
    std::uint32_t rested = 0;  // rounds left out since
  };
  static constexpr std::size_t classes_count = grades_count;
  [[nodiscard]] static std::size_t class_of(const draft_offer& offer);
  [[nodiscard]] const record& record_of(const draft_offer& offer) const;
  [[nodiscard]] record& record_of(const draft_offer& offer);
  /// What a draft gives and what its round costs.
  struct promise {
    double tokens = 0;
    double takes = 0;
    [[nodiscard]] double worth() const { return tokens / takes; }
  };
  [[nodiscard]] promise promise_of(const draft_offer& offer, const draft_prices& prices) const;
  [[nodiscard]] double ready_worth(const draft_offer& models, const draft_prices& prices, double now) const;
  [[nodiscard]] static std::uint32_t rest_of(const record& r, double worth);
  [[nodiscard]] static record model_at_first();
  static void note(record& r, const draft_result& result, bool tried);
  void drift(const draft_offer& offer);
  void learn_stretch(const draft_offer& models, const ready_stretch& whole);

  std::shared_ptr<source_chooser> typical_;
  /// A round whose next tokens are to tell what ready drafts take for them.
  struct open_stretch {
    draft_offer models;
    double to_come = 0;
    ready_stretch so_far;
  };
  std::vector<open_stretch> open_;  // no more than a draft of the model has tokens
  double lost_per_token_ = 0;       // in costs of a pass, when the model is not used in this round; a gain below zero
  double lost_ = 0;                 // since its last draft
  double tokens_count_ = 64;        // that came with the drafts of all its sessions, older ones counting less
  double model_drafts_count_ = 4;   // of them, the model's
  record records_[static_cast<std::size_t>(source::last_)][classes_count];
};

}  // namespace redline::draft
