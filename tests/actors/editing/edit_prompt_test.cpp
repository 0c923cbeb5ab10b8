#include "actors/editing/edit_prompt.hpp"

#include <gtest/gtest.h>

namespace redline::actors {
namespace {

const edit_task task{"a.py", "def a():\n    return 1\n", "Delete the function `a`."};

TEST(edit_prompt, explains_programs_and_numbers_the_lines) {
  // Byte for byte what the demo pair was trained with (bench/demo_models/recipe/samples.py).
  EXPECT_EQ(program_message_of(task),
            "Delete the function `a`.\nWrite an edit program that makes the new file: <copy lines=\"i-j\"/> copies "
            "lines i to j of "
            "the file, <gen>text</gen> writes new text, </program> ends it. The file, each line behind its "
            "number:\n```python\n"
            "1\tdef a():\n2\t    return 1\n```");
  const auto tokens = program_message_of(task, {.lines = false, .tokens = true});
  EXPECT_EQ(tokens.find("lines="), std::string::npos);
  EXPECT_NE(tokens.find("<copy tokens=\"i-j\"/>"), std::string::npos);
  EXPECT_NE(program_message_of(task, {.anchors = true}).find("first=\"...\" last=\"...\"/>"), std::string::npos);
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
