// Models whose layers have windows or states, served with little of that memory. Answers and log-probabilities are, bit
// for bit, those of a pool that has enough, while sequences share prefixes, have drafts refused, take memory from each
// other, and lose their target model.

#include <gtest/gtest.h>

#include <map>

#include "actors/serving/session.hpp"
#include "runtime/base/log.hpp"
#include "tests/support/serving_world.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::actors {
namespace {

constexpr std::uint32_t pages_count = 100;

struct begin_sessions {
  static constexpr actor::message_id id{0x0a52};
  static constexpr std::string_view name = "begin_sessions";
  static constexpr auto fields(auto&) { return std::tie(); }
};

struct answers {
  std::map<std::uint64_t, std::vector<token>> tokens;
  std::map<std::uint64_t, std::vector<sampling::emitted_logprob>> scores;
  std::map<std::uint64_t, session_finished> finished;
};

std::vector<token> random_text(std::size_t count, std::uint64_t seed) {
  test::tiny_random random(seed);
  std::vector<token> out(count);
  for (auto& t : out) t = static_cast<token>(random.bits() % test::tiny_model::vocabulary);
  return out;
}

/// Five prompts that share 200 tokens, some of which continue others; one asks for its prompt's log-probabilities.
std::vector<generation_spec> questions(draft::method how = draft::method::lookup) {
  std::vector<generation_spec> all;
  for (std::uint64_t number = 1; number <= 5; ++number) {
    generation_spec& g = all.emplace_back();
    g.session = {number};
    g.tenant = {1};
    g.prompt = random_text(200, 1);
    const auto own = random_text(100 + 40 * number, 10 + number / 2);
    g.prompt.insert(g.prompt.end(), own.begin(), own.end());
    g.tokens_max = 60;
    g.context_max = 1024;
    g.ignore_end = true;
    g.draft.how = how;
    if (number == 4) g.prompt_logprobs = 2;
  }
  return all;
}

class listener final : public actor::actor_of<listener> {
 public:
  using accepts =
      actor::protocol<begin_sessions, session_admitted, session_text, session_finished, actor::undeliverable>;
  listener(actor::actor_context& context, answers& to, draft::method how) : actor_of(context), to_(to), how_(how) {}
  void on_start() { begin_next(); }
  void on(const begin_sessions&) {
    for (const auto& g : questions(how_)) {
      // The first two start together, the others one after the other.
      if (g.session.value != next_ && !(next_ == 1 && g.session.value == 2)) continue;
      const session_partners partners{.manager = {test::manager_where}, .client = context().self()};
      context().spawn<session>("session", {64, 64}, *token_log::make(g, tokenizer()), partners);
    }
  }
  void on(const session_admitted&) {}
  void on(const session_text& m) {
    auto& scores = to_.scores[m.session.value];
    scores.insert(scores.end(), m.prompt_logprobs.begin(), m.prompt_logprobs.end());
    auto& tokens = to_.tokens[m.session.value];
    tokens.insert(tokens.end(), m.tokens.begin(), m.tokens.end());
  }
  void on(const session_finished& m) {
    to_.finished[m.session.value] = m;
    if (to_.finished.size() < 2) return;
    next_ = to_.finished.size() + 1;
    begin_next();
  }
  void on(const actor::undeliverable&) {}

 private:
  static std::shared_ptr<const text::tokenizer> tokenizer() {
    static const auto t = *text::tokenizer::from_file(*test::make_tiny_model().file());
    return t;
  }
  void begin_next() { context().after(microseconds{1000}, begin_sessions{}); }

