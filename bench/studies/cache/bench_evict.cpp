// redline bench evict: what it costs to continue when the window is full, and how that affects the answer.

#include "bench/studies/cache/bench_evict.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>

#include "actors/cli/command.hpp"
#include "actors/cli/flags/model_flags.hpp"
#include "actors/node/engine.hpp"
#include "bench/studies/cache/evict_study.hpp"
#include "bench/studies/common/edit_corpus.hpp"
#include "bench/studies/common/json_file.hpp"
#include "bench/studies/common/local_runner.hpp"
#include "runtime/model/numerics.hpp"

namespace redline::studies {
namespace {

using kv::eviction_policy;
using nlohmann::ordered_json;

constexpr eviction_policy moving[] = {eviction_policy::reevaluate, eviction_policy::shift, eviction_policy::lazy};
constexpr std::uint32_t drift_shifts[] = {1, 10, 100, 1000, 10'000};

/// The seconds per token of one long answer.
struct pace {
  double mean_ms = 0;
  double longest_ms = 0;  // the longest time between two tokens
  std::uint32_t evictions = 0;
};

std::vector<token> random_prompt(const engine& e, std::size_t count) {
  std::mt19937 random(1);
  std::vector<token> tokens;
  while (tokens.size() < count) {
    const auto t = static_cast<token>(random() % e.tokenizer()->size());
    if (!e.tokenizer()->is_end_of_generation(t)) tokens.push_back(t);
  }
  return tokens;
}

/// Decodes `tokens` tokens one by one after a prompt. The first is left out because it includes the prompt.
result<pace> time_answer(local_runner& runner, std::size_t prompt_count, std::uint32_t tokens,
                         const kv::eviction_options& eviction) {
  using clock = std::chrono::steady_clock;
  generation_spec g{{.tokens_max = tokens + 1, .ignore_end = true, .eviction = eviction},
                    random_prompt(runner.parts(), prompt_count)};
  std::vector<clock::time_point> times;
  REDLINE_TRY_ASSIGN(const auto done,
                     runner.run(std::move(g), {.how = draft::method::regular}, [&](const session_text& m) {
                       if (!m.tokens.empty()) times.push_back(clock::now());
                     }));
  pace p{.evictions = done.stats.evictions};
  p.mean_ms = static_cast<double>(done.stats.total_us - done.stats.first_token_us) / 1e3 / tokens;
  for (std::size_t i = 1; i < times.size(); ++i) {
    p.longest_ms = std::max(p.longest_ms, std::chrono::duration<double, std::milli>(times[i] - times[i - 1]).count());
  }
  return p;
}

result<ordered_json> compare_paces(const evict_options& f) {
  REDLINE_TRY_ASSIGN(auto options, to_engine_options(f.models));
  options.scheduling.sharing = prefix_sharing::off;
  REDLINE_TRY_ASSIGN(const auto runner, local_runner::create(std::move(options)));
  if (f.window > runner->parts().context_max()) {
    return failure{errc::context_length_exceeded, "expected --window of at most " +
                                                      std::to_string(runner->parts().context_max()) +
                                                      " tokens, found " + std::to_string(f.window)};
  }
  (void)time_answer(*runner, 32, 1, {});  // loads the model
  REDLINE_TRY_ASSIGN(const pace fixed, time_answer(*runner, f.window - f.tokens - 2, f.tokens, {}));
  std::printf(
      "%u tokens after a window of %u is full, %u kept; before that a token takes %.2f ms, %.2f at most\n%12s %10s "
      "%10s "
      "%10s %10s %10s\n",
      f.tokens, f.window, f.n_keep, fixed.mean_ms, fixed.longest_ms, "policy", "n_discard", "ms/token", "of fixed",
      "longest", "evictions");
  ordered_json rows = ordered_json::array();
  auto steps = f.n_discard;
  steps.push_back(f.window / 2);
  for (const std::uint32_t n_discard : steps) {
    for (const eviction_policy policy : moving) {
      // Recomputing the window for every token would take hours.
      const std::uint32_t tokens = policy == eviction_policy::reevaluate
                                       ? static_cast<std::uint32_t>(std::min<std::uint64_t>(
                                             f.tokens, std::uint64_t{f.reevaluations_max} * n_discard + 1))
                                       : f.tokens;
      REDLINE_TRY_ASSIGN(
          const pace p, time_answer(*runner, f.window - 2, tokens,
                                    {.policy = policy, .n_keep = f.n_keep, .n_discard = n_discard, .n_ctx = f.window}));
      const std::string name(kv::name_of(policy));
      std::printf("%12s %10u %10.2f %9.3fx %10.2f %10u\n", name.c_str(), n_discard, p.mean_ms,
                  p.mean_ms / fixed.mean_ms, p.longest_ms, p.evictions);
      rows.push_back({{"policy", name},
                      {"n_discard", n_discard},
                      {"tokens", tokens},
                      {"ms_per_token", p.mean_ms},
                      {"of_fixed", p.mean_ms / fixed.mean_ms},
                      {"longest_ms", p.longest_ms},
                      {"evictions", p.evictions}});
    }
  }
  return ordered_json{{"benchmark", "evict"},
                      {"model", f.models.model},
                      {"window", f.window},
                      {"n_keep", f.n_keep},
                      {"fixed_ms_per_token", fixed.mean_ms},
                      {"fixed_longest_ms", fixed.longest_ms},
                      {"rows", rows}};
}

ordered_json compare_drift() {
  const auto& table = *kernels::process_table().table;
  ordered_json rows = ordered_json::array();
  std::printf("\nerror of keys that moved one position at a time, of keys turned once\n%6s %10s %12s %12s\n", "keys",
              "shifts", "eager", "lazy");
  for (const auto type : kernels::all_element_types) {
    for (const key_drift& d : measure_drift(table, type, drift_shifts)) {
      const std::string name(kernels::name_of(type));
      std::printf("%6s %10u %12.2e %12.2e\n", name.c_str(), d.shifts, d.eager, d.lazy);
      rows.push_back({{"keys", name}, {"shifts", d.shifts}, {"eager", d.eager}, {"lazy", d.lazy}});
    }
  }
  return rows;
}

/// A text of at least `count` tokens: a file, or the corpus's old files one after the other.
result<std::vector<token>> long_text(const evict_options& f, const text::tokenizer& tokenizer) {
  std::string text;
  if (!f.text.empty()) {
    REDLINE_TRY_ASSIGN(text, read_whole(f.text));
  } else {
    const auto path = edits_path({});
    if (!path) return failure{errc::invalid_argument, "expected --text FILE"};
    REDLINE_TRY_ASSIGN(const auto edits, read_edits(*path));
    for (const auto& edit : edits) text += edit.task.before;
  }
  text.resize(std::min(text.size(), std::size_t{f.text_tokens} * 16));
  auto tokens = tokenizer.encode(text, {});
  if (tokens.size() > f.text_tokens) tokens.resize(f.text_tokens);
  return tokens;
}

result<ordered_json> compare_quality(const evict_options& f) {
  REDLINE_TRY_ASSIGN(const auto type, parse_kv_type(f.models.kv));
  kernels::worker_team team(f.models.threads);
  REDLINE_TRY_ASSIGN(const auto file, gguf::gguf_file::open(f.models.model));
  REDLINE_TRY_ASSIGN(const auto numerics, model::parse_numerics(f.models.numerics));
  REDLINE_TRY_ASSIGN(const auto* chosen, model::table_for(*file, *kernels::process_table().table, numerics, type));
  const kernels::kernel_table& table = *chosen;
  REDLINE_TRY_ASSIGN(const auto tokenizer, text::tokenizer::from_file(*file));
  REDLINE_TRY_ASSIGN(auto weights, model::load_weights(*file, table, team));
  REDLINE_TRY_ASSIGN(
      const auto model,
      model::transformer::create(std::move(weights), table, team,
                                 {.pages_count = f.window / kv::page_tokens * 3 / 2 + 8, .kv = type, .rows_max = 256}));
  REDLINE_TRY_ASSIGN(const auto text, long_text(f, *tokenizer));
  if (text.size() <= f.window + 1) {
    return failure{errc::invalid_argument,
                   "expected a text of more tokens than --window, found " + std::to_string(text.size())};
  }
  std::printf("\n%zu tokens of text read through the window\n%12s %10s %12s %10s %12s\n", text.size(), "policy",
              "n_discard", "perplexity", "right", "rows/token");
  ordered_json rows = ordered_json::array();
  auto steps = f.n_discard;
  steps.push_back(f.window / 2);
  for (const std::uint32_t n_discard : steps) {
    for (const eviction_policy policy : moving) {
      if (policy == eviction_policy::reevaluate && n_discard < 16) continue;  // as above
      const auto q = read_through_window(
          *model, text, {.policy = policy, .n_ctx = f.window, .n_keep = f.n_keep, .n_discard = n_discard});
      const std::string name(kv::name_of(policy));
      const double right = static_cast<double>(q.right) / static_cast<double>(q.tokens);
      const double work = static_cast<double>(q.rows) / static_cast<double>(q.tokens);
      std::printf("%12s %10u %12.4f %9.2f%% %12.2f\n", name.c_str(), n_discard, q.perplexity(), 100 * right, work);
      rows.push_back({{"policy", name},
                      {"n_discard", n_discard},
                      {"perplexity", q.perplexity()},
                      {"right", right},
                      {"rows_per_token", work},
                      {"tokens", q.tokens}});
    }
  }
  return rows;
}

result<void> run(const evict_options& f) {
  for (const std::uint32_t n : f.n_discard) {
    if (f.n_keep + n >= f.window)
      return failure{errc::invalid_argument,
                     "expected --n-keep and --n-discard of together less than --window, found " +
                         std::to_string(f.n_keep) + " and " + std::to_string(n)};
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // users watch long runs through pipes
  if (f.tokens + 3 > f.window)
    return failure{errc::invalid_argument,
                   "expected --tokens of less than --window, found " + std::to_string(f.tokens)};
  REDLINE_TRY_ASSIGN(auto out, compare_paces(f));
  out["drift"] = compare_drift();
  if (f.text_tokens != 0) {
    REDLINE_TRY_ASSIGN(out["quality"], compare_quality(f));
  }
  return write_json(f.json, out);
}

}  // namespace

int run_evict(const evict_options& options) {
  const auto done = run(options);
  return done ? 0 : report(done.error());
}

}  // namespace redline::studies
