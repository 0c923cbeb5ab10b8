#include "bench/studies/load/load_report.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "bench/studies/common/statistics.hpp"

namespace redline::studies {
namespace {

using json = nlohmann::ordered_json;

/// Reads the fields of one entry and records the first error.
class entry_reader {
 public:
  entry_reader(const json& entry, std::string where) : entry_(entry), where_(std::move(where)) {
    if (!entry_.is_object()) refuse("", "an object", entry_.type_name());
  }

  void read(const char* field, std::string& into) {
    const json* v = find(field);
    if (v == nullptr) return;
    if (v->is_string())
      into = v->get<std::string>();
    else
      refuse(field, "a string", v->type_name());
  }
  void read(const char* field, double& into) {
    const json* v = find(field);
    if (v == nullptr) return;
    if (v->is_number() && std::abs(v->get<double>()) <= 1e15)
      into = v->get<double>();
    else
      refuse(field, "a number up to 1e15", v->type_name());
  }
  void read(const char* field, std::uint64_t& into) {
    const json* v = find(field);
    if (v == nullptr) return;
    if (v->is_number_unsigned() && v->get<std::uint64_t>() <= std::uint64_t{1} << 40)
      into = v->get<std::uint64_t>();
    else
      refuse(field, "a count up to 2^40", v->type_name());
  }
  void read(const char* field, std::map<std::string, token_count>& into) {
    const json* v = find(field);
    if (v == nullptr) return;
    if (!v->is_object()) return refuse(field, "an object", v->type_name());
    for (const auto& [name, counts] : v->items()) {
      entry_reader inner(counts, where_ + ", " + field + ", " + name);
      inner.read("drafted", into[name].drafted);
      inner.read("accepted", into[name].accepted);
      if (inner.problem_ && !problem_) problem_ = inner.problem_;
    }
  }
  /// Reads a field that older recordings lack.
  template<class T>
  void read_if_there(const char* field, T& into) {
    if (entry_.is_object() && entry_.contains(field)) read(field, into);
  }
  [[nodiscard]] const std::optional<failure>& problem() const { return problem_; }

 private:
  const json* find(const char* field) {
    if (problem_) return nullptr;
    const auto it = entry_.find(field);
    if (it != entry_.end()) return &*it;
    refuse(field, "a value", "none");
    return nullptr;
  }
  void refuse(const std::string& field, const std::string& wanted, const std::string& found) {
    if (problem_) return;
    problem_ = failure{errc::file_malformed, where_ + (field.empty() ? "" : ", \"" + field + "\"") + ": expected " +
                                                 wanted + ", found " + found};
  }

