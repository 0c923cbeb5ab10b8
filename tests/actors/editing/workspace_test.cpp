#include "actors/editing/workspace.hpp"

#include <gtest/gtest.h>

#include "tests/support/tiny_model.hpp"

namespace redline::actors {
namespace {

class workspace_test : public testing::Test {
 protected:
  static constexpr std::uint32_t context_max = 64;

  workspace_test() : tokenizer(*text::tokenizer::from_file(*test::make_tiny_model({.context = 256}).file())) {}

  workspace make(edit_limits limits = {}) const {
    return workspace(tokenizer, {limits, text::position_encoding::utf8, context_max});
  }
  static completion_place at(const std::string& path, std::uint32_t byte, completion_mode mode) {
    return {.path = path, .place = file_place{.is_byte = true, .byte = byte}, .mode = mode};
  }
  static patch_file insertion(std::int64_t next, std::uint32_t byte, const std::string& text) {
    const file_place place{.is_byte = true, .byte = byte};
    return {.path = "a", .base = next - 1, .next = next, .edits = {{file_range{place, place}, text}}};
  }
  std::vector<token> encode(const std::string& text) const { return tokenizer->encode(text); }

  std::shared_ptr<const text::tokenizer> tokenizer;
};

TEST_F(workspace_test, reads_what_is_before_and_after_the_place_to_fill_the_middle) {
  auto files = make();
  ASSERT_FALSE(files.put("a", "abcd", 1));
  const auto& fim = tokenizer->vocab().fim();
  std::vector<token> expected{*fim.prefix};
  for (const token t : encode("ab")) expected.push_back(t);
  expected.push_back(*fim.suffix);
  for (const token t : encode("cd")) expected.push_back(t);
  expected.push_back(*fim.middle);
  EXPECT_EQ(files.lay_out(at("a", 2, completion_mode::fim))->prompt, expected);
  EXPECT_EQ(files.lay_out(at("a", 2, completion_mode::text))->prompt, encode("ab"));
  EXPECT_EQ(files.lay_out(at("a", 2, completion_mode::line))->stops, std::vector<std::string>{"\n"});
}

TEST_F(workspace_test, knows_what_of_the_file_no_prompt_has_yet_as_far_as_the_context_goes) {
  auto files = make();
  const std::string text = "0123456789!ABCDEFGHIJKLMNOPQRSTUVWXYZ#0123456789$ABCDEFGHIJKLM";  // one token per character
  ASSERT_FALSE(files.put("a", text + text, 1));
  EXPECT_EQ(files.lay_out(at("a", 124, completion_mode::text))->behind, encode(""));
  const auto line = files.lay_out(at("a", 24, completion_mode::line));
  EXPECT_EQ(line->behind, encode((text + text).substr(24, context_max - 24)));
  const auto fim = files.lay_out(at("a", 24, completion_mode::fim));
  EXPECT_EQ(fim->prompt.size() + fim->behind.size(), context_max);
  EXPECT_EQ(fim->behind, encode((text + text).substr(24 + context_max / 4, fim->behind.size()))) << "after the suffix";
}

TEST_F(workspace_test, leaves_a_quarter_of_the_context_for_the_answer_and_one_for_what_comes_after) {
  auto files = make();
  const std::string lines(300, 'x');
  ASSERT_FALSE(files.put("a", lines, 1));
  const auto text = files.lay_out(at("a", 300, completion_mode::text));
  EXPECT_LE(text->prompt.size(), context_max - context_max / 4);
  EXPECT_GE(text->prompt.size(), context_max / 2);
  const auto fim = files.lay_out(at("a", 150, completion_mode::fim));
  const auto& prompt = fim->prompt;
  const auto suffix = std::find(prompt.begin(), prompt.end(), *tokenizer->vocab().fim().suffix);
  EXPECT_EQ(prompt.end() - suffix - 2, context_max / 4);  // excluding the two marks
  EXPECT_LE(prompt.size(), context_max - context_max / 4 + 3);
}

TEST_F(workspace_test, reads_other_files_in_front_while_half_of_the_context_stays_free) {
  auto files = make();
  ASSERT_FALSE(files.put("b", "small", 1));
  ASSERT_FALSE(files.put("c", std::string(60, 'y'), 1));
  ASSERT_FALSE(files.put("a", "text", 1));
  const token separator = *tokenizer->vocab().fim().file_separator;
  const auto prompt = files.lay_out(at("a", 4, completion_mode::text))->prompt;
  EXPECT_EQ(std::count(prompt.begin(), prompt.end(), separator), 2) << "b and a fit, c is too long";
  EXPECT_EQ(prompt.front(), separator);
}

TEST_F(workspace_test, expects_the_next_completion_where_somebody_types) {
  auto files = make();
  EXPECT_FALSE(files.expected());
  ASSERT_FALSE(files.put("a", "abcd", 1));
  files.note_place(at("a", 4, completion_mode::text));
  EXPECT_EQ(files.expected()->prompt, encode("abcd"));
  ASSERT_TRUE(files.patch(insertion(2, 2, "XY")));
  EXPECT_EQ(files.expected()->prompt, encode("abXY")) << "after the edit";
  auto elsewhere = insertion(3, 0, "Z");
  elsewhere.cursor = file_place{.is_byte = true, .byte = 3};
  ASSERT_TRUE(files.patch(elsewhere));
  EXPECT_EQ(files.expected()->prompt, encode("Zab")) << "at the position from the client";
  ASSERT_FALSE(files.drop("a"));
  EXPECT_FALSE(files.expected());
}

TEST_F(workspace_test, says_which_field_is_at_fault_and_changes_nothing) {
  auto files = make({.files_max = 1, .file_bytes_max = 8, .session_bytes_max = 8});
  ASSERT_FALSE(files.put("a", "abcd", 1));
  EXPECT_EQ(files.put("a", "x", 1)->field, "version");
  EXPECT_EQ(files.put("b", "x", 1)->what, refusal::kind::session_full);
  EXPECT_EQ(files.put("a", "123456789", 2)->what, refusal::kind::session_full);
  EXPECT_EQ(files.patch(insertion(3, 0, "x")).error().field, "base_version");
  EXPECT_EQ(files.patch(insertion(2, 9, "x")).error().field, "edits");
  auto bad_cursor = insertion(2, 0, "x");
  bad_cursor.cursor = file_place{.is_byte = true, .byte = 99};
  EXPECT_EQ(files.patch(bad_cursor).error().field, "cursor");
  EXPECT_EQ(files.lay_out(at("b", 0, completion_mode::text)).error().what, refusal::kind::no_such_file);
  EXPECT_EQ(files.lay_out(at("a", 5, completion_mode::text)).error().field, "position");
  EXPECT_EQ(files.lay_out({.path = "a", .version = 7}).error().why.code, errc::version_conflict);
  EXPECT_EQ((*files.find("a"))->document.text(), "abcd");
  EXPECT_EQ((*files.find("a"))->document.version(), 1);
}

}  // namespace
}  // namespace redline::actors
