#pragma once

#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "runtime/actor/protocol.hpp"
#include "runtime/cost/cost_model.hpp"
#include "runtime/draft/mtp_source.hpp"
#include "runtime/grammar/constraint.hpp"
#include "runtime/sampling/sampling.hpp"
#include "scheduler/round.hpp"

namespace redline::actors {

/// What decides a sequence's answer besides its log, and does not change from round to round.
struct sequence_terms {
  scheduler::sequence_facts facts;
  std::uint64_t prefix_scope = 0;  // shares KV only with sequences of the same number; 0 means as the tenant does
  sampling::sampling_params sampling;
  std::optional<std::uint32_t> logprobs;         // number of alternatives wanted per token
  std::optional<std::uint32_t> prompt_logprobs;  // the same for rounds that score the prompt
  grammar::constraint grammar;                   // what the answer follows, without a state; `none` allows anything
  static constexpr auto fields(auto& self) {
    return std::tie(self.facts, self.prefix_scope, self.sampling, self.logprobs, self.prompt_logprobs, self.grammar);
  }
};

// The numbers 0x0401, 0x0402, 0x040c, 0x040d, 0x040e and 0x0416 belong to older forms.

/// A round of a sequence. Answered with `verified`, or with `prefilled` for a round of kind `prefill`; otherwise with
/// `log_needed` or `refused`. Safe to send again: the same round is answered again, not computed again. A `prefill`
/// round that a later round overtakes gets no answer.
struct verify_run {
  static constexpr actor::message_id id{0x041b};
  static constexpr std::string_view name = "verify_run";

  /// A receiver that lacks the log that the round continues answers `log_needed`, and then expects no splices.
  scheduler::round round;
  std::uint32_t prompt_count = 0;
  /// Tokens that have left the log for good. They still count in a token's index, which keys its sampling noise.
  std::uint64_t evicted_count = 0;
  std::vector<std::uint32_t> grammar_state;  // state at the log's end; meaningless when a prompt is scored
  /// Sent until a round of this session is answered, and whenever the log is sent from its beginning. A receiver that
  /// lacks the terms of earlier rounds answers `log_needed`.
  std::optional<sequence_terms> terms;
  draft::mtp_request mtp;  // for the next round's draft
  static constexpr auto fields(auto& self) {
    return std::tie(self.round, self.prompt_count, self.evicted_count, self.grammar_state, self.terms, self.mtp);
  }
};

/// The tokens that plain decoding would have given: the accepted part of the draft and one more.
struct verified {
  static constexpr actor::message_id id{0x041c};
  static constexpr std::string_view name = "verified";

  sequence_id sequence;
  round_id round;
  std::vector<token> tokens;                        // at least one
  std::vector<sampling::emitted_logprob> logprobs;  // one per token when asked for
  std::uint32_t verified_count = 0;  // draft tokens that were looked at; a pass may take a part of a draft
  std::uint32_t passes = 0;          // passes of the target model that this round took part in
  std::uint32_t rows = 0;            // rows computed for it
  /// How often so far moved KV was lost and computed again from the log, which gives different bits.
  std::uint32_t recomputed_count = 0;
  std::uint32_t cached_count = 0;  // tokens of the log already computed for another sequence
  /// How many of the first tokens of the requested log have exact KV. The KV after them was computed for an older text
  /// or another window, or depends on such KV.
  std::uint32_t exact_count = 0;
  cost::step_cost step;
  std::uint64_t queued_us = 0;  // from when the round was taken to its first pass
  draft::mtp_draft mtp;         // what may follow the tokens, as it was asked for

  /// The number of draft tokens among the tokens.
  [[nodiscard]] std::uint32_t accepted_count() const { return static_cast<std::uint32_t>(tokens.size()) - 1; }
  static constexpr auto fields(auto& self) {
    return std::tie(self.sequence, self.round, self.tokens, self.logprobs, self.verified_count, self.passes, self.rows,
                    self.recomputed_count, self.cached_count, self.exact_count, self.step, self.queued_us, self.mtp);
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

/// The cache manager lacks the log that the round continues, or its terms. The session must ask again, with the log's
/// tail from `from`, without splices and with the terms.
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
  std::uint32_t retry_after_ms = 0;  // 0 means that no later attempt will succeed
  static constexpr auto fields(auto& self) { return std::tie(self.sequence, self.why, self.retry_after_ms); }
};

/// The round is being computed or queued: its answer will come. Sent for a new sequence's first round when that is not
/// answered within half a second, and for each round that is asked again.
struct run_pending {
  static constexpr actor::message_id id{0x0407};
  static constexpr std::string_view name = "run_pending";

  sequence_id sequence;
  round_id round;
  static constexpr auto fields(auto& self) { return std::tie(self.sequence, self.round); }
};

/// The session no longer waits for this round: it need not be answered, and a later one need not wait for it. Sent as
/// data, because it may not overtake the round itself.
struct give_up_round {
  static constexpr actor::message_id id{0x040a};
  static constexpr std::string_view name = "give_up_round";

  sequence_id sequence;
  round_id round;
  static constexpr auto fields(auto& self) { return std::tie(self.sequence, self.round); }
};

/// The session is over or gave up; its slot, pages and pending round can go. Sent as data, because it may not overtake
/// a round, which would then be computed for nothing.
struct release_sequence {
  static constexpr actor::message_id id{0x0403};
  static constexpr std::string_view name = "release_sequence";

  sequence_id sequence;
  static constexpr auto fields(auto& self) { return std::tie(self.sequence); }
};

/// The cache manager's own heartbeat, which lets it notice a silent target model and sessions that vanished.
struct manager_tick {
  static constexpr actor::message_id id{0x0409};
  static constexpr std::string_view name = "manager_tick";
  static constexpr auto fields(auto&) { return std::tie(); }
};

/// The cache manager to itself: the wait for sequences between two rounds is over.
struct replan {
  static constexpr actor::message_id id{0x040b};
  static constexpr std::string_view name = "replan";
  static constexpr auto fields(auto&) { return std::tie(); }
};

}  // namespace redline::actors
