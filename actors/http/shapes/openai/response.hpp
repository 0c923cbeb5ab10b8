#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/http/fields/api_error.hpp"
#include "actors/http/fields/json.hpp"
#include "actors/http/request/answer_shape.hpp"
#include "actors/http/request/answer_writer.hpp"
#include "actors/http/request/event_id.hpp"
#include "actors/http/request/model_card.hpp"
#include "actors/http/shapes/openai/request.hpp"
#include "runtime/base/hash.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/tools/tool_set.hpp"

namespace redline::api {

/// One object per token with its alternatives, as in a chat's `logprobs.content`.
json token_logprobs(const response_head& head, std::span<const token_report> tokens);

/// "chatcmpl-..." or "cmpl-..." from 128 random bits.
std::string response_id(endpoint from, std::uint64_t high, std::uint64_t low);

/// The whole answer as one body.
std::string completion_body(const response_head& head, std::span<const choice> choices, const usage_report& usage);

/// The answer as server-sent events in the order first, delta..., finish per choice; then usage; then done. Each event
/// except `done` has an id (see event_id). An answer that is made again for a client that already has its beginning
/// produces no event for that part. It continues where the client's part ends, even within a text or a list of tokens.
class event_writer final : public answer_writer {
 public:
  /// include_usage: whether the client asked for it; all events except the one from usage() then carry `usage: null`.
  /// begin: an id with all choices, before anything is sent. had: what the client has.
  event_writer(response_head head, bool include_usage, event_id begin, std::optional<event_id> had = std::nullopt);

  /// The role, and the prompt's tokens if ids were requested. Empty for completions without ids.
  std::string first(std::uint32_t index, std::span<const token> prompt = {}) override;
  std::string delta(std::uint32_t index, std::string_view text, const std::vector<token_report>* tokens = nullptr,
                    std::string_view reasoning = {}) override;
  std::string echo(std::uint32_t index, std::string_view text, const prompt_report& prompt, std::size_t first,
                   std::size_t end) override;
  void note_progress(std::uint32_t prompt_tokens, std::uint32_t completion_tokens) override {
    progress_ = {prompt_tokens, completion_tokens};
  }
  /// For chats: begins the choice's call of this number, without arguments. is_legacy: as a function_call.
  std::string call(std::uint32_t index, std::uint32_t number, const tools::tool_call& begun, bool is_legacy) override;
  /// Adds to the call's arguments, under the conditions of `delta`.
  std::string arguments(std::uint32_t index, std::uint32_t number, std::string_view text, bool is_legacy) override;
  /// A separate event without an id, so a resumed stream has only the traces of what is new.
  std::string trace(std::uint32_t index, const trace_report& step) override;
  std::string finish(std::uint32_t index, finish_reason why, const program_report* program = nullptr);
  /// Ends a choice in the native shape. one: without its text, which was already sent.
  std::string finish_native(const choice& one);
  std::string finish(const choice& one) override {
    if (head_.from == endpoint::native) return finish_native(one);
    return finish(one.index, one.finish, one.program ? &*one.program : nullptr);
  }
  void note_numerics(std::uint32_t index, std::uint32_t numerics, const std::string& fingerprint) override {
    at_.choices[index].numerics = numerics;
    head_.system_fingerprint = fingerprint;
  }
  void skip(std::uint32_t index) override { at_.choices[index] = had_.choices[index]; }
  std::string end(const usage_report& report) override { return usage(report) + done(); }
  /// Empty unless the client asked for it.
  std::string usage(const usage_report& report);
  /// Empty in the native shape, where the last choice's end also ends the stream.
  [[nodiscard]] std::string done() const { return head_.from == endpoint::native ? "" : "data: [DONE]\n\n"; }
  [[nodiscard]] std::string error(const api_error& why) const override { return error_event(why); }
  [[nodiscard]] bool has_diverged() const override { return has_diverged_; }
  [[nodiscard]] std::string whole(std::span<const choice> choices, const usage_report& usage) const override {
    // The fingerprint is sent only if it applies to all choices.
    const auto differs = [&](const auto& one) { return one.numerics != at_.choices.front().numerics; };
    response_head head = head_;
    if (std::ranges::any_of(at_.choices, differs)) head.system_fingerprint.clear();
    return completion_body(head, choices, usage);
  }

 private:
  json chunk() const;
  [[nodiscard]] bool note_finish(std::uint32_t index);
  std::string event(std::uint32_t index, json content, std::optional<finish_reason> why, json members = nullptr) const;
  [[nodiscard]] std::string as_event(const json& object) const;
  std::string event_of(std::uint32_t index, json delta) const;
  std::string_view take_text(std::uint32_t index, std::string_view text);
  std::span<const token_report> take_tokens(std::uint32_t index, std::span<const token_report> reports);

  response_head head_;
  bool include_usage_;
  std::optional<std::pair<std::uint32_t, std::uint32_t>> progress_;  // tokens of prompt and answer so far
  event_id at_;                                                      // after the last event
  event_id had_;                                                     // empty unless the stream was resumed
  bool has_diverged_ = false;
  std::vector<fnv1a> digests_;              // digest of each choice's text
  std::vector<std::int64_t> text_offsets_;  // completions' logprobs: characters written, by choice
};

std::string model_list_body(std::span<const model_card> cards);
std::string model_body(const model_card& card);

/// pieces: the bytes of each token, used if the request asked for them. context_tokens_max: for vLLM's shape.
std::string tokenize_body(const tokenize_request& request, std::span<const token> tokens,
                          std::span<const std::string> pieces, std::uint32_t context_tokens_max);
/// The text under both servers' member names.
std::string detokenize_body(std::string_view text);
std::string template_body(std::string_view prompt);

/// The prompts in vLLM's shape: an object for a conversation, otherwise an array of one object per prompt.
std::string rendered_body(endpoint from, const std::string& id, const std::string& model, const std::string& cache_salt,
                          std::span<const std::vector<token>> prompts);
std::string version_body(std::string_view version);

/// The server's properties, which llama.cpp's clients request first.
struct server_props {
  std::string model;
  std::uint32_t context_tokens_max = 0;
  std::uint32_t slots_count = 0;  // number of answers computed in turn
  json settings;                  // defaults of a request; see native_settings
  std::string chat_template, bos, eos, build;
};
std::string props_body(const server_props& of);

json kv_object(const kv_report& kv);

/// {"status":"ok"}. An unhealthy state is an error_body of error_of(not_ready or draining) instead.
std::string health_body();

}  // namespace redline::api
