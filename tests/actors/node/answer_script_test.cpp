#include "actors/node/answer_script.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/support/temporary_folder.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::actors {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const text::tokenizer> tokenizer() {
  static const auto t = *text::tokenizer::from_file(*test::make_tiny_model().file());
  return t;
}
std::shared_ptr<const grammar::token_trie> trie() {
  static const auto t = *grammar::token_trie::make(tokenizer());
  return t;
}

class answer_script_test : public ::testing::Test {
 protected:
  std::shared_ptr<answer_script> script(const std::string& say) {
    const std::string path = folder_.path() + "/script.json";
    std::ofstream(path) << R"([{"when": ["ask"], "say": )" << say << "}]";
    return *answer_script::load(path);
  }
  /// Returns what is wrong with an answer in this format, or an empty string.
  std::string why_not(const std::string& say, const std::string& text,
                      grammar::grammar_kind kind = grammar::grammar_kind::json) {
    const auto rules = *make_text_rules(trie(), {kind, text});
    const auto begun = script(say)->begin({1}, tokenizer()->encode("I ask"), rules.get(), *tokenizer());
    return begun ? "" : begun.error().context;
  }
  test::temporary_folder folder_;
};

TEST_F(answer_script_test, says_what_stands_in_it) {
  const auto known = script(R"("ab")");
  ASSERT_TRUE(known->begin({1}, tokenizer()->encode("I ask"), nullptr, *tokenizer()));
  ASSERT_TRUE(known->begin({2}, tokenizer()->encode("Nothing"), nullptr, *tokenizer()));
  const auto said = tokenizer()->encode("ab");
  for (std::size_t i = 0; i < said.size(); ++i) EXPECT_EQ(known->choose({1, i, std::nullopt}), said[i]);
  EXPECT_TRUE(tokenizer()->is_end_of_generation(*known->choose({1, said.size(), std::nullopt})));
  EXPECT_EQ(known->choose({2, 0, std::nullopt}), std::nullopt);
}

TEST_F(answer_script_test, says_where_the_grammar_of_a_request_forbids_it) {
  const std::string schema = R"({"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]})";
  EXPECT_EQ(why_not(R"("{\"a\": 12}")", schema), "");
  const auto wrong = why_not(R"("{\"a\": true}")", schema);
  EXPECT_THAT(wrong, HasSubstr("at byte 6, after '{\"a\": ', it continues with 'true}'"));
  EXPECT_THAT(why_not(R"("[1]")", schema), HasSubstr("at byte 0, it continues with '[1]'"));
  EXPECT_THAT(why_not(R"("{\"a\": 1")", schema), HasSubstr("at byte 7, after '{\"a\": 1', it ends"));
  EXPECT_EQ(why_not(R"("{\"a\": 12} and more")", schema), "") << "the answer has ended";
  EXPECT_THAT(why_not(R"("ac")", R"(root ::= "a" [bd])", grammar::grammar_kind::rules),
              HasSubstr("it continues with 'c'"));
}

}  // namespace
}  // namespace redline::actors
