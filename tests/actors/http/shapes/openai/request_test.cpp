#include "actors/http/shapes/openai/request.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace redline::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

const std::string hello = R"("messages":[{"role":"user","content":"hi"}])";

checked<generation_request> chat(const std::string& more) {
  return parse_chat_request("{\"model\":\"m\"," + hello + (more.empty() ? "" : "," + more) + "}");
}
checked<generation_request> completion(const std::string& more) {
  return parse_completion_request("{\"model\":\"m\",\"prompt\":\"p\"" + (more.empty() ? "" : "," + more) + "}");
}
checked<generation_request> messages(const std::string& list) {
  return parse_chat_request("{\"messages\":" + list + "}");
}

TEST(chat_request, has_openai_defaults) {
  const auto request = chat("");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->from, endpoint::chat);
  EXPECT_EQ(request->model, "m");
  EXPECT_EQ(dump_json(request->messages), R"([{"role":"user","content":"hi"}])");
  EXPECT_EQ(request->sampling.temperature, 1);
  EXPECT_EQ(request->sampling.top_p, 1);
  EXPECT_TRUE(request->sampling.leaves_logits_alone());
  EXPECT_FALSE(request->has_seed);
  EXPECT_EQ(request->tokens_max, std::nullopt);
  EXPECT_EQ(request->n, 1u);
  EXPECT_FALSE(request->stream);
  EXPECT_FALSE(request->logprobs);
  EXPECT_EQ(request->speculation, speculation_request{});
}

TEST(chat_request, reads_every_field_that_is_honoured) {
  const auto request = chat(R"(
      "temperature": 0.5, "top_p": 0.25, "top_k": 40, "min_p": 0.125, "repetition_penalty": 1.5,
      "presence_penalty": -0.5, "frequency_penalty": 2, "seed": 42, "max_completion_tokens": 10, "max_tokens": 20,
      "min_tokens": 3, "ignore_eos": true, "stop": ["a", "b", "a"], "n": 2, "stream": true,
      "stream_options": {"include_usage": true}, "logprobs": true, "top_logprobs": 5,
      "logit_bias": {"17": -100, "3": 1.5}, "user": "u", "safety_identifier": "s", "prompt_cache_key": "k",
      "metadata": {"a": "b"}, "store": true, "something_new": [1, {"x": 2}])");
  ASSERT_TRUE(request) << request.error().message;
  const auto& s = request->sampling;
  EXPECT_EQ(s.temperature, 0.5F);
  EXPECT_EQ(s.top_p, 0.25F);
  EXPECT_EQ(s.top_k, 40);
  EXPECT_EQ(s.min_p, 0.125F);
  EXPECT_EQ(s.repetition_penalty, 1.5F);
  EXPECT_EQ(s.presence_penalty, -0.5F);
  EXPECT_EQ(s.frequency_penalty, 2);
  EXPECT_EQ(s.seed, 42u);
  EXPECT_TRUE(request->has_seed);
  EXPECT_THAT(s.logit_bias, ElementsAre(Pair(3, 1.5F), Pair(17, -100.F)));
  EXPECT_EQ(request->tokens_max, 10u) << "the newer name takes precedence";
  EXPECT_EQ(request->tokens_min, 3u);
  EXPECT_TRUE(request->ignore_eos);
  EXPECT_THAT(request->stop, ElementsAre("a", "b"));
  EXPECT_EQ(request->n, 2u);
  EXPECT_TRUE(request->stream);
  EXPECT_TRUE(request->include_usage);
  EXPECT_TRUE(request->logprobs);
  EXPECT_EQ(request->top_logprobs, 5u);
}

TEST(chat_request, takes_null_for_absent) {
  const auto request = chat(R"("temperature": null, "stop": null, "max_tokens": null, "tools": null, "n": null,
      "stream_options": null, "logit_bias": null, "seed": null, "response_format": null, "prediction": null,
      "redline": null, "logprobs": null, "user": null, "tool_choice": null)");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->sampling.temperature, 1);
  EXPECT_FALSE(request->has_seed);
}

TEST(chat_request, accepts_unsupported_fields_that_ask_for_nothing) {
  const auto request = chat(R"("tools": [], "tool_choice": "none", "response_format": {"type": "text"},
      "modalities": ["text"], "service_tier": "auto", "echo": false, "suffix": "", "best_of": 1, "priority": 0,
      "parallel_tool_calls": true, "functions": [], "skip_special_tokens": true, "cache_prompt": true,
      "guided_json": null, "stop_token_ids": [], "length_penalty": 1.0, "mirostat": 0)");
  EXPECT_TRUE(request) << request.error().param;
}

TEST(chat_request, reads_seeds_of_any_sign_and_size) {
  EXPECT_EQ(chat(R"("seed": 18446744073709551615)")->sampling.seed, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(chat(R"("seed": -1)")->sampling.seed, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(chat(R"("seed": 0)")->sampling.seed, 0u);
  EXPECT_TRUE(chat(R"("seed": 0)")->has_seed);
}

TEST(chat_request, understands_other_servers_spellings) {
  EXPECT_EQ(chat(R"("repeat_penalty": 1.25)")->sampling.repetition_penalty, 1.25F);
  EXPECT_EQ(chat(R"("top_k": -1)")->sampling.top_k, 0);
  EXPECT_EQ(chat(R"("max_tokens": 5.0)")->tokens_max, 5u);
  EXPECT_GT(chat(R"("top_p": 0)")->sampling.top_p, 0);
}

TEST(chat_request, normalises_messages) {
  const auto request = messages(R"([
      {"role": "developer", "content": "d"},
      {"role": "user", "name": "ann", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
      {"role": "assistant", "content": "", "tool_calls": [], "refusal": null}])");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(dump_json(request->messages),
            R"([{"role":"system","content":"d"},{"role":"user","content":"a\nb","name":"ann"},)"
            R"({"role":"assistant","content":""}])");
}

TEST(chat_request, reads_calls_and_their_results_in_messages) {
  const auto request = messages(R"([
      {"role": "assistant", "content": null, "tool_calls": [
          {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}},
          {"id": "call_2", "type": "function", "function": {"name": "list", "arguments": ""}}]},
      {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "one"}]},
      {"role": "tool", "tool_call_id": "call_2", "content": null},
      {"role": "assistant", "content": "so", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}])");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(dump_json(request->messages),
            R"([{"role":"assistant","content":null,"tool_calls":[)"
            R"({"id":"call_1","type":"function","function":{"name":"read","arguments":"{\"path\":\"a\"}"}},)"
            R"({"id":"call_2","type":"function","function":{"name":"list","arguments":"{}"}}]},)"
            R"({"role":"tool","content":"one","tool_call_id":"call_1"},)"
            R"({"role":"tool","content":"","tool_call_id":"call_2"},)"
            R"({"role":"assistant","content":"so","tool_calls":[)"
            R"({"id":"","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}])");
}

