// The real actors of the serving path in a world whose clock, wires and accidents come from a seed. The reference is
// plain decoding: whatever is lost, delayed, preempted or restarted, a finished answer has exactly its tokens.
// REDLINE_SIM_SEED=n replays one seed.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <utility>

#include "actors/serving/session.hpp"
#include "kernels/int8_tables.hpp"
#include "runtime/base/log.hpp"
#include "runtime/sampling/acceptance.hpp"
#include "tests/support/rounds.hpp"
#include "tests/support/sample.hpp"
#include "tests/support/serving_world.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::actors {
namespace {

constexpr std::uint32_t pages_count = 8;
constexpr std::uint32_t rows_max = 32;
constexpr std::uint32_t context_max = 200;
constexpr microseconds life_max{600'000'000};  // in virtual time

using test::manager_where, test::target_where;
constexpr auto client_where = actor::make_address(1, 1, 9);
constexpr auto drafter_where = actor::make_address(3, 4, 6);

/// The models that a scenario serves.
enum class model_kind : std::uint8_t {
  floats,
  integers,  // the weights are quantized, and multiplied as integers where this machine's kernels can
  hybrid,    // one layer keeps a state, and another one drafts
};

/// The models, loaded once for all seeds. The small one shares the big one's embedding, so it is often right.
struct models {
  explicit models(model_kind kind) {
    const bool by_integers = kind == model_kind::integers;
    const auto type = by_integers ? gguf::tensor_type::q8_0 : gguf::tensor_type::f32;
    if (by_integers && kernels::int8_table_of(table) != nullptr) table_used = kernels::int8_table_of(table);
    test::tiny_shape shape{.matrices = type};
    if (kind == model_kind::hybrid) {
      shape.architecture = "qwen35";
      shape.mtp = true;
    }
    const auto file = test::make_tiny_model(shape).file();
    tokenizer = *text::tokenizer::from_file(*file);
    index = *grammar::token_trie::make(tokenizer);
    big = *model::load_weights(*file, *table_used, team);
    small = *model::load_weights(*test::make_tiny_model({.layers = 1, .matrices = type}).file(), *table_used, team);
    for (token t = 0; t < static_cast<token>(tokenizer->size()); ++t) {
      if (tokenizer->is_end_of_generation(t)) ends.push_back(t);
    }
  }
  [[nodiscard]] kv::pool_size memory(std::uint32_t pages) const {
    kv::pool_size size(pages);
    if (!model::shape_of(*big).has_states()) return size;
    size.state_slots = 4;
    size.state_copies = 3;
    size.state_records = 9;
    return size;
  }
  [[nodiscard]] std::unique_ptr<model::transformer> make(bool is_big, std::uint32_t pages) {
    const kv::pool_size size = memory(pages);
    return std::move(*model::transformer::create(is_big ? big : small, *table_used, team,
                                                 {.pages_count = pages,
                                                  .state_slots = size.state_slots,
                                                  .state_copies = size.state_copies,
                                                  .records_max = size.state_records,
                                                  .kv = model::kv_type::f32,
                                                  .rows_max = rows_max}));
  }

