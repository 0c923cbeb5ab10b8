#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/environment.hpp"
#include "runtime/base/ids.hpp"
#include "scheduler/draft_record.hpp"

namespace redline::scheduler {

/// What one sequence wants computed next, as a value.
struct work_item {
  sequence_id sequence;
  tenant_id tenant;
  instant arrival;                   // of the sequence
  std::uint32_t computed_count = 0;  // tokens with valid KV before the first that has none
  std::uint32_t pending_count = 0;   // tokens from there on to compute, at least 1: up to the log's end, or to the next
                                     // token that has KV
  std::uint32_t draft_count = 0;     // draft tokens to verify behind them
  std::uint32_t room = 0;            // tokens for which no page need be taken
  bool background = false;           // nobody waits for it
  bool wants_logits = true;          // of the last pending token
  std::span<const draft_stretch> sources;   // of the draft
  const source_records* drafts = nullptr;   // how the sequence's drafts fared; nullptr: every token is worth a pass
  const source_records* typical = nullptr;  // how all drafts of its tenant did

  /// Only the last token of the log is missing: a decode or verification run, not a prompt.
  [[nodiscard]] bool decodes() const { return pending_count == 1 && computed_count > 0; }
};

using item_index = std::uint32_t;

}  // namespace redline::scheduler
