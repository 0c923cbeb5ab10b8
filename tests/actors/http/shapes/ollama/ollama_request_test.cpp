#include "actors/http/shapes/ollama/ollama_request.hpp"

#include <gtest/gtest.h>

#include "actors/http/fields/json.hpp"

namespace redline::ollama {
namespace {

using api::json;

TEST(ollama_request, streams_and_samples_by_their_defaults) {
  const auto request = parse_chat(R"({"model": "m:latest", "messages": [{"role": "user", "content": "hi"}]})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->model, "m");
  EXPECT_TRUE(request->stream);
  EXPECT_FLOAT_EQ(request->sampling.temperature, 0.8F);
  EXPECT_EQ(request->sampling.top_k, 40);
  EXPECT_FALSE(request->tokens_max) << "as many as fit";
}

TEST(ollama_request, reads_options_and_formats) {
  const auto request = parse_chat(R"({"model": "m", "stream": false, "messages": [{"role": "user", "content": "hi"}],
      "format": {"type": "integer"}, "keep_alive": "5m",
      "options": {"num_predict": 5, "temperature": 0, "seed": 3, "stop": ["x"], "num_ctx": 4096}})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_FALSE(request->stream);
  EXPECT_EQ(request->tokens_max, 5U);
  EXPECT_EQ(request->sampling.seed, 3U);
  EXPECT_EQ(request->stop, std::vector<std::string>{"x"});
  EXPECT_EQ(request->format->text, R"({"type":"integer"})");
  EXPECT_FALSE(parse_chat(R"({"model": "m", "messages": [{"role": "user", "content": "hi"}],
                              "options": {"num_predict": -1}})")
                   ->tokens_max);
}

TEST(ollama_request, generates_from_a_prompt_or_a_raw_text) {
  const auto prompt = parse_generate(R"({"model": "m", "prompt": "hi", "system": "be brief"})");
  ASSERT_TRUE(prompt) << prompt.error().message;
  EXPECT_EQ(prompt->messages,
            json::parse(R"([{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}])"));
  const auto raw = parse_generate(R"({"model": "m", "prompt": "hi", "raw": true})");
  ASSERT_TRUE(raw) << raw.error().message;
  EXPECT_EQ(raw->from, api::endpoint::completions);
  EXPECT_EQ(std::get<std::string>(raw->prompts.at(0)), "hi");
  EXPECT_GT(raw->tokens_max.value_or(0), 1000U) << "not the sixteen of completions";
}

TEST(ollama_request, computes_next_to_nothing_where_it_is_to_load) {
  EXPECT_EQ(parse_generate(R"({"model": "m"})")->tokens_max, 1U);
  EXPECT_EQ(parse_chat(R"({"model": "m", "messages": []})")->tokens_max, 1U);
}

TEST(ollama_request, refuses_what_is_wrong) {
  EXPECT_EQ(parse_chat(R"({"messages": []})").error().param, "model");
  EXPECT_EQ(parse_chat(R"({"model": "m"})").error().param, "messages");
  EXPECT_EQ(parse_chat(R"({"model": "m", "messages": [7]})").error().param, "messages[0]");
  EXPECT_EQ(
      parse_chat(R"({"model": "m", "messages": [{"role": "user", "content": "x", "images": ["aa"]}]})").error().param,
      "messages[0].images");
  EXPECT_EQ(parse_generate(R"({"model": "m", "prompt": "x", "format": "xml"})").error().param, "format");
  EXPECT_EQ(parse_generate(R"({"model": "m", "prompt": "x", "options": 7})").error().param, "options");
  EXPECT_EQ(parse_show("{}").error().param, "model");
  EXPECT_EQ(*parse_show(R"({"name": "m:latest"})"), "m");
}

}  // namespace
}  // namespace redline::ollama
