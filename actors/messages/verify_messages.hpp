#pragma once

#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "actors/messages/draft_messages.hpp"
#include "runtime/grammar/constraint.hpp"
#include "runtime/kv/page_table.hpp"
#include "runtime/kv/splice_policy.hpp"

namespace redline::actors {

/// A change in the middle of a log: tokens [at, at + removed_count) go, others come in their place.
struct log_splice {
  std::uint32_t at = 0;
  std::uint32_t removed_count = 0;
  std::vector<token> tokens;
  kv::splice_policy policy = kv::splice_policy::exact;
  static constexpr auto fields(auto& self) { return std::tie(self.at, self.removed_count, self.tokens, self.policy); }
};

/// Asks what the target model says after the log, checking a draft on the way. Answered with one `verdict`. Safe to
/// send again: the same round is answered once more, not computed once more.
struct verify_run {
  static constexpr actor::message_id id{0x0401};
  static constexpr std::string_view name = "verify_run";

  sequence_id sequence;
  tenant_id tenant;
  round_id round;
  log_tail log;
  std::uint32_t prompt_count = 0;
  std::vector<token> draft;
  model::sampling_params sampling;
  std::optional<std::uint32_t> logprobs;  // alternatives wanted per token
  std::vector<draft::draft_part> parts;   // where the draft's tokens are from; what they do not cover is lookup's
  /// Most tokens this sequence can come to hold; admission checks that they fit.
  std::uint32_t tokens_max = 0;
  grammar::constraint grammar;  // what may follow the log; grammar_kind::none: anything
  /// Changes of the log that the scheduler knows, in order, before `log` joins on. They are taken with the round or not
  /// at all: a scheduler that does not know that log answers log_needed_from, and wants no splices then.
  std::vector<log_splice> splices;
  /// Tokens that have left the log for good: they count for a token's index, by which it is sampled.
  std::uint64_t evicted_count = 0;
  /// Bring the cache up to date, for all but the log's last token, and say no token: in passes of its own, when nobody
  /// waits for another. A later round may overtake this one, which then gets no verdict.
  bool prefill_only = false;
  static constexpr auto fields(auto& self) {
    return std::tie(self.sequence, self.tenant, self.round, self.log, self.prompt_count, self.draft, self.sampling,
                    self.logprobs, self.tokens_max, self.parts, self.grammar, self.splices, self.evicted_count,
                    self.prefill_only);
  }
};

/// The tokens that plain decoding would have given: the accepted part of the draft and one more; none for prefill_only.
/// Or why there are none.
struct verdict {
  static constexpr actor::message_id id{0x0402};
  static constexpr std::string_view name = "verdict";

  sequence_id sequence;
  round_id round;
  std::uint32_t verified_count = 0;  // draft tokens that were looked at; the scheduler may shorten a draft
  std::uint32_t accepted_count = 0;
  std::vector<token> tokens;
  std::vector<model::emitted_logprob> logprobs;
  std::uint32_t passes = 0;  // target forwards this round took part in
  std::uint32_t rows = 0;    // rows computed for it
  std::optional<std::uint32_t> log_needed_from;
  std::optional<failure> why_not;
  std::uint32_t retry_after_ms = 0;  // with why_not: when to come back
  cost::step_cost step;
  /// How often so far KV that had been moved was lost and computed anew from the log, which gives other bits.
  std::uint32_t recomputed_count = 0;
  std::uint32_t cached_count = 0;  // tokens of the log that another sequence had computed
  /// Of the log that was asked about, the first tokens whose KV is what computing them anew gives. Those behind were
  /// computed for an older text or another window, or have seen such tokens.
  std::uint32_t exact_count = 0;
  static constexpr auto fields(auto& self) {
    return std::tie(self.sequence, self.round, self.verified_count, self.accepted_count, self.tokens, self.logprobs,
                    self.passes, self.rows, self.log_needed_from, self.why_not, self.retry_after_ms, self.step,
                    self.recomputed_count, self.cached_count, self.exact_count);
  }
};

/// The round that was asked again is still in work or in the queue: its verdict will come.
struct run_pending {
  static constexpr actor::message_id id{0x0407};
  static constexpr std::string_view name = "run_pending";

  sequence_id sequence;
  round_id round;
  static constexpr auto fields(auto& self) { return std::tie(self.sequence, self.round); }
};

/// Nobody waits for this round any more: it need not be answered, and a later one need not wait for it. Data: it may
/// not overtake the round itself.
struct give_up_round {
  static constexpr actor::message_id id{0x040a};
  static constexpr std::string_view name = "give_up_round";

  sequence_id sequence;
  round_id round;
  static constexpr auto fields(auto& self) { return std::tie(self.sequence, self.round); }
};

/// The session is over or gave up; its place, pages and pending round can go.
struct release_sequence {
  static constexpr actor::message_id id{0x0403};
  static constexpr std::string_view name = "release_sequence";
  static constexpr bool control = true;

  sequence_id sequence;
  static constexpr auto fields(auto& self) { return std::tie(self.sequence); }
};

/// The scheduler's own heartbeat, by which it notices lost messages and sessions that went without a word.
struct scheduler_tick {
  static constexpr actor::message_id id{0x0409};
  static constexpr std::string_view name = "scheduler_tick";
  static constexpr auto fields(auto&) { return std::tie(); }
};

/// The scheduler to itself: sessions may have been quiet for long enough to work for those that do not wait.
struct background_due {
  static constexpr actor::message_id id{0x040b};
  static constexpr std::string_view name = "background_due";
  static constexpr auto fields(auto&) { return std::tie(); }
};

}  // namespace redline::actors
