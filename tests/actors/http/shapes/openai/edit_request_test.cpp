#include "actors/http/shapes/openai/edit_request.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace redline::api {
namespace {

TEST(edit_request, paths_are_utf8_without_control_characters) {
  const actors::edit_limits limits;
  const auto put = [&](const std::string& path) { return parse_put_file(path, R"({"text":"x"})", limits); };
  EXPECT_TRUE(put("src/a.py"));
  EXPECT_TRUE(put("src/\xc3\xa4.py"));
  for (const std::string bad : {"", "a\nb", "\xff", "a\xc3", "\xed\xa0\x80"}) {
    const auto refused = put(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().status, 400u);
    EXPECT_THAT(refused.error().message, ::testing::HasSubstr("bytes of UTF-8 and no control characters"));
  }
}

}  // namespace
}  // namespace redline::api
