#include "transport/zmq/bridge_counts.hpp"

#include <gtest/gtest.h>

namespace redline::transport {
namespace {

using namespace std::chrono_literals;

TEST(refusal_rate, allows_the_same_words_once_a_minute_and_others_at_once) {
  refusal_rate rate;
  const refusal_rate::clock::time_point start{1h};
  EXPECT_TRUE(rate.allows("a", start));
  EXPECT_TRUE(rate.allows("b", start));
  EXPECT_FALSE(rate.allows("a", start + 59s));
  EXPECT_TRUE(rate.allows("a", start + 60s));
}

TEST(refusal_rate, allows_no_flood_of_different_words) {
  refusal_rate rate;
  const refusal_rate::clock::time_point start{1h};
  std::size_t lines = 0;
  for (int i = 0; i < 1000; ++i) lines += rate.allows(std::to_string(i), start + i * 10ms) ? 1 : 0;
  EXPECT_EQ(lines, refusal_rate::lines_max);
  EXPECT_TRUE(rate.allows("another", start + 60s));
}

}  // namespace
}  // namespace redline::transport
