// Measures what an edit in the middle of a cached text costs, and what is lost where the tokens after it are not
// recomputed. Quality is measured on real edits, times on any model at any length.

#include "bench/studies/cache/bench_pie.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "actors/cli/command.hpp"
#include "actors/cli/flags/model_flags.hpp"
#include "actors/cli/progress_line.hpp"
#include "actors/editing/kv_estimate.hpp"
#include "bench/studies/cache/cached_log.hpp"
#include "bench/studies/cache/pie_cases.hpp"
#include "bench/studies/common/edit_corpus.hpp"
#include "bench/studies/common/json_file.hpp"
#include "bench/studies/common/statistics.hpp"
#include "runtime/model/numerics.hpp"
#include "runtime/text/tokenizer.hpp"

namespace redline::studies {
namespace {

using json = nlohmann::ordered_json;

constexpr std::uint32_t ahead = 64;       // how many tokens distributions are compared over
constexpr std::uint32_t key_stride = 16;  // distance between the tokens whose keys are compared
constexpr std::uint32_t rows_max = 256;

template<class Work>
double ms_of(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) { return percentile(std::move(values), 50); }

/// A model of this process, with space for a few logs.
struct bench_model {
  std::shared_ptr<const gguf::gguf_file> file;
  std::unique_ptr<model::transformer> model;
  std::unique_ptr<kv::page_pool> pool;
  const kernels::kernel_table* table = nullptr;

  static result<bench_model> load(const pie_options& f, kernels::worker_team& team, std::uint32_t tokens_max) {
    REDLINE_TRY_ASSIGN(const auto kv, parse_kv_type(f.kv));
    bench_model out;
    REDLINE_TRY_ASSIGN(out.file, gguf::gguf_file::open(f.model));
    REDLINE_TRY_ASSIGN(const auto numerics, model::parse_numerics(f.numerics));
    REDLINE_TRY_ASSIGN(out.table, model::table_for(*out.file, *kernels::process_table().table, numerics, kv));
    REDLINE_TRY_ASSIGN(auto weights, model::load_weights(*out.file, *out.table, team));
    const std::uint32_t pages = tokens_max / kv::page_tokens + 16;
    REDLINE_TRY_ASSIGN(out.model, model::transformer::create(std::move(weights), *out.table, team,
                                                             {.pages_count = pages, .kv = kv, .rows_max = rows_max}));
    out.pool = std::make_unique<kv::page_pool>(pages);
    return out;
  }
};

/// One edit under one policy.
struct edit_sample {
  double update_ms = 0;     // time until all tokens but the last have KV again
  double computed = 0;      // how many tokens were computed for that
  bool same_line = false;   // the line is the one that exact gives
  bool right_line = false;  // the line is the one in the file
  double similarity = 0;    // how similar the line is to exact's
  double nearness = 0;      // how similar it is to the one in the file
  double divergence = 0;  // mean Kullback-Leibler divergence from exact's distributions over the tokens ahead, in nats
  double largest_divergence = 0;
  std::vector<double> key_cosines;  // by layer; empty where the keys are the same or nothing corresponds
  double healing_ms = 0;
  bool identical = false;  // all logits ahead are equal, bit for bit
};

/// The logarithms of the probabilities.
std::vector<double> log_softmax(std::span<const float> logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(x - top);
  std::vector<double> out;
  out.reserve(logits.size());
  for (const float x : logits) out.push_back(x - top - std::log(sum));
  return out;
}

double divergence(std::span<const float> wanted, std::span<const float> found) {
  const auto p = log_softmax(wanted);
  const auto q = log_softmax(found);
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) sum += std::exp(p[i]) * (p[i] - q[i]);
  return std::max(sum, 0.0);
}

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double dot = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    dot += double{a[i]} * b[i];
    aa += double{a[i]} * a[i];
    bb += double{b[i]} * b[i];
  }
  return ratio(dot, std::sqrt(aa * bb));
}

/// Measures the policies on one edit after another.
class quality_bench {
 public:
  quality_bench(bench_model& m, const text::tokenizer& tokenizer) : m_(m), tokenizer_(tokenizer) {}

