#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "actors/messages/numerics_id.hpp"
#include "runtime/actor/protocol.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/copy/document.hpp"
#include "runtime/draft/source.hpp"
#include "runtime/sampling/sampling.hpp"

namespace redline::actors {

/// Why an answer ended.
enum class finish_reason : std::uint8_t {
  stop,    // the model ended it, or a stop string did
  length,  // max_tokens or the context was reached
  failed,  // see why_not
  last_,
};

/// Draft tokens of one source.
struct source_stats {
  std::uint32_t drafted = 0;   // those that the target model looked at
  std::uint32_t accepted = 0;  // those of them in the answer
  bool operator==(const source_stats&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.drafted, self.accepted); }
};

/// What decided how far a copied span was trusted.
enum class span_reason : std::uint8_t {
  option,      // the request's options
  anchors,     // auto: the program's anchors match the span's first and last line
  confidence,  // auto: the model was sure of the span's numbers
  doubt,       // auto: neither
  last_,
};

/// A span that a program copied, and how far it was trusted.
struct copied_span {
  std::uint32_t file = 1;
  copy::unit of = copy::unit::lines;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  bool forced = false;       // otherwise verified
  std::uint32_t tokens = 0;  // those in the answer; possibly not all of a verified span
  span_reason reason = span_reason::option;
  bool refused = false;  // the model ended it before its last token
  bool operator==(const copied_span&) const = default;
  static constexpr auto fields(auto& self) {
    return std::tie(self.file, self.of, self.first, self.last, self.forced, self.tokens, self.reason, self.refused);
  }
};

/// What an answer's program was; empty for an answer without one.
struct copy_report {
  std::string program;
  std::vector<copied_span> spans;
  bool operator==(const copy_report&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.program, self.spans); }
};

/// What an answer cost.
struct session_stats {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t completion_tokens = 0;
  std::uint32_t rounds = 0;
  std::uint32_t target_passes = 0;  // passes of the target model with a run of this session
  std::uint32_t target_rows = 0;
  std::uint32_t draft_passes = 0;  // the same for the draft model
  /// Draft tokens that the target model looked at, and those of them in the answer. What it accepted after the answer's
  /// end counts in neither. These are the sums over the sources below.
  std::uint32_t drafted = 0;
  std::uint32_t accepted = 0;
  std::uint64_t first_token_us = 0;  // since the session began
  std::uint64_t total_us = 0;
  std::vector<source_stats> sources = std::vector<source_stats>(static_cast<std::size_t>(draft::source::last_));

  /// Tokens of copied spans: in the answer because a program said so; in it because the model agreed; and those that
  /// the model was asked about and refused. Not counted as drafted or accepted.
  std::uint32_t copied_forced = 0;
  std::uint32_t copied_verified = 0;
  std::uint32_t copy_refused = 0;
  std::uint32_t evictions = 0;       // how often the window moved,
  std::uint64_t evicted_tokens = 0;  // and the tokens that left it
  /// How often moved KV was lost, with a process or to other sequences, and the window was computed again. From there
  /// on the answer may differ from an undisturbed one.
  std::uint32_t reevaluated = 0;
  std::uint32_t cached_tokens = 0;  // prompt tokens already computed for another answer
  /// Prompt tokens whose KV was exact when the answer began; see verified::exact_count.
  std::uint32_t prompt_exact = 0;
  std::uint64_t queued_us = 0;  // time that the first round waited for its first pass

  /// Returns zeros for a source that a peer of another version does not know.
  [[nodiscard]] source_stats of(draft::source from) const {
    const auto i = static_cast<std::size_t>(from);
    return i < sources.size() ? sources[i] : source_stats{};
  }
  bool operator==(const session_stats&) const = default;
  static constexpr auto fields(auto& self) {
    return std::tie(self.prompt_tokens, self.completion_tokens, self.rounds, self.target_passes, self.target_rows,
                    self.draft_passes, self.drafted, self.accepted, self.first_token_us, self.total_us, self.sources,
                    self.copied_forced, self.copied_verified, self.copy_refused, self.evictions, self.evicted_tokens,
                    self.reevaluated, self.cached_tokens, self.prompt_exact, self.queued_us);
  }
};

