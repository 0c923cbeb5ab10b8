#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/http/openai/api_error.hpp"
#include "actors/http/openai/event_id.hpp"
#include "actors/http/openai/json.hpp"
#include "actors/http/openai/request.hpp"
#include "runtime/base/hash.hpp"
#include "runtime/base/ids.hpp"

namespace redline::api {

enum class finish_reason : std::uint8_t { stop, length, content_filter };
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

  std::uint64_t drafted = 0;   // tokens verified, from any source
  std::uint64_t accepted = 0;  // of these
  /// The same by source. OpenAI's accepted and rejected prediction tokens are those of the client's prediction only;
  /// what was never tried is neither.
  source_report lookup, draft_model, prediction, program;
  std::uint64_t copied_forced = 0;    // tokens of spans that a program copied
  std::uint64_t copied_verified = 0;  // those that the model agreed to
  std::uint64_t target_passes = 0;
  std::uint64_t draft_passes = 0;
  std::uint64_t rows = 0;         // computed by the target, verification and prefill
  std::uint64_t evicted = 0;      // tokens that left the window
  std::uint32_t evictions = 0;    // times that it moved
  std::uint32_t reevaluated = 0;  // times that moved KV was lost and the window computed anew
  std::string eviction = "off";   // the policy
  double seconds = 0;             // from admission to the last token
  std::optional<kv_report> kv;    // edit sessions only

  /// For several answers to one request: sums, but the prompt counts once per prompt, which the caller decides.
  usage_report& operator+=(const usage_report& other);
  bool operator==(const usage_report&) const = default;
};

/// A token as bytes, which need not be valid UTF-8 on their own.
struct token_probability {
  std::string bytes;
  float logprob = 0;
};
struct token_report {
  token_probability chosen;
  std::vector<token_probability> top;  // most probable first
};

/// What is the same in every object of one response.
struct response_head {
  endpoint from = endpoint::chat;
  std::string id;  // see response_id
  std::int64_t created_seconds = 0;
  std::string model;               // the canonical name that served
  std::string system_fingerprint;  // build and model digest; empty: null
};

/// "chatcmpl-..." or "cmpl-..." from 128 random bits.
std::string response_id(endpoint from, std::uint64_t high, std::uint64_t low);

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

struct choice {
  std::uint32_t index = 0;
  std::string text;
  finish_reason finish = finish_reason::stop;
  std::optional<std::vector<token_report>> tokens;  // when logprobs were asked for
  std::optional<program_report> program;            // when it was one
};

/// The whole answer as one body.
std::string completion_body(const response_head& head, std::span<const choice> choices, const usage_report& usage);

/// The answer as server-sent events, in the order first, delta..., finish per choice; then usage; then done. Each event
/// but `done` has an id (see event_id). An answer that is made again for a client that has its beginning already gives
/// no event for that, and goes on where the client's part ends, within a text or a list of tokens too.
class event_writer {
 public:
  /// include_usage: whether the client asked for it; then all events but the one by usage() carry `usage: null`.
  /// begin: an id of nothing sent yet, with all choices. had: what the client has.
  event_writer(response_head head, bool include_usage, event_id begin, std::optional<event_id> had = std::nullopt);

  /// The role; empty for completions, which have none.
  std::string first(std::uint32_t index);
  /// `text` must not end inside a character. tokens: null unless logprobs were asked for. Empty when there is nothing
  /// to say.
  std::string delta(std::uint32_t index, std::string_view text, const std::vector<token_report>* tokens = nullptr);
  std::string finish(std::uint32_t index, finish_reason why, const program_report* program = nullptr);
  /// By which numerics the choice is computed, before its first event; and what that makes of the fingerprint.
  void note_numerics(std::uint32_t index, std::uint32_t numerics, const std::string& fingerprint) {
    at_.choices[index].numerics = numerics;
    head_.system_fingerprint = fingerprint;
  }
  /// A choice that the client has whole and that is not made again.
  void skip(std::uint32_t index) { at_.choices[index] = had_.choices[index]; }
  /// Empty unless the client asked for it.
  std::string usage(const usage_report& report);
  static std::string done() { return "data: [DONE]\n\n"; }

  /// The answer is not the one of which the client has the beginning: it must not be sent what follows.
  [[nodiscard]] bool has_diverged() const { return has_diverged_; }

 private:
  json chunk() const;
  std::string event(std::uint32_t index, json content, std::optional<finish_reason> why) const;
  [[nodiscard]] std::string as_event(const json& object) const;
  std::string_view take_text(std::uint32_t index, std::string_view text);

  response_head head_;
  bool include_usage_;
  event_id at_;   // after the last event
  event_id had_;  // nothing, unless the stream was resumed
  bool has_diverged_ = false;
  std::vector<fnv1a> digests_;             // of the texts, by choice
  std::vector<std::size_t> text_offsets_;  // completions' logprobs: characters written, by choice
};

struct model_card {
  std::string id;
  std::vector<std::string> aliases;  // listed when there are any, as llama.cpp does
  std::int64_t created_seconds = 0;
  std::string owned_by = "redline";
  std::uint32_t context_tokens_max = 0;
  json meta = json::object();  // what else is worth knowing: parameters, quantization, digest
};
std::string model_list_body(std::span<const model_card> cards);
std::string model_body(const model_card& card);

/// pieces: the bytes of each token, used when the request asked for them. context_tokens_max: for vLLM's shape.
std::string tokenize_body(const tokenize_request& request, std::span<const token> tokens,
                          std::span<const std::string> pieces, std::uint32_t context_tokens_max);
/// Under both servers' names.
std::string detokenize_body(std::string_view text);
std::string template_body(std::string_view prompt);

/// In vLLM's shape: an object for a conversation, an array with one for each prompt otherwise. id: see response_id.
std::string rendered_body(endpoint from, const std::string& id, const std::string& model, const std::string& cache_salt,
                          std::span<const std::vector<token>> prompts);
std::string version_body(std::string_view version);

json kv_object(const kv_report& kv);

/// {"status":"ok"}; what is not healthy is an error_body of error_of(not_ready or draining).
std::string health_body();

}  // namespace redline::api
