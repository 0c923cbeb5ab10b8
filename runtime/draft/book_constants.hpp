#pragma once

#include <cstdint>

namespace redline::draft {

/// The tuning constants for choosing drafts. `docs/speculation.md` gives the effect of halving and doubling each;
/// `redline-bench drafts` measures it.
struct book_constants {
  /// The number of observed tokens that the first guess of a chance weighs.
  double first_weight = 4;
  /// About how many drafts are remembered.
  double remembered_drafts = 10;
  /// The same for what the draft model's drafts saved. That varies more than whether tokens are right: a draft loses a
  /// little inside a long copy, and saves several rounds where the text changes.
  double remembered_model_drafts = 80;
  /// Rounds that a draft of an untried model is assumed to save.
  double first_saved_rounds = 3;
  /// The share of an answer's time, as one in this many, that may be spent on testing whether the model pays again.
  double trial_share = 32;
  /// The draft model is asked for this many times the tokens verified last.
  double width_growth = 2;
};

}  // namespace redline::draft