  /// Returns one sample per policy, in the order of `names`.
  std::vector<edit_sample> measure(const pie_case& c) {
    before_ = tokenizer_.encode(c.before);
    after_ = tokenizer_.encode(c.after);
    cached_log exact(*m_.model, *m_.pool);
    exact.become({}, before_);
    exact.prepare();
    edit_sample of_exact{.computed = static_cast<double>(after_.size() - 1 - same_count())};
    of_exact.update_ms = ms_of([&] {
      exact.become({}, after_);
      exact.prepare();
    });
    next_ = exact.say(ahead, [](token) { return false; });
    wanted_ = exact.read_ahead(next_);
    line_ = line_of(next_);
    judge(of_exact, line_, wanted_, c);
    const auto pie = approximate(exact, c, kv::splice_policy::pie);
    return {of_exact, approximate(exact, c, kv::splice_policy::conflict), reuse(c), pie, heal(c, pie)};
  }
  static constexpr const char* names[] = {"exact", "conflict", "reuse", "pie", "pie+healing"};

 private:
  [[nodiscard]] std::size_t same_count() const {
    return static_cast<std::size_t>(std::mismatch(before_.begin(), before_.end(), after_.begin(), after_.end()).first -
                                    before_.begin());
  }
  [[nodiscard]] std::string text_of(std::span<const token> tokens) const {
    auto text = tokenizer_.decode(tokens);
    return text ? std::move(*text) : std::string();
  }
  [[nodiscard]] std::string line_of(const std::vector<token>& tokens) const {
    const std::string text = text_of(tokens);
    return text.substr(0, text.find('\n'));
  }
  [[nodiscard]] std::string next_line(cached_log& log) const {
    return line_of(log.say(ahead, [&](token t) {
      const token one[] = {t};
      return text_of(one).find('\n') != std::string::npos;
    }));
  }

  void judge(edit_sample& s, const std::string& line, const std::vector<float>& found, const pie_case& c) const {
    s.same_line = line == line_;
    s.right_line = line == c.next_line;
    s.similarity = similarity(line, line_);
    s.nearness = similarity(line, c.next_line);
    s.identical = found == wanted_;
    const std::size_t vocabulary = found.size() / next_.size();
    for (std::size_t at = 0; at < found.size(); at += vocabulary) {
      const double one =
          divergence(std::span(wanted_).subspan(at, vocabulary), std::span(found).subspan(at, vocabulary));
      s.divergence += one / static_cast<double>(next_.size());
      s.largest_divergence = std::max(s.largest_divergence, one);
    }
  }

  edit_sample approximate(cached_log& exact, const pie_case& c, kv::splice_policy policy) {
    cached_log tried(*m_.model, *m_.pool);
    kv_estimate cache(policy);
    (void)cache.follow(before_);
    tried.become({}, before_);
    tried.prepare();
    const std::uint64_t rows = tried.computed_count();
    edit_sample s;
    s.update_ms = ms_of([&] {
      tried.become(cache.follow(after_).splices, after_);
      tried.prepare();
    });
    s.computed = static_cast<double>(tried.computed_count() - rows);
    s.key_cosines.resize(m_.model->config().layers);
    std::vector<double> count(s.key_cosines.size());
    for (std::uint32_t i = cache.state().exact; i + 1 < after_.size(); i += key_stride) {
      for (std::uint32_t layer = 0; layer < s.key_cosines.size(); ++layer) {
        s.key_cosines[layer] += cosine(exact.key_of(i, layer), tried.key_of(i, layer));
        ++count[layer];
      }
    }
    for (std::size_t layer = 0; layer < count.size(); ++layer)
      s.key_cosines[layer] = ratio(s.key_cosines[layer], count[layer]);
    if (count.front() == 0) s.key_cosines.clear();
    const std::string line = next_line(tried);
    judge(s, line, tried.read_ahead(next_), c);
    return s;
  }

