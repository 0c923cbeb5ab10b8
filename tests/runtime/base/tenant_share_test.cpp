#include "runtime/base/tenant_share.hpp"

#include <gtest/gtest.h>

namespace redline {
namespace {

TEST(equal_share, of_an_owner_alone_is_all) {
  const equal_share of{.total = 7, .owners = 1};
  EXPECT_EQ(of.whole(), 7U);
  EXPECT_FALSE(of.is_over(7));
  EXPECT_TRUE(of.is_over(8));
  EXPECT_TRUE(of.is_below(6));
}

TEST(equal_share, is_the_same_for_all_and_never_more_than_there_is) {
  for (std::uint64_t total = 0; total < 50; ++total) {
    for (std::uint64_t owners = 1; owners < 60; ++owners) {
      const equal_share of{total, owners};
      EXPECT_LE(of.whole() * owners, total);
      EXPECT_GT((of.whole() + 1) * owners, total);
      EXPECT_LE(of.whole(3), total);
      EXPECT_EQ(of.whole(3), std::max(of.whole(), std::min<std::uint64_t>(3, total)));
      for (std::uint64_t own = 0; own < 60; ++own) {
        EXPECT_EQ(of.is_over(own), own > of.whole());
        EXPECT_EQ(of.is_below(own), own < of.whole() || (own == of.whole() && total % owners != 0));
      }
    }
  }
}

TEST(equal_share, of_what_nobody_has_is_all) { EXPECT_EQ((equal_share{9, 0}.whole()), 9U); }

TEST(part_of_one, is_a_quarter_unless_said_otherwise_and_never_nothing) {
  EXPECT_EQ(part_of_one(256), 64U);
  EXPECT_EQ(part_of_one(3), 1U);
  EXPECT_EQ(part_of_one(0), 1U);
  EXPECT_EQ(part_of_one(16, 2), 8U);
}

}  // namespace
}  // namespace redline
