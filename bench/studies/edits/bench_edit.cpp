// redline bench edit: how fast each drafting method writes edits whose results are known (Blazedit's experiment).

#include "bench/studies/edits/bench_edit.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>

#include "actors/cli/command.hpp"
#include "actors/cli/flags/generation_flags.hpp"
#include "actors/cli/flags/model_flags.hpp"
#include "actors/cli/progress_line.hpp"
#include "actors/node/engine.hpp"
#include "bench/studies/common/answer_replay.hpp"
#include "bench/studies/common/edit_corpus.hpp"
#include "bench/studies/common/edit_request.hpp"
#include "bench/studies/common/json_file.hpp"
#include "bench/studies/common/least_rounds.hpp"
#include "bench/studies/common/local_runner.hpp"
#include "bench/studies/common/statistics.hpp"
#include "bench/studies/edits/edit_report.hpp"
#include "bench/studies/edits/edit_timeline.hpp"

namespace redline::studies {
namespace {

using json = nlohmann::ordered_json;

constexpr std::uint32_t warm_up_tokens = 16;

/// An edit as a model sees it.
struct prepared_edit {
  const known_edit* edit = nullptr;
  std::vector<token> known;  // the answer's tokens and the end token
  std::vector<token> prompt;
  std::vector<token> prediction;  // set with --prediction-right
  std::uint32_t prompt_tokens = 0;
  std::uint32_t tokens_max = 0;
};

struct chosen_method {
  std::string name;
  draft::draft_options options;
};

/// Blazedit with every combination of the grid's parameters; a parameter that is not given keeps its single value.
std::vector<chosen_method> grid_of(const edit_options& f, const draft::draft_options& blazedit) {
  const auto or_one = [](std::vector<std::uint32_t> list, std::uint32_t one) {
    if (list.empty()) list.push_back(one);
    return list;
  };
  std::vector<chosen_method> out;
  for (const std::uint32_t runs : or_one(f.grid_runs, blazedit.max_num_run)) {
    for (const std::uint32_t micro : or_one(f.grid_micro, blazedit.micro_draft_tokens)) {
      for (const std::uint32_t ngram : or_one(f.grid_ngram, blazedit.max_matching_ngram_size)) {
        chosen_method m{.name = "blazedit " + std::to_string(runs) + "x" + std::to_string(micro) + ", " +
                                std::to_string(ngram) + "-gram",
                        .options = blazedit};
        m.options.max_num_run = runs;
        m.options.micro_draft_tokens = micro;
        m.options.max_matching_ngram_size = ngram;
        out.push_back(std::move(m));
      }
    }
  }
  return out;
}

/// The requested methods that this pair of models can run. `regular` comes first, as the reference.
std::vector<chosen_method> choose_methods(const edit_options& f, const engine& e) {
  std::vector<std::string> names = f.methods.empty() ? method_names() : f.methods;
  std::stable_partition(names.begin(), names.end(), [](const std::string& n) { return n == "regular"; });
  std::vector<chosen_method> out;
  for (const std::string& name : names) {
    method_flags how = f.drafting;
    how.method = name;
    const auto options = to_draft_options(how, !f.models.draft.empty());
    const auto partners = options ? e.partners_for(options->how, {}) : result<session_partners>(options.error());
    if (!partners) {
      std::cerr << "redline: left out " << name << ": " << partners.error().context << "\n";
      continue;
    }
    const bool again = std::any_of(out.begin(), out.end(), [&](const chosen_method& m) { return m.name == name; });
    if (again) continue;
    const bool grid = !f.grid_runs.empty() || !f.grid_micro.empty() || !f.grid_ngram.empty();
    if (options->how == draft::method::blazedit && grid) {
      for (chosen_method& m : grid_of(f, *options)) out.push_back(std::move(m));
    } else {
      out.push_back({name, *options});
    }
  }
  return out;
}

result<std::vector<token>> known_tokens(const known_edit& edit, const text::tokenizer& tokenizer) {
  auto tokens = tokenizer.encode(answer_of(edit.task, edit.after), {});
  for (token t = 0; t < static_cast<token>(tokenizer.size()); ++t) {
    if (!tokenizer.is_end_of_generation(t)) continue;
    tokens.push_back(t);
    return tokens;
  }
  return failure{errc::unsupported_format, "the model's vocabulary has no end token, which a replayed answer needs"};
}

/// The edits that fit the context with their known results.
result<std::vector<prepared_edit>> prepare(const std::vector<known_edit>& edits, const edit_options& f, const engine& e,
                                           std::size_t& too_long) {
  std::vector<prepared_edit> out;
  for (const known_edit& edit : edits) {
    prepared_edit p{.edit = &edit, .known = {}};
    REDLINE_TRY_ASSIGN(const auto request, request_of(edit.task, {}, e));
    p.prompt_tokens = static_cast<std::uint32_t>(request.prompt.size());
    p.prompt = request.prompt;
    REDLINE_TRY_ASSIGN(p.known, known_tokens(edit, *e.tokenizer()));
    // A model that makes another edit may write more, but has to end.
    if (f.prediction_right) {
      p.prediction = e.tokenizer()->encode(answer_of(edit.task, damaged(edit.after, *f.prediction_right, edit.id)), {});
    }
    const auto room = static_cast<std::uint32_t>(p.known.size() + p.known.size() / 4 + 16);
    p.tokens_max = f.tokens_max != 0 ? f.tokens_max : room;
    const std::size_t answer = std::min<std::size_t>(p.known.size(), p.tokens_max);
    if (p.prompt_tokens + answer > e.context_max())
      ++too_long;
    else
      out.push_back(std::move(p));
  }
  return out;
}

/// Runs edits through the engine and keeps the fastest of the repeats.
class edit_bench {
 public:
  edit_bench(const edit_options& f, local_runner& runner, std::shared_ptr<answer_replay> replay,
             std::shared_ptr<activity_record> activities)
      : flags_(f), runner_(runner), replay_(std::move(replay)), activities_(std::move(activities)) {}

