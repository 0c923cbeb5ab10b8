#include "runtime/base/version.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace redline {
namespace {

TEST(version, of_a_build_names_the_commit_where_that_is_known) {
  EXPECT_THAT(version(), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_EQ(build_version(), version());
  name_commit("3.g0123456789ab");
  EXPECT_EQ(build_version(), version() + "+3.g0123456789ab");
  name_commit("");
  EXPECT_EQ(build_version(), version());
}

}  // namespace
}  // namespace redline
