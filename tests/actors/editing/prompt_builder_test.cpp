#include "actors/editing/prompt_builder.hpp"

#include <gtest/gtest.h>

#include "tests/support/tiny_model.hpp"

namespace redline::actors {
namespace {

using json = nlohmann::ordered_json;

class prompt_builder_test : public testing::Test {
 protected:
  prompt_builder_test()
      : tokenizer(*text::tokenizer::from_file(*test::make_tiny_model().file())),
        prompts(*prompt_builder::make(tokenizer)) {}

  std::vector<token> chat(const std::string& message) const {
    return prompts.conversation(*prompts.render(json{{{"role", "user"}, {"content", message}}}, true, 0));
  }
  /// What a prompt says, special tokens included.
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

TEST_F(prompt_builder_test, keeps_bytes_that_are_no_utf8) {
  const std::string message = "caf\xE9 \xFF";
  EXPECT_NE(text_of(*prompts.message_with_file(message, 0)).find(message), std::string::npos);
}

TEST_F(prompt_builder_test, puts_nothing_around_a_text_but_what_the_model_wants) {
  EXPECT_EQ(prompts.text("abc"), tokenizer->encode("abc", {.parse_special = true, .add_bos_eos = true}));
}

}  // namespace
}  // namespace redline::actors
