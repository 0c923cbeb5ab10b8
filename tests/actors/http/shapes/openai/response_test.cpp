#include "actors/http/shapes/openai/response.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace redline::api {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

response_head head_of(endpoint from) { return {from, "id-1", 1700000000, "m", "fp"}; }

usage_report some_usage() {
  usage_report usage;
  usage.prompt_tokens = 10;
  usage.cached_tokens = 4;
  usage.completion_tokens = 5;
  usage.drafted = 8;
  usage.accepted = 3;
  usage.of(draft::source::lookup) = {1, 0};
  usage.of(draft::source::model) = {2, 1};
  usage.of(draft::source::prediction) = {5, 2};
  usage.rounds = 2;
  usage.target_passes = 2;
  usage.draft_passes = 6;
  usage.rows = 15;
  usage.first_token_seconds = 0.125;
  usage.seconds = 0.25;
  return usage;
}

const std::string usage_text =
    R"({"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":4},)"
    R"("completion_tokens_details":{"reasoning_tokens":0,"accepted_prediction_tokens":2,)"
    R"("rejected_prediction_tokens":3},"redline":{"drafted":8,"accepted":3,)"
    R"("sources":{"lookup":{"drafted":1,"accepted":0},"draft":{"drafted":2,"accepted":1},)"
    R"("prediction":{"drafted":5,"accepted":2},"program":{"drafted":0,"accepted":0},"format":{"drafted":0,"accepted":0},)"
    R"("mtp":{"drafted":0,"accepted":0}},"copied_forced":0,)"
    R"("copied_verified":0,"rounds":2,"target_passes":2,"draft_passes":6,)"
    R"("rows":15,"evicted":0,"evictions":0,"reevaluated":0,"eviction":"off","first_token_seconds":0.125,"seconds":0.25}})";

/// The id before anything was sent.
event_id first_id(std::size_t choices = 3) {
  return {.response_high = 1,
          .response_low = 2,
          .created_seconds = 3,
          .request_digest = 4,
          .model_digest = 5,
          .choices = std::vector<event_id::position>(choices)};
}

struct parsed_event {
  event_id id;
  std::string data;
};
parsed_event parse_event(const std::string& event) {
  EXPECT_THAT(event, StartsWith("id: "));
  EXPECT_THAT(event, EndsWith("\n\n"));
  const auto line = event.find("\ndata: ");
  const auto id = parse_event_id(event.substr(4, line - 4));
  EXPECT_TRUE(id) << event;
  return {id.value_or(event_id{}), event.substr(line + 7, event.size() - line - 9)};
}
json event_object(const std::string& event) { return *parse_json<json>(parse_event(event).data); }

TEST(chat_response, has_the_shape_of_openai) {
  const choice choices[] = {{0, "hello", finish_reason::stop, {}}, {1, "wor", finish_reason::length, {}}};
  EXPECT_EQ(completion_body(head_of(endpoint::chat), choices, some_usage()),
            R"({"id":"id-1","object":"chat.completion","created":1700000000,"model":"m","system_fingerprint":"fp",)"
            R"("choices":[{"index":0,"message":{"role":"assistant","content":"hello","refusal":null},)"
            R"("logprobs":null,"finish_reason":"stop"},)"
            R"({"index":1,"message":{"role":"assistant","content":"wor","refusal":null},)"
            R"("logprobs":null,"finish_reason":"length"}],"usage":)" +
                usage_text + "}");
}

