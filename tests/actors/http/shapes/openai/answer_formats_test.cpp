#include "actors/http/shapes/openai/answer_formats.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/http/shapes/openai/request.hpp"

namespace redline::api {
namespace {

using ::testing::ElementsAre;

const std::string hello = R"("messages":[{"role":"user","content":"hi"}])";

checked<generation_request> chat(const std::string& more) {
  return parse_chat_request("{\"model\":\"m\"," + hello + (more.empty() ? "" : "," + more) + "}");
}

TEST(request, reads_the_format_of_the_answer) {
  EXPECT_FALSE(chat(R"("response_format": {"type": "text"})")->format);
  EXPECT_EQ(chat(R"("response_format": {"type": "json_object"})")->format->text, R"({"type":"object"})");
  EXPECT_EQ(chat(R"("response_format": {"type": "json_object", "schema": {}})")->format->text, R"({"type":"object"})");
  EXPECT_EQ(chat(R"("response_format": {"type": "json_object", "schema": {"const": "42"}})")->format->text,
            R"({"const":"42"})");
  EXPECT_EQ(chat(R"("response_format": {"type": "json_object", "schema": 123})").error().param,
            "response_format.schema");
  EXPECT_EQ(
      chat(
          R"("response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": {"type": "null"}}})")
          ->format->text,
      R"({"type":"null"})");
  for (const char* wrong : {R"("response_format": "json")", R"("response_format": {"type": "xml"})",
                            R"("response_format": {"type": "json_schema"})",
                            R"("response_format": {"type": "json_schema", "json_schema": {"name": "n"}})",
                            R"("response_format": {"type": "json_object"}, "min_tokens": 3)"}) {
    ASSERT_FALSE(chat(wrong)) << wrong;
  }
}

TEST(chat_request, takes_grammars_in_the_words_of_each_server) {
  const std::string text = R"("root ::= \"a\"+")";
  for (const auto& field : {"\"grammar\": " + text, "\"guided_grammar\": " + text, "\"ebnf\": " + text,
                            "\"structured_outputs\": {\"grammar\": " + text + "}"}) {
    const auto request = chat(field);
    ASSERT_TRUE(request) << field << ": " << request.error().message;
    EXPECT_EQ(request->format, (grammar::grammar_text{grammar::grammar_kind::rules, "root ::= \"a\"+"}));
    EXPECT_THAT(request->ignored, ElementsAre());
  }
  EXPECT_FALSE(chat(R"("grammar": "")")->format) << "llama.cpp's clients send it in this form";
  const auto native = parse_native_request(R"({"prompt": "x", "grammar": )" + text + "}");
  ASSERT_TRUE(native) << native.error().message;
  EXPECT_TRUE(native->format);
}

}  // namespace
}  // namespace redline::api
