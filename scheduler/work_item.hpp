#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/environment.hpp"
#include "runtime/base/ids.hpp"

namespace redline::scheduler {

/// Consecutive tokens of a draft, each with this chance to be accepted if all before it are.
struct draft_stretch {
  std::uint32_t count = 0;
  double chance = 1;
};

/// What a sequence needs computed next, as a value.
struct work_item {
  sequence_id sequence;
  tenant_id tenant;
  instant arrival;                   // of the sequence
  std::uint32_t computed_count = 0;  // tokens with valid KV before the first that has none
  std::uint32_t pending_count = 0;   // tokens from there on to compute, at least 1: up to the log's end, or to the next
                                     // token that has KV
  std::uint32_t draft_count = 0;     // draft tokens to verify after them
  std::uint32_t room = 0;            // tokens for which no page needs to be taken
  bool background = false;           // a prefill that no client waits for
  bool wants_logits = true;          // of the last pending token
  std::uint32_t missed_count = 0;    // passes in a row that had no room for it
  bool scores_draft = false;  // the draft is a prompt's tokens: computed as a prompt's chunk is, whatever it costs
  std::span<const draft_stretch> chances;  // of the draft's tokens; those beyond are certain

  /// Only the last token of the log is missing: a decode or verification run, not a prompt.
  [[nodiscard]] bool decodes() const { return pending_count == 1 && computed_count > 0; }
};

using item_index = std::uint32_t;

}  // namespace redline::scheduler
