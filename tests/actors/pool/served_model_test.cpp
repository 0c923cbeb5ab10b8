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

TEST(served_model, has_names_with_sampling_of_their_own) {
  served_model m;
  m.name = "coder";
  m.add_names({"coder:temperature=0.5", "next-edit:temperature=0", "plain:7b", "bad:temperature=9"});
  EXPECT_EQ(m.aliases, (std::vector<std::string>{"next-edit", "plain:7b"}));
  EXPECT_EQ(m.sampling_of("next-edit").temperature, 0.0F);
  EXPECT_EQ(m.sampling_of("coder").temperature, 0.5F);
  EXPECT_EQ(m.sampling_of("").temperature, 0.5F);
  EXPECT_EQ(m.sampling_of("any name").temperature, 0.5F);
  EXPECT_EQ(m.sampling_of("plain:7b").temperature, std::nullopt);
}

}  // namespace
}  // namespace redline::actors
