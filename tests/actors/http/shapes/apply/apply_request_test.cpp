#include "actors/http/shapes/apply/apply_request.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/http/fields/json.hpp"

namespace redline::apply {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using api::json;

api::api_error refusal(const std::string& body) {
  const auto parsed = parse_apply(body);
  EXPECT_FALSE(parsed) << body;
  return parsed ? api::api_error{} : parsed.error();
}

TEST(apply_request, asks_for_the_whole_file_and_predicts_the_old_one) {
  const auto request = parse_apply(R"({"initialCode": "a = 1\nb = 2\n", "editSnippet": "a = ```3```\n# ...",
                                       "instruction": "Mind b.", "filePath": "x.py", "stream": false, "relace_metadata": {}})");
  ASSERT_TRUE(request) << request.error().message;
  ASSERT_EQ(request->messages.size(), 1U);
  EXPECT_THAT(request->messages[0]["content"].get<std::string>(),
              AllOf(HasSubstr("Mind b.\n````\na = ```3```\n# ...\n````\nThe file:\n```python\na = 1\nb = 2\n```")));
  EXPECT_EQ(request->prediction, "```python\na = 1\nb = 2\n```");
  EXPECT_EQ(request->sampling.temperature, 0);
  EXPECT_FALSE(request->stream);
  EXPECT_NE(request->shape, nullptr);
}

TEST(apply_request, takes_names_of_either_spelling) {
  const auto request = parse_apply(R"({"initial_code": "a", "edit_snippet": "b", "model": "m", "temperature": 0.5,
                                       "redline": {"speculation": {"method": "lookup"}}})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->model, "m");
  EXPECT_EQ(request->sampling.temperature, 0.5);
  EXPECT_EQ(request->speculation.method, draft::method::lookup);
}

TEST(apply_request, says_what_is_wrong) {
  EXPECT_EQ(refusal(R"({"editSnippet": "b"})").param, "initialCode");
  EXPECT_EQ(refusal(R"({"initialCode": "a"})").param, "editSnippet");
  EXPECT_EQ(refusal(R"({"initialCode": 7, "editSnippet": "b"})").param, "initialCode");
  EXPECT_EQ(refusal(R"({"initialCode": "a", "editSnippet": "b", "stream": true})").param, "stream");
  EXPECT_EQ(refusal(R"({"initialCode": "a", "editSnippet": "b", "temperature": 9})").param, "temperature");
  EXPECT_FALSE(parse_apply("["));
}

// The format that Inception's clients send.
const std::string tagged =
    "<|original_code|>\na = 1\nb = 2\n<|/original_code|>\n\n<|update_snippet|>\n# ... existing code ...\nb = 3\n"
    "<|/update_snippet|>";
std::string tagged_body(const std::string& content, json more = json::object()) {
  more["messages"] = json::array({json{{"role", "user"}, {"content", content}}});
  return dump_json(more);
}

TEST(apply_completion, asks_for_the_whole_file_and_predicts_the_old_one) {
  const auto request = parse_apply_completion(tagged_body(tagged, {{"model", "mercury-edit"}, {"max_tokens", 50}}));
  ASSERT_TRUE(request) << request.error().message;
  ASSERT_EQ(request->messages.size(), 1u);
  const auto& asked = request->messages[0]["content"].get_ref<const std::string&>();
  EXPECT_NE(asked.find("a = 1\nb = 2"), std::string::npos);
  EXPECT_NE(asked.find("# ... existing code ...\nb = 3"), std::string::npos);
  EXPECT_EQ(asked.find("<|"), std::string::npos);
  EXPECT_NE(request->prediction.value_or("").find("a = 1\nb = 2"), std::string::npos);
  EXPECT_EQ(request->model, "mercury-edit");
  EXPECT_EQ(request->tokens_max, 50u);
  EXPECT_EQ(request->sampling.temperature, 0);
  EXPECT_NE(request->shape, nullptr);
}

TEST(apply_completion, says_what_is_wrong) {
  const auto refused_at = [](const std::string& body) {
    const auto parsed = parse_apply_completion(body);
    return parsed ? std::string("nothing") : parsed.error().param;
  };
  EXPECT_EQ(refused_at("{}"), "messages");
  EXPECT_EQ(refused_at(R"({"messages": [7]})"), "messages");
  EXPECT_EQ(refused_at(R"({"messages": [{"role": "system", "content": "x"}]})"), "messages");
  EXPECT_EQ(refused_at(tagged_body("<|original_code|>\na\n<|/original_code|>")), "messages[0].content");
  EXPECT_EQ(refused_at(tagged_body("<|original_code|>\na\n<|update_snippet|>b<|/update_snippet|>")),
            "messages[0].content");
  EXPECT_EQ(refused_at(tagged_body(tagged, {{"stream", true}})), "stream");
  EXPECT_EQ(refused_at(tagged_body(tagged, {{"temperature", 9}})), "temperature");
  EXPECT_FALSE(parse_apply_completion("["));
}

}  // namespace
}  // namespace redline::apply
