#include "actors/edit_prompt.hpp"

#include <gtest/gtest.h>

namespace redline::actors {
namespace {

const edit_task task{"a.py", "def a():\n    return 1\n", "Delete the function `a`."};

TEST(edit_prompt, explains_programs_and_numbers_the_lines) {
  const auto lines = program_message_of(task);
  EXPECT_TRUE(lines.starts_with("Delete the function `a`.\nWrite an edit program"));
  EXPECT_NE(lines.find("<copy lines=\"i-j\"/>"), std::string::npos);
  EXPECT_EQ(lines.find("tokens="), std::string::npos);
  EXPECT_TRUE(lines.ends_with("```python\n1\tdef a():\n2\t    return 1\n```"));
  const auto tokens = program_message_of(task, {.lines = false, .tokens = true});
  EXPECT_EQ(tokens.find("lines="), std::string::npos);
  EXPECT_NE(tokens.find("<copy tokens=\"i-j\"/>"), std::string::npos);
  EXPECT_NE(program_message_of(task, {.anchors = true}).find("first=\"...\" last=\"...\"/>"), std::string::npos);
}

// The demo pair's training, byte for byte.
TEST(edit_prompt, asks_a_taught_model_in_the_words_it_knows) {
  EXPECT_EQ(program_message_of(task, {.prompt = program_prompt::taught}),
            "Delete the function `a`.\nWrite the edit as a copy program.\n```python\n1|def a():\n2|    return 1\n```");
}

TEST(edit_prompt, fences_a_file_without_a_last_line_feed) {
  const edit_task open{"a", "x ``` y", "Do."};
  EXPECT_TRUE(program_message_of(open).ends_with("````\n1\tx ``` y\n````"));
  EXPECT_EQ(message_of(open), "Do.\n````\nx ``` y\n````");
  const auto back = file_of_answer(open, answer_of(open, "z ```"));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, "z ```");
}

}  // namespace
}  // namespace redline::actors
