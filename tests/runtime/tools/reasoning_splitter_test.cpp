#include "runtime/tools/reasoning_splitter.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace redline::tools {
namespace {

using beginning = reasoning_splitter::beginning;
using parts = std::pair<std::string, std::string>;

/// The reasoning and the answer when the text comes in pieces of `piece` bytes.
parts split(std::string_view text, beginning where, std::size_t piece) {
  reasoning_splitter splitter(reasoning_splitter::tags_of("... </think> ..."), where);
  parts out;
  const auto take = [&out](const reasoning_splitter::parts& p) {
    EXPECT_TRUE(p.reasoning.empty() || out.second.empty()) << "reasoning comes before the answer";
    out.first += p.reasoning;
    out.second += p.answer;
  };
  for (std::size_t at = 0; at < text.size(); at += piece) take(splitter.feed(text.substr(at, piece)));
  take(splitter.finish());
  return out;
}

TEST(reasoning_splitter, gives_the_same_however_the_text_is_cut) {
  struct row {
    std::string_view text;
    beginning where;
    parts wanted;
  };
  const row table[] = {
      {"<think>\nlong\n</think>\n\nanswer\n", beginning::either, {"long\n", "answer\n"}},
      {"\n<think>a</think>b", beginning::either, {"a", "b"}},
      {"answer <think>no</think>", beginning::either, {"", "answer <think>no</think>"}},
      {"  indented", beginning::either, {"", "  indented"}},
      {"<thin", beginning::either, {"", "<thin"}},
      {"\nso </thin </think> it is </think>", beginning::in_thought, {"so </thin ", "it is </think>"}},
      {"cut off </thi", beginning::in_thought, {"cut off </thi", ""}},
      {"</think>x", beginning::in_thought, {"", "x"}},
      {"<think>x</think>", beginning::answer, {"", "<think>x</think>"}},
      {"", beginning::either, {"", ""}},
  };
  for (const auto& [text, where, wanted] : table) {
    for (const std::size_t piece : {1, 2, 3, 7, 1000}) EXPECT_EQ(split(text, where, piece), wanted) << text << piece;
  }
}

TEST(reasoning_splitter, does_not_wait_for_a_tag_behind_many_blanks) {
  const std::string text = std::string(65, ' ') + "<think>a</think>b";
  for (const std::size_t piece : {1, 10, 64, 1000}) {
    EXPECT_EQ(split(text, beginning::either, piece), parts("", text)) << piece;
  }
}

TEST(reasoning_splitter, finds_thoughts_in_channels_where_the_prompt_left_them) {
  const auto answer = [](std::string_view prompt, std::string_view text) {
    auto splitter = reasoning_splitter::of_channels(prompt);
    EXPECT_TRUE(splitter.needs_control());
    auto out = splitter.feed(text);
    const auto rest = splitter.finish();
    return parts(out.reasoning + rest.reasoning, out.answer + rest.answer);
  };
  const std::string_view both =
      "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>yes";
  EXPECT_EQ(answer("<|start|>user<|message|>hi<|end|><|start|>assistant", both), parts("hm", "yes"));
  EXPECT_EQ(answer("no template of ours", both), parts("hm", "yes"));
  EXPECT_EQ(answer("<|start|>assistant<|channel|>final<|message|>I say", " so"), parts("", " so"));
  EXPECT_EQ(answer("<|start|>assistant<|channel|>analysis<|message|>", "hm<|end|>"), parts("hm", ""));
  auto splitter = reasoning_splitter::of_channels("");
  EXPECT_FALSE(splitter.is_thinking());
  (void)splitter.feed("<|channel|>analysis<|message|>h");
  EXPECT_TRUE(splitter.is_thinking());
  EXPECT_EQ(splitter.closing_tag(), "<|end|>");
  EXPECT_FALSE(reasoning_splitter().needs_control());
}

TEST(reasoning_splitter, leaves_the_text_of_models_without_tags_alone) {
  const auto none = reasoning_splitter::tags_of("{{ messages }}");
  reasoning_splitter splitter(none, beginning::either);
  EXPECT_EQ(splitter.feed("<think>x").answer, "<think>x");
  EXPECT_EQ(reasoning_splitter::tags_of("[THINK]{{ x }}[/THINK]").open, "[THINK]");
}

}  // namespace
}  // namespace redline::tools