TEST(chat_request, reads_calls_as_they_were_before_tools) {
  const auto request = messages(R"([
      {"role": "assistant", "content": null, "function_call": {"name": "read", "arguments": "{}"}},
      {"role": "function", "name": "read", "content": "one"}])");
  ASSERT_TRUE(request) << request.error().message;
  const auto& call = request->messages[0]["tool_calls"][0];
  EXPECT_EQ(call["function"]["name"], "read");
  EXPECT_EQ(request->messages[1]["role"], "tool");
  EXPECT_EQ(request->messages[1]["tool_call_id"], call["id"]);
}

TEST(chat_request, reads_our_own_object) {
  const auto request = chat(R"("redline": {"speculation": {"method": "blazedit", "confidence_min": 0.5,
      "micro_draft_tokens": 40, "max_num_run": 2, "max_matching_ngram_size": 7}})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->speculation.method, draft::method::blazedit);
  const auto drafting = request->speculation.over({});
  EXPECT_EQ(drafting.how, draft::method::blazedit);
  EXPECT_EQ(drafting.confidence_min, 0.5F);
  EXPECT_EQ(drafting.micro_draft_tokens, 40u);
  EXPECT_EQ(drafting.max_num_run, 2u);
  EXPECT_EQ(drafting.max_matching_ngram_size, 7u);

  const auto automatic = chat(R"("redline": {"speculation": {"method": "auto", "draft_tokens_max": 12}})");
  EXPECT_EQ(automatic->speculation.method, draft::method::automatic);
  draft::draft_options defaults;
  defaults.how = draft::method::lookup;
  EXPECT_EQ(automatic->speculation.over(defaults).how, draft::method::automatic);
  EXPECT_EQ(automatic->speculation.over(defaults).lookup_tokens_max, 12u);
  EXPECT_EQ(chat(R"("redline": {})")->speculation.over(defaults), defaults);
  EXPECT_FALSE(chat(R"("redline": {})")->trace);
  EXPECT_TRUE(chat(R"("redline": {"trace": true})")->trace);
}

struct bad_field_case {
  std::string fields, param, code, message_part;
};

void expect_refusals(const std::vector<bad_field_case>& table,
                     checked<generation_request> (*parse)(const std::string&)) {
  for (const auto& bad : table) {
    const auto request = parse(bad.fields);
    ASSERT_FALSE(request) << bad.fields;
    EXPECT_EQ(request.error().status, 400u) << bad.fields;
    EXPECT_EQ(request.error().type, "invalid_request_error") << bad.fields;
    EXPECT_EQ(request.error().param, bad.param) << bad.fields;
    EXPECT_EQ(request.error().code, bad.code) << bad.fields;
    EXPECT_THAT(request.error().message, HasSubstr(bad.message_part)) << bad.fields;
  }
}

const std::string unsupported = "unsupported_parameter";

