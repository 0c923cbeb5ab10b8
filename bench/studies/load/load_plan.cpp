#include "bench/studies/load/load_plan.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

namespace redline::studies {
namespace {

constexpr std::uint32_t completion_tokens = 32;
constexpr std::size_t completion_prompt_bytes = 400;

/// A number in [0, 1). Unlike the standard distributions, it is the same everywhere.
double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

/// The start of a file, cut at the end of a line if there is one.
std::string opening_of(const std::string& file) {
  std::string start = file.substr(0, completion_prompt_bytes);
  const auto line_end = start.rfind('\n');
  if (line_end != std::string::npos) return start.substr(0, line_end + 1);
  // The text is not cut within a character.
  while (!start.empty() && start.size() < file.size() && (file[start.size()] & 0xc0) == 0x80) start.pop_back();
  return start.empty() ? "\n" : start;
}

}  // namespace

std::string load_level::name() const {
  char text[48];
  if (is_trace) {
    std::snprintf(text, sizeof text, amount == 1 ? "trace" : "trace x%g", amount);
    return text;
  }
  std::snprintf(text, sizeof text, is_rate ? "%g/s" : "%g clients", amount);
  return text;
}

std::vector<planned_request> plan_requests(const load_level& level, std::size_t count, std::uint64_t seed,
                                           const std::vector<known_edit>& edits, const load_mix& mix) {
  std::mt19937_64 random(seed), thoughts(~seed);
  std::vector<planned_request> plan;
  double due = 0;
  for (std::size_t i = 0; i < count; ++i) {
    planned_request r;
    const std::size_t conversation = i / mix.turns, turn = i % mix.turns;
    // All three are drawn every time, so that levels differ only in their times.
    const double wait = -std::log1p(-uniform(random));
    r.edit = std::min(static_cast<std::size_t>(uniform(random) * static_cast<double>(edits.size())), edits.size() - 1);
    r.is_edit = uniform(random) >= mix.completions;
    if (level.is_rate && turn == 0) due += wait / level.amount;
    if (level.is_rate) r.due = due;
    r.item = (r.is_edit ? "edit " : "completion ") + edits[r.edit].id;
    if (!mix.tenants.empty()) r.tenant = mix.tenants[conversation % mix.tenants.size()];
    if (mix.turns > 1) {
      r.session = std::to_string(seed) + "." + std::to_string(conversation);
      r.think = turn == 0 ? 0 : -std::log1p(-uniform(thoughts)) * mix.think_seconds;
      // Only the same question after the same earlier turns gets the same answer.
      if (turn > 0 && r.is_edit) r.item = plan.back().item + ", " + r.item;
    }
    plan.push_back(std::move(r));
  }
  return plan;
}

http_question question_of(const planned_request& planned, const std::vector<known_edit>& edits, const load_mix& mix,
                          const std::string& method, const std::vector<past_turn>& before) {
  using json = nlohmann::ordered_json;
  if (planned.given) {
    json body = json::parse(planned.given->body);
    body["stream"] = true;
    body["stream_options"] = {{"include_usage", true}};
    body["redline"] = {{"speculation", {{"method", method}}}};
    return {planned.given->path, body.dump()};
  }
  const edit_task& task = edits[planned.edit].task;
  json body = {{"temperature", 0},
               {"stream", true},
               {"stream_options", {{"include_usage", true}}},
               {"redline", {{"speculation", {{"method", method}}}}}};
  if (!planned.is_edit) {
    body["prompt"] = opening_of(task.before);
    body["max_tokens"] = completion_tokens;
    return {"/v1/completions", body.dump()};
  }
  body["messages"] = json::array();
  for (const past_turn& turn : before) {
    body["messages"].push_back({{"role", "user"}, {"content", message_of(edits[turn.edit].task)}});
    body["messages"].push_back({{"role", "assistant"}, {"content", turn.answer}});
  }
  body["messages"].push_back({{"role", "user"}, {"content", message_of(task)}});
  body["max_tokens"] = mix.tokens_max;
  if (mix.predict) body["prediction"] = {{"type", "content"}, {"content", task.before}};
  return {"/v1/chat/completions", body.dump()};
}

result<double> find_highest_rate(double first, const std::function<result<bool>(double)>& holds) {
  constexpr int doublings_max = 16, halvings_max = 4;
  double good = 0, bad = 0, rate = first;
  for (int doublings = 0, halvings = 0; doublings <= doublings_max && halvings <= halvings_max;) {
    REDLINE_TRY_ASSIGN(const bool does, holds(rate));
    (does ? good : bad) = rate;
    ++(bad > 0 ? halvings : doublings);
    rate = bad == 0 ? 2 * rate : (good + bad) / 2;
  }
  return good;
}

}  // namespace redline::studies
