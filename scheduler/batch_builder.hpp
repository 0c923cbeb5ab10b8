#pragma once

#include <limits>
#include <span>

#include "scheduler/batch_plan.hpp"

namespace redline::scheduler {

/// What one pass may use.
struct budget {
  std::uint32_t rows_max = 512;
  std::uint32_t logits_max = std::numeric_limits<std::uint32_t>::max();  // rows that want logits: their buffer's size
  std::uint32_t prompt_chunk_rows_max = 256;  // of one run, so that a prompt does not fill the batch alone
  kv::amount free;                            // memory
  /// Predicted. `run_queue` allows less where passes take longer than predicted.
  microseconds time_max{80'000};
  std::uint32_t rows_min = 1;  // decodes taken whatever they are predicted to cost: those in the next pass would
                               // wait for this one, and two passes take longer than one
  bool whole_drafts = false;   // take all draft tokens that fit, also those that do not pay
  microseconds trial{0};       // predicted time that a draft may take although it does not pay: to see what it takes
};

/// Packs a ranking into one pass. Pure: the same inputs give the same plan. Runs first, without their drafts: decodes,
/// then prompts, each in order. Prompts are shortened to chunks and have a quarter of the pass at least; a run that
/// fits nothing is left out with the reason, and the next one is tried. Then draft tokens, those first that are
/// likeliest to be accepted for the time they take, as long as the tokens that the pass is expected to yield per
/// microsecond grow.
batch_plan build_batch(std::span<const work_item> items, std::span<const item_index> best_first, const budget& limits,
                       const cost::cost_model& cost);
}  // namespace redline::scheduler
