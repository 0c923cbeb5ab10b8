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

/// What a request may hold, and what stands for what it leaves out. Bodies are bounded before they come here.
struct request_limits {
  /// How tokens are chosen where a request of this model's name does not say; none: as each shape's clients expect.
  std::function<sampling::sampling_defaults(const std::string& model)> sampling_of{};
  std::size_t name_bytes_max = 256;  // model, user and the like
  std::size_t messages_max = 2048;
  std::size_t parts_max = 1024;                               // text parts of one message or of the prediction
  std::size_t prompts_max = 32;                               // completions with a list of prompts
  std::size_t text_bytes_max = sizes::prompt_text_bytes_max;  // all prompts or messages together; the prediction
  std::size_t prompt_tokens_max = sizes::array_count_max;
  std::size_t stop_max = 32;  // editors send what begins a new file or function
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
  std::size_t prompt_logprobs_max = 1 << 17;  // of all prompts: tokens, and alternatives to them
  std::size_t tools_max = 128;                // as OpenAI; also the calls of one message
  std::size_t tool_name_bytes_max = 128;
  std::size_t tools_bytes_max = 1 << 20;  // all tools of a request as JSON; the arguments of a call
};

enum class endpoint : std::uint8_t {
  chat,
  completions,
  fim,     // Mistral's: asked as completions, answered as chat
  native,  // llama.cpp's /completion and /infill
};

/// Text, or tokens already.
using prompt_input = std::variant<std::string, std::vector<token>>;

/// How the request wants drafts made; what is absent is the server's choice.
struct speculation_request {
  std::optional<draft::method> method;
  std::optional<std::uint32_t> draft_tokens_max;
  std::optional<float> confidence_min;
  std::optional<std::uint32_t> micro_draft_tokens;
  std::optional<std::uint32_t> max_num_run;
  std::optional<std::uint32_t> max_matching_ngram_size;

  [[nodiscard]] draft::draft_options over(draft::draft_options defaults) const;
  bool operator==(const speculation_request&) const = default;
};

/// redline.copy: the answer is a program over files, and what it resolves to is what the client gets.
struct copy_request {
  std::string trust = "forced";  // "forced", "verified" or "auto"
  bool line_spans = true;
  bool token_spans = false;
  bool anchors = false;
  std::optional<float> confidence_min;  // auto
  std::vector<std::string> files;       // never empty; without redline.files the prediction
  bool operator==(const copy_request&) const = default;
};

/// What the request wants at the end of the window; what is absent is the server's choice.
struct eviction_request {
  std::optional<kv::eviction_policy> policy;
  std::optional<std::uint32_t> n_keep, n_discard, n_ctx;

  [[nodiscard]] kv::eviction_options over(kv::eviction_options defaults) const;
  bool operator==(const eviction_request&) const = default;
};

/// The middle of a text is wanted: the prompts are what stands before it.
struct fill_request {
  std::string suffix;  // what comes after it
  std::string path;    // of the text; may be empty
  struct file {
    std::string path;
    std::string text;
  };
  std::vector<file> context;  // other texts, the most important last
};

struct answer_shape;

/// A chat or completion request, checked. What would change the answer and is not honoured never gets here: it is
/// refused. What is a hint only, or unknown, is named in `ignored`.
struct generation_request {
  endpoint from = endpoint::chat;
  std::string model;       // empty: absent
  std::string cache_salt;  // KV is shared with requests that have the same one only; empty: absent
  /// Chat: objects with "role" (system, user, assistant or tool), "content" (a string; null in a message that only
  /// calls), and "name" when given. Text parts are joined by line breaks. An assistant's "tool_calls" are {"id",
  /// "type": "function", "function": {"name", "arguments"}} with the arguments as text that is a JSON object; a tool's
  /// message has a "tool_call_id" when given.
  json messages = json::array();
  /// Chat: what the template is given beside the messages, such as enable_thinking.
  json template_variables = json::object();
  bool continues_last = false;        // chat: the last message, an assistant's, is the beginning of the answer
  std::string reasoning_effort;       // for templates that know one; empty: absent
  bool splits_reasoning = true;       // chat: what stands between a model's think tags is not content
  std::vector<prompt_input> prompts;  // completions: each gets n answers; choice index = prompt index * n + i

