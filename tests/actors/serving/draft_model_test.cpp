#include "actors/serving/draft_model.hpp"

#include <gtest/gtest.h>
#include <malloc.h>

#include "kernels/dispatch.hpp"
#include "runtime/actor/worker.hpp"
#include "tests/support/one_actor.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::actors {
namespace {

constexpr auto session_at = actor::make_address(1, 1, 40);
constexpr auto other_at = actor::make_address(1, 1, 41);

class draft_model_test : public test::one_actor<draft_model> {
 protected:
  draft_model_test() : one_actor(3, 4) {}
  void open(bool has_model) {
    who = w.add<draft_model>(6, "draft model", {16, 16}, [this, has_model](actor::actor_context& c) {
      std::unique_ptr<model::transformer> small;
      if (has_model) {
        const auto& table = *kernels::process_table().table;
        const auto weights = *model::load_weights(*test::make_tiny_model().file(), table, team);
        small = std::move(*model::transformer::create(weights, table, team, {.pages_count = 8, .rows_max = 32}));
      }
      return std::make_unique<draft_model>(
          c, std::make_unique<draft::draft_engine>(draft::engine_limits{.model = {.pages_count = has_model ? 8u : 0u}},
                                                   draft::engine_model{.model = std::move(small)}));
    });
  }
  void inject(actor::address from, const propose& m) { w.deliver(test::frame_of(who.where, from, m)); }
  void run() {
    do {
      while (w.run_ready()) {
      }
    } while (w.run_idle());
  }
  static propose question(std::uint64_t session, std::uint64_t tenant, draft::method how, log_tail log) {
    propose m{.session = {session}, .tenant = {tenant}, .round = {1}, .log = std::move(log), .prompt_count = 2};
    m.options.how = how;
    m.tokens_max = 8;
    return m;
  }

  kernels::worker_team team{1};
};

using draft::method;
using draft::source;

TEST_F(draft_model_test, answers_with_tokens_and_their_source) {
  open(false);
  auto m = question(1, 1, method::prediction, {0, {1, 2, 50}});
  m.prediction = {50, 51, 52};
  inject(session_at, m);
  run();
  const auto got = wire.take<proposal>();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->tokens, (std::vector<token>{51, 52}));
  EXPECT_EQ(got->parts, (std::vector<draft::draft_part>{{source::prediction, 2, draft::grade_of_match(1), 5000}}))
      << "one token before them agrees: as likely right as not, before anything was seen";
}

TEST_F(draft_model_test, asks_for_the_log_of_a_tenant_that_it_does_not_know) {
  open(false);
  auto m = question(1, 1, method::prediction, {0, {1, 2, 50}});
  m.prediction = {50, 51, 52};
  inject(session_at, m);
  inject(other_at, question(1, 2, method::prediction, {3, {51}}));
  run();
  EXPECT_FALSE(wire.take<proposal>()->log_needed_from);
  const auto refused = wire.take<proposal>();
  ASSERT_TRUE(refused);
  EXPECT_EQ(wire.last_to, other_at);
  EXPECT_EQ(refused->log_needed_from, 0u);
  EXPECT_TRUE(refused->tokens.empty());
}

TEST_F(draft_model_test, answers_what_needs_no_model_before_it_runs_the_model_for_others) {
  open(true);
  inject(session_at, question(1, 1, method::assisted, {0, {70, 71, 72}}));
  auto ready = question(2, 1, method::prediction, {0, {1, 2, 50, 51, 52, 53}});
  ready.prediction = {50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
  inject(other_at, ready);
  run();
  const auto first = wire.take<proposal>();
  ASSERT_TRUE(first);
  EXPECT_EQ(wire.last_to, other_at);
  EXPECT_EQ(first->tokens, (std::vector<token>{54, 55, 56, 57, 58, 59, 60, 61}));
  EXPECT_EQ(first->draft_passes, 0u);
  const auto second = wire.take<proposal>();
  ASSERT_TRUE(second);
  EXPECT_EQ(wire.last_to, session_at);
  EXPECT_GT(second->draft_passes, 0u);
}

TEST_F(draft_model_test, answers_the_last_who_asked_for_a_session) {
  open(true);
  inject(session_at, question(1, 1, method::assisted, {0, {70, 71, 72}}));
  inject(other_at, question(1, 1, method::assisted, {0, {70, 71, 72}}));
  run();
  ASSERT_TRUE(wire.take<proposal>());
  EXPECT_EQ(wire.last_to, other_at);
  EXPECT_FALSE(wire.take<proposal>());
}

// Sessions that end while they wait for a draft, and whose farewell is lost, are forgotten beyond the engine's most.
TEST_F(draft_model_test, keeps_nothing_of_sessions_that_are_heard_of_no_more) {
  open(true);
  std::uint64_t session = 0;
  const auto ask_many = [&](int count) {
    for (int n = 0; n < count; ++n) {
      inject(session_at, question(++session, 1, method::assisted, {0, {70, 71, 72}}));
      while (w.run_ready()) {
      }
    }
  };
  ask_many(3000);
  const auto before = ::mallinfo2().uordblks;
  ask_many(20'000);
  EXPECT_LT(::mallinfo2().uordblks, before + (1 << 19)) << "a few bytes a session would be a megabyte";
}

}  // namespace
}  // namespace redline::actors
