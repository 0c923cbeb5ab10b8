#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/http/fields/api_error.hpp"
#include "actors/http/request/generation_request.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/draft/source.hpp"
#include "runtime/tools/tool_set.hpp"

namespace redline::api {

enum class finish_reason : std::uint8_t { stop, length, content_filter, tool_calls, function_call };
std::string_view text_of(finish_reason why);

/// Counts of draft tokens from one source.
struct source_report {
  std::uint64_t drafted = 0;   // draft tokens verified
  std::uint64_t accepted = 0;  // verified tokens accepted
  source_report& operator+=(const source_report& other);
  bool operator==(const source_report&) const = default;
};

/// How exact the KV of an edit session's prompt was when the answer began, in tokens.
struct kv_report {
  std::uint32_t exact = 0;
  std::uint32_t shifted = 0;
  std::uint32_t stale = 0;
  bool operator==(const kv_report&) const = default;
};

/// The cost of one answer, for `usage`.
struct usage_report {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t cached_tokens = 0;  // prompt tokens found in the prefix cache
  std::uint32_t completion_tokens = 0;
  std::uint32_t reasoning_tokens = 0;  // completion tokens up to the end of the reasoning

  std::uint64_t drafted = 0;   // tokens verified, from any source
  std::uint64_t accepted = 0;  // verified tokens accepted
  /// The same by source. OpenAI's accepted and rejected prediction tokens count only the client's prediction. A token
  /// that was never verified is neither.
  std::array<source_report, std::size(draft::all_sources)> sources;
  std::optional<recognised_format> edit_format;
  std::uint64_t copied_forced = 0;    // tokens of spans that a program copied
  std::uint64_t copied_verified = 0;  // copied tokens that the model agreed with
  std::uint64_t rounds = 0;           // questions to the target model
  std::uint64_t target_passes = 0;
  std::uint64_t draft_passes = 0;
  std::uint64_t rows = 0;         // computed by the target in verification and prefill
  std::uint64_t evicted = 0;      // tokens that left the window
  std::uint32_t evictions = 0;    // number of window moves
  std::uint32_t reevaluated = 0;  // recomputations of the window after moved KV was lost
  std::string eviction = "off";   // the policy's name
  double seconds = 0;             // from admission to the last token
  double first_token_seconds = 0;
  std::optional<kv_report> kv;       // edit sessions only
  std::vector<std::string> ignored;  // request fields; see generation_request::ignored

  [[nodiscard]] source_report& of(draft::source from) { return sources.at(static_cast<std::size_t>(from)); }
  [[nodiscard]] const source_report& of(draft::source from) const { return sources.at(static_cast<std::size_t>(from)); }
  /// Sums over several answers to one request. The caller makes sure that a prompt counts once.
  usage_report& operator+=(const usage_report& other);
  bool operator==(const usage_report&) const = default;
};

/// A token as bytes, which need not be valid UTF-8 on their own.
struct token_probability {
  std::string bytes;
  float logprob = 0;
  token id = 0;
};
struct token_report {
  token_probability chosen;
  std::vector<token_probability> top;  // most probable first
  token id = 0;
  bool has_logprob = true;  // false for a prompt's first token, which has no predecessor
};

/// A prompt's tokens, and how many characters of a choice's text they cover.
struct prompt_report {
  std::vector<token_report> tokens;
  std::size_t characters = 0;
};

/// The program that produced an answer, for redline.copy.
struct program_report {
  struct span {
    std::uint32_t file = 1;
    std::string_view unit;  // "lines" or "tokens"
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::string_view trust;   // "forced" or "verified"
    std::string_view reason;  // "option", "anchors", "confidence" or "doubt"
    std::uint32_t tokens = 0;
    bool refused = false;  // the model ended it before its last token
  };
  std::string program;
  std::vector<span> spans;
};

/// One step of an answer, for redline.trace. A run is a sequence of tokens from one source; bytes count the text that
/// the step produced.
struct trace_report {
  struct run {
    std::string_view source;
    std::uint32_t tokens = 0;
    std::uint32_t bytes = 0;
  };
  std::uint64_t round = 0;
  std::uint64_t at_us = 0;
  std::uint32_t passes = 0;
  std::uint32_t rows = 0;
  std::vector<run> proposed;
  std::uint32_t verified = 0;
  std::uint32_t accepted = 0;
  std::vector<run> came;
};

struct choice {
  std::uint32_t index = 0;
  std::string text;
  finish_reason finish = finish_reason::stop;
  std::optional<std::vector<token_report>> tokens;  // if logprobs or ids were requested
  std::optional<program_report> program;            // if the answer was a program
  std::string reasoning{};                          // the model's thinking before the text
  std::vector<tools::tool_call> calls{};
  bool is_legacy = false;                            // the call is reported as a function_call
  std::vector<token> prompt{};                       // if ids were requested
  std::shared_ptr<const std::string> prompt_text{};  // for llama.cpp's shape, if it repeats it; else null
  std::string stop_text{};                           // the stop text that ended it; else empty
  usage_report cost{};                               // this choice's own cost, for the native shape
  /// Set if log-probabilities of the prompt were requested; outlives the choice.
  const prompt_report* read = nullptr;
};

/// Writes the answer to one request in OpenAI's shapes or in another API's. What a function returns is sent unchanged.
class answer_writer {
 public:
  answer_writer() = default;
  virtual ~answer_writer() = default;
  answer_writer(const answer_writer&) = delete;
  answer_writer& operator=(const answer_writer&) = delete;