  /// After each edit, `so_far` receives what was measured so far.
  result<std::vector<edit_run>> run(const std::vector<prepared_edit>& edits, const std::vector<chosen_method>& methods,
                                    const std::function<result<void>(const std::vector<edit_run>&)>& so_far) {
    progress_line line;
    for (const chosen_method& m : methods) {
      line.show("warming up: " + m.name);
      prepared_edit first = edits.front();
      first.tokens_max = std::min(warm_up_tokens, first.tokens_max);
      REDLINE_TRY(once(first, m));
    }
    std::vector<edit_run> all;
    for (std::size_t i = 0; i < edits.size(); ++i) {
      std::vector<edit_run> of_edit(methods.size());
      for (std::uint32_t repeat = 0; repeat < flags_.repeats; ++repeat) {
        // Methods take turns, so that a disturbance of the machine hits all of them.
        for (std::size_t k = 0; k < methods.size(); ++k) {
          line.show("edit " + std::to_string(i + 1) + " of " + std::to_string(edits.size()) + ", repeat " +
                    std::to_string(repeat + 1) + ", " + methods[k].name);
          REDLINE_TRY_ASSIGN(edit_run r, once(edits[i], methods[k]));
          if (k == 0 && repeat == 0) reference_ = last_;
          r.identical = last_.tokens == reference_.tokens && last_.text == reference_.text;
          keep_faster(of_edit[k], std::move(r));
        }
      }
      all.insert(all.end(), of_edit.begin(), of_edit.end());
      REDLINE_TRY(so_far(all));
    }
    return all;
  }

 private:
  static void keep_faster(edit_run& kept, edit_run r) {
    if (kept.method.empty()) {
      kept = std::move(r);
      return;
    }
    r.identical = kept.identical = kept.identical && r.identical;
    if (r.seconds < kept.seconds) kept = std::move(r);
  }

