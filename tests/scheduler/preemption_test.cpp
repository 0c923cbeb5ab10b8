#include "scheduler/preemption.hpp"

#include <gtest/gtest.h>

#include "tests/scheduler/times.hpp"

namespace redline::scheduler {
namespace {

constexpr instant now = at(1'000'000);

preemption_candidate asks(std::uint64_t sequence, std::int64_t arrival) {
  return {{sequence}, {.arrival = at(arrival), .open = true}};
}
preemption_candidate idle(std::uint64_t sequence, std::int64_t arrival, std::int64_t since) {
  return {{sequence}, {.arrival = at(arrival), .idle_since = at(since)}};
}
preemption_candidate of(std::uint64_t tenant, std::uint32_t held, preemption_candidate c) {
  c.at.tenant = {tenant};
  c.held = held;
  return c;
}
using all = std::vector<preemption_candidate>;

TEST(preemption, helps_the_oldest_of_those_that_starve) {
  all starve{asks(3, 20), asks(2, 10), asks(1, 10)};
  sort_starving(starve);
  EXPECT_EQ(starve[0].sequence, sequence_id{1});
  EXPECT_EQ(starve[2].sequence, sequence_id{3});
}

TEST(preemption, takes_from_the_latest_comer) {
  EXPECT_EQ(choose_victim(all{asks(1, 10), asks(2, 20), asks(3, 30)}, asks(1, 10), now), sequence_id{3});
  EXPECT_EQ(choose_victim(all{asks(2, 5), asks(3, 5)}, asks(1, 5), now), sequence_id{3}) << "all began at one instant";
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
  EXPECT_EQ(choose_victim({}, alone, now), std::nullopt) << "it has no pages to give";
  EXPECT_EQ(choose_victim(all{asks(0, 0), alone}, alone, now), std::nullopt) << "the older one returns some soon";
  alone.at.in_flight = true;
  EXPECT_EQ(choose_victim(all{alone}, alone, now), std::nullopt);
}

TEST(preemption, takes_from_the_tenant_that_holds_most_for_one_that_has_less_than_its_share) {
  const all flood{of(1, 100, asks(1, 10)), of(1, 100, asks(2, 20)), of(1, 100, asks(3, 30)), of(2, 60, asks(4, 5))};
  EXPECT_EQ(choose_victim(flood, of(3, 0, asks(9, 90)), now), sequence_id{3}) << "although it came before";
  EXPECT_EQ(choose_victim(flood, of(2, 0, asks(9, 90)), now), sequence_id{3});
  EXPECT_EQ(choose_victim(flood, of(1, 0, asks(9, 90)), now), std::nullopt) << "its own tenant has enough";
  auto flying = flood;
  flying[2].at.in_flight = true;
  EXPECT_EQ(choose_victim(flying, of(3, 0, asks(9, 90)), now), sequence_id{2});
  auto with_idle = flood;
  with_idle[3] = of(2, 60, idle(4, 5, 0));
  EXPECT_EQ(choose_victim(with_idle, of(3, 0, asks(9, 90)), now), sequence_id{4}) << "idle ones go first";
}

TEST(preemption, never_takes_a_tenants_first_sequence_nor_turns_the_scales) {
  EXPECT_EQ(choose_victim(all{of(1, 300, asks(1, 10))}, of(2, 0, asks(9, 90)), now), std::nullopt);
  const all even{of(1, 50, asks(1, 10)), of(1, 50, asks(2, 20)), of(2, 60, asks(3, 30))};
  EXPECT_EQ(choose_victim(even, of(2, 0, asks(9, 90)), now), std::nullopt) << "otherwise the first would take it back";
}

TEST(preemption, only_the_oldest_of_all_takes_from_tenants_within_their_share) {
  const all two{of(1, 300, asks(1, 10)), of(1, 10, asks(2, 20)), of(2, 50, asks(3, 30))};
  EXPECT_EQ(choose_victim(two, of(1, 10, asks(2, 20)), now), std::nullopt);
  EXPECT_EQ(choose_victim(two, of(1, 300, asks(1, 10)), now), sequence_id{3})
      << "so that some sequence always progresses";
}

TEST(preemption, somebody_always_gets_on_however_the_kv_is_held) {
  std::uint64_t state = 1;
  const auto random = [&](std::uint64_t below) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 33) % below;
  };
  for (int round = 0; round < 2000; ++round) {
    all with_kv;
    const std::uint64_t count = 2 + random(6);
    for (std::uint64_t i = 0; i < count; ++i) {
      with_kv.push_back(
          of(random(3), static_cast<std::uint32_t>(1 + random(100)), asks(i, static_cast<std::int64_t>(i))));
    }
    // If all starve, the oldest finds a victim and is never one itself.
    EXPECT_TRUE(choose_victim(with_kv, with_kv.front(), now));
    for (const auto& starving : with_kv) {
      const auto victim = choose_victim(with_kv, starving, now);
      EXPECT_NE(victim, sequence_id{0}) << "the oldest";
      EXPECT_NE(victim, starving.sequence);
    }
  }
}

}  // namespace
}  // namespace redline::scheduler
