#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "actors/http/fields/api_error.hpp"
#include "actors/http/fields/json.hpp"
#include "runtime/base/size_limits.hpp"
#include "runtime/draft/draft_options.hpp"
#include "runtime/grammar/constraint.hpp"
#include "runtime/kv/eviction.hpp"
#include "runtime/sampling/sampling.hpp"
#include "runtime/sampling/sampling_defaults.hpp"
#include "runtime/text/stop_matcher.hpp"
#include "runtime/tools/tool_set.hpp"

namespace redline::api {

/// Limits and defaults of a request. Bodies are bounded before they get here.
struct request_limits {
  /// The sampling defaults for a model name. If absent, each shape uses what its clients expect.
  std::function<sampling::sampling_defaults(const std::string& model)> sampling_of{};
  std::size_t name_bytes_max = 256;  // model, user and the like
  std::size_t messages_max = 2048;
  std::size_t parts_max = 1024;                               // text parts of one message or of the prediction
  std::size_t prompts_max = 32;                               // completions with a list of prompts
  std::size_t text_bytes_max = sizes::prompt_text_bytes_max;  // sum of all prompts or messages; also the prediction
  std::size_t prompt_tokens_max = sizes::array_count_max;
  std::size_t stop_max = 32;  // editors send the beginnings of files and functions
  std::size_t stop_bytes_max = text::stop_matcher::stop_bytes_max;
  std::size_t logit_bias_max = 1024;
  std::size_t token_list_max = 1024;  // stop_token_ids, allowed_token_ids
  std::size_t bad_words_max = 64;
  std::size_t bad_word_bytes_max = 128;
  std::size_t template_variables_max = 64;  // chat_template_kwargs
  std::uint32_t n_max = 32;
  std::size_t files_max = 64;  // redline.files
  std::size_t path_bytes_max = 1024;
  std::size_t context_files_max = 256;  // input_extra
  std::size_t response_fields_max = 64;
  std::uint32_t answers_max = 64;  // prompts times n
  std::uint32_t top_logprobs_max = 20;
  std::size_t prompt_logprobs_max = 1 << 17;  // sum over all prompts: tokens and alternatives
  std::size_t tools_max = 128;                // as in OpenAI's API; also the calls of one message
  std::size_t tool_name_bytes_max = 128;
  std::size_t tools_bytes_max = 1 << 20;  // JSON of all tools of a request; also a call's arguments
};

enum class endpoint : std::uint8_t {
  chat,
  completions,
  fim,     // Mistral's: requests like completions, answers like chat
  native,  // llama.cpp's /completion and /infill
};

/// Text or tokens.
using prompt_input = std::variant<std::string, std::vector<token>>;

/// How the request wants drafts made. The server decides what is absent.
struct speculation_request {
  std::optional<draft::method> method;
  std::optional<std::uint32_t> draft_tokens_max;
  std::optional<float> confidence_min;
  std::optional<std::uint32_t> micro_draft_tokens;
  std::optional<std::uint32_t> max_num_run;
  std::optional<std::uint32_t> max_matching_ngram_size;
  bool recognise = true;  // drafts from what a known format of the prompt lets expect, unless there is a prediction

  [[nodiscard]] draft::draft_options over(draft::draft_options defaults) const;
  bool operator==(const speculation_request&) const = default;
};

/// redline.copy: the answer is a program over files, and the client gets the text that it resolves to.
struct copy_request {
  std::string trust = "forced";  // "forced", "verified" or "auto"
  bool line_spans = true;
  bool token_spans = false;
  bool anchors = false;
  std::optional<float> confidence_min, probability_min;  // for "auto"
  std::vector<std::string> files;                        // never empty; the prediction if redline.files is absent
  bool operator==(const copy_request&) const = default;
};

/// What the request wants at the end of the window. The server decides what is absent.
struct eviction_request {
  std::optional<kv::eviction_policy> policy;
  std::optional<std::uint32_t> n_keep, n_discard, n_ctx;

  [[nodiscard]] kv::eviction_options over(kv::eviction_options defaults) const;
  bool operator==(const eviction_request&) const = default;
};

/// Asks for the middle of a text. The prompts are the text before it.
struct fill_request {
  std::string suffix;  // the text after the middle
  std::string path;    // path of the text, may be empty
  struct file {
    std::string path;
    std::string text;
  };
  std::vector<file> context;  // other texts, the most important one last
};

/// What the format of a prompt lets expect as its answer; only a guess.
struct recognised_format {
  std::string_view name;              // static
  std::uint32_t predicted_count = 0;  // tokens
  bool operator==(const recognised_format&) const = default;
};

struct answer_shape;

/// A checked chat or completion request. A field that would change the answer and is not supported is refused earlier.
/// A field that is only a hint, or unknown, is named in `ignored`.
struct generation_request {
  endpoint from = endpoint::chat;
  std::string model;       // empty if absent
  std::string cache_salt;  // only requests with the same salt share KV; empty if absent
  /// For chat: objects with "role" (system, user, assistant or tool), "content" (a string, or null in a message that
  /// only calls), and "name" if given. Text parts are joined by line breaks. An assistant's "tool_calls" are {"id",
  /// "type": "function", "function": {"name", "arguments"}}, where the arguments are text that is a JSON object. A
  /// tool's message has a "tool_call_id" if given.
  json messages = json::array();
  /// For chat: the template's input in addition to the messages, such as enable_thinking.
  json template_variables = json::object();
  bool continues_last = false;        // chat: the last message, an assistant's, begins the answer
  std::string reasoning_effort;       // for templates that use one; empty if absent
  bool splits_reasoning = true;       // chat: text between the model's think tags is not content
  std::vector<prompt_input> prompts;  // completions: each gets n answers; choice index = prompt index * n + i

