#include "actors/http/shapes/responses/responses_request.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/http/fields/json.hpp"

namespace redline::responses {
namespace {

using api::json;
using ::testing::HasSubstr;

json messages_of(const std::string& body) {
  const auto request = parse_responses(body);
  EXPECT_TRUE(request) << request.error().message;
  return request ? request->messages : json();
}
api::api_error refusal(const std::string& body) {
  const auto request = parse_responses(body);
  EXPECT_FALSE(request) << body;
  return request ? api::api_error{} : request.error();
}

TEST(responses_request, takes_a_text_or_items_as_input) {
  EXPECT_EQ(messages_of(R"({"input": "hi", "instructions": "be brief"})"),
            json::parse(R"([{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}])"));
  EXPECT_EQ(messages_of(R"({"input": [{"role": "developer", "content": "d"},
      {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
      {"type": "reasoning", "summary": []}, {"type": "web_search_call", "id": "w"},
      {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "c", "annotations": []}]},
      {"role": "user", "content": "e"}]})"),
            json::parse(R"([{"role": "system", "content": "d"}, {"role": "user", "content": "a\nb"},
                            {"role": "assistant", "content": "c"}, {"role": "user", "content": "e"}])"));
}

TEST(responses_request, gives_what_was_thought_to_what_was_said_or_called_next) {
  const auto messages = messages_of(R"({"input": [{"role": "user", "content": "a"},
      {"type": "reasoning", "summary": [{"type": "summary_text", "text": "short"}],
       "content": [{"type": "reasoning_text", "text": "whole"}]},
      {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "c", "output": "r"},
      {"type": "reasoning", "summary": [{"type": "summary_text", "text": "short"}]},
      {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]})");
  EXPECT_EQ(messages[1]["reasoning_content"], "whole");
  EXPECT_EQ(messages[1]["tool_calls"][0]["function"]["name"], "f");
  EXPECT_EQ(messages[3]["reasoning_content"], "short");
  EXPECT_FALSE(messages[4].contains("reasoning_content"));
}

TEST(responses_request, answers_a_probe_without_input) {
  EXPECT_EQ(messages_of(R"({"input": [], "max_output_tokens": 1})"),
            json::parse(R"([{"role": "user", "content": ""}])"));
  EXPECT_EQ(messages_of("{}").size(), 1U);
}

TEST(responses_request, reads_lengths_formats_and_our_own_members) {
  const auto request = parse_responses(R"({"input": "hi", "max_output_tokens": 7, "stream": true, "temperature": 0,
      "store": true, "include": ["reasoning.encrypted_content"], "prompt_cache_key": "k", "client_metadata": {"a": 1},
      "tools": [{"type": "web_search"}, {"type": "namespace", "name": "n", "tools": []}], "tool_choice": "auto",
      "parallel_tool_calls": false, "reasoning": {"effort": "low"},
      "text": {"verbosity": "low", "format": {"type": "json_schema", "name": "n", "schema": {"type": "integer"}, "strict": true}},
      "prediction": {"type": "content", "content": "p"}})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->tokens_max, 7U);
  EXPECT_TRUE(request->stream);
  EXPECT_EQ(request->format->text, R"({"type":"integer"})");
  EXPECT_EQ(request->session_key, "k");
  EXPECT_EQ(request->prediction, "p");
  EXPECT_EQ(request->reasoning_effort, "low");
}

TEST(responses_request, asks_for_log_probabilities_by_what_is_to_be_included) {
  const std::string asks =
      R"({"input": "a", "include": ["reasoning.encrypted_content", "message.output_text.logprobs"])";
  const auto r = parse_responses(asks + R"(, "top_logprobs": 3})");
  ASSERT_TRUE(r);
  EXPECT_TRUE(r->logprobs);
  EXPECT_EQ(r->top_logprobs, 3U);
  EXPECT_EQ(parse_responses(asks + "}")->top_logprobs, 0U);
  EXPECT_FALSE(parse_responses(R"({"input": "a", "include": ["reasoning.encrypted_content"]})")->logprobs);
  EXPECT_EQ(parse_responses(R"({"input": "a", "top_logprobs": 3})").error().param, "top_logprobs");
  EXPECT_EQ(parse_responses(asks + R"(, "redline": {"copy": "forced", "files": ["x"]}})").error().param, "include");
}

