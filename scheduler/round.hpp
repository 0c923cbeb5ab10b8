#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/cost/draft_segment.hpp"
#include "runtime/kv/splice_policy.hpp"

namespace redline::scheduler {

/// A change in the middle of a log: other tokens replace [at, at + removed_count).
struct log_splice {
  std::uint32_t at = 0;
  std::uint32_t removed_count = 0;
  std::vector<token> tokens;
  kv::splice_policy policy = kv::splice_policy::exact;  // for the KV of the tokens after it
  static constexpr auto fields(auto& self) { return std::tie(self.at, self.removed_count, self.tokens, self.policy); }
};

enum class round_kind : std::uint8_t {
  answer,  // asks what the model says after the log, and whether it agrees with the draft
  /// Asks for the log-probabilities of the prompt's next tokens, given as the draft. They are accepted whatever the
  /// model would have written, and computed as prompts are. A pass may take a part of them.
  score,
  /// Asks for the KV of all but the log's last token, at low priority, in separate passes. A later round may overtake
  /// it.
  prefill,
  last_,
};

/// One request of a session for a sequence.
struct round {
  sequence_id sequence;
  round_id number;
  round_kind kind = round_kind::answer;
  /// Changes of the present log, in order, applied before the tail. Either all are applied with the round, or none.
  std::vector<log_splice> splices;
  std::uint32_t from = 0;  // position in the log where the tail begins
  std::vector<token> tail;
  std::vector<token> draft;
  std::vector<cost::draft_segment> segments;  // segments of the draft; tokens beyond them are certain
  static constexpr auto fields(auto& self) {
    return std::tie(self.sequence, self.number, self.kind, self.splices, self.from, self.tail, self.draft,
                    self.segments);
  }
};

/// Facts about a sequence on which its turn, its slot and its share of memory depend. A new request fact that policies
/// read becomes a member here.
struct sequence_facts {
  tenant_id tenant;
  std::uint32_t tokens_max = 0;  // the most tokens that it can come to have
  static constexpr auto fields(auto& self) { return std::tie(self.tenant, self.tokens_max); }
};

}  // namespace redline::scheduler
