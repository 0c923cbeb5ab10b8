#include "actors/http/request/answer_writer.hpp"

#include <gtest/gtest.h>

namespace redline::api {
namespace {

TEST(usage_report, adds_up) {
  usage_report one;
  one.prompt_tokens = 10;
  one.accepted = 3;
  one.rows = 15;
  one.seconds = 0.25;
  auto sum = one;
  sum += one;
  EXPECT_EQ(sum.prompt_tokens, 20u);
  EXPECT_EQ(sum.accepted, 6u);
  EXPECT_EQ(sum.rows, 30u);
  EXPECT_EQ(sum.seconds, 0.25) << "they run in parallel";
}

}  // namespace
}  // namespace redline::api
