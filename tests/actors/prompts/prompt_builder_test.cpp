#include "actors/prompts/prompt_builder.hpp"

#include <gtest/gtest.h>

#include "tests/support/tiny_model.hpp"
#include "tests/support/tool_templates.hpp"

namespace redline::actors {
namespace {

using json = nlohmann::ordered_json;

class prompt_builder_test : public testing::Test {
 protected:
  prompt_builder_test()
      : tokenizer(*text::tokenizer::from_file(*test::make_tiny_model().file())),
        prompts(*prompt_builder::make(tokenizer)) {}

  std::vector<token> chat(const std::string& message) const {
    return prompts.tokens(*prompts.render(json{{{"role", "user"}, {"content", message}}}, true, 0));
  }
  /// The text of a prompt, special tokens included.
  std::string text_of(const std::vector<token>& prompt) const {
    return *tokenizer->decode(prompt, {.render_special = true});
  }

  std::shared_ptr<const text::tokenizer> tokenizer;
  prompt_builder prompts;
};

TEST_F(prompt_builder_test, reads_a_file_as_a_conversation_with_the_same_text_does) {
  for (const std::string message : {"Rename x.\n```\nx = 1\n```", "\n  indented\n\n", "\u00e9"}) {
    EXPECT_EQ(*prompts.message_with_file(message, 0), chat(message)) << message;
  }
}

TEST_F(prompt_builder_test, takes_special_tokens_in_a_file_as_text) {
  const std::string special(tokenizer->vocab().text(*tokenizer->vocab().eos()));
  const auto prompt = *prompts.message_with_file("a " + special + " b", 0);
  const auto plain = *prompts.message_with_file("a b", 0);
  const auto count = [&](const std::vector<token>& in) {
    return std::count(in.begin(), in.end(), *tokenizer->vocab().eos());
  };
  EXPECT_EQ(count(prompt), count(plain));
  EXPECT_NE(text_of(prompt).find("a " + special + " b"), std::string::npos);
}

TEST_F(prompt_builder_test, puts_nothing_around_a_text_but_what_the_model_wants) {
  EXPECT_EQ(prompts.text("abc"), tokenizer->encode("abc", {.parse_special = true, .add_bos_eos = true}));
}

TEST_F(prompt_builder_test, gives_templates_an_empty_text_where_a_vocabulary_has_no_beginning) {
  ASSERT_FALSE(tokenizer->vocab().bos());
  const prompt_builder builder(tokenizer, *jinja::chat_template::parse("{{ bos_token + messages[0].content }}"));
  const auto rendered = builder.render(json{{{"role", "user"}, {"content", "hi"}}}, true, 0);
  ASSERT_TRUE(rendered) << rendered.error().describe();
  EXPECT_EQ(rendered->text, "hi");
}

TEST_F(prompt_builder_test, takes_special_tokens_in_messages_as_text) {
  const std::string end(tokenizer->vocab().text(*tokenizer->vocab().eos()));
  const std::string message = "ends with " + end + end + ", and \uFDD0 too";
  const auto prompt = chat(message);
  const auto plain = chat("ends");
  const auto count = [&](const std::vector<token>& in) {
    return std::count(in.begin(), in.end(), *tokenizer->vocab().eos());
  };
  EXPECT_EQ(count(prompt), count(plain));
  EXPECT_NE(text_of(prompt).find(message), std::string::npos);
  const auto shown = prompts.render(json{{{"role", "user"}, {"content", message}}}, true, 0)->text_without_marks();
  EXPECT_NE(shown.find(message), std::string::npos);
}

TEST_F(prompt_builder_test, refuses_messages_that_leave_no_mark_for_control_tokens) {
  std::string message(tokenizer->vocab().text(*tokenizer->vocab().eos()));
  for (char last = '\x90'; last <= '\xAF'; ++last) message += std::string("\xEF\xB7") + last;
  const auto rendered = prompts.render(json{{{"role", "user"}, {"content", message}}}, true, 0);
  ASSERT_FALSE(rendered);
  EXPECT_EQ(rendered.error().code, errc::invalid_argument);
}

TEST_F(prompt_builder_test, finds_the_turns_of_a_conversation_that_spells_control_tokens) {
  const std::string end(tokenizer->vocab().text(*tokenizer->vocab().eos()));
  const auto turns_of = [&](const std::string& word) {
    const json messages{{{"role", "system"}, {"content", "s"}},
                        {{"role", "user"}, {"content", "one " + word}},
                        {{"role", "assistant"}, {"content", "1"}},
                        {{"role", "user"}, {"content", "two"}}};
    const auto rendered = *prompts.render(messages, true, 0);
    return prompts.turns(rendered, prompts.tokens(rendered), 0);
  };
  EXPECT_EQ(turns_of("word").size(), 1U);
  EXPECT_EQ(turns_of(end).size(), 1U);
}

TEST_F(prompt_builder_test, ends_where_the_last_message_is_to_be_continued) {
  const json messages =
      json::array({{{"role", "user"}, {"content", "Hi"}}, {{"role", "assistant"}, {"content", "Hel "}}});
  const auto end_of = [&](std::string_view source) {
    const prompt_builder builder(tokenizer, *jinja::chat_template::parse(std::string(source)));
    const auto rendered = builder.render_to_continue(messages, 0);
    EXPECT_TRUE(rendered) << rendered.error().describe();
    return rendered ? rendered->text_without_marks() : "";
  };
  EXPECT_EQ(end_of(jinja::chatml_template), "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHel ");
  EXPECT_TRUE(end_of(test::harmony_template).ends_with("<|start|>assistant<|channel|>final<|message|>Hel "));
  EXPECT_TRUE(end_of(test::thinking_template).ends_with("<|im_start|>assistant\n<think>\n\n</think>\n\nHel "));
  EXPECT_TRUE(end_of("{% for m in messages %}[{{ m.content | trim }}]{% endfor %}").ends_with("[Hel "))
      << "the end of the begun part is not the end of a text";
  const auto why = [&](std::string_view source, const json& of) {
    const prompt_builder builder(tokenizer, *jinja::chat_template::parse(std::string(source)));
    const auto rendered = builder.render_to_continue(of, 0);
    return rendered ? std::string() : rendered.error().context;
  };
  EXPECT_NE(why("{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}", messages).find("does not repeat"),
            std::string::npos);
  EXPECT_NE(why(jinja::chatml_template, json::array({messages[0]})).find("expected an assistant message"),
            std::string::npos);
}

TEST_F(prompt_builder_test, writes_conversations_with_tools_by_their_own_template_where_there_is_one) {
  const auto parse = [](std::string_view source) { return *jinja::chat_template::parse(std::string(source)); };
  const prompt_builder both(tokenizer, parse(jinja::chatml_template), parse(test::hermes_tools_template));
  tools::tool_set set;
  set.all.push_back({.name = "f", .description = "d"});
  const json messages = json::array({{{"role", "user"}, {"content", "q"}}});
  EXPECT_EQ(both.render(messages, true, 0)->text, "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_NE(both.render(messages, true, 0, &set)->text.find("<tools>"), std::string::npos);
  ASSERT_NE(both.tools().format(), nullptr);
  EXPECT_EQ(both.tools().format()->name, "hermes");
  EXPECT_EQ(both.template_source(), jinja::chatml_template);
  // Without another template the list is empty rather than missing, so that a template can iterate over it.
  const prompt_builder one(tokenizer, parse(test::hermes_tools_template));
  const auto plain = one.render(messages, true, 0);
  ASSERT_TRUE(plain) << plain.error().describe();
  EXPECT_NE(plain->text.find("<tools>  </tools>"), std::string::npos) << plain->text;
}

TEST_F(prompt_builder_test, reads_both_templates_of_a_file_unless_it_is_given_one) {
  auto model = test::make_tiny_model();
  model.metadata["tokenizer.chat_template"] = "plain {{ messages[0].content }}";
  model.metadata["tokenizer.chat_template.tool_use"] = std::string(test::hermes_tools_template);
  const auto own = *text::tokenizer::from_file(*model.file());
  const auto made = *prompt_builder::make(own);
  tools::tool_set set;
  set.all.push_back({.name = "f", .description = "d"});
  const json messages = json::array({{{"role", "user"}, {"content", "q"}}});
  EXPECT_EQ(made.render(messages, true, 0)->text, "plain q");
  EXPECT_NE(made.render(messages, true, 0, &set)->text.find("<tools>"), std::string::npos);
  const auto given = *prompt_builder::make(own, "mine {{ messages[0].content }}");
  EXPECT_EQ(given.render(messages, true, 0)->text, "mine q");
  EXPECT_FALSE(given.render(messages, true, 0, &set)) << "it does not support tools";
  EXPECT_FALSE(prompt_builder::make(own, "{% if %}"));
}

TEST_F(prompt_builder_test, takes_special_tokens_in_tools_and_calls_as_text) {
  const prompt_builder with_tools(tokenizer, *jinja::chat_template::parse(std::string(test::hermes_template)));
  const std::string end(tokenizer->vocab().text(*tokenizer->vocab().eos()));
  const auto count = [&](const std::string& text) {
    tools::tool_set set;
    set.all.push_back({.name = "f", .description = "says " + text});
    set.all[0].parameters["properties"][text] = json{{"type", "string"}};
    json messages = json::array({{{"role", "user"}, {"content", "q"}}, {{"role", "assistant"}, {"content", nullptr}}});
    messages[1]["tool_calls"] = json::array(
        {{{"id", "1"}, {"type", "function"}, {"function", {{"name", "f"}, {"arguments", json{{text, text}}.dump()}}}}});
    const auto rendered = with_tools.render(messages, true, 0, &set);
    EXPECT_TRUE(rendered) << rendered.error().describe();
    EXPECT_NE(rendered->text_without_marks().find("says " + text), std::string::npos);
    const auto prompt = with_tools.tokens(*rendered);
    return std::count(prompt.begin(), prompt.end(), *tokenizer->vocab().eos());
  };
  EXPECT_EQ(count(end), count("plain"));
}

TEST_F(prompt_builder_test, refuses_tools_that_the_template_does_not_know) {
  tools::tool_set set;
  set.all.push_back({.name = "f"});
  const auto refused = prompts.render(json{{{"role", "user"}, {"content", "q"}}}, true, 0, &set);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::invalid_argument);
  set.call = tools::choice::none;
  EXPECT_TRUE(prompts.render(json{{{"role", "user"}, {"content", "q"}}}, true, 0, &set))
      << "the choice none needs no tools";
}

TEST_F(prompt_builder_test, introduces_tools_in_the_system_message_of_a_template_that_only_shows_calls) {
  const prompt_builder deepseek(tokenizer, *jinja::chat_template::parse(std::string(test::deepseek_template)));
  tools::tool_set set;
  set.all.push_back({.name = "f", .description = "Does f."});
  for (const json& system : {json(), json{{"role", "system"}, {"content", "Be brief."}}}) {
    json messages = json::array({{{"role", "user"}, {"content", "q"}}});
    if (!system.is_null()) messages.insert(messages.begin(), system);
    const auto rendered = deepseek.render(messages, true, 0, &set);
    ASSERT_TRUE(rendered) << rendered.error().describe();
    EXPECT_NE(rendered->text.find("Does f."), std::string::npos);
    EXPECT_EQ(rendered->text.find("Be brief.") != std::string::npos, !system.is_null());
  }
}

}  // namespace
}  // namespace redline::actors