  // For a stream, the order is first, delta... and finish per choice, then end. Choices interleave.

  [[nodiscard]] virtual std::string_view stream_type() const { return "text/event-stream; charset=utf-8"; }
  /// prompt: its tokens, if ids were requested.
  virtual std::string first(std::uint32_t index, std::span<const token> prompt) = 0;
  /// `text` must not end inside a character. tokens: null unless logprobs or ids were requested. reasoning: precedes
  /// the text. Returns an empty string if there is nothing to send.
  virtual std::string delta(std::uint32_t index, std::string_view text, const std::vector<token_report>* tokens,
                            std::string_view reasoning) = 0;
  /// Echoes the tokens [first, end) of a prompt with log-probabilities, with `text` before the first one.
  virtual std::string echo(std::uint32_t /*index*/, std::string_view /*text*/, const prompt_report& /*prompt*/,
                           std::size_t /*first*/, std::size_t /*end*/) {
    return {};
  }
  /// Begins the choice's call of this number, without arguments. is_legacy: as a function_call.
  virtual std::string call(std::uint32_t /*index*/, std::uint32_t /*number*/, const tools::tool_call& /*begun*/,
                           bool /*is_legacy*/) {
    return {};
  }
  /// Adds to the call's arguments, under the conditions of `delta`.
  virtual std::string arguments(std::uint32_t /*index*/, std::uint32_t /*number*/, std::string_view /*text*/,
                                bool /*is_legacy*/) {
    return {};
  }
  /// Reports a step, before the text of that step.
  virtual std::string trace(std::uint32_t /*index*/, const trace_report& /*step*/) { return {}; }
  /// Sets the numerics that compute the choice and the resulting fingerprint, as soon as they are known.
  virtual void note_numerics(std::uint32_t /*index*/, std::uint32_t /*numerics*/, const std::string& /*fingerprint*/) {}
  /// Sets the usage that later events report, except the one from end().
  virtual void note_progress(std::uint32_t /*prompt_tokens*/, std::uint32_t /*completion_tokens*/) {}
  /// one: without its text, which was already sent.
  virtual std::string finish(const choice& one) = 0;
  virtual std::string end(const usage_report& usage) = 0;
  /// Replaces everything that would follow.
  [[nodiscard]] virtual std::string error(const api_error& why) const = 0;
  /// Marks a choice that the client has in full and that is not made again.
  virtual void skip(std::uint32_t /*index*/) {}
  /// True if the answer differs from the beginning that the client has, so that nothing more may be sent.
  [[nodiscard]] virtual bool has_diverged() const { return false; }

  /// The error to send if the model's output is not a valid answer in this shape. Called before `whole`.
  [[nodiscard]] virtual std::optional<api_error> refusal(std::span<const choice> /*choices*/) const {
    return std::nullopt;
  }
  /// The whole answer as one JSON body.
  [[nodiscard]] virtual std::string whole(std::span<const choice> choices, const usage_report& usage) const = 0;
};

}  // namespace redline::api
