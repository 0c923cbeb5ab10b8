// Every drafting method gives the bytes of plain decoding and their log-probabilities, whatever the client predicts.
// Many files are decoded at once, with the real actors, threads and transport of one process and the demonstration
// models; answers under a grammar and edit programs are covered too.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <future>
#include <limits>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>

#include "actors/node/engine.hpp"
#include "actors/serving/session.hpp"
#include "runtime/convert/quantize.hpp"
#include "runtime/formats/recognise.hpp"
#include "tests/runtime/formats/golden_prompts.hpp"
#include "tests/support/rounds.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_data.hpp"

namespace redline::actors {
namespace {

constexpr std::size_t files_max = test::rounds(36, 3);
constexpr std::uint32_t tokens_max = test::rounds(160, 40);

/// What the client predicts the answer to be.
enum class guess : std::uint8_t { none, file, right, mostly_right, wrong, empty, foreign };

struct variant {
  const char* name;
  draft::method how;
  guess prediction = guess::none;
};
using draft::method;
constexpr variant variants[] = {
    {"lookup", method::lookup},
    {"assisted", method::assisted},
    {"blazedit", method::blazedit},
    {"prediction/old file", method::prediction, guess::file},
    {"prediction/right", method::prediction, guess::right},
    {"prediction/90 % right", method::prediction, guess::mostly_right},
    {"prediction/wrong", method::prediction, guess::wrong},
    {"prediction/empty", method::prediction, guess::empty},
    {"prediction/foreign tokens", method::prediction, guess::foreign},
    {"auto", method::automatic},
    {"auto/old file", method::automatic, guess::file},
    {"auto/right", method::automatic, guess::right},
    {"auto/90 % right", method::automatic, guess::mostly_right},
    {"auto/wrong", method::automatic, guess::wrong},
    {"auto/empty", method::automatic, guess::empty},
    {"auto/foreign tokens", method::automatic, guess::foreign},
};
bool needs_model(method how) { return how == method::assisted || how == method::blazedit; }

struct task {
  std::string file;
  std::string instruction;
};

/// Real files if the data collection exists, otherwise small ones made up from parts.
std::vector<task> tasks() {
  std::vector<task> out;
  if (const auto path = test::data_path("edits/quixbugs_python.jsonl")) {
    std::ifstream in(*path);
    for (std::string line; out.size() < files_max && std::getline(in, line);) {
      const auto row = nlohmann::json::parse(line);
      out.push_back({row.at("before"), row.at("instruction")});
    }
    return out;
  }
  const char* names[] = {"load", "save", "total", "merge", "count", "split"};
  const char* bodies[] = {"    return sum(row[\"n\"] for row in a)\n",
                          "    for row in a:\n        b.append(row)\n    return b\n",
                          "    if a > 10:\n        return b\n    return a\n"};
  for (std::size_t i = 0; out.size() < files_max; ++i) {
    std::string file = "import json\n\nLIMIT = " + std::to_string(i + 3) + "\n";
    for (std::size_t j = 0; j <= i % 4; ++j) {
      file += "\n\ndef " + std::string(names[(i + j) % 6]) + "(a, b):\n" + bodies[(i * 5 + j) % 3];
    }
    out.push_back({file, i % 2 == 0 ? "Change the number " + std::to_string(i + 3) + " to 64."
                                    : "Rename the function `" + std::string(names[i % 6]) + "` to `run`."});
  }
  return out;
}

struct next_job {
  static constexpr actor::message_id id{0x0a01};
  static constexpr std::string_view name = "next_job";
  static constexpr auto fields(auto&) { return std::tie(); }
};

/// Opens sessions, some at a time, and collects their output.
class crowd final : public actor::actor_of<crowd> {
 public:
  using accepts = actor::protocol<next_job, session_admitted, session_text, session_finished>;
  struct plan {
    // The test's thread fills in the jobs. A frame orders that before they are read, but this happens inside libzmq,
    // where ThreadSanitizer does not see it.
    std::mutex mutex;
    std::vector<generation_spec> jobs;
    std::function<session_partners(draft::method, actor::address)> partners;
    std::shared_ptr<const text::tokenizer> tokenizer;
    std::size_t at_once = 12;
    std::map<session_id, std::vector<token>> tokens;
    std::map<session_id, std::vector<sampling::emitted_logprob>> logprobs;
    std::map<session_id, std::vector<step_trace>> traces;
    std::map<session_id, std::uint64_t> text_bytes;
    std::map<session_id, session_finished> finished;
    std::promise<void> done;
  };
  crowd(actor::actor_context& context, std::shared_ptr<plan> p) : actor_of(context), plan_(std::move(p)) {}