  const kernels::kernel_table& table = *kernels::process_table().table;
  const kernels::kernel_table* table_used = &table;
  kernels::worker_team team{1};
  std::shared_ptr<const text::tokenizer> tokenizer;
  std::shared_ptr<const model::weights> big;
  std::shared_ptr<const model::weights> small;
  std::vector<token> ends;
  std::shared_ptr<const grammar::token_trie> index;
};

model_kind served = model_kind::floats;  // set by the current scenario

models& shared_models() {
  static std::array<std::unique_ptr<models>, 3> all;
  auto& one = all.at(static_cast<std::size_t>(served));
  if (!one) one = std::make_unique<models>(served);
  return *one;
}

/// Plain decoding under a grammar: with the grammar's own masks and constrained_output, but no draft, batch or queue.
std::vector<token> plain_constrained_decoding(const generation_spec& g, model::transformer& decoder) {
  auto work = *token_log::make(g, shared_models().tokenizer);
  grammar::grammar_cache grammars(shared_models().index);
  auto step = work.begin();
  std::vector<token> answer = step.tokens;
  std::size_t computed = 0;
  while (!step.finished) {
    if (step.is_cut) {
      step = work.go_on();
      answer.insert(answer.end(), step.tokens.begin(), step.tokens.end());
      continue;
    }
    const auto log = work.log();
    std::span<const float> logits;
    // A span that is refused at its first token adds nothing, so the last row is asked again, now under the mask.
    computed = std::min(computed, log.size() - 1);
    for (; computed < log.size(); ++computed) {
      const kv::piece table{0, static_cast<std::uint32_t>(computed) + 1, 0};
      const model::run one{.tokens = log.subspan(computed, 1),
                           .first_position = static_cast<position>(computed),
                           .table = {&table, 1},
                           .logits_begin = computed + 1 == log.size() ? 0u : 1u};
      logits = decoder.forward({&one, 1});
    }
    auto place = work.grammar();
    place.state = work.grammar_state();
    grammar::grammar_matcher rows(**grammars.find(place), place);
    const auto copied = work.span_draft();
    const auto got =
        sampling::accept(logits, logits.size(), {}, g.sampling, {log, work.log_count(), work.prompt_count()},
                         {.logprobs_count = work.logprobs(),
                          .filter = &rows,
                          .after_draft = copied.empty() ? std::nullopt : std::optional(copied.front())});
    step = work.commit(got.tokens, got.logprobs);
    answer.insert(answer.end(), step.tokens.begin(), step.tokens.end());
  }
  return answer;
}

/// Plain decoding: one token per forward pass; only the model is shared with the code under test.
std::vector<token> plain_decoding(const generation_spec& g) {
  static std::array<std::unique_ptr<model::transformer>, 3> decoders;
  auto& decoder = decoders.at(static_cast<std::size_t>(served));
  if (!decoder) decoder = shared_models().make(true, 8);
  const kv::piece whole{0, 0, 0};
  std::vector<token> log = g.prompt;
  std::vector<token> answer;
  std::size_t computed = 0;
  if (g.rules) return plain_constrained_decoding(g, *decoder);
  std::size_t evicted = 0;
  auto prompt_left = static_cast<std::uint32_t>(g.prompt.size());
  const bool moves = g.eviction.policy != kv::eviction_policy::off;
  while (answer.size() < g.tokens_max && log.size() < g.context_max) {
    std::span<const float> logits;
    for (; computed < log.size(); ++computed) {
      kv::piece table = whole;
      table.count = static_cast<std::uint32_t>(computed) + 1;
      const model::run one{.tokens = std::span(log).subspan(computed, 1),
                           .first_position = static_cast<position>(computed),
                           .table = {&table, 1},
                           .logits_begin = computed + 1 == log.size() ? 0u : 1u,
                           .state = {.begins = computed == 0, .kept = 1}};
      logits = decoder->forward({&one, 1});
    }
    const token next = test::sample(logits, g.sampling, {log, log.size() + evicted, prompt_left});
    if (shared_models().tokenizer->is_end_of_generation(next)) break;
    log.push_back(next);
    answer.push_back(next);
    if (!moves || log.size() < g.eviction.n_ctx) continue;
    const auto first = log.begin() + *g.eviction.n_keep;
    log.erase(first, first + *g.eviction.n_discard);
    evicted += *g.eviction.n_discard;
    prompt_left -= std::min(*g.eviction.n_discard, prompt_left - *g.eviction.n_keep);
    computed = served == model_kind::hybrid ? 0 : *g.eviction.n_keep;  // a state cannot lose tokens
  }
  return answer;
}

struct job {
  generation_spec wish;
  microseconds begins{0};
  std::optional<microseconds> cancelled_after;
  std::vector<token> heard;
  std::optional<session_finished> finished;
  bool cancelled = false;
  bool without_model = false;  // it drafts without a draft model
};

struct story {
  std::vector<job> jobs;
  scheduler_report report;
  bool reported = false;
  [[nodiscard]] bool over() const {
    return std::all_of(jobs.begin(), jobs.end(), [](const job& j) { return j.finished || j.cancelled; });
  }
};

struct open_session {
  static constexpr actor::message_id id{0x0a11};
  static constexpr std::string_view name = "open_session";
  std::uint32_t job = 0;
  static constexpr auto fields(auto& self) { return std::tie(self.job); }
};
struct give_up {
  static constexpr actor::message_id id{0x0a12};
  static constexpr std::string_view name = "give_up";
  std::uint32_t job = 0;
  actor::address session;
  static constexpr auto fields(auto& self) { return std::tie(self.job, self.session); }
};

class crowd final : public actor::actor_of<crowd> {
 public:
  using accepts = actor::protocol<open_session, give_up, session_admitted, session_text, session_finished,
                                  scheduler_report, actor::undeliverable>;
  crowd(actor::actor_context& context, std::shared_ptr<story> s) : actor_of(context), story_(std::move(s)) {}

