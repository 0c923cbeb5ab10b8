#include "actors/prompts/chat_turns.hpp"

#include <gtest/gtest.h>

#include "runtime/jinja/chat_template.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::actors {
namespace {

using json = nlohmann::ordered_json;

json say(const char* role, const char* content) { return {{"role", role}, {"content", content}}; }

class chat_turns : public ::testing::Test {
 protected:
  /// The texts of the turns.
  std::vector<std::string> turns(const json& messages, std::string_view source = jinja::chatml_template) {
    const auto chat = *jinja::chat_template::parse(std::string(source));
    const auto render = [&](const json& m, bool more) {
      return chat.render({.messages = m, .add_generation_prompt = more});
    };
    whole = *render(messages, true);
    const auto prompt = tokenizer->encode(whole, {.parse_special = true});
    std::vector<std::string> texts;
    std::uint32_t before = 0;
    for (const token_range& t :
         older_turns(messages, whole, prompt, *tokenizer, [&](const json& m) { return render(m, false); })) {
      EXPECT_TRUE(texts.empty() || t.begin == before);
      before = t.end;
      texts.emplace_back();
      for (std::uint32_t i = t.begin; i < t.end; ++i) texts.back() += tokenizer->piece(prompt[i], true);
    }
    return texts;
  }

  std::shared_ptr<const text::tokenizer> tokenizer = *text::tokenizer::from_file(*test::make_tiny_model().file());
  std::string whole;
};

TEST_F(chat_turns, are_a_users_message_and_what_was_answered_to_it) {
  const json messages{say("system", "s"),    say("user", "one"),       say("assistant", "1"), say("user", "two"),
                      say("assistant", "2"), say("assistant", "more"), say("user", "three")};
  EXPECT_EQ(turns(messages),
            (std::vector<std::string>{"<|im_start|>user\none<|im_end|>\n<|im_start|>assistant\n1<|im_end|>\n",
                                      "<|im_start|>user\ntwo<|im_end|>\n<|im_start|>assistant\n2<|im_end|>\n"
                                      "<|im_start|>assistant\nmore<|im_end|>\n"}));
}

TEST_F(chat_turns, leave_out_what_the_template_itself_writes_first) {
  const json messages{say("user", "one"), say("assistant", "1"), say("user", "two")};
  const std::string_view with_default =
      "{% for m in messages %}{% if loop.first and m.role != 'system' %}<|im_start|>system\nBe good.<|im_end|>\n{% "
      "endif %}"
      "{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
      "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
  const std::vector<std::string> first{"<|im_start|>user\none<|im_end|>\n<|im_start|>assistant\n1<|im_end|>\n"};
  EXPECT_EQ(turns(messages, with_default), first);
  EXPECT_TRUE(whole.starts_with("<|im_start|>system\nBe good.<|im_end|>\n<|im_start|>user\none"));
  EXPECT_EQ(turns(messages), first);
}

TEST_F(chat_turns, are_none_in_a_conversation_of_one) {
  EXPECT_TRUE(turns({say("system", "s"), say("user", "one")}).empty());
  EXPECT_TRUE(turns({say("user", "one"), say("assistant", "1")}).empty());
}

TEST_F(chat_turns, are_unknown_where_a_conversation_does_not_begin_like_its_beginning) {
  const json messages{say("system", "s"), say("user", "one"), say("assistant", "1"), say("user", "two")};
  EXPECT_TRUE(turns(messages, "{{ messages | length }}{% for m in messages %}[{{ m.content }}]{% endfor %}").empty());
  EXPECT_TRUE(turns(messages, "{% if messages | length < 4 %}{{ raise_exception('short') }}{% endif %}x").empty());
}

TEST_F(chat_turns, of_a_huge_conversation_are_the_oldest_that_are_cheap_to_find) {
  const std::string long_text(300'000, 'x');
  json messages{say("system", "s")};
  for (int i = 0; i < 20; ++i) {
    messages.push_back(say("user", long_text.c_str()));
    messages.push_back(say("assistant", "1"));
  }
  messages.push_back(say("user", "last"));
  EXPECT_EQ(turns(messages).size(), 4U) << "beginnings of 0.3, 0.6, 0.9 and 1.2 MB; the next would add 1.5";
}

TEST_F(chat_turns, of_a_first_message_in_parts_stay) {
  const json parts = {{"role", "user"}, {"content", json::array({{{"type", "text"}, {"text", "one"}}})}};
  const std::string_view source =
      "{% for m in messages %}({{ m.role }}:{% if m.content is string %}{{ m.content }}{% else %}{{ m.content[0].text "
      "}}"
      "{% endif %}){% endfor %}";
  const json messages{parts, say("assistant", "1"), say("user", "two"), say("assistant", "2"), say("user", "three")};
  EXPECT_EQ(turns(messages, source), std::vector<std::string>{"(user:two)(assistant:2)"});
}

}  // namespace
}  // namespace redline::actors
