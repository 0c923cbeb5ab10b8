#include "scheduler/prefix_followers.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace redline::scheduler {
namespace {

/// Sequences whose prompts are 0, 1, 2, ... up to `own`, then their own number.
struct fixture {
  run_queue queue{{.running_max = 8, .waiting_max = 8, .tokens_max = 1000, .pages_count = 100}, *make_policy("fifo")};
  prefix_followers followers;

  void add(std::uint64_t sequence, std::uint32_t common, std::uint32_t own, bool prefill_only = false,
           std::uint64_t scope = 1) {
    std::vector<token> prompt(common);
    std::iota(prompt.begin(), prompt.end(), 0);
    prompt.insert(prompt.end(), own, 1000 + static_cast<token>(sequence));
    ASSERT_EQ(queue.submit({.sequence = {sequence},
                            .tenant = {scope},
                            .round = {1},
                            .tail = prompt,
                            .tokens_max = 500,
                            .prefill_only = prefill_only},
                           {}),
              submit_outcome::taken);
    followers.add({sequence}, {scope});
  }
  [[nodiscard]] std::optional<sequence_id> leader(std::uint64_t sequence) const {
    followers.check_integrity();
    return followers.choose_leader({sequence}, queue, 32);
  }
};

TEST(prefix_followers, follows_the_longest_common_prefix) {
  fixture f;
  f.add(1, 60, 40);
  f.add(2, 80, 20);
  f.add(3, 100, 0);
  EXPECT_EQ(f.leader(3), sequence_id{2});
  EXPECT_EQ(f.leader(1), sequence_id{2}) << "60 tokens with either; the first is taken";
}

TEST(prefix_followers, less_than_half_of_the_log_is_not_waited_for) {
  fixture f;
  f.add(1, 49, 100);
  f.add(2, 50, 50);
  EXPECT_EQ(f.leader(2), std::nullopt);
  f.add(3, 50, 60);
  EXPECT_EQ(f.leader(2), sequence_id{3});
}

TEST(prefix_followers, less_than_a_page_is_not_waited_for) {
  fixture f;
  f.add(1, 31, 9);
  f.add(2, 32, 8);
  EXPECT_EQ(f.leader(1), std::nullopt);
  f.add(3, 32, 8);
  EXPECT_EQ(f.leader(2), sequence_id{3});
}

TEST(prefix_followers, scopes_share_nothing) {
  fixture f;
  f.add(1, 100, 0, false, 1);
  f.add(2, 100, 0, false, 2);
  EXPECT_EQ(f.leader(2), std::nullopt);
}

TEST(prefix_followers, a_follower_leads_only_after_it_was_released) {
  fixture f;
  f.add(1, 100, 0);
  f.add(2, 100, 0);
  f.add(3, 100, 0);
  f.followers.follow({2}, {1});
  f.followers.follow({3}, {1});
  EXPECT_EQ(f.leader(1), std::nullopt);
  EXPECT_TRUE(f.followers.note_prompt_done({1}));
  EXPECT_FALSE(f.followers.note_prompt_done({1}));
  EXPECT_EQ(f.leader(3), std::nullopt) << "1 is done, 2 follows";
  EXPECT_EQ(f.followers.release_followers({1}), (std::vector<sequence_id>{{2}, {3}}));
  EXPECT_TRUE(f.followers.release_followers({1}).empty());
  EXPECT_EQ(f.leader(3), sequence_id{2});
}

TEST(prefix_followers, a_closed_round_leads_none) {
  fixture f;
  f.add(1, 100, 0);
  f.add(2, 100, 0);
  f.queue.give_up({1}, {1}, {});
  EXPECT_EQ(f.leader(2), std::nullopt);
}

TEST(prefix_followers, a_prefill_leads_only_prefills) {
  fixture f;
  f.add(1, 100, 0, true);
  f.add(2, 100, 0);
  f.add(3, 100, 0, true);
  EXPECT_EQ(f.leader(2), std::nullopt);
  EXPECT_EQ(f.leader(3), sequence_id{1});
}

TEST(prefix_followers, sequences_that_end_are_forgotten) {
  fixture f;
  f.add(1, 100, 0);
  f.add(2, 100, 0);
  f.add(3, 100, 0);
  f.followers.follow({2}, {1});
  f.followers.follow({3}, {1});
  f.followers.remove({2});
  f.queue.release({2});
  f.followers.remove({2});  // is not known any more
  EXPECT_EQ(f.followers.release_followers({1}), std::vector<sequence_id>{{3}});
  f.followers.remove({1});
  f.queue.release({1});
  EXPECT_EQ(f.leader(3), std::nullopt);
}

}  // namespace
}  // namespace redline::scheduler
