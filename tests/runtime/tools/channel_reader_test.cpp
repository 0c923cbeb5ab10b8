#include "runtime/tools/channel_reader.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace redline::tools {
namespace {

using parts = std::vector<std::pair<bool, std::string>>;

/// The reasoning (true) and the answer, in order, when the text comes in pieces of `piece` bytes.
parts read(std::string_view text, std::size_t piece) {
  channel_reader reader;
  parts out;
  const auto take = [&out](const std::vector<channel_reader::part>& more) {
    for (const auto& one : more) {
      if (out.empty() || out.back().first != one.is_reasoning) out.emplace_back(one.is_reasoning, "");
      out.back().second += one.text;
    }
  };
  for (std::size_t at = 0; at < text.size(); at += piece) take(reader.feed(text.substr(at, piece)));
  take(reader.finish());
  return out;
}

TEST(channel_reader, tells_reasoning_from_what_is_said_however_the_text_is_cut) {
  const std::string begin = "<|channel|>analysis<|message|>";
  const std::string next = "<|end|><|start|>assistant<|channel|>";
  const std::string long_text(300, 'x');
  const std::pair<std::string, parts> table[] = {
      {begin + "a < b" + next + "final<|message|>c <| d\n", {{true, "a < b"}, {false, "c <| d\n"}}},
      {"<|channel|>final<|message|>at once", {{false, "at once"}}},
      {begin + "one" + next + "analysis<|message|>two" + next + "commentary<|message|>three",
       {{true, "onetwo"}, {false, "three"}}},
      {begin + "cut <|en", {{true, "cut <|en"}}},
      {begin + "cut<|end|><|start|>assis", {{true, "cut"}}},
      {"no channels", {{false, "no channels"}}},
      {long_text + "<|message|>y", {{false, long_text + "<|message|>y"}}},
      {"", {}},
  };
  for (const auto& [text, wanted] : table) {
    for (const std::size_t piece : {1, 2, 3, 7, 1000}) EXPECT_EQ(read(text, piece), wanted) << text << ", " << piece;
  }
}

}  // namespace
}  // namespace redline::tools
