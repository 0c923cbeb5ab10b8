#include "actors/http/routing/paths.hpp"

#include <gtest/gtest.h>

namespace redline::actors {
namespace {

TEST(paths, match_segments_and_rests) {
  EXPECT_TRUE(match_path("/models", "/models"));
  EXPECT_FALSE(match_path("/models", "/models/"));
  EXPECT_EQ(*match_path("/a/{}/b/{*}", "/a/one/b/two/three"), (std::vector<std::string>{"one", "two/three"}));
  EXPECT_FALSE(match_path("/a/{}/b", "/a//b")) << "no segment is empty";
  EXPECT_FALSE(match_path("/a/{*}", "/a/"));
}

TEST(paths, are_tidied_of_slashes) {
  EXPECT_EQ(tidy_path("//v1///models//"), "/v1/models");
  EXPECT_EQ(tidy_path("/"), "/");
  EXPECT_EQ(tidy_path("///"), "/");
  EXPECT_EQ(without_version("/v1/models"), "/models");
  EXPECT_EQ(without_version("/v1"), "/");
  EXPECT_EQ(without_version("/v10/models"), "/v10/models");
}

TEST(paths, are_guessed_from_what_is_near) {
  constexpr std::string_view known[] = {"/", "/chat/completions", "/completions", "/models", "/sessions/{}"};
  EXPECT_EQ(nearest_path("/chat/completion", known), "/chat/completions");
  EXPECT_EQ(nearest_path("/openai/deployments/x/chat/completions", known), "/chat/completions");
  EXPECT_EQ(nearest_path("/completions/extra/more/of/it", known), "/completions");
  EXPECT_EQ(nearest_path("/something-else", known), "");
  EXPECT_EQ(nearest_path("/" + std::string(100'000, 'x'), known), "");
  EXPECT_EQ(nearest_path("/x", {}), "");
}

}  // namespace
}  // namespace redline::actors
