// Measures what edit programs save: the cost of a copied run and of decoding it, the share of edits that can be copied,
// the bound that follows, programs executed by the real actors, the effect of a slightly wrong span, and the model's
// own programs.

#include "bench/studies/edits/bench_copy.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "actors/cli/command.hpp"
#include "actors/cli/flags/model_flags.hpp"
#include "actors/cli/forward_probe.hpp"
#include "actors/node/engine.hpp"
#include "bench/studies/common/answer_replay.hpp"
#include "bench/studies/common/json_file.hpp"
#include "bench/studies/common/local_runner.hpp"
#include "bench/studies/common/statistics.hpp"
#include "bench/studies/edits/copy_trial.hpp"
#include "runtime/model/numerics.hpp"

namespace redline::studies {
namespace {

using json = nlohmann::ordered_json;

/// The costs by which every corpus is judged.
struct costs {
  std::vector<run_cost> runs;
  std::vector<double> shared_step_ms;  // a shared decode step's time, by --users
  std::vector<mask_cost> masks;
  double step_ms = 0;
};

result<costs> measure(const copy_study_options& f, const engine& e) {
  REDLINE_TRY_ASSIGN(const auto file, gguf::gguf_file::open(f.models.model));
  REDLINE_TRY_ASSIGN(const auto kv, parse_kv_type(f.models.kv));
  REDLINE_TRY_ASSIGN(const auto numerics, model::parse_numerics(f.models.numerics));
  REDLINE_TRY_ASSIGN(const auto* chosen, model::table_for(*file, *kernels::process_table().table, numerics, kv));
  const auto& table = *chosen;
  kernels::worker_team team(f.models.threads);
  REDLINE_TRY_ASSIGN(const auto weights, model::load_weights(*file, table, team));
  const std::uint32_t most = *std::max_element(f.runs.begin(), f.runs.end());
  if (f.context_tokens + most > e.context_max()) {
    return failure{errc::invalid_argument,
                   "expected --context-tokens and the longest of --runs within the model's context of " +
                       std::to_string(e.context_max()) + ", found " + std::to_string(f.context_tokens + most)};
  }
  costs out;
  for (const auto n : f.runs) out.runs.push_back({.tokens = n});
  const auto probe_of = [&](bool last_only) -> result<std::unique_ptr<forward_probe>> {
    REDLINE_TRY_ASSIGN(auto probe, forward_probe::create(*file, weights, table, team,
                                                         {.rows_max = std::max(most, 64U),
                                                          .tokens_max = f.context_tokens + most,
                                                          .kv = kv,
                                                          .last_only = last_only,
                                                          .clock = f.clock}));
    probe->grow_context(f.context_tokens);
    return probe;
  };
  REDLINE_TRY_ASSIGN(const auto last, probe_of(true));
  REDLINE_TRY_ASSIGN(const auto every, probe_of(false));
  out.step_ms = last->measure(1, {.seconds = f.seconds}).best_ms;
  for (auto& r : out.runs) {
    r.run_ms = last->measure(r.tokens, {.seconds = f.seconds}).best_ms;
    r.all_logits_ms = every->measure(r.tokens, {.seconds = f.seconds}).best_ms;
    r.steps_ms = r.tokens * out.step_ms;
  }
  for (const auto n : f.users) out.shared_step_ms.push_back(every->measure(n, {.seconds = f.seconds}).best_ms);
  out.masks = price_masks(e.token_trie());
  return out;
}

json json_of(const costs& p, const copy_study_options& f) {
  json out = {
      {"step_ms", p.step_ms}, {"runs", json::array()}, {"shared_steps", json::array()}, {"masks", json::array()}};
  for (const auto& r : p.runs) {
    out["runs"].push_back({{"tokens", r.tokens},
                           {"run_ms", r.run_ms},
                           {"all_logits_ms", r.all_logits_ms},
                           {"steps_ms", r.steps_ms},
                           {"speed_up", r.speed_up()},
                           {"head_saving", r.saving()}});
  }
  for (std::size_t i = 0; i < f.users.size(); ++i) {
    out["shared_steps"].push_back({{"users", f.users[i]}, {"step_ms", p.shared_step_ms[i]}});
  }
  for (const auto& m : p.masks) {
    out["masks"].push_back({{"place", m.place},
                            {"first_us", m.first_us},
                            {"again_us", m.again_us},
                            {"of_step", m.first_us / 1e3 / p.step_ms}});
  }
  return out;
}

void print(const costs& p, const copy_study_options& f) {
  std::printf(
      "a run of N tokens after %u others, logits of its last row, compared with N decode steps of %.2f ms\n"
      "%6s %10s %12s %9s | %14s %9s\n",
      f.context_tokens, p.step_ms, "N", "run ms", "steps ms", "speed-up", "all logits ms", "saving");
  for (const auto& r : p.runs) {
    std::printf("%6u %10.2f %12.2f %8.2fx | %14.2f %8.1f%%\n", r.tokens, r.run_ms, r.steps_ms, r.speed_up(),
                r.all_logits_ms, 100 * r.saving());
  }
  std::printf("\n%-30s %12s %12s %14s\n", "mask of a row", "first us", "again us", "of a step");
  for (const auto& m : p.masks) {
    std::printf("%-30s %12.1f %12.1f %13.2f%%\n", m.place.c_str(), m.first_us, m.again_us, m.first_us / 10 / p.step_ms);
  }
  std::fflush(stdout);
}

/// Shares of edits that come out right, as means over trials.
struct moved_row {
  std::uint32_t lines = 0;
  std::string model;  // "one program" or "plans again"
  double forced = 0, verified = 0, confident = 0, anchored = 0;
};

std::vector<moved_row> move_ends(const std::vector<known_edit>& edits, const copy_study_options& f, const engine& e) {
  std::vector<moved_row> rows;
  const auto chosen = spread(edits.size(), f.perturbed);
  for (const bool plans_anew : {false, true}) {
    for (const std::uint32_t lines : {0U, 1U, 2U, 4U}) {
      moved_row row{.lines = lines, .model = plans_anew ? "plans again" : "one program"};
      const std::uint32_t trials = lines == 0 ? 1 : f.trials;
      const auto share = [&](const copy_options& how) {
        std::size_t exact = 0;
        for (const auto i : chosen) {
          for (std::uint32_t seed = 0; seed < trials; ++seed) {
            exact += writes_exactly({lines, plans_anew, seed}, edits[i], e.token_trie(), how) ? 1 : 0;
          }
        }
        return ratio(static_cast<double>(exact), static_cast<double>(chosen.size() * trials));
      };
      row.forced = share({.trust = copy_trust::forced});
      row.verified = share({.trust = copy_trust::verified});
      row.confident = share({.trust = copy_trust::automatic});
      row.anchored = share({.trust = copy_trust::automatic, .anchors = true});
      rows.push_back(row);
    }
  }
  return rows;
}

struct level {
  std::string name;
  std::uint32_t span_min = 0;  // 0 means whole lines
  copy_cover cover;
};

struct corpus_study {
  std::string name;
  std::size_t pairs = 0;
  std::vector<level> levels;
  std::vector<moved_row> moved;
  std::vector<trial_result> trials;
  std::vector<own_result> own;
};

result<corpus_study> study(const std::string& path, const std::vector<known_edit>& edits, const copy_study_options& f,
                           local_runner& runner, answer_replay& replay) {
  const engine& e = runner.parts();
  corpus_study s{.name = std::filesystem::path(path).stem(), .pairs = edits.size(), .levels = {{"lines", 0, {}}}};
  for (const auto m : f.spans_min) s.levels.push_back({"tokens >= " + std::to_string(m), m, {}});
  for (auto& l : s.levels) {
    for (const auto& edit : edits)
      l.cover += l.span_min == 0 ? line_cover(edit, e.token_trie()) : token_cover(edit, *e.token_trie(), l.span_min);
  }
  if (f.perturbed > 0) s.moved = move_ends(edits, f, e);
  for (const auto users : f.executed > 0 ? f.users : std::vector<std::uint32_t>{}) {
    REDLINE_TRY_ASSIGN(auto t, try_programs(edits, std::max(f.executed, users), users, f.answer_tokens_max, f.repeats,
                                            f.clock, runner, replay));
    if (t.edits > 0) s.trials.push_back(std::move(t));
  }
  if (f.self_written > 0) {
    const own_writing ways[] = {{"as text", std::nullopt},
                                {"forced", copy_options{}},
                                {"verified", copy_options{.trust = copy_trust::verified}},
                                {"auto", copy_options{.trust = copy_trust::automatic}},
                                {"auto, anchors", copy_options{.trust = copy_trust::automatic, .anchors = true}}};
    for (const auto& way : ways) {
      REDLINE_TRY_ASSIGN(auto own, try_own_programs(edits, f.self_written, way, runner));
      if (own.edits > 0) s.own.push_back(std::move(own));
    }
  }
  return s;
}

/// Decode steps of `users` sequences at once, one token each, as the cost of a decoded token.
speed_up_curve curve_for(const costs& p, const copy_study_options& f, std::uint32_t users) {
  const auto at = std::find(f.users.begin(), f.users.end(), users) - f.users.begin();
  return users == 1 ? speed_up_curve(p.runs)
                    : speed_up_curve(p.runs, p.shared_step_ms[static_cast<std::size_t>(at)] / users);
}

json json_of(const corpus_study& s, const costs& p, const copy_study_options& f) {
  json out = {{"corpus", s.name},       {"pairs", s.pairs},          {"coverage", json::array()},
              {"moved", json::array()}, {"executed", json::array()}, {"own", json::array()}};
  const speed_up_curve curve(p.runs);
  for (const auto& l : s.levels) {
    out["coverage"].push_back({{"level", l.name},
                               {"tokens", l.cover.tokens},
                               {"copied", l.cover.copied()},
                               {"share", l.cover.share()},
                               {"spans", l.cover.spans.size()},
                               {"bound", l.cover.bound(curve)}});
    if (l.span_min == 0) out["coverage"].back()["program_bound"] = l.cover.program_bound(curve);
  }
  for (const auto& m : s.moved) {
    out["moved"].push_back({{"lines", m.lines},
                            {"model", m.model},
                            {"forced", m.forced},
                            {"verified", m.verified},
                            {"auto_confidence", m.confident},
                            {"auto_anchors", m.anchored}});
  }
  for (const auto& t : s.trials) {
    const auto shared = curve_for(p, f, t.users);
    out["executed"].push_back({{"users", t.users},
                               {"edits", t.edits},
                               {"exact", t.exact},
                               {"replayed", true},
                               {"tokens", t.cover.tokens},
                               {"bound", t.cover.bound(shared)},
                               {"program_bound", t.cover.program_bound(shared)},
                               {"regular_seconds", t.regular_seconds},
                               {"program_seconds", t.program_seconds},
                               {"guessed_seconds", t.guessed_seconds},
                               {"program_passes", t.program_passes},
                               {"guessed_passes", t.guessed_passes},
                               {"speed_up", ratio(t.regular_seconds, t.program_seconds)},
                               {"guessed_speed_up", ratio(t.regular_seconds, t.guessed_seconds)}});
  }
  for (const auto& o : s.own) {
    out["own"].push_back({{"written", o.writing},
                          {"edits", o.edits},
                          {"valid", o.valid},
                          {"exact", o.exact},
                          {"refused", o.refused},
                          {"refused_exact", o.refused_exact},
                          {"forced", o.forced},
                          {"verified", o.verified}});
  }
  return out;
}

void print(const corpus_study& s, const costs& p, const copy_study_options& f) {
  const speed_up_curve curve(p.runs);
  std::printf("\n%s: %zu pairs\n%14s %8s %8s %8s %14s\n", s.name.c_str(), s.pairs, "copied", "share", "spans", "bound",
              "with program");
  for (const auto& l : s.levels) {
    std::printf("%14s %7.1f%% %8zu %7.2fx", l.name.c_str(), 100 * l.cover.share(), l.cover.spans.size(),
                l.cover.bound(curve));
    if (l.span_min == 0) std::printf(" %13.2fx", l.cover.program_bound(curve));
    std::printf("\n");
  }
  if (!s.moved.empty()) {
    std::printf(
        "SIMULATED choices: files exact when every end of a span is off by up to so many lines; the model is sure of "
        "nine "
        "right spans\nin ten and of one wrong span in ten\n%12s %6s %8s %9s %16s %13s\n",
        "model", "lines", "forced", "verified", "auto, confidence", "auto, anchors");
  }
  for (const auto& m : s.moved) {
    std::printf("%12s %6u %7.1f%% %8.1f%% %15.1f%% %12.1f%%\n", m.model.c_str(), m.lines, 100 * m.forced,
                100 * m.verified, 100 * m.confident, 100 * m.anchored);
  }
  if (!s.trials.empty()) {
    std::printf(
        "REPLAYED: shortest programs executed, compared with decoding the files; speed-ups without the prompts\n"
        "%6s %6s %6s %8s %13s %9s %9s %9s %9s %8s %9s\n",
        "users", "edits", "exact", "bound", "with program", "regular s", "program s", "speed-up", "guesses s",
        "speed-up", "of bound");
  }
  for (const auto& t : s.trials) {
    const auto shared = curve_for(p, f, t.users);
    const double best = ratio(t.regular_seconds, std::min(t.program_seconds, t.guessed_seconds));
    std::printf("%6u %6zu %6zu %7.2fx %12.2fx %9.2f %9.2f %8.2fx %9.2f %7.2fx %8.0f%%\n", t.users, t.edits, t.exact,
                t.cover.bound(shared), t.cover.program_bound(shared), t.regular_seconds, t.program_seconds,
                ratio(t.regular_seconds, t.program_seconds), t.guessed_seconds,
                ratio(t.regular_seconds, t.guessed_seconds), 100 * ratio(best, t.cover.bound(shared)));
  }
  if (!s.own.empty()) {
    std::printf("the model's own programs\n%14s %6s %8s %8s %8s %14s %9s\n", "written", "edits", "valid", "exact",
                "refused", "spans forced", "verified");
  }
  for (const auto& o : s.own) {
    const auto percent = [&](std::size_t n) {
      return 100 * ratio(static_cast<double>(n), static_cast<double>(o.edits));
    };
    std::printf("%14s %6zu %7.1f%% %7.1f%% %7.1f%% %14llu %9llu\n", o.writing.c_str(), o.edits, percent(o.valid),
                percent(o.exact), percent(o.refused), static_cast<unsigned long long>(o.forced),
                static_cast<unsigned long long>(o.verified));
  }
  std::fflush(stdout);
}

result<void> run(const copy_study_options& f) {
  std::vector<std::vector<known_edit>> corpora;  // read before minutes are spent on measuring
  for (const auto& path : f.edits) {
    REDLINE_TRY_ASSIGN(auto edits, read_edits(path));
    corpora.push_back(std::move(edits));
  }
  REDLINE_TRY_ASSIGN(auto options, to_engine_options(f.models));
  const auto replay = std::make_shared<answer_replay>();
  options.target_chooser = replay;
  options.scheduling.sharing = prefix_sharing::off;  // every answer reads its prompt
  REDLINE_TRY_ASSIGN(const auto runner,
                     local_runner::create(std::move(options), *std::max_element(f.users.begin(), f.users.end())));
  const engine& e = runner->parts();
  if (!e.token_trie()) return failure{errc::unsupported_format, "the model's vocabulary cannot spell programs"};
  REDLINE_TRY_ASSIGN(const auto p, measure(f, e));
  print(p, f);
  json out = {{"benchmark", "copy"},         {"model", f.models.model},
              {"context", f.context_tokens}, {"clock", f.clock == clock_kind::wall ? "wall" : "processor"},
              {"prices", json_of(p, f)},     {"corpora", json::array()}};
  for (std::size_t i = 0; i < corpora.size(); ++i) {
    REDLINE_TRY_ASSIGN(const auto s, study(f.edits[i], corpora[i], f, *runner, *replay));
    print(s, p, f);
    out["corpora"].push_back(json_of(s, p, f));
  }
  return write_json(f.json, out);
}

}  // namespace

int run_copy(copy_study_options options) {
  std::sort(options.runs.begin(), options.runs.end());
  if (options.edits.empty()) options.edits.emplace_back("bench/edits.jsonl");
  const auto done = run(options);
  return done ? 0 : report(done.error());
}

}  // namespace redline::studies
