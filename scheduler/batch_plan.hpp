#pragma once

#include <cstdint>
#include <vector>

#include "runtime/cost/cost_model.hpp"
#include "scheduler/work_item.hpp"

namespace redline::scheduler {

/// One sequence's part of a verification pass.
struct planned_run {
  sequence_id sequence;
  tenant_id tenant;
  std::uint32_t first = 0;        // index of the first token in the sequence; all tokens before it are computed
  std::uint32_t log_count = 0;    // tokens of the log in this run
  std::uint32_t draft_count = 0;  // draft tokens after them; may be fewer than the session offered
  bool wants_logits = false;      // this run completes the log

  [[nodiscard]] std::uint32_t rows() const { return log_count + draft_count; }
  /// See `work_item::decodes`.
  [[nodiscard]] bool decodes() const { return wants_logits && log_count == 1 && first > 0; }
};

/// Why an item is not in the plan, or not with everything it offered.
enum class limit : std::uint8_t { rows, memory, time };

struct left_out {
  sequence_id sequence;
  limit why = limit::rows;
};

/// The decision as data: what was taken, what was left out, and why.
struct batch_plan {
  std::vector<planned_run> runs;
  std::vector<left_out> left;
  cost::work_size size;
  microseconds predicted{0};
  std::uint32_t drafts_cut = 0;  // draft tokens that would have fit but do not pay
  microseconds lost{0};          // predicted, if the pass is wider than what pays to measure its width
};

}  // namespace redline::scheduler
