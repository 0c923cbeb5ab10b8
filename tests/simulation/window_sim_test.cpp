// Answers that continue beyond their window, with the real session, drafter, scheduler, cache and target model.

#include <gtest/gtest.h>

#include <cstdlib>

#include "actors/serving/session.hpp"
#include "runtime/base/log.hpp"
#include "tests/support/by_hand.hpp"
#include "tests/support/serving_world.hpp"

namespace redline::actors {
namespace {

using test::manager_where, test::target_where;

std::shared_ptr<const text::tokenizer> tokenizer() {
  static const auto w = *text::tokenizer::from_file(*test::make_tiny_model().file());
  return w;
}

struct stream {
  generation_spec wish;
  std::vector<token> heard;
  std::optional<session_finished> finished;
  // The largest values seen during the run.
  std::uint32_t held_max = 0;
  std::size_t pieces_max = 0;
  std::size_t frame_bytes_max = 0;
};

struct open_stream {
  static constexpr actor::message_id id{0x0a31};
  static constexpr std::string_view name = "open_stream";
  static constexpr auto fields(auto&) { return std::tie(); }
};

class listener final : public actor::actor_of<listener> {
 public:
  using accepts = actor::protocol<open_stream, session_admitted, session_text, session_finished, actor::undeliverable>;
  listener(actor::actor_context& context, stream& s) : actor_of(context), stream_(s) {}
  void on_start() { context().after(microseconds{1000}, open_stream{}); }
  void on(const open_stream&) {
    const session_partners partners{.manager = {manager_where}, .client = context().self()};
    context().spawn<session>("session", {64, 64}, *token_log::make(stream_.wish, tokenizer()), partners);
  }
  void on(const session_admitted&) {}
  void on(const session_text& m) { stream_.heard.insert(stream_.heard.end(), m.tokens.begin(), m.tokens.end()); }
  void on(const session_finished& m) { stream_.finished = m; }
  void on(const actor::undeliverable&) {}

