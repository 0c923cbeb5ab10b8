#include "actors/http/openai/request.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "actors/http/openai/field_reader.hpp"
#include "actors/http/openai/message_reader.hpp"
#include "actors/http/openai/redline_object.hpp"
#include "actors/http/openai/tool_fields.hpp"
#include "actors/http/openai/unsupported_fields.hpp"
#include "runtime/base/hash.hpp"

namespace redline::api {
namespace {

constexpr std::uint32_t completion_tokens_default = 16;
constexpr std::int64_t token_max = std::numeric_limits<token>::max();

// Prompts of completions.

std::optional<std::vector<token>> as_tokens(const json& list) {
  std::vector<token> tokens;
  tokens.reserve(list.size());
  for (const auto& entry : list) {
    const auto id = as_integer(entry);
    if (!id || *id < 0 || *id > token_max) return std::nullopt;
    tokens.push_back(static_cast<token>(*id));
  }
  return tokens;
}

std::optional<prompt_input> as_prompt(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return std::nullopt;
  if (auto tokens = as_tokens(value)) return std::move(*tokens);
  return std::nullopt;
}

void read_prompts(field_reader& fields, const request_limits& limits, generation_request& out) {
  const json* prompt = fields.find("prompt");
  if (!prompt) return fields.refuse("prompt", "'prompt' is required.");
  const bool is_list = prompt->is_array() && !prompt->empty() && !(*prompt)[0].is_number();
  const std::size_t count = is_list ? prompt->size() : 1;
  if (count > limits.prompts_max) {
    return fields.refuse("prompt", "'prompt' has " + std::to_string(count) + " entries, at most " +
                                       std::to_string(limits.prompts_max) + " are allowed.");
  }
  std::size_t bytes = 0, tokens_count = 0;
  for (std::size_t i = 0; i < count; ++i) {
    auto one = as_prompt(is_list ? (*prompt)[i] : *prompt);
    if (!one) {
      return fields.refuse(is_list ? indexed("prompt", i) : "prompt",
                           "'prompt' must be a string, an array of strings, an array of token ids or an array of "
                           "arrays of token ids.");
    }
    if (const auto* text = std::get_if<std::string>(&*one)) bytes += text->size();
    if (const auto* tokens = std::get_if<std::vector<token>>(&*one)) {
      tokens_count += tokens->size();
      if (tokens->empty()) {
        return fields.refuse(is_list ? indexed("prompt", i) : "prompt", "A prompt of token ids must not be empty.");
      }
    }
    out.prompts.push_back(std::move(*one));
  }
  if (bytes > limits.text_bytes_max || tokens_count > limits.prompt_tokens_max) {
    fields.refuse("prompt", "'prompt' is too long: at most " + std::to_string(limits.text_bytes_max) + " bytes or " +
                                std::to_string(limits.prompt_tokens_max) + " tokens are allowed.");
  }
}

// Parameters of both endpoints.

void read_logit_bias(field_reader& fields, const request_limits& limits, model::sampling_params& out) {
  const json* biases = fields.object("logit_bias");
  if (!biases) return;
  if (biases->size() > limits.logit_bias_max) {
    return fields.refuse("logit_bias",
                         "'logit_bias' has more than " + std::to_string(limits.logit_bias_max) + " entries.");
  }
  for (const auto& [key, value] : biases->get_ref<const json::object_t&>()) {
    token id = -1;
    const auto [end, ec] = std::from_chars(key.data(), key.data() + key.size(), id);
    const bool is_id = ec == std::errc() && end == key.data() + key.size() && id >= 0;
    if (!is_id || key != std::to_string(id)) {
      return fields.refuse("logit_bias", "'logit_bias' maps token ids, found the key '" + key.substr(0, 64) + "'.");
    }
    if (!value.is_number() || value.get<double>() < -100 || value.get<double>() > 100) {
      return fields.refuse("logit_bias." + key, "'logit_bias." + key + "' must be a number from -100 to 100.");
    }
    out.logit_bias.emplace_back(id, value.get<float>());
  }
  std::sort(out.logit_bias.begin(), out.logit_bias.end());  // so that equal requests compare equal
}

/// llama.cpp says repeat_penalty.
std::optional<double> repetition_penalty_of(field_reader& fields) {
  const auto ours = fields.number("repetition_penalty", 0.01, 10);
  const auto theirs = fields.number("repeat_penalty", 0.01, 10);
  return ours ? ours : theirs;
}

void read_sampling(field_reader& fields, const request_limits& limits, generation_request& out) {
  auto& s = out.sampling;
  s.temperature = static_cast<float>(fields.number("temperature", 0, 2).value_or(1));
  // 0 means the most probable token only, which the smallest probability says as well.
  constexpr float top_p_min = 1e-6F;
  s.top_p = std::max(static_cast<float>(fields.number("top_p", 0, 1).value_or(1)), top_p_min);
  s.min_p = static_cast<float>(fields.number("min_p", 0, 1).value_or(0));
  s.top_k = static_cast<std::int32_t>(std::max<std::int64_t>(0, fields.integer("top_k", -1, token_max).value_or(0)));
  s.repetition_penalty = static_cast<float>(repetition_penalty_of(fields).value_or(1));
  s.presence_penalty = static_cast<float>(fields.number("presence_penalty", -2, 2).value_or(0));
  s.frequency_penalty = static_cast<float>(fields.number("frequency_penalty", -2, 2).value_or(0));
  if (const json* seed = fields.find("seed"); seed && seed->is_number_unsigned()) {
    s.seed = seed->get<std::uint64_t>();
    out.has_seed = true;
  } else if (const auto negative = fields.integer("seed", std::numeric_limits<std::int64_t>::min(),
                                                  std::numeric_limits<std::int64_t>::max())) {
    s.seed = static_cast<std::uint64_t>(*negative);
    out.has_seed = true;
  }
  read_logit_bias(fields, limits, s);
}

void read_stop(field_reader& fields, const request_limits& limits, generation_request& out) {
  const json* stop = fields.find("stop");
  if (!stop) return;
  const bool is_list = stop->is_array();
  if (!is_list && !stop->is_string()) return fields.refuse_type("stop", "a string or an array of strings", *stop);
  if (is_list && stop->size() > limits.stop_max) {
    return fields.refuse("stop", "'stop' has " + std::to_string(stop->size()) + " entries, at most " +
                                     std::to_string(limits.stop_max) + " are allowed.");
  }
  const std::size_t count = is_list ? stop->size() : 1;
  for (std::size_t i = 0; i < count; ++i) {
    const json& entry = is_list ? (*stop)[i] : *stop;
    const std::string name = is_list ? indexed("stop", i) : "stop";
    if (!entry.is_string()) return fields.refuse_type(name, "a string", entry);
    const auto& text = entry.get_ref<const std::string&>();
    if (text.empty() || text.size() > limits.stop_bytes_max) {
      return fields.refuse(name, "'" + name + "' must have 1 to " + std::to_string(limits.stop_bytes_max) + " bytes.");
    }
    if (std::find(out.stop.begin(), out.stop.end(), text) == out.stop.end()) out.stop.push_back(text);
  }
}

void read_lengths(field_reader& fields, generation_request& out) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const auto newer = fields.integer("max_completion_tokens", 1, most);
  const auto older = fields.integer("max_tokens", 1, most);
  if (newer || older) {
    out.tokens_max = static_cast<std::uint32_t>(newer ? *newer : *older);
  } else if (out.from == endpoint::completions) {
    out.tokens_max = completion_tokens_default;
  }
  out.tokens_min = static_cast<std::uint32_t>(fields.integer("min_tokens", 0, most).value_or(0));
  if (out.tokens_max && out.tokens_min > *out.tokens_max) {
    fields.refuse("min_tokens", "'min_tokens' is " + std::to_string(out.tokens_min) + ", more than the " +
                                    std::to_string(*out.tokens_max) + " that may be generated.");
  }
  out.ignore_eos = fields.boolean("ignore_eos").value_or(false);
}

void read_counts(field_reader& fields, const request_limits& limits, generation_request& out) {
  out.n = static_cast<std::uint32_t>(fields.integer("n", 1, limits.n_max).value_or(1));
  // Without a choice among more, best_of says what n says.
  const auto best_of = fields.integer("best_of", 1, std::numeric_limits<std::int32_t>::max());
  if (best_of && *best_of != out.n) {
    fields.refuse("best_of", "'best_of' other than 'n' is not supported.", "unsupported_parameter");
  }
  if (out.prompts.size() * out.n > limits.answers_max) {
    fields.refuse("n", "'n' times the number of prompts must be at most " + std::to_string(limits.answers_max) + ".");
  }
}

void read_stream(field_reader& fields, std::optional<api_error>& error, generation_request& out) {
  out.stream = fields.boolean("stream").value_or(false);
  const json* stream_options = fields.object("stream_options");
  if (!stream_options) return;
  if (!out.stream) return fields.refuse("stream_options", "'stream_options' needs 'stream' to be true.");
  field_reader inner(*stream_options, "stream_options", error);
  out.include_usage = inner.boolean("include_usage").value_or(false);
  if (inner.boolean("continuous_usage_stats").value_or(false)) {
    inner.refuse("continuous_usage_stats", "'continuous_usage_stats' is not supported.", "unsupported_parameter");
  }
}

void read_logprobs(field_reader& fields, const request_limits& limits, generation_request& out) {
  if (out.from == endpoint::completions) {
    if (const json* flag = fields.find("logprobs"); flag && *flag == false) return;
    const auto top = fields.integer("logprobs", 0, limits.top_logprobs_max);
    out.logprobs = top.has_value();
    out.top_logprobs = static_cast<std::uint32_t>(top.value_or(0));
    return;
  }
  out.logprobs = fields.boolean("logprobs").value_or(false);
  const auto top = fields.integer("top_logprobs", 0, limits.top_logprobs_max);
  out.top_logprobs = static_cast<std::uint32_t>(top.value_or(0));
  if (out.top_logprobs > 0 && !out.logprobs) {
    fields.refuse("top_logprobs", "'top_logprobs' needs 'logprobs' to be true.");
  }
}

/// {"type": "content", "content": text}: what OpenAI calls a predicted output.
void read_prediction(field_reader& fields, std::optional<api_error>& error, const request_limits& limits,
                     generation_request& out) {
  const json* given = fields.object("prediction");
  if (!given) return;
  field_reader inner(*given, "prediction", error);
  const auto type = inner.text("type", limits.name_bytes_max);
  if (type != "content") {
    return inner.refuse(
        "type", "'prediction.type' must be 'content'" + (type ? ", found '" + type->substr(0, 64) + "'." : "."));
  }
  const json* content = inner.find("content");
  if (!content) return inner.refuse("content", "'prediction.content' is required.");
  if (content->is_string()) {
    out.prediction = content->get_ref<const std::string&>();
  } else if (content->is_array()) {
    out.prediction = read_text_parts(inner, "content", *content, "", limits, error);
  } else {
    return inner.refuse_type("content", "a string or an array of text parts", *content);
  }
  if (out.prediction->size() > limits.text_bytes_max) {
    inner.refuse("content",
                 "'prediction.content' must have at most " + std::to_string(limits.text_bytes_max) + " bytes.");
  }
}

/// {"type": "text" | "json_object" | "json_schema", "json_schema": {"name", "schema", "strict"}}.
void read_format(field_reader& fields, std::optional<api_error>& error, const request_limits& limits,
                 generation_request& out) {
  const json* given = fields.object("response_format");
  if (!given) return;
  field_reader inner(*given, "response_format", error);
  const auto type = inner.text("type", limits.name_bytes_max);
  if (type == "text") return;
  if (type == "json_object") {
    out.schema = R"({"type":"object"})";
    return;
  }
  if (type != "json_schema") {
    return inner.refuse("type", "'response_format.type' must be one of text, json_object and json_schema.");
  }
  const json* named = inner.object("json_schema");
  if (!named) return inner.refuse("json_schema", "'response_format.json_schema' is required.");
  field_reader schema(*named, "response_format.json_schema", error);
  static_cast<void>(schema.text("name", limits.name_bytes_max));
  static_cast<void>(schema.text("description", limits.text_bytes_max));
  static_cast<void>(schema.boolean("strict"));  // the schema is kept to in any case
  const json* rules = schema.object("schema");
  if (!rules) return schema.refuse("schema", "'response_format.json_schema.schema' is required.");
  out.schema = dump_json(*rules);
}

/// What does not go together with an answer that follows a grammar.
void check_grammar(field_reader& fields, generation_request& out) {
  if (!out.copy && !out.schema && !out.calls_tools()) return;
  const std::string what = out.copy ? "redline.copy" : out.schema ? "response_format" : "tools";
  const auto refuse = [&](std::string_view name) {
    fields.refuse(name, "'" + std::string(name) + "' does not go together with '" + what + "'.",
                  "unsupported_parameter");
  };
  if (out.copy && out.schema) refuse("response_format");
  if ((out.copy || out.schema) && out.calls_tools()) refuse("tools");
  if (out.eviction.policy.value_or(kv::eviction_policy::off) != kv::eviction_policy::off) refuse("redline.eviction");
  if (out.ignore_eos) refuse("ignore_eos");
  if (out.tokens_min > 0) refuse("min_tokens");
  // The tokens are those of the program and its spans, not those of the text that the client sees.
  if (out.copy && out.logprobs) refuse("logprobs");
}

/// Checked, and of no effect on the answer but for the model's name.
void read_identity(field_reader& fields, const request_limits& limits, generation_request& out) {
  out.model = fields.text("model", limits.name_bytes_max).value_or("");
  out.session_key = fields.text("prompt_cache_key", limits.name_bytes_max).value_or("");
  for (const auto* name : {"user", "safety_identifier"}) {
    static_cast<void>(fields.text(name, limits.name_bytes_max));
  }
  out.cache_salt = fields.text("cache_salt", limits.name_bytes_max).value_or("");
  static_cast<void>(fields.object("metadata"));
  static_cast<void>(fields.boolean("store"));
}

/// Tells requests apart. Blanks and the spelling of strings and numbers do not count, as a proxy may write them anew.
std::uint64_t digest_request(const json& body, endpoint from) {
  fnv1a digest;
  digest.add(static_cast<std::uint8_t>(from));
  const auto add = [&digest](const std::string& name, const json& value) {
    digest.add(name).add(std::uint8_t{0}).add(dump_json(value)).add(std::uint8_t{0});
  };
  for (const auto& [name, value] : body.get_ref<const json::object_t&>()) {
    if (name != "redline" || !value.is_object() || !value.contains("resume_text")) {
      add(name, value);
      continue;
    }
    json rest = value;
    rest.erase("resume_text");
    if (!rest.empty()) add(name, rest);
  }
  return digest.value();
}

checked<generation_request> parse_generation(std::string_view body, endpoint from, const request_limits& limits) {
  const auto parsed = parse_body(body);
  if (!parsed) return parsed.error();
  return read_generation(*parsed, from, true, limits);
}

}  // namespace