TEST(chat_response, shows_thoughts_apart_from_the_answer) {
  choice one{0, "answer", finish_reason::stop, {}};
  one.reasoning = "why";
  const auto body = *parse_json<json>(completion_body(head_of(endpoint::chat), {&one, 1}, {}));
  EXPECT_EQ(dump_json(body["choices"][0]["message"]),
            R"({"role":"assistant","content":"answer","reasoning_content":"why","refusal":null})");

  event_writer writer(head_of(endpoint::chat), false, first_id(1));
  const auto thought = writer.delta(0, "", nullptr, "why ");
  EXPECT_EQ(dump_json(event_object(thought)["choices"][0]["delta"]), R"({"reasoning_content":"why "})");
  const auto both = writer.delta(0, "an", nullptr, "so");
  EXPECT_EQ(dump_json(event_object(both)["choices"][0]["delta"]), R"({"reasoning_content":"so","content":"an"})");
  EXPECT_EQ(dump_json(event_object(writer.delta(0, "swer"))["choices"][0]["delta"]), R"({"content":"swer"})");

  // A client that has the first event gets what follows it, even if the rest is split differently.
  event_writer again(head_of(endpoint::chat), false, first_id(1), parse_event(thought).id);
  EXPECT_EQ(dump_json(event_object(again.delta(0, "ans", nullptr, "why so"))["choices"][0]["delta"]),
            R"({"reasoning_content":"so","content":"ans"})");
  EXPECT_FALSE(again.has_diverged());
}

TEST(chat_response, shows_token_ids_when_asked) {
  auto head = head_of(endpoint::completions);
  head.shows_logprobs = false;
  head.shows_ids = true;
  choice one{0, "ab", finish_reason::stop, std::vector<token_report>{{{"a", 0}, {}, 7}, {{"b", 0}, {}, 8}}};
  one.prompt = {1, 2};
  const auto body = *parse_json<json>(completion_body(head, {&one, 1}, {}));
  EXPECT_EQ(
      dump_json(body["choices"][0]),
      R"({"index":0,"text":"ab","logprobs":null,"finish_reason":"stop","token_ids":[7,8],"prompt_token_ids":[1,2]})");

  event_writer writer(head, false, first_id(1));
  const std::vector<token> prompt = {1, 2};
  EXPECT_EQ(dump_json(event_object(writer.first(0, prompt))["choices"][0]["prompt_token_ids"]), "[1,2]");
  const auto event = event_object(writer.delta(0, "ab", &*one.tokens));
  EXPECT_EQ(dump_json(event["choices"][0]["token_ids"]), "[7,8]");
  EXPECT_TRUE(event["choices"][0]["logprobs"].is_null());
}

TEST(chat_response, has_the_prompts_token_ids_once_as_vllm_does) {
  auto head = head_of(endpoint::chat);
  head.shows_ids = true;
  choice one{0, "ab", finish_reason::stop, std::vector<token_report>{{{"a", 0}, {}, 7}, {{"b", 0}, {}, 8}}};
  one.prompt = {1, 2};
  const auto body = *parse_json<json>(completion_body(head, {&one, 1}, {}));
  EXPECT_EQ(dump_json(body["prompt_token_ids"]), "[1,2]");
  EXPECT_EQ(dump_json(body["choices"][0]["token_ids"]), "[7,8]");
  EXPECT_FALSE(body["choices"][0].contains("prompt_token_ids"));

  event_writer writer(head, false, first_id(1));
  const auto first = event_object(writer.first(0, one.prompt));
  EXPECT_EQ(dump_json(first["prompt_token_ids"]), "[1,2]");
  EXPECT_FALSE(first["choices"][0].contains("prompt_token_ids"));
  EXPECT_FALSE(event_object(writer.delta(0, "ab", &*one.tokens)).contains("prompt_token_ids"));
}

TEST(log_probabilities, name_tokens_by_their_ids_when_asked) {
  const std::vector<token_report> tokens{{{"a", -0.5F, 7}, {{"b", -0.25F, 8}}, 7}};
  const choice one{0, "a", finish_reason::stop, tokens};
  auto head = head_of(endpoint::chat);
  head.tokens_as_ids = true;
  const auto chat = (*parse_json<json>(completion_body(head, {&one, 1}, {})))["choices"][0]["logprobs"]["content"][0];
  EXPECT_EQ(chat["token"], "token_id:7");
  EXPECT_EQ(chat["top_logprobs"][0]["token"], "token_id:8");
  EXPECT_EQ(dump_json(chat["bytes"]), "[97]");
  head.from = endpoint::completions;
  const auto list = (*parse_json<json>(completion_body(head, {&one, 1}, {})))["choices"][0]["logprobs"];
  EXPECT_EQ(dump_json(list["tokens"]), R"(["token_id:7"])");
  EXPECT_EQ(dump_json(list["top_logprobs"]), R"([{"token_id:7":-0.5,"token_id:8":-0.25}])");
}

