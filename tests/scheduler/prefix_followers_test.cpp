#include "scheduler/prefix_followers.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace redline::scheduler {
namespace {

/// Sequences whose prompts have `common` tokens 0, 1, 2, ... and then `own` tokens that no other sequence has.
struct fixture {
  run_queue queue{{.running_max = 8, .waiting_max = 8, .tokens_max = 1000, .memory = kv::pages(100)},
                  *make_policy("fifo")};
  prefix_followers followers;

  void add(std::uint64_t sequence, std::uint32_t common, std::uint32_t own, bool prefill_only = false,
           std::uint64_t scope = 1) {
    std::vector<token> prompt(common);
    std::iota(prompt.begin(), prompt.end(), 0);
    prompt.insert(prompt.end(), own, 1000 + static_cast<token>(sequence));
    const auto kind = prefill_only ? round_kind::prefill : round_kind::answer;
    ASSERT_EQ(
        queue.submit({.sequence = {sequence}, .number = {1}, .kind = kind, .tail = prompt}, {{scope}, 500}, {}).outcome,
        submit_outcome::taken);
    followers.add({sequence}, {scope});
  }
  [[nodiscard]] std::optional<prefix_followers::choice> choose(std::uint64_t sequence) const {
    followers.check_integrity();
    return followers.choose_leader({sequence}, queue);
  }
  [[nodiscard]] std::optional<sequence_id> leader(std::uint64_t sequence) const {
    const auto chosen = choose(sequence);
    return chosen ? std::optional(chosen->leader) : std::nullopt;
  }
  void follow(std::uint64_t sequence, std::uint64_t leader, std::uint32_t common) {
    queue.wait_until({sequence}, instant::max());
    followers.follow({sequence}, {{leader}, common, false});
  }
  /// Runs a pass in which each runnable sequence computes a chunk of at most this many tokens.
  batch_plan pass(std::uint32_t rows) {
    const auto plan = queue.plan(
        {.rows_max = rows, .prompt_chunk_rows_max = rows, .free = kv::pages(100), .time_max = microseconds{1'000'000}},
        {});
    queue.begin(plan);
    std::vector<run_answer> answers;
    for (const auto& run : plan.runs) answers.push_back({0, std::vector<token>(run.wants_logits ? 1 : 0, 5)});
    queue.complete(plan, answers, microseconds{1}, {});
    return plan;
  }
};

TEST(prefix_followers, follows_the_longest_common_prefix) {
  fixture f;
  f.add(1, 70, 40);
  f.add(2, 100, 20);
  f.add(3, 110, 0);
  EXPECT_EQ(f.choose(3), (prefix_followers::choice{{2}, 96, false})) << "whole pages";
  EXPECT_EQ(f.leader(1), sequence_id{2}) << "70 tokens with either; the first is taken";
}

TEST(prefix_followers, less_than_half_of_the_log_is_not_waited_for) {
  fixture f;
  f.add(1, 63, 100);
  f.add(2, 70, 60);
  EXPECT_EQ(f.leader(2), std::nullopt);
  f.add(3, 70, 50);
  EXPECT_EQ(f.leader(3), sequence_id{2});
}

TEST(prefix_followers, less_than_a_page_is_not_waited_for) {
  fixture f;
  f.add(1, 31, 9);
  f.add(2, 33, 8);
  EXPECT_EQ(f.leader(1), std::nullopt);
  f.add(3, 33, 8);
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
  f.follow(2, 1, 96);
  f.follow(3, 1, 96);
  EXPECT_EQ(f.leader(1), std::nullopt);
  EXPECT_TRUE(f.followers.note_prompt_done({1}));
  EXPECT_FALSE(f.followers.note_prompt_done({1}));
  EXPECT_EQ(f.leader(3), std::nullopt) << "1 is done, 2 follows";
  EXPECT_EQ(f.followers.release_followers({1}), (std::vector<sequence_id>{{2}, {3}}));
  EXPECT_TRUE(f.followers.release_followers({1}).empty());
  EXPECT_EQ(f.leader(3), std::nullopt) << "2 itself waits";
  f.queue.end_wait({2});
  EXPECT_EQ(f.leader(3), sequence_id{2});
}

TEST(prefix_followers, what_is_computed_is_not_waited_for_and_followed_only_for_more) {
  fixture f;
  f.add(1, 300, 200);
  f.pass(128);
  f.add(2, 300, 50);
  EXPECT_EQ(f.choose(2), (prefix_followers::choice{{1}, 128, true}));
  f.queue.note_adopted({2}, 128);
  EXPECT_EQ(f.choose(2), (prefix_followers::choice{{1}, 288, false})) << "more than half of what it lacks";
  f.queue.note_adopted({2}, 256);
  EXPECT_EQ(f.choose(2), std::nullopt) << "2 is ahead now";
}

TEST(prefix_followers, are_released_when_the_common_part_is_computed) {
  fixture f;
  f.add(1, 300, 200);
  f.add(2, 300, 50);
  f.add(3, 200, 10);
  f.follow(2, 1, 288);
  f.follow(3, 1, 192);
  EXPECT_TRUE(f.followers.release_served({1}, 191).empty());
  EXPECT_EQ(f.followers.release_served({1}, 256), std::vector<sequence_id>{{3}});
  EXPECT_EQ(f.followers.release_served({1}, 288), std::vector<sequence_id>{{2}});
  f.followers.check_integrity();
}

TEST(prefix_followers, do_not_wait_for_a_leader_that_does_not_get_on) {
  fixture f;
  f.add(1, 300, 200);
  f.add(2, 300, 50);
  f.follow(2, 1, 288);
  EXPECT_TRUE(f.followers.release_stalled(f.pass(32), f.queue).empty()) << "it progresses";
  const batch_plan others;
  EXPECT_TRUE(f.followers.release_stalled(others, f.queue).empty());
  EXPECT_TRUE(f.followers.release_stalled(others, f.queue).empty());
  EXPECT_EQ(f.followers.release_stalled(others, f.queue), std::vector<sequence_id>{{2}});
  f.followers.check_integrity();
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
  f.follow(2, 1, 96);
  f.follow(3, 1, 96);
  f.followers.remove({2});
  f.queue.release({2});
  f.followers.remove({2});  // sequence 2 is no longer known
  EXPECT_EQ(f.followers.release_followers({1}), std::vector<sequence_id>{{3}});
  f.followers.remove({1});
  f.queue.release({1});
  EXPECT_EQ(f.leader(3), std::nullopt);
}

}  // namespace
}  // namespace redline::scheduler