checked<generation_request> read_generation(const json& body, endpoint from, bool has_prompt,
                                            const request_limits& limits) {
  if (auto unsupported = find_unsupported(body, from)) return std::move(*unsupported);
  generation_request out;
  out.from = from;
  std::optional<api_error> error;
  field_reader fields(body, "", error);
  read_identity(fields, limits, out);
  if (has_prompt && from == endpoint::chat) out.messages = message_reader(limits, error).read(fields);
  if (has_prompt && from == endpoint::completions) read_prompts(fields, limits, out);
  read_sampling(fields, limits, out);
  read_stop(fields, limits, out);
  read_lengths(fields, out);
  read_counts(fields, limits, out);
  read_stream(fields, error, out);
  read_logprobs(fields, limits, out);
  read_prediction(fields, error, limits, out);
  read_redline(fields, error, limits, out);
  read_format(fields, error, limits, out);
  if (from == endpoint::chat) read_tools(fields, error, limits, out);
  if (!has_prompt && out.tools) {
    fields.refuse("tools", "'tools' is not supported on this endpoint; /v1/chat/completions has it.",
                  "unsupported_parameter");
  }
  check_grammar(fields, out);
  if (error) return std::move(*error);
  if (out.stream) out.digest = digest_request(body, from);
  return out;
}

