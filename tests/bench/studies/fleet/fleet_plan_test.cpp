#include "bench/studies/fleet/fleet_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/test_data.hpp"

namespace redline::studies {
namespace {

class planning : public ::testing::Test {
 protected:
  pass_curve curve_ = *read_pass_curve(test::source_path("bench/results/data/curve-demo-1-thread.json"));
  fleet_options options_{.sessions = 400, .minutes = 1, .think_seconds = 10};
};

TEST_F(planning, finds_the_fewest_workers_that_hold_and_one_more_for_a_loss) {
  const auto plan = plan_fleet(options_, curve_, {.first_token_ms = 800, .time_per_token_ms = 50});
  ASSERT_TRUE(plan) << plan.error().describe();
  const auto* fewest = plan->find(plan->undisturbed, false);
  ASSERT_NE(fewest, nullptr);
  EXPECT_TRUE(fewest->holds);
  EXPECT_GT(plan->undisturbed, 1U);
  const auto* fewer = plan->find(plan->undisturbed - 1, false);
  ASSERT_NE(fewer, nullptr);
  EXPECT_FALSE(fewer->holds);
  EXPECT_GT(plan->workers, plan->undisturbed);
  const auto* disturbed = plan->find(plan->workers, true);
  ASSERT_NE(disturbed, nullptr);
  EXPECT_TRUE(disturbed->holds);
  EXPECT_EQ(disturbed->result.losses, 1U);
}

TEST_F(planning, promises_nothing_that_holds_with_one_seed_only) {
  const service_level level{.first_token_ms = 800, .time_per_token_ms = 50};
  const auto plan = plan_fleet(options_, curve_, level);
  ASSERT_TRUE(plan);
  options_.workers = plan->undisturbed;
  double worst = 0;
  for (std::uint32_t i = 0; i < planned_runs; ++i, ++options_.seed) {
    const auto r = simulate_fleet(options_, curve_);
    ASSERT_TRUE(r);
    EXPECT_LE(r->first_token_ms.p99, level.first_token_ms);
    EXPECT_LE(r->time_per_token_ms.p99, level.time_per_token_ms);
    worst = std::max(
        {worst, r->first_token_ms.p99 / level.first_token_ms, r->time_per_token_ms.p99 / level.time_per_token_ms});
  }
  const auto& shown = plan->find(plan->undisturbed, false)->result;
  EXPECT_EQ(
      std::max(shown.first_token_ms.p99 / level.first_token_ms, shown.time_per_token_ms.p99 / level.time_per_token_ms),
      worst);
}

TEST_F(planning, says_what_was_found_when_no_number_of_workers_is_enough) {
  options_.sessions = 20;
  const auto plan = plan_fleet(options_, curve_, {.first_token_ms = 0.5, .time_per_token_ms = 50});
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().context, ::testing::HasSubstr("not even a worker for each user"));
}

}  // namespace
}  // namespace redline::studies
