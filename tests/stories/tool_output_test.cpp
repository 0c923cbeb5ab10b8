// Answers that may call tools, as they appear in a session's log.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "actors/serving/token_log.hpp"
#include "runtime/grammar/syntax/steps.hpp"
#include "runtime/grammar/tool_grammar.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::actors {
namespace {

const std::string file = "def load(path):\n\treturn open(path).read()  # \"all\" of it\n";

std::shared_ptr<const text::tokenizer> tokenizer() {
  static const auto made = [] {
    auto m = test::make_tiny_model();
    auto& tokens = std::get<std::vector<std::string>>(m.metadata["tokenizer.ggml.tokens"]);
    auto& types = std::get<std::vector<std::int32_t>>(m.metadata["tokenizer.ggml.token_type"]);
    for (const char* text : {"[TOOL_CALLS]", "[OTHER]"}) {
      tokens.push_back(text);
      types.push_back(3);
    }
    return *text::tokenizer::from_file(*m.file());
  }();
  return made;
}

std::shared_ptr<const output_rules> rules(const std::string& format, const tools::tool_set& set,
                                          const draft::text_lookup::name_indices& names = {}) {
  static const auto trie = *grammar::token_trie::make(tokenizer());
  const auto text = grammar::tool_constraint(set, *tools::find_format(format))->text;
  auto made = std::make_shared<output_rules>(**make_tool_rules(trie, text));
  made->known = std::make_shared<const draft::text_lookup>(std::vector<std::string>{"an older text", "a/b.py", file},
                                                           draft::text_lookup::bytes_default, names);
  return made;
}

token_log make(const std::string& format, const tools::tool_set& set,
               const draft::text_lookup::name_indices& names = {}) {
  generation_spec g;
  g.prompt = {1, 2, 3};
  g.tokens_max = 300;
  g.context_max = 400;
  g.rules = rules(format, set, names);
  return *token_log::make(std::move(g), tokenizer());
}
token_log make(const std::string& format, bool many = true) {
  tools::tool_set set;
  set.all.push_back({.name = "write"});
  set.many = many;
  return make(format, set);
}

struct answer {
  std::string text;
  std::optional<finish_reason> finished;
};

/// Writes `wanted` as a model would, token by token, except for what the grammar decides.
answer write(token_log& log, std::string_view wanted, bool begins = true) {
  answer out;
  const auto take = [&](token_log::progress step) {
    for (; step.is_cut; step = log.go_on()) out.text += step.text;
    out.text += step.text;
    out.finished = step.finished;
  };
  if (begins) take(log.begin());
  while (!out.finished && out.text.size() < wanted.size()) {
    EXPECT_TRUE(wanted.starts_with(out.text)) << out.text;
    const auto next = tokenizer()->encode(wanted.substr(out.text.size()), {.parse_special = true, .continues = true});
    take(log.commit(std::vector{next.front()}));
    if (out.finished == finish_reason::failed) break;
  }
  return out;
}

TEST(tool_output, control_tokens_of_the_format_are_text_and_others_are_not) {
  auto log = make("mistral");
  const std::string text = R"(so [TOOL_CALLS][{"name": "write", "arguments": {"a": 1}}])";
  EXPECT_EQ(write(log, text).text, text);
  const auto control = tokenizer()->encode("[TOOL_CALLS]", {.parse_special = true}).front();
  EXPECT_EQ(std::count(log.log().begin(), log.log().end(), control), 1) << "a control token, not its letters";
  const auto other = tokenizer()->encode("[OTHER]", {.parse_special = true}).front();
  EXPECT_EQ(log.commit(std::vector{other}).text, "") << "as without tools";
}

TEST(tool_output, one_call_ends_an_answer_that_may_have_one) {
  for (const auto* format : {"hermes", "mistral", "llama3"}) {
    auto log = make(format, false);
    const std::string text = format == std::string("hermes")
                                 ? "<tool_call>\n{\"name\": \"write\", \"arguments\": {}}\n</tool_call>"
                             : format == std::string("mistral") ? R"([TOOL_CALLS][{"name": "write", "arguments": {}}])"
                                                                : R"({"name": "write", "parameters": {}})";
    const auto got = write(log, text);
    EXPECT_EQ(got.text, text);
    EXPECT_EQ(got.finished, finish_reason::stop) << format;
  }
}

TEST(tool_output, the_model_may_end_in_text_and_not_in_a_call) {
  auto log = make("hermes");
  static_cast<void>(write(log, "some text <tool_ca"));
  const token end = *tokenizer()->vocab().eos();
  EXPECT_EQ(log.commit(std::vector{end}).finished, finish_reason::stop);
  auto other = make("hermes");
  static_cast<void>(write(other, "<tool_call>\n{\"name\": \"write\", \"arguments\": {\"a\""));
  EXPECT_EQ(other.commit(std::vector{end}).finished, finish_reason::failed);
}

TEST(tool_output, drafts_a_call_to_its_end) {
  auto log = make("hermes");
  static_cast<void>(write(log, "<tool_call>\n{\"name\": \"write\", \"arguments\": {\"text\": \"def load(path)"));
  const auto draft = log.likely_call(300);
  const auto text = *tokenizer()->decode(draft.tokens);
  EXPECT_EQ(text, R"(:\n\treturn open(path).read()  # \"all\" of it\n"}})"
                  "\n</tool_call>");
  ASSERT_EQ(draft.runs.size(), 2U);
  EXPECT_EQ(draft.runs[0].from, draft::source::lookup);
  EXPECT_GE(draft.runs[0].grade, 3U);
  EXPECT_EQ(draft.runs[1].from, draft::source::program) << "what the grammar allows";
  EXPECT_EQ(draft.runs[0].count + draft.runs[1].count, draft.tokens.size());
  EXPECT_EQ(log.usable(draft.tokens), draft.tokens) << "nothing that the grammar forbids";
  EXPECT_EQ(log.likely_call(5).tokens, std::vector(draft.tokens.begin(), draft.tokens.begin() + 5));
}

