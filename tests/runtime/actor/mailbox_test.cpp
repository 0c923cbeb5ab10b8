#include "runtime/actor/mailbox.hpp"

#include <gtest/gtest.h>

namespace redline::actor {
namespace {

TEST(mailbox, hands_out_control_before_data_each_in_order) {
  mailbox<int> m({.control_max = 4, .data_max = 4});
  EXPECT_TRUE(m.empty());
  EXPECT_EQ(m.pop(), std::nullopt);
  ASSERT_TRUE(m.push(1, false));
  ASSERT_TRUE(m.push(2, false));
  ASSERT_TRUE(m.push(10, true));
  ASSERT_TRUE(m.push(11, true));
  EXPECT_EQ(m.size(), 4u);
  for (const int wanted : {10, 11, 1, 2}) EXPECT_EQ(m.pop(), wanted);
  EXPECT_TRUE(m.empty());
}

TEST(mailbox, bounds_each_lane_by_itself) {
  mailbox<int> m({.control_max = 1, .data_max = 2});
  EXPECT_TRUE(m.push(1, false));
  EXPECT_TRUE(m.push(2, false));
  EXPECT_FALSE(m.push(3, false));
  EXPECT_TRUE(m.push(4, true));
  EXPECT_FALSE(m.push(5, true));
  EXPECT_EQ(m.size(), 3u);
  EXPECT_EQ(m.pop(), 4);
  EXPECT_TRUE(m.push(6, true));
  EXPECT_FALSE(m.push(7, false));
}

}  // namespace
}  // namespace redline::actor
