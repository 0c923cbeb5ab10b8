#include "bench/studies/fleet/fleet_placer.hpp"

#include <gtest/gtest.h>

namespace redline::studies {
namespace {

class balancers : public ::testing::TestWithParam<std::string_view> {
 protected:
  balancers() {
    for (scheduler::worker_number w = 0; w < 3; ++w) placer_->note(w, {.takes_work = true, .running_max = 8});
  }
  std::unique_ptr<fleet_placer> placer_ = *make_fleet_placer(GetParam());
};

TEST_P(balancers, choose_only_workers_that_are_there_and_allowed) {
  placer_->remove(1);
  for (std::uint32_t i = 0; i < 50; ++i) {
    const auto chosen = placer_->choose({.random = i * 7919, .may_be = [](auto w) { return w != 0; }});
    ASSERT_TRUE(chosen);
    EXPECT_EQ(*chosen, 2U);
  }
  EXPECT_FALSE(placer_->choose({.random = 1, .may_be = [](auto) { return false; }}));
}

INSTANTIATE_TEST_SUITE_P(all, balancers, ::testing::ValuesIn(placer_names), [](const auto& name) {
  std::string out(name.param);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
});

TEST(round_robin, gives_to_each_in_turn) {
  const auto placer = *make_fleet_placer("round-robin");
  for (scheduler::worker_number w = 0; w < 3; ++w) placer->note(w, {.takes_work = true});
  std::vector<scheduler::worker_number> chosen;
  for (std::uint32_t i = 0; i < 6; ++i) chosen.push_back(*placer->choose({}));
  EXPECT_EQ(chosen, (std::vector<scheduler::worker_number>{1, 2, 0, 1, 2, 0}));
}

TEST(least_connections, gives_to_who_has_the_fewest) {
  const auto placer = *make_fleet_placer("least-connections");
  for (scheduler::worker_number w = 0; w < 3; ++w) placer->note(w, {.takes_work = true});
  for (std::uint32_t i = 0; i < 3; ++i) (void)placer->choose({.random = i});
  placer->leave(1);
  EXPECT_EQ(*placer->choose({.random = 5}), 1U);
}

}  // namespace
}  // namespace redline::studies
