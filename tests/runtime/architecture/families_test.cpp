#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "runtime/architecture/family.hpp"

namespace redline::architecture {
namespace {

using ::testing::ElementsAre;

TEST(families, are_known_by_names_that_no_two_share) {
  std::set<std::string_view> names, classes;
  for (const family& f : families()) {
    EXPECT_TRUE(names.insert(f.name).second) << f.name;
    EXPECT_EQ(find_family(f.name), &f);
    for (const hub_class& named : f.hub) EXPECT_TRUE(classes.insert(named.name).second) << named.name;
  }
  EXPECT_EQ(find_family("no-such-family"), nullptr);
}

TEST(families, fill_their_rows_whole) {
  for (const family& f : families()) {
    SCOPED_TRACE(f.name);
    EXPECT_TRUE(f.has(role::query_key_value) || (f.has(role::query) && (f.has(role::key) || f.has_latents())));
    EXPECT_TRUE(f.has(role::attention_output));
    EXPECT_TRUE(f.has(role::down) || f.has(role::expert_downs));
    EXPECT_EQ(f.has(role::up), f.has(role::down));
    EXPECT_TRUE(!f.has(role::gate) || f.has(role::up));
    EXPECT_TRUE(f.has(role::attention_norm) || f.has(role::attention_post_norm)) << "each layer has some norm";
    const bool norms_heads = f.head_norms != head_norm::none || f.may_have_own_head_norms();
    EXPECT_EQ(norms_heads, f.has(role::query_norm) && f.has(role::key_norm));
    EXPECT_EQ(!f.experts_key.empty(), f.has(role::router));
    EXPECT_TRUE(f.has(role::router) || !(f.needs_experts || f.says_mixture || f.normalises_experts));
    EXPECT_TRUE(!f.needs_window || f.window_period) << "otherwise no layer could have the window";
    for (const hub_class& named : f.hub) {
      EXPECT_TRUE(!named.has_windows || f.window_period) << named.name;
      EXPECT_TRUE(!named.has_experts || !f.experts_key.empty()) << named.name;
    }
    for (const factor_key& key : f.factors) EXPECT_NE(key.into, nullptr) << key.gguf;
  }
}

TEST(families, name_each_tensor_of_a_layer_once) {
  for (const family& f : families()) {
    std::set<std::string> ours;
    for (const auto& block : f.layer) {
      for (const tensor_row& row : block) {
        EXPECT_TRUE(ours.insert(std::string(row.gguf)).second) << f.name << " " << row.gguf;
        EXPECT_FALSE(row.hub.empty()) << f.name << " " << row.gguf;
        EXPECT_EQ(row.form == hub_form::each, row.hub.find('*') != std::string_view::npos) << row.hub;
        EXPECT_LT(row.part, row.parts) << row.gguf;
      }
    }
  }
}

TEST(families, that_are_nearest_to_an_unknown_name_come_first) {
  const auto names = [](std::string_view name) {
    std::vector<std::string_view> found;
    for (const family* f : nearest_families(name)) found.push_back(f->name);
    return found;
  };
  EXPECT_THAT(names("qwen36"), ElementsAre("qwen3", "qwen35", "qwen2"));
  EXPECT_THAT(names("gemma5"), ElementsAre("gemma", "gemma2", "gemma3"));
  EXPECT_EQ(names(std::string(1 << 20, 'x')).size(), 3U) << "a long name costs no more";
}

}  // namespace
}  // namespace redline::architecture
