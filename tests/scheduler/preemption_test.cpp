#include "scheduler/preemption.hpp"

#include <gtest/gtest.h>

namespace redline::scheduler {
namespace {

constexpr instant at(std::int64_t us) { return instant{microseconds{us}}; }
constexpr instant now = at(1'000'000);

preemption_candidate asks(std::uint64_t sequence, std::int64_t arrival) {
  return {{sequence}, {.arrival = at(arrival), .open = true}};
}
preemption_candidate idle(std::uint64_t sequence, std::int64_t arrival, std::int64_t since) {
  return {{sequence}, {.arrival = at(arrival), .idle_since = at(since)}};
}
using all = std::vector<preemption_candidate>;

TEST(preemption, helps_the_oldest_of_those_that_starve) {
  EXPECT_EQ(choose_starving({}), nullptr);
  const all starve{asks(3, 20), asks(2, 10), asks(1, 10)};
  EXPECT_EQ(choose_starving(starve), &starve[2]);
}

TEST(preemption, takes_from_the_latest_comer) {
  EXPECT_EQ(choose_victim(all{asks(1, 10), asks(2, 20), asks(3, 30)}, asks(1, 10), now), sequence_id{3});
  EXPECT_EQ(choose_victim(all{asks(2, 5), asks(3, 5)}, asks(1, 5), now), sequence_id{3}) << "all of one instant";
}

TEST(preemption, takes_nothing_from_those_that_came_before) {
  EXPECT_EQ(choose_victim(all{asks(1, 10), asks(2, 20)}, asks(3, 30), now), std::nullopt);
}

TEST(preemption, takes_from_the_longest_idle_first_however_old) {
  EXPECT_EQ(choose_victim(all{asks(4, 40), idle(1, 1, 600), idle(2, 2, 500)}, asks(3, 30), now), sequence_id{2});
  const auto just_answered = idle(2, 2, now.time_since_epoch().count() - 1000);
  EXPECT_EQ(choose_victim(all{just_answered}, asks(3, 30), now), std::nullopt) << "its next round comes soon";
}

TEST(preemption, prefills_count_as_idle) {
  auto prefill = asks(1, 1);
  prefill.at.prefill_only = true;
  EXPECT_EQ(choose_victim(all{asks(4, 40), prefill}, asks(3, 30), now), sequence_id{1});
}

TEST(preemption, waits_for_those_in_flight) {
  auto flying = asks(4, 40);
  flying.at.in_flight = true;
  EXPECT_EQ(choose_victim(all{flying}, asks(3, 30), now), std::nullopt);
}

TEST(preemption, a_sequence_alone_with_all_pages_gives_up_its_own) {
  auto alone = asks(1, 1);
  EXPECT_EQ(choose_victim(all{alone}, alone, now), sequence_id{1});
  EXPECT_EQ(choose_victim({}, alone, now), std::nullopt) << "it has none to give";
  EXPECT_EQ(choose_victim(all{asks(0, 0), alone}, alone, now), std::nullopt) << "the older one gives some back soon";
  alone.at.in_flight = true;
  EXPECT_EQ(choose_victim(all{alone}, alone, now), std::nullopt);
}

}  // namespace
}  // namespace redline::scheduler
