// What do edit programs bring? The cost of a copied run beside decoding it, what part of edits can be copied, the bound that
// follows, programs executed by the real actors, and what a span that is a little off does.

#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "actors/commands/edit_corpus.hpp"
#include "actors/commands/forward_probe.hpp"
#include "actors/commands/local_runner.hpp"
#include "actors/commands/statistics.hpp"
#include "runtime/copy/oracle.hpp"

namespace redline::actors::commands {
namespace {

using json = nlohmann::ordered_json;

struct flags {
  model_flags models;
  std::vector<std::string> edits;
  std::uint32_t context = 1024;
  std::vector<std::uint32_t> runs{1, 8, 32, 128, 512};
  std::vector<std::uint32_t> spans_min{2, 4, 8, 16, 32};
  std::uint32_t executed = 4;
  double seconds = 0.3;
  bool json = false;
};

/// Seconds of one run of N tokens behind the context, and of N decode steps there.
struct run_cost {
  std::uint32_t tokens = 0;
  double run_ms = 0;
  double decode_ms = 0;
  [[nodiscard]] double speed_up() const { return ratio(decode_ms, run_ms); }
};

result<std::vector<run_cost>> measure_runs(const flags& f, const engine& e) {
  REDLINE_TRY_ASSIGN(const auto file, gguf::gguf_file::open(f.models.model));
  REDLINE_TRY_ASSIGN(const auto kv, kv_type_of(f.models.kv));
  const auto& table = kernels::table_for_cache(*kernels::process_table().table, kv);
  kernels::worker_team team(f.models.threads);
  REDLINE_TRY_ASSIGN(auto weights, model::load_weights(*file, table, team));
  const std::uint32_t most = *std::max_element(f.runs.begin(), f.runs.end());
  if (f.context + most > e.context_max()) {
    return failure{errc::invalid_argument, "wanted --context and the longest of --runs within the model's context of " +
                                               std::to_string(e.context_max()) + ", found " + std::to_string(f.context + most)};
  }
  REDLINE_TRY_ASSIGN(const auto probe, forward_probe::create(*file, weights, table, team,
                                                             {.rows_max = std::max(most, 64U), .tokens_max = f.context + most, .kv = kv, .last_only = true}));
  probe->grow_context(f.context);
  const double step = probe->measure(1, {.seconds = f.seconds}).median_ms;
  std::vector<run_cost> all;
  for (const auto n : f.runs) all.push_back({n, probe->measure(n, {.seconds = f.seconds}).median_ms, n * step});
  return all;
}

/// Of a run of any length: between two measured ones in proportion of the logarithms, outside as the nearest.
double speed_up_of(const std::vector<run_cost>& costs, double tokens) {
  auto above = std::find_if(costs.begin(), costs.end(), [&](const run_cost& c) { return c.tokens >= tokens; });
  if (above == costs.end()) return costs.back().speed_up();
  if (above == costs.begin()) return costs.front().speed_up();
  const auto below = above - 1;
  const double share = std::log(tokens / below->tokens) / std::log(static_cast<double>(above->tokens) / below->tokens);
  return std::exp(std::log(below->speed_up()) * (1 - share) + std::log(above->speed_up()) * share);
}

/// How much of a corpus's new files programs copy.
struct coverage {
  std::string level;  // "lines", or "tokens >= m"
  std::uint64_t tokens = 0;
  std::uint64_t copied = 0;
  double copied_cost = 0;  // in decode steps
  [[nodiscard]] double share() const { return ratio(static_cast<double>(copied), static_cast<double>(tokens)); }
  /// 1 / ((1 - f) + f / s), s over the spans.
  [[nodiscard]] double bound() const {
    return ratio(static_cast<double>(tokens), static_cast<double>(tokens - copied) + copied_cost);
  }
};

copy::document in_tokens(const std::string& bytes, const grammar::vocabulary_index& index, std::uint64_t& count) {
  std::vector<std::uint32_t> ends;
  std::uint32_t end = 0;
  for (const token t : index.spell(bytes)) ends.push_back(end += static_cast<std::uint32_t>(index.words().piece(t).size()));
  count += ends.size();
  return {bytes, std::move(ends)};
}

void cover(coverage& c, const known_edit& e, const grammar::vocabulary_index& index, const std::vector<run_cost>& costs, copy::unit of,
           std::uint32_t span_min) {
  std::uint64_t ignored = 0;
  const std::vector<copy::document> before = {in_tokens(e.task.before, index, ignored)};
  const auto after = in_tokens(e.after, index, c.tokens);
  for (const auto& op : copy::shortest_program(before, after, {.of = of, .span_min = span_min})) {
    const auto* span = std::get_if<copy::copy_op>(&op);
    if (span == nullptr) continue;
    const std::uint64_t n = span->of == copy::unit::tokens ? span->last - span->first + 1
                                                           : index.spell(before[0].slice(span->of, span->first, span->last)).size();
    c.copied += n;
    c.copied_cost += static_cast<double>(n) / speed_up_of(costs, static_cast<double>(n));
  }
}

/// Share of edits whose program still gives the file after every span's end moved by up to `lines`.
double exact_after_moving(const std::vector<known_edit>& edits, std::int64_t lines) {
  std::size_t exact = 0;
  for (const auto& e : edits) {
    const std::vector<copy::document> before = {copy::document(e.task.before)};
    auto program = copy::shortest_program(before, copy::document(e.after));
    std::int64_t sign = 1;
    for (auto& op : program) {
      auto* span = std::get_if<copy::copy_op>(&op);
      if (span == nullptr) continue;
      const std::int64_t last = std::clamp<std::int64_t>(std::int64_t{span->last} + sign * lines, span->first, before[0].count(copy::unit::lines));
      span->last = static_cast<std::uint32_t>(last);
      sign = -sign;
    }
    const auto got = copy::resolve(program, before);
    exact += got && *got == e.after ? 1 : 0;
  }
  return ratio(static_cast<double>(exact), static_cast<double>(edits.size()));
}

struct executed {
  std::size_t edits = 0;
  std::size_t exact = 0;
  double copy_seconds = 0;
  double regular_seconds = 0;
  std::size_t own_ended = 0;  // the model's own programs
  std::size_t own_exact = 0;
};

/// The tokens of the shortest program with its spans, as the actors write it.
std::optional<std::vector<token>> program_tokens(const guide_rules& rules, const known_edit& e) {
  const std::string text = copy::print_program(copy::shortest_program(rules.files, copy::document(e.after)), false);
  const auto& programs = static_cast<const grammar::copy_grammar&>(rules.language->rules());
  return rules.language->write(text, [&](grammar::state& s, std::vector<token>& out) {
    const auto op = programs.position(s).op;
    const auto span = rules.language->words().spell(rules.files[op.file - 1].slice(op.of, op.first, op.last));
    out.insert(out.end(), span.begin(), span.end());
    programs.resume(s, 0);
  });
}

result<executed> execute(const std::vector<known_edit>& edits, const flags& f, local_runner& runner, target_probe& probe) {
  executed sum;
  const auto& e = runner.parts();
  token end = -1;
  for (token t = 0; t < static_cast<token>(e.words()->size()); ++t) {
    if (e.words()->is_end_of_generation(t)) end = t;
  }
  for (const auto i : spread(edits.size(), f.executed)) {
    const known_edit& edit = edits[i];
    const draft::draft_options regular{.how = draft::method::regular};
    REDLINE_TRY_ASSIGN(auto plain, request_of(edit.task, regular, e));
    REDLINE_TRY_ASSIGN(auto program, request_of(edit.task, regular, e, copy_options{}));
    auto answer = e.words()->encode(answer_of(edit.task, edit.after));
    answer.push_back(end);
    const auto known = program_tokens(*program.rules, edit);
    if (!known || program.prompt.size() + known->size() >= e.context_max() || plain.prompt.size() + answer.size() >= e.context_max()) continue;
    const auto own = program;
    probe.replay(runner.next_sequence(), *known);
    REDLINE_TRY_ASSIGN(const auto copied, runner.run(std::move(program), regular, [](const session_text&) {}));
    probe.replay(runner.next_sequence(), answer);
    REDLINE_TRY_ASSIGN(const auto decoded, runner.run(std::move(plain), regular, [](const session_text&) {}));
    REDLINE_TRY_ASSIGN(const auto alone, runner.run(own, regular, [](const session_text&) {}));
    ++sum.edits;
    sum.exact += copied.text == edit.after ? 1 : 0;
    sum.copy_seconds += static_cast<double>(copied.stats.total_us) / 1e6;
    sum.regular_seconds += static_cast<double>(decoded.stats.total_us) / 1e6;
    sum.own_ended += alone.reason == finish_reason::stop ? 1 : 0;
    sum.own_exact += alone.text == edit.after ? 1 : 0;
  }
  return sum;
}

int run(const flags& f) {
  auto options = engine_options_of(f.models);
  if (!options) return report(options.error());
  const auto probe = std::make_shared<target_probe>();
  options->probe = probe;
  options->scheduling.sharing = prefix_sharing::off;  // every answer reads its prompt
  const auto runner = local_runner::create(std::move(*options));
  if (!runner) return report(runner.error());
  const engine& e = (*runner)->parts();
  if (!e.word_index()) return report({errc::unsupported_format, "the model's vocabulary cannot spell programs"});
  const auto costs = measure_runs(f, e);
  if (!costs) return report(costs.error());
  json out = {{"model", f.models.model}, {"context", f.context}, {"runs", json::array()}, {"corpora", json::array()}};
  if (!f.json) std::printf("one run of N tokens behind %u others, logits of its last row, beside N decode steps\n%8s %10s %10s %9s\n", f.context, "N", "run ms", "decode ms", "speed-up");
  for (const auto& c : *costs) {
    if (!f.json) std::printf("%8u %10.2f %10.2f %8.1fx\n", c.tokens, c.run_ms, c.decode_ms, c.speed_up());
    out["runs"].push_back({{"tokens", c.tokens}, {"run_ms", c.run_ms}, {"decode_ms", c.decode_ms}, {"speed_up", c.speed_up()}});
  }
  for (const auto& path : f.edits) {
    const auto edits = read_edits(path);
    if (!edits) return report(edits.error());
    json corpus = {{"edits", path}, {"pairs", edits->size()}, {"coverage", json::array()}, {"moved", json::array()}};
    if (!f.json) std::printf("\n%s: %zu pairs\n%12s %9s %9s\n", path.c_str(), edits->size(), "copied", "share", "bound");
    std::vector<std::pair<std::string, std::uint32_t>> levels{{"lines", 1}};
    for (const auto m : f.spans_min) levels.emplace_back("tokens>=" + std::to_string(m), m);
    for (const auto& [name, least] : levels) {
      coverage c{.level = name};
      for (const auto& edit : *edits) cover(c, edit, *e.word_index(), *costs, name == "lines" ? copy::unit::lines : copy::unit::tokens, least);
      if (!f.json) std::printf("%12s %8.1f%% %8.2fx\n", name.c_str(), 100 * c.share(), c.bound());
      corpus["coverage"].push_back({{"level", name}, {"tokens", c.tokens}, {"copied", c.copied}, {"share", c.share()}, {"bound", c.bound()}});
    }
    for (const std::int64_t lines : {0, 1, 2, 4}) {
      const double exact = exact_after_moving(*edits, lines);
      if (!f.json) std::printf("ends moved by %lld lines, forced: %5.1f%% exact\n", static_cast<long long>(lines), 100 * exact);
      corpus["moved"].push_back({{"lines", lines}, {"exact", exact}});
    }
    const auto x = f.executed == 0 ? result<executed>(executed{}) : execute(*edits, f, **runner, *probe);
    if (!x) return report(x.error());
    if (!f.json && x->edits > 0) {
      std::printf("shortest programs executed: %zu edits, %zu exact, %.3f s; the same files decoded: %.3f s; %.2fx\n"
                  "the model's own programs: %zu ended, %zu exact\n", x->edits, x->exact, x->copy_seconds,
                  x->regular_seconds, ratio(x->regular_seconds, x->copy_seconds), x->own_ended, x->own_exact);
    }
    corpus["executed"] = {{"edits", x->edits}, {"exact", x->exact}, {"copy_seconds", x->copy_seconds}, {"regular_seconds", x->regular_seconds},
                          {"own_ended", x->own_ended}, {"own_exact", x->own_exact}};
    out["corpora"].push_back(std::move(corpus));
  }
  if (f.json) std::cout << out.dump() << "\n";
  return 0;
}

}  // namespace

void add_bench_copy(CLI::App& bench, int& exit_code) {
  auto f = std::make_shared<flags>();
  auto* c = bench.add_subcommand("copy", "Edit programs: cost of copied runs, what edits can copy, programs executed");
  add_model_flags(*c, f->models);
  c->add_option("--edits", f->edits, "JSONL files of edits (default: bench/edits.jsonl)")->check(CLI::ExistingFile);
  c->add_option("--behind", f->context, "Tokens before the measured runs")->check(CLI::Range(0, 1 << 20))->capture_default_str();
  c->add_option("--runs", f->runs, "Lengths of runs")->delimiter(',')->check(CLI::Range(1, 4096))->capture_default_str();
  c->add_option("--spans-min", f->spans_min, "Least tokens of a token span")->delimiter(',')->check(CLI::Range(1, 1024))->capture_default_str();
  c->add_option("--execute", f->executed, "Edits whose programs are executed; 0: none")->check(CLI::Range(0, 1000))->capture_default_str();
  c->add_option("--seconds", f->seconds, "Time per measured run at least")->check(CLI::Range(0.0, 60.0))->capture_default_str();
  c->add_flag("--json", f->json, "Print one JSON object");
  c->callback([f, &exit_code] {
    std::sort(f->runs.begin(), f->runs.end());
    if (f->edits.empty()) f->edits.emplace_back("bench/edits.jsonl");
    exit_code = run(*f);
  });
}

}  // namespace redline::actors::commands