TEST(tool_output, drafts_the_members_of_a_call_and_their_values) {
  tools::tool_set set;
  set.all.push_back({.name = "edit", .parameters = nlohmann::ordered_json::parse(R"x({"type": "object", "properties":
      {"path": {"type": "string"}, "old": {"type": "string"}, "new": {"type": "string"}, "all": {"type": "boolean"}},
      "required": ["path", "old", "new"]})x")});
  auto log = make("hermes", set, {{"path", 1}});
  const std::string begin = "<tool_call>\n{\"name\": \"edit\", \"arguments\": {";
  std::string said = write(log, begin).text;
  const auto with_draft = [&] { return said + *tokenizer()->decode(log.likely_call(300).tokens); };
  EXPECT_THAT(with_draft(), ::testing::StartsWith(begin + R"("path": "a/b.py", "old": "def load(path):\n)"));
  const std::string old = begin + R"x("path":"a/b.py","old":"return open(path).read()",)x";
  said += write(log, std::string_view(old).substr(said.size()), false).text;
  EXPECT_EQ(with_draft(), old + R"x("new":"return open(path).read()"}})x" + "\n</tool_call>")
      << "the same again, with the answer's own spaces and without optional parts";
}

/// At each byte all characters are tried, and the grammar decides none of them.
TEST(tool_output, guesses_a_long_call_in_a_limited_number_of_steps) {
  tools::tool_set set;
  set.all.push_back({.name = "write", .parameters = nlohmann::ordered_json::parse(R"x({"type": "object", "properties":
      {"list": {"type": "array", "minItems": 2000, "items": {"type": "array", "maxItems": 0, "items": {"type": "null"}}}},
      "required": ["list"]})x")});
  auto log = make("hermes", set);
  static_cast<void>(write(log, "<tool_call>\n{\"name\": \"write\", \"arguments\": {\"list\": ["));
  EXPECT_LT(log.likely_call(512).tokens.size(), 512U) << "it ends at its limit";
  EXPECT_EQ(log.likely_call(100).tokens.size(), 100U) << "a shorter draft is made";
}

TEST(tool_output, drafts_nothing_outside_of_calls) {
  auto log = make("hermes");
  static_cast<void>(write(log, "\"def load(path)"));
  EXPECT_TRUE(log.likely_call(40).tokens.empty());
  static_cast<void>(log.commit(tokenizer()->encode("<tool_call")));
  EXPECT_TRUE(log.likely_call(40).tokens.empty());
}

}  // namespace
}  // namespace redline::actors