TEST(chat_request, refuses_fields_of_a_wrong_type_or_range) {
  expect_refusals(
      {
          {R"("temperature": "hot")", "temperature", "", "must be a number, found a string"},
          {R"("temperature": 2.5)", "temperature", "", "from 0.0 to 2.0, found 2.5"},
          {R"("temperature": -1)", "temperature", "", ""},
          {R"("top_p": 1.01)", "top_p", "", ""},
          {R"("top_p": [])", "top_p", "", "found an array"},
          {R"("top_k": 1.5)", "top_k", "", "must be an integer"},
          {R"("top_k": -2)", "top_k", "", ""},
          {R"("min_p": 2)", "min_p", "", ""},
          {R"("repetition_penalty": 0)", "repetition_penalty", "", ""},
          {R"("presence_penalty": 3)", "presence_penalty", "", ""},
          {R"("frequency_penalty": true)", "frequency_penalty", "", "found a boolean"},
          {R"("seed": 1.5)", "seed", "", "must be an integer"},
          {R"("seed": "1")", "seed", "", ""},
          {R"("seed": 99999999999999999999)", "seed", "", ""},
          {R"("max_tokens": -3)", "max_tokens", "", ""},
          {R"("max_tokens": 18446744073709551615)", "max_tokens", "", "from -2 to 2147483647"},
          {R"("max_tokens": 1e300)", "max_tokens", "", ""},
          {R"("max_completion_tokens": "5")", "max_completion_tokens", "", ""},
          {R"("min_tokens": 6, "max_tokens": 5)", "min_tokens", "", "more than the 5"},
          {R"("ignore_eos": 1)", "ignore_eos", "", ""},
          {R"("stop": 5)", "stop", "", "a string or an array"},
          {R"("stop": ["a", 5])", "stop[1]", "", ""},
          {R"("stop": "")", "stop", "", "1 to 4096 bytes"},
          {"\"stop\": " + dump_json(json(std::vector<std::string>(33, "x"))), "stop", "", "at most 32"},
          {"\"stop\": \"" + std::string(4097, 'x') + "\"", "stop", "", ""},
          {R"("stop_token_ids": ["a"])", "stop_token_ids", "", "an array of token ids"},
          {"\"stop_token_ids\": " + dump_json(json(std::vector<int>(1025, 1))), "stop_token_ids", "", "at most 1024"},
          {R"("allowed_token_ids": [-1])", "allowed_token_ids", "", ""},
          {R"("bad_words": "x")", "bad_words", "", "an array"},
          {R"("bad_words": ["x", ""])", "bad_words[1]", "", "1 to 128 bytes"},
          {R"("bad_words": [7])", "bad_words[0]", "", ""},
          {R"("return_token_ids": 1)", "return_token_ids", "", ""},
          {R"("n": 0)", "n", "", ""},
          {R"("n": 33)", "n", "", "from 1 to 32"},
          {R"("best_of": 33)", "best_of", "", ""},
          {R"("n": 3, "best_of": 2)", "best_of", "", "at least 'n'"},
          {R"("best_of": 2, "stream": true)", "best_of", "", "whole answers"},
          {R"("reasoning_effort": "hard")", "reasoning_effort", "", "one of none"},
          {R"("reasoning_format": "x")", "reasoning_format", "", ""},
          {R"("enable_thinking": "no")", "enable_thinking", "", ""},
          {R"("chat_template_kwargs": [])", "chat_template_kwargs", "", "an object"},
          {R"("chat_template_kwargs": {"messages": []})", "chat_template_kwargs.messages", "", "set by the server"},
          {R"("stream": "yes")", "stream", "", ""},
          {R"("stream_options": {})", "stream_options", "", "needs 'stream'"},
          {R"("stream": true, "stream_options": {"include_usage": 1})", "stream_options.include_usage", "", ""},
          {R"("stream": true, "stream_options": {"continuous_usage_stats": 1})",
           "stream_options.continuous_usage_stats", "", ""},
          {R"("logprobs": 3)", "logprobs", "", "must be a boolean"},
          {R"("top_logprobs": 3)", "top_logprobs", "", "needs 'logprobs'"},
          {R"("logprobs": true, "top_logprobs": 21)", "top_logprobs", "", ""},
          {R"("logit_bias": 7)", "logit_bias", "", "an object of biases"},
          {R"("logit_bias": {"hello": 1})", "logit_bias", "", "'hello'"},
          {R"("logit_bias": {"-1": 1})", "logit_bias", "", ""},
          {R"("logit_bias": {"01": 1})", "logit_bias", "", ""},
          {R"("logit_bias": {"99999999999": 1})", "logit_bias", "", ""},
          {R"("logit_bias": {"5": 101})", "logit_bias.5", "", ""},
          {R"("logit_bias": {"5": "x"})", "logit_bias.5", "", ""},
          {R"("user": 5)", "user", "", ""},
          {"\"user\": \"" + std::string(300, 'x') + "\"", "user", "", "at most 256"},
          {R"("metadata": "x")", "metadata", "", ""},
          {R"("store": "x")", "store", "", ""},
      },
      chat);
}

TEST(chat_request, refuses_what_it_would_have_to_ignore) {
  std::vector<bad_field_case> table;
  for (const char* field : {R"("modalities": ["text", "audio"])", R"("audio": {})", R"("suffix": "x")",
                            R"("echo": true)", R"("mirostat": 2)", R"("prompt": "x")", R"("chat_template": "x")",
                            R"("add_generation_prompt": false)", R"("skip_special_tokens": false)"}) {
    const std::string text = field;
    table.push_back({text, text.substr(1, text.find('"', 1) - 1), unsupported, ""});
  }
  expect_refusals(table, chat);
}

TEST(chat_request, takes_a_prediction_as_text_or_as_parts) {
  EXPECT_EQ(chat(R"("prediction": {"type": "content", "content": "a\nb"})")->prediction, "a\nb");
  EXPECT_EQ(chat(R"("prediction": {"type": "content", "content": ""})")->prediction, "");
  EXPECT_EQ(chat(R"("prediction": {"type": "content", "content": [{"type": "text", "text": "a\n"},
                    {"type": "text", "text": "b"}]})")
                ->prediction,
            "a\nb")
      << "parts are pieces of one text";
  EXPECT_EQ(chat(R"("prediction": {"type": "content", "content": []})")->prediction, "");
  EXPECT_EQ(chat(R"("prediction": null)")->prediction, std::nullopt);
  EXPECT_EQ(chat("\"n\": 1")->prediction, std::nullopt);
  EXPECT_EQ(
      parse_completion_request(R"({"prompt": "p", "prediction": {"type": "content", "content": "x"}})")->prediction,
      "x");
}

TEST(chat_request, reads_the_prediction_unless_another_method_is_named) {
  const std::string prediction = R"("prediction": {"type": "content", "content": "x"})";
  draft::draft_options defaults;
  defaults.how = draft::method::blazedit;
  EXPECT_EQ(chat(prediction)->drafting(defaults).how, draft::method::automatic);
  EXPECT_EQ(chat(prediction + R"(, "redline": {"speculation": {"max_num_run": 2}})")->drafting(defaults).how,
            draft::method::automatic);
  EXPECT_EQ(chat(prediction + R"(, "redline": {"speculation": {"method": "prediction"}})")->drafting(defaults).how,
            draft::method::prediction);
  EXPECT_EQ(chat(prediction + R"(, "redline": {"speculation": {"method": "lookup"}})")->drafting(defaults).how,
            draft::method::lookup);
  EXPECT_EQ(chat("\"n\": 1")->drafting(defaults).how, draft::method::blazedit);
}

