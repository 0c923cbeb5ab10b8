#include "actors/prompts/edit_prompt.hpp"

#include <gtest/gtest.h>

namespace redline::actors {
namespace {

/// An answer that the model ended itself.
edit_answer whole(std::string text) { return {.text = std::move(text), .is_whole = true}; }

const edit_task task{"a.py", "def a():\n    return 1\n", "Delete the function `a`."};

TEST(edit_prompt, explains_programs_and_numbers_the_lines) {
  // The demo pair was trained with exactly these bytes (bench/demo_models/recipe/samples.py).
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
  const auto back = file_of_answer(open, whole(answer_of(open, "z ```")));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, "z ```");
}

const edit_task readme{"README.md", "# Tool\n", "Add how to build it."};

TEST(edit_prompt, a_readme_without_code_blocks_may_get_one) {
  const std::string file = "# Tool\n\n```bash\nmake\n```\n\nThat is all.\n";
  EXPECT_EQ(file_of_answer(readme, whole("```\n" + file + "```")).value(), file);
  EXPECT_EQ(file_of_answer(readme, whole("Here it is.\n```md\n" + file + "```\n\n")).value(), file);
  const std::string plain = "# Tool\n\n```\nmake\n```\n";
  EXPECT_EQ(file_of_answer(readme, whole("````md\n" + plain + "````")).value(), plain)
      << "a longer fence shows where it ends";
}

TEST(edit_prompt, a_file_that_may_be_cut_short_is_refused) {
  for (const std::string answer : {
           "```md\n# Tool\n\n```\nmake\n```\n",          // a block without a language makes the file's end ambiguous
           "```md\n# Tool\n```\nI added nothing.\n",     // words after the file
           "```md\n# Tool\n```\n```md\n# Other\n```\n",  // two files
           "```md\n# Tool\n```.\n",                      // the fence is not alone on its line
           "```md\n# Tool\n\n```bash\nmake\n```\n",      // the block is closed, but the file is not
           "```md\n# Tool\n",
           "# Tool\n",
       }) {
    const auto file = file_of_answer(readme, whole(answer));
    ASSERT_FALSE(file) << answer;
    EXPECT_EQ(file.error().code, errc::unusable_answer);
  }
}

TEST(edit_prompt, an_answer_that_was_cut_is_no_file_however_whole_it_looks) {
  // The answer is cut right after the bare fence of the file's first block.
  const std::string looks_whole = "```\n# Title\n\nUsage:\n\n```\n";
  EXPECT_TRUE(file_of_answer(readme, whole(looks_whole)));
  for (const bool is_program : {false, true}) {
    const auto file = file_of_answer(readme, {.text = looks_whole, .is_whole = false, .is_program = is_program});
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code, errc::unusable_answer);
    EXPECT_NE(file.error().context.find("was cut before its end"), std::string::npos);
  }
  EXPECT_TRUE(is_models_own_end("stop"));
  for (const auto* other : {"length", "content_filter", "tool_calls", ""}) EXPECT_FALSE(is_models_own_end(other));
}

TEST(edit_prompt, a_file_keeps_its_mark_its_line_ends_and_its_last_line) {
  const std::string mark = "\xEF\xBB\xBF";
  const edit_task windows{"a.py", mark + "LIMIT = 10\r\nSIZE = 3\r\n", "Set LIMIT to 64."};
  EXPECT_EQ(shown_file(windows), "LIMIT = 10\nSIZE = 3\n");
  EXPECT_EQ(message_of(windows), "Set LIMIT to 64.\n```python\nLIMIT = 10\nSIZE = 3\n```");
  EXPECT_NE(program_message_of(windows).find("\n1\tLIMIT = 10\n2\tSIZE = 3\n"), std::string::npos);
  EXPECT_EQ(answer_of(windows, windows.before), "```python\nLIMIT = 10\nSIZE = 3\n```");
  const std::string wanted = mark + "LIMIT = 64\r\nSIZE = 3\r\n";
  EXPECT_EQ(file_of_answer(windows, whole("```\nLIMIT = 64\nSIZE = 3\n```")).value(), wanted);
  EXPECT_EQ(file_of_answer(windows, {.text = "LIMIT = 64\nSIZE = 3\n", .is_whole = true, .is_program = true}).value(),
            wanted);
  EXPECT_EQ(file_of_answer({"a", "x\r\ny", "Do."}, whole("```\nx\nz\n```")).value(), "x\r\nz");
}

TEST(edit_prompt, what_is_no_text_is_neither_edited_nor_written) {
  const edit_task latin{"latin.py", "caf\xE9\n", "Do."};
  for (const auto& outcome :
       {check_editable(latin), result<void>(file_of_answer(latin, whole("```\na\n```")).error())}) {
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().context,
              "latin.py cannot be edited: it is not text in UTF-8 (byte 3 is E9); it was not changed");
  }
  const auto broken = file_of_answer(task, whole("```\ncaf\xE9\n```"));
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, errc::unusable_answer);
}

}  // namespace
}  // namespace redline::actors
