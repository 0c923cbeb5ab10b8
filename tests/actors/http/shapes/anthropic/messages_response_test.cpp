#include "actors/http/shapes/anthropic/messages_response.hpp"

#include <gtest/gtest.h>

#include "actors/http/fields/json.hpp"

namespace redline::anthropic {
namespace {

using api::json;

const api::response_head head{.id = "chatcmpl-77", .model = "m", .prompt_tokens = 9};
const api::usage_report usage{.prompt_tokens = 9, .cached_tokens = 4, .completion_tokens = 3};

/// Parses a series of events "event: name\ndata: {...}\n\n".
std::vector<json> events_in(const std::string& text) {
  std::vector<json> events;
  for (std::size_t at = 0; at < text.size();) {
    const auto line = text.find("\ndata: ", at);
    const auto end = text.find("\n\n", line);
    events.push_back(json::parse(text.substr(line + 7, end - line - 7)));
    EXPECT_EQ(text.substr(at, line - at), "event: " + events.back()["type"].get<std::string>());
    at = end + 2;
  }
  return events;
}

TEST(messages_response, is_one_message_of_text) {
  const std::vector<api::choice> choices{{.text = "abc", .finish = api::finish_reason::length}};
  const auto body = json::parse(message_shape().make_writer(head)->whole(choices, usage));
  EXPECT_EQ(body, json::parse(R"({"id": "msg_77", "type": "message", "role": "assistant", "model": "m",
      "content": [{"type": "text", "text": "abc"}], "stop_reason": "max_tokens", "stop_sequence": null,
      "usage": {"input_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 4, "output_tokens": 3}})"));
}

TEST(messages_response, streams_events_in_their_order) {
  const auto writer = message_shape().make_writer(head);
  std::string text = writer->first(0, {});
  text += writer->delta(0, "a", nullptr, {});
  text += writer->delta(0, "", nullptr, "a thought");
  text += writer->delta(0, "b", nullptr, {});
  text += writer->finish({});
  text += writer->end(usage);
  const auto events = events_in(text);
  std::vector<std::string> kinds;
  for (const auto& one : events) kinds.push_back(one["type"]);
  EXPECT_EQ(kinds,
            (std::vector<std::string>{"message_start", "ping", "content_block_start", "content_block_delta",
                                      "content_block_delta", "content_block_stop", "message_delta", "message_stop"}));
  EXPECT_EQ(events[0]["message"]["usage"]["input_tokens"], 9);
  EXPECT_EQ(events[4]["delta"]["text"], "b");
  EXPECT_EQ(events[6]["delta"]["stop_reason"], "end_turn");
  EXPECT_EQ(events[6]["usage"]["output_tokens"], 3);
}

TEST(messages_response, names_the_stop_sequence_that_ended_it) {
  const std::vector<api::choice> choices{{.text = "abc", .stop_text = "END"}};
  const auto body = json::parse(message_shape().make_writer(head)->whole(choices, usage));
  EXPECT_EQ(body["stop_reason"], "stop_sequence");
  EXPECT_EQ(body["stop_sequence"], "END");
}

TEST(messages_response, has_a_block_for_an_answer_without_text) {
  const auto writer = message_shape().make_writer(head);
  const auto events = events_in(writer->first(0, {}) + writer->finish({}));
  EXPECT_EQ(events[2]["type"], "content_block_start");
  EXPECT_EQ(events[3]["type"], "content_block_stop");
}

TEST(messages_response, tells_calls_in_blocks_of_their_own) {
  const tools::tool_call begun{.id = "c1", .name = "edit", .arguments = ""};
  const auto writer = message_shape().make_writer(head);
  std::string text = writer->first(0, {});
  text += writer->delta(0, "so", nullptr, {});
  text += writer->call(0, 0, begun, false);
  text += writer->arguments(0, 0, R"({"a":)", false);
  text += writer->arguments(0, 0, "1}", false);
  text += writer->finish({.finish = api::finish_reason::tool_calls});
  text += writer->end(usage);
  const auto events = events_in(text);
  ASSERT_EQ(events.size(), 11U);
  EXPECT_EQ(events[4]["type"], "content_block_stop");
  EXPECT_EQ(events[5]["content_block"],
            json::parse(R"({"type": "tool_use", "id": "c1", "name": "edit", "input": {}})"));
  EXPECT_EQ(events[5]["index"], 1);
  EXPECT_EQ(events[7]["delta"]["partial_json"], "1}");
  EXPECT_EQ(events[8]["type"], "content_block_stop");
  EXPECT_EQ(events[9]["delta"]["stop_reason"], "tool_use");
  const std::vector<api::choice> choices{
      {.finish = api::finish_reason::tool_calls, .calls = {{"c1", "edit", R"({"a":1})"}, {"c2", "edit", R"({"a":)"}}}};
  const auto body = json::parse(message_shape().make_writer(head)->whole(choices, usage));
  EXPECT_EQ(body["content"].size(), 2U) << "no text is empty";
  EXPECT_EQ(body["content"][0]["input"]["a"], 1);
  EXPECT_EQ(body["content"][1]["input"], json::object()) << "cut by the end of the answer";
}

TEST(messages_response, tells_thoughts_in_a_block_before_the_text) {
  message_shape shape;
  shape.shows_thoughts = true;
  const auto writer = shape.make_writer(head);
  std::string text = writer->first(0, {});
  text += writer->delta(0, "", nullptr, "hm");
  text += writer->delta(0, "so", nullptr, ", yes");
  text += writer->finish({});
  const auto events = events_in(text);
  std::vector<std::string> kinds;
  for (const auto& one : events) kinds.push_back(one["type"]);
  EXPECT_EQ(kinds, (std::vector<std::string>{"message_start", "ping", "content_block_start", "content_block_delta",
                                             "content_block_delta", "content_block_stop", "content_block_start",
                                             "content_block_delta", "content_block_stop"}));
  EXPECT_EQ(events[2]["content_block"], json::parse(R"({"type": "thinking", "thinking": "", "signature": ""})"));
  EXPECT_EQ(events[4]["delta"], json::parse(R"({"type": "thinking_delta", "thinking": ", yes"})"));
  EXPECT_EQ(events[6]["index"], 1);
  const std::vector<api::choice> choices{{.text = "so", .reasoning = "hm, yes"}};
  const auto body = json::parse(shape.make_writer(head)->whole(choices, usage));
  EXPECT_EQ(body["content"], json::parse(R"([{"type": "thinking", "thinking": "hm, yes", "signature": ""},
                                             {"type": "text", "text": "so"}])"));
  EXPECT_EQ(json::parse(message_shape().make_writer(head)->whole(choices, usage))["content"].size(), 1U);
}

TEST(messages_response, has_errors_of_its_own_shape) {
  EXPECT_EQ(json::parse(error_body({404, "not_found_error", "no model", "model", "model_not_found", {}})),
            json::parse(R"({"type": "error", "error": {"type": "not_found_error", "message": "no model"}})"));
  EXPECT_EQ(json::parse(error_body({503, "", "full", "", "", {}}))["error"]["type"], "overloaded_error");
  EXPECT_EQ(json::parse(error_body({418, "", "", "", "", {}}))["error"]["type"], "invalid_request_error");
  EXPECT_EQ(json::parse(error_body({500, "", "", "", "", {}}))["error"]["type"], "api_error");
  const auto writer = message_shape().make_writer(head);
  EXPECT_TRUE(writer->error({500, "", "x", "", "", {}}).starts_with("event: error\ndata: {"));
  EXPECT_EQ(count_body(7), R"({"input_tokens":7})");
}

}  // namespace
}  // namespace redline::anthropic
