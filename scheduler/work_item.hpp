#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/environment.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/cost/draft_segment.hpp"
#include "runtime/kv/amount.hpp"
#include "scheduler/round.hpp"

namespace redline::scheduler {

/// What a sequence needs to have computed next, as a value.
struct work_item {
  sequence_id sequence;
  sequence_facts facts;
  instant arrival;                   // when the sequence arrived
  std::uint32_t computed_count = 0;  // tokens with valid KV before the first that has none
  /// Tokens to compute from there on, at least 1: up to the log's end, or to the next token that has KV.
  std::uint32_t pending_count = 0;
  std::uint32_t draft_count = 0;   // draft tokens to verify after them
  kv::growth growth;               // memory that more tokens take
  bool background = false;         // a prefill that no client waits for
  bool wants_logits = true;        // for the last pending token
  std::uint32_t missed_count = 0;  // consecutive passes that could not take it
  /// The draft consists of a prompt's tokens and is computed as a prompt chunk is, whatever it costs.
  bool scores_draft = false;
  std::span<const cost::draft_segment> segments;  // segments of the draft; tokens beyond them are certain

  /// Whether only the last token of the log is missing: a decode or verification run, not a prompt.
  [[nodiscard]] bool decodes() const { return pending_count == 1 && computed_count > 0; }
};

using item_index = std::uint32_t;

}  // namespace redline::scheduler
