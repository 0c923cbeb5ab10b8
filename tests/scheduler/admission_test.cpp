#include "scheduler/admission.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/scheduler/times.hpp"

namespace redline::scheduler {
namespace {

priority_facts asks(std::int64_t arrival) { return {.arrival = at(arrival), .open = true}; }
priority_facts prefills(std::int64_t arrival) { return {.arrival = at(arrival), .open = true, .prefill_only = true}; }
priority_facts closed(std::int64_t since, bool prefill_only = false) {
  return {.idle_since = at(since), .prefill_only = prefill_only};
}

std::vector<std::uint64_t> placed(const admission& a) {
  a.check_integrity();
  std::vector<std::uint64_t> all;
  for (const sequence_id s : a.placed()) all.push_back(s.value);
  return all;
}
using ids = std::vector<std::uint64_t>;

TEST(admission, gives_places_by_arrival) {
  admission a(2);
  a.update({1}, asks(30));
  a.update({2}, asks(20));
  a.update({3}, asks(10));
  a.admit(at(40));
  EXPECT_EQ(placed(a), (ids{2, 3}));
  EXPECT_EQ(a.running_count(), 2u);
  EXPECT_EQ(a.waiting_count(), 1u);
  a.remove({3});
  a.admit(at(50));
  EXPECT_EQ(placed(a), (ids{1, 2}));
  EXPECT_EQ(a.waiting_count(), 0u);
}

TEST(admission, of_one_instant_the_lower_number_comes_first) {
  admission a(1);
  a.update({2}, asks(0));
  a.update({1}, asks(0));
  a.admit(at(0));
  EXPECT_EQ(placed(a), ids{1});
}

TEST(admission, the_longest_idle_yields_its_place_after_a_while) {
  admission a(2);
  a.update({1}, asks(0));
  a.update({2}, asks(0));
  a.admit(at(0));
  a.update({1}, closed(100));
  a.update({2}, closed(50));
  a.update({3}, asks(200));
  a.admit(at(50) + idle_before_yield - microseconds{1});
  EXPECT_EQ(placed(a), (ids{1, 2})) << "both may return at once";
  a.admit(at(50) + idle_before_yield);
  EXPECT_EQ(placed(a), (ids{1, 3}));
  a.update({2}, asks(0));
  EXPECT_EQ(a.waiting_count(), 1u) << "it waits again";
}

TEST(admission, prefills_get_places_last_and_yield_them) {
  admission a(2);
  for (std::uint64_t s = 1; s <= 3; ++s) a.update({s}, prefills(static_cast<std::int64_t>(s)));
  a.admit(at(10));
  EXPECT_EQ(placed(a), (ids{1, 2}));
  EXPECT_EQ(a.waiting_count(), 0u) << "prefills do not count as waiting";
  EXPECT_TRUE(a.has_open_prefill());
  a.update({4}, asks(10));
  a.admit(at(10));
  EXPECT_EQ(placed(a), (ids{1, 4})) << "the latest yields";
  priority_facts flying = prefills(1);
  flying.in_flight = true;
  a.update({1}, flying);
  a.update({5}, asks(20));
  a.admit(at(20));
  EXPECT_EQ(placed(a), (ids{1, 4})) << "not while it is being computed";
  for (std::uint64_t s = 1; s <= 3; ++s) a.update({s}, closed(20, true));
  EXPECT_FALSE(a.has_open_prefill());
}

TEST(admission, knows_who_was_answered_and_may_ask_again) {
  admission a(4);
  a.update({1}, closed(300));
  a.update({2}, closed(100));
  a.update({3}, closed(400, true));
  using since = admission::by_time;
  EXPECT_EQ(a.between_rounds(), (since{{at(100), {2}}, {at(300), {1}}})) << "no session asks after a prefill";
  a.update({2}, asks(0));
  EXPECT_EQ(a.between_rounds(), (since{{at(300), {1}}}));
  a.remove({1});
  EXPECT_TRUE(a.between_rounds().empty());
}

priority_facts of_tenant(std::uint64_t tenant, std::int64_t arrival) {
  return {.arrival = at(arrival), .open = true, .tenant = {tenant}};
}

TEST(admission, a_tenant_alone_has_all_places_and_a_second_one_gets_its_share_at_once) {
  admission a(4);
  for (std::uint64_t s = 1; s <= 8; ++s) a.update({s}, of_tenant(1, static_cast<std::int64_t>(s)));
  a.admit(at(10));
  EXPECT_EQ(placed(a), (ids{1, 2, 3, 4}));
  a.update({20}, of_tenant(2, 20));
  a.admit(at(20));
  EXPECT_EQ(placed(a), (ids{1, 2, 3, 20})) << "the latest arrival of the first tenant yields";
  a.update({21}, of_tenant(2, 21));
  a.update({22}, of_tenant(2, 22));
  a.admit(at(22));
  EXPECT_EQ(placed(a), (ids{1, 2, 20, 21})) << "and no more than a half";
  a.remove({20});
  a.admit(at(23));
  EXPECT_EQ(placed(a), (ids{1, 2, 21, 22})) << "to the tenant that has fewer";
  for (const std::uint64_t s : {21U, 22U}) a.remove({s});
  a.admit(at(24));
  EXPECT_EQ(placed(a), (ids{1, 2, 3, 4})) << "those that yielded continue first";
}

TEST(admission, nobody_yields_while_in_flight) {
  admission a(2);
  for (std::uint64_t s = 1; s <= 2; ++s) a.update({s}, of_tenant(1, static_cast<std::int64_t>(s)));
  a.admit(at(2));
  auto flying = of_tenant(1, 2);
  flying.in_flight = true;
  a.update({2}, flying);
  a.update({3}, of_tenant(2, 3));
  a.admit(at(3));
  EXPECT_EQ(placed(a), (ids{2, 3}));
}

TEST(admission, keeps_its_orders_under_random_changes) {
  std::mt19937_64 chance(1);
  admission a(3);
  for (int i = 0; i < 5000; ++i) {
    const sequence_id sequence{1 + chance() % 8};
    const auto time = at(static_cast<std::int64_t>(chance() % 5) * 100'000);
    if (chance() % 8 == 0) {
      a.remove(sequence);
    } else {
      const bool open = chance() % 2 == 0;
      a.update(sequence, {.arrival = time,
                          .idle_since = time,
                          .open = open,
                          .prefill_only = chance() % 3 == 0,
                          .in_flight = open && a.has_slot(sequence) && chance() % 2 == 0,
                          .tenant = {sequence.value % 3}});
    }
    if (chance() % 2 == 0) {
      a.admit(at(static_cast<std::int64_t>(chance() % 8) * 100'000));
      EXPECT_TRUE(a.running_count() == 3 || a.waiting_count() == 0) << "no place is free while a round waits";
    }
    EXPECT_LE(a.running_count(), 3U);
    a.check_integrity();
  }
}

}  // namespace
}  // namespace redline::scheduler