TEST(events, say_what_was_used_so_far_when_asked) {
  event_writer writer(head_of(endpoint::chat), true, first_id(1));
  writer.note_progress(10, 3);
  EXPECT_EQ(dump_json(event_object(writer.delta(0, "x"))["usage"]),
            R"({"prompt_tokens":10,"completion_tokens":3,"total_tokens":13})");
}

TEST(usage, names_what_was_ignored) {
  usage_report usage = some_usage();
  usage.ignored = {"samplers", "max_token"};
  const auto body = *parse_json<json>(completion_body(head_of(endpoint::chat), {}, usage));
  EXPECT_EQ(dump_json(body["usage"]["redline"]["ignored"]), R"(["samplers","max_token"])");
}

TEST(completion_response, has_the_shape_of_openai) {
  const choice choices[] = {{0, "hello", finish_reason::stop, {}}};
  auto head = head_of(endpoint::completions);
  head.system_fingerprint.clear();
  EXPECT_EQ(completion_body(head, choices, some_usage()),
            R"({"id":"id-1","object":"text_completion","created":1700000000,"model":"m","system_fingerprint":null,)"
            R"("choices":[{"index":0,"text":"hello","logprobs":null,"finish_reason":"stop"}],"usage":)" +
                usage_text + "}");
}

TEST(chat_response, streams_role_text_reason_usage_and_done) {
  event_writer writer(head_of(endpoint::chat), true, first_id());
  const std::string start = R"({"id":"id-1","object":"chat.completion.chunk","created":1700000000,"model":"m",)"
                            R"("system_fingerprint":"fp",)";
  EXPECT_EQ(parse_event(writer.first(0)).data,
            start + R"("choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,)"
                    R"("finish_reason":null}],"usage":null})");
  EXPECT_EQ(parse_event(writer.delta(1, "h\u00e9")).data,
            start +
                "\"choices\":[{\"index\":1,\"delta\":{\"content\":"
                "\"h\u00e9\"},"
                "\"logprobs\":null,\"finish_reason\":null}],\"usage\":null}");
  EXPECT_EQ(parse_event(writer.finish(0, finish_reason::length)).data,
            start + R"("choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"length"}],"usage":null})");
  EXPECT_EQ(parse_event(writer.usage(some_usage())).data, start + "\"choices\":[],\"usage\":" + usage_text + "}");
  EXPECT_EQ(writer.done(), "data: [DONE]\n\n");
}

TEST(chat_response, says_nothing_of_usage_unless_asked) {
  event_writer writer(head_of(endpoint::chat), false, first_id());
  EXPECT_FALSE(event_object(writer.first(0)).contains("usage"));
  EXPECT_EQ(writer.usage(some_usage()), "");
}

TEST(completion_response, streams_text_and_reason) {
  event_writer writer(head_of(endpoint::completions), true, first_id());
  EXPECT_EQ(writer.first(0), "");
  const auto delta = event_object(writer.delta(2, "x"));
  EXPECT_EQ(delta["object"], "text_completion");
  EXPECT_EQ(dump_json(delta["choices"]), R"([{"index":2,"text":"x","logprobs":null,"finish_reason":null}])");
  EXPECT_TRUE(delta["usage"].is_null());
  EXPECT_EQ(dump_json(event_object(writer.finish(2, finish_reason::stop))["choices"]),
            R"([{"index":2,"text":"","logprobs":null,"finish_reason":"stop"}])");
  EXPECT_EQ(dump_json(event_object(writer.usage(some_usage()))["choices"]), "[]");
}

const std::vector<token_report> two_tokens{{{"h\u00e9", -0.5F}, {{"h\u00e9", -0.5F}, {"x", -1.25F}}},
                                           {{"\xe2\x80", -std::numeric_limits<float>::infinity()}, {}}};

