#include "actors/http/shapes/openai/native_shape.hpp"

#include <algorithm>
#include <cmath>

#include "actors/http/shapes/openai/response.hpp"

namespace redline::api {
namespace {

double per_token(double ms, std::uint64_t count) { return count == 0 ? 0 : ms / static_cast<double>(count); }
double per_second(double ms, std::uint64_t count) { return ms <= 0 ? 0 : static_cast<double>(count) * 1000 / ms; }

json timings_object(const usage_report& usage) {
  const std::uint64_t prompt_n = usage.prompt_tokens - std::min(usage.prompt_tokens, usage.cached_tokens);
  const double prompt_ms = usage.first_token_seconds * 1000;
  const double predicted_ms = std::max(0.0, usage.seconds - usage.first_token_seconds) * 1000;
  json object;
  object["cache_n"] = usage.cached_tokens;
  object["prompt_n"] = prompt_n;
  object["prompt_ms"] = prompt_ms;
  object["prompt_per_token_ms"] = per_token(prompt_ms, prompt_n);
  object["prompt_per_second"] = per_second(prompt_ms, prompt_n);
  object["predicted_n"] = usage.completion_tokens;
  object["predicted_ms"] = predicted_ms;
  object["predicted_per_token_ms"] = per_token(predicted_ms, usage.completion_tokens);
  object["predicted_per_second"] = per_second(predicted_ms, usage.completion_tokens);
  if (usage.drafted > 0) {
    object["draft_n"] = usage.drafted;
    object["draft_n_accepted"] = usage.accepted;
  }
  return object;
}

std::string_view stop_type_of(const choice& one) {
  if (one.finish == finish_reason::length) return "limit";
  return one.stop_text.empty() ? "eos" : "word";
}

/// True if the answer ends at the end of the context, or its beginning has left the window.
bool is_truncated(const response_head& head, const choice& one) {
  const std::uint64_t count = std::uint64_t{one.cost.prompt_tokens} + one.cost.completion_tokens;
  const bool is_full = one.finish == finish_reason::length && head.context_tokens_max > 0;
  return one.cost.evictions > 0 || (is_full && count >= head.context_tokens_max);
}

json probability_object(const response_head& head, const token_report& report) {
  json object = token_logprobs(head, std::span(&report, 1))[0];
  object["id"] = report.id;
  for (std::size_t i = 0; i < report.top.size(); ++i) object["top_logprobs"][i]["id"] = report.top[i].id;
  return object;
}

/// The float as it was written, such as 0.95 rather than 0.949999988.
double shown(float value) { return std::round(static_cast<double>(value) * 1e6) / 1e6; }

json ids_of(std::span<const token_report> tokens) {
  json ids = json::array();
  for (const auto& t : tokens) ids.push_back(t.id);
  return ids;
}

}  // namespace

json native_part(const response_head& head, std::uint32_t index, std::string_view text,
                 std::span<const token_report> tokens) {
  json object;
  object["index"] = index;
  object["content"] = text;
  object["tokens"] = head.shows_ids ? ids_of(tokens) : json::array();
  object["stop"] = false;
  object["id_slot"] = -1;
  if (!head.shows_logprobs || tokens.empty()) return object;
  json list = json::array();
  for (const auto& report : tokens) list.push_back(probability_object(head, report));
  object["completion_probabilities"] = std::move(list);
  return object;
}

json native_answer(const response_head& head, const choice& one) {
  std::span<const token_report> tokens;
  if (one.tokens) tokens = *one.tokens;
  json object = native_part(head, one.index, one.text, tokens);
  object["stop"] = true;
  object["model"] = head.model;
  object["tokens_predicted"] = one.cost.completion_tokens;
  object["tokens_evaluated"] = one.cost.prompt_tokens;
  object["tokens_cached"] = one.cost.cached_tokens;
  object["has_new_line"] = one.text.find('\n') != std::string::npos;
  if (head.settings) object["generation_settings"] = *head.settings;
  if (one.prompt_text) object["prompt"] = *one.prompt_text;
  object["truncated"] = is_truncated(head, one);
  object["stop_type"] = stop_type_of(one);
  object["stopping_word"] = one.stop_text;
  object["timings"] = timings_object(one.cost);
  if (!one.cost.ignored.empty()) object["redline"] = json{{"ignored", one.cost.ignored}};
  return object;
}

json native_settings(const generation_request& of) {
  const auto& s = of.sampling;
  json biases = json::array();
  for (const auto& [id, bias] : s.logit_bias) {
    biases.push_back(json{{"token", id}, {"bias", std::isfinite(bias) ? json(shown(bias)) : json(false)}});
  }
  const std::int64_t most = of.tokens_max ? std::int64_t{*of.tokens_max} : -1;
  json object;
  object["seed"] = s.seed;
  object["temperature"] = shown(s.temperature);
  object["top_k"] = s.top_k;
  object["top_p"] = shown(s.top_p);
  object["min_p"] = shown(s.min_p);
  object["repeat_penalty"] = shown(s.repetition_penalty);
  object["presence_penalty"] = shown(s.presence_penalty);
  object["frequency_penalty"] = shown(s.frequency_penalty);
  object["logit_bias"] = std::move(biases);
  object["stop"] = of.stop;
  object["max_tokens"] = most;
  object["n_predict"] = most;
  object["ignore_eos"] = of.ignore_eos;
  object["n_probs"] = of.logprobs ? of.top_logprobs : 0;
  object["n_cmpl"] = of.n;
  object["stream"] = of.stream;
  return object;
}

std::string slots_body(std::vector<slot_report> running, std::size_t places, std::uint32_t context_tokens_max) {
  std::ranges::sort(running, {}, [](const slot_report& one) { return std::pair(!one.has_text, one.task); });
  running.resize(std::min({running.size(), places, slots_shown_max}));
  const std::size_t free_count = places - std::min(places, running.size());
  json list = json::array();
  for (std::size_t i = 0; i < running.size() + std::min(free_count, idle_slots_shown_max); ++i) {
    json slot;
    slot["id"] = i;
    slot["n_ctx"] = context_tokens_max;
    slot["speculative"] = true;
    slot["is_processing"] = i < running.size();
    if (i < running.size()) slot["id_task"] = running[i].task;
    if (i < running.size() && running[i].details) {
      const auto& d = *running[i].details;
      const std::int64_t most = d.tokens_max ? std::int64_t{*d.tokens_max} : -1;
      slot["params"] = json{{"n_predict", most}, {"temperature", d.temperature}, {"stream", d.stream}};
      json next;
      next["has_next_token"] = true;
      next["n_decoded"] = d.tokens_count;
      next["n_remain"] = most < 0 ? -1 : std::max<std::int64_t>(0, most - d.tokens_count);
      slot["next_token"] = json::array({std::move(next)});
    }
    list.push_back(std::move(slot));
  }
  return dump_json(list);
}

json pick_fields(json answer, std::span<const std::string> paths) {
  if (paths.empty()) return answer;
  json picked = json::object();
  for (const auto& path : paths) {
    const json* at = &answer;
    for (std::size_t begin = 0; at != nullptr && begin <= path.size();) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      const auto member = at->is_object() ? at->find(path.substr(begin, end - begin)) : at->end();
      at = at->is_object() && member != at->end() ? &*member : nullptr;
      begin = end + 1;
    }
    if (at != nullptr) picked[path] = *at;
  }
  return picked;
}

}  // namespace redline::api
