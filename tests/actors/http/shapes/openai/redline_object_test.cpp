#include "actors/http/shapes/openai/redline_object.hpp"

#include <gtest/gtest.h>

#include "actors/http/shapes/openai/request.hpp"

namespace redline::api {
namespace {

const std::string hello = R"("messages":[{"role":"user","content":"hi"}])";

checked<generation_request> chat(const std::string& more) {
  return parse_chat_request("{\"model\":\"m\"," + hello + (more.empty() ? "" : "," + more) + "}");
}

TEST(request, reads_what_to_copy_from) {
  const auto lines = chat(R"("redline": {"copy": "verified", "files": ["a\n", {"name": "b.py", "content": "b"}]})");
  ASSERT_TRUE(lines);
  EXPECT_EQ(lines->copy, (copy_request{.trust = "verified", .files = {"a\n", "b"}}));
  const auto tokens = chat(
      R"("redline": {"copy": {"trust": "auto", "spans": "tokens", "confidence_min": 0.5, "probability_min": 0.25}}, "prediction": {"type": "content", "content": "x"})");
  ASSERT_TRUE(tokens);
  EXPECT_EQ(tokens->copy, (copy_request{.trust = "auto",
                                        .line_spans = false,
                                        .token_spans = true,
                                        .confidence_min = 0.5F,
                                        .probability_min = 0.25F,
                                        .files = {"x"}}));
  const auto anchored = chat(R"("redline": {"copy": {"trust": "auto", "anchors": true}, "files": ["x"]})");
  ASSERT_TRUE(anchored);
  EXPECT_TRUE(anchored->copy->anchors);
  EXPECT_FALSE(chat(R"("redline": {"copy": {"anchors": true, "spans": "tokens"}, "files": ["x"]})"));
  EXPECT_FALSE(chat(R"("redline": {"copy": {"anchors": 1}, "files": ["x"]})"));
  EXPECT_FALSE(chat(R"("redline": {"copy": "off"})")->copy);
  for (const char* wrong :
       {R"("redline": {"copy": "forced"})", R"("redline": {"copy": "always", "files": ["x"]})",
        R"("redline": {"copy": 1, "files": ["x"]})", R"("redline": {"files": ["x"]})",
        R"("redline": {"copy": "forced", "files": [1]})", R"("redline": {"copy": "forced", "files": "x"})",
        R"("redline": {"copy": {"trust": "forced", "span": "x"}, "files": ["x"]})",
        R"("redline": {"copy": {"spans": "words"}, "files": ["x"]})",
        R"("redline": {"copy": "forced", "files": ["x"]}, "logprobs": true)",
        R"("redline": {"copy": "forced", "files": ["x"]}, "ignore_eos": true)",
        R"("redline": {"copy": "forced", "files": ["x"]}, "response_format": {"type": "json_object"})"}) {
    const auto request = chat(wrong);
    ASSERT_FALSE(request) << wrong;
    EXPECT_EQ(request.error().status, 400u) << wrong;
  }
}

}  // namespace
}  // namespace redline::api
