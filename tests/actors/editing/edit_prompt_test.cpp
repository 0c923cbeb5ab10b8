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

const edit_task readme{"README.md", "# Tool\n", "Add how to build it."};

TEST(edit_prompt, a_readme_without_code_blocks_may_get_one) {
  const std::string file = "# Tool\n\n```bash\nmake\n```\n\nThat is all.\n";
  EXPECT_EQ(file_of_answer(readme, "```\n" + file + "```").value(), file);
  EXPECT_EQ(file_of_answer(readme, "Here it is.\n```md\n" + file + "```\n\n").value(), file);
  const std::string plain = "# Tool\n\n```\nmake\n```\n";
  EXPECT_EQ(file_of_answer(readme, "````md\n" + plain + "````").value(), plain) << "a longer fence says where it ends";
}

TEST(edit_prompt, a_file_that_may_be_cut_short_is_refused) {
  for (const std::string answer : {
           "```md\n# Tool\n\n```\nmake\n```\n",          // a block without a language: which fence ends the file?
           "```md\n# Tool\n```\nI added nothing.\n",     // words after it
           "```md\n# Tool\n```\n```md\n# Other\n```\n",  // two files
           "```md\n# Tool\n```.\n",                      // not the fence alone
           "```md\n# Tool\n\n```bash\nmake\n```\n",      // the block is closed, the file is not
           "```md\n# Tool\n",
           "# Tool\n",
       }) {
    const auto file = file_of_answer(readme, answer);
    ASSERT_FALSE(file) << answer;
    EXPECT_EQ(file.error().code, errc::unusable_answer);
  }
}

}  // namespace
}  // namespace redline::actors