  const json& entry_;
  std::string where_;
  std::optional<failure> problem_;
};

json json_of(const std::map<std::string, token_count>& sources) {
  json out = json::object();
  for (const auto& [name, n] : sources) out[name] = {{"drafted", n.drafted}, {"accepted", n.accepted}};
  return out;
}

result<load_row> parse_row(const json& entry, const std::string& where) {
  load_row r;
  entry_reader fields(entry, where);
  fields.read("level", r.level);
  fields.read("method", r.method);
  fields.read("item", r.item);
  fields.read("sent", r.sent);
  fields.read("first_ms", r.first_ms);
  fields.read("total_ms", r.total_ms);
  fields.read("characters", r.characters);
  fields.read("tokens", r.tokens);
  fields.read("target_passes", r.target_passes);
  fields.read("drafted", r.drafts.drafted);
  fields.read("accepted", r.drafts.accepted);
  fields.read("sources", r.sources);
  fields.read("answer", r.answer);
  fields.read("error", r.error);
  fields.read_if_there("error_kind", r.error_kind);
  fields.read_if_there("tenant", r.tenant);
  if (fields.problem()) return *fields.problem();
  return r;
}

result<load_window> parse_window(const json& entry, const std::string& where) {
  load_window w;
  entry_reader fields(entry, where);
  fields.read("level", w.level);
  fields.read("method", w.method);
  fields.read("began", w.began);
  fields.read("ended", w.ended);
  fields.read_if_there("passes", w.done.passes);
  fields.read_if_there("rows", w.done.rows);
  fields.read_if_there("busy_seconds", w.done.busy_seconds);
  if (fields.problem()) return *fields.problem();
  return w;
}

load_summary::percentiles percentiles_of(const std::vector<double>& values) {
  return {percentile(values, 50), percentile(values, 99)};
}

/// Summarizes rows of one level and method.
std::map<std::string, tenant_summary> summarise_tenants(const std::vector<const load_row*>& rows) {
  struct sums {
    std::vector<double> first, speed;
    tenant_summary all;
  };
  std::map<std::string, sums> by_tenant;
  for (const load_row* r : rows) {
    if (r->tenant.empty()) continue;
    sums& s = by_tenant[r->tenant];
    ++s.all.requests;
    if (!r->error.empty()) {
      ++s.all.errors;
      continue;
    }
    s.first.push_back(r->first_ms);
    s.speed.push_back(ratio(static_cast<double>(r->tokens), r->total_ms / 1e3));
  }
  std::map<std::string, tenant_summary> out;
  for (auto& [tenant, s] : by_tenant) {
    s.all.first_ms_p50 = percentile(s.first, 50);
    s.all.first_ms_p99 = percentile(s.first, 99);
    s.all.tokens_per_second = mean(s.speed);
    out[tenant] = s.all;
  }
  return out;
}

/// Source: "A Quantitative Measure of Fairness", Jain, Chiu and Hawe, 1984.
double fairness_of(const std::map<std::string, tenant_summary>& tenants) {
  double sum = 0, squares = 0;
  for (const auto& [name, t] : tenants) {
    sum += t.tokens_per_second;
    squares += t.tokens_per_second * t.tokens_per_second;
  }
  return squares == 0 ? 1 : sum * sum / (static_cast<double>(tenants.size()) * squares);
}

load_summary summary_of(const std::string& level, const std::string& method, const load_record& record,
                        const latency_target& target) {
  load_summary s{.level = level, .method = method};
  std::vector<std::pair<double, double>> windows;
  server_counts done;
  for (const load_window& w : record.windows) {
    if (w.level != level || w.method != method) continue;
    windows.emplace_back(w.began, w.ended);
    done = {done.passes + w.done.passes, done.rows + w.done.rows, done.busy_seconds + w.done.busy_seconds};
  }
  s.seconds = covered(std::move(windows));
  s.rows_per_pass = ratio(done.rows, done.passes);
  s.busy_share = ratio(done.busy_seconds, s.seconds);
  std::vector<double> first, per_token, total;
  double characters = 0, tokens = 0, passes = 0, accepted = 0, good = 0;
  std::map<std::string, double> by_source;
  std::vector<const load_row*> rows;
  for (const load_row& r : record.rows) {
    if (r.level != level || r.method != method) continue;
    rows.push_back(&r);
    ++s.requests;
    if (!r.error.empty()) {
      ++s.errors;
      ++s.errors_by_kind[r.error_kind.empty() ? "other" : r.error_kind];
      continue;
    }
    first.push_back(r.first_ms);
    total.push_back(r.total_ms);
    if (r.tokens > 1) per_token.push_back(r.per_token_ms());
    if (r.first_ms <= target.first_ms && r.per_token_ms() <= target.per_token_ms) ++good;
    characters += static_cast<double>(r.characters);
    tokens += static_cast<double>(r.tokens);
    passes += static_cast<double>(r.target_passes);
    accepted += static_cast<double>(r.drafts.accepted);
    for (const auto& [name, n] : r.sources) by_source[name] += static_cast<double>(n.accepted);
  }
  s.first_ms = percentiles_of(first);
  s.per_token_ms = percentiles_of(per_token);
  s.total_ms = percentiles_of(total);
  s.characters_per_second = ratio(characters, s.seconds);
  s.tokens_per_second = ratio(tokens, s.seconds);
  s.goodput = ratio(good, s.seconds);
  s.good_share = ratio(good, static_cast<double>(s.requests));
  s.accepted_per_pass = ratio(accepted, passes);
  for (const auto& [name, n] : by_source) s.accepted_per_pass_by_source[name] = ratio(n, passes);
  s.tenants = summarise_tenants(rows);
  s.fairness = fairness_of(s.tenants);
  return s;
}

}  // namespace

double load_row::per_token_ms() const {
  return tokens > 1 ? (total_ms - first_ms) / static_cast<double>(tokens - 1) : 0;
}

result<void> load_record::add(load_record other) {
  for (const load_window& w : other.windows) {
    if (std::find(windows.begin(), windows.end(), w) == windows.end()) continue;
    return failure{errc::invalid_argument, "expected different recordings, found twice " + w.level + " by " + w.method};
  }
  windows.insert(windows.end(), other.windows.begin(), other.windows.end());
  rows.insert(rows.end(), std::make_move_iterator(other.rows.begin()), std::make_move_iterator(other.rows.end()));
  return {};
}

void cut_warm_up(load_record& record, double seconds) {
  std::erase_if(record.rows, [&](const load_row& row) {
    return std::any_of(record.windows.begin(), record.windows.end(), [&](const load_window& w) {
      return w.level == row.level && w.method == row.method && row.sent >= w.began && row.sent < w.began + seconds;
    });
  });
  for (auto& w : record.windows) w.began = std::min(w.began + seconds, w.ended);
}

json json_of(const load_record& record) {
  json out = {{"windows", json::array()}, {"requests", json::array()}};
  for (const load_window& w : record.windows) {
    out["windows"].push_back({{"level", w.level},
                              {"method", w.method},
                              {"began", w.began},
                              {"ended", w.ended},
                              {"passes", w.done.passes},
                              {"rows", w.done.rows},
                              {"busy_seconds", w.done.busy_seconds}});
  }
  for (const load_row& r : record.rows) {
    out["requests"].push_back({{"level", r.level},
                               {"method", r.method},
                               {"item", r.item},
                               {"sent", r.sent},
                               {"first_ms", r.first_ms},
                               {"total_ms", r.total_ms},
                               {"characters", r.characters},
                               {"tokens", r.tokens},
                               {"target_passes", r.target_passes},
                               {"drafted", r.drafts.drafted},
                               {"accepted", r.drafts.accepted},
                               {"sources", json_of(r.sources)},
                               {"answer", r.answer},
                               {"error", r.error},
                               {"error_kind", r.error_kind},
                               {"tenant", r.tenant}});
  }
  return out;
}

result<load_record> parse_load_record(const std::string& text, const std::string& name) {
  const json root = json::parse(text, nullptr, false);
  for (const char* list : {"windows", "requests"}) {
    if (!root.is_object() || !root.contains(list) || !root[list].is_array()) {
      return failure{
          errc::file_malformed,
          name + ": expected what 'redline bench load --json' writes, found no list \"" + std::string(list) + "\""};
    }
  }
  load_record out;
  for (const json& entry : root["windows"]) {
    const std::string where = name + ", windows[" + std::to_string(out.windows.size()) + "]";
    REDLINE_TRY_ASSIGN(load_window w, parse_window(entry, where));
    out.windows.push_back(std::move(w));
  }
  for (const json& entry : root["requests"]) {
    const std::string where = name + ", requests[" + std::to_string(out.rows.size()) + "]";
    REDLINE_TRY_ASSIGN(load_row r, parse_row(entry, where));
    out.rows.push_back(std::move(r));
  }
  return out;
}

std::vector<load_summary> summarise(const load_record& record, const latency_target& target) {
  std::vector<std::string> levels;
  std::vector<std::string> methods;
  std::set<std::pair<std::string, std::string>> there;
  const auto note = [](std::vector<std::string>& list, const std::string& name) {
    if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
  };
  for (const load_row& r : record.rows) {
    note(levels, r.level);
    note(methods, r.method);
    there.emplace(r.level, r.method);
  }
  std::vector<load_summary> all;
  for (const std::string& level : levels) {
    for (const std::string& method : methods) {
      if (there.contains({level, method})) all.push_back(summary_of(level, method, record, target));
    }
  }
  return all;
}

json json_of(const load_summary& s) {
  const auto both = [](const load_summary::percentiles& p) { return json{{"p50", p.p50}, {"p99", p.p99}}; };
  json tenants = json::object();
  for (const auto& [name, t] : s.tenants) {
    tenants[name] = {{"requests", t.requests},
                     {"errors", t.errors},
                     {"ttft_ms", {{"p50", t.first_ms_p50}, {"p99", t.first_ms_p99}}},
                     {"tokens_per_second_of_an_answer", t.tokens_per_second}};
  }
  return {{"level", s.level},
          {"method", s.method},
          {"requests", s.requests},
          {"errors", s.errors},
          {"seconds", s.seconds},
          {"ttft_ms", both(s.first_ms)},
          {"tpot_ms", both(s.per_token_ms)},
          {"total_ms", both(s.total_ms)},
          {"characters_per_second", s.characters_per_second},
          {"tokens_per_second", s.tokens_per_second},
          {"goodput_per_second", s.goodput},
          {"good_share", s.good_share},
          {"rows_per_pass", s.rows_per_pass},
          {"busy_share", s.busy_share},
          {"accepted_per_pass", s.accepted_per_pass},
          {"accepted_per_pass_by_source", s.accepted_per_pass_by_source},
          {"errors_by_kind", s.errors_by_kind},
          {"tenants", tenants},
          {"fairness", s.fairness}};
}

std::vector<std::string> differing_items(const load_record& record) {
  std::map<std::string, std::set<std::string>> answers;
  for (const load_row& r : record.rows) {
    if (r.error.empty()) answers[r.item].insert(r.answer);
  }
  std::vector<std::string> items;
  for (const auto& [item, given] : answers) {
    if (given.size() > 1) items.push_back(item);
  }
  return items;
}

}  // namespace redline::studies
