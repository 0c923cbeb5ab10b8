#include "bench/studies/edits/edit_report.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "bench/studies/common/statistics.hpp"

namespace redline::studies {
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
    s.rounds += r.steps.size();
    s.least_rounds += r.least_rounds;
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

double method_summary::refused_share() const {
  return ratio(static_cast<double>(drafted - accepted), static_cast<double>(drafted));
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
  json out = {{"edit", r.edit},
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
              {"least_rounds", r.least_rounds},
              {"identical", r.identical},
              {"as_wanted", r.as_wanted},
              {"steps", steps}};
  if (!r.timeline.empty()) out["timeline"] = json_of(r.timeline);
  return out;
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
          {"refused_share", s.refused_share()},
          {"rounds", s.rounds},
          {"least_rounds", s.least_rounds},
          {"tokens", s.tokens},
          {"as_wanted", s.as_wanted},
          {"identical", s.identical}};
}

namespace {

/// Returns whether the fields that json_of writes exist and have the right types.
bool is_run(const json& r) {
  const auto has = [&](const char* field, bool (json::*is)() const noexcept) {
    return r.contains(field) && (r[field].*is)();
  };
  for (const char* field : {"edit", "method"}) {
    if (!r.is_object() || !has(field, &json::is_string)) return false;
  }
  for (const char* field : {"edit_ratio", "characters", "prompt_tokens", "tokens", "seconds", "first_token_seconds",
                            "target_passes", "draft_passes", "drafted", "accepted"}) {
    if (!has(field, &json::is_number)) return false;
  }
  const auto is_step = [](const json& s) {
    return s.is_array() && s.size() == 2 && s[0].is_number_unsigned() && s[1].is_number_unsigned();
  };
  // Files from before 2026-11-26 lack it.
  if (r.contains("least_rounds") && !has("least_rounds", &json::is_number)) return false;
  return has("identical", &json::is_boolean) && has("as_wanted", &json::is_boolean) && has("steps", &json::is_array) &&
         std::all_of(r["steps"].begin(), r["steps"].end(), is_step);
}

edit_run run_of(const json& r) {
  edit_run run{.edit = r["edit"],
               .method = r["method"],
               .edit_ratio = r["edit_ratio"],
               .characters = r["characters"],
               .prompt_tokens = r["prompt_tokens"],
               .tokens = r["tokens"],
               .seconds = r["seconds"],
               .first_token_seconds = r["first_token_seconds"],
               .target_passes = r["target_passes"],
               .draft_passes = r["draft_passes"],
               .drafted = r["drafted"],
               .accepted = r["accepted"],
               .least_rounds = r.value("least_rounds", 0U),
               .identical = r["identical"],
               .as_wanted = r["as_wanted"]};
  for (const json& s : r["steps"]) run.steps.push_back({s[0], s[1]});
  return run;
}

/// What was made right and to what degree, for the name of a method that uses it.
std::string rightness_of(const json& root, const char* field, const char* what,
                         std::initializer_list<const char*> users, const std::string& method) {
  if (!root.contains(field) || !root[field].is_number()) return {};
  const bool uses = std::any_of(users.begin(), users.end(), [&](const char* user) { return method.starts_with(user); });
  if (!uses) return {};
  return ", " + std::string(what) + std::to_string(std::lround(100 * root[field].get<double>())) + " % right";
}

}  // namespace

result<std::vector<edit_run>> parse_edit_runs(const std::string& text, const std::string& name) {
  const json root = json::parse(text, nullptr, false);
  if (!root.is_object() || !root.contains("runs") || !root["runs"].is_array()) {
    return failure{errc::file_malformed,
                   name + ": expected what 'redline bench edit --json' writes, found no list \"runs\""};
  }
  std::vector<edit_run> runs;
  for (const json& entry : root["runs"]) {
    if (!is_run(entry)) {
      return failure{errc::file_malformed,
                     name + ", runs[" + std::to_string(runs.size()) +
                         "]: expected what 'redline bench edit --json' writes, found other fields"};
    }
    edit_run run = run_of(entry);
    run.method += rightness_of(root, "draft_right", "draft ", {"assisted", "blazedit", "auto"}, entry["method"]) +
                  rightness_of(root, "prediction_right", "", {"prediction", "auto"}, entry["method"]);
    runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace redline::studies
