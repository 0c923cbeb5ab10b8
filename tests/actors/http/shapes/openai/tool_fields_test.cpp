#include "actors/http/shapes/openai/tool_fields.hpp"

#include <gtest/gtest.h>

#include <string>

#include "actors/http/shapes/openai/request.hpp"

namespace redline::api {
namespace {

constexpr const char* two_tools = R"("tools": [
    {"type": "function", "function": {"name": "read", "description": "Reads.",
                                      "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}},
    {"type": "function", "function": {"name": "mcp__x.y:z/w-1", "strict": true}}])";

checked<generation_request> ask(const std::string& fields, const request_limits& limits = {}) {
  return parse_chat_request(R"({"messages": [{"role": "user", "content": "x"}], )" + fields + "}", limits);
}

void expect_refusal(const std::string& fields, const std::string& param, const std::string& says,
                    const request_limits& limits = {}) {
  const auto request = ask(fields, limits);
  ASSERT_FALSE(request) << fields;
  EXPECT_EQ(request.error().param, param) << fields;
  EXPECT_NE(request.error().message.find(says), std::string::npos) << request.error().message;
  EXPECT_EQ(request.error().status, 400U);
}

TEST(tool_fields, reads_functions) {
  const auto request = ask(two_tools);
  ASSERT_TRUE(request) << request.error().message;
  const auto& set = *request->tools;
  ASSERT_EQ(set.all.size(), 2U);
  EXPECT_EQ(set.all[0].name, "read");
  EXPECT_EQ(set.all[0].description, "Reads.");
  EXPECT_EQ(set.all[0].parameters["properties"]["path"]["type"], "string");
  EXPECT_FALSE(set.all[0].strict);
  EXPECT_EQ(set.all[1].name, "mcp__x.y:z/w-1");
  EXPECT_TRUE(set.all[1].parameters.is_null());
  EXPECT_TRUE(set.all[1].strict);
  EXPECT_EQ(set.call, tools::choice::automatic);
  EXPECT_TRUE(set.many);
  EXPECT_TRUE(request->calls_tools());
}

TEST(tool_fields, leaves_out_tools_that_a_server_would_have_to_run) {
  const auto request =
      ask(R"("tools": [{"type": "web_search"}, {"type": "function", "function": {"name": "f"}}, {"type": "custom"}])");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->tools->all.size(), 1U);
  EXPECT_FALSE(ask(R"("tools": [{"type": "web_search"}])")->tools);
}

TEST(tool_fields, reads_every_tool_choice) {
  const auto with = [](const std::string& choice) { return ask(std::string(two_tools) + ", " + choice); };
  EXPECT_EQ(with(R"("tool_choice": "auto")")->tools->call, tools::choice::automatic);
  EXPECT_EQ(with(R"("tool_choice": "required")")->tools->call, tools::choice::required);
  EXPECT_FALSE(with(R"("tool_choice": "none")")->calls_tools());
  EXPECT_FALSE(with(R"("parallel_tool_calls": false)")->tools->many);
  const auto named = with(R"("tool_choice": {"type": "function", "function": {"name": "read"}})");
  EXPECT_EQ(named->tools->call, tools::choice::required);
  EXPECT_EQ(named->tools->allowed, std::vector<std::string>{"read"});
  EXPECT_FALSE(named->tools->many) << "the named tool is called once";
  const auto some = with(R"("tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto",
      "tools": [{"type": "function", "function": {"name": "read"}}]}})");
  EXPECT_EQ(some->tools->call, tools::choice::automatic);
  EXPECT_EQ(some->tools->allowed, std::vector<std::string>{"read"});
  EXPECT_TRUE(some->tools->many);
}

TEST(tool_fields, reads_functions_as_they_were_before_tools) {
  const auto request = ask(R"("functions": [{"name": "f"}], "function_call": {"name": "f"})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_TRUE(request->tools->is_legacy);
  EXPECT_EQ(request->tools->call, tools::choice::required);
  EXPECT_FALSE(request->tools->many);
}

TEST(tool_fields, refuses_what_it_cannot_take_with_its_place) {
  expect_refusal(R"("tools": 5)", "tools", "must be an array");
  expect_refusal(R"("tools": [5])", "tools[0]", "must be an object");
  expect_refusal(R"("tools": [{}])", "tools[0].type", "is required");
  expect_refusal(R"("tools": [{"type": "function"}])", "tools[0].function", "is required");
  expect_refusal(R"("tools": [{"type": "function", "function": {}}])", "tools[0].function.name", "is required");
  expect_refusal(R"("tools": [{"type": "function", "function": {"name": "a\"b"}}])", "tools[0].function.name",
                 "letters");
  expect_refusal(R"("tools": [{"type": "function", "function": {"name": "<tool_call>"}}])", "tools[0].function.name",
                 "letters");
  expect_refusal(R"("tools": [{"type": "function", "function": {"name": "f", "parameters": []}}])",
                 "tools[0].function.parameters", "must be an object");
  expect_refusal(R"("tools": [{"type": "function", "function": {"name": "f"}},
                              {"type": "function", "function": {"name": "f"}}])",
                 "tools[1].function.name", "another tool");
  expect_refusal(std::string(two_tools) + R"(, "tool_choice": "always")", "tool_choice", "'always'");
  expect_refusal(std::string(two_tools) + R"(, "tool_choice": {"type": "function", "function": {"name": "no"}})",
                 "tool_choice.function.name", "not one of the request's tools");
  expect_refusal(R"("tool_choice": "required")", "tool_choice", "needs 'tools'");
  expect_refusal(std::string(two_tools) + R"(, "response_format": {"type": "json_object"})", "tools",
                 "cannot be combined");
  expect_refusal(std::string(two_tools) + R"(, "ignore_eos": true)", "ignore_eos", "'tools'");
}

TEST(tool_fields, bounds_tools_in_number_and_bytes) {
  request_limits limits;
  limits.tools_max = 1;
  expect_refusal(two_tools, "tools", "at most 1", limits);
  limits = {};
  limits.tools_bytes_max = 100;
  expect_refusal(two_tools, "tools", "more than 100 bytes", limits);
  limits = {};
  limits.tool_name_bytes_max = 3;
  expect_refusal(two_tools, "tools[0].function.name", "1 to 3", limits);
}

TEST(tool_fields, with_none_asked_for_nothing_is_in_the_way_of_a_grammar) {
  EXPECT_TRUE(ask(std::string(two_tools) + R"(, "tool_choice": "none", "response_format": {"type": "json_object"})"));
}

}  // namespace
}  // namespace redline::api