TEST(chat_request, refuses_bad_predictions) {
  request_limits narrow;
  narrow.text_bytes_max = 8;
  expect_refusals(
      {
          {R"("prediction": "x")", "prediction", "", "must be an object"},
          {R"("prediction": {})", "prediction.type", "", "must be 'content'"},
          {R"("prediction": {"type": 5, "content": "x"})", "prediction.type", "", "must be a string"},
          {R"("prediction": {"type": "tokens", "content": "x"})", "prediction.type", "", "found 'tokens'"},
          {R"("prediction": {"type": "content"})", "prediction.content", "", "is required"},
          {R"("prediction": {"type": "content", "content": null})", "prediction.content", "", "is required"},
          {R"("prediction": {"type": "content", "content": 5})", "prediction.content", "", "found an integer"},
          {R"("prediction": {"type": "content", "content": {}})", "prediction.content", "", "found an object"},
          {R"("prediction": {"type": "content", "content": ["x"]})", "prediction.content[0]", "", "must be an object"},
          {R"("prediction": {"type": "content", "content": [{"type": "text"}]})", "prediction.content[0].text", "", ""},
          {R"("prediction": {"type": "content", "content": [{"type": "image_url", "text": "x"}]})",
           "prediction.content[0]", unsupported, "only text"},
          {R"("prediction": {"type": "content", "content": [{"type": "text", "text": 1}]})",
           "prediction.content[0].text", "", "must be a string"},
      },
      chat);
  const auto body = [](const std::string& content) {
    return R"({"prompt": "p", "prediction": {"type": "content", "content": )" + content + "}}";
  };
  EXPECT_TRUE(parse_completion_request(body(R"("12345678")"), narrow));
  for (const char* content :
       {R"("123456789")", R"([{"type": "text", "text": "12345"}, {"type": "text", "text": "6789"}])"}) {
    const auto refused = parse_completion_request(body(content), narrow);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().status, 400u);
    EXPECT_EQ(refused.error().param, "prediction.content");
  }
}

TEST(chat_request, refuses_bad_messages) {
  expect_refusals(
      {
          {"[]", "messages", "", "must not be empty"},
          {"{}", "messages", "", "must be an array"},
          {"null", "messages", "", "is required"},
          {"[5]", "messages[0]", "", "must be an object"},
          {R"([{"content": "x"}])", "messages[0].role", "", "is required"},
          {R"([{"role": 5, "content": "x"}])", "messages[0].role", "", "must be a string"},
          {R"([{"role": "robot", "content": "x"}])", "messages[0].role", "", "'robot'"},
          {R"([{"role": "user"}])", "messages[0].content", "", "is required"},
          {R"([{"role": "user", "content": null}])", "messages[0].content", "", "is required"},
          {R"([{"role": "user", "content": {}}])", "messages[0].content", "", "found an object"},
          {R"([{"role": "user", "content": ["x"]}])", "messages[0].content[0]", "", "must be an object"},
          {R"([{"role": "user", "content": [{"type": "text"}]}])", "messages[0].content[0].text", "", ""},
          {R"([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}]}])",
           "messages[0].content[1]", unsupported, "only text"},
          {R"([{"role": "assistant", "content": null}])", "messages[0].content", "", "without tool_calls"},
          {R"([{"role": "assistant", "content": "x", "tool_calls": [{}]}])", "messages[0].tool_calls[0].function", "",
           "is required"},
          {R"([{"role": "assistant", "tool_calls": [{"type": "custom"}]}])", "messages[0].tool_calls[0].type",
           unsupported, "must be function"},
          {R"([{"role": "assistant", "tool_calls": [{"function": {"name": "a b"}}]}])",
           "messages[0].tool_calls[0].function.name", "", "found 'a b'"},
          {R"([{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": 5}}]}])",
           "messages[0].tool_calls[0].function.arguments", "", "a string of JSON"},
          {R"([{"role": "user", "content": "x", "tool_calls": [{"function": {"name": "f"}}]}])",
           "messages[0].tool_calls", "", "role assistant"},
          {R"([{"role": "tool", "content": "x", "tool_call_id": 5}])", "messages[0].tool_call_id", "", ""},
          {R"([{"role": "user", "content": "x", "name": 5}])", "messages[0].name", "", ""},
      },
      messages);
}

TEST(chat_request, refuses_mistakes_in_our_own_object) {
  expect_refusals(
      {
          {R"("redline": 5)", "redline", "", "must be an object"},
          {R"("redline": {"speculations": {}})", "redline.speculations", "", "Did you mean 'speculation'?"},
          {R"("redline": {"trace": 1})", "redline.trace", "", "must be"},
          {R"("redline": {"zzzzzzzzz": 1})", "redline.zzzzzzzzz", "", "is unknown."},
          {R"("redline": {"speculation": []})", "redline.speculation", "", ""},
          {R"("redline": {"speculation": {"metod": "lookup"}})", "redline.speculation.metod", "",
           "Did you mean 'method'?"},
          {R"("redline": {"speculation": {"max_num_runs": 1}})", "redline.speculation.max_num_runs", "",
           "'max_num_run'"},
          {R"("redline": {"speculation": {"method": "blazeedit"}})", "redline.speculation.method", "",
           "Did you mean 'blazedit'?"},
          {R"("redline": {"speculation": {"method": 1}})", "redline.speculation.method", "", ""},
          {R"("redline": {"speculation": {"draft_tokens_max": 0}})", "redline.speculation.draft_tokens_max", "", ""},
          {R"("redline": {"speculation": {"draft_tokens_max": 9999}})", "redline.speculation.draft_tokens_max", "", ""},
          {R"("redline": {"speculation": {"confidence_min": 1.5}})", "redline.speculation.confidence_min", "", ""},
          {R"("redline": {"speculation": {"method": "blazedit", "draft_tokens_max": 5}})",
           "redline.speculation.draft_tokens_max", "", "does not apply"},
      },
      chat);
}

TEST(chat_request, refuses_bodies_that_are_no_object) {
  const std::string bomb(1 << 20, '[');
  for (const std::string& body :
       {std::string(), std::string("5"), std::string("[]"), std::string("{"), std::string("null"),
        std::string("{\"messages\":\"\xff\"}"), "{\"messages\":" + bomb, bomb,
        std::string(R"({"model":"a","model":"b"})"), std::string(R"({"temperature":1e999})")}) {
    const auto request = parse_chat_request(body);
    ASSERT_FALSE(request) << body.substr(0, 40);
    EXPECT_EQ(request.error().status, 400u);
    EXPECT_LT(request.error().message.size(), 500u);
  }
}

