#include "runtime/gguf/file_digest.hpp"

#include <gtest/gtest.h>

#include "tests/support/tiny_model.hpp"

namespace redline::gguf {
namespace {

std::uint64_t digest(const test::tiny_shape& shape) {
  return compute_file_digest(*test::make_tiny_model(shape).file());
}

TEST(file_digest, is_the_same_for_the_same_model_and_another_for_others) {
  EXPECT_EQ(digest({}), digest({}));
  EXPECT_NE(digest({}), digest({.seed = 2})) << "other weights in the same shape";
  EXPECT_NE(digest({}), digest({.layers = 1}));
  EXPECT_NE(digest({}), digest({.context = 100})) << "other metadata";
}

TEST(file_digest, of_a_header_counts_its_metadata_alone) {
  const auto header = [](const test::tiny_shape& shape) {
    return compute_header_digest(test::make_tiny_model(shape).file()->copy_header());
  };
  EXPECT_EQ(header({}), header({}));
  EXPECT_EQ(header({}), header({.seed = 2})) << "other weights";
  EXPECT_NE(header({}), header({.context = 100}));
}

}  // namespace
}  // namespace redline::gguf
