#include "actors/node/cost_cache.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.hpp"

namespace redline::actors {
namespace {

namespace fs = std::filesystem;

std::string only_file(const std::string& folder) {
  std::string path;
  for (const auto& entry : fs::directory_iterator(folder)) {
    EXPECT_EQ(path, "") << "one file and no temporary ones";
    path = entry.path();
  }
  return path;
}

TEST(cost_cache, gives_back_what_was_stored_under_the_same_key) {
  const test::temporary_folder folder;
  const std::string inner = folder / "made/when/needed";
  const cost_cache cache(inner, "this machine");
  EXPECT_FALSE(cache.load());
  ASSERT_TRUE(cache.store({{1, 1, 0, 2500}, {64, 1, 1024, 90'000}}));
  const auto found = cost_cache(inner, "this machine").load();
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 2U);
  EXPECT_EQ((*found)[1].rows, 64U);
  EXPECT_EQ((*found)[1].logits, 1U);
  EXPECT_EQ((*found)[1].context, 1024U);
  EXPECT_EQ((*found)[1].took_us, 90'000U);
  EXPECT_FALSE(cost_cache(inner, "another machine").load());
  only_file(inner);
}

TEST(cost_cache, keeps_the_experts_of_a_mixture) {
  const test::temporary_folder folder;
  const cost_cache cache(folder / "c", "k");
  ASSERT_TRUE(cache.store({{1, 1, 0, 2500, 16}, {2, 2, 0, 2600, 0}}, {.layers = 2, .experts = 128, .used = 8}));
  const auto found = cache.load();
  ASSERT_TRUE(found);
  EXPECT_EQ((*found)[0].experts_count, 16U);
  EXPECT_EQ((*found)[1].experts_count, 0U);
}

TEST(cost_cache, does_not_believe_a_damaged_file) {
  const test::temporary_folder folder;
  const std::string inner = folder / "cache";
  const cost_cache cache(inner, "k");
  ASSERT_TRUE(cache.store({{1, 1, 0, 2500}}));
  const std::string path = only_file(inner);
  for (const char* text :
       {"", "{", "[]", "{}", R"({"key":"other","passes":[{"rows":1,"logits":1,"context":0,"us":1}]})", R"({"key":"k"})",
        R"({"key":"k","passes":[]})", R"({"key":"k","passes":[7]})",
        R"({"key":"k","passes":[{"rows":-1,"logits":1,"context":0,"us":1}]})",
        R"({"key":"k","passes":[{"rows":1,"logits":1,"context":0}]})",
        R"({"key":"k","passes":[{"rows":1,"logits":1,"context":0,"us":1,"experts":-1}]})",
        R"({"key":"k","passes":[{"rows":1,"logits":1,"context":0,"us":99999999999999}]})"}) {
    std::ofstream(path) << text;
    EXPECT_FALSE(cache.load()) << text;
  }
}

TEST(cost_cache, keeps_nothing_without_a_folder_and_says_when_it_cannot) {
  const cost_cache none("", "k");
  EXPECT_TRUE(none.store({{1, 1, 0, 2500}}));
  EXPECT_FALSE(none.load());
  EXPECT_FALSE(cost_cache("/proc/no/such/place", "k").store({{1, 1, 0, 2500}}));
}

}  // namespace
}  // namespace redline::actors