TEST(chat_request, bounds_what_it_holds) {
  request_limits limits;
  limits.messages_max = 2;
  limits.text_bytes_max = 10;
  limits.parts_max = 1;
  const auto parse = [&](const std::string& list) { return parse_chat_request("{\"messages\":" + list + "}", limits); };
  EXPECT_TRUE(parse(R"([{"role":"user","content":"12345"},{"role":"user","content":"12345"}])"));
  EXPECT_EQ(parse(R"([{"role":"user","content":"12345"},{"role":"user","content":"123456"}])").error().param,
            "messages[1].content");
  EXPECT_EQ(parse(R"([{"role":"user","content":""},{"role":"user","content":""},{"role":"user","content":""}])")
                .error()
                .param,
            "messages");
  EXPECT_EQ(parse(R"([{"role":"user","content":[{"type":"text","text":""},{"type":"text","text":""}]}])").error().param,
            "messages[0].content");
}

TEST(completion_request, has_openai_defaults) {
  const auto request = completion("");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->from, endpoint::completions);
  EXPECT_EQ(request->tokens_max, 16u);
  EXPECT_FALSE(request->logprobs);
  EXPECT_TRUE(completion(R"("logprobs": 0)")->logprobs);
  EXPECT_EQ(completion(R"("logprobs": 4)")->top_logprobs, 4u);
  EXPECT_FALSE(completion(R"("logprobs": false)")->logprobs);
  EXPECT_TRUE(completion(R"("n": 3, "best_of": 3)"));
}

TEST(native_request, is_read_as_tabby_and_continue_send_it) {
  const auto tabby = parse_native_request(R"({"seed": 4294967295, "prompt": "x", "n_predict": 64, "temperature": 0.1,
      "stream": true, "penalty_last_n": 0, "presence_penalty": 0.0})");
  ASSERT_TRUE(tabby) << tabby.error().message;
  EXPECT_EQ(tabby->from, endpoint::native);
  EXPECT_FALSE(tabby->has_seed) << "llama.cpp's word for any";
  EXPECT_EQ(tabby->tokens_max, 64u);
  EXPECT_TRUE(tabby->stream);
  const auto plain = parse_native_request(R"({"prompt": "x"})");
  EXPECT_EQ(plain->sampling.temperature, 0.8F);
  EXPECT_EQ(plain->sampling.top_k, 40);
  EXPECT_EQ(plain->tokens_max, std::nullopt);
  EXPECT_EQ(parse_native_request(R"({"prompt": "x", "n_cmpl": 3})")->n, 3u);
  EXPECT_TRUE(parse_native_request(R"({"prompt": ["x"]})")->wants_list);
}

TEST(native_request, takes_biases_as_pairs_and_asks_for_probabilities) {
  const auto r = *parse_native_request(
      R"({"prompt":"a","n_probs":5,"stream":true,"logit_bias":[[15,-1.5],[3,false],[" no",-100]]})");
  ASSERT_EQ(r.sampling.logit_bias.size(), 2U);
  EXPECT_EQ(r.sampling.logit_bias[0].first, 3);
  EXPECT_TRUE(std::isinf(r.sampling.logit_bias[0].second)) << "false forbids the token";
  EXPECT_EQ(r.sampling.logit_bias[1], (std::pair<token, float>(15, -1.5F)));
  EXPECT_EQ(r.text_bias, (std::vector<std::pair<std::string, float>>{{" no", -100.0F}}));
  const auto named = *parse_native_request(R"({"prompt":"a","logit_bias":{"15":-1.5," no":-100}})");
  EXPECT_EQ(named.sampling.logit_bias, (std::vector<std::pair<token, float>>{{15, -1.5F}}));
  EXPECT_EQ(named.text_bias, r.text_bias);
  EXPECT_TRUE(r.logprobs);
  EXPECT_EQ(r.top_logprobs, 5U);
  EXPECT_TRUE(r.ignored.empty());
  EXPECT_TRUE(r.shows_ids()) << "a stream's parts have their tokens";
  EXPECT_FALSE(parse_native_request(R"({"prompt":"a"})")->shows_ids());
  EXPECT_FALSE(parse_native_request(R"({"prompt":"a","n_probs":0})")->logprobs);
  const auto refused = [](const std::string& more) {
    return parse_native_request(R"({"prompt":"a",)" + more + "}").error().param;
  };
  EXPECT_EQ(refused(R"("logit_bias":[[15]])"), "logit_bias[0]");
  EXPECT_EQ(refused(R"("logit_bias":[[15,1],7])"), "logit_bias[1]");
  EXPECT_EQ(refused(R"("logit_bias":[[-1,1]])"), "logit_bias[0][0]");
  EXPECT_EQ(refused(R"("logit_bias":[[1,true]])"), "logit_bias[0][1]");
  EXPECT_EQ(refused(R"("logit_bias":[[1,101]])"), "logit_bias[0][1]");
  EXPECT_EQ(refused(R"("logit_bias":7)"), "logit_bias");
  EXPECT_EQ(refused(R"("n_probs":21)"), "n_probs");
  EXPECT_EQ(refused(R"("n_probs":3,"post_sampling_probs":true)"), "post_sampling_probs");
}

TEST(native_request, is_told_from_openai_by_n_predict_where_both_have_one_path) {
  EXPECT_EQ(parse_completion_or_native_request(R"({"prompt": "x", "n_predict": 5})")->from, endpoint::native);
  EXPECT_EQ(parse_completion_request(R"({"prompt": "x", "n_predict": 5})")->from, endpoint::completions);
  EXPECT_EQ(parse_completion_or_native_request(R"({"prompt": "x", "max_tokens": 5})")->from, endpoint::completions);
}

