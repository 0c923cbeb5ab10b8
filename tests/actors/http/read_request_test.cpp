// What the gateway refuses of requests for answers before anything is computed.

#include "actors/http/read_request.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/actors/http/gateway_fixture.hpp"

namespace redline::actors {
namespace {

using json = nlohmann::json;
using ::testing::HasSubstr;

TEST_F(gateway_alone, refuses_to_repeat_prompts_without_bound) {
  services->answer_bytes_max = 10'000;
  const auto ask_with = [&](const json& more) {
    json body{{"prompt", std::string(200, 'x')}, {"max_tokens", 4}, {"n", 32}};
    body.update(more);
    const auto id = ask("POST", "/v1/completions", body);
    run();
    return answer_to(id);
  };
  EXPECT_FALSE(ask_with({{"echo", true}}));
  const auto echoed = ask_with({{"echo", true}, {"prompt", std::string(400, 'x')}});
  ASSERT_TRUE(echoed);
  EXPECT_THAT(echoed->body, HasSubstr("answer_too_large"));
  const auto ids = ask_with({{"return_token_ids", true}, {"prompt", json::array({std::vector<int>(200, 5)})}});
  ASSERT_TRUE(ids);
  EXPECT_THAT(ids->body, HasSubstr("answer_too_large"));
}

TEST_F(gateway_alone, requests_in_work_hold_so_many_bytes_of_a_tenant_and_in_sum) {
  services->request_limits = {.tenant_bytes_max = 400'000, .bytes_max = 700'000};
  const std::vector<std::string> keys{"ann:sk-key-of-ann", "bob:sk-key-of-bob", "cid:sk-key-of-cid"};
  services->keys->replace(*api_keys::load(keys));
  const auto ask_as = [&](const std::string& name, const json& more) {
    key = "sk-key-of-" + name;
    json body{{"prompt", "xyz"}, {"max_tokens", 4}, {"n", 8}};
    if (more.is_object()) body.update(more);
    const auto id = ask("POST", "/v1/completions", body);
    run();
    return answer_to(id).value_or(http_respond{.status = 0});
  };
  // Eight answers take about 260,000 bytes.
  EXPECT_EQ(ask_as("ann", {}).status, 0U);
  const auto own = ask_as("ann", {});
  EXPECT_EQ(own.status, 429U);
  EXPECT_THAT(own.body, HasSubstr("400000 bytes for bodies, prompts and answers (--requests-mib)"));
  EXPECT_EQ(ask_as("bob", {}).status, 0U);
  const auto all = ask_as("cid", {});
  EXPECT_EQ(all.status, 503U);
  EXPECT_THAT(all.body, HasSubstr("700000 bytes"));
  const auto alone = ask_as("cid", {{"prompt", std::string(100'000, 'x')}, {"n", 1}});
  EXPECT_EQ(alone.status, 413U) << "while it is read";
  EXPECT_EQ(metric("redline_request_bytes_refused_total"), 3);
  EXPECT_GT(metric("redline_request_bytes"), 500'000);
  for (const auto& m : all_sessions()) tell(session_finished{.session = m, .reason = finish_reason::stop});
  run();
  EXPECT_EQ(metric("redline_request_bytes"), 0);
  EXPECT_EQ(ask_as("cid", {}).status, 0U);
}

TEST_F(gateway_alone, copies_no_prompt_of_megabytes_for_many_answers) {
  const auto id = ask("POST", "/v1/completions",
                      {{"prompt", json::array({std::vector<int>(140'000, 5)})}, {"max_tokens", 4}, {"n", 32}});
  run();
  EXPECT_EQ(status_of(id), 400U);
  EXPECT_THAT(answer_to(id)->body, HasSubstr("4480000; expected at most 4194304"));
}

TEST_F(gateway_alone, names_the_field_that_names_a_token_there_is_none_of) {
  const std::pair<const char*, json> table[] = {
      {"logit_bias", {{"999999", 1}}}, {"stop_token_ids", {999999}}, {"allowed_token_ids", {999999}}};
  for (const auto& [field, value] : table) {
    const auto asked = ask("POST", "/v1/completions", {{"prompt", "x"}, {field, value}});
    run();
    EXPECT_EQ(status_of(asked), 400U) << field;
    EXPECT_EQ(json::parse(answer_to(asked)->body)["error"]["param"], field);
  }
}

TEST_F(gateway_alone, refuses_what_cannot_fit_without_making_it_tokens) {
  const std::string long_text(1U << 20, 'x');
  const auto chat = ask("POST", "/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", long_text}}}}});
  const auto text = ask("POST", "/v1/completions", {{"prompt", long_text}});
  const auto predicted = ask("POST", "/v1/chat/completions",
                             {{"messages", {{{"role", "user"}, {"content", "hi"}}}},
                              {"prediction", {{"type", "content"}, {"content", long_text}}}});
  run();
  for (const auto id : {chat, text, predicted}) {
    EXPECT_EQ(status_of(id), 400U);
    EXPECT_THAT(answer_to(id)->body, HasSubstr("context_length_exceeded"));
    EXPECT_THAT(answer_to(id)->body, HasSubstr("bytes, which are at least"));
  }
  EXPECT_TRUE(all<verify_run>().empty());
}

TEST_F(gateway_alone, speaks_of_the_context_when_a_prediction_is_too_long) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "x ";
  const auto id = ask("POST", "/v1/chat/completions",
                      {{"messages", {{{"role", "user"}, {"content", "hi"}}}},
                       {"prediction", {{"type", "content"}, {"content", text}}}});
  run();
  EXPECT_EQ(status_of(id), 400U);
  const json error = json::parse(answer_to(id)->body)["error"];
  EXPECT_EQ(error["code"], "context_length_exceeded");
  EXPECT_THAT(error["message"].dump(),
              HasSubstr("maximum context length is 256 tokens. However, 'prediction.content' has"));
}

TEST_F(gateway_alone, names_the_field_that_has_a_token_which_the_model_has_not) {
  const std::pair<const char*, json> wrong[] = {
      {"logit_bias", {{"5000", 1}}}, {"stop_token_ids", {5000}}, {"allowed_token_ids", {5000}}};
  for (const auto& [field, value] : wrong) {
    const auto id =
        ask("POST", "/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", "hi"}}}}, {field, value}});
    run();
    ASSERT_EQ(status_of(id), 400U);
    const auto error = json::parse(answer_to(id)->body)["error"];
    EXPECT_EQ(error["param"], field);
    EXPECT_THAT(error["message"].dump(), HasSubstr("found 5000"));
  }
}

TEST_F(gateway_alone, refuses_to_repeat_a_prompt_in_each_of_llama_cpps_answers_without_bound) {
  const std::string prompt(200, 'p');
  services->answer_bytes_max = 300;
  const auto ask_with = [&](const json& more) {
    json body{{"prompt", prompt}, {"n_predict", 4}};
    body.update(more);
    const auto id = ask("POST", "/completion", body);
    run();
    return answer_to(id);
  };
  EXPECT_FALSE(ask_with(json::object()));
  const auto refused = ask_with({{"n_cmpl", 2}});
  ASSERT_TRUE(refused) << "each answer has the prompt";
  EXPECT_THAT(refused->body, HasSubstr("answer_too_large"));
  EXPECT_FALSE(ask_with({{"n_cmpl", 2}, {"response_fields", {"content"}}}));
}

}  // namespace
}  // namespace redline::actors
