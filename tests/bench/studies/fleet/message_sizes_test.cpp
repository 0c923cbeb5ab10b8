#include "bench/studies/fleet/message_sizes.hpp"

#include <gtest/gtest.h>

namespace redline::studies {
namespace {

TEST(message_sizes, a_token_takes_three_bytes_and_every_message_has_an_envelope) {
  const message_sizes sizes;
  for (std::size_t i = 0; i < carried_count; ++i) {
    EXPECT_GT(sizes.bytes(static_cast<carried>(i), 0), 30) << name_of(static_cast<carried>(i));
  }
  for (const carried what : {carried::propose, carried::proposal, carried::verify_run, carried::verified}) {
    EXPECT_NEAR(sizes.bytes(what, 1000) - sizes.bytes(what, 0), 3000, 10) << name_of(what);
  }
  EXPECT_EQ(sizes.bytes(carried::beat, 0), sizes.bytes(carried::beat, 1000));
}

}  // namespace
}  // namespace redline::studies
