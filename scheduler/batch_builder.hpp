#pragma once

#include <limits>
#include <span>

#include "scheduler/batch_plan.hpp"

namespace redline::scheduler {

/// What one pass may use.
struct budget {
  std::uint32_t rows_max = 512;
  std::uint32_t logits_max =
      std::numeric_limits<std::uint32_t>::max();  // rows that want logits: the size of their buffer
  std::uint32_t prompt_chunk_rows_max = 256;      // per run, so that a prompt does not fill the batch alone
  kv::amount free;                                // memory
  /// Predicted time. `run_queue` allows less if passes take longer than predicted.
  microseconds time_max{80'000};
  /// Decodes taken whatever their predicted cost: left out, they would wait for this pass, and two passes take longer
  /// than one.
  std::uint32_t rows_min = 1;
  bool whole_drafts = false;  // take all draft tokens that fit, even those that do not pay
  microseconds trial{0};      // predicted time that a draft that does not pay may take, to measure its cost
};

/// Packs a ranking into one pass. A pure function: the same inputs give the same plan. Runs come first, without their
/// drafts: decodes, then prompts, each in order. Prompts are shortened to chunks and get at least a quarter of the
/// pass. A run that does not fit is left out with the reason, and the next one is tried. Draft tokens follow, those
/// first with the highest chance of acceptance per time, while the expected tokens per microsecond of the pass still
/// rise.
batch_plan build_batch(std::span<const work_item> items, std::span<const item_index> best_first, const budget& limits,
                       const cost::cost_model& cost);
}  // namespace redline::scheduler
