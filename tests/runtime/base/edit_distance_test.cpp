#include "runtime/base/edit_distance.hpp"

#include <gtest/gtest.h>

namespace redline {
namespace {

TEST(edit_distance, counts_slips_of_the_fingers) {
  EXPECT_EQ(edit_distance("model", "model"), 0U);
  EXPECT_EQ(edit_distance("modle", "model"), 1U);  // two letters are exchanged
  EXPECT_EQ(edit_distance("mdel", "model"), 1U);
  EXPECT_EQ(edit_distance("", "kv"), 2U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

}  // namespace
}  // namespace redline
