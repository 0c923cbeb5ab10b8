#include "runtime/sampling/sampling_defaults.hpp"

#include <gtest/gtest.h>

namespace redline::sampling {
namespace {

TEST(sampling_defaults, are_read_behind_a_name) {
  const auto plain = parse_named_sampling("qwen2.5-coder:7b");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->name, "qwen2.5-coder:7b");
  EXPECT_EQ(plain->defaults, sampling_defaults{});

  const auto greedy = parse_named_sampling("sweep-next-edit:7b:temperature=0,top_k=20");
  ASSERT_TRUE(greedy);
  EXPECT_EQ(greedy->name, "sweep-next-edit:7b");
  EXPECT_EQ(greedy->defaults.temperature, 0.0F);
  EXPECT_EQ(greedy->defaults.top_k, 20);
}

TEST(sampling_defaults, change_what_they_name_and_nothing_else) {
  sampling_params usual;
  usual.temperature = 1;
  usual.top_p = 0.5F;
  usual.seed = 7;
  const auto changed = parse_named_sampling("x:temperature=0.25,min_p=0.125")->defaults.over(usual);
  EXPECT_EQ(changed.temperature, 0.25F);
  EXPECT_EQ(changed.min_p, 0.125F);
  EXPECT_EQ(changed.top_p, 0.5F);
  EXPECT_EQ(changed.seed, 7u);
}

TEST(sampling_defaults, refuse_what_they_do_not_know) {
  for (const char* bad :
       {"x:temperature=hot", "x:temperature=3", "x:temperature=-1", "x:heat=1", "x:top_k=-1", "x:top_p=nan",
        "x:temperature=0,,top_k=1", "x:temperature=", ":temperature=0", "x:top_k=1.5"}) {
    EXPECT_FALSE(parse_named_sampling(bad)) << bad;
  }
}

}  // namespace
}  // namespace redline::sampling