TEST(chat_response, reports_log_probabilities) {
  const choice choices[] = {{0, "t", finish_reason::stop, two_tokens}};
  const auto body = *parse_json<json>(completion_body(head_of(endpoint::chat), choices, {}));
  EXPECT_EQ(dump_json(body["choices"][0]["logprobs"]),
            "{\"content\":[{\"token\":\"h\u00e9\",\"logprob\":-0.5,\"bytes\":[104,195,169],\"top_logprobs\":["
            "{\"token\":\"h\u00e9\",\"logprob\":-0.5,\"bytes\":[104,195,169]},"
            "{\"token\":\"x\",\"logprob\":-1.25,\"bytes\":[120]}]},"
            "{\"token\":\"\uFFFD\",\"logprob\":-9999.0,\"bytes\":[226,128],\"top_logprobs\":[]}],\"refusal\":null}");
}

TEST(completion_response, reports_log_probabilities_with_running_offsets) {
  event_writer writer(head_of(endpoint::completions), false, first_id());
  const auto first = event_object(writer.delta(0, "t", &two_tokens));
  EXPECT_EQ(
      dump_json(first["choices"][0]["logprobs"]),
      "{\"tokens\":[\"h\u00e9\",\"bytes:\\\\xe2\\\\x80\"],\"token_logprobs\":[-0.5,-9999.0],"
      "\"top_logprobs\":[{\"h\u00e9\":-0.5,\"x\":-1.25},{\"bytes:\\\\xe2\\\\x80\":-9999.0}],\"text_offset\":[0,2]}");
  EXPECT_EQ(dump_json(event_object(writer.delta(0, "t", &two_tokens))["choices"][0]["logprobs"]["text_offset"]),
            "[3,5]");
  EXPECT_EQ(dump_json(event_object(writer.delta(1, "t", &two_tokens))["choices"][0]["logprobs"]["text_offset"]),
            "[0,2]");
}

/// A first token that is not in the client's text, then two tokens of text, the second being a space and a letter.
prompt_report some_prompt() {
  prompt_report out;
  out.tokens = {{.chosen = {"<s>", 0, 1}, .top = {}, .id = 1, .has_logprob = false},
                {.chosen = {"h\u00e9", -0.5F, 7}, .top = {{"x", -0.25F, 8}, {"h\u00e9", -0.5F, 7}}, .id = 7},
                {.chosen = {" b", -3.0F, 9}, .top = {{"x", -0.25F, 8}, {"y", -1.0F, 5}}, .id = 9}};
  out.characters = 4;
  return out;
}

TEST(completion_response, reports_log_probabilities_of_an_echoed_prompt) {
  auto head = head_of(endpoint::completions);
  head.echoes = true;
  head.top_logprobs = 1;
  const auto prompt = some_prompt();
  choice one{.index = 0, .text = "h\u00e9 bt", .tokens = two_tokens};
  one.read = &prompt;
  const auto body = json::parse(completion_body(head, {&one, 1}, {}));
  const auto& whole = body["choices"][0]["logprobs"];
  EXPECT_EQ(dump_json(whole["tokens"]), "[\"<s>\",\"h\u00e9\",\" b\",\"h\u00e9\",\"bytes:\\\\xe2\\\\x80\"]");
  EXPECT_EQ(dump_json(whole["token_logprobs"]), "[null,-0.5,-3.0,-0.5,-9999.0]");
  EXPECT_EQ(dump_json(whole["top_logprobs"]),
            "[null,{\"h\u00e9\":-0.5,\"x\":-0.25},{\" b\":-3.0,\"x\":-0.25},{\"h\u00e9\":-0.5},"
            "{\"bytes:\\\\xe2\\\\x80\":-9999.0}]")
      << "the prompt's own tokens come first, as in vLLM, with one alternative";
  EXPECT_EQ(dump_json(whole["text_offset"]), "[0,0,2,4,6]");

  // A stream reports the same in parts.
  event_writer writer(head, false, first_id());
  json parts = json::array();
  for (const auto& event : {writer.echo(0, "h\u00e9 b", prompt, 0, 1), writer.echo(0, {}, prompt, 1, 3),
                            writer.delta(0, "t", &two_tokens)}) {
    parts.push_back(event_object(event)["choices"][0]);
  }
  EXPECT_EQ(parts[0]["text"], "h\u00e9 b");
  EXPECT_EQ(parts[1]["text"], "");
  for (const char* list : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
    json joined = json::array();
    for (const auto& part : parts) {
      for (const auto& value : part["logprobs"][list]) joined.push_back(value);
    }
    EXPECT_EQ(joined, whole[list]) << list;
  }
}

