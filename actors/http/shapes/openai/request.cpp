#include "actors/http/shapes/openai/request.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "actors/http/fields/field_reader.hpp"
#include "actors/http/shapes/openai/answer_formats.hpp"
#include "actors/http/shapes/openai/message_reader.hpp"
#include "actors/http/shapes/openai/prompt_fields.hpp"
#include "actors/http/shapes/openai/redline_object.hpp"
#include "actors/http/shapes/openai/tool_fields.hpp"
#include "actors/http/shapes/openai/unsupported_fields.hpp"
#include "runtime/base/hash.hpp"

namespace redline::api {
namespace {

constexpr std::uint32_t completion_tokens_default = 16;
enum class prompt_form : std::uint8_t { none, messages, prompts, around_gap };

/// Reads the fields that only llama.cpp's own clients send.
void read_native(field_reader& fields, const request_limits& limits, generation_request& out) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  out.indent_min = static_cast<std::uint32_t>(fields.integer("n_indent", 0, 4096).value_or(0));
  const auto ms = fields.integer("t_max_predict_ms", std::numeric_limits<std::int32_t>::min(), most);
  out.predict_ms_max = static_cast<std::uint32_t>(std::max<std::int64_t>(0, ms.value_or(0)));
  out.return_token_ids = fields.boolean("return_tokens").value_or(false);
  const json* names = fields.array("response_fields", limits.response_fields_max);
  for (std::size_t i = 0; names != nullptr && i < names->size(); ++i) {
    const json& name = (*names)[i];
    if (!name.is_string() || name.get_ref<const std::string&>().size() > limits.name_bytes_max) {
      return fields.refuse(indexed("response_fields", i), "'response_fields' must be an array of short strings.");
    }
    out.response_fields.push_back(name.get<std::string>());
  }
}

// Fields of all endpoints.

std::optional<float> read_bias(field_reader& fields, const std::string& name, const json& value) {
  if (value.is_number() && value.get<double>() >= -100 && value.get<double>() <= 100) return value.get<float>();
  fields.refuse(name, "'" + name + "' must be a number from -100 to 100.");
  return std::nullopt;
}

/// llama.cpp's form: [token id or text, bias], where false as the bias forbids the token.
void read_bias_pairs(field_reader& fields, const json& pairs, const request_limits& limits, generation_request& out) {
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const json& pair = pairs[i];
    const std::string name = indexed("logit_bias", i);
    if (!pair.is_array() || pair.size() != 2) {
      return fields.refuse(name, "'" + name + "' must be a pair: a token id or a text, and a number or false.");
    }
    const auto bias =
        pair[1] == false ? -std::numeric_limits<float>::infinity() : read_bias(fields, name + "[1]", pair[1]);
    if (!bias) return;
    const auto id = as_integer(pair[0]);
    if (id && *id >= 0 && *id <= token_max) {
      out.sampling.logit_bias.emplace_back(static_cast<token>(*id), *bias);
    } else if (pair[0].is_string() && pair[0].get_ref<const std::string&>().size() <= limits.bad_word_bytes_max) {
      out.text_bias.emplace_back(pair[0].get<std::string>(), *bias);
    } else {
      return fields.refuse(name + "[0]", "'" + name + "[0]' must be a token id or a text of at most " +
                                             std::to_string(limits.bad_word_bytes_max) + " bytes.");
    }
  }
}

/// A map by token id. llama.cpp's clients also name tokens by their texts.
void read_bias_map(field_reader& fields, const json& biases, const request_limits& limits, generation_request& out) {
  for (const auto& [key, value] : biases.get_ref<const json::object_t&>()) {
    token id = -1;
    const auto [end, ec] = std::from_chars(key.data(), key.data() + key.size(), id);
    const bool is_id = ec == std::errc() && end == key.data() + key.size() && id >= 0;
    const bool names_token = is_id && key == std::to_string(id);
    if (!names_token && (out.from != endpoint::native || key.size() > limits.bad_word_bytes_max)) {
      return fields.refuse("logit_bias",
                           "'logit_bias' must map token ids to numbers, found the key '" + key.substr(0, 64) + "'.");
    }
    const auto bias = read_bias(fields, "logit_bias." + key.substr(0, 64), value);
    if (!bias) return;
    if (names_token) {
      out.sampling.logit_bias.emplace_back(id, *bias);
    } else {
      out.text_bias.emplace_back(key, *bias);
    }
  }
}

