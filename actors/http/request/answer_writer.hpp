#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/http/fields/api_error.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/tools/tool_set.hpp"

namespace redline::api {

enum class finish_reason : std::uint8_t { stop, length, content_filter, tool_calls, function_call };
std::string_view text_of(finish_reason why);

/// Draft tokens of one source.
struct source_report {
  std::uint64_t drafted = 0;   // verified
  std::uint64_t accepted = 0;  // of these
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

/// What one answer cost, for `usage`.
struct usage_report {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t cached_tokens = 0;  // of the prompt, found in the cache
  std::uint32_t completion_tokens = 0;
  std::uint32_t reasoning_tokens = 0;  // of these, up to the end of what the model thought

  std::uint64_t drafted = 0;   // tokens verified, from any source
  std::uint64_t accepted = 0;  // of these
  /// The same by source. OpenAI's accepted and rejected prediction tokens are those of the client's prediction only;
  /// what was never tried is neither.
  source_report lookup, draft_model, prediction, program;
  std::uint64_t copied_forced = 0;    // tokens of spans that a program copied
  std::uint64_t copied_verified = 0;  // those that the model agreed to
  std::uint64_t rounds = 0;           // times that the target was asked for tokens
  std::uint64_t target_passes = 0;
  std::uint64_t draft_passes = 0;
  std::uint64_t rows = 0;         // computed by the target, verification and prefill
  std::uint64_t evicted = 0;      // tokens that left the window
  std::uint32_t evictions = 0;    // times that it moved
  std::uint32_t reevaluated = 0;  // times that moved KV was lost and the window computed anew
  std::string eviction = "off";   // the policy
  double seconds = 0;             // from admission to the last token
  double first_token_seconds = 0;
  std::optional<kv_report> kv;       // edit sessions only
  std::vector<std::string> ignored;  // fields of the request; see generation_request::ignored

  /// For several answers to one request: sums, but the prompt counts once per prompt, which the caller decides.
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
  bool has_logprob = true;  // not a prompt's first token, which nothing comes before
};

/// A prompt's tokens, and how many characters of the text that a choice begins with are theirs.
struct prompt_report {
  std::vector<token_report> tokens;
  std::size_t characters = 0;
};

/// What the program of an answer was, for redline.copy.
struct program_report {
  struct span {
    std::uint32_t file = 1;
    std::string_view unit;  // "lines" or "tokens"
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::string_view trust;   // "forced" or "verified"
    std::string_view reason;  // "option", "anchors", "confidence" or "doubt"
    std::uint32_t tokens = 0;
  };
  std::string program;
  std::vector<span> spans;
};

/// What one step of an answer was, for redline.trace. Runs are tokens of one source; bytes are those of the text that
/// came.
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
  std::optional<std::vector<token_report>> tokens;  // when logprobs or ids were asked for
  std::optional<program_report> program;            // when it was one
  std::string reasoning{};                          // what the model thought before
  std::vector<tools::tool_call> calls{};
  bool is_legacy = false;                            // the call is told as a function_call
  std::vector<token> prompt{};                       // when ids were asked for
  std::shared_ptr<const std::string> prompt_text{};  // in llama.cpp's shape; null: it is not repeated
  std::string stop_text{};                           // that ended it; empty: another thing did
  usage_report cost{};                               // its own; for the native shape
  /// When log-probabilities of the prompt were asked for; outlives the choice.
  const prompt_report* read = nullptr;
};

/// How the answer to one request is written: in OpenAI's shapes or in another API's. What a call gives is sent as it
/// is.
class answer_writer {
 public:
  answer_writer() = default;
  virtual ~answer_writer() = default;
  answer_writer(const answer_writer&) = delete;
  answer_writer& operator=(const answer_writer&) = delete;

  // As a stream, in the order first, delta..., finish per choice; then end. Choices come mixed.

  [[nodiscard]] virtual std::string_view stream_type() const { return "text/event-stream; charset=utf-8"; }
  /// prompt: its tokens, when ids were asked for.
  virtual std::string first(std::uint32_t index, std::span<const token> prompt) = 0;
  /// `text` must not end inside a character. tokens: null unless logprobs or ids were asked for. reasoning: what the
  /// model thought before the text. Empty when there is nothing to say.
  virtual std::string delta(std::uint32_t index, std::string_view text, const std::vector<token_report>* tokens,
                            std::string_view reasoning) = 0;
  /// Of a prompt that is echoed with log-probabilities the tokens [first, end), with text before the first.
  virtual std::string echo(std::uint32_t /*index*/, std::string_view /*text*/, const prompt_report& /*prompt*/,
                           std::size_t /*first*/, std::size_t /*end*/) {
    return {};
  }
  /// The choice's call of this number begins, with no arguments yet; is_legacy: as a function_call.
  virtual std::string call(std::uint32_t /*index*/, std::uint32_t /*number*/, const tools::tool_call& /*begun*/,
                           bool /*is_legacy*/) {
    return {};
  }
  /// More of its arguments, under the conditions of `delta`.
  virtual std::string arguments(std::uint32_t /*index*/, std::uint32_t /*number*/, std::string_view /*text*/,
                                bool /*is_legacy*/) {
    return {};
  }
  /// Before the text of the step.
  virtual std::string trace(std::uint32_t /*index*/, const trace_report& /*step*/) { return {}; }
  /// By which numerics the choice is computed, and what that makes of the fingerprint: as soon as it is known.
  virtual void note_numerics(std::uint32_t /*index*/, std::uint32_t /*numerics*/, const std::string& /*fingerprint*/) {}
  /// What all events from now on say of usage, but the one by end().
  virtual void note_progress(std::uint32_t /*prompt_tokens*/, std::uint32_t /*completion_tokens*/) {}
  /// one: without its text, which was sent.
  virtual std::string finish(const choice& one) = 0;
  virtual std::string end(const usage_report& usage) = 0;
  /// Instead of all that follows.
  [[nodiscard]] virtual std::string error(const api_error& why) const = 0;
  /// A choice that the client has whole and that is not made again.
  virtual void skip(std::uint32_t /*index*/) {}
  /// The answer is not the one of which the client has the beginning: it must not be sent what follows.
  [[nodiscard]] virtual bool has_diverged() const { return false; }

  /// Why what the model wrote is no answer here, so that an error is sent in its place. Asked before `whole`.
  [[nodiscard]] virtual std::optional<api_error> refusal(std::span<const choice> /*choices*/) const {
    return std::nullopt;
  }
  /// The whole answer as one body of JSON.
  [[nodiscard]] virtual std::string whole(std::span<const choice> choices, const usage_report& usage) const = 0;
};

}  // namespace redline::api