/// Where a token of an answer came from: the model chose it, a draft of one of these sources was right, a program
/// copied it, or a grammar left no choice.
enum class token_origin : std::uint8_t { model, lookup, draft, prediction, program, format, copy, grammar, mtp, last_ };
[[nodiscard]] constexpr token_origin to_origin(draft::source from) {
  switch (from) {
    case draft::source::lookup:
      return token_origin::lookup;
    case draft::source::model:
      return token_origin::draft;
    case draft::source::prediction:
      return token_origin::prediction;
    case draft::source::program:
      return token_origin::program;
    case draft::source::format:
      return token_origin::format;
    case draft::source::mtp:
      return token_origin::mtp;
    case draft::source::last_:
      break;
  }
  return token_origin::model;
}
[[nodiscard]] constexpr std::string_view name_of(token_origin from) {
  constexpr std::string_view names[] = {"model",  "lookup", "draft",   "prediction", "program",
                                        "format", "copy",   "grammar", "mtp"};
  return from < token_origin::last_ ? names[static_cast<std::size_t>(from)] : "?";
}

/// Consecutive tokens of one origin, and their bytes in the answer's text.
struct traced_run {
  token_origin from = token_origin::model;
  std::uint32_t tokens = 0;
  std::uint32_t bytes = 0;
  bool operator==(const traced_run&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.from, self.tokens, self.bytes); }
};

/// What one step of an answer was: a round, or more of what is decided after a round.
struct step_trace {
  std::uint64_t round = 0;
  std::uint64_t at_us = 0;         // since the session began
  std::uint32_t passes = 0;        // passes of the target model; 0 if the step has no round of its own
  std::uint32_t rows = 0;          // rows computed for it
  std::vector<traced_run> drafts;  // what was proposed; bytes are not counted
  std::uint32_t verified = 0;      // draft tokens that were looked at
  std::uint32_t accepted = 0;      // those of them accepted
  std::vector<traced_run> came;    // tokens that went into the answer
  bool operator==(const step_trace&) const = default;
  static constexpr auto fields(auto& self) {
    return std::tie(self.round, self.at_us, self.passes, self.rows, self.drafts, self.verified, self.accepted,
                    self.came);
  }
};

/// More of the answer. The text is whole characters, and no stop string takes it back later.
struct session_text {
  static constexpr actor::message_id id{0x0601};
  static constexpr std::string_view name = "session_text";

  session_id session;
  std::string text;
  std::vector<token> tokens;
  std::vector<sampling::emitted_logprob> logprobs;  // one per token when asked for
  numerics_id numerics;                             // numerics of the answer, in a pool
  std::optional<step_trace> trace;                  // only when asked for
  /// When asked for, the prompt's next log-probabilities, in order, from its second token on. Then there is no text.
  std::vector<sampling::emitted_logprob> prompt_logprobs;
  static constexpr auto fields(auto& self) {
    return std::tie(self.session, self.text, self.tokens, self.logprobs, self.numerics, self.trace,
                    self.prompt_logprobs);
  }
};

/// The scheduler has taken the answer's first round: it is computed or waits for that, and is no longer refused for a
/// full queue. Not sent for an answer whose first text comes within half a second.
struct session_admitted {
  static constexpr actor::message_id id{0x0607};
  static constexpr std::string_view name = "session_admitted";

  session_id session;
  numerics_id numerics;  // numerics of the answer, in a pool
  static constexpr auto fields(auto& self) { return std::tie(self.session, self.numerics); }
};

/// The last message of a session.
struct session_finished {
  static constexpr actor::message_id id{0x0602};
  static constexpr std::string_view name = "session_finished";

  session_id session;
  finish_reason reason = finish_reason::stop;
  session_stats stats;
  std::optional<failure> why_not;
  std::uint32_t retry_after_ms = 0;
  copy_report copied;
  std::string stop_text;  // the stop string that ended the answer; empty if something else did
  static constexpr auto fields(auto& self) {
    return std::tie(self.session, self.reason, self.stats, self.why_not, self.retry_after_ms, self.copied,
                    self.stop_text);
  }
};

/// The client gave up: the session ends without another message.
struct cancel_session {
  static constexpr actor::message_id id{0x0603};
  static constexpr std::string_view name = "cancel_session";
  static constexpr bool control = true;
  static constexpr auto fields(auto&) { return std::tie(); }
};

/// The client's buffer is over its mark (the session waits after the current round) or under it again.
struct pause_session {
  static constexpr actor::message_id id{0x0604};
  static constexpr std::string_view name = "pause_session";
  static constexpr bool control = true;

  bool paused = false;
  static constexpr auto fields(auto& self) { return std::tie(self.paused); }
};

/// A session's own heartbeat, which lets it notice silence.
struct session_tick {
  static constexpr actor::message_id id{0x0605};
  static constexpr std::string_view name = "session_tick";
  static constexpr auto fields(auto&) { return std::tie(); }
};

/// A session's message to itself: the next part of what is too long for one handler.
struct session_step {
  static constexpr actor::message_id id{0x0606};
  static constexpr std::string_view name = "session_step";
  static constexpr auto fields(auto&) { return std::tie(); }
};

}  // namespace redline::actors
