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
  void open() {
    who = w.add<draft_model>(6, "draft model", {16, 16}, [this](actor::actor_context& c) {
      const auto& table = *kernels::process_table().table;
      const auto weights = *model::load_weights(*test::make_tiny_model().file(), table, team);
      auto small = std::move(*model::transformer::create(weights, table, team, {.pages_count = 8, .rows_max = 32}));
      return std::make_unique<draft_model>(
          c, std::make_unique<draft::small_model_runner>(draft::small_model_runner::limits{.pages_count = 8},
                                                         draft::small_model_runner::parts{.model = std::move(small)}));
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

TEST_F(draft_model_test, answers_with_tokens_and_what_speaks_for_them) {
  open();
  inject(session_at, question(1, 1, method::assisted, {0, {70, 71, 72}}));
  run();
  const auto got = wire.take<proposal>();
  ASSERT_TRUE(got);
  EXPECT_FALSE(got->tokens.empty());
  std::size_t counted = 0;
  for (const auto& run : got->runs) {
    EXPECT_EQ(run.from, source::model);
    counted += run.count;
  }
  EXPECT_EQ(counted, got->tokens.size());
  EXPECT_GT(got->draft_passes, 0u);
  EXPECT_GT(got->reads_max, 0u);
}

TEST_F(draft_model_test, asks_for_the_log_of_a_tenant_that_it_does_not_know) {
  open();
  inject(session_at, question(1, 1, method::assisted, {0, {1, 2, 50}}));
  inject(other_at, question(1, 2, method::assisted, {3, {51}}));
  run();
  const auto refused = wire.take<proposal>();
  ASSERT_TRUE(refused);
  EXPECT_EQ(wire.last_to, other_at);
  EXPECT_EQ(refused->log_needed_from, 0u);
  EXPECT_TRUE(refused->tokens.empty());
}

TEST_F(draft_model_test, answers_what_needs_no_pass_before_it_runs_the_model_for_others) {
  open();
  inject(session_at, question(1, 1, method::assisted, {0, {70, 71, 72}}));
  auto costs = question(2, 1, method::automatic, {});
  costs.tokens_max = 0;
  inject(other_at, costs);
  run();
  const auto first = wire.take<proposal>();
  ASSERT_TRUE(first);
  EXPECT_EQ(wire.last_to, other_at);
  EXPECT_EQ(first->draft_passes, 0u);
  const auto second = wire.take<proposal>();
  ASSERT_TRUE(second);
  EXPECT_EQ(wire.last_to, session_at);
  EXPECT_GT(second->draft_passes, 0u);
}

TEST_F(draft_model_test, answers_the_last_who_asked_for_a_session) {
  open();
  inject(session_at, question(1, 1, method::assisted, {0, {70, 71, 72}}));
  inject(other_at, question(1, 1, method::assisted, {0, {70, 71, 72}}));
  run();
  ASSERT_TRUE(wire.take<proposal>());
  EXPECT_EQ(wire.last_to, other_at);
  EXPECT_FALSE(wire.take<proposal>());
}

// A session may end while it waits for a draft, and its last message may be lost; only a bounded number is kept.
TEST_F(draft_model_test, keeps_nothing_of_sessions_that_are_heard_of_no_more) {
  open();
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
  EXPECT_LT(::mallinfo2().uordblks, before + (1 << 19)) << "a few bytes per session would add up to a megabyte";
}

}  // namespace
}  // namespace redline::actors
