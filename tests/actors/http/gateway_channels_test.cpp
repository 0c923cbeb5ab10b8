// Reasoning and answer of a model that writes both in channels, in every protocol.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/actors/http/gateway_fixture.hpp"
#include "tests/support/tiny_model.hpp"
#include "tests/support/tool_templates.hpp"

namespace redline::actors {
namespace {

using json = nlohmann::json;
using ::testing::HasSubstr;

/// A gateway of a model that answers in channels, whose names stand between control tokens.
class gateway_of_channels : public gateway_alone {
 protected:
  void SetUp() override {
    gateway_alone::SetUp();
    auto tiny = test::make_tiny_model({.context = 256});
    auto& tokens = std::get<std::vector<std::string>>(tiny.metadata["tokenizer.ggml.tokens"]);
    const std::vector<std::string> control{"<|endoftext|>", "<|start|>",  "<|end|>",  "<|channel|>",
                                           "<|message|>",   "<|return|>", "<|call|>", "<|constrain|>"};
    std::copy(control.begin(), control.end(), tokens.begin() + test::tiny_model::end_of_text);
    tiny.metadata["tokenizer.ggml.eos_token_id"] = std::uint32_t{test::tiny_model::end_of_text + 5};
    tiny.metadata["tokenizer.chat_template"] = std::string(test::harmony_template);
    harmony = *text::tokenizer::from_file(*tiny.file());
    services->models->publish(make_model("oss", harmony, 3));
  }
  /// Sends a request, lets the model write, and returns everything that the client received.
  std::string answer(const std::string& path, json body, const std::string& text) {
    sent.clear();
    body["model"] = "oss";
    const auto id = ask("POST", path, body);
    run();
    EXPECT_EQ(all<verify_run>().size(), 1U) << answer_to(id).value_or(http_respond{}).body;
    if (all<verify_run>().empty()) return {};
    auto tokens = harmony->encode(text, {.parse_special = true});
    for (std::uint64_t round = 0; !tokens.empty(); ++round) {
      const verify_run asked = all<verify_run>().back();
      const auto count = static_cast<std::ptrdiff_t>(std::min<std::size_t>(tokens.size(), 3));
      core.deliver(test::frame_of(address_of({}), manager_where,
                                  verified{.sequence = asked.round.sequence,
                                           .round = asked.round.number,
                                           .tokens = {tokens.begin(), tokens.begin() + count}}));
      tokens.erase(tokens.begin(), tokens.begin() + count);
      run();
    }
    if (const auto whole = answer_to(id)) return whole->body;
    std::string events;
    for (const auto& m : all<http_stream>()) events += m.data;
    return events;
  }

  const std::string written =
      "<|channel|>analysis<|message|>hm < that<|end|><|start|>assistant<|channel|>final<|message|>It is so.<|return|>";
  const json messages = {{{"role", "user"}, {"content", "hi"}}};
  std::shared_ptr<const text::tokenizer> harmony;
};

TEST_F(gateway_of_channels, tells_reasoning_from_the_answer_without_tools) {
  const auto whole = json::parse(answer("/v1/chat/completions", {{"messages", messages}}, written));
  const auto& message = whole["choices"][0]["message"];
  EXPECT_EQ(message["content"], "It is so.") << whole;
  EXPECT_EQ(message["reasoning_content"], "hm < that") << whole;
  EXPECT_EQ(whole["choices"][0]["finish_reason"], "stop");
  EXPECT_GT(whole["usage"]["completion_tokens_details"]["reasoning_tokens"], 5);

  const auto plain = json::parse(
      answer("/v1/chat/completions", {{"messages", messages}}, "<|channel|>final<|message|>It is so.<|return|>"));
  EXPECT_EQ(plain["choices"][0]["message"]["content"], "It is so.");
  EXPECT_FALSE(plain["choices"][0]["message"].contains("reasoning_content"));
}

TEST_F(gateway_of_channels, tells_them_apart_in_a_stream) {
  const std::string events = answer("/v1/chat/completions", {{"messages", messages}, {"stream", true}}, written);
  std::string content, reasoning;
  for (std::size_t at = events.find("data: {"); at != std::string::npos; at = events.find("data: {", at + 1)) {
    const auto event = json::parse(events.substr(at + 6, events.find('\n', at) - at - 6));
    if (event["choices"].empty()) continue;
    const auto& delta = event["choices"][0]["delta"];
    content += delta.value("content", "");
    reasoning += delta.value("reasoning_content", "");
  }
  EXPECT_EQ(content, "It is so.") << events;
  EXPECT_EQ(reasoning, "hm < that") << events;
}

TEST_F(gateway_of_channels, other_protocols_have_their_own_places_for_it) {
  const auto response = json::parse(answer("/v1/responses", {{"input", "hi"}}, written));
  ASSERT_EQ(response["output"].size(), 2U) << response;
  EXPECT_EQ(response["output"][0]["type"], "reasoning");
  EXPECT_THAT(response["output"][0].dump(), HasSubstr("hm < that"));
  EXPECT_EQ(response["output"][1]["content"][0]["text"], "It is so.");

  const auto message = json::parse(
      answer("/v1/messages",
             {{"messages", messages}, {"max_tokens", 100}, {"thinking", {{"type", "enabled"}, {"budget_tokens", 50}}}},
             written));
  ASSERT_EQ(message["content"].size(), 2U) << message;
  EXPECT_EQ(message["content"][0]["thinking"], "hm < that");
  EXPECT_EQ(message["content"][1]["text"], "It is so.");
}

TEST_F(gateway_of_channels, shows_the_tools_of_a_conversation_to_who_asks_what_the_model_reads) {
  const json tool = {{"type", "function"}, {"function", {{"name", "get_weather"}, {"description", "looks outside"}}}};
  json body{{"model", "oss"}, {"messages", messages}};
  const auto read = [&](const std::string& path) {
    const auto id = ask("POST", path, body);
    run();
    EXPECT_EQ(status_of(id), 200U) << answer_to(id)->body;
    return json::parse(answer_to(id)->body);
  };
  const std::size_t without = read("/tokenize")["count"];
  body["tools"] = json::array({tool});
  EXPECT_THAT(read("/apply-template")["prompt"].get<std::string>(), HasSubstr("get_weather"));
  const std::size_t with = read("/tokenize")["count"];
  EXPECT_GT(with, without);
  services->speaks_vllm = true;
  EXPECT_EQ(read("/v1/chat/completions/render")["token_ids"].size(), with) << "the tokens that the chat reads";
  body["tool_choice"] = "none";
  EXPECT_EQ(read("/tokenize")["count"], without);
  body["model"] = "tiny";
  body.erase("tool_choice");
  const auto id = ask("POST", "/apply-template", body);
  run();
  EXPECT_EQ(status_of(id), 400U);
  EXPECT_THAT(answer_to(id)->body, HasSubstr("'tools' cannot be used"));
}

TEST_F(gateway_of_channels, leaves_completions_and_what_is_not_split_alone) {
  const auto raw =
      json::parse(answer("/v1/completions", {{"prompt", "hi"}}, "<|channel|>final<|message|>so<|return|>"));
  EXPECT_EQ(raw["choices"][0]["text"], "finalso");
  const auto none =
      json::parse(answer("/v1/chat/completions", {{"messages", messages}, {"reasoning_format", "none"}}, written));
  EXPECT_THAT(none["choices"][0]["message"]["content"].dump(), HasSubstr("analysishm"));
}

}  // namespace
}  // namespace redline::actors
