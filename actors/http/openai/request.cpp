#include "actors/http/openai/request.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "actors/http/fields/field_reader.hpp"
#include "actors/http/openai/message_reader.hpp"
#include "actors/http/openai/redline_object.hpp"
#include "actors/http/openai/tool_fields.hpp"
#include "actors/http/openai/unsupported_fields.hpp"
#include "runtime/base/hash.hpp"

namespace redline::api {
namespace {

constexpr std::uint32_t completion_tokens_default = 16;
enum class prompt_form : std::uint8_t { none, messages, prompts, around_gap };
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
  out.wants_list = is_list;
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

// Texts whose middle is wanted.

/// The suffix of a completion: its prompts are what stands before the gap.
void read_suffix(field_reader& fields, const request_limits& limits, generation_request& out) {
  auto suffix = fields.text("suffix", limits.text_bytes_max);
  if (out.from != endpoint::fim && (!suffix || suffix->empty())) return;
  const auto is_text = [](const prompt_input& p) { return std::holds_alternative<std::string>(p); };
  if (!std::all_of(out.prompts.begin(), out.prompts.end(), is_text)) {
    return fields.refuse("suffix", "'suffix' needs a 'prompt' that is text, which stands before the gap.");
  }
  out.fill = fill_request{.suffix = std::move(suffix).value_or(""), .path = {}, .context = {}};
}

/// {"text", "filename"} each.
void read_context(field_reader& fields, std::optional<api_error>& error, const request_limits& limits,
                  fill_request& out) {
  const json* list = fields.array("input_extra", limits.context_files_max);
  std::size_t bytes = 0;
  for (std::size_t i = 0; list != nullptr && i < list->size() && !error; ++i) {
    const std::string name = indexed("input_extra", i);
    if (!(*list)[i].is_object()) return fields.refuse_type(name, "an object", (*list)[i]);
    field_reader file((*list)[i], name, error);
    auto text = file.text("text", limits.text_bytes_max);
    if (!text) file.refuse("text", "'" + name + ".text' is required.");
    out.context.push_back({file.text("filename", limits.path_bytes_max).value_or(""), text ? std::move(*text) : ""});
    bytes += out.context.back().text.size();
  }
  if (bytes > limits.text_bytes_max) {
    fields.refuse("input_extra",
                  "'input_extra' must have at most " + std::to_string(limits.text_bytes_max) + " bytes together.");
  }
}

/// llama.cpp's /infill: before the gap stands input_prefix and then prompt, which is what the cursor's line has.
void read_infill(field_reader& fields, std::optional<api_error>& error, const request_limits& limits,
                 generation_request& out) {
  const auto prefix = fields.text("input_prefix", limits.text_bytes_max);
  auto suffix = fields.text("input_suffix", limits.text_bytes_max);
  const auto begun = fields.text("prompt", limits.text_bytes_max);
  if (!prefix && !suffix) {
    fields.refuse("input_prefix", "'input_prefix' and 'input_suffix' are required: the texts around the cursor.");
  }
  out.prompts.emplace_back(prefix.value_or("") + begun.value_or(""));
  out.fill = fill_request{.suffix = std::move(suffix).value_or(""), .path = {}, .context = {}};
  out.fill->path = fields.text("filename", limits.path_bytes_max).value_or("");
  read_context(fields, error, limits, *out.fill);
}

/// What llama.cpp's own clients say beside what all say.
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

// Parameters of all endpoints.

std::optional<float> read_bias(field_reader& fields, const std::string& name, const json& value) {
  if (value.is_number() && value.get<double>() >= -100 && value.get<double>() <= 100) return value.get<float>();
  fields.refuse(name, "'" + name + "' must be a number from -100 to 100.");
  return std::nullopt;
}

/// llama.cpp's: [token id or text, bias], where false as a bias forbids the token.
void read_bias_pairs(field_reader& fields, const json& pairs, const request_limits& limits, generation_request& out) {
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const json& pair = pairs[i];
    const std::string name = indexed("logit_bias", i);
    if (!pair.is_array() || pair.size() != 2) {
      return fields.refuse(name, "'" + name + "' must be a pair of a token id or a text and a number or false.");
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

/// By token id; llama.cpp's clients name tokens by their texts, too.
void read_bias_map(field_reader& fields, const json& biases, const request_limits& limits, generation_request& out) {
  for (const auto& [key, value] : biases.get_ref<const json::object_t&>()) {
    token id = -1;
    const auto [end, ec] = std::from_chars(key.data(), key.data() + key.size(), id);
    const bool is_id = ec == std::errc() && end == key.data() + key.size() && id >= 0;
    const bool names_token = is_id && key == std::to_string(id);
    if (!names_token && (out.from != endpoint::native || key.size() > limits.bad_word_bytes_max)) {
      return fields.refuse("logit_bias", "'logit_bias' maps token ids, found the key '" + key.substr(0, 64) + "'.");
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

/// What each server's clients expect where they say nothing. Code that fills a gap is wanted as it most probably is.
model::sampling_params default_sampling(const generation_request& of) {
  model::sampling_params s;
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
  // 0 means the most probable token only, which the smallest probability says as well.
  constexpr float top_p_min = 1e-6F;
  s.top_p = std::max(number("top_p", usual.top_p, 0, 1), top_p_min);
  s.min_p = number("min_p", usual.min_p, 0, 1);
  s.top_k = static_cast<std::int32_t>(
      std::max<std::int64_t>(0, fields.integer("top_k", -1, token_max).value_or(usual.top_k)));
  s.repetition_penalty = number("repeat_penalty", usual.repetition_penalty, 0.01, 10);  // llama.cpp's word
  s.repetition_penalty = number("repetition_penalty", s.repetition_penalty, 0.01, 10);
  s.presence_penalty = number("presence_penalty", usual.presence_penalty, -2, 2);
  s.frequency_penalty = number("frequency_penalty", usual.frequency_penalty, -2, 2);
  const std::string seed_name = out.from == endpoint::fim && !fields.find("seed") ? "random_seed" : "seed";
  const json* seed = fields.find(seed_name);
  // llama.cpp's word for a seed that the server draws.
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

/// Token ids; whether the model has them is seen later.
std::vector<token> read_token_list(field_reader& fields, const std::string& name, const request_limits& limits) {
  const json* list = fields.array(name, limits.token_list_max);
  if (list == nullptr) return {};
  auto tokens = as_tokens(*list);
  if (!tokens) fields.refuse(name, "'" + name + "' must be an array of token ids.");
  return tokens ? std::move(*tokens) : std::vector<token>{};
}

/// What vLLM's clients say of single tokens.
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

/// What a chat template is told beside the messages.
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

/// How much a model is to think, for templates that know of it.
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
  // llama.cpp's: "none" leaves the tags where they are.
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

/// Completions: the text begins with the prompt.
void read_echo(field_reader& fields, generation_request& out) {
  out.echo = fields.boolean("echo").value_or(false);
  if (out.echo && out.fill) fields.refuse("echo", "'echo' does not go together with 'suffix'.");
}

/// vLLM's: what the model says of the prompt's tokens.
void read_prompt_logprobs(field_reader& fields, const request_limits& limits, prompt_form form,
                          generation_request& out) {
  if (form == prompt_form::none && out.echo && out.logprobs) {
    fields.refuse("echo", "'echo' does not go together with 'logprobs' on this endpoint; /v1/completions has both.",
                  "unsupported_parameter");
  }
  const bool has_place = out.from == endpoint::chat || out.from == endpoint::completions;
  if (!has_place || form == prompt_form::none) {
    if (!fields.find("prompt_logprobs")) return;
    return fields.refuse("prompt_logprobs",
                         "'prompt_logprobs' is not supported on this endpoint; /v1/completions has it.",
                         "unsupported_parameter");
  }
  const auto top = fields.integer("prompt_logprobs", 0, limits.top_logprobs_max);
  if (top) out.prompt_logprobs = static_cast<std::uint32_t>(*top);
  if (top && out.fill) fields.refuse("prompt_logprobs", "'prompt_logprobs' does not go together with 'suffix'.");
}

void read_lengths(field_reader& fields, generation_request& out) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  // llama.cpp's clients say -1, or -2, for what the context leaves.
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

/// A stream cannot wait for all answers.
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
  if (out.from == endpoint::fim) return;  // whose answers have no place for them
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

// Formats of answers in several servers' words.

/// A text for a regular expression; see runtime/grammar/README.md.
std::string text_schema(const std::string& pattern) { return dump_json(json{{"redline:text", pattern}}); }

/// A JSON schema as an object, or as text that is one.
std::optional<std::string> schema_of(field_reader& fields, const std::string& name, const json& given) {
  if (given.is_object()) return dump_json(given);
  if (given.is_string()) {
    const auto parsed = parse_json<json>(given.get_ref<const std::string&>());
    if (parsed && parsed->is_object()) return dump_json(*parsed);
  }
  fields.refuse(name, "'" + fields.path_of(name) + "' must be a JSON schema: an object, or text that is one.");
  return std::nullopt;
}

/// {"type": "text" | "json_object" | "json_schema", "json_schema": {"name", "schema", "strict"}}; llama.cpp's clients
/// send a "schema" beside "json_object".
void read_format(field_reader& fields, std::optional<api_error>& error, const request_limits& limits,
                 generation_request& out) {
  const json* given = fields.object("response_format");
  if (!given) return;
  field_reader inner(*given, "response_format", error);
  const auto type = inner.text("type", limits.name_bytes_max);
  if (type == "text") return;
  if (type == "json_object") {
    const json* rules = inner.find("schema");
    out.schema = R"({"type":"object"})";
    if (rules && *rules != json::object()) out.schema = schema_of(inner, "schema", *rules);
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

/// One of some texts, as an expression.
std::optional<std::string> choice_of(field_reader& fields, const std::string& name, const json& given) {
  const auto is_text = [](const json& text) { return text.is_string() && !text.get_ref<const std::string&>().empty(); };
  if (!given.is_array() || given.empty() || !std::all_of(given.begin(), given.end(), is_text)) {
    fields.refuse(name, "'" + fields.path_of(name) + "' must be a list of texts.");
    return std::nullopt;
  }
  std::string pattern;
  for (const auto& text : given) {
    if (!pattern.empty()) pattern += '|';
    for (const char c : text.get_ref<const std::string&>()) {
      if (std::string_view("\\^$.|?*+()[]{}").find(c) != std::string_view::npos) pattern += '\\';
      pattern += c;
    }
  }
  return text_schema(pattern);
}

std::optional<std::string> regex_of(field_reader& fields, const std::string& name, const json& given) {
  if (given.is_string()) return text_schema(given.get_ref<const std::string&>());
  fields.refuse_type(name, "a string", given);
  return std::nullopt;
}

/// llama.cpp's GBNF, or Lark. An empty text asks for nothing.
std::optional<std::string> grammar_of(field_reader& fields, const std::string& name, const json& given) {
  if (!given.is_string()) {
    fields.refuse_type(name, "a string", given);
    return std::nullopt;
  }
  if (given.get_ref<const std::string&>().empty()) return std::nullopt;
  return dump_json(json{{"redline:grammar", given.get_ref<const std::string&>()}});
}

struct guide {
  std::string_view name;
  std::optional<std::string> (*read)(field_reader&, const std::string&, const json&);
};

/// Takes what one of these members says; two of them contradict each other.
void read_guides(field_reader& fields, std::span<const guide> guides, generation_request& out) {
  for (const auto& one : guides) {
    const std::string name(one.name);
    const json* given = fields.find(name);
    if (given == nullptr) continue;
    if (out.schema) return fields.refuse(name, "'" + fields.path_of(name) + "' is one format too many for an answer.");
    out.schema = one.read(fields, name, *given);
  }
}

/// guided_* and structured_outputs are vLLM's, regex SGLang's, json_schema llama.cpp's.
void read_other_formats(field_reader& fields, std::optional<api_error>& error, generation_request& out) {
  static constexpr guide ours[] = {{"guided_json", schema_of},     {"json_schema", schema_of},
                                   {"guided_regex", regex_of},     {"guided_choice", choice_of},
                                   {"guided_grammar", grammar_of}, {"grammar", grammar_of},
                                   {"ebnf", grammar_of},           {"regex", regex_of}};
  read_guides(fields, ours, out);
  const json* outputs = fields.object("structured_outputs");
  if (outputs == nullptr) return;
  static constexpr guide inner_ones[] = {
      {"json", schema_of}, {"regex", regex_of}, {"choice", choice_of}, {"grammar", grammar_of}};
  field_reader inner(*outputs, "structured_outputs", error);
  read_guides(inner, inner_ones, out);
  if (inner.boolean("json_object").value_or(false) && !out.schema) out.schema = R"({"type":"object"})";
  if (inner.find("structural_tag") != nullptr) {
    inner.refuse("structural_tag",
                 "'structured_outputs.structural_tag' is not supported: use json, regex, choice or grammar.",
                 "unsupported_parameter");
  }
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
  // The grammar is one of the whole message, of which a part is written.
  if (out.continues_last && (out.copy || out.schema)) refuse("continue_final_message");
  if ((out.copy || out.schema) && out.calls_tools()) refuse("tools");
  if (out.eviction.policy.value_or(kv::eviction_policy::off) != kv::eviction_policy::off) refuse("redline.eviction");
  if (out.copy && out.scores_prompt()) refuse(out.prompt_logprobs ? "prompt_logprobs" : "echo");
  if (out.ignore_eos) refuse("ignore_eos");
  if (out.tokens_min > 0) refuse("min_tokens");
  // The tokens are those of the program and its spans, not those of the text that the client sees.
  if (out.copy && out.logprobs) refuse(out.from == endpoint::native ? "n_probs" : "logprobs");
  if (out.copy && out.return_token_ids) refuse("return_token_ids");
  if (out.copy && out.best_of > out.n) refuse("best_of");
  // Together with the grammar's masks they could leave no token at all.
  if (!out.sampling.allowed.empty()) refuse("allowed_token_ids");
  if (!out.stop_tokens.empty()) refuse("stop_token_ids");
  if (!out.bad_words.empty()) refuse("bad_words");
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

/// vLLM's continue_final_message, with which it wants `add_generation_prompt` to be false.
bool read_continuation(field_reader& fields, const json& messages) {
  const bool continues = fields.boolean("continue_final_message").value_or(false);
  const bool begins = fields.boolean("add_generation_prompt").value_or(!continues);
  if (continues && begins) {
    fields.refuse(
        "continue_final_message",
        "'continue_final_message' and 'add_generation_prompt' cannot both be true: an answer goes on or begins.");
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
    fields.refuse("redline.eviction", "'redline.eviction' does not go together with log-probabilities of the prompt.");
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
  if (request->prompts.size() != 1)
    return bad_field("prompt", "'prompt' must be one text: what stands before the gap.");
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
  out.tools = read_tools(fields, error, limits);
  out.continues_last = read_continuation(fields, out.messages);
  read_template_variables(fields, limits, out.template_variables);
  out.add_generation_prompt = fields.boolean("add_generation_prompt").value_or(true);
  if (error) return std::move(*error);
  return out;
}

}  // namespace redline::api