  /// The cache is not notified of the edit at all.
  edit_sample reuse(const pie_case& c) {
    cached_log old(*m_.model, *m_.pool);
    old.become({}, before_);
    old.prepare();
    edit_sample s;
    const std::string line = next_line(old);
    judge(s, line, old.read_ahead(next_), c);
    return s;
  }

  edit_sample heal(const pie_case& c, const edit_sample& at_once) {
    cached_log healed(*m_.model, *m_.pool);
    edit_sample s{.update_ms = at_once.update_ms, .computed = at_once.computed};
    healed.become({}, after_);
    s.healing_ms = ms_of([&] { healed.prepare(); });
    const std::string line = next_line(healed);
    judge(s, line, healed.read_ahead(next_), c);
    return s;
  }

  bench_model& m_;
  const text::tokenizer& tokenizer_;
  std::vector<token> before_;
  std::vector<token> after_;
  std::vector<token> next_;    // the tokens with which exact continues
  std::vector<float> wanted_;  // exact's logits for them
  std::string line_;
};

/// The last lines of each context, as many as fit, where the task's edit lies among them.
std::vector<pie_case> cases_of(const std::vector<pie_context>& contexts, const std::string& task, const pie_options& f,
                               const text::tokenizer& tokenizer, std::uint32_t window) {
  std::vector<pie_case> all;
  for (const auto& c : contexts) {
    if (!f.language.empty() && c.language != f.language) continue;
    std::size_t tokens = 0;
    std::size_t first = c.lines.size();
    while (first > 0) {
      tokens += tokenizer.encode(c.lines[first - 1]).size();
      if (tokens > window) break;
      --first;
    }
    auto one = c.cut(task, first);
    if (!one || tokenizer.encode(one->before).size() > window || tokenizer.encode(one->after).size() > window) continue;
    all.push_back(std::move(*one));
  }
  std::vector<pie_case> some;
  for (const std::size_t i : spread(all.size(), f.limit)) some.push_back(all[i]);
  return some;
}

json summary_of(const std::string& policy, const std::vector<edit_sample>& all) {
  const auto values = [&](const auto& of) {
    std::vector<double> out;
    for (const auto& s : all) out.push_back(static_cast<double>(of(s)));
    return out;
  };
  const auto mean_of = [&](const auto& of) { return mean(values(of)); };
  json out = {{"policy", policy},
              {"update_ms", median(values([](const auto& s) { return s.update_ms; }))},
              {"tokens_computed", mean_of([](const auto& s) { return s.computed; })},
              {"line_as_exact", mean_of([](const auto& s) { return s.same_line; })},
              {"line_similarity", mean_of([](const auto& s) { return s.similarity; })},
              {"line_as_file", mean_of([](const auto& s) { return s.right_line; })},
              {"line_similarity_to_file", mean_of([](const auto& s) { return s.nearness; })},
              {"divergence", mean_of([](const auto& s) { return s.divergence; })},
              {"largest_divergence", percentile(values([](const auto& s) { return s.largest_divergence; }), 100)},
              {"identical", mean_of([](const auto& s) { return s.identical; })}};
  if (policy == "pie+healing") out["healing_ms"] = median(values([](const auto& s) { return s.healing_ms; }));
  std::vector<double> cosines;
  double count = 0;
  for (const auto& s : all) {
    if (s.key_cosines.empty()) continue;
    cosines.resize(s.key_cosines.size());
    for (std::size_t i = 0; i < cosines.size(); ++i) cosines[i] += s.key_cosines[i];
    ++count;
  }
  for (double& c : cosines) c /= count;
  if (!cosines.empty()) out["key_cosine_by_layer"] = cosines;
  return out;
}

