#include "runtime/copy/program_guess.hpp"

#include <gtest/gtest.h>

namespace redline::copy {
namespace {

/// The guess for an incomplete program over one or more files of nine lines.
std::string guess_after(const std::string& begun, bool anchors = false, std::size_t files_count = 1) {
  const std::vector<document> files(files_count, document("1\n2\n3\n4\n5\n6\n7\n8\n9\n"));
  auto shape = shape_of(files);
  shape.anchors = anchors;
  program_reader reader(shape);
  program written;
  std::string text;
  for (const char c : begun) {
    const bool in_body = reader.state().at == program_state::step::gen_body;
    const auto event = reader.feed(c, text);
    if (!event) return "wrong: " + begun;
    if (in_body && reader.state().at == program_state::step::await_op)
      written.emplace_back(gen_op{std::exchange(text, {})});
    if (*event == program_reader::event::copy) {
      written.emplace_back(reader.state().op);
      reader.resume();
    }
  }
  const anchor_pair anchor{anchors ? "2" : "", ""};
  return guess_rest({reader.machine(), reader.state(), written, text, anchor, files});
}

TEST(program_guess, expects_a_line_to_be_replaced_and_the_rest_to_be_copied) {
  EXPECT_EQ(guess_after("<"), "copy lines=\"1-9\"/>");
  EXPECT_EQ(guess_after("<copy lines=\"1-3\"/><"), "gen>");
  EXPECT_EQ(guess_after("<copy lines=\"1-3\"/><gen>x\n"), "</gen><copy lines=\"5-9\"/>");
  EXPECT_EQ(guess_after("<copy lines=\"1-3\"/><gen>x"), "");
  EXPECT_EQ(guess_after("<copy lines=\"1-3\"/><gen>x</"), "gen><copy lines=\"5-9\"/>");
  EXPECT_EQ(guess_after("<copy lines=\"1-3\"/><gen>x</gen><copy lines=\"6"), "-9\"/>");
  EXPECT_EQ(guess_after("<copy lines=\"1-3\"/><gen>x</gen><copy lines=\"5-9\"/><"), "/program>");
}

TEST(program_guess, continues_file_numbers_and_anchors) {
  EXPECT_EQ(guess_after("<copy file=\"2\" lines=\"1-3\"/><gen>x</gen><", false, 2), "copy file=\"2\" lines=\"5-9\"/>");
  EXPECT_EQ(guess_after("<copy lines=\"2-4\" first=\"2", true), "\" last=\"4\"/>");
}

TEST(program_guess, never_leaves_the_grammar) {
  for (const char* begun :
       {"<copy lines=\"9-9\"/><gen>x</gen><", "<gen>x</gen><copy lines=\"9", "<copy lines=\"9-9\"/><"}) {
    const auto more = guess_after(begun);
    EXPECT_FALSE(guess_after(begun + more).starts_with("wrong")) << begun << more;
  }
}

}  // namespace
}  // namespace redline::copy
