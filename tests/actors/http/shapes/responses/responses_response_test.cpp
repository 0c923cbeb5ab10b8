#include "actors/http/shapes/responses/responses_response.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace redline::responses {
namespace {

using api::json;

const api::response_head head{.id = "chatcmpl-77", .created_seconds = 5, .model = "m"};
const api::usage_report usage{.prompt_tokens = 9, .cached_tokens = 4, .completion_tokens = 3};

std::unique_ptr<api::answer_writer> writer_for(const std::string& request = "{}") {
  return response_shape(json::parse(request)).make_writer(head);
}

std::vector<json> events_in(const std::string& text) {
  std::vector<json> events;
  for (std::size_t at = 0; at < text.size();) {
    const auto line = text.find("\ndata: ", at);
    const auto end = text.find("\n\n", line);
    events.push_back(json::parse(text.substr(line + 7, end - line - 7)));
    EXPECT_EQ(text.substr(at, line - at), "event: " + events.back()["type"].get<std::string>());
    EXPECT_EQ(events.back()["sequence_number"], events.size() - 1);
    at = end + 2;
  }
  return events;
}

TEST(responses_response, repeats_the_request_and_says_that_nothing_was_stored) {
  const std::vector<api::choice> choices{{.text = "abc"}};
  const auto body =
      json::parse(writer_for(R"({"instructions": "be brief", "store": true, "metadata": {"a": "b"}, "secret": 1})")
                      ->whole(choices, usage));
  EXPECT_EQ(body["id"], "resp_77");
  EXPECT_EQ(body["object"], "response");
  EXPECT_EQ(body["status"], "completed");
  EXPECT_EQ(body["instructions"], "be brief");
  EXPECT_EQ(body["metadata"]["a"], "b");
  EXPECT_EQ(body["store"], false);
  EXPECT_FALSE(body.contains("secret"));
  EXPECT_EQ(body["output"][0]["content"][0]["text"], "abc");
  EXPECT_EQ(body["usage"]["total_tokens"], 12);
  EXPECT_EQ(body["usage"]["input_tokens_details"]["cached_tokens"], 4);
}

TEST(responses_response, repeats_the_request_as_text_that_was_made_once) {
  const response_shape shape(json{{"instructions", std::string(100000, 'i')}});
  EXPECT_GE(shape.repeated_bytes(), 100000U);
  EXPECT_LT(shape.repeated_bytes(), 101000U);
  const auto one = shape.make_writer(head);
  const auto events = events_in(one->first(0, {}));
  ASSERT_EQ(events.size(), 2U);
  for (const auto& e : events) EXPECT_EQ(e["response"]["instructions"].get<std::string>().size(), 100000U);
  EXPECT_EQ(events[0]["response"]["metadata"], json::object());
}

TEST(responses_response, is_incomplete_where_the_length_ended_it) {
  const std::vector<api::choice> choices{{.text = "abc", .finish = api::finish_reason::length}};
  const auto body = json::parse(writer_for()->whole(choices, usage));
  EXPECT_EQ(body["status"], "incomplete");
  EXPECT_EQ(body["incomplete_details"]["reason"], "max_output_tokens");
}

TEST(responses_response, streams_numbered_events_that_add_up_to_the_whole) {
  const auto writer = writer_for();
  std::string text = writer->first(0, {});
  text += writer->delta(0, "a", nullptr, {});
  text += writer->delta(0, "b", nullptr, {});
  text += writer->finish({});
  text += writer->end(usage);
  const auto events = events_in(text);
  std::vector<std::string> kinds;
  for (const auto& one : events) kinds.push_back(one["type"]);
  EXPECT_EQ(kinds,
            (std::vector<std::string>{
                "response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
                "response.output_text.delta", "response.output_text.delta", "response.output_text.done",
                "response.content_part.done", "response.output_item.done", "response.completed"}));
  EXPECT_EQ(events[0]["response"]["status"], "in_progress");
  EXPECT_EQ(events[6]["text"], "ab");
  const std::vector<api::choice> choices{{.text = "ab"}};
  EXPECT_EQ(events.back()["response"], json::parse(writer_for()->whole(choices, usage)));
}

TEST(responses_response, gives_log_probabilities_of_the_texts_tokens) {
  const std::vector<api::token_report> thought{{.chosen = {"t", -3.0F, 1}, .top = {}, .id = 1}};
  const std::vector<api::token_report> one{{.chosen = {"a", -0.5F, 2}, .top = {{"a", -0.5F, 2}}, .id = 2}};
  const std::vector<api::token_report> two{{.chosen = {"b", -1.0F, 3}, .top = {}, .id = 3}};
  const json first = {{"token", "a"},
                      {"logprob", -0.5},
                      {"bytes", {97}},
                      {"top_logprobs", {{{"token", "a"}, {"logprob", -0.5}, {"bytes", {97}}}}}};
  const auto writer = writer_for();
  std::string text = writer->first(0, {});
  text += writer->delta(0, {}, &thought, "t");
  text += writer->delta(0, {}, &one, {});  // its text is withheld
  text += writer->delta(0, "ab", &two, {});
  text += writer->finish({});
  text += writer->end(usage);
  const auto events = events_in(text);
  const auto find = [&](const std::string& type) {
    return *std::ranges::find_if(events, [&](const json& e) { return e["type"] == type; });
  };
  const auto delta = find("response.output_text.delta")["logprobs"];
  ASSERT_EQ(delta.size(), 2U);
  EXPECT_EQ(delta[0], first);
  EXPECT_EQ(delta[1]["token"], "b");
  EXPECT_EQ(find("response.output_text.done")["logprobs"], delta);
  EXPECT_EQ(events.back()["response"]["output"][1]["content"][0]["logprobs"], delta);

  api::choice whole{.text = "ab", .reasoning = "t"};
  whole.tokens = {thought[0], one[0], two[0]};
  auto cost = usage;
  cost.reasoning_tokens = 1;
  const auto body = json::parse(writer_for()->whole({&whole, 1}, cost));
  EXPECT_EQ(body["output"][1]["content"][0]["logprobs"], delta);
}

TEST(responses_response, tells_thoughts_as_an_item_before_the_text) {
  const auto writer = writer_for();
  std::string text = writer->first(0, {});
  text += writer->delta(0, "", nullptr, "hm");
  text += writer->delta(0, "so", nullptr, ", yes");
  text += writer->finish({});
  text += writer->end(usage);
  const auto events = events_in(text);
  std::vector<std::string> kinds;
  for (const auto& one : events) kinds.push_back(one["type"]);
  EXPECT_EQ(kinds,
            (std::vector<std::string>{
                "response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
                "response.reasoning_text.delta", "response.reasoning_text.delta", "response.reasoning_text.done",
                "response.content_part.done", "response.output_item.done", "response.output_item.added",
                "response.content_part.added", "response.output_text.delta", "response.output_text.done",
                "response.content_part.done", "response.output_item.done", "response.completed"}));
  EXPECT_EQ(events[4]["item_id"], "rs_77");
  EXPECT_EQ(events[8]["item"]["content"][0], json::parse(R"({"type": "reasoning_text", "text": "hm, yes"})"));
  EXPECT_EQ(events[8]["item"]["summary"], json::array());
  EXPECT_EQ(events[9]["output_index"], 1);
  const std::vector<api::choice> choices{{.text = "so", .reasoning = "hm, yes"}};
  EXPECT_EQ(events.back()["response"], json::parse(writer_for()->whole(choices, usage)));
}

TEST(responses_response, tells_calls_as_items_of_their_own) {
  const auto writer = writer_for();
  std::string text = writer->first(0, {});
  text += writer->delta(0, "so", nullptr, {});
  text += writer->call(0, 0, {"c1", "edit", ""}, false);
  text += writer->arguments(0, 0, R"({"a":1})", false);
  text += writer->call(0, 1, {"c2", "edit", ""}, false);
  text += writer->arguments(0, 1, "{}", false);
  text += writer->finish({.finish = api::finish_reason::tool_calls});
  text += writer->end(usage);
  const auto events = events_in(text);
  const auto done = events.back()["response"];
  EXPECT_EQ(done["status"], "completed");
  ASSERT_EQ(done["output"].size(), 3U);
  EXPECT_EQ(done["output"][1]["type"], "function_call");
  EXPECT_EQ(done["output"][1]["call_id"], "c1");
  EXPECT_EQ(done["output"][1]["arguments"], R"({"a":1})");
  const std::vector<api::choice> choices{{.text = "so",
                                          .finish = api::finish_reason::tool_calls,
                                          .calls = {{"c1", "edit", R"({"a":1})"}, {"c2", "edit", "{}"}}}};
  EXPECT_EQ(json::parse(writer_for()->whole(choices, usage)), done);
}

TEST(responses_response, ends_with_what_went_wrong) {
  const auto writer = writer_for();
  (void)writer->first(0, {});
  const auto text = writer->error({503, "", "gone", "", "session_lost", {}});
  EXPECT_TRUE(text.starts_with("event: response.failed\n"));
  const auto event = json::parse(text.substr(text.find("data: ") + 6));
  EXPECT_EQ(event["sequence_number"], 2);
  EXPECT_EQ(event["response"]["status"], "failed");
  EXPECT_EQ(event["response"]["error"]["code"], "session_lost");
}

}  // namespace
}  // namespace redline::responses