void print_summary(const std::string& task, std::size_t count, const json& policies) {
  std::printf("\n%s: %zu edits\n", task.c_str(), count);
  std::printf("%-12s %10s %9s %14s %11s %12s %11s %11s %11s %10s\n", "policy", "update ms", "computed", "line as exact",
              "similarity", "line as file", "similarity", "divergence", "key cosine", "identical");
  for (const json& p : policies) {
    std::string cosine = "-";
    if (p.contains("key_cosine_by_layer")) {
      const auto by_layer = p["key_cosine_by_layer"].get<std::vector<double>>();
      char text[32];
      std::snprintf(text, sizeof text, "%.4f", mean(by_layer));
      cosine = text;
    }
    std::printf("%-12s %10.2f %9.0f %13.1f%% %11.4f %11.1f%% %11.4f %11.6f %11s %9.0f%%\n",
                p["policy"].get<std::string>().c_str(), p["update_ms"].get<double>(),
                p["tokens_computed"].get<double>(), 100 * p["line_as_exact"].get<double>(),
                p["line_similarity"].get<double>(), 100 * p["line_as_file"].get<double>(),
                p["line_similarity_to_file"].get<double>(), p["divergence"].get<double>(), cosine.c_str(),
                100 * p["identical"].get<double>());
    if (p.contains("healing_ms")) std::printf("%-12s %10.2f ms in the background\n", "", p["healing_ms"].get<double>());
  }
}

result<json> measure_quality(const pie_options& f, kernels::worker_team& team, progress_line& line) {
  REDLINE_TRY_ASSIGN(const std::string bytes, read_whole(f.cases));
  REDLINE_TRY_ASSIGN(const auto contexts, parse_pie_contexts(bytes, f.cases));
  std::set<std::string> languages;
  for (const auto& c : contexts) languages.insert(c.language);
  if (!f.language.empty() && !languages.contains(f.language)) {
    std::string known;
    for (const auto& language : languages) known += (known.empty() ? "" : ", ") + language;
    return failure{errc::invalid_argument,
                   "expected --language to be one of the contexts' (" + known + "), found '" + f.language + "'"};
  }
  REDLINE_TRY_ASSIGN(const auto file, gguf::gguf_file::open(f.model));
  REDLINE_TRY_ASSIGN(const auto config, architecture::read_shape(*file));
  REDLINE_TRY_ASSIGN(const auto tokenizer, text::tokenizer::from_file(*file));
  if (config.context <= 2 * ahead) {
    return failure{errc::invalid_argument, "expected a model with a context of more than " + std::to_string(2 * ahead) +
                                               " tokens, found " + std::to_string(config.context)};
  }
  const std::uint32_t window = std::min(f.window, config.context - ahead);
  REDLINE_TRY_ASSIGN(auto m, bench_model::load(f, team, 2 * (window + ahead)));
  quality_bench bench(m, *tokenizer);
  json out = json::array();
  for (const auto& task : f.tasks) {
    const auto cases = cases_of(contexts, task, f, *tokenizer, window);
    std::vector<std::vector<edit_sample>> by_policy(std::size(quality_bench::names));
    for (std::size_t i = 0; i < cases.size(); ++i) {
      line.show(task + " " + std::to_string(i + 1) + " of " + std::to_string(cases.size()));
      const auto samples = bench.measure(cases[i]);
      for (std::size_t p = 0; p < samples.size(); ++p) by_policy[p].push_back(samples[p]);
    }
    line.clear();
    json policies = json::array();
    for (std::size_t p = 0; p < by_policy.size() && !cases.empty(); ++p) {
      policies.push_back(summary_of(quality_bench::names[p], by_policy[p]));
    }
    print_summary(task, cases.size(), policies);
    out.push_back({{"task", task}, {"edits", cases.size()}, {"window", window}, {"policies", policies}});
  }
  return out;
}

/// Some tokens that every vocabulary has.
std::vector<token> some_tokens(std::uint32_t count, std::uint32_t vocabulary, std::uint64_t seed) {
  std::mt19937_64 chance(seed);
  std::vector<token> out(count);
  for (token& t : out) t = static_cast<token>(chance() % vocabulary);
  return out;
}

