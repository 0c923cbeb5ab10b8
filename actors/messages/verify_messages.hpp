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

// The numbers 0x0401 and 0x0402 belong to older questions and answers, which were one message each.

/// Asks what the target model says after the log, and whether it agrees to a draft. Answered with `verified`,
/// `log_needed` or `refused`. Safe to send again: the same round is answered once more, not computed once more.
struct verify_run {
  static constexpr actor::message_id id{0x040c};
  static constexpr std::string_view name = "verify_run";

  sequence_id sequence;
  tenant_id tenant;
  round_id round;
  log_tail log;
  std::uint32_t prompt_count = 0;
  std::vector<token> draft;
  model::sampling_params sampling;
  std::optional<std::uint32_t> logprobs;  // alternatives wanted per token
  std::vector<draft::draft_part> parts;   // the draft's sources and chances; what they do not cover is certain
  /// Most tokens this sequence can come to hold; admission checks that they fit.
  std::uint32_t tokens_max = 0;
  /// What may follow the log; none: anything; known: the grammar of the session's rounds before. A scheduler that does
  /// not have it answers `log_needed`.
  grammar::constraint grammar;
  /// Changes of the log that the scheduler knows, in order, before `log` joins on. All are taken with the round, or
  /// none: a scheduler that does not know that log answers `log_needed`, and expects no splices then.
  std::vector<log_splice> splices;
  /// Tokens that have left the log for good: they count for a token's index, by which it is sampled.
  std::uint64_t evicted_count = 0;
  /// Shares KV with sequences of the same number only; 0: as the tenant does.
  std::uint64_t prefix_scope = 0;
  /// The draft is the prompt's next tokens, whose log-probabilities are wanted: it is agreed to whatever the model
  /// would have written. A pass may take a part of it.
  bool scores_draft = false;
  static constexpr auto fields(auto& self) {
    return std::tie(self.sequence, self.tenant, self.round, self.log, self.prompt_count, self.draft, self.sampling,
                    self.logprobs, self.tokens_max, self.parts, self.grammar, self.splices, self.evicted_count,
                    self.prefix_scope, self.scores_draft);
  }
};

/// Asks for the KV of all but the log's last token, at low priority: in passes of its own, while no session waits for
/// an answer. Answered with `prefilled`, `log_needed` or `refused`. A later round may overtake this one, which then
/// gets no answer. The fields mean what they mean in `verify_run`.
struct prefill_run {
  static constexpr actor::message_id id{0x040d};
  static constexpr std::string_view name = "prefill_run";

  sequence_id sequence;
  tenant_id tenant;
  round_id round;
  log_tail log;
  std::uint32_t tokens_max = 0;
  std::vector<log_splice> splices;
  static constexpr auto fields(auto& self) {
    return std::tie(self.sequence, self.tenant, self.round, self.log, self.tokens_max, self.splices);
  }
};

/// The tokens that plain decoding would have given: the accepted part of the draft and one more.
struct verified {
  static constexpr actor::message_id id{0x040e};
  static constexpr std::string_view name = "verified";

  sequence_id sequence;
  round_id round;
  std::vector<token> tokens;                     // at least one
  std::vector<model::emitted_logprob> logprobs;  // one per token when asked for
  std::uint32_t verified_count = 0;              // draft tokens that were looked at; the scheduler may shorten a draft
  std::uint32_t passes = 0;                      // target forwards this round took part in
  std::uint32_t rows = 0;                        // rows computed for it
  /// How often so far KV that had been moved was lost and computed anew from the log, which gives other bits.
  std::uint32_t recomputed_count = 0;
  std::uint32_t cached_count = 0;  // tokens of the log that another sequence had computed
  /// Of the log that was asked about, the first tokens whose KV is what computing them anew gives. Those after them
  /// were computed for an older text or another window, or have seen such tokens.
  std::uint32_t exact_count = 0;
  cost::step_cost step;
  std::uint64_t queued_us = 0;  // from when the round was taken to the first pass that it took part in

  /// Draft tokens that are among the tokens.
  [[nodiscard]] std::uint32_t accepted_count() const { return static_cast<std::uint32_t>(tokens.size()) - 1; }
  static constexpr auto fields(auto& self) {
    return std::tie(self.sequence, self.round, self.tokens, self.logprobs, self.verified_count, self.passes, self.rows,
                    self.recomputed_count, self.cached_count, self.exact_count, self.step, self.queued_us);
  }
};

/// The KV is up to date.
struct prefilled {
  static constexpr actor::message_id id{0x040f};
  static constexpr std::string_view name = "prefilled";

  sequence_id sequence;
  round_id round;
  std::uint32_t exact_count = 0;  // as in `verified`
  static constexpr auto fields(auto& self) { return std::tie(self.sequence, self.round, self.exact_count); }
};

/// The scheduler does not have the log that the round joins on, or its grammar: the round is to be asked again, with
/// the log's tail from `from`, without splices and with the grammar's text.
struct log_needed {
  static constexpr actor::message_id id{0x0410};
  static constexpr std::string_view name = "log_needed";

  sequence_id sequence;
  round_id round;
  std::uint32_t from = 0;
  static constexpr auto fields(auto& self) { return std::tie(self.sequence, self.round, self.from); }
};

/// The sequence gets no answer, to this round or to any other that waits.
struct refused {
  static constexpr actor::message_id id{0x0411};
  static constexpr std::string_view name = "refused";

  sequence_id sequence;
  failure why;
  std::uint32_t retry_after_ms = 0;  // 0: no later attempt will succeed
  static constexpr auto fields(auto& self) { return std::tie(self.sequence, self.why, self.retry_after_ms); }
};

/// The round is in work or in the queue: its answer will come. Said of a new sequence's first round when it is not
/// answered within half a second, and of each round that is asked again.
struct run_pending {
  static constexpr actor::message_id id{0x0407};
  static constexpr std::string_view name = "run_pending";

  sequence_id sequence;
  round_id round;
  static constexpr auto fields(auto& self) { return std::tie(self.sequence, self.round); }
};

/// The session no longer waits for this round: it need not be answered, and a later one need not wait for it. Data: it
/// may not overtake the round itself.
struct give_up_round {
  static constexpr actor::message_id id{0x040a};
  static constexpr std::string_view name = "give_up_round";

  sequence_id sequence;
  round_id round;
  static constexpr auto fields(auto& self) { return std::tie(self.sequence, self.round); }
};

/// The session is over or gave up; its place, pages and pending round can go. Data: it may not overtake a round, which
/// would then be computed for nobody.
struct release_sequence {
  static constexpr actor::message_id id{0x0403};
  static constexpr std::string_view name = "release_sequence";

  sequence_id sequence;
  static constexpr auto fields(auto& self) { return std::tie(self.sequence); }
};

/// The scheduler's own heartbeat, by which it notices lost messages and sessions that went without a word.
struct scheduler_tick {
  static constexpr actor::message_id id{0x0409};
  static constexpr std::string_view name = "scheduler_tick";
  static constexpr auto fields(auto&) { return std::tie(); }
};

/// The scheduler to itself: the wait for sequences between two rounds is over.
struct wait_over {
  static constexpr actor::message_id id{0x040b};
  static constexpr std::string_view name = "wait_over";
  static constexpr auto fields(auto&) { return std::tie(); }
};

}  // namespace redline::actors
