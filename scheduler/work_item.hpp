#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/environment.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/cost/draft_segment.hpp"
#include "runtime/kv/amount.hpp"
#include "scheduler/round.hpp"

namespace redline::scheduler {

/// What a sequence needs computed next, as a value.
struct work_item {
  sequence_id sequence;
  sequence_facts facts;
  instant arrival;                   // of the sequence
  std::uint32_t computed_count = 0;  // tokens with valid KV before the first that has none
  std::uint32_t pending_count = 0;   // tokens from there on to compute, at least 1: up to the log's end, or to the next
                                     // token that has KV
  std::uint32_t draft_count = 0;     // draft tokens to verify after them
  kv::growth growth;                 // memory that more tokens take
  bool background = false;           // a prefill that no client waits for
  bool wants_logits = true;          // of the last pending token
  std::uint32_t missed_count = 0;    // passes in a row that had no room for it
  bool scores_draft = false;  // the draft is a prompt's tokens: computed as a prompt's chunk is, whatever it costs
  std::span<const cost::draft_segment> segments;  // of the draft; tokens beyond them are certain

  /// Only the last token of the log is missing: a decode or verification run, not a prompt.
  [[nodiscard]] bool decodes() const { return pending_count == 1 && computed_count > 0; }
};

using item_index = std::uint32_t;

}  // namespace redline::scheduler