/// Measures insertions of `f.inserted` tokens at `at` into `length` tokens.
json measure_insertion(const pie_options& f, bench_model& m, std::uint32_t length, std::uint32_t at,
                       progress_line& line) {
  const std::uint32_t vocabulary = m.model->config().vocabulary;
  const auto before = some_tokens(length, vocabulary, length);
  auto after = before;
  const auto inserted = some_tokens(f.inserted, vocabulary, 7);
  after.insert(after.begin() + at, inserted.begin(), inserted.end());
  std::vector<double> update, next;
  for (std::uint32_t i = 0; i <= f.samples; ++i) {
    line.show(std::to_string(length) + " tokens, insertion at " + std::to_string(at));
    cached_log log(*m.model, *m.pool);
    kv_estimate cache(kv::splice_policy::pie);
    (void)cache.follow(before);
    log.become({}, before);
    log.pretend();
    const double took = ms_of([&] {
      log.become(cache.follow(after).splices, after);
      log.prepare();
    });
    const double read = ms_of([&] { (void)log.read_last(); });
    if (i == 0) continue;  // the first round warms caches and buffers
    update.push_back(took);
    next.push_back(read);
  }
  json out = {{"context", length},
              {"at", at},
              {"inserted", f.inserted},
              {"pie_ms", median(update)},
              {"next_token_ms", median(next)}};
  if (length - at <= f.exact_max) {
    line.show(std::to_string(length) + " tokens, computed again from " + std::to_string(at));
    cached_log log(*m.model, *m.pool);
    log.become({}, before);
    log.pretend();
    out["exact_ms"] = ms_of([&] {
      log.become({}, after);
      log.prepare();
    });
  }
  line.clear();
  return out;
}

result<json> measure_times(const pie_options& f, kernels::worker_team& team, progress_line& line) {
  const std::uint32_t longest = *std::max_element(f.lengths.begin(), f.lengths.end()) + f.inserted;
  REDLINE_TRY_ASSIGN(auto m, bench_model::load(f, team, longest));
  if (longest > m.model->config().context) {
    return failure{errc::invalid_argument, "expected --lengths and --inserted within the model's context of " +
                                               std::to_string(m.model->config().context) + ", found " +
                                               std::to_string(longest)};
  }
  std::printf("\n%u tokens inserted; the rest has KV\n%9s %8s %10s %14s %10s %8s\n", f.inserted, "context", "at",
              "pie ms", "next token ms", "exact ms", "exact/pie");
  json out = json::array();
  for (const std::uint32_t length : f.lengths) {
    for (const std::uint32_t at : {std::min(100U, length / 2), length / 2}) {
      out.push_back(measure_insertion(f, m, length, at, line));
      const json& one = out.back();
      std::printf("%9u %8u %10.1f %14.1f ", length, at, one["pie_ms"].get<double>(),
                  one["next_token_ms"].get<double>());
      if (!one.contains("exact_ms"))
        std::printf("%10s %8s\n", "-", "-");
      else
        std::printf("%10.0f %7.0fx\n", one["exact_ms"].get<double>(), ratio(one["exact_ms"], one["pie_ms"]));
    }
  }
  return out;
}

result<void> run(const pie_options& f) {
  const auto& chosen = kernels::process_table();
  if (chosen.table == nullptr) return failure{errc::invalid_argument, chosen.problem};
  if (f.cases.empty() && f.lengths.empty()) {
    return failure{errc::invalid_argument,
                   "expected --cases, a file of edits, or --lengths to measure times at; found neither"};
  }
  kernels::worker_team team(f.threads, true);
  progress_line line;
  json out = {{"benchmark", "pie"},     {"model", f.model},       {"target", chosen.table->name},
              {"threads", team.size()}, {"numerics", f.numerics}, {"kv", f.kv}};
  std::printf("%s, %s kernels, %u threads, %s keys and values\n", f.model.c_str(),
              std::string(chosen.table->name).c_str(), team.size(), f.kv.c_str());
  if (!f.cases.empty()) {
    REDLINE_TRY_ASSIGN(out["quality"], measure_quality(f, team, line));
  }
  if (!f.lengths.empty()) {
    REDLINE_TRY_ASSIGN(out["times"], measure_times(f, team, line));
  }
  return write_json(f.json, out);
}

}  // namespace

int run_pie(const pie_options& options) {
  const auto done = run(options);
  return done ? 0 : report(done.error());
}

}  // namespace redline::studies