draft::draft_options speculation_request::over(draft::draft_options defaults) const {
  if (method) defaults.how = *method;
  if (draft_tokens_max) defaults.lookup_tokens_max = defaults.assisted_tokens_max = *draft_tokens_max;
  if (confidence_min) defaults.confidence_min = *confidence_min;
  if (micro_draft_tokens) defaults.micro_draft_tokens = *micro_draft_tokens;
  if (max_num_run) defaults.max_num_run = *max_num_run;
  if (max_matching_ngram_size) defaults.max_matching_ngram_size = *max_matching_ngram_size;
  return defaults;
}

kv::eviction_options eviction_request::over(kv::eviction_options defaults) const {
  if (policy) defaults.policy = *policy;
  if (n_keep) defaults.n_keep = n_keep;
  if (n_discard) defaults.n_discard = n_discard;
  if (n_ctx) defaults.n_ctx = *n_ctx;
  return defaults;
}

draft::draft_options generation_request::drafting(draft::draft_options defaults) const {
  if (prediction) defaults.how = draft::method::automatic;
  return speculation.over(defaults);
}

checked<generation_request> parse_chat_request(std::string_view body, const request_limits& limits) {
  return parse_generation(body, endpoint::chat, limits);
}

checked<generation_request> parse_completion_request(std::string_view body, const request_limits& limits) {
  return parse_generation(body, endpoint::completions, limits);
}