  void on_start() {
    for (std::uint32_t i = 0; i < story_->jobs.size(); ++i) context().after(story_->jobs[i].begins, open_session{i});
  }
  void on(const open_session& m) {
    const job& j = story_->jobs[m.job];
    session_partners partners{.manager = {manager_where}, .client = context().self()};
    if (draft::asks_model(j.wish.draft.how) && !j.without_model) partners.drafter = {drafter_where};
    auto work = token_log::make(j.wish, shared_models().tokenizer);
    REDLINE_ASSERT(work.has_value(), "the story's requests are good");
    const auto made = context().spawn<session>("session", {64, 64}, std::move(*work), partners);
    if (j.cancelled_after) context().after(*j.cancelled_after, give_up{m.job, made.where});
  }
  void on(const give_up& m) {
    job& j = story_->jobs[m.job];
    if (j.finished) return;
    j.cancelled = true;
    context().tell(actor::actor_ref<session>{m.session}, cancel_session{});
  }
  void on(const session_admitted&) {}
  void on(const session_text& m) {
    auto& heard = story_->jobs[m.session.value - 1].heard;
    heard.insert(heard.end(), m.tokens.begin(), m.tokens.end());
  }
  void on(const session_finished& m) { story_->jobs[m.session.value - 1].finished = m; }
  void on(const scheduler_report& m) {
    story_->report = m;
    story_->reported = true;
  }
  void on(const actor::undeliverable&) {}

 private:
  std::shared_ptr<story> story_;
};

/// A part of the true answer with disturbances, or an unrelated text; some ids do not exist.
std::vector<token> make_prediction(generation_spec g, test::virtual_environment& chance) {
  g.tokens_max = 60;
  std::vector<token> tokens = chance.below(4) == 0 ? std::vector<token>(40, 7) : plain_decoding(g);
  if (!tokens.empty())
    tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(chance.below(tokens.size())));
  for (token& t : tokens) {
    if (chance.below(12) == 0) t = static_cast<token>(chance.below(2) == 0 ? chance.below(290) : chance.random());
  }
  return tokens;
}

/// Copy programs over parts of the prompt with any kind of trust, or JSON.
std::shared_ptr<const output_rules> make_rules(const generation_spec& g, test::virtual_environment& chance) {
  const auto& index = shared_models().index;
  if (chance.below(4) == 0) {
    return *make_text_rules(
        index,
        {.text =
             R"({"type":"object","properties":{"a":{"type":"string"},"b":{"type":"array","items":{"type":"integer","minimum":-4}},"c":{"type":"string","maxLength":9}},"required":["a"]})"});
  }
  std::vector<std::string> files(1 + chance.below(2));
  for (auto& file : files) {
    for (std::size_t line = 1 + chance.below(12); line > 0; --line) {
      for (std::size_t i = chance.below(6); i > 0; --i)
        file += shared_models().tokenizer->piece(g.prompt[chance.below(g.prompt.size())]);
      file += '\n';
    }
  }
  return *make_copy_rules(index, files,
                          {.trust = static_cast<copy_trust>(chance.below(3)),
                           .token_spans = chance.below(2) == 0,
                           .anchors = chance.below(3) == 0,
                           .confidence_min = 0.02F,
                           .probability_min = 0.004F});
}

