#include "actors/http/shapes/apply/edit_completion.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/http/fields/json.hpp"

namespace redline::apply {
namespace {

using api::json;

std::string body_of(const std::string& content, json more = json::object()) {
  more["messages"] = json::array({json{{"role", "user"}, {"content", content}}});
  return dump_json(more);
}

const std::string content =
    "<|current_file_content|>\ncurrent_file_path: a.py\n<|code_to_edit|>\na = 1\nb = <|cursor|>2\n<|/code_to_edit|>\nc "
    "= 3\n"
    "<|/current_file_content|>\n\n<|edit_diff_history|>\n-a = 0\n+a = 1\n<|/edit_diff_history|>";

TEST(edit_completion, explains_the_tags_and_predicts_the_region) {
  const auto request = parse_edit_completion(body_of(content, {{"model", "m"}, {"max_tokens", 7}, {"temperature", 0}}));
  ASSERT_TRUE(request) << request.error().message;
  ASSERT_EQ(request->messages.size(), 2U);
  EXPECT_EQ(request->messages[0]["role"], "system");
  EXPECT_EQ(request->messages[1]["content"], content);
  EXPECT_EQ(request->prediction, "```\na = 1\nb = 2\n```");
  EXPECT_EQ(request->model, "m");
  EXPECT_EQ(request->tokens_max, 7U);
  EXPECT_EQ(request->shape, nullptr) << "a chat's answer";
}

TEST(edit_completion, keeps_a_prediction_that_is_given) {
  const auto request =
      parse_edit_completion(body_of(content, {{"prediction", {{"type", "content"}, {"content", "p"}}}}));
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->prediction, "p");
}

TEST(edit_completion, says_what_is_wrong) {
  const auto refused_at = [](const std::string& body) {
    const auto parsed = parse_edit_completion(body);
    return parsed ? std::string("nothing") : parsed.error().param;
  };
  EXPECT_EQ(refused_at("{}"), "messages");
  EXPECT_EQ(refused_at(R"({"messages": []})"), "messages");
  EXPECT_EQ(refused_at(R"({"messages": [7]})"), "messages");
  EXPECT_EQ(refused_at(R"({"messages": [{"role": "system", "content": "x"}]})"), "messages");
  EXPECT_EQ(refused_at(R"({"messages": [{"role": "user"}]})"), "messages[0].content");
  EXPECT_EQ(refused_at(body_of("no region")), "messages[0].content");
  EXPECT_EQ(refused_at(body_of("<|code_to_edit|> without an end")), "messages[0].content");
  EXPECT_EQ(refused_at(body_of(content, {{"temperature", 9}})), "temperature");
  EXPECT_FALSE(parse_edit_completion("["));
}

}  // namespace
}  // namespace redline::apply