checked<tokenize_request> parse_tokenize_request(std::string_view body, const request_limits& limits) {
  auto parsed = parse_body(body);
  if (!parsed) return parsed.error();
  tokenize_request out;
  std::optional<api_error> error;
  field_reader fields(*parsed, "", error);
  out.model = fields.text("model", limits.name_bytes_max).value_or("");
  const auto content = fields.text("content", limits.text_bytes_max);
  const auto prompt = fields.text("prompt", limits.text_bytes_max);
  const bool has_messages = fields.find("messages") != nullptr;
  if (int{content.has_value()} + int{prompt.has_value()} + int{has_messages} != 1) {
    fields.refuse("content", "Exactly one of 'content', 'prompt' and 'messages' is required.");
  }
  out.is_vllm_shape = !content;
  if (has_messages) {
    out.messages = message_reader(limits, error).read(fields);
  } else if (content || prompt) {
    out.text = content ? *content : *prompt;
  }
  // Each server's own default: llama.cpp adds nothing, vLLM does for a prompt but not for rendered messages.
  out.add_special = fields.boolean(content ? "add_special" : "add_special_tokens").value_or(prompt.has_value());
  if (content) out.parse_special = fields.boolean("parse_special").value_or(true);
  out.add_generation_prompt = fields.boolean("add_generation_prompt").value_or(true);
  out.with_pieces = fields.boolean(content ? "with_pieces" : "return_token_strs").value_or(false);
  if (error) return std::move(*error);
  return out;
}

