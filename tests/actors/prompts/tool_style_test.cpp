#include "actors/prompts/tool_style.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/support/tool_templates.hpp"

namespace redline::actors {
namespace {

using json = nlohmann::ordered_json;

jinja::chat_input base() {
  jinja::chat_input input;
  input.bos_token = "<s>";
  input.eos_token = "</s>";
  return input;
}

jinja::chat_template parse(std::string_view source) {
  auto chat = jinja::chat_template::parse(std::string(source));
  EXPECT_TRUE(chat) << chat.error().describe();
  return *chat;
}

tool_style style_of(std::string_view source) { return tool_style::of(parse(source), base()); }

/// A conversation with a call, as in a request.
json conversation(json content) {
  json call = {{"id", "call_abcdefghij"},
               {"type", "function"},
               {"function", {{"name", "read"}, {"arguments", R"({"path": "a \"b\"", "n": 2})"}}}};
  json calling = {{"role", "assistant"}, {"content", std::move(content)}};
  calling["tool_calls"] = json::array({call});
  return json::array({{{"role", "user"}, {"content", "q"}},
                      calling,
                      {{"role", "tool"}, {"tool_call_id", "call_abcdefghij"}, {"content", "result"}}});
}

std::string render(std::string_view source, const json& messages) {
  const auto chat = parse(source);
  const auto prepared = tool_style::of(chat, base()).messages_for_template(messages);
  EXPECT_TRUE(prepared) << prepared.error().describe();
  jinja::chat_input input = base();
  input.messages = *prepared;
  const auto text = chat.render(input);
  EXPECT_TRUE(text) << text.error().describe();
  return text ? *text : "";
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

TEST(tool_style, sees_what_each_family_does) {
  struct family {
    std::string_view source, format;
    bool shows_tools;
  };
  for (const auto& f :
       {family{test::hermes_template, "hermes", true}, family{test::elements_template, "qwen3-coder", true},
        family{test::llama_template, "llama3", true}, family{test::mistral_template, "mistral", true},
        family{test::deepseek_template, "deepseek", false}, family{test::harmony_template, "harmony", true},
        family{test::hermes_tools_template, "hermes", true}, family{test::thinking_template, "hermes", true}}) {
    const auto style = style_of(f.source);
    ASSERT_NE(style.format(), nullptr) << f.format;
    EXPECT_EQ(style.format()->name, f.format);
    EXPECT_EQ(style.shows_tools(), f.shows_tools) << f.format;
    EXPECT_TRUE(style.shows_calls()) << f.format;
    EXPECT_FALSE(style.why_no_tools()) << f.format;
  }
}

TEST(tool_style, gives_arguments_as_the_template_takes_them) {
  EXPECT_TRUE(
      has(render(test::hermes_template, conversation(nullptr)),
          "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a \\\"b\\\"\", \"n\": 2}}\n</tool_call>"));
  EXPECT_TRUE(has(render(test::elements_template, conversation(nullptr)),
                  "<parameter=path>\na \"b\"\n</parameter>\n<parameter=n>\n2\n</parameter>"));
  EXPECT_TRUE(
      has(render(test::llama_template, conversation(nullptr)), R"("parameters": {"path": "a \"b\"", "n": 2}})"));
  EXPECT_TRUE(has(render(test::deepseek_template, conversation(nullptr)),
                  "```json\n{\"path\": \"a \\\"b\\\"\", \"n\": 2}\n```"));
  EXPECT_TRUE(has(render(test::harmony_template, conversation(nullptr)),
                  "<|message|>{\"path\": \"a \\\"b\\\"\", \"n\": 2}<|call|>"));
}

TEST(tool_style, writes_calls_into_the_content_for_a_template_that_shows_tools_but_no_calls) {
  const auto style = style_of(test::granite_template);
  ASSERT_NE(style.format(), nullptr);
  EXPECT_EQ(style.format()->name, "granite");
  EXPECT_TRUE(style.shows_tools());
  EXPECT_FALSE(style.shows_calls());
  EXPECT_FALSE(style.why_no_tools());
  auto messages = conversation("I look. ");
  messages[1]["tool_calls"].push_back(messages[1]["tool_calls"][0]);
  const auto text = render(test::granite_template, messages);
  const std::string call = R"({"name": "read", "arguments": {"path": "a \"b\"", "n": 2}})";
  EXPECT_TRUE(has(text, "<|end_of_role|>I look. <|tool_call|>[" + call + ", " + call + "]<|end_of_text|>")) << text;
  EXPECT_TRUE(has(text, "<|start_of_role|>tool<|end_of_role|>result")) << text;
}

TEST(tool_style, gives_an_empty_list_to_a_template_that_goes_through_tools_unasked) {
  EXPECT_EQ(style_of(test::hermes_tools_template).no_tools(), json::array());
  EXPECT_TRUE(style_of(test::hermes_template).no_tools().is_null());
  EXPECT_TRUE(style_of(test::granite_template).no_tools().is_null());
}

TEST(tool_style, gives_thoughts_by_the_name_and_in_the_place_that_the_template_reads) {
  auto messages = conversation(nullptr);
  messages[1]["reasoning_content"] = "It is in a.";
  EXPECT_TRUE(
      has(render(test::harmony_template, messages),
          "<|start|>assistant<|channel|>analysis<|message|>It is in a.<|end|><|start|>assistant to=functions.read"));
  EXPECT_TRUE(has(render(test::thinking_template, messages), "<think>\nIt is in a.\n</think>\n\n\n<tool_call>"));
  // gpt-oss's template refuses a message with both content and reasoning.
  messages[1]["content"] = "I look.";
  EXPECT_TRUE(has(render(test::harmony_template, messages), "analysis<|message|>It is in a.\n\nI look.<|end|>"));
  messages[1].erase("reasoning_content");
  EXPECT_TRUE(has(render(test::harmony_template, messages), "analysis<|message|>I look.<|end|>"));
}

TEST(tool_style, shortens_ids_where_the_template_insists_on_nine_characters) {
  const auto text = render(test::mistral_template, conversation(nullptr));
  const auto id = tools::shorten_call_id("call_abcdefghij");
  EXPECT_TRUE(has(text, "\"id\": \"" + id + "\"")) << text;
  EXPECT_TRUE(has(text, "\"call_id\": \"" + id + "\"")) << text;
}

TEST(tool_style, keeps_what_is_said_beside_a_call) {
  for (const auto source :
       {test::hermes_template, test::elements_template, test::deepseek_template, test::harmony_template}) {
    const auto text = render(source, conversation("I look."));
    EXPECT_TRUE(has(text, "I look.")) << text;
    EXPECT_TRUE(has(text, "read")) << text;
  }
}

TEST(tool_style, keeps_arguments_that_are_no_json_as_the_text_they_are) {
  auto messages = conversation(nullptr);
  messages[1]["tool_calls"][0]["function"]["arguments"] = "{broken";
  EXPECT_TRUE(has(render(test::hermes_template, messages), "\"arguments\": \"{broken\"}"));
}

TEST(tool_style, says_why_a_template_without_tools_has_none) {
  const auto style = style_of(jinja::chatml_template);
  ASSERT_TRUE(style.why_no_tools());
  EXPECT_TRUE(has(style.why_no_tools()->context, "does not support tools"));
  const auto refused = style.messages_for_template(conversation(nullptr));
  ASSERT_FALSE(refused);
  EXPECT_TRUE(has(refused.error().context, "does not show the calls"));
}

TEST(tool_style, names_the_forms_it_knows_when_a_template_has_another) {
  const auto style = style_of(
      "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}{{ m.content }}{% endfor %}");
  ASSERT_TRUE(style.why_no_tools());
  EXPECT_TRUE(has(style.why_no_tools()->context, "hermes"));
}

TEST(tool_style, introduces_tools_that_the_template_does_not_show) {
  tools::tool_set set;
  set.all.push_back({.name = "read", .description = "Reads a file."});
  const auto text = style_of(test::deepseek_template).introduce(tool_style::tools_for_template(set));
  EXPECT_TRUE(has(text, "Reads a file."));
  EXPECT_TRUE(
      has(text, "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME\n```json\nARGUMENTS\n```"));
}

TEST(tool_style, a_template_that_fails_by_itself_has_no_tools) {
  const auto style = style_of("<tool_call> \"arguments {{ raise_exception('no') }}");
  EXPECT_TRUE(style.why_no_tools());
  EXPECT_FALSE(style.shows_calls());
}

}  // namespace
}  // namespace redline::actors