TEST(completion_response, gives_log_probabilities_of_prompts_as_vllm_does) {
  for (const endpoint from : {endpoint::completions, endpoint::chat}) {
    auto head = head_of(from);
    head.prompt_logprobs = 1;
    const auto prompt = some_prompt();
    choice one{.index = 0, .text = "t"};
    one.read = &prompt;
    const auto body = json::parse(completion_body(head, {&one, 1}, {}));
    const auto& list = from == endpoint::chat ? body["prompt_logprobs"] : body["choices"][0]["prompt_logprobs"];
    ASSERT_EQ(list.size(), 3u);
    EXPECT_TRUE(list[0].is_null());
    EXPECT_EQ(list[1]["8"], json::parse(R"({"logprob": -0.25, "rank": 1, "decoded_token": "x"})"));
    EXPECT_EQ(list[1]["7"], json::parse("{\"logprob\": -0.5, \"rank\": null, \"decoded_token\": \"h\u00e9\"}"));
    EXPECT_EQ(list[2].size(), 2u) << "one alternative and the prompt's own token";
  }
}

// ---- streams that a client resumes

/// Returns the events one by one, as the client receives them.
std::vector<std::string> whole_stream(event_writer& writer, const std::vector<std::string>& parts,
                                      const std::vector<token_report>* tokens) {
  std::vector<std::string> events{writer.first(0)};
  for (const auto& part : parts) events.push_back(writer.delta(0, part, tokens));
  events.push_back(writer.finish(0, finish_reason::stop));
  events.push_back(writer.usage(some_usage()));
  std::erase(events, "");
  return events;
}

TEST(resumed_stream, has_after_each_event_the_same_events) {
  const std::vector<std::string> parts{"one ", "two ", "", "th\u00e9 end"};
  for (const endpoint from : {endpoint::chat, endpoint::completions}) {
    for (const auto* tokens : {&two_tokens, static_cast<const std::vector<token_report>*>(nullptr)}) {
      event_writer writer(head_of(from), true, first_id(1));
      const auto events = whole_stream(writer, parts, tokens);
      for (std::size_t i = 0; i < events.size(); ++i) {
        event_writer again(head_of(from), true, first_id(1), parse_event(events[i]).id);
        const std::vector<std::string> rest(events.begin() + static_cast<std::ptrdiff_t>(i) + 1, events.end());
        EXPECT_EQ(whole_stream(again, parts, tokens), rest) << i;
        EXPECT_FALSE(again.has_diverged());
      }
    }
  }
}

TEST(resumed_stream, goes_on_within_a_part_that_is_cut_elsewhere) {
  event_writer writer(head_of(endpoint::completions), false, first_id(1));
  const auto had = parse_event(writer.delta(0, "one", &two_tokens)).id;
  event_writer again(head_of(endpoint::completions), false, first_id(1), had);
  auto all = two_tokens;
  all.push_back({{"w", -1}, {}});
  const auto rest = event_object(again.delta(0, "one two", &all))["choices"][0];
  EXPECT_EQ(rest["text"], " two");
  EXPECT_EQ(dump_json(rest["logprobs"]["tokens"]), R"(["w"])");
  EXPECT_EQ(dump_json(rest["logprobs"]["text_offset"]), "[3]");
}

TEST(resumed_stream, notices_another_text_and_one_that_is_too_short) {
  event_writer writer(head_of(endpoint::chat), false, first_id(1));
  writer.first(0);
  const auto had = parse_event(writer.delta(0, "one two")).id;
  event_writer other(head_of(endpoint::chat), false, first_id(1), had);
  other.first(0);
  EXPECT_EQ(other.delta(0, "one "), "");
  EXPECT_FALSE(other.has_diverged());
  EXPECT_EQ(other.delta(0, "2wo three"), "");
  EXPECT_TRUE(other.has_diverged());
  event_writer shorter(head_of(endpoint::chat), false, first_id(1), had);
  shorter.delta(0, "one");
  EXPECT_EQ(shorter.finish(0, finish_reason::stop), "");
  EXPECT_TRUE(shorter.has_diverged());
}

