#include "actors/serving/output_rules.hpp"

#include <gtest/gtest.h>

#include "tests/support/tiny_model.hpp"

namespace redline::actors {
namespace {

std::shared_ptr<const grammar::token_trie> trie() {
  static const auto t = *grammar::token_trie::make(*text::tokenizer::from_file(*test::make_tiny_model().file()));
  return t;
}

TEST(output_rules, refuses_files_beyond_its_limits) {
  EXPECT_FALSE(make_copy_rules(trie(), {}, {}));
  EXPECT_FALSE(make_copy_rules(trie(), std::vector<std::string>(65), {}));
  EXPECT_FALSE(make_copy_rules(trie(), {std::string(copy_file_bytes_max + 1, 'x')}, {}));
}

TEST(output_rules, refuses_schemas_that_no_grammar_covers) {
  EXPECT_TRUE(make_text_rules(trie(), {.text = R"({"type":"integer"})"}));
  EXPECT_FALSE(make_text_rules(trie(), {.text = R"re({"type":"string","pattern":"(?=a)"})re"}));
}

TEST(output_rules, programs_know_their_files_and_values_do_not) {
  const auto rules = *make_copy_rules(trie(), {"a b", "the end"}, {.token_spans = true});
  EXPECT_TRUE(rules->is_program());
  ASSERT_EQ(rules->file_tokens.size(), 2u);
  EXPECT_EQ(rules->file_tokens[1], trie()->spell("the end"));
  EXPECT_EQ(rules->shape.files.size(), 2u);
  EXPECT_FALSE((*make_text_rules(trie(), {.text = "true"}))->is_program());
}

TEST(output_rules, only_auto_keeps_what_the_model_would_not_choose) {
  const auto least = [](copy_trust trust) {
    return (*make_copy_rules(trie(), {"a\n"}, {.trust = trust, .probability_min = 0.25F}))->constraint.copied_min;
  };
  EXPECT_EQ(least(copy_trust::automatic), 0.25F);
  EXPECT_EQ(least(copy_trust::verified), 1.0F);
}

TEST(output_rules, reads_the_names_of_copy_trust) {
  for (const auto t : {copy_trust::forced, copy_trust::verified, copy_trust::automatic})
    EXPECT_EQ(parse_copy_trust(name_of(t)), t);
  EXPECT_EQ(parse_copy_trust("blind"), std::nullopt);
}

}  // namespace
}  // namespace redline::actors
