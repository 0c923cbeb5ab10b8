#include "runtime/base/byte_budget.hpp"

#include <gtest/gtest.h>

namespace redline {
namespace {

using verdict = byte_budget::verdict;
constexpr tenant_id ann{1}, bob{2};
constexpr byte_budget::limits limits{.tenant_bytes_max = 10, .bytes_max = 15};

TEST(byte_budget, is_bounded_for_a_tenant_and_in_sum) {
  const auto budget = std::make_shared<byte_budget>();
  byte_budget::claim one(budget, ann), two(budget, ann), other(budget, bob);
  EXPECT_EQ(one.resize(6, limits), verdict::granted);
  EXPECT_EQ(two.resize(5, limits), verdict::tenant_is_full);
  EXPECT_EQ(two.resize(4, limits), verdict::granted);
  EXPECT_EQ(other.resize(6, limits), verdict::all_is_full);
  EXPECT_EQ(other.resize(5, limits), verdict::granted);
  EXPECT_EQ(budget->bytes(), 15U);
  EXPECT_EQ(budget->refused_count(), 2U);
}

TEST(byte_budget, lets_a_claim_shrink_whatever_the_limits_are_now) {
  const auto budget = std::make_shared<byte_budget>();
  byte_budget::claim one(budget, ann);
  EXPECT_EQ(one.resize(10, limits), verdict::granted);
  EXPECT_EQ(one.resize(9, {1, 1}), verdict::granted);
  EXPECT_EQ(one.resize(10, {1, 1}), verdict::tenant_is_full);
  EXPECT_EQ(one.bytes(), 9U);
}

TEST(byte_budget, is_given_back_once_by_the_last_owner_of_a_claim) {
  const auto budget = std::make_shared<byte_budget>();
  {
    byte_budget::claim one(budget, ann);
    EXPECT_EQ(one.resize(10, limits), verdict::granted);
    const byte_budget::claim moved(std::move(one));
    EXPECT_EQ(budget->bytes(), 10U);
  }
  EXPECT_EQ(budget->bytes(), 0U);
}

TEST(byte_budget, counts_a_claim_of_nobody_nowhere) {
  byte_budget::claim none;
  EXPECT_EQ(none.resize(1000, {}), verdict::granted);
}

}  // namespace
}  // namespace redline