  void on(const next_job&) {
    const std::lock_guard lock(plan_->mutex);
    for (std::size_t i = 0; i < plan_->at_once; ++i) open_one();
  }
  void on(const session_admitted&) {}
  void on(const session_text& m) {
    auto& t = plan_->tokens[m.session];
    t.insert(t.end(), m.tokens.begin(), m.tokens.end());
    auto& l = plan_->logprobs[m.session];
    l.insert(l.end(), m.logprobs.begin(), m.logprobs.end());
    plan_->text_bytes[m.session] += m.text.size();
    if (m.trace) plan_->traces[m.session].push_back(*m.trace);
  }
  void on(const session_finished& m) {
    plan_->finished[m.session] = m;
    if (plan_->finished.size() == plan_->jobs.size())
      plan_->done.set_value();
    else
      open_one();
  }

 private:
  void open_one() {
    if (opened_ == plan_->jobs.size()) return;
    const auto& job = plan_->jobs[opened_++];
    auto work = token_log::make(job, plan_->tokenizer);
    REDLINE_ASSERT(work.has_value(), "the test's requests are good");
    context().spawn<session>("session", {1024, 1024}, std::move(*work),
                             plan_->partners(job.draft.how, context().self()));
  }
  std::shared_ptr<plan> plan_;
  std::size_t opened_ = 0;
};

struct setting {
  float temperature = 0;
  std::size_t files = files_max;
  std::size_t at_once = 12;
  bool has_model = true;
  bool shows_file = true;  // in the prompt; otherwise it has only the first line, and drafts need a prediction
  /// If false, the verified part of a draft depends on how long passes take, and so do all counts.
  bool whole_drafts = true;
  const char* format = nullptr;  // the format of the models' weights; if set, products are those of integers
};

/// Writes a demonstration model in another format.
std::string write_model(const std::string& name, const char* format, const std::string& folder) {
  const std::string from = test::source_path("bench/demo_models/" + name + ".gguf");
  if (format == nullptr) return from;
  const std::string path = folder + "/" + name + ".gguf";
  kernels::worker_team team(2);
  const auto file = gguf::gguf_file::open(from);
  EXPECT_TRUE(file && convert::quantize(**file, *convert::output_type::parse(format), path, team));
  return path;
}

/// A prediction of `plain`, the answer for `file`.
std::vector<token> prediction_of(guess kind, const std::vector<token>& plain, const std::string& file,
                                 const text::tokenizer& tokenizer, std::mt19937& random) {
  const auto vocabulary = static_cast<token>(tokenizer.size());
  // A gateway receives text, whose tokens may differ from those that the model writes.
  std::vector<token> tokens = tokenizer.encode(kind == guess::file ? file : *tokenizer.decode(plain));
  switch (kind) {
    case guess::none:
    case guess::empty:
      return {};
    case guess::file:
    case guess::right:
      return tokens;
    case guess::mostly_right:
      for (std::size_t i = 5; i < tokens.size(); i += 10) tokens[i] = static_cast<token>(random() % tokenizer.size());
      return tokens;
    case guess::wrong:
      std::shuffle(tokens.begin(), tokens.end(), random);
      return tokens;
    case guess::foreign:
      for (std::size_t i = 6; i < tokens.size(); i += 7) {
        tokens[i] = std::array{vocabulary, token{-1}, std::numeric_limits<token>::max()}[i % 3];
      }
      return tokens;
  }
  return {};
}

session_stats& operator+=(session_stats& sum, const session_stats& s) {
  sum.target_passes += s.target_passes;
  sum.target_rows += s.target_rows;
  sum.draft_passes += s.draft_passes;
  sum.drafted += s.drafted;
  sum.accepted += s.accepted;
  for (std::size_t i = 0; i < sum.sources.size(); ++i) {
    sum.sources[i].drafted += s.sources.at(i).drafted;
    sum.sources[i].accepted += s.sources.at(i).accepted;
  }
  return sum;
}

/// The sums of a trace equal the answer and its statistics.
void check_trace(const std::vector<step_trace>& trace, const std::vector<token>& tokens, std::uint64_t text_bytes,
                 const session_stats& stats) {
  std::uint64_t came = 0, bytes = 0, passes = 0, rows = 0, accepted = 0, round = 0;
  std::map<token_origin, std::uint32_t> drafted, taken;
  for (const step_trace& t : trace) {
    EXPECT_GE(t.round, round) << "rounds are reported in order";
    round = t.round;
    passes += t.passes;
    rows += t.rows;
    accepted += t.accepted;
    EXPECT_LE(t.accepted, t.verified);
    std::uint64_t proposed = 0;
    for (const auto& run : t.drafts) drafted[run.from] += run.tokens, proposed += run.tokens;
    EXPECT_LE(t.verified, proposed);
    for (const auto& run : t.came) {
      taken[run.from] += run.tokens;
      came += run.tokens;
      bytes += run.bytes;
    }
  }
  EXPECT_EQ(came, tokens.size());
  EXPECT_GE(bytes, text_bytes) << "a character may be cut at the end";
  EXPECT_LE(bytes, text_bytes + 16);
  EXPECT_EQ(passes, stats.target_passes);
  EXPECT_EQ(rows, stats.target_rows);
  EXPECT_EQ(accepted, stats.accepted);
  for (const auto from : draft::all_sources) {
    EXPECT_EQ(taken[to_origin(from)], stats.of(from).accepted);
    EXPECT_GE(drafted[to_origin(from)], stats.of(from).accepted);
  }
  EXPECT_EQ(taken[token_origin::model] + accepted, tokens.size());
}

result<std::unique_ptr<engine>> make_engine(const setting& how, const test::temporary_folder& folder) {
  engine_options options;
  options.target_path = write_model("demo-target", how.format, folder.path());
  if (how.has_model) options.draft_path = write_model("demo-draft", how.format, folder.path());
  if (how.format != nullptr) options.numerics = model::numerics::int8;
  options.threads = 2;
  options.scheduling.limits = {.running_max = 8, .waiting_max = 64};
  options.whole_drafts = how.whole_drafts;
  if (how.whole_drafts) options.scheduling.budget.time_max = microseconds{3'600'000'000};
  return engine::create(std::move(options));
}

/// A crowd on an engine that has not started yet.
struct placed_crowd {
  engine& e;
  std::shared_ptr<crowd::plan> plan = std::make_shared<crowd::plan>();
  actor::address where;

  placed_crowd(engine& at, std::uint32_t number, std::size_t at_once) : e(at) {
    plan->tokenizer = e.tokenizer();
    plan->at_once = at_once;
    plan->partners = [&at](draft::method m, actor::address client) { return *at.partners_for(m, client); };
    where = e.io()
                .add<crowd>(topology::client + number, "crowd", {4096, 4096},
                            [p = plan](actor::actor_context& c) { return std::make_unique<crowd>(c, p); })
                .where;
  }
  /// Returns false if the answers take too long.
  bool run(std::vector<generation_spec> jobs) {
    {
      const std::lock_guard lock(plan->mutex);
      plan->jobs = std::move(jobs);
    }
    e.send(where, next_job{});
    return plan->done.get_future().wait_for(std::chrono::minutes(4)) == std::future_status::ready;
  }
};

void compare_methods(const setting& how) {
  const test::temporary_folder folder;
  auto e = make_engine(how, folder);
  ASSERT_TRUE(e) << e.error().describe();
  const auto& tokenizer = (*e)->tokenizer();
  auto all = tasks();
  all.resize(std::min(all.size(), how.files));

  std::uint64_t id = 1;
  const auto wish = [&](const task& t, method drafted_by) {
    generation_spec g;
    g.session = {id++};
    const std::string asked = how.shows_file ? "<|im_start|>user\n" + t.instruction + "\n```python\n" + t.file +
                                                   "```<|im_end|>\n<|im_start|>assistant\n"
                                             : t.file.substr(0, t.file.find('\n') + 1);
    g.prompt = tokenizer->encode(asked, {.parse_special = true});
    g.tokens_max = tokens_max;
    g.context_max = (*e)->context_max();
    g.sampling.temperature = how.temperature;
    g.sampling.seed = 7;
    g.draft.how = drafted_by;
    g.logprobs = 2;
    return g;
  };
  placed_crowd plain_crowd(**e, 0, how.at_once), drafted_crowd(**e, 1, how.at_once);
  const auto& plain = plain_crowd.plan;
  const auto& drafted = drafted_crowd.plan;
  ASSERT_TRUE((*e)->start());
  std::vector<generation_spec> plain_jobs;
  for (const auto& t : all) plain_jobs.push_back(wish(t, method::regular));
  ASSERT_TRUE(plain_crowd.run(std::move(plain_jobs)));

  std::mt19937 random(5);
  std::size_t traced = 0;
  struct expected {
    const variant* what;
    session_id session;
    session_id plain;
    const std::vector<token>* tokens;
  };
  std::vector<expected> list;
  std::vector<generation_spec> drafted_jobs;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& tokens = plain->tokens[{i + 1}];
    for (const variant& v : variants) {
      if (needs_model(v.how) && !how.has_model) continue;
      auto g = wish(all[i], v.how);
      g.prediction = prediction_of(v.prediction, tokens, all[i].file, *tokenizer, random);
      g.trace = ++traced % 2 == 0;
      list.push_back({&v, g.session, {i + 1}, &tokens});
      drafted_jobs.push_back(std::move(g));
    }
  }
  ASSERT_TRUE(drafted_crowd.run(std::move(drafted_jobs)));
  (*e)->stop();

  session_stats regular;
  for (const auto& [session, last] : plain->finished) {
    EXPECT_NE(last.reason, finish_reason::failed);
    regular += last.stats;
  }
  std::map<std::string, session_stats> sums;
  std::size_t traces = 0;
  for (const expected& x : list) {
    const auto& last = drafted->finished[x.session];
    EXPECT_NE(last.reason, finish_reason::failed);
    EXPECT_EQ(drafted->tokens[x.session], *x.tokens) << x.what->name;
    EXPECT_EQ(drafted->logprobs[x.session].size(), x.tokens->size()) << x.what->name;
    EXPECT_EQ(drafted->logprobs[x.session], plain->logprobs[x.plain]) << x.what->name;
    const auto& trace = drafted->traces[x.session];
    if (!trace.empty()) check_trace(trace, *x.tokens, drafted->text_bytes[x.session], last.stats);
    traces += trace.empty() ? 0 : 1;
    session_stats sources;
    for (const auto& s : last.stats.sources) sources.drafted += s.drafted, sources.accepted += s.accepted;
    EXPECT_EQ(sources.drafted, last.stats.drafted) << x.what->name;
    EXPECT_EQ(sources.accepted, last.stats.accepted) << x.what->name;
    EXPECT_LE(last.stats.accepted, last.stats.completion_tokens);
    sums[x.what->name] += last.stats;
  }
  EXPECT_EQ(traces, list.size() / 2);
  std::printf("%zu files%s, temperature %.1f, %zu at once, %s draft model\n%-26s %7s %7s %7s   %s\n%-26s %7u %7u\n",
              all.size(), how.shows_file ? "" : " not shown", static_cast<double>(how.temperature), how.at_once,
              how.has_model ? "a" : "no", "method", "passes", "rows", "draft",
              "accepted/drafted: lookup, draft, prediction", "regular", regular.target_passes, regular.target_rows);
  EXPECT_EQ(regular.drafted, 0u);
  const bool compares_counts =
      how.whole_drafts && all.size() >= 4;  // with fewer files, as in sanitizer builds, many tie
  for (const variant& v : variants) {
    if (!sums.contains(v.name)) continue;
    const session_stats& s = sums[v.name];
    std::printf("%-26s %7u %7u %7u  ", v.name, s.target_passes, s.target_rows, s.draft_passes);
    for (const auto from : draft::all_sources) std::printf(" %u/%u", s.of(from).accepted, s.of(from).drafted);
    std::printf("\n");
    if (!compares_counts) continue;
    // Drafting must have happened, from the right sources, and must have saved passes.
    EXPECT_GT(s.accepted, 0u) << v.name;
    EXPECT_LT(s.target_passes, regular.target_passes) << v.name;
    const auto predicted = s.of(draft::source::prediction);
    if (v.prediction == guess::none || v.prediction == guess::empty) {
      EXPECT_EQ(predicted.drafted, 0u) << v.name;
    } else if (v.prediction == guess::right) {
      // This draft model is always right too, so `auto` may choose it where both would do.
      const auto chosen = v.how == method::automatic ? s.of(draft::source::model).accepted : 0;
      EXPECT_GT(predicted.accepted + chosen, s.of(draft::source::lookup).accepted) << v.name;
    } else if (!how.shows_file) {
      EXPECT_GT(predicted.drafted, 0u) << v.name;
    }
    if (!needs_model(v.how) && v.how != method::automatic) {
      EXPECT_EQ(s.of(draft::source::model).drafted, 0u) << v.name;
    }
  }
  if (compares_counts) {
    EXPECT_LT(sums["prediction/right"].target_passes, sums["lookup"].target_passes);
  }
}

// -- answers under a grammar

/// A request whose answer follows a grammar, with a prompt that drafts can copy from.
struct held_answer {
  std::string name;
  std::string prompt;
  std::shared_ptr<const output_rules> rules;
};

std::vector<held_answer> held_answers(const std::shared_ptr<const grammar::token_trie>& trie) {
  std::vector<held_answer> out;
  const std::string word = "quartz wyvern kludge 7731 #";
  const std::string either = "\"(return|import|class|" + word + ")\"";
  out.push_back({"list",
                 "# list\n[\"return\", \"import\", \"" + word + "\", \"class\"]\n[\"import\", \"" + word + "\"]\n[\"",
                 *make_text_rules(trie, {grammar::grammar_kind::regex, either + ", " + either + ", " + either})});
  const std::string row = R"({"identifier": "alpha", "temperature_celsius": 21, "is_available": true})";
  out.push_back({"object", "rows:\n" + row + "\n" + row + "\n",
                 *make_text_rules(trie, {.text = R"({"type":"object","additionalProperties":false,"properties":{
    "identifier":{"type":"string","maxLength":9},"temperature_celsius":{"type":"integer","minimum":0,"maximum":99},
    "is_available":{"type":"boolean"}},"required":["identifier","temperature_celsius","is_available"]})"})});

  const std::string file = "import os\nLIMIT = 10\nSIZE = 3\ndef f():\n    return LIMIT\n";
  std::string numbered;
  int line = 0;
  for (std::size_t at = 0; at < file.size(); at = file.find('\n', at) + 1)
    numbered += std::to_string(++line) + "\t" + file.substr(at, file.find('\n', at) + 1 - at);
  const std::string asked =
      "<|im_start|>user\nChange the number 10 to 64.\nWrite an edit program that makes the new file: "
      "<copy lines=\"i-j\"/> copies lines i to j of the file, <gen>text</gen> writes new text, </program> ends it. "
      "The file, each line behind its number:\n```python\n" +
      numbered + "```<|im_end|>\n<|im_start|>assistant\n";
  for (const auto trust : {copy_trust::forced, copy_trust::verified, copy_trust::automatic}) {
    for (const auto& [spans, lines, tokens] :
         {std::tuple("lines", true, false), std::tuple("tokens", false, true), std::tuple("both", true, true)}) {
      const copy_options options{.trust = trust, .line_spans = lines, .token_spans = tokens, .confidence_min = 0.5F};
      out.push_back({std::string("program, ") + std::string(name_of(trust)) + ", " + spans, asked,
                     *make_copy_rules(trie, {file}, options)});
    }
  }
  return out;
}

/// Counts the drafted tokens that the grammar decided. Those have no alternative, while tokens that the model chose
/// have the two requested ones.
std::size_t crossed_count(const std::vector<step_trace>& trace,
                          const std::vector<sampling::emitted_logprob>& logprobs) {
  std::size_t count = 0, at = 0;
  for (const step_trace& step : trace) {
    for (const auto& run : step.came) {
      const bool is_drafted =
          run.from != token_origin::model && run.from != token_origin::grammar && run.from != token_origin::copy;
      for (std::uint32_t i = 0; i < run.tokens; ++i, ++at)
        count += is_drafted && at < logprobs.size() && logprobs[at].top.size() == 1 ? 1 : 0;
    }
  }
  return count;
}

double mean_of(const std::vector<sampling::emitted_logprob>& logprobs) {
  double sum = 0;
  for (const auto& one : logprobs) sum += static_cast<double>(one.logprob);
  return sum / std::max<double>(1, static_cast<double>(logprobs.size()));
}

TEST(methods, answers_under_a_grammar_and_their_log_probabilities_are_the_same_with_every_method) {
  constexpr std::size_t seeds = test::rounds(12, 2);  // the best one is kept, as `best_of` does
  const test::temporary_folder folder;
  auto e = make_engine({.whole_drafts = false}, folder);
  ASSERT_TRUE(e) << e.error().describe();
  const auto answers = held_answers((*e)->token_trie());
  placed_crowd crowd_of_all(**e, 0, 12);
  const auto& said = *crowd_of_all.plan;
  ASSERT_TRUE((*e)->start());

  constexpr std::array methods = {method::regular,  method::lookup,     method::assisted,
                                  method::blazedit, method::prediction, method::automatic};
  constexpr std::array temperatures = {1.0F, 0.0F};
  std::uint64_t id = 1;
  std::vector<generation_spec> jobs;
  // They are numbered in this order: answer, seed, method.
  for (const held_answer& a : answers) {
    for (std::size_t seed = 0; seed < seeds; ++seed) {
      for (const method how : methods) {
        generation_spec g;
        g.session = {id++};
        g.prompt = (*e)->tokenizer()->encode(a.prompt, {.parse_special = true});
        g.tokens_max = 60;
        g.context_max = (*e)->context_max();
        g.sampling.temperature = seed == 0 ? temperatures[1] : temperatures[0];
        g.sampling.seed = seed;
        g.draft.how = how;
        g.logprobs = 2;
        g.rules = a.rules;
        g.trace = true;
        if (draft::reads_prediction(how))
          g.prediction = (*e)->tokenizer()->encode(a.prompt.substr(a.prompt.size() / 2));
        jobs.push_back(std::move(g));
      }
    }
  }
  ASSERT_TRUE(crowd_of_all.run(std::move(jobs)));
  (*e)->stop();

  std::size_t crossed = 0;
  id = 1;
  for (const held_answer& a : answers) {
    std::map<method, std::pair<double, std::size_t>> best;
    std::size_t doubts = 0, confidences = 0;
    for (std::size_t seed = 0; seed < seeds; ++seed) {
      const session_id plain{id};
      for (const method how : methods) {
        const session_id own{id++};
        const std::string what = a.name + ", seed " + std::to_string(seed) + ", " + std::string(draft::name_of(how));
        const auto& logprobs = said.logprobs.at(own);
        EXPECT_NE(said.finished.at(own).reason, finish_reason::failed) << what;
        EXPECT_EQ(said.finished.at(own).reason, said.finished.at(plain).reason) << what;
        EXPECT_EQ(said.tokens.at(own), said.tokens.at(plain)) << what;
        EXPECT_EQ(logprobs.size(), said.tokens.at(own).size()) << what;
        EXPECT_EQ(logprobs, said.logprobs.at(plain)) << what;
        EXPECT_EQ(said.finished.at(own).copied, said.finished.at(plain).copied) << what;
        for (const auto& span : said.finished.at(own).copied.spans) {
          doubts += span.reason == span_reason::doubt ? 1 : 0;
          confidences += span.reason == span_reason::confidence ? 1 : 0;
        }
        crossed += crossed_count(said.traces.at(own), logprobs);
        const auto known = best.try_emplace(how, mean_of(logprobs), seed).first;
        if (mean_of(logprobs) > known->second.first) known->second = {mean_of(logprobs), seed};
      }
    }
    for (const method how : methods) EXPECT_EQ(best[how], best[method::regular]) << a.name;
    std::printf("%-28s best of %zu: %zu; spans forced by confidence %zu, doubted %zu\n", a.name.c_str(), seeds,
                best[method::regular].second, confidences, doubts);
  }
  std::printf("tokens that a grammar decided and a draft ran across: %zu\n", crossed);
  EXPECT_GT(crossed, 0u);
}

TEST(methods, output_in_every_prompt_format_is_the_same_with_and_without_recognition) {
  const test::temporary_folder folder;
  auto e = make_engine({.whole_drafts = false}, folder);
  ASSERT_TRUE(e) << e.error().describe();
  const auto& goldens = formats::golden_prompts();
  placed_crowd crowd_of_all(**e, 0, 12);
  const auto& said = *crowd_of_all.plan;
  ASSERT_TRUE((*e)->start());

  constexpr std::array methods = {method::regular, method::lookup, method::prediction, method::automatic};
  std::uint64_t id = 1;
  std::vector<generation_spec> jobs;
  for (const auto& golden : goldens) {
    const auto expected = formats::recognise(golden.prompt);
    ASSERT_TRUE(expected) << golden.format;
    for (const method how : methods) {
      generation_spec g;
      g.session = {id++};
      g.prompt = (*e)->tokenizer()->encode(golden.prompt);
      g.tokens_max = 40;
      g.context_max = (*e)->context_max();
      g.sampling.temperature = 0.7F;
      g.draft.how = how;
      g.prediction = (*e)->tokenizer()->encode(expected->text);
      g.is_from_format = true;
      ASSERT_LT(g.prompt.size() + *g.tokens_max, g.context_max) << golden.format;
      jobs.push_back(std::move(g));
    }
  }
  ASSERT_TRUE(crowd_of_all.run(std::move(jobs)));
  (*e)->stop();

  std::uint32_t drafted = 0;
  id = 1;
  for (const auto& golden : goldens) {
    const session_id plain{id};
    for (const method how : methods) {
      const session_id own{id++};
      EXPECT_EQ(said.tokens.at(own), said.tokens.at(plain)) << golden.format << ", " << draft::name_of(how);
      const auto& stats = said.finished.at(own).stats;
      EXPECT_EQ(stats.of(draft::source::prediction).drafted, 0u);
      drafted += stats.of(draft::source::format).drafted;
    }
  }
  EXPECT_GT(drafted, goldens.size());
}

TEST(methods, greedy_output_is_the_same_with_every_method) { compare_methods({}); }
TEST(methods, greedy_output_is_the_same_without_a_draft_model) {
  compare_methods({.files = test::rounds(18, 3), .has_model = false});
}
TEST(methods, output_of_int8_numerics_is_the_same_with_every_method) {
  for (const char* format : {"q8_0", "q4_k"}) {
    compare_methods({.temperature = 0.4F, .files = test::rounds(12, 2), .whole_drafts = false, .format = format});
  }
}
TEST(methods, sampled_output_is_the_same_with_every_method_and_the_widths_of_the_moment) {
  compare_methods({.temperature = 0.7F, .whole_drafts = false});
}
TEST(methods, output_is_the_same_whatever_the_prediction_when_there_is_nothing_else) {
  for (const bool has_model : {true, false}) {
    compare_methods({.temperature = 0.7F, .files = test::rounds(4, 1), .has_model = has_model, .shows_file = false});
  }
}
TEST(methods, output_is_the_same_for_a_session_alone) {
  for (const float temperature : {0.0F, 0.7F}) {
    compare_methods({.temperature = temperature, .files = test::rounds(4, 1), .at_once = 1});
  }
}

}  // namespace
}  // namespace redline::actors
