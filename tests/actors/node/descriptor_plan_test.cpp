#include "actors/node/descriptor_plan.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace redline::actors {
namespace {

TEST(descriptor_plan, gives_connections_what_is_left_of_the_limit) {
  EXPECT_EQ(*plan_connections(1024, 65536, 40), 1024u);
  EXPECT_EQ(*plan_connections(1024, 1024, 40), 1024 - 40 - descriptors_reserved);
  EXPECT_EQ(*plan_connections(1, 1024, 40), 1u);
}

TEST(descriptor_plan, refuses_a_limit_that_leaves_hardly_any) {
  const auto refused = plan_connections(1024, 64, 20);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().context, testing::HasSubstr("found a limit of 64: raise the limit"));
}

TEST(descriptor_plan, counts_what_is_open) {
  const auto before = count_open_descriptors();
  const int one = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(count_open_descriptors(), before + 1);
  ::close(one);
}

TEST(descriptor_plan, raises_the_limit_to_the_most_that_is_allowed) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 200;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(raise_descriptor_limit(), before.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace redline::actors
