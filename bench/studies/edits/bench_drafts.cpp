// redline-bench drafts: what the rule that chooses drafts saves, over known edits and at fixed costs.

#include "bench/studies/edits/bench_drafts.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "actors/cli/command.hpp"
#include "bench/studies/common/edit_corpus.hpp"
#include "bench/studies/common/json_file.hpp"
#include "bench/studies/common/least_rounds.hpp"
#include "bench/studies/edits/draft_study.hpp"
#include "runtime/gguf/gguf_file.hpp"
#include "runtime/text/tokenizer.hpp"

namespace redline::studies {
namespace {

using json = nlohmann::ordered_json;
using draft::method;

struct machine {
  const char* name;
  pass_costs costs;
};
/// The first three are as in `bench/results/README.md`, "`auto` by what its drafts saved". The others were measured on
/// two cores, of a Zen 4 or with AMX: a model of 0.5B parameters, and 4 of its layers with all of its head.
constexpr machine machines[] = {
    {"small models", {.target_us = 170, .row_us = 65, .model_us = 70, .model_row_us = 17.5, .overhead_us = 150}},
    {"cheap rows", {.target_us = 150, .row_us = 8, .model_us = 60, .model_row_us = 2, .overhead_us = 150}},
    {"slow target", {.target_us = 2000, .row_us = 100, .model_us = 150, .model_row_us = 8, .overhead_us = 150}},
    {"0.5B, VNNI", {.target_us = 7700, .row_us = 640, .model_us = 1100, .model_row_us = 100, .overhead_us = 150}},
    {"4 layers, VNNI",
     {.target_us = 6500, .row_us = 770, .free_rows = 7, .model_us = 130, .model_row_us = 40, .overhead_us = 100}},
    {"4 layers, AMX",
     {.target_us = 7700, .row_us = 370, .free_rows = 1, .model_us = 130, .model_row_us = 40, .overhead_us = 100}},
};
constexpr method fixed[] = {method::regular, method::lookup, method::prediction, method::assisted, method::blazedit};

result<std::vector<known_answer>> read_answers(const draft_study_options& f) {
  REDLINE_TRY_ASSIGN(const auto file, gguf::gguf_file::open(f.model));
  REDLINE_TRY_ASSIGN(const auto tokenizer, text::tokenizer::from_file(*file));
  REDLINE_TRY_ASSIGN(const auto path, edits_path(f.edits));
  REDLINE_TRY_ASSIGN(const auto edits, read_edits(path));
  std::vector<known_answer> out;
  for (const std::size_t i : spread(edits.size(), f.count)) {
    const known_edit& edit = edits[i];
    const std::string& before = edit.task.before;
    known_answer known{.prompt = tokenizer->encode(edit.task.instruction + "\n```\n" + before + "\n```\n", {}),
                       .prediction = tokenizer->encode(before, {}),
                       .answer = tokenizer->encode("```\n" + edit.after + "\n```\n", {})};
    known.answer.push_back(1);  // an arbitrary end token
    if (known.prompt.size() + known.answer.size() <= f.tokens_max) out.push_back(std::move(known));
  }
  if (out.empty())
    return failure{errc::invalid_argument, "no edit has at most " + std::to_string(f.tokens_max) +
                                               " tokens with its result: give more --tokens-max"};
  return out;
}

replay_cost replay_all(const std::vector<known_answer>& all, bool predicts, draft_replay_study::setting s) {
  draft_replay_study study(s);
  replay_cost sum;
  for (known_answer known : all) {
    if (!predicts) known.prediction.clear();
    sum += study.replay(known);
  }
  return sum;
}

struct row {
  const machine* on = nullptr;
  bool predicts = false;
  std::vector<std::pair<method, replay_cost>> costs;  // `auto` is last
  [[nodiscard]] const replay_cost& automatic() const { return costs.back().second; }
  [[nodiscard]] double best_fixed_us() const {
    double best = costs.front().second.us;
    for (const auto& [how, cost] : std::span(costs).first(costs.size() - 1)) best = std::min(best, cost.us);
    return best;
  }
  /// 1 means as fast as the best fixed method.
  [[nodiscard]] double share_of_best() const { return best_fixed_us() / automatic().us; }
};

row replay_row(const std::vector<known_answer>& all, const machine& on, bool predicts, double model_right,
               const draft::book_constants& constants) {
  row out{.on = &on, .predicts = predicts, .costs = {}};
  const auto replay = [&](method how) {
    out.costs.emplace_back(how, replay_all(all, predicts, {how, on.costs, model_right, constants}));
  };
  for (const method how : fixed) {
    if (predicts || how != method::prediction) replay(how);
  }
  replay(method::automatic);
  return out;
}

std::vector<row> replay_rows(const std::vector<known_answer>& all, double model_right,
                             const draft::book_constants& constants) {
  std::vector<row> rows;
  for (const machine& on : machines) {
    for (const bool predicts : {true, false}) rows.push_back(replay_row(all, on, predicts, model_right, constants));
  }
  return rows;
}

void print(const std::vector<row>& rows, json& out) {
  std::printf("%-14s %-11s %-11s %9s %8s %9s %8s %8s\n", "machine", "prediction", "method", "ms", "rounds", "rows",
              "passes", "of best");
  for (const row& r : rows) {
    for (const auto& [how, cost] : r.costs) {
      const double share = r.best_fixed_us() / cost.us;
      std::printf("%-14s %-11s %-11s %9.1f %8llu %9llu %8llu %8.3f\n", r.on->name, r.predicts ? "yes" : "no",
                  std::string(draft::name_of(how)).c_str(), cost.us / 1000,
                  static_cast<unsigned long long>(cost.rounds), static_cast<unsigned long long>(cost.rows),
                  static_cast<unsigned long long>(cost.model_passes), share);
      out.push_back({{"machine", r.on->name},
                     {"prediction", r.predicts},
                     {"method", draft::name_of(how)},
                     {"us", cost.us},
                     {"rounds", cost.rounds},
                     {"rows", cost.rows},
                     {"model_passes", cost.model_passes},
                     {"model_rows", cost.model_rows},
                     {"of_best", share}});
    }
  }
}

/// The time of `auto` now, relative to its time with each constant halved and doubled; above 1, the change is faster.
void vary(const std::vector<known_answer>& all, const std::vector<row>& now, double model_right, json& out) {
  using constants = draft::book_constants;
  constexpr std::pair<const char*, double constants::*> each[] = {
      {"first_weight", &constants::first_weight},
      {"remembered_drafts", &constants::remembered_drafts},
      {"remembered_model_drafts", &constants::remembered_model_drafts},
      {"first_saved_rounds", &constants::first_saved_rounds},
      {"trial_share", &constants::trial_share},
      {"width_growth", &constants::width_growth}};
  std::printf("\n%-20s %8s", "constant", "value");
  for (const row& r : now) std::printf(" %11.11s%s", r.on->name, r.predicts ? "+" : " ");
  std::printf("     mean\n");
  for (const auto& [name, member] : each) {
    for (const double times : {0.5, 2.0}) {
      constants changed;
      changed.*member *= times;
      std::printf("%-20s %8.2f", name, changed.*member);
      double sum = 0;
      for (const row& r : now) {
        const auto cost = replay_all(all, r.predicts, {method::automatic, r.on->costs, model_right, changed});
        const double share = r.automatic().us / cost.us;
        sum += share;
        std::printf(" %12.3f", share);
        out.push_back({{"constant", name},
                       {"value", changed.*member},
                       {"machine", r.on->name},
                       {"prediction", r.predicts},
                       {"of_now", share}});
      }
      std::printf(" %8.3f\n", sum / static_cast<double>(now.size()));
    }
  }
}

}  // namespace

int run_drafts(const draft_study_options& f) {
  const auto answers = read_answers(f);
  if (!answers) return report(answers.error());
  std::size_t tokens = 0;
  std::uint64_t least = 0;
  std::uint64_t least_with_model = 0;
  for (const auto& a : *answers) {
    tokens += a.answer.size();
    least += least_rounds(a.prompt, a.answer, 0);
    least_with_model += least_rounds(a.prompt, a.answer, f.model_right);
  }
  std::printf("%zu edits, %zu tokens; a draft model that is right in %.2f of its own\n", answers->size(), tokens,
              f.model_right);
  std::printf("copying needs at least %llu rounds, with that model %llu\n\n", static_cast<unsigned long long>(least),
              static_cast<unsigned long long>(least_with_model));
  json out = {{"edits", answers->size()}, {"tokens", tokens},
              {"least_rounds", least},    {"least_rounds_with_model", least_with_model},
              {"methods", json::array()}, {"constants", json::array()}};
  const auto rows = replay_rows(*answers, f.model_right, {});
  print(rows, out["methods"]);
  if (f.constants) vary(*answers, rows, f.model_right, out["constants"]);
  if (f.json.empty()) return 0;
  const auto written = write_json(f.json, out);
  return written ? 0 : report(written.error());
}

}  // namespace redline::studies