 private:
  stream& stream_;
};

/// Runs one session to its end. The target model dies when `restart_at` tokens were received.
stream run(generation_spec wish, std::uint32_t pages_count, std::optional<std::size_t> restart_at = std::nullopt) {
  configure_log(log_level::off, log_format::text);
  stream s{.wish = std::move(wish)};
  test::actor_world world(9);
  scheduler_options options;
  options.limits = {.running_max = 4, .waiting_max = 4, .tokens_max = 2048};
  options.budget = {.rows_max = 64, .prompt_chunk_rows_max = 64};
  test::add_target(world, options, pages_count, [=] { return test::shared_weights().make(pages_count); });
  world.add_worker(1, 1).add<listener>(9, "listener", test::roomy,
                                       [&](actor::actor_context& c) { return std::make_unique<listener>(c, s); });
  world.on_wire = [&](actor::frame& f) {
    s.frame_bytes_max = std::max(s.frame_bytes_max, f.body.size());
    if (f.head.id != forward_batch::id) return true;
    const auto m = actor::decode<forward_batch>(f.body);
    for (const auto& run : m->runs) s.pieces_max = std::max(s.pieces_max, run.memory.table.size());
    return true;
  };
  const auto memory = [&]() -> const kv::cache& {
    return world.worker_at(manager_where).find(actor::actor_ref<cache_manager>{manager_where})->memory();
  };
  const auto accident = [&] {
    s.held_max = std::max(s.held_max, pages_count - memory().free()[kv::kind::page]);
    if (!restart_at || s.heard.size() < *restart_at) return;
    world.restart(target_where);
    restart_at.reset();
  };
  EXPECT_TRUE(world.run_until([&] { return s.finished.has_value(); }, microseconds{std::int64_t{1} << 50}, accident));
  world.run_for(microseconds{1'000'000});
  memory().check_integrity();
  EXPECT_EQ(memory().free()[kv::kind::page], pages_count);
  return s;
}

generation_spec wish(kv::eviction_policy policy, std::uint32_t n_discard, std::uint32_t tokens_max, std::uint32_t n_ctx,
                     draft::method how) {
  generation_spec g;
  g.session = {1};
  g.tenant = {1};
  for (token t = 0; t < 21; ++t) g.prompt.push_back((t * 37) % 250);
  g.tokens_max = tokens_max;
  g.context_max = 2048;
  g.ignore_end = true;
  g.eviction = {.policy = policy, .n_keep = 5, .n_discard = n_discard, .n_ctx = n_ctx};
  g.draft.how = how;
  g.sampling.temperature = 0.7F;  // greedy decoding of a tiny model soon repeats itself
  g.sampling.seed = 4;
  return g;
}

std::vector<token> answer_by_hand(const generation_spec& g) {
  test::by_hand hand(g.prompt);
  std::vector<token> all;
  std::uint64_t evicted = 0;
  while (all.size() < g.tokens_max) {
    all.push_back(hand.say(g.sampling, evicted));
    if (hand.log_count() < g.eviction.n_ctx) continue;
    hand.splice({*g.eviction.n_keep, *g.eviction.n_discard, {}, kv::to_splice_policy(g.eviction.policy)});
    evicted += *g.eviction.n_discard;
  }
  return all;
}

using window_case = std::tuple<kv::eviction_policy, std::uint32_t>;
class window_sim : public ::testing::TestWithParam<window_case> {};

TEST_P(window_sim, goes_on_beyond_the_window_as_by_hand_with_every_drafter) {
  const auto [policy, n_discard] = GetParam();
  const auto plain = wish(policy, n_discard, 200, 64, draft::method::regular);
  const auto expected = answer_by_hand(plain);
  for (const auto how : {draft::method::regular, draft::method::lookup}) {
    const stream s = run(wish(policy, n_discard, 200, 64, how), 10);
    ASSERT_TRUE(s.finished);
    EXPECT_EQ(s.heard, expected);
    EXPECT_EQ(s.finished->reason, finish_reason::length);
    EXPECT_EQ(s.finished->stats.prompt_tokens, 21u);
    EXPECT_EQ(s.finished->stats.completion_tokens, 200u);
    const std::uint32_t beyond = 21 + 200 - 64;  // tokens generated since the window was full
    EXPECT_EQ(s.finished->stats.evictions, (beyond + n_discard - 1) / n_discard);
    EXPECT_EQ(s.finished->stats.evicted_tokens, std::uint64_t{s.finished->stats.evictions} * n_discard);
    EXPECT_EQ(s.finished->stats.reevaluated, 0u);
  }
}

TEST_P(window_sim, a_restart_computes_the_window_anew_and_says_so) {
  const auto [policy, n_discard] = GetParam();
  const auto g = wish(policy, n_discard, 120, 64, draft::method::lookup);
  const stream s = run(g, 10, 90);
  ASSERT_TRUE(s.finished);
  EXPECT_EQ(s.heard.size(), 120u);
  const bool exact = policy == kv::eviction_policy::reevaluate;
  EXPECT_EQ(s.finished->stats.reevaluated, exact ? 0u : 1u);
  const auto expected = answer_by_hand(g);
  EXPECT_TRUE(std::equal(expected.begin(), expected.begin() + 80, s.heard.begin()));
  if (exact) {
    EXPECT_EQ(s.heard, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(policies, window_sim,
                         ::testing::Combine(::testing::Values(kv::eviction_policy::reevaluate,
                                                              kv::eviction_policy::shift, kv::eviction_policy::lazy),
                                            ::testing::Values(1U, 16U, 31U)),
                         [](const auto& one) {
                           return std::string(kv::name_of(std::get<0>(one.param))) + "_" +
                                  std::to_string(std::get<1>(one.param));
                         });

// The pool has no spare page beyond the window, so the gaps between moved tokens must be reclaimed.
TEST(window, fits_into_a_pool_of_just_its_own_size) {
  for (const auto policy : {kv::eviction_policy::lazy, kv::eviction_policy::shift, kv::eviction_policy::reevaluate}) {
    const stream s = run(wish(policy, 3, 150, 64, draft::method::regular), 2);
    ASSERT_TRUE(s.finished);
    EXPECT_EQ(s.finished->reason, finish_reason::length);
    EXPECT_EQ(s.heard.size(), 150u);
  }
}

// The long form uses REDLINE_STREAM_TOKENS=100000 REDLINE_STREAM_WINDOW=1024.
TEST(window, streams_for_ever_in_bounded_memory) {
  const auto from = [](const char* name, std::uint32_t usual) {
    const char* asked = std::getenv(name);
    return asked != nullptr ? static_cast<std::uint32_t>(std::strtoul(asked, nullptr, 10)) : usual;
  };
  const std::uint32_t tokens = from("REDLINE_STREAM_TOKENS", 1500);
  const std::uint32_t window = from("REDLINE_STREAM_WINDOW", 128);
  for (const auto policy : {kv::eviction_policy::lazy, kv::eviction_policy::shift}) {
    for (const std::uint32_t n_discard : {1U, window / 4}) {
      const stream s = run(wish(policy, n_discard, tokens, window, draft::method::lookup), window / 32 + 4);
      ASSERT_TRUE(s.finished);
      EXPECT_EQ(s.heard.size(), tokens);
      EXPECT_EQ(s.finished->stats.reevaluated, 0u);
      EXPECT_LE(s.held_max, window / 32 + 3);
      EXPECT_LE(s.pieces_max, 2 * (window / 32) + 9);
      EXPECT_LE(s.frame_bytes_max, 16 * window + 4096) << "no message grows with the answer";
      std::printf("%s, %u at a time: %u pages, %zu pieces, %zu bytes at most\n",
                  std::string(kv::name_of(policy)).c_str(), n_discard, s.held_max, s.pieces_max, s.frame_bytes_max);
    }
  }
}

}  // namespace
}  // namespace redline::actors
