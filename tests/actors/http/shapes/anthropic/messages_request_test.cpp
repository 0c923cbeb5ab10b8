#include "actors/http/shapes/anthropic/messages_request.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/http/fields/json.hpp"
#include "actors/http/shapes/anthropic/messages_response.hpp"

namespace redline::anthropic {
namespace {

using api::json;
using ::testing::HasSubstr;

/// Parses a request with these "messages" and further members.
api::checked<api::generation_request> parse(const std::string& messages, const std::string& more = "") {
  return parse_messages(R"({"model": "m", "max_tokens": 9, "messages": )" + messages + more + "}");
}
api::api_error refusal(const std::string& messages, const std::string& more = "") {
  const auto parsed = parse(messages, more);
  EXPECT_FALSE(parsed) << messages << more;
  return parsed ? api::api_error{} : parsed.error();
}

TEST(messages_request, reads_what_a_chat_request_would_say) {
  const auto request = parse(R"([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"},
                                 {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}])",
                             R"(, "system": [{"type": "text", "text": "be", "cache_control": {"type": "ephemeral"}},
                                             {"type": "text", "text": "brief"}],
                                "stop_sequences": ["x"], "stream": true, "temperature": 0, "top_p": 0.5, "top_k": 3,
                                "metadata": {"user_id": "u"}, "prediction": {"type": "content", "content": "p"},
                                "redline": {"speculation": {"method": "lookup"}})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->messages,
            json::parse(R"([{"role": "system", "content": "be\nbrief"}, {"role": "user", "content": "hi"},
                            {"role": "assistant", "content": "yes"}, {"role": "user", "content": "a\nb"}])"));
  EXPECT_EQ(request->model, "m");
  EXPECT_EQ(request->tokens_max, 9U);
  EXPECT_EQ(request->stop, std::vector<std::string>{"x"});
  EXPECT_TRUE(request->stream);
  EXPECT_EQ(request->sampling.temperature, 0);
  EXPECT_EQ(request->sampling.top_k, 3);
  EXPECT_EQ(request->prediction, "p");
  EXPECT_EQ(request->speculation.method, draft::method::lookup);
  EXPECT_NE(request->shape, nullptr);
}

TEST(messages_request, keeps_thoughts_of_earlier_turns_for_the_template) {
  const auto request = parse(R"([{"role": "user", "content": "hi"},
      {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "yes"}]},
      {"role": "user", "content": "and?"},
      {"role": "assistant", "content": [{"type": "thinking", "thinking": "I look", "signature": "s"},
                                        {"type": "redacted_thinking", "data": "x"},
                                        {"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "r"}]}])");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->messages[1], json::parse(R"({"role": "assistant", "content": "yes", "reasoning_content": "hm"})"));
  EXPECT_EQ(request->messages[3]["reasoning_content"], "I look");
  EXPECT_EQ(request->messages[3]["tool_calls"][0]["function"]["name"], "f");
  EXPECT_FALSE(request->continues_last);
  EXPECT_EQ(
      refusal(R"([{"role": "assistant", "content": [{"type": "thinking"}]}, {"role": "user", "content": "a"}])").param,
      "messages[0].content[0].thinking");
}

TEST(messages_request, goes_on_where_a_last_message_of_the_assistant_ends) {
  EXPECT_TRUE(parse(R"([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "{"}])")->continues_last);
  EXPECT_TRUE(parse(R"([{"role": "user", "content": "hi"},
                        {"role": "assistant", "content": [{"type": "text", "text": "Well, "}]}])")
                  ->continues_last);
  EXPECT_FALSE(parse(R"([{"role": "assistant", "content": "a"}, {"role": "user", "content": "hi"}])")->continues_last);
  EXPECT_FALSE(parse(R"([{"role": "user", "content": "hi"},
      {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}])")
                   ->continues_last);
}

TEST(messages_request, keeps_what_the_system_says_in_the_middle_in_its_place) {
  const auto request = parse(R"([{"role": "user", "content": "hi"},
      {"role": "system", "content": [{"type": "text", "text": "the place"}, {"type": "text", "text": "and the time"}]},
      {"role": "user", "content": "so?"}])",
                             R"(, "system": "brief")");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->messages,
            json::parse(R"([{"role": "system", "content": "brief"}, {"role": "user", "content": "hi"},
                            {"role": "system", "content": "the place\nand the time"}, {"role": "user", "content": "so?"}])"));
}

TEST(messages_request, shows_thoughts_to_who_asks_for_them) {
  const auto shows = [](const std::string& thinking) {
    const auto request = parse(R"([{"role": "user", "content": "hi"}])", thinking);
    EXPECT_TRUE(request) << thinking;
    return request && dynamic_cast<const message_shape&>(*request->shape).shows_thoughts;
  };
  EXPECT_FALSE(shows(""));
  EXPECT_FALSE(shows(R"(, "thinking": {"type": "disabled"})"));
  EXPECT_TRUE(shows(R"(, "thinking": {"type": "enabled", "budget_tokens": 1024})"));
  EXPECT_TRUE(shows(R"(, "thinking": {"type": "adaptive", "display": "summarized"})"));
  EXPECT_FALSE(shows(R"(, "thinking": {"type": "adaptive", "display": "omitted"})"));
}

TEST(messages_request, wants_what_theirs_wants) {
  EXPECT_EQ(parse_messages(R"({"max_tokens": 1, "messages": []})").error().param, "model");
  EXPECT_EQ(parse_messages(R"({"model": "m", "messages": []})").error().param, "max_tokens");
  EXPECT_EQ(parse_messages(R"({"model": "m", "max_tokens": 1})").error().param, "messages");
  EXPECT_EQ(refusal("[]").param, "messages");
  EXPECT_EQ(refusal(R"([{"role": "tool", "content": "x"}])").param, "messages[0].role");
  EXPECT_EQ(refusal(R"([{"role": "system", "content": [{"type": "tool_use"}]}])").param, "messages[0].content[0].type");
  EXPECT_EQ(refusal(R"([{"role": "user"}])").param, "messages[0].content");
  EXPECT_EQ(refusal(R"([7])").param, "messages[0]");
  EXPECT_EQ(refusal(R"([{"role": "user", "content": [7]}])").param, "messages[0].content[0]");
  EXPECT_EQ(refusal(R"([{"role": "user", "content": [{"type": "text"}]}])").param, "messages[0].content[0].text");
  const auto image = refusal(R"([{"role": "user", "content": [{"type": "image", "source": {}}]}])");
  EXPECT_EQ(image.param, "messages[0].content[0].type");
  EXPECT_THAT(image.message, HasSubstr("'image'"));
  const auto hi = R"([{"role": "user", "content": "hi"}])";
  EXPECT_EQ(refusal(hi, R"(, "system": 7)").param, "system");
  EXPECT_EQ(refusal(hi, R"(, "tools": [7])").param, "tools[0]");
  EXPECT_EQ(refusal(hi, R"(, "tools": [{"name": "t", "input_schema": {}}], "tool_choice": {"type": "x"})").param,
            "tool_choice.type");
  EXPECT_EQ(refusal(hi, R"(, "stop_sequences": 7)").param, "stop_sequences") << "under its given name";
  EXPECT_EQ(refusal(hi, R"(, "temperature": 9)").param, "temperature");
  EXPECT_FALSE(parse_messages("[]"));
  EXPECT_FALSE(parse_messages("{"));
}

TEST(messages_request, counts_without_a_length) {
  EXPECT_TRUE(parse_count(R"({"model": "m", "messages": [{"role": "user", "content": "hi"}]})"));
}

}  // namespace
}  // namespace redline::anthropic
