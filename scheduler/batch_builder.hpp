#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <span>

#include "scheduler/batch_plan.hpp"

namespace redline::scheduler {

/// For each width of a pass, within a factor of two, the predicted time that may be lost on a pass that wide, to
/// measure it: a width that once seemed too slow would otherwise never be used again.
class width_trials {
 public:
  void allow(microseconds more) {
    for (microseconds& each : by_width_) each += more;
  }
  /// A pass of so many rows was made, in which this much was lost. It counts for all widths, so that trials of all of
  /// them together lose no more than was allowed.
  void note_pass(std::uint64_t rows, microseconds lost) {
    for (microseconds& each : by_width_) each = std::max(each - lost, microseconds{0});
    by_width_[index_of(rows)] = microseconds{0};
  }
  [[nodiscard]] microseconds allowed(std::uint64_t rows) const { return by_width_[index_of(rows)]; }

 private:
  static constexpr std::size_t widths_count = 16;
  static std::size_t index_of(std::uint64_t rows) {
    return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(rows)), widths_count - 1);
  }
  std::array<microseconds, widths_count> by_width_{};
};

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
  width_trials trials;
};

/// Packs a ranking into one pass. A pure function: the same inputs give the same plan. Runs come first, without their
/// drafts: decodes, then prompts, each in order. Prompts are shortened to chunks and get at least a quarter of the
/// pass. A run that does not fit is left out with the reason, and the next one is tried. Draft tokens follow, those
/// first with the highest chance of acceptance per time, while the expected tokens per microsecond of the pass still
/// rise.
batch_plan build_batch(std::span<const work_item> items, std::span<const item_index> best_first, const budget& limits,
                       const cost::cost_model& cost);
}  // namespace redline::scheduler
