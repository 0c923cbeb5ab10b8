#include "scheduler/sequence_log.hpp"

#include <gtest/gtest.h>

namespace redline::scheduler {
namespace {

std::vector<token> tokens(std::size_t count, token t = 7) { return std::vector<token>(count, t); }

/// A log of `count` tokens, all of which except the last have KV.
sequence_log computed(std::uint32_t count) {
  sequence_log log;
  EXPECT_TRUE(log.change({}, 0, tokens(count)).empty());
  log.note_computed({0, count - 1});
  log.check_integrity();
  return log;
}

TEST(sequence_log, a_new_log_has_all_tokens_pending) {
  sequence_log log;
  EXPECT_TRUE(log.change({}, 0, tokens(5)).empty());
  EXPECT_EQ(log.count(), 5u);
  EXPECT_FALSE(log.has_kv());
  EXPECT_EQ(log.pending(false), (token_range{0, 5}));
  EXPECT_EQ(log.pending(true), (token_range{0, 4}));
  log.note_computed({0, 4});
  EXPECT_EQ(log.pending(true).count(), 0u);
  EXPECT_EQ(log.pending(false), (token_range{4, 5}));
}

TEST(sequence_log, accepted_drafts_have_kv_and_the_sampled_token_has_none) {
  auto log = computed(5);
  log.note_verified(4, 2, tokens(3, 9));
  EXPECT_EQ(log.count(), 8u);
  EXPECT_EQ(log.kv_count(), 7u);
  EXPECT_EQ(log.pending(false), (token_range{7, 8}));
  log.check_integrity();
}

TEST(sequence_log, a_tail_keeps_the_kv_of_the_tokens_it_repeats) {
  auto log = computed(6);
  std::vector<token> tail = tokens(4);
  EXPECT_TRUE(log.change({}, 2, tail).empty());
  EXPECT_EQ(log.kv_count(), 5u);
  tail[1] = 9;
  EXPECT_TRUE(log.change({}, 2, tail).empty());
  EXPECT_EQ(log.kv_count(), 3u);
  EXPECT_EQ(log.pending(false), (token_range{3, 6}));
}

TEST(sequence_log, fits_only_splices_inside_the_log_that_those_before_leave) {
  const auto log = computed(4);
  const log_splice edit{.at = 2, .removed_count = 1};
  const log_splice last{.at = 3, .removed_count = 1};
  EXPECT_TRUE(log.fits({}, 4, 100));
  EXPECT_FALSE(log.fits({}, 5, 100));
  EXPECT_TRUE(log.fits({{last, edit}}, 2, 100));
  EXPECT_FALSE(log.fits({{edit, last}}, 0, 100)) << "after the first, there are only three tokens";
  EXPECT_FALSE(log.fits({{edit}}, 4, 100));
  const auto many = tokens(97);
  EXPECT_FALSE(log.fits({{{.at = 0, .tokens = many}}}, 0, 100));
}

TEST(sequence_log, a_splice_that_keeps_what_is_later_leaves_a_hole) {
  auto log = computed(21);
  const std::vector<token> fresh{8, 9, 10};
  const log_splice edit{.at = 5, .removed_count = 2, .tokens = fresh, .policy = kv::splice_policy::pie};
  const auto splices = log.change({{edit}}, 22, {});
  EXPECT_EQ(log.tokens()[5], 8);
  EXPECT_EQ(log.pending(false), (token_range{5, 8}));
  const kv::table_splice in_table{
      .keep_count = 20, .at = 5, .removed_count = 2, .shift = 1, .policy = kv::splice_policy::pie};
  EXPECT_EQ(splices, std::vector{in_table});
  EXPECT_EQ(log.exact_count(), 8u);
  EXPECT_EQ(log.computed_prefix().size(), 5u);
  log.note_computed({5, 8});
  EXPECT_EQ(log.computed_prefix().size(), 8u);
  log.check_integrity();
}

TEST(sequence_log, a_splice_that_moves_nothing_has_no_shift) {
  auto log = computed(10);
  const auto fresh = tokens(3, 9);
  const auto splices =
      log.change(std::vector<log_splice>{{.at = 2, .tokens = fresh, .policy = kv::splice_policy::conflict}}, 13, {});
  EXPECT_EQ(splices.at(0).shift, 0);
}

TEST(sequence_log, an_exact_splice_drops_the_kv_of_all_that_is_later) {
  auto log = computed(20);
  EXPECT_TRUE(log.change(std::vector<log_splice>{{.at = 5, .removed_count = 2}}, 18, {}).empty());
  EXPECT_EQ(log.kv_count(), 5u);
  EXPECT_EQ(log.exact_count(), 18u);
}

TEST(sequence_log, counts_losses_of_kv_that_comes_back_with_other_bits) {
  auto log = computed(20);
  log.lose_kv();
  EXPECT_FALSE(log.has_kv());
  EXPECT_EQ(log.recomputed_count(), 0u);
  log.note_computed({0, 19});
  log.change(std::vector<log_splice>{{.at = 5, .removed_count = 2, .policy = kv::splice_policy::pie}}, 18, {});
  EXPECT_EQ(log.exact_count(), 5u);
  log.lose_kv();
  EXPECT_EQ(log.recomputed_count(), 1u);
  EXPECT_EQ(log.exact_count(), 18u);
}

TEST(sequence_log, keeps_less_than_its_memory_can_go_on_from) {
  auto log = computed(20);
  log.keep_kv(7);
  EXPECT_EQ(log.kv_count(), 7u);
  EXPECT_EQ(log.pending(false), (token_range{7, 20}));
  log.change(std::vector<log_splice>{{.at = 2, .tokens = tokens(3, 9), .policy = kv::splice_policy::pie}}, 23, {});
  log.keep_kv(4);  // keeps the two before the hole, and two of the five after it
  EXPECT_EQ(log.pending(false), (token_range{2, 5}));
  log.note_computed({2, 5});
  EXPECT_EQ(log.pending(false), (token_range{7, 23}));
}

TEST(sequence_log, is_exact_again_once_the_inexact_tokens_are_dropped) {
  auto log = computed(20);
  log.change(std::vector<log_splice>{{.at = 10, .removed_count = 1, .policy = kv::splice_policy::pie}}, 19, {});
  EXPECT_EQ(log.exact_count(), 10u);
  log.change({}, 10, tokens(3, 9));
  EXPECT_EQ(log.exact_count(), 13u);
}

}  // namespace
}  // namespace redline::scheduler