checked<detokenize_request> parse_detokenize_request(std::string_view body, const request_limits& limits) {
  auto parsed = parse_body(body);
  if (!parsed) return parsed.error();
  detokenize_request out;
  std::optional<api_error> error;
  field_reader fields(*parsed, "", error);
  out.model = fields.text("model", limits.name_bytes_max).value_or("");
  if (const json* list = fields.array("tokens", limits.prompt_tokens_max)) {
    if (auto tokens = as_tokens(*list)) {
      out.tokens = std::move(*tokens);
    } else {
      fields.refuse("tokens", "'tokens' must be an array of token ids.");
    }
  } else {
    fields.refuse("tokens", "'tokens' is required.");
  }
  if (error) return std::move(*error);
  return out;
}

checked<template_request> parse_template_request(std::string_view body, const request_limits& limits) {
  auto parsed = parse_body(body);
  if (!parsed) return parsed.error();
  template_request out;
  std::optional<api_error> error;
  field_reader fields(*parsed, "", error);
  out.model = fields.text("model", limits.name_bytes_max).value_or("");
  out.messages = message_reader(limits, error).read(fields);
  out.add_generation_prompt = fields.boolean("add_generation_prompt").value_or(true);
  if (error) return std::move(*error);
  return out;
}

}  // namespace redline::api