TEST(chat_request, takes_formats_in_other_servers_words) {
  const auto schema = [](const std::string& field) {
    const auto format = chat(field)->format.value();
    return (format.kind == grammar::grammar_kind::regex ? "regex " : "") + format.text;
  };
  EXPECT_EQ(schema(R"("guided_json": {"type": "null"})"), R"({"type":"null"})");
  EXPECT_EQ(schema(R"("guided_json": "{\"type\": \"null\"}")"), R"({"type":"null"})");
  EXPECT_EQ(schema(R"("json_schema": {"type": "null"})"), R"({"type":"null"})");
  EXPECT_EQ(schema(R"("structured_outputs": {"json": {"type": "null"}})"), R"({"type":"null"})");
  EXPECT_EQ(schema(R"("structured_outputs": {"json_object": true})"), R"({"type":"object"})");
  EXPECT_EQ(schema(R"("guided_regex": "a+")"), "regex a+");
  EXPECT_EQ(schema(R"("regex": "a+")"), "regex a+");
  EXPECT_EQ(schema(R"("guided_choice": ["yes", "n.o"])"), "regex yes|n\\.o");
  expect_refusals(
      {
          {R"("guided_json": 5)", "guided_json", "", "a JSON schema"},
          {R"("guided_json": "[")", "guided_json", "", ""},
          {R"("guided_choice": [])", "guided_choice", "", "a list of non-empty strings"},
          {R"("guided_choice": ["a", ""])", "guided_choice", "", ""},
          {R"("guided_regex": {})", "guided_regex", "", "a string"},
          {R"("guided_regex": "a", "guided_json": {})", "guided_regex", "", "cannot be combined with another format"},
          {R"("guided_regex": "a", "response_format": {"type": "json_object"})", "guided_regex", "", ""},
          {R"("structured_outputs": {"structural_tag": "x"})", "structured_outputs.structural_tag", unsupported, ""},
          {R"("grammar": 5)", "grammar", "", "a string"},
          {R"("grammar": "root ::= \"a\"", "guided_regex": "a")", "grammar", "",
           "cannot be combined with another format"},
      },
      chat);
}

TEST(chat_request, takes_its_names_sampling_where_it_says_nothing) {
  request_limits limits;
  limits.sampling_of = [](const std::string& name) {
    return name == "edit" ? sampling::parse_named_sampling("edit:temperature=0,top_k=3")->defaults
                          : sampling::sampling_defaults{};
  };
  const auto by = [&](const std::string& name, const std::string& more) {
    return parse_chat_request("{\"model\":\"" + name + "\"," + hello + more + "}", limits)->sampling;
  };
  EXPECT_EQ(by("edit", "").temperature, 0);
  EXPECT_EQ(by("edit", "").top_k, 3);
  EXPECT_EQ(by("edit", R"(,"temperature":0.5)").temperature, 0.5F);
  EXPECT_EQ(by("other", "").temperature, 1);
  EXPECT_EQ(by("other", "").top_k, 0);
}

TEST(completion_request, takes_the_counts_and_lengths_of_other_servers) {
  EXPECT_EQ(completion(R"("max_tokens": -1)")->tokens_max, std::nullopt) << "the space that the context leaves";
  EXPECT_EQ(completion(R"("n_predict": 7)")->tokens_max, 7u);
  EXPECT_EQ(completion(R"("n_predict": 7, "max_tokens": 3)")->tokens_max, 3u);
  EXPECT_TRUE(completion(R"("n_predict": 0)")->computes_only);
  EXPECT_FALSE(completion("")->computes_only);
  EXPECT_EQ(completion(R"("n": 2, "best_of": 5)")->answers_per_prompt(), 5u);
  EXPECT_TRUE(completion(R"("echo": true)")->echo);
}

TEST(completion_request, says_what_is_wanted_of_the_prompts_tokens) {
  const auto scored = [](const std::string& more) { return completion(more)->scores_prompt(); };
  EXPECT_EQ(scored(""), std::nullopt);
  EXPECT_EQ(scored(R"("logprobs": 2)"), std::nullopt);
  EXPECT_EQ(scored(R"("echo": true)"), std::nullopt);
  // lm-eval's request for the likelihood of a text.
  EXPECT_EQ(scored(R"("echo": true, "logprobs": 1, "max_tokens": 1, "temperature": 0, "seed": 1234)"), 1u);
  EXPECT_EQ(scored(R"("echo": true, "logprobs": 0, "max_tokens": 0)"), 0u);
  EXPECT_EQ(scored(R"("prompt_logprobs": 3)"), 3u);
  EXPECT_EQ(scored(R"("echo": true, "logprobs": 5, "prompt_logprobs": 3)"), 5u);
  EXPECT_EQ(chat(R"("prompt_logprobs": 3)")->prompt_logprobs, 3u);
  const auto fim = parse_fim_request(R"({"prompt": "a", "suffix": "b", "prompt_logprobs": 1})");
  ASSERT_FALSE(fim);
  EXPECT_EQ(fim.error().param, "prompt_logprobs");
  kv::eviction_options usual;
  usual.policy = kv::eviction_policy::shift;
  EXPECT_EQ(completion(R"("prompt_logprobs": 3)")->evicting(usual).policy, kv::eviction_policy::off);
}

TEST(chat_request, takes_what_continue_sends_with_each_key) {
  const auto request = chat(R"("stop": ["<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>",
      "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<|im_start|>", "<|im_end|>", "/src/", "#- coding: utf-8", "```",
      "\n\n", "\r\n\r\n"])");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->stop.size(), 14u);
}

TEST(chat_request, names_the_hints_and_the_unknown_fields_that_nothing_follows) {
  const auto request = chat(R"("id_slot": 0, "samplers": "edkypmxt", "cache_prompt": true, "max_tokens": -1,
      "service_tier": "flex", "verbosity": "low", "max_token": 2, "nothing": null, "seed": 5, "priority": 0,
      "stream": true, "stream_options": {"include_usage": true, "continuous_usage_stats": true})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_THAT(request->ignored, ElementsAre("id_slot", "samplers", "service_tier", "verbosity", "max_token"));
  EXPECT_TRUE(request->usage_in_all_events);
  EXPECT_THAT(chat("")->ignored, ElementsAre());
}

TEST(chat_request, names_no_more_ignored_fields_than_fit_in_an_answer) {
  std::string many;
  for (int i = 0; i < 100; ++i)
    many += (i > 0 ? "," : "") + ("\"" + std::to_string(i) + std::string(100, 'x') + "\": 1");
  const auto request = chat(many);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->ignored.size(), 32u);
  EXPECT_EQ(request->ignored.front().size(), 64u);
}