TEST(resumed_stream, keeps_what_is_known_of_other_choices) {
  event_writer writer(head_of(endpoint::chat), false, first_id(2));
  writer.first(0);
  writer.delta(0, "all");
  writer.finish(0, finish_reason::stop);
  const auto had = parse_event(writer.first(1)).id;
  event_writer again(head_of(endpoint::chat), false, first_id(2), had);
  again.skip(0);
  EXPECT_EQ(again.first(1), "");
  EXPECT_EQ(again.delta(1, "more"), writer.delta(1, "more"));
}

TEST(resumed_stream, may_be_lost_again_before_all_choices_have_caught_up) {
  event_writer writer(head_of(endpoint::completions), true, first_id(3));
  writer.delta(0, "zero", &two_tokens);
  writer.delta(1, "one", &two_tokens);
  const auto had = parse_event(writer.finish(2, finish_reason::stop)).id;
  event_writer again(head_of(endpoint::completions), true, first_id(3), had);
  EXPECT_EQ(again.delta(0, "zer"), "");
  auto tokens = two_tokens;
  tokens.insert(tokens.end(), two_tokens.begin(), two_tokens.end());
  const auto next = parse_event(again.delta(1, "one more", &tokens)).id;
  EXPECT_EQ(next.choices[0], had.choices[0]);
  EXPECT_EQ(next.choices[1].text_bytes, 8U);
  EXPECT_EQ(next.choices[1].tokens_count, 4U);
  EXPECT_EQ(next.choices[2], had.choices[2]);
}

const trace_report a_trace{.round = 3,
                           .at_us = 50,
                           .passes = 1,
                           .rows = 12,
                           .proposed = {{"lookup", 11}},
                           .verified = 11,
                           .accepted = 9,
                           .came = {{"lookup", 9, 34}, {"model", 1, 4}}};

TEST(traces, are_events_of_their_own_that_change_no_other) {
  event_writer plain(head_of(endpoint::chat), false, first_id(1));
  event_writer traced(head_of(endpoint::chat), false, first_id(1));
  EXPECT_EQ(traced.first(0), plain.first(0));
  const auto event = traced.trace(0, a_trace);
  ASSERT_TRUE(event.starts_with("data: ")) << "without an id, a stream continues after the sent text";
  const auto object = json::parse(event.substr(6));
  EXPECT_TRUE(object["choices"].empty());
  EXPECT_EQ(
      dump_json(object["redline"]["trace"]),
      R"([{"choice":0,"round":3,"at_us":50,"passes":1,"rows":12,"proposed":[["lookup",11]],"verified":11,"accepted":9,)"
      R"("text":[["lookup",9,34],["model",1,4]]}])");
  EXPECT_EQ(traced.delta(0, "text"), plain.delta(0, "text"));
  EXPECT_EQ(traced.finish(0, finish_reason::stop), plain.finish(0, finish_reason::stop));
}

TEST(traces, are_not_said_of_what_a_client_has) {
  event_writer writer(head_of(endpoint::chat), false, first_id(1));
  writer.first(0);
  const auto had = parse_event(writer.delta(0, "one two")).id;
  event_writer again(head_of(endpoint::chat), false, first_id(1), had);
  again.first(0);
  EXPECT_EQ(again.trace(0, a_trace), "");
  EXPECT_EQ(again.delta(0, "one two"), "");
  EXPECT_NE(again.trace(0, a_trace), "");
  EXPECT_NE(again.delta(0, " three"), "");
}

TEST(traces, have_no_place_in_the_native_shape) {
  event_writer writer(head_of(endpoint::native), false, first_id(1));
  EXPECT_EQ(writer.trace(0, a_trace), "");
}

