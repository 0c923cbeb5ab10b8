#include "actors/http/shapes/openai/native_shape.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/http/shapes/openai/request.hpp"
#include "actors/http/shapes/openai/response.hpp"

namespace redline::api {
namespace {

using ::testing::HasSubstr;

response_head native_head() {
  response_head head{.from = endpoint::native, .id = "cmpl-1", .created_seconds = 1, .model = "m"};
  head.system_fingerprint = "fp";
  return head;
}

choice an_answer() {
  choice one{0, "a + b\n", finish_reason::stop, {}};
  one.cost.prompt_tokens = 100;
  one.cost.cached_tokens = 60;
  one.cost.completion_tokens = 8;
  one.cost.first_token_seconds = 0.5;
  one.cost.seconds = 0.75;
  return one;
}

TEST(native_answer, has_what_llama_vim_asks_for_under_the_names_it_asks_by) {
  auto head = native_head();
  head.fields = {"content",
                 "timings/prompt_n",
                 "timings/prompt_ms",
                 "timings/prompt_per_second",
                 "timings/predicted_n",
                 "timings/predicted_ms",
                 "timings/predicted_per_second",
                 "truncated",
                 "tokens_cached",
                 "no/such/field"};
  const auto one = an_answer();
  EXPECT_EQ(completion_body(head, {&one, 1}, {}),
            R"({"content":"a + b\n","timings/prompt_n":40,"timings/prompt_ms":500.0,"timings/prompt_per_second":80.0,)"
            R"("timings/predicted_n":8,"timings/predicted_ms":250.0,"timings/predicted_per_second":32.0,)"
            R"("truncated":false,"tokens_cached":60})");
}

TEST(native_answer, says_why_it_ended) {
  auto one = an_answer();
  EXPECT_EQ(native_answer(native_head(), one)["stop_type"], "eos");
  one.stop_text = "\n\n";
  EXPECT_EQ(native_answer(native_head(), one)["stop_type"], "word");
  EXPECT_EQ(native_answer(native_head(), one)["stopping_word"], "\n\n");
  one.finish = finish_reason::length;
  EXPECT_EQ(native_answer(native_head(), one)["stop_type"], "limit");
  one.cost.ignored = {"n_keep"};
  EXPECT_EQ(dump_json(native_answer(native_head(), one)["redline"]), R"({"ignored":["n_keep"]})");
}

TEST(native_answer, repeats_the_prompt_and_what_the_request_comes_to) {
  auto head = native_head();
  auto one = an_answer();
  EXPECT_FALSE(native_answer(head, one).contains("generation_settings"));
  EXPECT_FALSE(native_answer(head, one).contains("prompt"));
  auto asked = *parse_native_request(
      R"({"prompt":"a","n_predict":8,"seed":7,"stop":["\n"],"n_probs":3,"logit_bias":[[15,-1.5],[9,false]]})");
  head.settings = std::make_shared<const json>(native_settings(asked));
  one.prompt_text = std::make_shared<const std::string>("<s>a");
  const auto answer = native_answer(head, one);
  EXPECT_EQ(answer["prompt"], "<s>a");
  EXPECT_EQ(dump_json(answer["generation_settings"]),
            R"({"seed":7,"temperature":0.8,"top_k":40,"top_p":0.95,"min_p":0.05,"repeat_penalty":1.0,)"
            R"("presence_penalty":0.0,"frequency_penalty":0.0,"logit_bias":[{"token":9,"bias":false},)"
            R"({"token":15,"bias":-1.5}],"stop":["\n"],"max_tokens":8,"n_predict":8,"ignore_eos":false,"n_probs":3,)"
            R"("n_cmpl":1,"stream":false})");
  head.fields = {"content", "generation_settings/n_predict", "prompt"};
  EXPECT_EQ(completion_body(head, {&one, 1}, {}),
            R"({"content":"a + b\n","generation_settings/n_predict":8,"prompt":"<s>a"})");
}

TEST(native_answer, is_truncated_at_the_end_of_the_context_and_where_tokens_left_it) {
  auto head = native_head();
  head.context_tokens_max = 108;
  auto one = an_answer();
  EXPECT_EQ(native_answer(head, one)["truncated"], false) << "it ended by itself";
  one.finish = finish_reason::length;
  EXPECT_EQ(native_answer(head, one)["truncated"], true);
  head.context_tokens_max = 200;
  EXPECT_EQ(native_answer(head, one)["truncated"], false) << "n_predict ended it";
  one.cost.evictions = 1;
  EXPECT_EQ(native_answer(head, one)["truncated"], true);
}

TEST(native_answer, shows_probabilities_with_ids) {
  auto head = native_head();
  const std::vector<token_report> tokens{
      {.chosen = {"b", -0.5F, 4}, .top = {{"a", -0.25F, 3}, {"b", -0.5F, 4}}, .id = 4}};
  const auto list = native_part(head, 0, "b", tokens)["completion_probabilities"];
  EXPECT_EQ(dump_json(list),
            R"([{"token":"b","logprob":-0.5,"bytes":[98],"top_logprobs":[{"token":"a","logprob":-0.25,"bytes":[97],)"
            R"("id":3},{"token":"b","logprob":-0.5,"bytes":[98],"id":4}],"id":4}])");
  head.shows_logprobs = false;
  EXPECT_FALSE(native_part(head, 0, "b", tokens).contains("completion_probabilities"));
}

TEST(native_answer, never_divides_by_nothing) {
  choice empty{0, "", finish_reason::length, {}};
  EXPECT_EQ(native_answer(native_head(), empty)["timings"]["prompt_per_second"], 0.0);
  EXPECT_EQ(native_answer(native_head(), empty)["timings"]["predicted_per_token_ms"], 0.0);
}

TEST(native_answer, is_a_list_where_several_were_asked_for) {
  auto head = native_head();
  const choice two[] = {an_answer(), an_answer()};
  EXPECT_EQ(parse_json<json>(completion_body(head, two, {}))->size(), 2u);
  EXPECT_TRUE(parse_json<json>(completion_body(head, {two, 1}, {}))->is_object());
  head.is_list = true;
  EXPECT_TRUE(parse_json<json>(completion_body(head, {two, 1}, {}))->is_array());
}

TEST(native_answer, is_streamed_as_parts_and_an_end_without_a_word_after_it) {
  event_writer writer(native_head(), false, event_id{.choices = std::vector<event_id::position>(1)});
  EXPECT_EQ(writer.first(0), "");
  EXPECT_THAT(writer.delta(0, "a"), HasSubstr(R"(data: {"index":0,"content":"a","tokens":[],"stop":false,)"));
  choice end = an_answer();
  end.text.clear();
  EXPECT_THAT(writer.finish_native(end), HasSubstr(R"("content":"","tokens":[],"stop":true,)"));
  EXPECT_EQ(writer.done(), "");
}

TEST(pick_fields, takes_whole_objects_too) {
  const auto object = *parse_json<json>(R"({"a":{"b":1},"c":2})");
  const std::vector<std::string> paths = {"a", "c/d", "", "a/b"};
  EXPECT_EQ(dump_json(pick_fields(object, paths)), R"({"a":{"b":1},"a/b":1})");
}

TEST(native_slots, show_answers_and_free_places_and_of_others_only_that_there_are_some) {
  const std::vector<slot_report> all = {
      {.task = 7, .details = {}},
      {.task = 9, .details = slot_report::detail{.tokens_count = 3, .tokens_max = 10}},
      {.task = 12, .details = slot_report::detail{.tokens_count = 3}}};
  const auto slots = json::parse(slots_body(all, 1000, 4096));
  ASSERT_EQ(slots.size(), 3 + idle_slots_shown_max);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    EXPECT_EQ(slots[i]["id"], i);
    EXPECT_EQ(slots[i]["is_processing"], i < 3);
    EXPECT_EQ(slots[i]["n_ctx"], 4096);
  }
  EXPECT_FALSE(slots[0].contains("params"));
  EXPECT_FALSE(slots[0].contains("next_token"));
  EXPECT_EQ(slots[1]["next_token"][0]["n_remain"], 7);
  EXPECT_EQ(slots[2]["next_token"][0]["n_remain"], -1);
  EXPECT_EQ(json::parse(slots_body(all, 3, 4096)).size(), 3u);
}

TEST(native_slots, leave_out_answers_that_only_wait) {
  const std::vector<slot_report> all = {
      {.task = 7, .details = {}}, {.task = 9, .details = {}}, {.task = 12, .has_text = true, .details = {}}};
  const auto slots = json::parse(slots_body(all, 2, 4096));
  ASSERT_EQ(slots.size(), 2U);
  EXPECT_EQ(slots[0]["id_task"], 12) << "it has text, so it runs";
  EXPECT_EQ(slots[1]["id_task"], 7);
}

}  // namespace
}  // namespace redline::api