TEST(responses_request, says_that_nothing_is_stored) {
  const auto earlier = refusal(R"({"input": "hi", "previous_response_id": "resp_1"})");
  EXPECT_EQ(earlier.code, "previous_response_not_found");
  EXPECT_THAT(earlier.message, HasSubstr("send the whole conversation"));
  EXPECT_EQ(refusal(R"({"input": "hi", "conversation": "c"})").param, "conversation");
  EXPECT_EQ(refusal(R"({"input": "hi", "background": true})").param, "background");
  const auto reference = refusal(R"({"input": [{"type": "item_reference", "id": "x"}]})");
  EXPECT_EQ(reference.param, "input[0].type");
  EXPECT_THAT(reference.message, testing::HasSubstr("'store': false"));
}

TEST(responses_request, refuses_what_is_wrong_by_its_own_names) {
  EXPECT_EQ(refusal(R"({"input": 7})").param, "input");
  EXPECT_EQ(refusal(R"({"input": [7]})").param, "input[0]");
  EXPECT_EQ(refusal(R"({"input": [{"role": "user"}]})").param, "input[0].content");
  EXPECT_EQ(refusal(R"({"input": [{"content": "x"}]})").param, "input[0].role");
  EXPECT_EQ(refusal(R"({"input": [{"role": "user", "content": [{"type": "input_image"}]}]})").param,
            "input[0].content[0].type");
  EXPECT_EQ(refusal(R"({"input": [{"type": "magic"}]})").param, "input[0].type");
  EXPECT_EQ(refusal(R"({"input": [{"type": "function_call_output", "call_id": "c"}]})").param, "input[0].output");
  const auto length = refusal(R"({"input": "hi", "max_output_tokens": "x"})");
  EXPECT_EQ(length.param, "max_output_tokens");
  EXPECT_THAT(length.message, HasSubstr("'max_output_tokens'"));
  EXPECT_EQ(refusal(R"({"input": "hi", "text": {"format": {"type": "x"}}})").param, "text.format.type");
  EXPECT_EQ(refusal(R"({"input": "hi", "text": "x"})").param, "text");
  EXPECT_EQ(refusal(R"({"input": "hi", "tools": "x"})").param, "tools");
}

TEST(responses_request, refuses_what_it_would_have_to_repeat_without_bound) {
  const auto with = [](const std::string& name, const json& value) {
    json body{{"input", "hi"}};
    body[name] = value;
    return body.dump();
  };
  json pairs;
  for (int i = 0; i < 16; ++i) pairs["key " + std::to_string(i)] = std::string(512, 'v');
  pairs["key 1"] = "\u00e9";
  EXPECT_TRUE(parse_responses(with("metadata", pairs)));
  pairs["one more"] = "v";
  EXPECT_EQ(refusal(with("metadata", pairs)).param, "metadata");
  EXPECT_TRUE(parse_responses(with("metadata", {{std::string(64, 'k'), ""}})));
  EXPECT_EQ(refusal(with("metadata", {{std::string(65, 'k'), ""}})).param, "metadata");
  EXPECT_EQ(refusal(with("metadata", {{"a", std::string(513, 'v')}})).param, "metadata.a");
  EXPECT_EQ(refusal(with("metadata", {{"a", json::array({1, 2})}})).param, "metadata.a");
  EXPECT_EQ(refusal(with("metadata", "x")).param, "metadata");
  for (const auto* name : {"max_tool_calls", "top_logprobs", "parallel_tool_calls", "reasoning", "tool_choice",
                           "temperature", "max_output_tokens", "user"}) {
    EXPECT_EQ(refusal(with(name, json::array({json::array(), 1}))).param, name);
  }
  EXPECT_EQ(refusal(with("max_tool_calls", 0)).param, "max_tool_calls");
  EXPECT_EQ(refusal(with("top_logprobs", 21)).param, "top_logprobs");
  EXPECT_EQ(refusal(with("reasoning", {{"summary", json::array()}})).param, "reasoning.summary");
  EXPECT_EQ(refusal(with("text", {{"verbosity", json::array()}})).param, "text.verbosity");
  EXPECT_EQ(refusal(with("instructions", std::string(1 << 20, 'x'))).param, "instructions");
  EXPECT_EQ(refusal(with("tools", {{{"type", "web_search"}, {"more", std::string(1 << 20, 'x')}}})).param,
            "instructions");
  EXPECT_TRUE(parse_responses(with("instructions", std::string(1 << 19, 'x'))));
}

}  // namespace
}  // namespace redline::responses
