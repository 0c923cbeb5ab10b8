#include "scheduler/policy.hpp"
#include "tests/scheduler/times.hpp"

#include <gtest/gtest.h>

#include "tests/support/test_data.hpp"

namespace redline::scheduler {
namespace {

work_item decode_of(std::uint64_t sequence, std::int64_t arrival, std::uint64_t tenant = 1) {
  return {{sequence}, {tenant}, at(arrival), 10, 1, 0};
}
work_item prompt_of(std::uint64_t sequence, std::int64_t arrival, std::uint64_t tenant = 1) {
  return {{sequence}, {tenant}, at(arrival), 0, 10, 0};
}

std::vector<std::uint64_t> ranked(policy& p, const std::vector<work_item>& items, std::int64_t now = 0) {
  std::vector<item_index> order{99};
  rank(p, items, at(now), order);
  std::vector<std::uint64_t> sequences;
  for (const item_index i : order) sequences.push_back(items.at(i).sequence.value);
  return sequences;
}

using order = std::vector<std::uint64_t>;

TEST(fifo, ranks_decodes_before_prompts_then_by_arrival_then_by_number) {
  const auto p = *make_policy("fifo");
  const struct {
    std::vector<work_item> items;
    order wanted;
  } table[] = {
      {{}, {}},
      {{prompt_of(1, 5)}, {1}},
      {{decode_of(1, 9), decode_of(2, 3)}, {2, 1}},
      {{prompt_of(1, 1), decode_of(2, 9)}, {2, 1}},
      {{decode_of(7, 4), decode_of(3, 4)}, {3, 7}},
      {{prompt_of(1, 2), decode_of(2, 8), prompt_of(3, 1), decode_of(4, 7)}, {4, 2, 3, 1}},
  };
  for (const auto& row : table) EXPECT_EQ(ranked(*p, row.items), row.wanted);
}

TEST(fifo, takes_a_lone_last_token_of_a_lost_cache_as_a_prompt) {
  work_item fresh = prompt_of(1, 1);
  fresh.pending_count = 1;
  EXPECT_FALSE(fresh.decodes());
  EXPECT_EQ(ranked(**make_policy("fifo"), {fresh, decode_of(2, 9)}), (order{2, 1}));
}

TEST(fifo, puts_background_work_last_whatever_it_is) {
  work_item background = decode_of(1, 1);
  background.background = true;
  EXPECT_EQ(ranked(**make_policy("fifo"), {background, prompt_of(2, 9), decode_of(3, 5)}), (order{3, 2, 1}));
}

TEST(fifo, lets_decodes_take_turns_that_found_no_room) {
  work_item missed = decode_of(2, 9), prompt = prompt_of(3, 2);
  missed.missed_count = prompt.missed_count = 1;
  EXPECT_EQ(ranked(**make_policy("fifo"), {decode_of(1, 1), missed, prompt, prompt_of(4, 1)}), (order{2, 1, 4, 3}));
}

TEST(fair_share, puts_the_tenant_first_that_used_least) {
  const auto p = *make_policy("fair_share");
  const std::vector<work_item> items{decode_of(1, 1, 1), decode_of(2, 2, 2), decode_of(3, 3, 3)};
  EXPECT_EQ(ranked(*p, items), (order{1, 2, 3}));  // no tenant has used anything, so fifo decides
  p->charge({1}, microseconds{100});
  p->charge({2}, microseconds{30});
  p->charge({3}, microseconds{60});
  EXPECT_EQ(ranked(*p, items), (order{2, 3, 1}));
  p->charge({2}, microseconds{100});
  EXPECT_EQ(ranked(*p, items), (order{3, 1, 2}));
}

TEST(fair_share, uses_fifo_within_a_tenant) {
  const auto p = *make_policy("fair_share");
  const std::vector<work_item> items{prompt_of(1, 1, 1), decode_of(2, 9, 1), decode_of(3, 5, 1)};
  EXPECT_EQ(ranked(*p, items), (order{3, 2, 1}));
}

TEST(fair_share, gives_no_credit_for_absence) {
  const auto p = *make_policy("fair_share");
  const std::vector<work_item> both{decode_of(1, 1, 1), decode_of(2, 2, 2)};
  (void)ranked(*p, both);
  // Tenant 2 is away while tenant 1 works.
  p->charge({1}, microseconds{1000});
  (void)ranked(*p, {both[0]}, 1'000'001);
  // Tenant 2 returns at tenant 1's level: arrival decides, not the thousand microseconds that tenant 2 did not use.
  EXPECT_EQ(ranked(*p, both, 1'000'002), (order{1, 2}));
  p->charge({1}, microseconds{1});
  EXPECT_EQ(ranked(*p, both, 1'000'003), (order{2, 1}));
}

TEST(fair_share, an_account_survives_the_time_between_two_rounds) {
  const auto p = *make_policy("fair_share");
  const std::vector<work_item> both{decode_of(1, 1, 1), decode_of(2, 2, 2)};
  (void)ranked(*p, both);
  p->charge({1}, microseconds{1000});
  (void)ranked(*p, {both[1]}, 20'000);  // the sessions of tenant 1 are drafting
  EXPECT_EQ(ranked(*p, both, 40'000), (order{2, 1}));
}

TEST(fair_share, ignores_charges_of_tenants_without_work) {
  const auto p = *make_policy("fair_share");
  p->charge({2}, microseconds{1000});
  EXPECT_EQ(ranked(*p, {decode_of(1, 1, 2), decode_of(2, 2, 1)}), (order{1, 2}));
}

TEST(make_policy, knows_the_names_and_says_them_in_its_refusal) {
  ASSERT_EQ(policy_names().size(), policies().size());
  const auto unknown = make_policy("lottery");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, errc::invalid_argument);
  EXPECT_NE(unknown.error().context.find("lottery"), std::string::npos);
  for (const auto& name : policy_names()) {
    EXPECT_TRUE(make_policy(name)) << name;
    EXPECT_NE(unknown.error().context.find(name), std::string::npos) << name;
  }
}

TEST(make_policy, every_name_is_in_the_documents) {
  for (const auto& name : policy_names()) {
    for (const char* file : {"docs/configuration.md", "docs/reference/options.md"}) {
      EXPECT_NE(test::read_file(test::source_path(file)).find("`" + name + "`"), std::string::npos)
          << name << " " << file;
    }
  }
}

TEST(policy, ranks_all_items_once_and_is_asked_for_each_key_once) {
  struct by_sequence final : policy {
    [[nodiscard]] std::uint64_t key(const work_item& item) const override {
      ++asked;
      return 100 - item.sequence.value;
    }
    void see(std::span<const work_item> items, instant) override { seen = items.size(); }
    mutable std::size_t asked = 0;
    std::size_t seen = 0;
  };
  by_sequence p;
  EXPECT_EQ(ranked(p, {decode_of(1, 1), prompt_of(2, 1), decode_of(3, 1)}), (order{3, 2, 1}));
  EXPECT_EQ(p.asked, 3U);
  EXPECT_EQ(p.seen, 3U);
}

}  // namespace
}  // namespace redline::scheduler