  result<edit_run> once(const prepared_edit& p, const chosen_method& m) {
    const sequence_id sequence = runner_.next_sequence();
    if (flags_.replay) replay_->replay(sequence, p.known);
    // Each method needs its own request, because one may read more of the edit than another.
    REDLINE_TRY_ASSIGN(auto request, request_of(p.edit->task, m.options, runner_.parts()));
    request.tokens_max = p.tokens_max;
    if (flags_.prediction_right && draft::reads_prediction(m.options.how)) request.prediction = p.prediction;
    (void)activities_->take();
    auto got = runner_.run(std::move(request), m.options, [](const session_text&) {});
    auto steps = replay_->finish(sequence);
    if (!got) return failure{got.error().code, p.edit->id + ", " + m.name + ": " + got.error().context};
    last_ = std::move(*got);
    const session_stats& s = last_.stats;
    edit_run r{.edit = p.edit->id,
               .method = m.name,
               .edit_ratio = p.edit->edit_ratio,
               .characters = characters_of(last_.text),
               .prompt_tokens = s.prompt_tokens,
               .tokens = s.completion_tokens,
               .seconds = static_cast<double>(s.total_us) / 1e6,
               .first_token_seconds = static_cast<double>(s.first_token_us) / 1e6,
               .target_passes = s.target_passes,
               .draft_passes = s.draft_passes,
               .drafted = s.drafted,
               .accepted = s.accepted,
               .steps = std::move(steps),
               .timeline = activities_->take()};
    if (flags_.replay && p.tokens_max >= p.known.size()) {
      const bool has_model = flags_.replay_draft_accuracy && draft::asks_model(m.options.how);
      r.least_rounds = m.options.how == draft::method::regular
                           ? static_cast<std::uint32_t>(p.known.size())
                           : least_rounds(p.prompt, p.known, has_model ? *flags_.replay_draft_accuracy : 0);
    }
    const auto file =
        file_of_answer(p.edit->task, {.text = last_.text, .is_whole = last_.reason == actors::finish_reason::stop});
    r.as_wanted = file && *file == p.edit->after;
    return r;
  }

