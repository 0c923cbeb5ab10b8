#include "actors/cli/help/suggestion.hpp"

#include <gmock/gmock.h>

namespace redline::actors::cli {
namespace {

using ::testing::Optional;

const std::vector<std::string> names{"-m", "--model", "--method", "--json", "--kv", "--max-matching-ngram-size"};

TEST(suggestion, is_the_nearest_name) {
  EXPECT_THAT(suggest("--modle", names), Optional(std::string("--model")));
  EXPECT_THAT(suggest("-jsno", names), Optional(std::string("--json")));
  EXPECT_THAT(suggest("--kw", names), Optional(std::string("--kv")));
  EXPECT_THAT(suggest("--max-match", names), Optional(std::string("--max-matching-ngram-size")));
}

TEST(suggestion, is_none_when_nothing_is_near) {
  EXPECT_EQ(suggest("--verbose", names), std::nullopt);
  EXPECT_EQ(suggest("-x", names), std::nullopt);
  EXPECT_EQ(suggest("", names), std::nullopt);
  EXPECT_EQ(suggest(std::string(100'000, 'm'), names), std::nullopt);
}

}  // namespace
}  // namespace redline::actors::cli