  answers& to_;
  draft::method how_;
  std::uint64_t next_ = 1;
};

answers serve(const test::tiny_shape& shape, kv::pool_size size, bool loses_target,
              draft::method how = draft::method::lookup) {
  configure_log(log_level::off, log_format::text);
  const kernels::kernel_table& table = *kernels::process_table().table;
  kernels::worker_team team(1);
  const auto weights = *model::load_weights(*test::make_tiny_model(shape).file(), table, team);
  scheduler_options options;
  options.limits = {.running_max = 8, .waiting_max = 8, .tokens_max = 1024};
  options.budget.rows_max = 64;
  options.budget.prompt_chunk_rows_max = 48;
  answers out;
  test::actor_world world{7};
  if (size.window_pages != 0) size.window = model::window_of(model::shape_of(*weights));
  test::add_target(world, options, size, [&] {
    return std::move(*model::transformer::create(weights, table, team,
                                                 {.pages_count = size.pages,
                                                  .window_pages_count = size.window_pages,
                                                  .state_slots = size.state_slots,
                                                  .state_copies = size.state_copies,
                                                  .records_max = size.state_records,
                                                  .kv = model::kv_type::f32,
                                                  .rows_max = 64}));
  });
  world.add_worker(1, 1).add<listener>(
      9, "listener", test::roomy, [&](actor::actor_context& c) { return std::make_unique<listener>(c, out, how); });
  std::size_t steps = 0;
  EXPECT_TRUE(world.run_until([&] { return out.finished.size() == questions().size(); }, microseconds{600'000'000},
                              [&] {
                                if (loses_target && ++steps % 500 == 0 && steps <= 1500)
                                  world.restart(test::target_where);
                              }));
  return out;
}

class window_pages : public ::testing::TestWithParam<const char*> {};

TEST_P(window_pages, give_the_answers_of_a_pool_that_keeps_everything) {
  test::tiny_shape shape{.architecture = GetParam(), .seed = 3};
  if (shape.architecture == "gpt-oss") {
    shape.experts = 7;
    shape.experts_used = 3;
    shape.expert_feed_forward = 32;
  }
  const answers plain = serve(shape, pages_count, false);
  ASSERT_EQ(plain.scores.at(4).size(), questions()[3].prompt.size() - 1);
  EXPECT_GT(plain.finished.at(3).stats.cached_tokens, 0U);
  for (const std::uint32_t pages : {12U, 40U}) {  // 12 is little more than one sequence needs for its window
    for (const bool loses_target : {false, true}) {
      SCOPED_TRACE(std::to_string(pages) + (loses_target ? " pages, target lost" : " pages"));
      const answers few = serve(shape, {pages_count, pages}, loses_target);
      EXPECT_EQ(few.tokens, plain.tokens);
      EXPECT_EQ(few.scores, plain.scores);
      for (const auto& [number, done] : few.finished) EXPECT_EQ(done.reason, finish_reason::length) << number;
    }
  }
  EXPECT_GT(serve(shape, {pages_count, 40}, false).finished.at(3).stats.cached_tokens, 0U)
      << "a prefix whose windows are cached";
}

INSTANTIATE_TEST_SUITE_P(families, window_pages, ::testing::Values("gemma3", "gemma4", "gpt-oss"));

kv::pool_size with_states(std::uint32_t slots, std::uint32_t copies, std::uint32_t records) {
  kv::pool_size size(pages_count);
  size.state_slots = slots;
  size.state_copies = copies;
  size.state_records = records;
  return size;
}

class states : public ::testing::TestWithParam<const char*> {};

TEST_P(states, give_the_same_answers_with_every_number_of_slots_and_records) {
  const test::tiny_shape shape{.architecture = GetParam(), .layers = 3, .seed = 3};
  const answers plain = serve(shape, with_states(8, 12, 17), false, draft::method::regular);
  ASSERT_EQ(plain.scores.at(4).size(), questions()[3].prompt.size() - 1);
  for (const auto& [number, done] : plain.finished) EXPECT_EQ(done.reason, finish_reason::length) << number;
  for (const auto& [slots, copies, records] : {std::tuple(8U, 12U, 17U), {2U, 0U, 5U}, {1U, 1U, 2U}, {3U, 2U, 33U}}) {
    for (const bool loses_target : {false, true}) {
      SCOPED_TRACE(std::to_string(slots) + " slots, " + std::to_string(copies) + " copies, " + std::to_string(records) +
                   " records" + (loses_target ? ", target lost" : ""));
      const answers few = serve(shape, with_states(slots, copies, records), loses_target);
      EXPECT_EQ(few.tokens, plain.tokens);
      EXPECT_EQ(few.scores, plain.scores);
      for (const auto& [number, done] : few.finished) EXPECT_EQ(done.reason, finish_reason::length) << number;
    }
  }
}

TEST_P(states, of_cached_prefixes_are_reused) {
  const test::tiny_shape shape{.architecture = GetParam(), .layers = 3, .seed = 3};
  const answers many = serve(shape, with_states(8, 12, 17), false);
  // The third prompt continues the second, whose state was kept at the last page border of its prompt.
  EXPECT_GT(many.finished.at(3).stats.cached_tokens, 250U);
  const answers none = serve(shape, with_states(1, 0, 17), false);
  EXPECT_EQ(none.finished.at(3).stats.cached_tokens, 0U) << "there is no slot for the states of prefixes";
}

// An MTP layer's drafts change nothing but the number of passes. Its weights are random, so few of them are right.
TEST(mtp_layers, give_the_answers_without_drafts_with_every_number_of_slots_and_records) {
  for (const char* family : {"qwen35", "qwen3next"}) {
    test::tiny_shape shape{.architecture = family, .layers = 3, .seed = 3};
    shape.mtp = true;
    if (shape.architecture == "qwen3next") {
      shape.experts = 5;
      shape.shared_feed_forward = 64;
    }
    const answers plain = serve(shape, with_states(8, 12, 17), false, draft::method::regular);
    std::uint32_t drafted = 0, accepted = 0;
    for (const draft::method how : {draft::method::mtp, draft::method::automatic}) {
      for (const auto& [slots, copies, records] : {std::tuple(8U, 12U, 17U), {2U, 0U, 5U}, {3U, 2U, 33U}}) {
        for (const bool loses_target : {false, true}) {
          SCOPED_TRACE(std::string(family) + " " + std::string(name_of(how)) + ", " + std::to_string(slots) + " slots" +
                       (loses_target ? ", target lost" : ""));
          const answers few = serve(shape, with_states(slots, copies, records), loses_target, how);
          EXPECT_EQ(few.tokens, plain.tokens);
          EXPECT_EQ(few.scores, plain.scores);
          for (const auto& [number, done] : few.finished) {
            drafted += done.stats.of(draft::source::mtp).drafted;
            accepted += done.stats.of(draft::source::mtp).accepted;
          }
        }
      }
    }
    EXPECT_GT(drafted, 200U);
    EXPECT_GT(accepted, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(families, states, ::testing::Values("qwen35", "lfm2"));

}  // namespace
}  // namespace redline::actors