  const edit_options& flags_;
  local_runner& runner_;
  std::shared_ptr<answer_replay> replay_;
  std::shared_ptr<activity_record> activities_;
  outcome last_;
  outcome reference_;
};

/// Empty without `regular`, which speed-ups are relative to.
std::string times(double speed_up) {
  if (speed_up == 0) return "";
  char text[32];
  std::snprintf(text, sizeof(text), "%.2fx", speed_up);
  return text;
}

void print_table(const std::vector<method_summary>& all, const edit_options& f, std::size_t too_long) {
  if (f.replay) {
    std::printf("REPLAYED: every pass is computed, but the tokens are the known results', not the model's choices\n");
    if (f.replay_draft_accuracy) {
      std::printf("REPLAYED drafts: %.0f %% of the draft model's own tokens are right, and all that it agrees to\n",
                  100 * *f.replay_draft_accuracy);
    }
    if (f.replay_mtp_accuracy)
      std::printf("REPLAYED drafts: %.0f %% of the MTP layer's tokens are right\n", 100 * *f.replay_mtp_accuracy);
  }
  std::size_t width = 10;
  for (const method_summary& s : all) width = std::max(width, s.method.size());
  const int w = static_cast<int>(width);
  std::printf("%-*s %6s %9s %9s %9s %9s %9s %9s %9s %8s %8s %8s %8s %8s %s\n", w, "", "", "chars/s", "worst",
              "speed-up", "worst", "decoding", "decoding", "accepted", "refused", "rounds", "least", "target", "draft",
              "");
  std::printf("%-*s %6s %9s %9s %9s %9s %9s %9s %9s %8s %8s %8s %8s %8s %s\n", w, "method", "edits", "mean", "decile",
              "mean", "decile", "chars/s", "speed-up", "per pass", "of 100", "", "rounds", "passes", "passes",
              "identical");
  for (const method_summary& s : all) {
    const std::string least = s.least_rounds == 0 ? "" : std::to_string(s.least_rounds);
    std::printf("%-*s %6zu %9.0f %9.0f %9s %9s %9.0f %9s %9.1f %8.0f %8llu %8s %8llu %8llu %s\n", w, s.method.c_str(),
                s.edits, s.mean_rate, s.worst_decile_rate, times(s.mean_speed_up).c_str(),
                times(s.worst_decile_speed_up).c_str(), s.decoded_rate, times(s.decoded_speed_up).c_str(),
                s.accepted_per_pass(), 100 * s.refused_share(), static_cast<unsigned long long>(s.rounds),
                least.c_str(), static_cast<unsigned long long>(s.target_passes),
                static_cast<unsigned long long>(s.draft_passes), s.identical ? "yes" : "NO");
  }
  std::printf("\nfastest of %u; decoding: without the prompt and the first token", f.repeats);
  if (!f.replay && !all.empty())
    std::printf("; %zu of %zu answers are the known result", all[0].as_wanted, all[0].edits);
  if (too_long > 0) std::printf("; %zu edits left out that do not fit the context", too_long);
  std::printf("\n");
}

/// Where decoding's time went, and what it gave at each width of a pass.
void print_timeline(const std::vector<method_summary>& all, const std::vector<edit_run>& runs) {
  std::printf("\ndecoding    seconds  target   draft session manager   other waiting  us/round without passes\n");
  std::vector<std::vector<decoding_times>> times;
  std::vector<std::vector<std::vector<answer_replay::step>>> steps;
  for (const method_summary& s : all) {
    auto& mine = times.emplace_back();
    auto& verified = steps.emplace_back();
    decoding_times sum;
    std::size_t rounds = 0;
    for (const edit_run& r : runs) {
      if (r.method != s.method) continue;
      mine.push_back(decoding_times_of(r.timeline, r.steps.size()));
      verified.push_back(r.steps);
      sum.whole += mine.back().whole;
      for (std::size_t i = 0; i < edit_parts_count; ++i) sum.busy[i] += mine.back().busy[i];
      rounds += mine.back().passes.size();
    }
    std::printf("%-10s %8.2f", s.method.c_str(), sum.whole);
    for (const double busy : sum.busy) std::printf(" %5.1f %%", 100 * ratio(busy, sum.whole));
    std::printf(" %5.1f %%", 100 * ratio(sum.waiting(), sum.whole));
    std::printf(" %8.0f\n", 1e6 * ratio(sum.whole - sum.busy[0] - sum.busy[1], static_cast<double>(rounds)));
  }
  std::printf("\nmethod     rows to  passes  mean rows  ms each  tokens each  tokens/ms  cut where refused\n");
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const width_summary& w : summarise_widths(steps[i], times[i])) {
      const auto passes = static_cast<double>(w.passes);
      std::printf("%-10s %7u %7zu %10.1f %8.2f %12.2f %10.2f %18.2f\n", all[i].method.c_str(), w.rows_max, w.passes,
                  static_cast<double>(w.rows) / passes, 1e3 * w.seconds / passes,
                  static_cast<double>(w.tokens) / passes, ratio(static_cast<double>(w.tokens), 1e3 * w.seconds),
                  ratio(static_cast<double>(w.tokens), 1e3 * w.least_seconds));
    }
  }
}

json json_of(const edit_options& f, const std::string& edits, const std::vector<edit_run>& runs, std::size_t too_long) {
  json out = {{"benchmark", "edit"},
              {"replayed", f.replay},
              {"model", f.models.model},
              {"draft", f.models.draft},
              {"edits", edits},
              {"repeats", f.repeats},
              {"too_long", too_long},
              {"numerics", f.models.numerics},
              {"kv", f.models.kv},
              {"threads", f.models.threads},
              {"draft_context", f.models.draft_context},
              {"draft_length", f.models.draft_length}};
  if (f.prediction_right) out["prediction_right"] = *f.prediction_right;
  if (f.replay_draft_accuracy) out["draft_right"] = *f.replay_draft_accuracy;
  if (f.replay_mtp_accuracy) out["mtp_right"] = *f.replay_mtp_accuracy;
  for (const method_summary& s : summarise(runs)) out["methods"].push_back(studies::json_of(s));
  for (const edit_run& r : runs) out["runs"].push_back(studies::json_of(r));
  return out;
}