story make_story(test::virtual_environment& chance, bool with_cancels, bool with_grammars = false) {
  story s;
  const std::size_t count = 6 + chance.below(8);
  for (std::size_t i = 0; i < count; ++i) {
    job j;
    generation_spec& g = j.wish;
    g.session = {i + 1};
    g.tenant = {1 + chance.below(3)};
    const std::size_t pattern = 1 + chance.below(12);
    const std::size_t length = 1 + chance.below(70);
    for (std::size_t t = 0; t < length; ++t) {
      // Repetitions with disturbances, so that lookups hit and miss.
      g.prompt.push_back(t >= pattern && chance.below(8) != 0 ? g.prompt[t - pattern]
                                                              : static_cast<token>(chance.below(290)));
    }
    if (i > 0 && chance.below(3) == 0) {
      // The prompt begins like another one, of any tenant.
      g.prompt = s.jobs[chance.below(i)].wish.prompt;
      g.prompt.resize(std::min<std::size_t>(g.prompt.size(), 70 - chance.below(30)));
      g.prompt.push_back(static_cast<token>(chance.below(290)));
    }
    g.tokens_max = 1 + static_cast<std::uint32_t>(chance.below(50));
    g.context_max = context_max;
    g.draft.how = static_cast<draft::method>(chance.below(served == model_kind::hybrid ? 7 : 6));
    j.without_model = chance.below(2) == 0;
    g.draft.lookup_tokens_max = 1 + static_cast<std::uint32_t>(chance.below(40));
    g.draft.micro_draft_tokens = 1 + static_cast<std::uint32_t>(chance.below(12));
    g.draft.confidence_min = 0.05F;
    if (chance.below(2) == 0) {
      g.sampling.temperature = 0.3F;
      g.sampling.seed = chance.random();
      if (chance.below(2) == 0) g.sampling.repetition_penalty = 1.1F;
    }
    if (with_grammars && chance.below(2) == 0) g.rules = make_rules(g, chance);
    if (!g.rules && chance.below(4) == 0) {
      const auto size = static_cast<std::uint32_t>(g.prompt.size());
      g.eviction = {.policy = kv::eviction_policy::reevaluate,
                    .n_keep = static_cast<std::uint32_t>(chance.below(size)),
                    .n_ctx = size + 2 + static_cast<std::uint32_t>(chance.below(30))};
      g.eviction.n_discard = 1 + static_cast<std::uint32_t>(chance.below(g.eviction.n_ctx - *g.eviction.n_keep - 1));
    }
    if (draft::reads_prediction(g.draft.how) && chance.below(4) != 0) {
      g.prediction = make_prediction(g, chance);
      g.is_from_format = chance.below(3) == 0;
    }
    // Many begin at the same instant, because ties must not stop the world.
    j.begins = microseconds{chance.below(2) == 0 ? 1000 : chance.below(300'000)};
    if (with_cancels && chance.below(5) == 0) j.cancelled_after = microseconds{chance.below(100'000)};
    s.jobs.push_back(std::move(j));
  }
  return s;
}

struct scenario {
  std::uint64_t seed = 0;
  bool faults = false;
  bool grammars = false;
  model_kind serves = model_kind::floats;
  std::function<void(actor::frame&)> sabotage;
};

struct outcome {
  std::vector<std::string> complaints;
  std::uint64_t digest = 0;
  std::uint64_t preempted = 0;
  std::uint64_t drafted = 0;
  std::uint64_t accepted = 0;
  std::array<std::uint64_t, static_cast<std::size_t>(draft::source::last_)> accepted_by_source{};
  std::uint64_t copied_forced = 0;
  std::uint64_t copied_verified = 0;
  std::uint64_t copy_refused = 0;
  std::uint64_t finished = 0;
  std::uint64_t restarts = 0;
  std::uint64_t cached = 0;
};

void populate(test::actor_world& world, const std::shared_ptr<story>& s, std::uint64_t seed) {
  scheduler_options options;
  options.limits = {.running_max = 6, .waiting_max = 64, .tokens_max = context_max};
  options.budget = {.rows_max = rows_max, .prompt_chunk_rows_max = 16};
  options.policy = seed % 2 == 0 ? "fifo" : "fair_share";
  test::add_target(
      world, options, shared_models().memory(pages_count), [] { return shared_models().make(true, pages_count); },
      shared_models().index);
  world.add_worker(3, 4).add<draft_model>(6, "draft model", test::roomy, [](actor::actor_context& c) {
    return std::make_unique<draft_model>(
        c, std::make_unique<draft::small_model_runner>(
               draft::small_model_runner::limits{.prompt_chunk_rows_max = 24, .pages_count = 12},
               draft::small_model_runner::parts{.model = shared_models().make(false, 12),
                                                .end_tokens = shared_models().ends}));
  });
  world.add_worker(1, 1).add<crowd>(9, "crowd", test::roomy,
                                    [s](actor::actor_context& c) { return std::make_unique<crowd>(c, s); });
}

/// Describes what is wrong with the answers.
void judge(const story& s, outcome& out) {
  for (const job& j : s.jobs) {
    const std::string name = "session " + std::to_string(j.wish.session.value);
    const auto expected = plain_decoding(j.wish);
    if (j.heard.size() > expected.size() || !std::equal(j.heard.begin(), j.heard.end(), expected.begin())) {
      out.complaints.push_back(name + " said other tokens than plain decoding");
    }
    if (!j.finished) {
      if (!j.cancelled) out.complaints.push_back(name + " never finished");
      continue;
    }
    if (j.finished->reason == finish_reason::failed) {
      out.complaints.push_back(name +
                               " failed: " + (j.finished->why_not ? j.finished->why_not->describe() : "no reason"));
      continue;
    }
    ++out.finished;
    const session_stats& stats = j.finished->stats;
    out.drafted += stats.drafted;
    out.cached += stats.cached_tokens;
    out.accepted += stats.accepted;
    std::uint64_t drafted = 0, accepted = 0;
    for (const auto from : draft::all_sources) {
      drafted += stats.of(from).drafted;
      accepted += stats.of(from).accepted;
      out.accepted_by_source[static_cast<std::size_t>(from)] += stats.of(from).accepted;
    }
    if (drafted != stats.drafted || accepted != stats.accepted)
      out.complaints.push_back(name + " lost count of its sources");
    if (j.heard.size() != expected.size()) out.complaints.push_back(name + " stopped early");
    const bool full = expected.size() == j.wish.tokens_max;
    // The last token of a grammar may also be the last one that fits.
    const bool ended = j.wish.rules && j.finished->reason == finish_reason::stop;
    out.copied_forced += stats.copied_forced;
    out.copied_verified += stats.copied_verified;
    out.copy_refused += stats.copy_refused;
    if ((j.finished->reason == finish_reason::length) != full && !(full && ended))
      out.complaints.push_back(name + " gave a wrong reason");
  }
}

outcome run(const scenario& plot) {
  configure_log(log_level::off, log_format::text);  // the accidents are intended
  served = plot.serves;
  test::actor_world world(plot.seed);
  auto s = std::make_shared<story>(make_story(world.env(), true, plot.grammars));
  populate(world, s, plot.seed);
  test::virtual_environment chance(plot.seed ^ 0x5eed);
  bool lossy = plot.faults;
  outcome out;
  world.on_wire = [&](actor::frame& f) {
    if (plot.sabotage) plot.sabotage(f);
    // Frames between the processes of sessions, cache manager and drafter can be lost, but never within a process.
    const bool crosses = actor::process_of(f.head.to) != actor::process_of(f.head.from);
    return !(lossy && crosses && chance.below(10) == 0);
  };
  instant next_accident = world.env().now() + microseconds{chance.below(100'000)};
  const auto accidents = [&] {
    if (!plot.faults || out.restarts >= 12 || world.env().now() < next_accident) return;
    const actor::address victims[] = {drafter_where, target_where, manager_where};
    const actor::address victim = victims[chance.below(std::size(victims))];
    world.restart(victim);
    ++out.restarts;
    next_accident = world.env().now() + microseconds{chance.below(1'500'000)};
  };
  const bool over = world.run_until([&] { return s->over(); }, life_max, accidents);
  if (!over) out.complaints.push_back("some session neither finished nor failed in time");
  // Messages in flight arrive, and actors that missed the end of a session notice the silence.
  world.run_for(plot.faults ? microseconds{180'000'000} : microseconds{5'000'000});
  judge(*s, out);

  const auto* manager = world.worker_at(manager_where).find(actor::actor_ref<cache_manager>{manager_where});
  manager->check_integrity();
  world.worker_at(drafter_where).find(actor::actor_ref<draft_model>{drafter_where})->runner().check_integrity();
  const std::uint32_t pages_free = manager->memory().free()[kv::kind::page];
  const std::uint32_t states_free = manager->memory().free()[kv::kind::state_slot];
  if (over && states_free != shared_models().memory(pages_count).state_slots)
    out.complaints.push_back("a state is held by no sequence");
  if (over && pages_free != pages_count) {
    out.complaints.push_back(std::to_string(pages_count - pages_free) + " pages are held by nobody");
  }
  if (over && manager->queue().running_count() + manager->queue().waiting_count() != 0) {
    out.complaints.push_back("the cache manager still holds sequences");
  }
  lossy = false;
  world.send(manager_where, report_status{}, client_where);
  world.run_for(microseconds{1'000'000});
  if (!s->reported) out.complaints.push_back("the cache manager does not report");
  out.preempted = s->report.preempted_total;
  out.digest = world.digest();
  return out;
}

std::string joined(const outcome& o) {
  std::string text;
  for (const auto& c : o.complaints) text += "\n  " + c;
  return text;
}

std::vector<std::uint64_t> seeds(std::uint64_t count) {
  if (const char* one = std::getenv("REDLINE_SIM_SEED")) return {std::strtoull(one, nullptr, 10)};
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 1; i <= count; ++i) all.push_back(i);
  return all;
}

void run_seeds(bool faults, bool grammars = false, model_kind serves = model_kind::floats) {
  outcome sum;
  constexpr std::size_t many = 60;
  const auto all = seeds(test::rounds(many, 6));
  for (const std::uint64_t seed : all) {
    const outcome o = run({.seed = seed, .faults = faults, .grammars = grammars, .serves = serves});
    EXPECT_TRUE(o.complaints.empty()) << "REDLINE_SIM_SEED=" << seed << joined(o);
    sum.preempted += o.preempted;
    sum.drafted += o.drafted;
    sum.accepted += o.accepted;
    for (std::size_t i = 0; i < o.accepted_by_source.size(); ++i) sum.accepted_by_source[i] += o.accepted_by_source[i];
    sum.copied_forced += o.copied_forced;
    sum.copied_verified += o.copied_verified;
    sum.copy_refused += o.copy_refused;
    sum.finished += o.finished;
    sum.restarts += o.restarts;
    sum.cached += o.cached;
  }
  std::printf(
      "%zu seeds: %lu answers, %lu of %lu drafted tokens accepted, %lu tokens shared, %lu preemptions, %lu restarts\n",
      all.size(), static_cast<unsigned long>(sum.finished), static_cast<unsigned long>(sum.accepted),
      static_cast<unsigned long>(sum.drafted), static_cast<unsigned long>(sum.cached),
      static_cast<unsigned long>(sum.preempted), static_cast<unsigned long>(sum.restarts));
  if (all.size() < many) return;  // fewer seeds need not meet everything
  // Drafts must have been accepted and refused, and pages must have run out.
  for (const auto from : draft::all_sources) {
    if (from == draft::source::program && !grammars) continue;
    if (from == draft::source::mtp && serves != model_kind::hybrid) continue;
    EXPECT_GT(sum.accepted_by_source[static_cast<std::size_t>(from)], 0u) << draft::name_of(from);
  }
  EXPECT_GT(sum.drafted, sum.accepted);
  EXPECT_GT(sum.preempted, 0u);
  EXPECT_GT(sum.cached, 0u);
  if (!grammars) return;
  EXPECT_GT(sum.copied_forced, 0u);
  EXPECT_GT(sum.copy_refused, 0u);
}

TEST(serving_sim, answers_equal_plain_decoding) { run_seeds(false); }
TEST(serving_sim, answers_equal_plain_decoding_through_losses_and_restarts) { run_seeds(true); }

TEST(serving_sim, answers_of_integer_products_equal_plain_decoding_through_losses_and_restarts) {
  run_seeds(true, false, model_kind::integers);
}

TEST(serving_sim, answers_of_a_recurrent_hybrid_equal_plain_decoding) { run_seeds(false, false, model_kind::hybrid); }
TEST(serving_sim, answers_of_a_recurrent_hybrid_equal_plain_decoding_through_losses_and_restarts) {
  run_seeds(true, false, model_kind::hybrid);
}

TEST(serving_sim, programs_and_json_equal_plain_decoding) { run_seeds(false, true); }
TEST(serving_sim, programs_and_json_equal_plain_decoding_through_losses_and_restarts) { run_seeds(true, true); }

TEST(serving_sim, a_beginning_is_computed_once_and_for_one_tenant_alone) {
  auto s = std::make_shared<story>();
  std::vector<token> beginning;
  for (int i = 0; i < 90; ++i) beginning.push_back(static_cast<token>(1 + i * 7 % 250));
  const auto ask = [&](std::uint64_t tenant, std::size_t same_count, microseconds begins) {
    job j;
    j.begins = begins;
    j.wish.session = {s->jobs.size() + 1};
    j.wish.tenant = {tenant};
    j.wish.prompt.assign(beginning.begin(), beginning.begin() + static_cast<std::ptrdiff_t>(same_count));
    j.wish.prompt.push_back(3);
    j.wish.tokens_max = 8;
    j.wish.context_max = context_max;
    j.wish.draft.how = draft::method::lookup;
    s->jobs.push_back(std::move(j));
  };
  ask(1, 90, microseconds{1000});
  ask(1, 70, microseconds{2'000'000});  // shares two pages with the first
  ask(2, 70, microseconds{2'000'000});
  ask(1, 64, microseconds{4'000'000});  // ends at a page boundary; its last token is computed
  ask(1, 90, microseconds{6'000'000});
  ask(1, 31, microseconds{6'000'000});
  ask(3, 70, microseconds{8'000'000});  // two at once: one computes, the other waits for it
  ask(3, 70, microseconds{8'000'000});
  test::actor_world world(1);
  populate(world, s, 1);
  ASSERT_TRUE(world.run_until([&] { return s->over(); }, life_max));
  outcome out;
  judge(*s, out);
  EXPECT_TRUE(out.complaints.empty()) << joined(out);
  std::vector<std::uint32_t> cached;
  for (const job& j : s->jobs) cached.push_back(j.finished->stats.cached_tokens);
  EXPECT_EQ(cached, (std::vector<std::uint32_t>{0, 64, 0, 64, 64, 0, 0, 64}));
}

TEST(serving_sim, the_same_seed_gives_the_same_run) {
  EXPECT_EQ(run({.seed = 5, .faults = true}).digest, run({.seed = 5, .faults = true}).digest);
  EXPECT_NE(run({.seed = 5, .faults = true}).digest, run({.seed = 6, .faults = true}).digest);
}

// Canaries: the reference must detect deliberate faults.
TEST(serving_sim, an_acceptance_that_takes_one_wrong_token_is_noticed) {
  bool done = false;
  const outcome o = run({.seed = 3, .sabotage = [&](actor::frame& f) {
                           if (done || f.head.id != batch_done::id) return;
                           auto m = actor::decode<batch_done>(f.body);
                           for (auto& r : m->results) {
                             if (done || r.tokens.empty()) continue;
                             r.tokens.back() = (r.tokens.back() + 1) % 290;
                             done = true;
                           }
                           f.body = actor::encode(*m);
                         }});
  ASSERT_TRUE(done);
  EXPECT_FALSE(o.complaints.empty());
}

TEST(serving_sim, releases_that_go_astray_are_noticed) {
  bool done = false;
  const outcome o = run({.seed = 4, .sabotage = [&](actor::frame& f) {
                           if (f.head.id != release_sequence::id) return;
                           f.body = actor::encode(release_sequence{{999}});
                           done = true;
                         }});
  ASSERT_TRUE(done);
  EXPECT_FALSE(o.complaints.empty());
}

TEST(serving_sim, memory_that_goes_to_another_sequence_is_noticed) {
  bool done = false;
  const outcome o = run({.seed = 4, .sabotage = [&](actor::frame& f) {
                           if (done || f.head.id != forward_batch::id) return;
                           auto m = actor::decode<forward_batch>(f.body);
                           for (auto& run : m->runs) {
                             // Its first tokens now lie in the next page, which belongs to another sequence or is free.
                             auto& first = run.memory.table.front();
                             if (done || run.logits_begin == run.tokens.size() || first.count < 20) continue;
                             const std::uint32_t slots = pages_count * kv::page_tokens;
                             first.first_slot = first.first_slot + 2 * kv::page_tokens + first.count <= slots
                                                    ? first.first_slot + kv::page_tokens
                                                    : 0;
                             done = run.first_position > 0;
                           }
                           f.body = actor::encode(*m);
                         }});
  ASSERT_TRUE(done);
  EXPECT_FALSE(o.complaints.empty());
}

}  // namespace
}  // namespace redline::actors
