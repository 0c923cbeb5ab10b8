#include "bench/studies/fleet/fleet_simulation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench/studies/fleet/fleet_report.hpp"
#include "tests/support/test_data.hpp"

namespace redline::studies {
namespace {

using ::testing::HasSubstr;

class fleet_simulation : public ::testing::Test {
 protected:
  fleet_result run(const fleet_options& options) {
    auto r = simulate_fleet(options, curve_);
    EXPECT_TRUE(r) << r.error().describe();
    return std::move(*r);
  }
  std::string text(const fleet_options& options) { return to_json(options, curve_, run(options)).dump(); }

  pass_curve curve_ = *read_pass_curve(test::source_path("bench/results/data/curve-demo-1-thread.json"));
  fleet_options small_{.workers = 8, .gateways = 2, .sessions = 200, .minutes = 0.5, .think_seconds = 5};
};

TEST_F(fleet_simulation, the_same_seed_gives_the_same_figures_and_another_seed_others) {
  small_.loss_per_minute = 0.5;
  const std::string first = text(small_);
  EXPECT_EQ(text(small_), first);
  small_.seed = 2;
  EXPECT_NE(text(small_), first);
}

TEST_F(fleet_simulation, every_answer_of_a_pool_without_losses_ends_and_nothing_counts_as_lost) {
  const auto r = run(small_);
  EXPECT_GT(r.answers, 500U);
  EXPECT_EQ(r.failed, 0U);
  EXPECT_EQ(r.losses, 0U);
  EXPECT_EQ(r.rows_lost + r.rows_forgotten, 0U);
  EXPECT_EQ(r.stall_ms.count, 0U);
  EXPECT_GT(r.first_token_ms.p50, 0);
  EXPECT_LE(r.first_token_ms.p50, r.first_token_ms.p99);
  EXPECT_GT(r.busy_share, 0);
  EXPECT_LT(r.busy_share, 1);
}

TEST_F(fleet_simulation, answers_of_a_lost_worker_go_on_elsewhere_and_their_rows_are_computed_again) {
  small_.sessions = 400;
  small_.loss_per_minute = 4;
  small_.restart_seconds = 5;
  const auto r = run(small_);
  EXPECT_GE(r.losses, 8U);
  EXPECT_GT(r.moved_answers, 0U);
  EXPECT_GT(r.rows_lost, 0U);
  EXPECT_GT(r.rows_forgotten, 0U);
  EXPECT_EQ(r.failed, 0U);
  // No token comes before the broker has noticed the loss, and then the log is computed.
  EXPECT_GT(r.stall_ms.count, 0U);
  EXPECT_GT(r.stall_ms.p50, 1.0 * small_.detect_ms);
}

TEST_F(fleet_simulation, users_whose_only_worker_is_gone_for_good_get_an_error_and_no_hang) {
  small_.workers = 1;
  small_.minutes = 2;
  small_.lose_one_for_good = true;
  const auto r = run(small_);
  EXPECT_EQ(r.losses, 1U);
  EXPECT_GT(r.failed, 0U);
}

TEST_F(fleet_simulation, a_full_worker_refuses_and_the_answer_passes_to_another) {
  small_.limits.running_max = 1;
  small_.limits.waiting_max = 0;
  small_.placement = "random";
  const auto r = run(small_);
  EXPECT_GT(r.refused, 0U);
  EXPECT_GT(r.answers, 100U);
}

TEST_F(fleet_simulation, sequences_that_run_out_of_pages_are_preempted_and_still_end) {
  small_.workers = 2;
  small_.sessions = 10;
  small_.limits.pages_count = 160;
  const auto r = run(small_);
  EXPECT_GT(r.preempted, 0U);
  EXPECT_GT(r.answers, 10U);
}

TEST_F(fleet_simulation, placement_by_known_beginnings_computes_less_again_than_one_that_does_not_look) {
  const auto redline = run(small_);
  for (const char* other : {"random", "round-robin", "least-connections"}) {
    small_.placement = other;
    const auto r = run(small_);
    EXPECT_LT(redline.rows_elsewhere * 3, r.rows_elsewhere) << other;
    EXPECT_LT(redline.rows, r.rows) << other;
  }
}

TEST_F(fleet_simulation, a_decode_round_is_four_messages_between_gateway_and_worker) {
  const auto r = run(small_);
  const auto count = [&](carried what) { return r.carried_by_broker.messages[static_cast<std::size_t>(what)]; };
  const auto rounds = static_cast<double>(r.rounds);
  EXPECT_EQ(count(carried::verified), r.rounds);
  EXPECT_NEAR(static_cast<double>(count(carried::verify_run)), rounds, rounds * 0.01);
  EXPECT_EQ(count(carried::propose), count(carried::proposal));
  EXPECT_LE(count(carried::propose), count(carried::verify_run));
  // Each gateway asks each worker four times a second.
  EXPECT_NEAR(static_cast<double>(count(carried::report_status)), 4 * 8 * 2 * r.measured_seconds, 2 * 8 * 2);
}

TEST_F(fleet_simulation, an_unknown_placement_is_refused_by_name) {
  small_.placement = "best";
  const auto r = simulate_fleet(small_, curve_);
  ASSERT_FALSE(r);
  EXPECT_THAT(r.error().context, HasSubstr("found 'best'"));
}

}  // namespace
}  // namespace redline::studies