TEST(chat_request, reads_rules_for_single_tokens) {
  const auto request = chat(R"("stop_token_ids": [7, 5], "allowed_token_ids": [9, 3], "bad_words": ["x"],
      "return_token_ids": true)");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_THAT(request->stop_tokens, ElementsAre(7, 5));
  EXPECT_THAT(request->sampling.allowed, ElementsAre(3, 9)) << "in order";
  EXPECT_THAT(request->bad_words, ElementsAre("x"));
  EXPECT_TRUE(request->return_token_ids);
  for (const char* field : {R"("stop_token_ids": [1])", R"("allowed_token_ids": [1])", R"("bad_words": ["x"])"}) {
    EXPECT_FALSE(chat(std::string(field) + R"(, "response_format": {"type": "json_object"})")) << field;
  }
}

TEST(chat_request, reads_how_much_a_model_is_to_think) {
  const auto request = chat(R"("chat_template_kwargs": {"enable_thinking": false, "x": [1]}, "enable_thinking": true,
      "reasoning_effort": "low", "reasoning_format": "none")");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(dump_json(request->template_variables), R"({"enable_thinking":false,"x":[1]})");
  EXPECT_EQ(request->reasoning_effort, "low");
  EXPECT_FALSE(request->splits_reasoning);
  EXPECT_EQ(dump_json(chat(R"("enable_thinking": true)")->template_variables), R"({"enable_thinking":true})");
}

TEST(chat_request, keeps_what_the_model_thought_for_the_template) {
  const auto request = messages(R"([{"role": "user", "content": "a"},
      {"role": "assistant", "content": "b", "reasoning_content": "why"}, {"role": "user", "content": "c"}])");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(dump_json(request->messages), R"([{"role":"user","content":"a"},{"role":"assistant","content":"b",)"
                                          R"("reasoning_content":"why"},{"role":"user","content":"c"}])");
}

TEST(chat_request, reads_thoughts_under_their_newer_name_too) {
  const auto with = [](const std::string& more) {
    return parse_chat_request(R"({"messages": [{"role": "assistant", "content": "b")" + more +
                              R"(}, {"role": "user", "content": "c"}]})")
        ->messages[0];
  };
  EXPECT_EQ(with(R"(, "reasoning": "a")")["reasoning_content"], "a");
  EXPECT_EQ(with(R"(, "reasoning": "a", "reasoning_content": "z")")["reasoning_content"], "z");
  EXPECT_FALSE(with("").contains("reasoning_content"));
}

TEST(chat_request, goes_on_with_the_last_message_where_it_is_asked_to) {
  const std::string begun = R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])";
  const auto ask = [&](const std::string& more) { return parse_chat_request(begun + more + "}"); };
  EXPECT_FALSE(ask("")->continues_last);
  EXPECT_FALSE(ask(R"(, "continue_final_message": false)")->continues_last);
  EXPECT_TRUE(ask(R"(, "continue_final_message": true)")->continues_last);
  EXPECT_TRUE(ask(R"(, "continue_final_message": true, "add_generation_prompt": false)")->continues_last);
  const auto refused = [&](const std::string& body, const char* why) {
    const auto parsed = parse_chat_request(body);
    ASSERT_FALSE(parsed) << body;
    EXPECT_EQ(parsed.error().param, "continue_final_message");
    EXPECT_THAT(parsed.error().message, HasSubstr(why));
  };
  refused(begun + R"(, "continue_final_message": true, "add_generation_prompt": true})", "cannot both be true");
  refused(begun + R"(, "continue_final_message": true, "response_format": {"type": "json_object"}})",
          "cannot be combined with 'response_format'");
  refused(R"({"messages": [{"role": "user", "content": "a"}], "continue_final_message": true})", "role assistant");
  EXPECT_FALSE(parse_completion_request(R"({"prompt": "a", "continue_final_message": true})"));
  EXPECT_TRUE(parse_template_request(begun + R"(, "continue_final_message": true})")->continues_last);
  EXPECT_TRUE(parse_tokenize_request(begun + R"(, "continue_final_message": true})")->continues_last);
}

