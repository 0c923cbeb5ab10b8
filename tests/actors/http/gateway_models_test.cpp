// A gateway that serves two models.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/actors/http/gateway_fixture.hpp"
#include "tests/support/tiny_model.hpp"
#include "tests/support/tool_templates.hpp"

namespace redline::actors {
namespace {

using json = nlohmann::json;
using ::testing::HasSubstr;

/// A gateway with a second model, which has its own tokens.
class gateway_of_two : public gateway_alone {
 protected:
  void SetUp() override {
    gateway_alone::SetUp();
    auto tiny = test::make_tiny_model({.context = 256});
    test::add_program_tokens(tiny);
    tiny.metadata["tokenizer.chat_template"] = std::string("{% for m in messages %}[{{ m['content'] }}]{% endfor %}");
    other = *text::tokenizer::from_file(*tiny.file());
    auto model = make_model("zeta", other, 2);
    model->aliases = {"coder", "gpt-4o"};
    services->models->publish(std::move(model));
  }
  json ask_and_read(const std::string& path, const json& body) {
    const auto id = ask("POST", path, body);
    run();
    EXPECT_EQ(status_of(id), 200U) << answer_to(id).value_or(http_respond{}).body;
    return json::parse(answer_to(id).value_or(http_respond{}).body, nullptr, false);
  }

  std::shared_ptr<const text::tokenizer> other;
};

TEST_F(gateway_of_two, answers_each_model_by_its_own_tokenizer_and_template) {
  const std::string text = "<copy lines";
  ASSERT_NE(tokenizer->encode(text), other->encode(text));
  EXPECT_EQ(ask_and_read("/tokenize", {{"content", text}})["tokens"], json(tokenizer->encode(text)))
      << "without a name, the first one is used";
  EXPECT_EQ(ask_and_read("/tokenize", {{"content", text}, {"model", "tiny"}})["tokens"], json(tokenizer->encode(text)));
  EXPECT_EQ(ask_and_read("/tokenize", {{"content", text}, {"model", "coder"}})["tokens"], json(other->encode(text)));
  const token last = static_cast<token>(other->size()) - 1;  // the other model has no such token
  EXPECT_EQ(ask_and_read("/detokenize", {{"tokens", {last}}, {"model", "zeta"}})["content"], other->piece(last, true));
  const auto unknown = ask("POST", "/detokenize", {{"tokens", {last}}, {"model", "tiny"}});
  run();
  EXPECT_EQ(status_of(unknown), 400U);
  const json messages = {{{"role", "user"}, {"content", "hi"}}};
  EXPECT_EQ(ask_and_read("/apply-template", {{"messages", messages}, {"model", "gpt-4o"}})["prompt"], "[hi]");
}

TEST_F(gateway_of_two, opens_a_session_for_the_model_that_a_request_names) {
  const std::string text = "<copy lines";
  for (const auto& [name, canonical, by] :
       {std::tuple{"tiny", "tiny", tokenizer}, std::tuple{"gpt-4o", "zeta", other}}) {
    sent.clear();
    const auto id = ask("POST", "/v1/completions", {{"prompt", text}, {"model", name}, {"max_tokens", 8}});
    run();
    ASSERT_EQ(all<verify_run>().size(), 1U);
    EXPECT_EQ(all<verify_run>()[0].round.tail, by->encode(text));
    tell(session_finished{.session = session_in_progress()});
    run();
    ASSERT_EQ(status_of(id), 200U);
    const json answer = json::parse(answer_to(id)->body);
    EXPECT_EQ(answer["model"], canonical);
    EXPECT_EQ(answer["system_fingerprint"], services->models->snapshot()->find(name)->fingerprint);
  }
}

TEST_F(gateway_of_two, goes_on_with_an_answer_whose_model_has_left) {
  const auto id = ask("POST", "/v1/completions", {{"prompt", "x"}, {"model", "coder"}, {"logprobs", 0}});
  run();
  EXPECT_TRUE(services->models->remove(2));
  const token last = static_cast<token>(other->size()) - 1;
  tell(session_text{
      .session = session_in_progress(), .text = "<gen", .tokens = {last}, .logprobs = {{.logprob = -1.0F}}});
  tell(session_finished{.session = session_in_progress()});
  run();
  ASSERT_EQ(status_of(id), 200U);
  EXPECT_THAT(answer_to(id)->body, HasSubstr("<gen"));
  const auto late = ask("POST", "/v1/completions", {{"prompt", "x"}, {"model", "coder"}});
  run();
  EXPECT_EQ(status_of(late), 404U);
}

TEST_F(gateway_of_two, says_which_models_there_are_when_asked_for_another) {
  for (const auto& id :
       {ask("POST", "/v1/completions", {{"prompt", "x"}, {"model", "my-model"}}), ask("GET", "/v1/models/my-model")}) {
    run();
    ASSERT_EQ(status_of(id), 404U);
    EXPECT_EQ(json::parse(answer_to(id)->body)["error"]["message"],
              "no model 'my-model'; available: tiny, zeta. The operator of the server can add a name with --alias, or "
              "accept any name with --accept-any-model.");
  }
}

TEST_F(gateway_of_two, lists_what_a_model_understands_where_that_is_little) {
  auto model = make_model("demo", other, 3);
  model->known_phrases = {"Set `A` to 1."};
  services->models->publish(std::move(model));
  const auto id = ask("GET", "/v1/models");
  run();
  const auto list = json::parse(answer_to(id)->body)["data"];
  ASSERT_EQ(list[0]["id"], "demo");
  EXPECT_EQ(list[0]["meta"]["known_phrases"], json({"Set `A` to 1."}));
  EXPECT_FALSE(list[1]["meta"].contains("known_phrases"));
}

TEST_F(gateway_of_two, keeps_an_edit_sessions_model) {
  const auto opened =
      ask("POST", "/v1/redline/sessions", {{"model", "coder"}, {"files", {{{"path", "a"}, {"text", "<copy lines"}}}}});
  run();
  ASSERT_EQ(status_of(opened), 201U);
  const json shown = json::parse(answer_to(opened)->body);
  EXPECT_EQ(shown["model"], "zeta");
  EXPECT_EQ(shown["files"][0]["tokens"], other->encode("<copy lines").size());
  EXPECT_TRUE(services->models->remove(2));
  sent.clear();
  const auto id = ask("POST", "/v1/redline/sessions/" + shown["id"].get<std::string>() + "/complete", {{"path", "a"}});
  run();
  const auto asked = all<verify_run>();
  ASSERT_EQ(asked.size(), 1U) << answer_to(id).value_or(http_respond{}).body;
  EXPECT_THAT(asked[0].round.tail, testing::Contains(other->encode("<copy lines")[0]));
}

TEST_F(gateway_of_two, lists_models_with_their_aliases) {
  const auto id = ask("GET", "/v1/models");
  run();
  const json list = json::parse(answer_to(id)->body)["data"];
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0]["id"], "tiny");
  EXPECT_FALSE(list[0].contains("aliases"));
  EXPECT_EQ(list[1]["id"], "zeta");
  EXPECT_EQ(list[1]["aliases"], json({"coder", "gpt-4o"}));
  const auto one = ask("GET", "/v1/models/coder");
  run();
  EXPECT_EQ(json::parse(answer_to(one)->body), list[1]);
  EXPECT_EQ(call("GET", "/v1/models/other"), 404U);
  services->accept_any_model = true;
  const auto any = ask("GET", "/v1/models/other");
  run();
  EXPECT_EQ(json::parse(answer_to(any)->body)["id"], "tiny");
}

}  // namespace
}  // namespace redline::actors
