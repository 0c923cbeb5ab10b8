#include "actors/cli/forward_probe.hpp"

#include <gtest/gtest.h>

#include "tests/support/tiny_model.hpp"

namespace redline::actors::cli {
namespace {

forward_cell measured(const test::tiny_shape& shape, std::uint32_t rows, std::uint32_t distinct_tokens) {
  const kernels::kernel_table& table = *kernels::process_table().table;
  kernels::worker_team team(1);
  const auto file = test::make_tiny_model(shape).file();
  const auto weights = model::load_weights(*file, table, team).value();
  const auto probe = forward_probe::create(*file, weights, table, team,
                                           {.rows_max = 32, .tokens_max = 32, .distinct_tokens = distinct_tokens})
                         .value();
  return probe->measure(rows, {.samples = 2, .seconds = 0});
}

// The weights of experts that no row uses are not read.
TEST(forward_probe, counts_what_a_mixture_touches_and_reads) {
  const test::tiny_shape mixture = {.architecture = "qwen3moe", .experts = 16};
  const auto one = measured(mixture, 1, 0), same = measured(mixture, 16, 1), other = measured(mixture, 16, 0);
  EXPECT_EQ(one.experts, 4) << "two in each of two layers";
  EXPECT_LT(same.experts, other.experts / 2);
  EXPECT_LT(same.bytes, other.bytes);
  const auto dense = measured({}, 16, 1);
  EXPECT_EQ(dense.experts, 0);
  EXPECT_GT(dense.bytes, 0);
}

}  // namespace
}  // namespace redline::actors::cli