TEST(completion_request, refuses_bad_fields) {
  expect_refusals(
      {
          {R"("logprobs": 21)", "logprobs", "", ""},
          {R"("logprobs": "x")", "logprobs", "", ""},
          {R"("top_logprobs": 2)", "top_logprobs", unsupported, ""},
          {R"("echo": true, "logprobs": 1, "stream": true, "n": 2)", "n", "", "not streamed"},
          {R"("echo": true, "logprobs": 1, "redline": {"eviction": {"policy": "shift"}})", "redline.eviction", "", ""},
          {R"("prompt_logprobs": -1)", "prompt_logprobs", "", ""},
          {R"("prompt_logprobs": 21)", "prompt_logprobs", "", ""},
          {R"("prompt_logprobs": 1, "stream": true)", "prompt_logprobs", "", "not part of a stream"},
          {R"("prompt_logprobs": 1, "suffix": "x")", "prompt_logprobs", "", "suffix"},
          {R"("suffix": 5)", "suffix", "", "a string"},
          {R"("suffix": "x", "echo": true)", "echo", "", ""},
          {R"("chat_template_kwargs": {"a": 1})", "chat_template_kwargs", unsupported, ""},
          {R"("messages": [{}])", "messages", unsupported, ""},
      },
      completion);
  expect_refusals(
      {
          {"null", "prompt", "", "is required"},
          {"5", "prompt", "", "must be a string"},
          {"{}", "prompt", "", ""},
          {"[]", "prompt", "", "must not be empty"},
          {"[[]]", "prompt[0]", "", "must not be empty"},
          {"[1, -2]", "prompt", "", ""},
          {"[1, 2147483648]", "prompt", "", ""},
          {"[1, 1.5]", "prompt", "", ""},
          {"[1, \"a\"]", "prompt", "", ""},
          {R"(["a", 5])", "prompt[1]", "", ""},
          {R"([["a"]])", "prompt[0]", "", ""},
          {R"("x", "n": 33)", "n", "", ""},
          {R"(["x", "y", "z"], "n": 32)", "n", "", "at most 64"},
      },
      [](const std::string& prompt) { return parse_completion_request("{\"prompt\":" + prompt + "}"); });
}

TEST(tokenize_request, takes_both_shapes_with_their_defaults) {
  const auto llama = parse_tokenize_request(R"({"content": "x", "with_pieces": true})");
  ASSERT_TRUE(llama);
  EXPECT_EQ(llama->text, "x");
  EXPECT_FALSE(llama->add_special);
  EXPECT_TRUE(llama->parse_special);
  EXPECT_FALSE(parse_tokenize_request(R"({"content": "x", "parse_special": false})")->parse_special);
  EXPECT_TRUE(llama->with_pieces);
  EXPECT_FALSE(llama->is_vllm_shape);
  const auto vllm = parse_tokenize_request(R"({"model": "m", "prompt": "x"})");
  ASSERT_TRUE(vllm);
  EXPECT_TRUE(vllm->add_special);
  EXPECT_TRUE(vllm->is_vllm_shape);
  const auto rendered = parse_tokenize_request("{" + hello + ", \"add_generation_prompt\": false}");
  ASSERT_TRUE(rendered);
  EXPECT_FALSE(rendered->text);
  EXPECT_EQ(rendered->messages.size(), 1u);
  EXPECT_FALSE(rendered->add_special);
  EXPECT_FALSE(rendered->add_generation_prompt);
  for (const char* bad : {"{}", R"({"content":"a","prompt":"b"})", R"({"content":5})", R"({"messages":[]})", "[]"}) {
    EXPECT_FALSE(parse_tokenize_request(bad)) << bad;
  }
}

TEST(tokenize_request, takes_the_tools_of_a_conversation) {
  const std::string chat =
      R"({"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"f"}}],)";
  const auto tokens = *parse_tokenize_request(chat + R"("tool_choice":"none"})");
  ASSERT_TRUE(tokens.tools);
  EXPECT_EQ(tokens.tools->all[0].name, "f");
  EXPECT_EQ(tokens.tools->call, tools::choice::none);
  const auto text = *parse_template_request(chat + R"("add_generation_prompt":false})");
  ASSERT_TRUE(text.tools);
  EXPECT_EQ(text.tools->all[0].name, "f");
  EXPECT_EQ(parse_template_request(R"({"messages":[{"role":"user","content":"a"}],"tools":7})").error().param, "tools");
  EXPECT_FALSE(parse_template_request(R"({"messages":[{"role":"user","content":"a"}]})")->tools);
}

TEST(detokenize_request, takes_token_ids_only) {
  EXPECT_THAT(parse_detokenize_request(R"({"tokens": [1, 2]})")->tokens, ElementsAre(1, 2));
  EXPECT_THAT(parse_detokenize_request(R"({"tokens": []})")->tokens, ElementsAre());
  for (const char* bad : {"{}", R"({"tokens": "x"})", R"({"tokens": [-1]})", R"({"tokens": [1.5]})"}) {
    const auto request = parse_detokenize_request(bad);
    ASSERT_FALSE(request) << bad;
    EXPECT_EQ(request.error().param, "tokens") << bad;
  }
}

TEST(template_request, takes_messages) {
  EXPECT_EQ(parse_template_request("{" + hello + "}")->messages.size(), 1u);
  EXPECT_EQ(parse_template_request("{}").error().param, "messages");
}

TEST(chat_request, survives_mutated_bodies) {
  const std::string seed = R"({"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"n":2,)"
                           R"("stop":["a"],"logit_bias":{"5":1},"seed":7,"stream":true,"stream_options":{},)"
                           R"("redline":{"speculation":{"method":"lookup","draft_tokens_max":5}},"prompt":[[1],"a"]})";
  const std::string values[] = {"null", "[]", "{}", "-1", "1e30", "\"\"", "true", "99999999999999999999", "[[1]]"};
  std::mt19937 random(5);
  int refused_count = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string body = seed;
    for (unsigned n = 1 + random() % 3; n > 0; --n) {
      const std::size_t colon = body.find(':', random() % body.size());
      switch (random() % 3) {
        case 0:
          body[random() % body.size()] = static_cast<char>(random());
          break;
        case 1:
          if (colon != std::string::npos) body.replace(colon + 1, 1 + random() % 3, values[random() % 9]);
          break;
        default:
          if (colon != std::string::npos) {
            body.replace(colon + 1, body.find_first_of(",}", colon) - colon - 1, values[random() % 9]);
          }
          break;
      }
    }
    const auto as_chat = parse_chat_request(body);
    const auto as_completion = parse_completion_request(body);
    if (!as_chat) {
      ++refused_count;
      ASSERT_EQ(as_chat.error().status, 400u) << body;
      ASSERT_FALSE(as_chat.error().message.empty()) << body;
    }
    static_cast<void>(as_completion.has_value());
  }
  EXPECT_GT(refused_count, 1000);
}

}  // namespace
}  // namespace redline::api
