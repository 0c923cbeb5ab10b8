#include "actors/http/shapes/openai/response.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "actors/http/shapes/openai/native_shape.hpp"
#include "runtime/base/hex.hpp"

namespace redline::api {
namespace {

constexpr double logprob_min = -9999;  // for an impossible token, as in OpenAI's API: JSON has no infinity

/// Rounds to six decimals, because a float's noise digits would only lengthen the body.
double rounded(double value) { return std::round(value * 1e6) / 1e6; }

double shown_logprob(float value) {
  return std::isfinite(value) ? rounded(std::max<double>(value, logprob_min)) : logprob_min;
}

bool is_valid_utf8(const std::string& bytes) {
  try {
    static_cast<void>(json(bytes).dump());
    return true;
  } catch (const json::type_error&) {
    return false;
  }
}

std::size_t characters_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

json byte_array(std::string_view bytes) {
  json list = json::array();
  for (const char c : bytes) list.push_back(static_cast<unsigned char>(c));
  return list;
}

json null_if_empty(const std::string& text) { return text.empty() ? json(nullptr) : json(text); }

// Log-probabilities in each endpoint's shape.

/// vLLM's notation for a token, independent of its bytes.
std::string id_name(token id) { return "token_id:" + std::to_string(id); }

json chat_token(const response_head& head, const token_probability& one) {
  json object;
  object["token"] = head.tokens_as_ids ? id_name(one.id) : one.bytes;
  object["logprob"] = shown_logprob(one.logprob);
  object["bytes"] = byte_array(one.bytes);
  return object;
}

json chat_logprobs(const response_head& head, std::span<const token_report> tokens) {
  json object;
  object["content"] = token_logprobs(head, tokens);
  object["refusal"] = nullptr;
  return object;
}

/// A token that is not valid text by itself is shown by its bytes, as in OpenAI's API: "bytes:\xe2\x80".
std::string completion_token(const std::string& bytes) {
  if (is_valid_utf8(bytes)) return bytes;
  std::string text = "bytes:";
  for (const char c : bytes) append_hex_escape(text, c);
  return text;
}

/// offset: the first token's position in the text, negative if the prompt's first tokens are not part of the client's
/// text. The chosen token is always the first of the alternatives.
json completion_logprobs(const response_head& head, std::span<const token_report> tokens, std::int64_t& offset) {
  const auto name = [&head](const token_probability& one) {
    return head.tokens_as_ids ? id_name(one.id) : completion_token(one.bytes);
  };
  json names = json::array(), logprobs = json::array(), tops = json::array(), offsets = json::array();
  for (const auto& report : tokens) {
    names.push_back(name(report.chosen));
    logprobs.push_back(report.has_logprob ? json(shown_logprob(report.chosen.logprob)) : json(nullptr));
    json top = json::object();
    top[name(report.chosen)] = shown_logprob(report.chosen.logprob);
    for (const auto& other : std::span(report.top).first(std::min<std::size_t>(head.top_logprobs, report.top.size()))) {
      if (const auto one = name(other); !top.contains(one)) top[one] = shown_logprob(other.logprob);
    }
    tops.push_back(report.has_logprob ? std::move(top) : json(nullptr));
    offsets.push_back(std::max<std::int64_t>(offset, 0));
    offset += static_cast<std::int64_t>(characters_of(report.chosen.bytes));
  }
  json object;
  object["tokens"] = std::move(names);
  object["token_logprobs"] = std::move(logprobs);
  object["top_logprobs"] = std::move(tops);
  object["text_offset"] = std::move(offsets);
  return object;
}

json token_ids(std::span<const token_report> tokens) {
  json ids = json::array();
  for (const auto& report : tokens) ids.push_back(report.id);
  return ids;
}

/// The position of the prompt's first token in the text that echoes it. It is negative if a beginning-of-text token or
/// a space that the tokenizer adds precedes the text.
std::int64_t first_offset(const prompt_report& prompt) {
  std::int64_t spelled = 0;
  for (const auto& report : prompt.tokens) spelled += static_cast<std::int64_t>(characters_of(report.chosen.bytes));
  return std::min<std::int64_t>(0, static_cast<std::int64_t>(prompt.characters) - spelled);
}

/// vLLM's form: for each token an object of alternatives by id, and null for the first token. The rank of a token
/// outside the alternatives is not known.
json prompt_logprobs(const prompt_report& prompt, std::uint32_t top_count) {
  const auto entry = [](const token_probability& one, json rank) {
    return json{{"logprob", shown_logprob(one.logprob)},
                {"rank", std::move(rank)},
                {"decoded_token", completion_token(one.bytes)}};
  };
  json list = json::array();
  for (const auto& report : prompt.tokens) {
    if (!report.has_logprob) {
      list.push_back(nullptr);
      continue;
    }
    json one = json::object();
    for (std::size_t i = 0; i < std::min<std::size_t>(top_count, report.top.size()); ++i) {
      one[std::to_string(report.top[i].id)] = entry(report.top[i], i + 1);
    }
    const auto id = std::to_string(report.id);
    if (!one.contains(id)) one[id] = entry(report.chosen, nullptr);
    list.push_back(std::move(one));
  }
  return list;
}

// Parts of responses.

/// True if the response's objects contain messages.
bool is_chat_shaped(endpoint from) { return from == endpoint::chat || from == endpoint::fim; }

json head_object(const response_head& head, const char* chat_kind) {
  json object;
  object["id"] = head.id;
  object["object"] = is_chat_shaped(head.from) ? chat_kind : "text_completion";
  object["created"] = head.created_seconds;
  object["model"] = head.model;
  object["system_fingerprint"] = null_if_empty(head.system_fingerprint);
  return object;
}

json source_object(const source_report& one) {
  json object;
  object["drafted"] = one.drafted;
  object["accepted"] = one.accepted;
  return object;
}

json program_object(const program_report& report) {
  json spans = json::array();
  for (const auto& s : report.spans) {
    spans.push_back(json{{"file", s.file},
                         {"unit", s.unit},
                         {"first", s.first},
                         {"last", s.last},
                         {"trust", s.trust},
                         {"reason", s.reason},
                         {"tokens", s.tokens},
                         {"refused", s.refused}});
  }
  json object;
  object["program"] = report.program;
  object["spans"] = std::move(spans);
  return object;
}

json short_usage_object(std::uint32_t prompt_tokens, std::uint32_t completion_tokens) {
  json object;
  object["prompt_tokens"] = prompt_tokens;
  object["completion_tokens"] = completion_tokens;
  object["total_tokens"] = std::uint64_t{prompt_tokens} + completion_tokens;
  return object;
}

json usage_object(const usage_report& usage) {
  json completion_details;
  completion_details["reasoning_tokens"] = usage.reasoning_tokens;
  const source_report& predicted = usage.of(draft::source::prediction);
  completion_details["accepted_prediction_tokens"] = predicted.accepted;
  completion_details["rejected_prediction_tokens"] = predicted.drafted - predicted.accepted;
  json ours;
  ours["drafted"] = usage.drafted;
  ours["accepted"] = usage.accepted;
  for (const auto from : draft::all_sources) ours["sources"][name_of(from)] = source_object(usage.of(from));
  if (usage.edit_format) {
    ours["recognised"] = json{{"format", usage.edit_format->name},
                              {"predicted_tokens", usage.edit_format->predicted_count},
                              {"accepted_tokens", usage.of(draft::source::format).accepted}};
  }
  ours["copied_forced"] = usage.copied_forced;
  ours["copied_verified"] = usage.copied_verified;
  ours["rounds"] = usage.rounds;
  ours["target_passes"] = usage.target_passes;
  ours["draft_passes"] = usage.draft_passes;
  ours["rows"] = usage.rows;
  ours["evicted"] = usage.evicted;
  ours["evictions"] = usage.evictions;
  ours["reevaluated"] = usage.reevaluated;
  ours["eviction"] = usage.eviction;
  const auto seconds = [](double value) { return std::isfinite(value) ? rounded(value) : 0.0; };
  ours["first_token_seconds"] = seconds(usage.first_token_seconds);
  ours["seconds"] = seconds(usage.seconds);
  if (usage.kv) ours["kv"] = kv_object(*usage.kv);
  if (!usage.ignored.empty()) ours["ignored"] = usage.ignored;
  json object = short_usage_object(usage.prompt_tokens, usage.completion_tokens);
  object["prompt_tokens_details"] = json{{"cached_tokens", usage.cached_tokens}};
  object["completion_tokens_details"] = std::move(completion_details);
  object["redline"] = std::move(ours);
  return object;
}

json function_object(std::string_view name, std::string_view arguments) {
  json object;
  if (!name.empty()) object["name"] = name;
  object["arguments"] = arguments;
  return object;
}

json choice_object(const response_head& head, const choice& one) {
  json object;
  object["index"] = one.index;
  const bool has_logprobs = one.tokens && head.shows_logprobs;
  if (is_chat_shaped(head.from)) {
    json message;
    message["role"] = "assistant";
    message["content"] = one.text.empty() && !one.calls.empty() ? json(nullptr) : json(one.text);
    if (!one.reasoning.empty()) message["reasoning_content"] = one.reasoning;
    message["refusal"] = nullptr;
    if (one.is_legacy && !one.calls.empty()) {
      message["function_call"] = function_object(one.calls.front().name, one.calls.front().arguments);
    } else if (!one.calls.empty()) {
      json calls = json::array();
      for (const auto& call : one.calls) {
        json entry;
        entry["id"] = call.id;
        entry["type"] = "function";
        entry["function"] = function_object(call.name, call.arguments);
        calls.push_back(std::move(entry));
      }
      message["tool_calls"] = std::move(calls);
    }
    object["message"] = std::move(message);
    object["logprobs"] = has_logprobs ? chat_logprobs(head, *one.tokens) : json(nullptr);
  } else {
    object["text"] = one.text;
    object["logprobs"] = nullptr;
    if (has_logprobs) {
      std::vector<token_report> all;
      const bool has_prompt = head.echoes && one.read != nullptr;
      if (has_prompt) all = one.read->tokens;
      all.insert(all.end(), one.tokens->begin(), one.tokens->end());
      std::int64_t offset = has_prompt ? first_offset(*one.read) : 0;
      object["logprobs"] = completion_logprobs(head, all, offset);
    }
    if (head.prompt_logprobs && one.read != nullptr)
      object["prompt_logprobs"] = prompt_logprobs(*one.read, *head.prompt_logprobs);
  }
  object["finish_reason"] = text_of(one.finish);
  if (head.shows_ids) {
    object["token_ids"] = one.tokens ? token_ids(*one.tokens) : json::array();
    // vLLM's chats have the prompt's ids once, in the response.
    if (!is_chat_shaped(head.from)) object["prompt_token_ids"] = one.prompt;
  }
  if (one.program) object["redline"] = program_object(*one.program);
  return object;
}

json card_object(const model_card& card) {
  json object;
  object["id"] = card.id;
  if (!card.aliases.empty()) object["aliases"] = card.aliases;
  object["object"] = "model";
  object["created"] = card.created_seconds;
  object["owned_by"] = card.owned_by;
  object["root"] = card.id;
  object["parent"] = nullptr;
  object["max_model_len"] = card.context_tokens_max;
  // llama.cpp's clients and Zed read these.
  object["meta"] = json{
      {"n_ctx", card.context_tokens_max}, {"n_ctx_train", card.context_tokens_max}, {"n_vocab", card.vocabulary_size}};
  for (const auto& kind : card.numerics) {
    object["meta"]["numerics"].push_back(
        json{{"name", kind.name}, {"system_fingerprint", null_if_empty(kind.system_fingerprint)}});
  }
  if (!card.known_phrases.empty()) object["meta"]["known_phrases"] = card.known_phrases;
  object["status"] = json{{"value", "loaded"}};
  object["architecture"] =
      json{{"input_modalities", json::array({"text"})}, {"output_modalities", json::array({"text"})}};
  return object;
}

}  // namespace

json token_logprobs(const response_head& head, std::span<const token_report> tokens) {
  json list = json::array();
  for (const auto& report : tokens) {
    json entry = chat_token(head, report.chosen);
    json top = json::array();
    for (const auto& other : report.top) top.push_back(chat_token(head, other));
    entry["top_logprobs"] = std::move(top);
    list.push_back(std::move(entry));
  }
  return list;
}

std::string response_id(endpoint from, std::uint64_t high, std::uint64_t low) {
  return (is_chat_shaped(from) ? "chatcmpl-" : "cmpl-") + to_hex(high) + to_hex(low);
}

std::string completion_body(const response_head& head, std::span<const choice> choices, const usage_report& usage) {
  json list = json::array();
  if (head.from == endpoint::native) {
    for (const auto& one : choices) list.push_back(pick_fields(native_answer(head, one), head.fields));
    return dump_json(head.is_list || list.size() != 1 ? list : list[0]);
  }
  json object = head_object(head, "chat.completion");
  for (const auto& one : choices) list.push_back(choice_object(head, one));
  object["choices"] = std::move(list);
  object["usage"] = usage_object(usage);
  if (is_chat_shaped(head.from) && head.shows_ids && !choices.empty())
    object["prompt_token_ids"] = choices.front().prompt;
  if (is_chat_shaped(head.from) && head.prompt_logprobs && !choices.empty() && choices.front().read != nullptr)
    object["prompt_logprobs"] = prompt_logprobs(*choices.front().read, *head.prompt_logprobs);
  return dump_json(object);
}

event_writer::event_writer(response_head head, bool include_usage, event_id begin, std::optional<event_id> had)
    : head_(std::move(head)),
      include_usage_(include_usage),
      at_(std::move(begin)),
      digests_(at_.choices.size()),
      text_offsets_(at_.choices.size()) {
  if (had) had_ = std::move(*had);
  had_.choices.resize(at_.choices.size());
}

json event_writer::chunk() const {
  json object = head_object(head_, "chat.completion.chunk");
  object["choices"] = json::array();
  if (progress_) {
    object["usage"] = short_usage_object(progress_->first, progress_->second);
  } else if (include_usage_) {
    object["usage"] = nullptr;
  }
  return object;
}

/// content: the members between index and finish_reason. members: those next to the choice, or null.
std::string event_writer::event(std::uint32_t index, json content, std::optional<finish_reason> why,
                                json members) const {
  json one;
  one["index"] = index;
  for (auto& [key, value] : content.get_ref<json::object_t&>()) one[key] = std::move(value);
  one["finish_reason"] = why ? json(text_of(*why)) : json(nullptr);
  json object = chunk();
  object["choices"].push_back(std::move(one));
  if (members.is_object()) object.update(members);
  return as_event(object);
}

std::string event_writer::as_event(const json& object) const {
  // While one choice continues, others may not have reached the part that the client already has.
  event_id sent = at_;
  for (std::size_t i = 0; i < sent.choices.size(); ++i) {
    auto& at = sent.choices[i];
    const auto& had = had_.choices[i];
    if (at.text_bytes < had.text_bytes) {
      at.text_bytes = had.text_bytes;
      at.text_digest = had.text_digest;
    }
    at.tokens_count = std::max(at.tokens_count, had.tokens_count);
    if (!at.is_begun) at.numerics = had.numerics;
    at.is_begun = at.is_begun || had.is_begun;
    at.is_over = at.is_over || had.is_over;
  }
  sent.usage_sent = sent.usage_sent || had_.usage_sent;
  return "id: " + to_text(sent) + "\ndata: " + dump_json(object) + "\n\n";
}

std::string event_writer::trace(std::uint32_t index, const trace_report& step) {
  const bool is_known = at_.choices[index].text_bytes < had_.choices[index].text_bytes;
  if (head_.from == endpoint::native || has_diverged_ || is_known) return {};
  json proposed = json::array();
  for (const auto& run : step.proposed) proposed.push_back(json::array({run.source, run.tokens}));
  json text = json::array();
  for (const auto& run : step.came) text.push_back(json::array({run.source, run.tokens, run.bytes}));
  json record;
  record["choice"] = index;
  record["round"] = step.round;
  record["at_us"] = step.at_us;
  record["passes"] = step.passes;
  record["rows"] = step.rows;
  record["proposed"] = std::move(proposed);
  record["verified"] = step.verified;
  record["accepted"] = step.accepted;
  record["text"] = std::move(text);
  json object = chunk();
  object["redline"]["trace"] = json::array({std::move(record)});
  return "data: " + dump_json(object) + "\n\n";
}

std::string event_writer::first(std::uint32_t index, std::span<const token> prompt) {
  at_.choices[index].is_begun = true;
  const bool has_ids = head_.shows_ids;
  if (head_.from == endpoint::native || (head_.from == endpoint::completions && !has_ids) ||
      had_.choices[index].is_begun)
    return {};
  json content;
  if (is_chat_shaped(head_.from)) {
    content["delta"] = json{{"role", "assistant"}, {"content", ""}};
  } else {
    content["text"] = "";
  }
  content["logprobs"] = nullptr;
  json members;
  if (has_ids) (is_chat_shaped(head_.from) ? members : content)["prompt_token_ids"] = prompt;
  return event(index, std::move(content), std::nullopt, std::move(members));
}

/// The part of the text that is new to the client.
std::string_view event_writer::take_text(std::uint32_t index, std::string_view text) {
  auto& at = at_.choices[index];
  const auto& had = had_.choices[index];
  const std::uint64_t lacking = had.text_bytes - std::min(had.text_bytes, at.text_bytes);
  const std::size_t known = std::min<std::uint64_t>(lacking, text.size());
  digests_[index].add(text.substr(0, known));
  if (known > 0 && known == lacking && digests_[index].folded() != had.text_digest) has_diverged_ = true;
  digests_[index].add(text.substr(known));
  at.text_bytes += text.size();
  at.text_digest = digests_[index].folded();
  return text.substr(known);
}

/// The reports that are new to the client.
std::span<const token_report> event_writer::take_tokens(std::uint32_t index, std::span<const token_report> reports) {
  auto& at = at_.choices[index];
  const std::uint64_t had = had_.choices[index].tokens_count;
  const std::size_t known = std::min<std::uint64_t>(had - std::min(had, at.tokens_count), reports.size());
  for (const auto& one : reports.first(known)) {
    text_offsets_[index] += static_cast<std::int64_t>(characters_of(one.chosen.bytes));
  }
  at.tokens_count += reports.size();
  return reports.subspan(known);
}

std::string event_writer::echo(std::uint32_t index, std::string_view text, const prompt_report& prompt,
                               std::size_t first, std::size_t end) {
  if (first == 0) text_offsets_[index] = first_offset(prompt);
  const auto rest = take_text(index, text);
  const auto reports = take_tokens(index, std::span(prompt.tokens).subspan(first, end - first));
  if (has_diverged_ || (rest.empty() && reports.empty())) return {};
  json content;
  content["text"] = rest;
  content["logprobs"] = completion_logprobs(head_, reports, text_offsets_[index]);
  return event(index, std::move(content), std::nullopt);
}

std::string event_writer::delta(std::uint32_t index, std::string_view text, const std::vector<token_report>* tokens,
                                std::string_view reasoning) {
  // Reasoning and text count as one text, whichever part of it the client has.
  const auto thought = take_text(index, reasoning);
  const auto rest = take_text(index, text);
  std::span<const token_report> reports;
  if (tokens) reports = take_tokens(index, *tokens);
  if (has_diverged_ || (rest.empty() && thought.empty() && reports.empty())) return {};
  if (head_.from == endpoint::native) return as_event(native_part(head_, index, rest, reports));
  json content;
  const bool has_logprobs = tokens != nullptr && head_.shows_logprobs;
  if (is_chat_shaped(head_.from)) {
    json part = json::object();
    if (!thought.empty()) part["reasoning_content"] = thought;
    if (!rest.empty() || thought.empty()) part["content"] = rest;
    content["delta"] = std::move(part);
    content["logprobs"] = has_logprobs ? chat_logprobs(head_, reports) : json(nullptr);
  } else {
    content["text"] = rest;
    content["logprobs"] = has_logprobs ? completion_logprobs(head_, reports, text_offsets_[index]) : json(nullptr);
  }
  if (head_.shows_ids) content["token_ids"] = token_ids(reports);
  return event(index, std::move(content), std::nullopt);
}

std::string event_writer::event_of(std::uint32_t index, json delta) const {
  json content;
  content["delta"] = std::move(delta);
  content["logprobs"] = nullptr;
  return event(index, std::move(content), std::nullopt);
}

std::string event_writer::call(std::uint32_t index, std::uint32_t number, const tools::tool_call& begun,
                               bool is_legacy) {
  // The call is one event, so a client has all of it or nothing.
  const auto rest = take_text(index, begun.name);
  if (has_diverged_ || rest.empty()) return {};
  if (is_legacy) return event_of(index, json{{"function_call", function_object(begun.name, "")}});
  json entry;
  entry["index"] = number;
  entry["id"] = begun.id;
  entry["type"] = "function";
  entry["function"] = function_object(begun.name, "");
  return event_of(index, json{{"tool_calls", json::array({std::move(entry)})}});
}

std::string event_writer::arguments(std::uint32_t index, std::uint32_t number, std::string_view text, bool is_legacy) {
  const auto rest = take_text(index, text);
  if (has_diverged_ || rest.empty()) return {};
  if (is_legacy) return event_of(index, json{{"function_call", function_object({}, rest)}});
  json entry;
  entry["index"] = number;
  entry["function"] = function_object({}, rest);
  return event_of(index, json{{"tool_calls", json::array({std::move(entry)})}});
}

/// Returns whether the client still needs the event.
bool event_writer::note_finish(std::uint32_t index) {
  auto& at = at_.choices[index];
  const auto& had = had_.choices[index];
  has_diverged_ = has_diverged_ || at.text_bytes < had.text_bytes || at.tokens_count < had.tokens_count;
  at.is_over = true;
  return !has_diverged_ && !had.is_over;
}

std::string event_writer::finish_native(const choice& one) {
  if (!note_finish(one.index)) return {};
  return as_event(pick_fields(native_answer(head_, one), head_.fields));
}

std::string event_writer::finish(std::uint32_t index, finish_reason why, const program_report* program) {
  if (!note_finish(index)) return {};
  json content;
  if (is_chat_shaped(head_.from)) {
    content["delta"] = json::object();
  } else {
    content["text"] = "";
  }
  content["logprobs"] = nullptr;
  if (program) content["redline"] = program_object(*program);
  return event(index, std::move(content), why);
}

std::string event_writer::usage(const usage_report& report) {
  if (!include_usage_ || had_.usage_sent) return {};
  at_.usage_sent = true;
  json object = chunk();
  object["usage"] = usage_object(report);
  return as_event(object);
}

std::string model_list_body(std::span<const model_card> cards) {
  json list = json::array();
  for (const auto& card : cards) list.push_back(card_object(card));
  json object;
  // The same list as Ollama and llama.cpp write it, which some clients read instead.
  json models = json::array();
  for (const auto& card : cards) {
    models.push_back(json{{"name", card.id},
                          {"model", card.id},
                          {"type", "model"},
                          {"capabilities", json::array({"completion"})},
                          {"details", json{{"format", "gguf"}}}});
  }
  object["object"] = "list";
  object["data"] = std::move(list);
  object["models"] = std::move(models);
  return dump_json(object);
}

std::string props_body(const server_props& of) {
  json settings;
  settings["n_ctx"] = of.context_tokens_max;
  settings["params"] = of.settings;
  json object;
  object["default_generation_settings"] = std::move(settings);
  object["total_slots"] = of.slots_count;
  object["model_alias"] = of.model;
  object["model_path"] = of.model;
  object["modalities"] = json{{"vision", false}, {"audio", false}};
  object["chat_template"] = of.chat_template;
  object["chat_template_caps"] =
      json{{"supports_tools", of.chat_template.find("tools") != std::string::npos},
           {"supports_tool_calls", of.chat_template.find("tool_calls") != std::string::npos}};
  object["bos_token"] = of.bos;
  object["eos_token"] = of.eos;
  object["build_info"] = of.build;
  object["is_sleeping"] = false;
  return dump_json(object);
}

std::string model_body(const model_card& card) { return dump_json(card_object(card)); }

std::string tokenize_body(const tokenize_request& request, std::span<const token> tokens,
                          std::span<const std::string> pieces, std::uint32_t context_tokens_max) {
  REDLINE_ASSERT(!request.with_pieces || pieces.size() == tokens.size(), "a piece per token");
  json object;
  if (request.is_vllm_shape) {
    object["count"] = tokens.size();
    object["max_model_len"] = context_tokens_max;
    object["tokens"] = tokens;
    json strings = json::array();
    for (const auto& piece : pieces) strings.push_back(piece);
    object["token_strs"] = request.with_pieces ? std::move(strings) : json(nullptr);
    return dump_json(object);
  }
  json list = json::array();
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!request.with_pieces) {
      list.push_back(tokens[i]);
      continue;
    }
    json entry;
    entry["id"] = tokens[i];
    entry["piece"] = is_valid_utf8(pieces[i]) ? json(pieces[i]) : byte_array(pieces[i]);
    list.push_back(std::move(entry));
  }
  object["tokens"] = std::move(list);
  return dump_json(object);
}

std::string detokenize_body(std::string_view text) {
  json object;
  object["content"] = text;
  object["prompt"] = text;
  return dump_json(object);
}

std::string template_body(std::string_view prompt) {
  json object;
  object["prompt"] = prompt;
  return dump_json(object);
}

std::string rendered_body(endpoint from, const std::string& id, const std::string& model, const std::string& cache_salt,
                          std::span<const std::vector<token>> prompts) {
  json list = json::array();
  for (const auto& tokens : prompts) {
    json one;
    one["request_id"] = id;
    one["model"] = model;
    one["token_ids"] = tokens;
    one["features"] = nullptr;  // for images and the like
    one["cache_salt"] = null_if_empty(cache_salt);
    list.push_back(std::move(one));
  }
  return dump_json(from == endpoint::chat ? list[0] : list);
}

std::string version_body(std::string_view version) { return dump_json(json{{"version", version}}); }

json kv_object(const kv_report& kv) {
  json object;
  object["exact"] = kv.exact;
  object["shifted"] = kv.shifted;
  object["stale"] = kv.stale;
  return object;
}

std::string health_body() { return "{\"status\":\"ok\"}"; }

}  // namespace redline::api
