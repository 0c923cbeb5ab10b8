#include "actors/pool/served_model.hpp"

#include <gtest/gtest.h>

#include "runtime/base/version.hpp"

namespace redline::actors {
namespace {

TEST(fingerprint, tells_versions_files_and_numerics_apart) {
  const auto one = make_fingerprint(1, numerics_id("exact kernels and a KV cache of f16"));
  EXPECT_EQ(one, make_fingerprint(1, numerics_id("exact kernels and a KV cache of f16")));
  EXPECT_NE(one, make_fingerprint(2, numerics_id("exact kernels and a KV cache of f16")));
  EXPECT_NE(one, make_fingerprint(1, numerics_id("amx kernels and a KV cache of f16")));
  EXPECT_TRUE(one.starts_with("redline-" + version() + "-")) << one;
}

}  // namespace
}  // namespace redline::actors
