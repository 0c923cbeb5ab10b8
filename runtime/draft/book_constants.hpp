#pragma once

#include <cstdint>

namespace redline::draft {

/// All that is tuned in the choice of drafts. `docs/speculation.md` has what each costs at half and at double of its
/// value; `redline-bench drafts` measures it.
struct book_constants {
  /// Tokens that the first guess of a chance counts for.
  double first_weight = 4;
  /// Drafts that are remembered, about.
  double remembered_drafts = 10;
  /// Rounds that a draft of a model that was not tried is taken to save.
  double first_saved_rounds = 3;
  /// The share of an answer's time, as one in so many, that may go into finding out whether the model still pays no
  /// more.
  double trial_share = 32;
  /// The draft model is asked for so many times what was verified last.
  double width_growth = 2;
};

}  // namespace redline::draft
