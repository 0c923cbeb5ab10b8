#include "actors/editing/edit_memory.hpp"

#include <gtest/gtest.h>

namespace redline::actors {
namespace {

constexpr tenant_id ann{1}, bob{2};
const edit_limits limits{.tenant_bytes_max = 10, .bytes_max = 15};

TEST(edit_memory, is_bounded_for_a_tenant_and_in_sum) {
  const auto memory = std::make_shared<edit_memory>();
  edit_memory::claim one(memory, ann), two(memory, ann), other(memory, bob);
  EXPECT_FALSE(one.resize(6, limits));
  EXPECT_EQ(two.resize(5, limits)->what, refusal::kind::memory_full);
  EXPECT_FALSE(two.resize(4, limits));
  EXPECT_TRUE(other.resize(6, limits)) << "the sum";
  EXPECT_FALSE(other.resize(5, limits));
  EXPECT_EQ(memory->bytes(), 15U);
  EXPECT_EQ(memory->refused_count(), 2U);
}

TEST(edit_memory, lets_a_claim_shrink_whatever_the_limits_are_now) {
  const auto memory = std::make_shared<edit_memory>();
  edit_memory::claim one(memory, ann);
  EXPECT_FALSE(one.resize(10, limits));
  EXPECT_FALSE(one.resize(9, {.tenant_bytes_max = 1, .bytes_max = 1}));
  EXPECT_TRUE(one.resize(10, {.tenant_bytes_max = 1, .bytes_max = 1}));
  EXPECT_EQ(memory->bytes(), 9U);
}

TEST(edit_memory, is_given_back_once_by_the_last_owner_of_a_claim) {
  const auto memory = std::make_shared<edit_memory>();
  {
    edit_memory::claim one(memory, ann);
    EXPECT_FALSE(one.resize(10, limits));
    const edit_memory::claim moved(std::move(one));
    EXPECT_EQ(memory->bytes(), 10U);
  }
  EXPECT_EQ(memory->bytes(), 0U);
  edit_memory::claim again(memory, ann);
  EXPECT_FALSE(again.resize(10, limits));
}

}  // namespace
}  // namespace redline::actors
