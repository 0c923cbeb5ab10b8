// redline bench load: what many concurrent users of a server get, by their number, with speculation and without.

#include "bench/studies/load/bench_load.hpp"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "actors/cli/child_server.hpp"
#include "actors/cli/command.hpp"
#include "actors/cli/progress_line.hpp"
#include "bench/studies/common/json_file.hpp"
#include "bench/studies/load/load_agents.hpp"
#include "bench/studies/load/load_client.hpp"
#include "bench/studies/load/load_plan.hpp"
#include "bench/studies/load/load_report.hpp"
#include "bench/studies/load/load_trace.hpp"
#include "bench/studies/load/replay.hpp"
#include "bench/studies/load/server_counts.hpp"

namespace redline::studies {
namespace {

using json = nlohmann::ordered_json;

std::vector<load_level> levels_of(const load_options& f) {
  if (!f.trace.empty()) return {{true, f.trace_speed, true}};
  std::vector<load_level> levels;
  for (const std::uint32_t n : f.clients) levels.push_back({false, static_cast<double>(n)});
  for (const double r : f.rates) levels.push_back({true, r});
  if (levels.empty()) {
    for (const double n : {1, 4, 16, 32, 64}) levels.push_back({false, n});
  }
  return levels;
}

/// Enough requests that every client asks several times.
std::size_t requests_of(const load_options& f, const load_level& level) {
  if (f.requests != 0) return f.requests;
  return level.is_rate ? 64 : std::max<std::size_t>(16, 4 * static_cast<std::size_t>(level.amount));
}

result<std::vector<known_edit>> edits_of(const load_options& f) {
  REDLINE_TRY_ASSIGN(const auto path, edits_path(f.edits));
  REDLINE_TRY_ASSIGN(auto edits, read_edits(path));
  if (f.edit_bytes_max != 0) {
    std::erase_if(edits, [&](const known_edit& e) { return e.task.before.size() > f.edit_bytes_max; });
  }
  if (edits.empty()) return failure{errc::invalid_argument, path + ": no edit is within --edit-bytes-max"};
  return edits;
}

/// Asks one question by every method, which also warms up, and leaves out the methods that the server refuses.
std::vector<std::string> methods_that_work(const load_options& f, const server_address& server,
                                           const std::vector<known_edit>& edits) {
  load_mix first = f.mix;
  first.tokens_max = 8;
  std::vector<std::string> out;
  for (const std::string& method : f.methods) {
    if (std::find(out.begin(), out.end(), method) != out.end()) continue;
    const load_row row = ask(server, question_of({.item = "", .is_edit = true, .edit = 0}, edits, first, method));
    if (row.error.empty())
      out.push_back(method);
    else
      std::cerr << "redline: left out " << method << ": " << row.error << "\n";
  }
  return out;
}

load_record run_shown(const load_level& level, const std::string& method, const std::vector<planned_request>& plan,
                      const asker& ask_one) {
  progress_line line;
  std::atomic<std::size_t> done{0};
  std::atomic<bool> over{false};
  std::thread display([&] {
    while (!over) {
      line.show(level.name() + ", " + method + ": " + std::to_string(done) + " of " + std::to_string(plan.size()));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  load_record record = run_level(level, method, plan, ask_one, done);
  over = true;
  display.join();
  return record;
}

/// Runs levels in this process or through agents.
class level_runner {
 public:
  static result<level_runner> make(const load_options& f, const std::string& url) {
    REDLINE_TRY_ASSIGN(auto edits, edits_of(f));
    std::string keys, trace;
    if (!f.tenant_keys.empty()) {
      REDLINE_TRY_ASSIGN(keys, read_whole(f.tenant_keys));
    }
    REDLINE_TRY_ASSIGN(auto doors, tenant_doors::make(url, f.api_key, keys));
    level_runner r(f, url, std::move(edits), std::move(doors));
    r.mix_.tenants = r.doors_.tenants();
    r.keys_text_ = std::move(keys);
    if (!f.trace.empty()) {
      REDLINE_TRY_ASSIGN(r.trace_text_, read_whole(f.trace));
      REDLINE_TRY_ASSIGN(r.trace_, parse_trace(r.trace_text_, f.trace, f.trace_speed));
    }
    if (f.agents == 0) return r;
    REDLINE_TRY_ASSIGN(const auto path, edits_path(f.edits));
    REDLINE_TRY_ASSIGN(r.edits_text_, read_whole(path));
    REDLINE_TRY_ASSIGN(
        r.agents_,
        load_agents::gather(
            {.listen = {.listens = {f.agents_listen}, .insecure_plaintext = f.insecure_plaintext}, .count = f.agents}));
    return r;
  }

  result<load_record> run(const load_level& level, const std::string& method, std::uint64_t seed, std::size_t count) {
    load_record record;
    const auto before = counts_after_ ? counts_after_ : ask_settled_counts();
    if (agents_) {
      REDLINE_TRY_ASSIGN(record, agents_->run({.server = url_,
                                               .api_key = f_.api_key,
                                               .edits = edits_text_,
                                               .edit_bytes_max = f_.edit_bytes_max,
                                               .tenant_keys = keys_text_,
                                               .trace = trace_text_,
                                               .level = level,
                                               .mix = mix_,
                                               .method = method,
                                               .count = count,
                                               .seed = seed}));
    } else {
      const auto plan = level.is_trace ? trace_ : plan_requests(level, count, seed, edits_, mix_);
      record = run_shown(level, method, plan, [&](std::size_t i, const std::vector<past_turn>& earlier) {
        return ask(doors_.of(plan[i].tenant), question_of(plan[i], edits_, mix_, method, earlier));
      });
    }
    // Agents' windows cover the same time of the server; the first one gets its counts.
    counts_after_ = before ? ask_settled_counts() : std::nullopt;
    if (counts_after_ && !record.windows.empty()) record.windows.front().done = *counts_after_ - *before;
    if (f_.warm_up > 0) cut_warm_up(record, f_.warm_up);
    return record;
  }
  [[nodiscard]] std::vector<std::string> methods() const { return methods_that_work(f_, doors_.of({}), edits_); }

 private:
  level_runner(const load_options& f, std::string url, std::vector<known_edit> edits, tenant_doors doors)
      : f_(f), url_(std::move(url)), mix_(f.mix), edits_(std::move(edits)), doors_(std::move(doors)) {}
  /// Metrics lag by up to a second. Servers without these metrics cause no wait.
  [[nodiscard]] std::optional<server_counts> ask_settled_counts() const {
    if (!ask_server_counts(doors_.of({}))) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(1'500));
    return ask_server_counts(doors_.of({}));
  }

  std::optional<server_counts> counts_after_;  // counts after the last window
  const load_options& f_;
  std::string url_;
  load_mix mix_;
  std::vector<known_edit> edits_;
  tenant_doors doors_;
  std::vector<planned_request> trace_;
  std::string edits_text_, keys_text_, trace_text_;
  std::unique_ptr<load_agents> agents_;
};

constexpr double knee_seconds = 10;  // duration of each rate that is tried

/// Requests per second, by method.
using found_knees = std::map<std::string, double>;

result<double> find_knee(const load_options& f, level_runner& runner, const std::string& method, load_record& record) {
  // Long enough to show that a server falls behind.
  const auto requests_at = [&](double r) {
    return std::max<std::size_t>(f.requests, static_cast<std::size_t>(r * knee_seconds));
  };
  std::uint64_t seed = f.seed;
  const auto holds = [&](double rate) -> result<bool> {
    REDLINE_TRY_ASSIGN(auto one, runner.run({true, rate}, method, seed++, requests_at(rate)));
    const auto all = summarise(one, f.target);
    const double share = all.empty() ? 0 : all.front().good_share;
    std::fprintf(stderr, "redline: %.3g/s: %.0f%% within the target\n", rate, 100 * share);
    REDLINE_TRY(record.add(std::move(one)));
    return share >= f.knee_share;
  };
  return find_highest_rate(f.rates.empty() ? 1 : f.rates.front(), holds);
}

result<load_record> measure(const load_options& f, const std::string& url, found_knees& knees) {
  REDLINE_TRY_ASSIGN(auto runner, level_runner::make(f, url));
  const auto methods = runner.methods();
  if (methods.empty()) return failure{errc::not_ready, "the server refuses all of the methods"};
  load_record record;
  if (f.knee_share > 0) {
    for (const auto& method : methods) {
      REDLINE_TRY_ASSIGN(knees[method], find_knee(f, runner, method, record));
    }
    return record;
  }
  for (const load_level& level : levels_of(f)) {
    for (std::uint32_t repeat = 0; repeat < f.repeats; ++repeat) {
      for (const std::string& method : methods) {
        REDLINE_TRY_ASSIGN(auto one, runner.run(level, method, f.seed + repeat, requests_of(f, level)));
        REDLINE_TRY(record.add(std::move(one)));
      }
    }
  }
  return record;
}

std::string sources_of(const load_summary& s) {
  std::string text;
  for (const auto& [name, accepted] : s.accepted_per_pass_by_source) {
    char one[64];
    std::snprintf(one, sizeof one, "%s%s %.1f", text.empty() ? "" : ", ", name.substr(0, 32).c_str(), accepted);
    text += one;
  }
  return text;
}

void print_table(const std::vector<load_summary>& all) {
  std::printf("%-12s %-10s %6s %6s %15s %15s %15s %8s %9s %8s %6s %6s %5s %9s %s\n", "", "", "", "", "TTFT ms",
              "TPOT ms", "whole s", "", "", "goodput", "", "rows", "busy", "accepted", "");
  std::printf("%-12s %-10s %6s %6s %15s %15s %15s %8s %9s %8s %6s %6s %5s %9s %s\n", "level", "method", "asked",
              "errors", "p50 / p99", "p50 / p99", "p50 / p99", "chars/s", "tokens/s", "per s", "share", "a pass", "",
              "per pass", "by source");
  for (const load_summary& s : all) {
    const auto both = [](double a, double b, const char* format) {
      char text[48];
      std::snprintf(text, sizeof text, format, a, b);
      return std::string(text);
    };
    std::printf("%-12s %-10s %6zu %6zu %15s %15s %15s %8.0f %9.0f %8.2f %5.0f%% %6.1f %4.0f%% %9.1f %s\n",
                s.level.c_str(), s.method.c_str(), s.requests, s.errors,
                both(s.first_ms.p50, s.first_ms.p99, "%.0f / %.0f").c_str(),
                both(s.per_token_ms.p50, s.per_token_ms.p99, "%.2f / %.2f").c_str(),
                both(s.total_ms.p50 / 1e3, s.total_ms.p99 / 1e3, "%.2f / %.2f").c_str(), s.characters_per_second,
                s.tokens_per_second, s.goodput, 100 * s.good_share, s.rows_per_pass, 100 * s.busy_share,
                s.accepted_per_pass, sources_of(s).c_str());
  }
}

void print_tenants_and_errors(const load_summary& s) {
  const std::string where = s.level + ", " + s.method;
  for (const auto& [kind, count] : s.errors_by_kind) {
    std::printf("%s: %zu errors: %s\n", where.c_str(), count, kind.c_str());
  }
  if (s.tenants.empty()) return;
  std::printf("%s, by tenant: Jain's index of answers' speed %.4f\n", where.c_str(), s.fairness);
  for (const auto& [name, t] : s.tenants) {
    std::printf("  %-20s %6zu asked %4zu errors, TTFT p50 / p99 %.0f / %.0f ms, %.0f tokens/s of an answer\n",
                name.c_str(), t.requests, t.errors, t.first_ms_p50, t.first_ms_p99, t.tokens_per_second);
  }
}

/// Prints and writes the recording. Returns whether equal questions got equal answers.
result<bool> tell(const load_options& f, const load_record& record, const found_knees& knees) {
  const auto all = summarise(record, f.target);
  const auto differing = differing_items(record);
  if (!f.json.empty()) {
    json out = {{"benchmark", "load"},
                {"seed", f.seed},
                {"target_ms", {{"ttft", f.target.first_ms}, {"tpot", f.target.per_token_ms}}},
                {"differing_items", differing},
                {"summary", json::array()}};
    for (const load_summary& s : all) out["summary"].push_back(json_of(s));
    if (f.knee_share > 0) out["knees"] = {{"share", f.knee_share}, {"requests_per_second", knees}};
    out.update(json_of(record));
    REDLINE_TRY(write_json(f.json, out));
  }
  print_table(all);
  for (const load_summary& s : all) print_tenants_and_errors(s);
  for (const auto& [method, rate] : knees) {
    std::printf(
        "knee of %s: %.3g requests a second, of which %.0f%% have the first text within %.0f ms and a token "
        "each %.0f ms\n",
        method.c_str(), rate, 100 * f.knee_share, f.target.first_ms, f.target.per_token_ms);
  }
  std::printf("\nidentical answers to equal requests: %s", differing.empty() ? "yes" : "NO");
  for (std::size_t i = 0; i < std::min<std::size_t>(differing.size(), 5); ++i)
    std::printf(" %s;", differing[i].c_str());
  std::printf("\n");
  const auto failed =
      std::find_if(record.rows.begin(), record.rows.end(), [](const load_row& r) { return !r.error.empty(); });
  if (failed != record.rows.end()) std::printf("first error: %s\n", failed->error.c_str());
  return differing.empty();
}

result<load_record> merge(const load_options& f) {
  load_record record;
  for (const std::string& path : f.merge) {
    REDLINE_TRY_ASSIGN(const std::string text, read_whole(path));
    REDLINE_TRY_ASSIGN(auto one, parse_load_record(text, path));
    REDLINE_TRY(record.add(std::move(one)));
  }
  return record;
}

result<load_record> gather(const load_options& f, found_knees& knees) {
  if (!f.merge.empty()) return merge(f);
  if (!f.server.empty()) return measure(f, f.server, knees);
  if (f.model.empty()) return failure{errc::invalid_argument, "expected --server, --model or --merge"};
  std::vector<std::string> serve = {"--model", f.model};
  if (!f.draft.empty()) serve.insert(serve.end(), {"--draft", f.draft});
  if (!f.chat_template.empty()) serve.insert(serve.end(), {"--chat-template", f.chat_template});
  std::optional<script_file> script;
  if (f.replay) {
    REDLINE_TRY_ASSIGN(const auto edits, edits_of(f));
    REDLINE_TRY_ASSIGN(auto written, script_file::write(edits));
    serve.insert(serve.end(), {"--script", script.emplace(std::move(written)).path()});
  }
  // The server accepts only its own key and these.
  if (!f.tenant_keys.empty()) serve.insert(serve.end(), {"--api-key-file", f.tenant_keys});
  child_server child;
  REDLINE_TRY_ASSIGN(const auto at, child.start(serve));
  load_options own = f;
  own.api_key = at.api_key;
  return measure(own, at.url, knees);
}

}  // namespace

int run_load_agent(const load_agent_options& options) {
  return run_load_agent(
      transport::bridge_options{.joins = {options.join}, .insecure_plaintext = options.insecure_plaintext});
}

int run_load(const load_options& options) {
  found_knees knees;
  const auto record = gather(options, knees);
  const auto all_same = record ? tell(options, *record, knees) : result<bool>(record.error());
  return !all_same ? report(all_same.error()) : *all_same ? 0 : exit_failed;
}

}  // namespace redline::studies
