#include "actors/http/shapes/openai/prompt_fields.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/http/shapes/openai/request.hpp"

namespace redline::api {
namespace {

using ::testing::ElementsAre;

checked<generation_request> completion(const std::string& more) {
  return parse_completion_request("{\"model\":\"m\",\"prompt\":\"p\"" + (more.empty() ? "" : "," + more) + "}");
}

TEST(completion_request, takes_prompts_of_every_shape) {
  const auto prompts_of = [](const std::string& prompt) {
    const auto request = parse_completion_request("{\"prompt\":" + prompt + "}");
    EXPECT_TRUE(request) << request.error().message;
    return request->prompts;
  };
  using tokens = std::vector<token>;
  EXPECT_THAT(prompts_of(R"("a")"), ElementsAre(prompt_input("a")));
  EXPECT_THAT(prompts_of(R"("")"), ElementsAre(prompt_input("")));
  EXPECT_THAT(prompts_of(R"(["a", "b"])"), ElementsAre(prompt_input("a"), prompt_input("b")));
  EXPECT_THAT(prompts_of("[1, 2]"), ElementsAre(prompt_input(tokens{1, 2})));
  EXPECT_THAT(prompts_of(R"([[1], [2, 3], "x"])"),
              ElementsAre(prompt_input(tokens{1}), prompt_input(tokens{2, 3}), prompt_input("x")));
}

TEST(completion_request, bounds_prompts_and_answers) {
  std::string list = "[\"a\"";
  for (int n = 1; n < 32; ++n) list += ",\"a\"";
  EXPECT_TRUE(parse_completion_request("{\"prompt\":" + list + "], \"n\": 2}"));
  EXPECT_EQ(parse_completion_request("{\"prompt\":" + list + "], \"n\": 3}").error().param, "n");
  EXPECT_EQ(parse_completion_request("{\"prompt\":" + list + ",\"a\"]}").error().param, "prompt");
  request_limits limits;
  limits.prompt_tokens_max = 3;
  EXPECT_TRUE(parse_completion_request(R"({"prompt":[[1,2],[3]]})", limits));
  EXPECT_EQ(parse_completion_request(R"({"prompt":[[1,2],[3,4]]})", limits).error().param, "prompt");
}

TEST(completion_request, takes_what_comes_after_a_gap) {
  const auto request = completion(R"("suffix": "after")");
  ASSERT_TRUE(request) << request.error().message;
  ASSERT_TRUE(request->fill);
  EXPECT_EQ(request->fill->suffix, "after");
  EXPECT_EQ(request->sampling.temperature, 0) << "the most probable code";
  EXPECT_EQ(completion(R"("suffix": "after", "temperature": 0.5)")->sampling.temperature, 0.5F);
  EXPECT_FALSE(completion(R"("suffix": "")")->fill);
  EXPECT_EQ(parse_completion_request(R"({"prompt": [1, 2], "suffix": "x"})").error().param, "suffix");
}

TEST(fim_request, is_read_as_mistral_has_it) {
  const auto request = parse_fim_request(
      R"({"model": "codestral", "prompt": "a", "suffix": "b", "random_seed": 7, "max_tokens": 9, "min_tokens": 1})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->fill->suffix, "b");
  EXPECT_EQ(request->sampling.seed, 7u);
  EXPECT_TRUE(request->has_seed);
  EXPECT_EQ(parse_fim_request(R"({"prompt": "a"})")->fill->suffix, "");
  EXPECT_FALSE(parse_fim_request(R"({"prompt": ["a", "b"], "suffix": "c"})"));
  EXPECT_FALSE(parse_fim_request(R"({"suffix": "c"})"));
}

// The request that the editor plugin sends, according to its source.
TEST(infill_request, is_read_as_llama_vim_sends_it) {
  const auto request = parse_infill_request(R"({"id_slot": 0, "input_prefix": "def f():\n", "input_suffix": "\nx\n",
      "input_extra": [{"text": "import a\n", "time": 1, "filename": "a.py"}], "prompt": "    ret", "n_predict": 128,
      "stop": [], "n_indent": 4, "top_k": 40, "top_p": 0.90, "stream": false, "samplers": ["top_k", "top_p", "infill"],
      "cache_prompt": true, "t_max_prompt_ms": 500, "t_max_predict_ms": 1000,
      "response_fields": ["content", "timings/prompt_n", "truncated", "tokens_cached"]})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_THAT(request->prompts, ElementsAre(prompt_input("def f():\n    ret")));
  EXPECT_EQ(request->fill->suffix, "\nx\n");
  ASSERT_EQ(request->fill->context.size(), 1u);
  EXPECT_EQ(request->fill->context[0].path, "a.py");
  EXPECT_EQ(request->tokens_max, 128u);
  EXPECT_EQ(request->indent_min, 4u);
  EXPECT_EQ(request->predict_ms_max, 1000u);
  EXPECT_EQ(request->sampling.temperature, 0);
  EXPECT_EQ(request->response_fields.size(), 4u);
  EXPECT_THAT(request->ignored, ElementsAre("id_slot", "samplers", "t_max_prompt_ms"));
}

TEST(infill_request, warms_the_cache_as_llama_vim_and_llama_vscode_ask) {
  const auto request = parse_infill_request(R"({"id_slot": 0, "input_prefix": "", "input_suffix": "", "prompt": "",
      "input_extra": [{"text": "x", "filename": "f"}], "n_predict": 0, "temperature": 0.0, "samplers": [],
      "cache_prompt": true, "t_max_prompt_ms": 1, "t_max_predict_ms": 1, "response_fields": [""], "stream": false})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_TRUE(request->computes_only);
  EXPECT_THAT(request->response_fields, ElementsAre(""));
}

TEST(infill_request, refuses_bad_fields) {
  const auto refused = [](const std::string& more) {
    const auto request = parse_infill_request("{\"input_prefix\": \"a\", \"input_suffix\": \"b\", " + more + "}");
    return request ? std::string("none") : request.error().param;
  };
  EXPECT_EQ(parse_infill_request("{}").error().param, "input_prefix");
  EXPECT_EQ(refused(R"("input_suffix2": 1)"), "none");
  EXPECT_EQ(refused(R"("input_extra": {})"), "input_extra");
  EXPECT_EQ(refused(R"("input_extra": [5])"), "input_extra[0]");
  EXPECT_EQ(refused(R"("input_extra": [{"filename": "x"}])"), "input_extra[0].text");
  EXPECT_EQ(refused(R"("n_indent": -1)"), "n_indent");
  EXPECT_EQ(refused(R"("response_fields": [1])"), "response_fields[0]");
  EXPECT_EQ(refused(R"("n_probs": 21)"), "n_probs");
}

}  // namespace
}  // namespace redline::api