  sampling::sampling_params sampling;       // temperature 1 when absent, as OpenAI
  bool has_seed = false;                    // else the server draws one
  std::optional<std::uint32_t> tokens_max;  // absent: what the context leaves (chat), 16 (completions) as OpenAI
  std::uint32_t tokens_min = 0;
  bool ignore_eos = false;
  std::vector<std::string> stop;
  std::vector<token> stop_tokens;                        // that end the answer beside the model's own
  std::vector<std::string> bad_words;                    // texts whose tokens, one after the other, do not come
  std::vector<std::pair<std::string, float>> text_bias;  // of each of a text's tokens, beside sampling.logit_bias
  std::uint32_t n = 1;
  std::uint32_t best_of = 1;  // answers to choose the n most probable from
  std::optional<fill_request> fill;
  std::uint32_t indent_min = 0;              // a line after the first that is indented by less ends the answer
  std::uint32_t predict_ms_max = 0;          // after the first token, once the answer has a line; 0: any
  std::vector<std::string> response_fields;  // native: the only ones that are sent, with slashes; empty: all
  bool wants_list = false;                   // native: several prompts were given, if only one
  bool echo = false;                         // completions: the text begins with the prompt
  bool computes_only = false;                // max_tokens 0: the KV of the prompt is wanted, and no answer
  bool return_token_ids = false;             // of prompt and answer; native: of the answer
  bool tokens_as_ids = false;                // log-probabilities name tokens "token_id:7"
  std::vector<std::string> ignored;          // fields that were not looked at, or only hints that nothing follows

  std::string session_key;  // requests of one key are best answered by one worker of a pool; empty: none

  bool stream = false;
  bool include_usage = false;
  bool usage_in_all_events = false;
  std::uint64_t digest = 0;               // of a stream's request, without resume_texts
  std::vector<std::string> resume_texts;  // by choice: what a client that resumes a stream has; guesses only
  bool trace = false;                     // a stream says where its tokens came from
  bool logprobs = false;
  std::uint32_t top_logprobs = 0;
  /// Alternatives to each token of the prompt, in vLLM's field; absent: not asked for.
  std::optional<std::uint32_t> prompt_logprobs;

  std::optional<std::string> prediction;  // text that the answer is expected to repeat; guesses only
  speculation_request speculation;
  std::optional<copy_request> copy;
  std::optional<grammar::grammar_text> format;  // response_format and the like; the text is not yet looked at
  std::optional<tools::tool_set> tools;         // chat; never without a tool
  eviction_request eviction;
  std::shared_ptr<const answer_shape> shape;  // of another API; null: OpenAI's
  /// Over the server's own; off for an answer that follows a grammar, whose place in it is counted from its beginning,
  /// and where something is said of each of the prompt's tokens.
  [[nodiscard]] kv::eviction_options evicting(kv::eviction_options defaults) const {
    return copy || format || calls_tools() || scores_prompt() ? kv::eviction_options{} : eviction.over(defaults);
  }
  /// Alternatives to compute for each of the prompt's tokens; absent: nothing is asked of them.
  [[nodiscard]] std::optional<std::uint32_t> scores_prompt() const {
    if (!echo || !logprobs) return prompt_logprobs;
    return std::max(top_logprobs, prompt_logprobs.value_or(0));
  }
  /// The answer's tokens are told beside its text. llama.cpp's streams always have them.
  [[nodiscard]] bool shows_ids() const { return return_token_ids || (from == endpoint::native && stream && !copy); }
  /// In llama.cpp's shape: whether the answer has this member.
  [[nodiscard]] bool shows_field(std::string_view name) const {
    return response_fields.empty() || std::ranges::any_of(response_fields, [name](const std::string& path) {
             return path == name || (path.starts_with(name) && path[name.size()] == '/');
           });
  }
  /// The model is shown tools, and its answer is looked through for calls.
  [[nodiscard]] bool calls_tools() const { return tools && tools->call != tools::choice::none; }
  /// Over the server's own; with a prediction and no method named, one that reads it.
  [[nodiscard]] draft::draft_options drafting(draft::draft_options defaults) const;
  /// Answers that are made to each prompt.
  [[nodiscard]] std::uint32_t answers_per_prompt() const { return std::max(n, best_of); }
};

/// How bodies of a path are read. On any thread.
using request_parser = checked<generation_request> (*)(std::string_view body, const request_limits& limits);

}  // namespace redline::api