TEST(responses, are_valid_utf8_whatever_the_model_says) {
  const choice choices[] = {{0, "a\xff\xc3", finish_reason::stop, {}}};
  EXPECT_THAT(completion_body(head_of(endpoint::chat), choices, {}), HasSubstr("\"a\uFFFD\uFFFD\""));
  event_writer writer(head_of(endpoint::chat), false, first_id());
  EXPECT_THAT(writer.delta(0, "\x80 line\nbreak"), HasSubstr("\"\uFFFD line\\nbreak\""));
}

TEST(responses, never_say_nan) {
  usage_report usage;
  usage.seconds = std::nan("");
  EXPECT_THAT(completion_body(head_of(endpoint::chat), {}, usage), HasSubstr("\"seconds\":0.0"));
  EXPECT_THAT(completion_body(head_of(endpoint::chat), {}, usage), HasSubstr("\"choices\":[]"));
}

TEST(response_id, is_long_and_names_its_kind) {
  EXPECT_EQ(response_id(endpoint::chat, 1, 2), "chatcmpl-00000000000000010000000000000002");
  EXPECT_THAT(response_id(endpoint::completions, ~0ULL, 0), StartsWith("cmpl-ffffffffffffffff"));
}

TEST(model_responses, list_and_show) {
  model_card card;
  card.id = "edit-1";
  card.created_seconds = 5;
  card.context_tokens_max = 4096;
  card.vocabulary_size = 300;
  const std::string one =
      R"({"id":"edit-1","object":"model","created":5,"owned_by":"redline","root":"edit-1","parent":null,)"
      R"("max_model_len":4096,"meta":{"n_ctx":4096,"n_ctx_train":4096,"n_vocab":300},"status":{"value":"loaded"},)"
      R"("architecture":{"input_modalities":["text"],"output_modalities":["text"]}})";
  EXPECT_EQ(model_body(card), one);
  EXPECT_EQ(model_list_body({&card, 1}),
            "{\"object\":\"list\",\"data\":[" + one +
                R"(],"models":[{"name":"edit-1","model":"edit-1","type":"model","capabilities":["completion"],)"
                R"("details":{"format":"gguf"}}]})");
  card.numerics = {{"bf16 products", "redline-1"}, {"int8 products", ""}};
  EXPECT_THAT(model_body(card),
              HasSubstr(R"("n_vocab":300,"numerics":[{"name":"bf16 products","system_fingerprint":"redline-1"},)"
                        R"({"name":"int8 products","system_fingerprint":null}]})"));
  EXPECT_EQ(model_list_body({}), R"({"object":"list","data":[],"models":[]})");
}

TEST(tokenize_responses, come_in_the_shape_that_was_asked_for) {
  const token tokens[] = {5, 9};
  const std::string pieces[] = {"a", "\xe2\x80"};
  tokenize_request request;
  EXPECT_EQ(tokenize_body(request, tokens, {}, 100), R"({"tokens":[5,9]})");
  request.with_pieces = true;
  EXPECT_EQ(tokenize_body(request, tokens, pieces, 100),
            R"({"tokens":[{"id":5,"piece":"a"},{"id":9,"piece":[226,128]}]})");
  request.is_vllm_shape = true;
  EXPECT_EQ(tokenize_body(request, tokens, pieces, 100),
            "{\"count\":2,\"max_model_len\":100,\"tokens\":[5,9],\"token_strs\":[\"a\",\"\uFFFD\"]}");
  request.with_pieces = false;
  EXPECT_EQ(tokenize_body(request, tokens, {}, 100),
            R"({"count":2,"max_model_len":100,"tokens":[5,9],"token_strs":null})");
  EXPECT_EQ(detokenize_body("x"), R"({"content":"x","prompt":"x"})");
  EXPECT_EQ(template_body("<s>x"), R"({"prompt":"<s>x"})");
  EXPECT_EQ(health_body(), R"({"status":"ok"})");
}

// ---- tools ---------------------------------------------------------------------------------------------------------

