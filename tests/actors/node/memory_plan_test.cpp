#include "actors/node/memory_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace redline::actors {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::uint64_t gib = 1ULL << 30;

TEST(memory_plan, lets_pass_what_fits) {
  EXPECT_TRUE((memory_plan{4 * gib, 2 * gib, gib, 8 * gib}.check("m.gguf")));
  EXPECT_TRUE((memory_plan{4 * gib, 2 * gib, gib, 0}.check("m.gguf"))) << "nothing is known of the limit";
  EXPECT_EQ((memory_plan{gib / 2, 2 * gib, gib / 4, 8 * gib}.describe()),
            "weights 0.50 GiB, keys and values 2.00 GiB, buffers 0.25 GiB, of 8.00 GiB");
}

TEST(memory_plan, says_what_would_fit) {
  const auto kv = memory_plan{6 * gib, 2 * gib, 0, 8 * gib}.check("m.gguf");
  ASSERT_FALSE(kv);
  EXPECT_THAT(kv.error().context, AllOf(HasSubstr("m.gguf: expected a model that fits into the 8.00 GiB"),
                                        HasSubstr("at most 1984 MiB (--kv-mib)")));
  const auto weights = memory_plan{15 * gib, 2 * gib, 0, 8 * gib}.check("m.gguf");
  ASSERT_FALSE(weights);
  EXPECT_THAT(weights.error().context, HasSubstr("fewer bits a weight or a smaller model"));
}

TEST(memory_plan, counts_logits_and_activations_by_their_size) {
  // What fits without them does not with them, and the advice leaves them room.
  EXPECT_TRUE((memory_plan{5 * gib, 2 * gib, 0, 7 * gib + gib / 8}.check("m.gguf")));
  const auto buffers = memory_plan{5 * gib, 2 * gib, gib / 4, 7 * gib + gib / 8}.check("m.gguf");
  ASSERT_FALSE(buffers);
  EXPECT_THAT(buffers.error().context, AllOf(HasSubstr("buffers of 0.25 GiB"), HasSubstr("at most 1856 MiB")));
}

}  // namespace
}  // namespace redline::actors
