#include "actors/prompts/known_phrases.hpp"

#include <gtest/gtest.h>

#include "tests/support/test_data.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::actors {
namespace {

TEST(known_phrases, are_those_of_the_demonstration_models) {
  for (const char* name : {"bench/demo_models/demo-target.gguf", "bench/demo_models/demo-draft.gguf"}) {
    const auto model = gguf::gguf_file::open(test::source_path(name));
    ASSERT_TRUE(model) << model.error().describe();
    EXPECT_FALSE(known_phrases(**model).empty()) << name;
  }
}

TEST(known_phrases, are_none_of_other_models) {
  EXPECT_TRUE(known_phrases(*test::make_tiny_model({.context = 256}).file()).empty());
}

}  // namespace
}  // namespace redline::actors
