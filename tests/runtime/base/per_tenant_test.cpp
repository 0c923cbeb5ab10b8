#include "runtime/base/per_tenant.hpp"

#include <gtest/gtest.h>

namespace redline {
namespace {

TEST(per_tenant, keeps_tenants_apart) {
  per_tenant<int> all(4);
  *all.of({1}) = 5;
  EXPECT_EQ(*all.of({2}), 0);
  EXPECT_EQ(*all.of({1}), 5);
  EXPECT_EQ(all.count(), 2U);
}

TEST(per_tenant, forgets_those_that_nobody_holds_when_they_are_too_many) {
  per_tenant<int> all(3);
  const auto held = all.of({1});
  *held = 7;
  *all.of({2}) = 8;
  *all.of({3}) = 9;
  EXPECT_EQ(*all.of({3}), 9) << "three are not too many";
  EXPECT_EQ(*all.of({4}), 0);
  EXPECT_EQ(all.count(), 2U);
  EXPECT_EQ(*all.of({1}), 7);
  EXPECT_EQ(*all.of({2}), 0);
}

}  // namespace
}  // namespace redline
