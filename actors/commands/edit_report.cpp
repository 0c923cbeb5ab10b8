#include "actors/commands/edit_report.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "actors/commands/statistics.hpp"

namespace redline::actors::commands {
namespace {

using json = nlohmann::ordered_json;

std::vector<std::string> methods_of(const std::vector<edit_run>& runs) {
  std::vector<std::string> names;
  for (const edit_run& r : runs) {
    if (std::find(names.begin(), names.end(), r.method) == names.end()) names.push_back(r.method);
  }
  return names;
}

method_summary summary_of(const std::string& method, const std::vector<edit_run>& runs) {
  method_summary s{.method = method};
  std::vector<double> rates;
  std::vector<double> decoded;
  for (const edit_run& r : runs) {
    if (r.method != method) continue;
    ++s.edits;
    rates.push_back(r.characters_per_second());
    decoded.push_back(r.decoded_per_second());
    s.target_passes += r.target_passes;
    s.draft_passes += r.draft_passes;
    s.drafted += r.drafted;
    s.accepted += r.accepted;
    s.tokens += r.tokens;
    if (r.as_wanted) ++s.as_wanted;
    s.identical = s.identical && r.identical;
  }
  s.mean_rate = mean(rates);
  s.worst_decile_rate = percentile(rates, 10);
  s.decoded_rate = mean(decoded);
  return s;
}

}  // namespace

double edit_run::characters_per_second() const { return ratio(static_cast<double>(characters), seconds); }

double edit_run::decoded_per_second() const {
  if (tokens < 2) return 0;
  const double share = static_cast<double>(tokens - 1) / tokens;  // the first token came with the prompt
  return ratio(static_cast<double>(characters) * share, seconds - first_token_seconds);
}

double method_summary::accepted_per_pass() const {
  return ratio(static_cast<double>(accepted), static_cast<double>(target_passes));
}

std::vector<method_summary> summarise(const std::vector<edit_run>& runs) {
  std::vector<method_summary> all;
  for (const std::string& method : methods_of(runs)) all.push_back(summary_of(method, runs));
  const auto regular = std::find_if(all.begin(), all.end(), [](const auto& s) { return s.method == "regular"; });
  if (regular == all.end()) return all;
  const method_summary base = *regular;
  for (method_summary& s : all) {
    s.mean_speed_up = ratio(s.mean_rate, base.mean_rate);
    s.worst_decile_speed_up = ratio(s.worst_decile_rate, base.worst_decile_rate);
    s.decoded_speed_up = ratio(s.decoded_rate, base.decoded_rate);
  }
  return all;
}

json json_of(const edit_run& r) {
  json steps = json::array();
  for (const auto& s : r.steps) steps.push_back({s.drafted, s.accepted});
  return {{"edit", r.edit},
          {"method", r.method},
          {"edit_ratio", r.edit_ratio},
          {"characters", r.characters},
          {"prompt_tokens", r.prompt_tokens},
          {"tokens", r.tokens},
          {"seconds", r.seconds},
          {"first_token_seconds", r.first_token_seconds},
          {"characters_per_second", r.characters_per_second()},
          {"decoded_characters_per_second", r.decoded_per_second()},
          {"target_passes", r.target_passes},
          {"draft_passes", r.draft_passes},
          {"drafted", r.drafted},
          {"accepted", r.accepted},
          {"identical", r.identical},
          {"as_wanted", r.as_wanted},
          {"steps", steps}};
}

json json_of(const method_summary& s) {
  return {{"method", s.method},
          {"edits", s.edits},
          {"characters_per_second", s.mean_rate},
          {"characters_per_second_worst_decile", s.worst_decile_rate},
          {"decoded_characters_per_second", s.decoded_rate},
          {"speed_up", s.mean_speed_up},
          {"speed_up_worst_decile", s.worst_decile_speed_up},
          {"decoded_speed_up", s.decoded_speed_up},
          {"accepted_per_pass", s.accepted_per_pass()},
          {"target_passes", s.target_passes},
          {"draft_passes", s.draft_passes},
          {"drafted", s.drafted},
          {"accepted", s.accepted},
          {"tokens", s.tokens},
          {"as_wanted", s.as_wanted},
          {"identical", s.identical}};
}

plot speed_plot(const std::vector<edit_run>& runs, const std::string& note) {
  plot p{.title = "Characters per second by edit ratio",
         .note = note,
         .x_label = "edit ratio: changed characters / characters",
         .y_label = "characters per second, prompt included"};
  for (const std::string& method : methods_of(runs)) {
    plot_series& s = p.series.emplace_back(plot_series{.name = method, .points = {}});
    for (const edit_run& r : runs) {
      if (r.method == method) s.points.emplace_back(r.edit_ratio, r.characters_per_second());
    }
  }
  return p;
}

plot steps_plot(const edit_run& run, const std::string& note) {
  plot p{.title = run.method + " on " + run.edit + ": tokens per pass of the target model",
         .note = note,
         .x_label = "pass of the target model",
         .y_label = "draft tokens",
         .drawn_as = plot::mark::bars,
         .series = {{"proposed", {}}, {"accepted", {}}}};
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const auto at = static_cast<double>(i + 1);
    p.series[0].points.emplace_back(at, run.steps[i].drafted);
    p.series[1].points.emplace_back(at, run.steps[i].accepted);
  }
  return p;
}

const edit_run* typical_run(const std::vector<edit_run>& runs) {
  const method_summary* best = nullptr;
  const auto all = summarise(runs);
  for (const method_summary& s : all) {
    if (s.drafted > 0 && (best == nullptr || s.mean_rate > best->mean_rate)) best = &s;
  }
  if (best == nullptr) return nullptr;
  std::vector<const edit_run*> mine;
  for (const edit_run& r : runs) {
    if (r.method == best->method) mine.push_back(&r);
  }
  std::sort(mine.begin(), mine.end(), [](const auto* a, const auto* b) { return a->edit_ratio < b->edit_ratio; });
  return mine[mine.size() / 2];
}

}  // namespace redline::actors::commands