void read_logit_bias(field_reader& fields, const request_limits& limits, generation_request& out) {
  const json* given = fields.find("logit_bias");
  if (!given) return;
  if (!given->is_structured()) {
    return fields.refuse_type("logit_bias", "an object of biases by token id, or an array of pairs", *given);
  }
  if (given->size() > limits.logit_bias_max) {
    return fields.refuse("logit_bias",
                         "'logit_bias' has more than " + std::to_string(limits.logit_bias_max) + " entries.");
  }
  if (given->is_array()) {
    read_bias_pairs(fields, *given, limits, out);
  } else {
    read_bias_map(fields, *given, limits, out);
  }
  std::ranges::sort(out.sampling.logit_bias);  // so that equal requests compare equal
}

/// The defaults that each server's clients expect. Code that fills a gap should be the most probable.
sampling::sampling_params default_sampling(const generation_request& of) {
  sampling::sampling_params s;
  s.temperature = of.fill || of.from == endpoint::fim ? 0.0F : 1.0F;
  if (of.from == endpoint::native && !of.fill) {
    s.temperature = 0.8F;
    s.top_k = 40;
    s.top_p = 0.95F;
    s.min_p = 0.05F;
  }
  return s;
}

void read_sampling(field_reader& fields, const request_limits& limits, generation_request& out) {
  auto& s = out.sampling;
  auto usual = default_sampling(out);
  if (limits.sampling_of) usual = limits.sampling_of(out.model).over(usual);
  const auto number = [&fields](std::string_view name, float otherwise, double min, double max) {
    return static_cast<float>(fields.number(name, min, max).value_or(static_cast<double>(otherwise)));
  };
  s.temperature = number("temperature", usual.temperature, 0, 2);
  // 0 allows only the most probable token, and so does the smallest probability.
  constexpr float top_p_min = 1e-6F;
  s.top_p = std::max(number("top_p", usual.top_p, 0, 1), top_p_min);
  s.min_p = number("min_p", usual.min_p, 0, 1);
  s.top_k = static_cast<std::int32_t>(
      std::max<std::int64_t>(0, fields.integer("top_k", -1, token_max).value_or(usual.top_k)));
  s.repetition_penalty = number("repeat_penalty", usual.repetition_penalty, 0.01, 10);  // llama.cpp's name
  s.repetition_penalty = number("repetition_penalty", s.repetition_penalty, 0.01, 10);
  s.presence_penalty = number("presence_penalty", usual.presence_penalty, -2, 2);
  s.frequency_penalty = number("frequency_penalty", usual.frequency_penalty, -2, 2);
  const std::string seed_name = out.from == endpoint::fim && !fields.find("seed") ? "random_seed" : "seed";
  const json* seed = fields.find(seed_name);
  // llama.cpp's value for a seed that the server draws.
  if (seed && out.from == endpoint::native && (*seed == -1 || *seed == 0xFFFFFFFFU)) seed = nullptr;
  if (seed == nullptr) {
    out.has_seed = false;
  } else if (seed->is_number_unsigned()) {
    s.seed = seed->get<std::uint64_t>();
    out.has_seed = true;
  } else if (const auto negative = fields.integer(seed_name, std::numeric_limits<std::int64_t>::min(),
                                                  std::numeric_limits<std::int64_t>::max())) {
    s.seed = static_cast<std::uint64_t>(*negative);
    out.has_seed = true;
  }
  read_logit_bias(fields, limits, out);
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

/// A list of token ids. Whether the model has these tokens is checked later.
std::vector<token> read_token_list(field_reader& fields, const std::string& name, const request_limits& limits) {
  const json* list = fields.array(name, limits.token_list_max);
  if (list == nullptr) return {};
  auto tokens = as_tokens(*list);
  if (!tokens) fields.refuse(name, "'" + name + "' must be an array of token ids.");
  return tokens ? std::move(*tokens) : std::vector<token>{};
}

/// Reads vLLM's rules for single tokens.
void read_token_rules(field_reader& fields, const request_limits& limits, generation_request& out) {
  out.stop_tokens = read_token_list(fields, "stop_token_ids", limits);
  out.sampling.allowed = read_token_list(fields, "allowed_token_ids", limits);
  std::sort(out.sampling.allowed.begin(), out.sampling.allowed.end());
  if (const json* words = fields.array("bad_words", limits.bad_words_max)) {
    for (std::size_t i = 0; i < words->size(); ++i) {
      const json& word = (*words)[i];
      const std::string name = indexed("bad_words", i);
      if (!word.is_string()) return fields.refuse_type(name, "a string", word);
      out.bad_words.push_back(word.get<std::string>());
      if (out.bad_words.back().empty() || out.bad_words.back().size() > limits.bad_word_bytes_max) {
        return fields.refuse(name,
                             "'" + name + "' must have 1 to " + std::to_string(limits.bad_word_bytes_max) + " bytes.");
      }
    }
  }
  if (fields.boolean("return_token_ids").value_or(false)) out.return_token_ids = true;
  out.tokens_as_ids = fields.boolean("return_tokens_as_token_ids").value_or(false);
}

/// Reads the chat template's variables other than the messages.
void read_template_variables(field_reader& fields, const request_limits& limits, json& out) {
  static constexpr std::string_view own[] = {"messages",  "tools",     "documents",       "add_generation_prompt",
                                             "bos_token", "eos_token", "raise_exception", "strftime_now"};
  const json* given = fields.object("chat_template_kwargs");
  if (given == nullptr) return;
  if (given->size() > limits.template_variables_max) {
    return fields.refuse("chat_template_kwargs", "'chat_template_kwargs' has more than " +
                                                     std::to_string(limits.template_variables_max) + " members.");
  }
  for (const auto& [name, value] : given->get_ref<const json::object_t&>()) {
    if (std::find(std::begin(own), std::end(own), name) != std::end(own)) {
      return fields.refuse("chat_template_kwargs." + name,
                           "'chat_template_kwargs." + name + "' is set by the server: use the request's own fields.");
    }
    out[name] = value;
  }
}

/// Reads how much the model should reason, for templates that support it.
void read_reasoning(field_reader& fields, const request_limits& limits, generation_request& out) {
  read_template_variables(fields, limits, out.template_variables);
  if (const auto thinks = fields.boolean("enable_thinking")) {
    if (!out.template_variables.contains("enable_thinking")) out.template_variables["enable_thinking"] = *thinks;
  }
  static constexpr std::string_view efforts[] = {"none", "minimal", "low", "medium", "high", "xhigh", "max"};
  if (const auto effort = fields.text("reasoning_effort", limits.name_bytes_max)) {
    if (std::find(std::begin(efforts), std::end(efforts), *effort) == std::end(efforts)) {
      fields.refuse("reasoning_effort",
                    "'reasoning_effort' must be one of none, minimal, low, medium, high, xhigh and max, found '" +
                        effort->substr(0, 64) + "'.");
    }
    out.reasoning_effort = *effort;
  }
  // llama.cpp's format; "none" leaves the tags in the text.
  static constexpr std::string_view formats[] = {"none", "auto", "deepseek", "deepseek-legacy"};
  if (const auto format = fields.text("reasoning_format", limits.name_bytes_max)) {
    if (std::find(std::begin(formats), std::end(formats), *format) == std::end(formats)) {
      fields.refuse("reasoning_format",
                    "'reasoning_format' must be one of none, auto, deepseek and deepseek-legacy, found '" +
                        format->substr(0, 64) + "'.");
    }
    out.splits_reasoning = *format != "none";
  }
}

/// For completions: the text begins with the prompt.
void read_echo(field_reader& fields, generation_request& out) {
  out.echo = fields.boolean("echo").value_or(false);
  if (out.echo && out.fill) fields.refuse("echo", "'echo' cannot be combined with 'suffix'.");
}

/// vLLM's log-probabilities of the prompt's tokens.
void read_prompt_logprobs(field_reader& fields, const request_limits& limits, prompt_form form,
                          generation_request& out) {
  if (form == prompt_form::none && out.echo && out.logprobs) {
    fields.refuse("echo", "'echo' cannot be combined with 'logprobs' on this endpoint; /v1/completions has both.",
                  "unsupported_parameter");
  }
  const bool has_field = out.from == endpoint::chat || out.from == endpoint::completions;
  if (!has_field || form == prompt_form::none) {
    if (!fields.find("prompt_logprobs")) return;
    return fields.refuse("prompt_logprobs",
                         "'prompt_logprobs' is not supported on this endpoint; /v1/completions has it.",
                         "unsupported_parameter");
  }
  const auto top = fields.integer("prompt_logprobs", 0, limits.top_logprobs_max);
  if (top) out.prompt_logprobs = static_cast<std::uint32_t>(*top);
  if (top && out.fill) fields.refuse("prompt_logprobs", "'prompt_logprobs' cannot be combined with 'suffix'.");
}

void read_lengths(field_reader& fields, generation_request& out) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  // llama.cpp's clients send -1 or -2 for the rest of the context.
  std::optional<std::int64_t> wanted;
  for (const auto* name : {"max_completion_tokens", "max_tokens", "n_predict"}) {
    const auto given = fields.integer(name, -2, most);
    if (!wanted) wanted = given;
  }
  if (wanted) {
    out.computes_only = *wanted == 0;
    if (*wanted >= 0) out.tokens_max = static_cast<std::uint32_t>(std::max<std::int64_t>(1, *wanted));
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
  const char* const name = out.from == endpoint::native && fields.find("n_cmpl") ? "n_cmpl" : "n";
  out.n = static_cast<std::uint32_t>(fields.integer(name, 1, limits.n_max).value_or(1));
  const auto best_of = fields.integer("best_of", 1, limits.n_max);
  out.best_of = static_cast<std::uint32_t>(best_of.value_or(out.n));
  if (out.best_of < out.n)
    fields.refuse("best_of", "'best_of' must be at least 'n', which is " + std::to_string(out.n) + ".");
  if (std::max<std::size_t>(1, out.prompts.size()) * out.answers_per_prompt() > limits.answers_max) {
    fields.refuse(
        out.best_of > out.n ? "best_of" : "n",
        "'n' or 'best_of' times the number of prompts must be at most " + std::to_string(limits.answers_max) + ".");
  }
}

void read_stream(field_reader& fields, std::optional<api_error>& error, generation_request& out) {
  out.stream = fields.boolean("stream").value_or(false);
  const json* stream_options = fields.object("stream_options");
  if (!stream_options) return;
  if (!out.stream) return fields.refuse("stream_options", "'stream_options' needs 'stream' to be true.");
  field_reader inner(*stream_options, "stream_options", error);
  out.include_usage = inner.boolean("include_usage").value_or(false);
  out.usage_in_all_events = inner.boolean("continuous_usage_stats").value_or(false) && out.include_usage;
}

/// Refuses a stream of the best answers, which are known only when all are complete.
void check_stream(field_reader& fields, const generation_request& out) {
  if (out.stream && out.best_of > out.n) {
    fields.refuse("best_of", "'best_of' above 'n' needs whole answers to choose from: leave 'stream' out.");
  }
  if (out.stream && out.prompt_logprobs) {
    fields.refuse("prompt_logprobs", "'prompt_logprobs' is not part of a stream: leave 'stream' out.");
  }
  if (out.stream && out.scores_prompt() && out.n > 1) {
    fields.refuse("n", "'n' above 1 with 'echo' and 'logprobs' is not streamed: leave 'stream' out.");
  }
}

void read_logprobs(field_reader& fields, const request_limits& limits, generation_request& out) {
  if (out.from == endpoint::fim) return;  // its answers have no field for them
  if (out.from == endpoint::native) {
    const auto top = fields.integer("n_probs", 0, limits.top_logprobs_max);
    out.top_logprobs = static_cast<std::uint32_t>(top.value_or(0));
    out.logprobs = out.top_logprobs > 0;
    return;
  }
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

/// {"type": "content", "content": text}, which OpenAI calls a predicted output.
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

/// Refuses fields that conflict with an answer that follows a grammar.
void check_grammar(field_reader& fields, generation_request& out) {
  if (!out.copy && !out.format && !out.calls_tools()) return;
  const std::string what = out.copy ? "redline.copy" : out.format ? "response_format" : "tools";
  const auto refuse = [&](std::string_view name) {
    fields.refuse(name, "'" + std::string(name) + "' cannot be combined with '" + what + "'.", "unsupported_parameter");
  };
  if (out.copy && out.format) refuse("response_format");
  // The grammar describes the whole message, but a part of it is already written.
  if (out.continues_last && (out.copy || out.format)) refuse("continue_final_message");
  if ((out.copy || out.format) && out.calls_tools()) refuse("tools");
  if (out.eviction.policy.value_or(kv::eviction_policy::off) != kv::eviction_policy::off) refuse("redline.eviction");
  if (out.copy && out.scores_prompt()) refuse(out.prompt_logprobs ? "prompt_logprobs" : "echo");
  if (out.ignore_eos) refuse("ignore_eos");
  if (out.tokens_min > 0) refuse("min_tokens");
  // The tokens are those of the program and its spans, not of the text that the client sees.
  if (out.copy && out.logprobs) refuse(out.from == endpoint::native ? "n_probs" : "logprobs");
  if (out.copy && out.return_token_ids) refuse("return_token_ids");
  if (out.copy && out.best_of > out.n) refuse("best_of");
  // Together with the grammar's masks they could leave no token to choose.
  if (!out.sampling.allowed.empty()) refuse("allowed_token_ids");
  if (!out.stop_tokens.empty()) refuse("stop_token_ids");
  if (!out.bad_words.empty()) refuse("bad_words");
}

/// Fields that are checked and do not affect the answer, except for the model's name.
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

/// Tells requests apart. Ignores whitespace and the notation of strings and numbers, which a proxy may rewrite.
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

/// vLLM's continue_final_message, which requires `add_generation_prompt` to be false.
bool read_continuation(field_reader& fields, const json& messages) {
  const bool continues = fields.boolean("continue_final_message").value_or(false);
  const bool begins = fields.boolean("add_generation_prompt").value_or(!continues);
  if (continues && begins) {
    fields.refuse(
        "continue_final_message",
        "'continue_final_message' and 'add_generation_prompt' cannot both be true: set one of them to false.");
  } else if (continues &&
             (messages.empty() || messages.back()["role"] != "assistant" || messages.back().contains("tool_calls"))) {
    fields.refuse("continue_final_message",
                  "'continue_final_message' needs a last message of role assistant without tool_calls.");
  }
  return continues;
}

checked<generation_request> read_fields(const json& body, endpoint from, prompt_form form,
                                        const request_limits& limits) {
  if (auto unsupported = find_unsupported(body, from)) return std::move(*unsupported);
  generation_request out;
  out.from = from;
  std::optional<api_error> error;
  field_reader fields(body, "", error);
  read_identity(fields, limits, out);
  if (form == prompt_form::messages) {
    out.messages = message_reader(limits, error).read(fields);
    out.continues_last = read_continuation(fields, out.messages);
    if (!out.continues_last && !fields.boolean("add_generation_prompt").value_or(true)) {
      fields.refuse("add_generation_prompt",
                    "'add_generation_prompt' is not supported with this value on this endpoint.",
                    "unsupported_parameter");
    }
  }
  if (form == prompt_form::prompts) read_prompts(fields, limits, out);
  if (form == prompt_form::prompts && from != endpoint::native) read_suffix(fields, limits, out);
  if (form == prompt_form::around_gap) read_infill(fields, error, limits, out);
  if (from == endpoint::native) read_native(fields, limits, out);
  read_sampling(fields, limits, out);
  read_stop(fields, limits, out);
  read_token_rules(fields, limits, out);
  read_lengths(fields, out);
  read_counts(fields, limits, out);
  read_stream(fields, error, out);
  read_logprobs(fields, limits, out);
  if (from == endpoint::chat) read_reasoning(fields, limits, out);
  if (from == endpoint::completions) read_echo(fields, out);
  read_prompt_logprobs(fields, limits, form, out);
  read_prediction(fields, error, limits, out);
  read_redline(fields, error, limits, out);
  read_format(fields, error, limits, out);
  read_other_formats(fields, error, out);
  if (from == endpoint::chat) out.tools = read_tools(fields, error, limits);
  if (form == prompt_form::none && out.tools) {
    fields.refuse("tools", "'tools' is not supported on this endpoint; /v1/chat/completions has it.",
                  "unsupported_parameter");
  }
  check_grammar(fields, out);
  check_stream(fields, out);
  if (out.scores_prompt() && out.eviction.policy.value_or(kv::eviction_policy::off) != kv::eviction_policy::off) {
    fields.refuse("redline.eviction", "'redline.eviction' cannot be combined with log-probabilities of the prompt.");
  }
  if (error) return std::move(*error);
  out.ignored = list_ignored(fields.unread());
  if (out.stream) out.digest = digest_request(body, from);
  return out;
}

checked<generation_request> parse_generation(std::string_view body, endpoint from, prompt_form form,
                                             const request_limits& limits) {
  const auto parsed = parse_body(body);
  if (!parsed) return parsed.error();
  return read_fields(*parsed, from, form, limits);
}

}  // namespace

checked<generation_request> read_generation(const json& body, endpoint from, bool has_prompt,
                                            const request_limits& limits) {
  const auto form = from == endpoint::chat ? prompt_form::messages : prompt_form::prompts;
  return read_fields(body, from, has_prompt ? form : prompt_form::none, limits);
}

checked<generation_request> parse_chat_request(std::string_view body, const request_limits& limits) {
  return parse_generation(body, endpoint::chat, prompt_form::messages, limits);
}

checked<generation_request> parse_completion_request(std::string_view body, const request_limits& limits) {
  return parse_generation(body, endpoint::completions, prompt_form::prompts, limits);
}

checked<generation_request> parse_completion_or_native_request(std::string_view body, const request_limits& limits) {
  const auto parsed = parse_body(body);
  if (!parsed) return parsed.error();
  const bool is_native = parsed->contains("n_predict") && !parsed->contains("max_tokens");
  return read_fields(*parsed, is_native ? endpoint::native : endpoint::completions, prompt_form::prompts, limits);
}

checked<generation_request> parse_fim_request(std::string_view body, const request_limits& limits) {
  auto request = parse_generation(body, endpoint::fim, prompt_form::prompts, limits);
  if (!request) return request;
  if (request->prompts.size() != 1) return bad_field("prompt", "'prompt' must be one text, the text before the gap.");
  return request;
}

checked<generation_request> parse_native_request(std::string_view body, const request_limits& limits) {
  return parse_generation(body, endpoint::native, prompt_form::prompts, limits);
}

checked<generation_request> parse_infill_request(std::string_view body, const request_limits& limits) {
  return parse_generation(body, endpoint::native, prompt_form::around_gap, limits);
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
    out.tools = read_tools(fields, error, limits);
    out.continues_last = read_continuation(fields, out.messages);
    read_template_variables(fields, limits, out.template_variables);
  } else if (content || prompt) {
    out.text = content ? *content : *prompt;
  }
  // Each server's own default: llama.cpp adds none; vLLM adds them to a prompt but not to rendered messages.
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
  out.tools = read_tools(fields, error, limits);
  out.continues_last = read_continuation(fields, out.messages);
  read_template_variables(fields, limits, out.template_variables);
  out.add_generation_prompt = fields.boolean("add_generation_prompt").value_or(true);
  if (error) return std::move(*error);
  return out;
}

}  // namespace redline::api