/// Prints and writes the measurements. Returns whether all methods agree.
result<bool> tell(const edit_options& f, const std::string& edits, const std::vector<edit_run>& runs,
                  std::size_t too_long) {
  const auto summaries = summarise(runs);
  REDLINE_TRY(write_json(f.json, json_of(f, edits, runs, too_long)));
  print_table(summaries, f, too_long);
  if (f.timeline) print_timeline(summaries, runs);
  return std::all_of(summaries.begin(), summaries.end(), [](const method_summary& s) { return s.identical; });
}

/// Reports the files of several processes and marks those that were replayed.
result<bool> tell_merged(edit_options f) {
  std::vector<edit_run> runs;
  for (const std::string& path : f.merge) {
    REDLINE_TRY_ASSIGN(const std::string text, read_whole(path));
    REDLINE_TRY_ASSIGN(auto more, parse_edit_runs(text, path));
    runs.insert(runs.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    const json root = json::parse(text);
    f.replay = f.replay || root.value("replayed", false);
    f.models.model = root.value("model", f.models.model);
  }
  return tell(f, "", runs, 0);
}

result<bool> run(const edit_options& f) {
  if (!f.merge.empty() && f.timeline) {
    return failure{errc::invalid_argument, "--timeline: merged files have no timelines, expected --merge without it"};
  }
  if (!f.merge.empty()) return tell_merged(f);
  if (f.models.model.empty()) return failure{errc::invalid_argument, "expected --model or --merge, found neither"};
  REDLINE_TRY_ASSIGN(const auto path, edits_path(f.edits));
  REDLINE_TRY_ASSIGN(const auto edits, read_edits(path));
  REDLINE_TRY_ASSIGN(auto options, to_engine_options(f.models));
  const auto replay = std::make_shared<answer_replay>();
  for (const auto& [flag, is_given] : {std::pair("--replay-draft-accuracy", f.replay_draft_accuracy.has_value()),
                                       {"--replay-mtp-accuracy", f.replay_mtp_accuracy.has_value()}}) {
    if (!is_given || f.replay) continue;
    return failure{errc::invalid_argument, std::string(flag) + ": expected --replay with it, found none"};
  }
  if (f.replay_draft_accuracy) options.draft_chooser = std::make_shared<draft_replay>(replay, *f.replay_draft_accuracy);
  if (f.replay_mtp_accuracy) replay->simulate_mtp(*f.replay_mtp_accuracy);
  options.target_chooser = replay;
  const auto activities = std::make_shared<activity_record>();
  if (f.timeline) options.activities = [activities](const actor::activity& a) { activities->note(a); };
  options.scheduling.sharing = prefix_sharing::off;  // every method reads its prompt
  progress_line line;
  options.progress = [&line](const std::string& what, std::uint64_t done, std::uint64_t all) {
    show_loading(line, what, done, all);
  };
  REDLINE_TRY_ASSIGN(const auto runner, local_runner::create(std::move(options)));
  const auto methods = choose_methods(f, runner->parts());
  if (methods.empty()) return failure{errc::invalid_argument, "none of the methods can run with these models"};
  std::size_t too_long = 0;
  REDLINE_TRY_ASSIGN(const auto fitting, prepare(edits, f, runner->parts(), too_long));
  if (fitting.empty()) {
    return failure{errc::context_length_exceeded, "none of the edits fits the model's context of " +
                                                      std::to_string(runner->parts().context_max()) + " tokens"};
  }
  std::vector<prepared_edit> chosen;
  for (const std::size_t i : spread(fitting.size(), f.limit)) chosen.push_back(fitting[i]);
  // A run of all edits may take an hour; an interruption must not lose it.
  const auto so_far = [&](const std::vector<edit_run>& runs) {
    return f.json == "-" ? result<void>{} : write_json(f.json, json_of(f, path, runs, too_long));
  };
  REDLINE_TRY_ASSIGN(const auto runs, edit_bench(f, *runner, replay, activities).run(chosen, methods, so_far));
  return tell(f, path, runs, too_long);
}

}  // namespace

int run_edit(const edit_options& options) {
  const auto all_same = run(options);
  return !all_same ? report(all_same.error()) : *all_same ? 0 : exit_failed;
}

}  // namespace redline::studies
