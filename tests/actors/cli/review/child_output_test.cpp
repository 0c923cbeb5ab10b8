#include "actors/cli/review/child_output.hpp"

#include <gmock/gmock.h>

namespace redline::actors::cli {
namespace {

TEST(child_output, is_what_the_program_wrote_and_how_it_ended) {
  const auto r = run_for_output({"sh", "-c", "cat; echo out; echo error >&2; exit 3"});
  ASSERT_TRUE(r);
  EXPECT_EQ(r->out, "out\n");
  EXPECT_EQ(r->error, "error\n");
  EXPECT_EQ(r->exit_code, 3);
}

TEST(child_output, may_be_more_than_pipes_hold) {
  const auto r = run_for_output({"sh", "-c", "head -c 1000000 /dev/zero >&2; head -c 1000000 /dev/zero"});
  ASSERT_TRUE(r);
  EXPECT_EQ(r->out.size(), 1'000'000U);
  EXPECT_EQ(r->error.size(), 1'000'000U);
}

TEST(child_output, has_a_limit) {
  const auto r = run_for_output({"cat", "/dev/zero"});
  EXPECT_FALSE(r);
  EXPECT_THAT(run_for_output({"sh", "-c", "cat /dev/zero"}).error().context, ::testing::HasSubstr("more than 64 MiB"));
}

TEST(child_output, tells_a_missing_program) {
  const auto r = run_for_output({"/nonexistent/program"});
  ASSERT_TRUE(r);
  EXPECT_EQ(r->exit_code, 127);
  EXPECT_FALSE(run_on_terminal({"/nonexistent/program"}));
  EXPECT_EQ(*run_on_terminal({"sh", "-c", "exit 4"}), 4);
}

}  // namespace
}  // namespace redline::actors::cli
