#include "actors/http/shapes/ollama/ollama_response.hpp"

#include <gtest/gtest.h>

#include "actors/http/fields/json.hpp"

namespace redline::ollama {
namespace {

using api::json;

const api::response_head head{.created_seconds = 1'700'000'000, .model = "m"};
const api::usage_report usage{.prompt_tokens = 9, .completion_tokens = 3, .seconds = 0.5};

TEST(ollama_response, is_an_object_a_line) {
  const auto writer = answer_shape(true, false).make_writer(head);
  EXPECT_EQ(writer->stream_type(), "application/x-ndjson");
  EXPECT_EQ(writer->first(0, {}), "");
  const auto line = writer->delta(0, "a", nullptr, {});
  EXPECT_TRUE(line.ends_with("}\n"));
  EXPECT_EQ(json::parse(line), json::parse(R"({"model": "m", "created_at": "2023-11-14T22:13:20Z",
      "message": {"role": "assistant", "content": "a"}, "done": false})"));
  EXPECT_EQ(json::parse(writer->delta(0, "", nullptr, "hm"))["message"]["thinking"], "hm");
  EXPECT_EQ(writer->finish({.finish = api::finish_reason::length}), "");
  const auto last = json::parse(writer->end(usage));
  EXPECT_EQ(last["done"], true);
  EXPECT_EQ(last["done_reason"], "length");
  EXPECT_EQ(last["prompt_eval_count"], 9);
  EXPECT_EQ(last["eval_count"], 3);
  EXPECT_EQ(last["total_duration"], 500'000'000);
  EXPECT_EQ(writer->error({500, "", "x", "", "", {}}), "{\"error\":\"x\"}\n");
}

TEST(ollama_response, has_another_member_for_generated_text) {
  const std::vector<api::choice> choices{{.text = "abc"}};
  EXPECT_EQ(json::parse(answer_shape(false, false).make_writer(head)->whole(choices, usage))["response"], "abc");
  const auto loaded = json::parse(answer_shape(false, true).make_writer(head)->whole(choices, usage));
  EXPECT_EQ(loaded["response"], "");
  EXPECT_EQ(loaded["done_reason"], "load");
}

TEST(ollama_response, tells_calls_whole) {
  const auto writer = answer_shape(true, false).make_writer(head);
  EXPECT_EQ(writer->call(0, 0, {"c1", "edit", ""}, false), "");
  EXPECT_EQ(writer->arguments(0, 0, R"({"a":1})", false), "");
  const auto line = json::parse(writer->finish({.finish = api::finish_reason::tool_calls}));
  EXPECT_EQ(line["message"]["tool_calls"][0]["function"], json::parse(R"({"name": "edit", "arguments": {"a": 1}})"));
  EXPECT_EQ(json::parse(writer->end(usage))["done_reason"], "stop");
}

TEST(ollama_response, shows_models) {
  const std::vector<api::model_card> cards{{.id = "m", .context_tokens_max = 4096}};
  EXPECT_EQ(json::parse(ollama::model_list_body(cards))["models"][0]["name"], "m");
  EXPECT_EQ(json::parse(running_body(cards))["models"][0]["context_length"], 4096);
  const json shown = json::parse(ollama::model_body(cards[0]));
  EXPECT_EQ(shown["model_info"][shown["model_info"]["general.architecture"].get<std::string>() + ".context_length"],
            4096);
}

}  // namespace
}  // namespace redline::ollama