  sampling::sampling_params sampling;       // temperature defaults to 1, as in OpenAI's API
  bool has_seed = false;                    // if false, the server draws one
  std::optional<std::uint32_t> tokens_max;  // default as OpenAI's: rest of the context (chat), 16 (completions)
  std::uint32_t tokens_min = 0;
  bool ignore_eos = false;
  std::vector<std::string> stop;
  std::vector<token> stop_tokens;                        // end the answer, in addition to the model's own
  std::vector<std::string> bad_words;                    // texts whose token sequences may not occur
  std::vector<std::pair<std::string, float>> text_bias;  // for each token of a text; adds to sampling.logit_bias
  std::uint32_t n = 1;
  std::uint32_t best_of = 1;  // answers from which the n most probable are chosen
  std::optional<fill_request> fill;
  std::uint32_t indent_min = 0;              // a later line with less indentation ends the answer
  std::uint32_t predict_ms_max = 0;          // after the first token, once a line exists; 0: no limit
  std::vector<std::string> response_fields;  // native: the fields to send, as paths with slashes; empty: all
  bool wants_list = false;                   // native: the prompts were a list, perhaps of one
  bool echo = false;                         // completions: the text begins with the prompt
  bool computes_only = false;                // max_tokens 0: computes the prompt's KV and no answer
  bool return_token_ids = false;             // for prompt and answer; native: for the answer
  bool tokens_as_ids = false;                // log-probabilities name tokens "token_id:7"
  std::vector<std::string> ignored;          // fields that were not read, or hints that are not followed

  std::string session_key;  // a pool prefers one worker for all requests of a key; may be empty

  bool stream = false;
  bool include_usage = false;
  bool usage_in_all_events = false;
  std::uint64_t digest = 0;               // digest of a stream's request without resume_texts
  std::vector<std::string> resume_texts;  // by choice: text that a resuming client has; only a guess
  bool trace = false;                     // a stream reports the sources of its tokens
  bool logprobs = false;
  std::uint32_t top_logprobs = 0;
  /// Alternatives to each prompt token, in vLLM's field; absent if not requested.
  std::optional<std::uint32_t> prompt_logprobs;

  std::optional<std::string> prediction;  // text that the answer is expected to repeat; only a guess
  speculation_request speculation;
  std::optional<recognised_format> edit_format;  // of the prompt, if the answer is expected from it
  std::optional<copy_request> copy;
  std::optional<grammar::grammar_text> format;  // response_format and the like; the text is not parsed yet
  std::optional<tools::tool_set> tools;         // for chat; never an empty set
  eviction_request eviction;
  std::shared_ptr<const answer_shape> shape;  // another API's; null means OpenAI's
  /// The request's options over the server's defaults. Off for an answer that follows a grammar, whose position in it
  /// is counted from the beginning, and for a request that scores its prompt's tokens.
  [[nodiscard]] kv::eviction_options evicting(kv::eviction_options defaults) const {
    return copy || format || calls_tools() || scores_prompt() ? kv::eviction_options{} : eviction.over(defaults);
  }
  /// Alternatives to compute for each prompt token; absent if the prompt is not scored.
  [[nodiscard]] std::optional<std::uint32_t> scores_prompt() const {
    if (!echo || !logprobs) return prompt_logprobs;
    return std::max(top_logprobs, prompt_logprobs.value_or(0));
  }
  /// True if the answer's token ids are sent with its text. llama.cpp's streams always have them.
  [[nodiscard]] bool shows_ids() const { return return_token_ids || (from == endpoint::native && stream && !copy); }
  /// For llama.cpp's shape: whether the answer has this member.
  [[nodiscard]] bool shows_field(std::string_view name) const {
    return response_fields.empty() || std::ranges::any_of(response_fields, [name](const std::string& path) {
             return path == name || (path.starts_with(name) && path[name.size()] == '/');
           });
  }
  /// True if the model is shown tools and its answer is searched for calls.
  [[nodiscard]] bool calls_tools() const { return tools && tools->call != tools::choice::none; }
  /// The request's options over the server's defaults. A prediction without a method selects a method that reads it.
  [[nodiscard]] draft::draft_options drafting(draft::draft_options defaults) const;
  /// Answers made to each prompt.
  [[nodiscard]] std::uint32_t answers_per_prompt() const { return std::max(n, best_of); }
};

/// Reads the bodies of one path. Callable on any thread.
using request_parser = checked<generation_request> (*)(std::string_view body, const request_limits& limits);

}  // namespace redline::api
