// redline bench load: what many users of a server get, by how many there are, with speculation and without.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "actors/cli/child_server.hpp"
#include "actors/cli/command.hpp"
#include "actors/cli/progress_line.hpp"
#include "bench/studies/load_client.hpp"
#include "bench/studies/load_plan.hpp"
#include "bench/studies/load_report.hpp"
#include "bench/studies/studies.hpp"

namespace redline::studies {
namespace {

using json = nlohmann::ordered_json;

struct flags {
  std::string server;
  std::string api_key;
  std::string model;
  std::string draft;
  std::string edits;
  std::vector<std::string> methods = {"auto", "regular"};
  std::vector<std::uint32_t> clients;
  std::vector<double> rates;
  load_mix mix;
  std::size_t edit_bytes_max = 0;
  std::size_t requests = 0;
  std::uint32_t repeats = 1;
  std::uint64_t seed = 1;
  latency_target target;
  std::vector<std::string> merge;
  std::string json;
  std::string svg;
};

std::vector<load_level> levels_of(const flags& f) {
  std::vector<load_level> levels;
  for (const std::uint32_t n : f.clients) levels.push_back({false, static_cast<double>(n)});
  for (const double r : f.rates) levels.push_back({true, r});
  if (levels.empty()) {
    for (const double n : {1, 4, 16, 32, 64}) levels.push_back({false, n});
  }
  return levels;
}

/// Enough that every client asks several times.
std::size_t requests_of(const flags& f, const load_level& level) {
  if (f.requests != 0) return f.requests;
  return level.is_rate ? 64 : std::max<std::size_t>(16, 4 * static_cast<std::size_t>(level.amount));
}

result<std::vector<known_edit>> edits_of(const flags& f) {
  const std::string path = f.edits.empty() ? default_edits_path() : f.edits;
  if (path.empty()) return failure{errc::invalid_argument, "wanted --edits FILE, a JSONL of edits"};
  REDLINE_TRY_ASSIGN(auto edits, read_edits(path));
  if (f.edit_bytes_max != 0) {
    std::erase_if(edits, [&](const known_edit& e) { return e.task.before.size() > f.edit_bytes_max; });
  }
  if (edits.empty()) return failure{errc::invalid_argument, path + ": no edit is within --edit-bytes-max"};
  return edits;
}

/// Asks one question by every method, which also warms up; leaves out those that the server refuses.
std::vector<std::string> methods_that_work(const flags& f, const server_address& server,
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
                      const std::function<load_row(std::size_t)>& ask_one) {
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

result<load_record> measure(const flags& f, const std::string& url) {
  REDLINE_TRY_ASSIGN(const auto edits, edits_of(f));
  REDLINE_TRY_ASSIGN(const auto server, server_address::parse(url, f.api_key));
  const auto methods = methods_that_work(f, server, edits);
  if (methods.empty()) return failure{errc::not_ready, "the server refuses all of the methods"};
  load_record record;
  for (const load_level& level : levels_of(f)) {
    for (std::uint32_t repeat = 0; repeat < f.repeats; ++repeat) {
      const auto plan = plan_requests(level, requests_of(f, level), f.seed + repeat, edits, f.mix);
      for (const std::string& method : methods) {
        REDLINE_TRY(record.add(run_shown(level, method, plan, [&](std::size_t i) {
          return ask(server, question_of(plan[i], edits, f.mix, method));
        })));
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
  std::printf("%-12s %-10s %6s %6s %15s %15s %15s %8s %9s %8s %6s %9s %s\n", "", "", "", "", "TTFT ms", "TPOT ms",
              "whole s", "", "", "goodput", "", "accepted", "");
  std::printf("%-12s %-10s %6s %6s %15s %15s %15s %8s %9s %8s %6s %9s %s\n", "level", "method", "asked", "errors",
              "p50 / p99", "p50 / p99", "p50 / p99", "chars/s", "tokens/s", "per s", "share", "per pass", "by source");
  for (const load_summary& s : all) {
    const auto both = [](double a, double b, const char* format) {
      char text[48];
      std::snprintf(text, sizeof text, format, a, b);
      return std::string(text);
    };
    std::printf("%-12s %-10s %6zu %6zu %15s %15s %15s %8.0f %9.0f %8.2f %5.0f%% %9.1f %s\n", s.level.c_str(),
                s.method.c_str(), s.requests, s.errors, both(s.first_ms.p50, s.first_ms.p99, "%.0f / %.0f").c_str(),
                both(s.per_token_ms.p50, s.per_token_ms.p99, "%.2f / %.2f").c_str(),
                both(s.total_ms.p50 / 1e3, s.total_ms.p99 / 1e3, "%.2f / %.2f").c_str(), s.characters_per_second,
                s.tokens_per_second, s.goodput, 100 * s.good_share, s.accepted_per_pass, sources_of(s).c_str());
  }
}

/// Prints and writes what was recorded. Whether equal questions got equal answers.
result<bool> tell(const flags& f, const load_record& record) {
  const auto all = summarise(record, f.target);
  const auto differing = differing_items(record);
  if (!f.json.empty()) {
    json out = {{"benchmark", "load"},
                {"seed", f.seed},
                {"target_ms", {{"ttft", f.target.first_ms}, {"tpot", f.target.per_token_ms}}},
                {"differing_items", differing},
                {"summary", json::array()}};
    for (const load_summary& s : all) out["summary"].push_back(json_of(s));
    out.update(json_of(record));
    REDLINE_TRY(write_whole(f.json, out.dump(1) + "\n"));
  }
  if (!f.svg.empty()) {
    char note[96];
    std::snprintf(note, sizeof note, "target: TTFT %.0f ms, TPOT %.0f ms", f.target.first_ms, f.target.per_token_ms);
    REDLINE_TRY(write_whole(f.svg + "-throughput.svg", svg_of(throughput_plot(all, note))));
    REDLINE_TRY(write_whole(f.svg + "-goodput.svg", svg_of(goodput_plot(all, note))));
  }
  print_table(all);
  std::printf("\nidentical answers to equal requests: %s", differing.empty() ? "yes" : "NO");
  for (std::size_t i = 0; i < std::min<std::size_t>(differing.size(), 5); ++i)
    std::printf(" %s;", differing[i].c_str());
  std::printf("\n");
  const auto failed =
      std::find_if(record.rows.begin(), record.rows.end(), [](const load_row& r) { return !r.error.empty(); });
  if (failed != record.rows.end()) std::printf("first error: %s\n", failed->error.c_str());
  return differing.empty();
}

result<load_record> merge(const flags& f) {
  load_record record;
  for (const std::string& path : f.merge) {
    REDLINE_TRY_ASSIGN(const std::string text, read_whole(path));
    REDLINE_TRY_ASSIGN(auto one, parse_load_record(text, path));
    REDLINE_TRY(record.add(std::move(one)));
  }
  return record;
}

result<load_record> gather(const flags& f) {
  if (!f.merge.empty()) return merge(f);
  if (!f.server.empty()) return measure(f, f.server);
  if (f.model.empty()) return failure{errc::invalid_argument, "wanted --server, --model or --merge"};
  std::vector<std::string> serve = {"--model", f.model};
  if (!f.draft.empty()) serve.insert(serve.end(), {"--draft", f.draft});
  child_server child;
  REDLINE_TRY_ASSIGN(const std::string url, child.start(serve));
  return measure(f, url);
}

}  // namespace

void add_bench_load(CLI::App& bench, int& exit_code) {
  auto f = std::make_shared<flags>();
  auto* c = bench.add_subcommand("load", "What many users of a server get, by how many there are and by method");
  auto* server = c->add_option("--server", f->server, "http://HOST:PORT of a running server")->group("Server");
  c->add_option("--api-key", f->api_key, "Key for --server")->group("Server");
  auto* model = c->add_option("-m,--model", f->model, "Start a server with this target model instead")
                    ->check(CLI::ExistingFile)
                    ->excludes(server)
                    ->group("Server");
  c->add_option("-d,--draft", f->draft, "Its draft model")->check(CLI::ExistingFile)->needs(model)->group("Server");
  c->add_option("--merge", f->merge, "Ask nobody; combine what several processes wrote with --json")
      ->check(CLI::ExistingFile)
      ->excludes(server)
      ->excludes(model)
      ->group("Server");

  c->add_option("--concurrency", f->clients,
                "Levels: clients that each wait for an answer before they ask again; default 1,4,16,32,64")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024))
      ->group("Load");
  c->add_option("--rate", f->rates, "Levels: requests per second, arriving by chance (Poisson) and waiting for nobody")
      ->delimiter(',')
      ->check(CLI::Range(0.001, 10000.0))
      ->group("Load");
  c->add_option("--requests", f->requests, "Requests of a level; 0: four per client, at least 16; 64 with --rate")
      ->check(CLI::Range(0, 100000))
      ->capture_default_str()
      ->group("Load");
  c->add_option("--methods", f->methods,
                "Each level is run by each in turn; those that the server refuses are left out")
      ->delimiter(',')
      ->capture_default_str()
      ->group("Load");
  c->add_option("--repeat", f->repeats, "Runs of each level by each method")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str()
      ->group("Load");
  c->add_option("--edits", f->edits, "JSONL with instruction, before and after; default: as for 'bench edit'")
      ->check(CLI::ExistingFile)
      ->group("Load");
  c->add_option("--edit-bytes-max", f->edit_bytes_max, "Leave out edits of larger files; 0: none")
      ->capture_default_str()
      ->group("Load");
  c->add_option("--mix", f->mix.completions, "Share of short completions (32 tokens) among the edits")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str()
      ->group("Load");
  c->add_option("--max-tokens", f->mix.tokens_max, "Tokens of an edit's answer")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str()
      ->group("Load");
  c->add_flag("--predict", f->mix.predict, "Send the old file as the request's prediction, as editors do")
      ->group("Load");
  c->add_option("--seed", f->seed, "Same seed, same requests at the same times")->capture_default_str()->group("Load");

  c->add_option("--slo-ttft-ms", f->target.first_ms, "Goodput: milliseconds to the first text at most")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str()
      ->group("Report");
  c->add_option("--slo-tpot-ms", f->target.per_token_ms, "Goodput: milliseconds per further token at most")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str()
      ->group("Report");
  c->add_option("--json", f->json, "Write every request and the summary to this file")->group("Report");
  c->add_option("--svg", f->svg, "Write PREFIX-throughput.svg and PREFIX-goodput.svg")
      ->type_name("PREFIX")
      ->group("Report");
  c->footer(
      "TTFT: until the first text. TPOT: time after it by tokens after it; chunks carry several tokens, so the time "
      "between\n"
      "chunks means nothing. With --rate times count from when a request was due. chars/s and tokens/s: of all "
      "clients\n"
      "together. goodput: answers within both --slo limits per second; share: of what was asked, errors included.\n"
      "Compare methods within a level: they take turns on the same requests. The exit code is 1 when equal requests "
      "got\n"
      "different answers.");
  c->callback([f, &exit_code] {
    const auto record = gather(*f);
    const auto all_same = record ? tell(*f, *record) : result<bool>(record.error());
    exit_code = !all_same ? report(all_same.error()) : *all_same ? 0 : exit_failed;
  });
}

}  // namespace redline::studies
