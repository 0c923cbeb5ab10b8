#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/cost/draft_segment.hpp"
#include "runtime/kv/splice_policy.hpp"

namespace redline::scheduler {

/// A change in the middle of a log: tokens [at, at + removed_count) go, others come in their place.
struct log_splice {
  std::uint32_t at = 0;
  std::uint32_t removed_count = 0;
  std::vector<token> tokens;
  kv::splice_policy policy = kv::splice_policy::exact;  // what becomes of the KV of the tokens after it
  static constexpr auto fields(auto& self) { return std::tie(self.at, self.removed_count, self.tokens, self.policy); }
};

enum class round_kind : std::uint8_t {
  answer,   // what the model says after the log, and whether it agrees to the draft
  score,    // the draft is the prompt's next tokens, whose log-probabilities are wanted: it is agreed to whatever the
            // model would have written, and is computed as prompts are. A pass may take a part of it.
  prefill,  // the KV of all but the log's last token, at low priority, in passes of its own; a later round may overtake
            // it
  last_,
};

/// What a session asks of a sequence once.
struct round {
  sequence_id sequence;
  round_id number;
  round_kind kind = round_kind::answer;
  /// Changes of the log that is known, in order, before the tail joins on. All are taken with the round, or none.
  std::vector<log_splice> splices;
  std::uint32_t from = 0;  // the log's tail begins here
  std::vector<token> tail;
  std::vector<token> draft;
  std::vector<cost::draft_segment> segments;  // of the draft; tokens beyond them are certain
  static constexpr auto fields(auto& self) {
    return std::tie(self.sequence, self.number, self.kind, self.splices, self.from, self.tail, self.draft,
                    self.segments);
  }
};

/// What a sequence brings with it: its turn, its place and its share of memory depend on that. A new fact of a request
/// that policies read is a member here.
struct sequence_facts {
  tenant_id tenant;
  std::uint32_t tokens_max = 0;  // most tokens that it can come to hold
  static constexpr auto fields(auto& self) { return std::tie(self.tenant, self.tokens_max); }
};

}  // namespace redline::scheduler