TEST(completion_body, tells_calls_and_no_content_where_there_is_none) {
  choice c;
  c.calls = {{"call_1", "read", R"({"path":"a"})"}, {"call_2", "list", "{"}};
  c.finish = finish_reason::tool_calls;
  const auto body = json::parse(completion_body(head_of(endpoint::chat), std::vector{c}, {}));
  const auto& message = body["choices"][0]["message"];
  EXPECT_EQ(body["choices"][0]["finish_reason"], "tool_calls");
  EXPECT_TRUE(message["content"].is_null());
  EXPECT_EQ(message["tool_calls"].dump(),
            R"([{"id":"call_1","type":"function","function":{"name":"read","arguments":"{\"path\":\"a\"}"}},)"
            R"({"id":"call_2","type":"function","function":{"name":"list","arguments":"{"}}])");
  c.text = "so";
  c.reasoning = "hm";
  c.is_legacy = true;
  const auto legacy =
      json::parse(completion_body(head_of(endpoint::chat), std::vector{c}, {}))["choices"][0]["message"];
  EXPECT_EQ(legacy["content"], "so");
  EXPECT_EQ(legacy["reasoning_content"], "hm");
  EXPECT_FALSE(legacy.contains("tool_calls"));
  EXPECT_EQ(legacy["function_call"].dump(), R"({"name":"read","arguments":"{\"path\":\"a\"}"})");
}

/// Returns a stream that contains everything a stream can have besides text.
std::vector<std::string> calling_stream(event_writer& writer) {
  std::vector<std::string> events;
  const auto add = [&](std::string event) {
    if (!event.empty()) events.push_back(std::move(event));
  };
  const tools::tool_call first{"call_1", "read", ""}, second{"call_2", "list", ""};
  add(writer.first(0));
  add(writer.delta(0, "", nullptr, "hm"));
  add(writer.delta(0, "so"));
  add(writer.call(0, 0, first, false));
  add(writer.arguments(0, 0, "{\"path\":", false));
  add(writer.arguments(0, 0, "\"a\"}", false));
  add(writer.delta(0, "and"));
  add(writer.call(0, 1, second, false));
  add(writer.arguments(0, 1, "{}", false));
  add(writer.finish(0, finish_reason::tool_calls));
  return events;
}

TEST(event_writer, streams_calls_with_the_name_first) {
  event_writer writer(head_of(endpoint::chat), false, first_id(1));
  const auto events = calling_stream(writer);
  ASSERT_EQ(events.size(), 10u);
  EXPECT_THAT(events[1], HasSubstr(R"("delta":{"reasoning_content":"hm"})"));
  EXPECT_THAT(events[3], HasSubstr(R"("delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function",)"
                                   R"("function":{"name":"read","arguments":""}}]})"));
  EXPECT_THAT(events[4], HasSubstr(R"("delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":"}}]})"));
  EXPECT_THAT(events[7], HasSubstr(R"("index":1,"id":"call_2")"));
  EXPECT_THAT(events[9], HasSubstr(R"("finish_reason":"tool_calls")"));
}

TEST(event_writer, a_stream_with_calls_goes_on_after_each_of_its_events) {
  event_writer writer(head_of(endpoint::chat), false, first_id(1));
  const auto whole = calling_stream(writer);
  for (std::size_t had = 0; had < whole.size(); ++had) {
    event_writer again(head_of(endpoint::chat), false, first_id(1), parse_event(whole[had]).id);
    const auto rest = calling_stream(again);
    EXPECT_EQ(rest, std::vector<std::string>(whole.begin() + static_cast<std::ptrdiff_t>(had) + 1, whole.end()))
        << "after event " << had;
    EXPECT_FALSE(again.has_diverged());
  }
}

TEST(event_writer, a_call_of_old_is_a_function_call) {
  event_writer writer(head_of(endpoint::chat), false, first_id(1));
  EXPECT_THAT(writer.call(0, 0, {"call_1", "read", ""}, true),
              HasSubstr(R"("delta":{"function_call":{"name":"read","arguments":""}})"));
  EXPECT_THAT(writer.arguments(0, 0, "{", true), HasSubstr(R"("delta":{"function_call":{"arguments":"{"}})"));
}

}  // namespace
}  // namespace redline::api
