#include "runtime/formats/recognise.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "runtime/formats/format_table.hpp"
#include "tests/runtime/formats/golden_prompts.hpp"

namespace redline::formats {
namespace {

std::string expected_of(const std::string& prompt) {
  const auto found = recognise(prompt);
  return found ? found->text : "(nothing)";
}
std::string format_of(const std::string& prompt) {
  const auto found = recognise(prompt);
  return found ? std::string(found->format) : "(none)";
}
std::uint64_t bytes_read_for(const std::string& prompt) {
  std::uint64_t count = 0;
  (void)recognise(prompt, &count);
  return count;
}
std::string repeated(std::string_view what, std::size_t bytes) {
  std::string out;
  while (out.size() < bytes) out += what;
  return out;
}

TEST(recognise, every_format_is_recognized_by_its_frame) {
  std::set<std::string_view> seen;
  for (const golden& one : golden_prompts()) {
    const auto found = recognise(one.prompt);
    ASSERT_TRUE(found) << one.format << "\n" << one.prompt;
    EXPECT_EQ(found->format, one.format) << one.prompt;
    EXPECT_EQ(found->text, one.expected) << one.format;
    seen.insert(found->format);
  }
  for (const format_row& row : known_formats()) EXPECT_TRUE(seen.contains(row.name)) << row.name << " has no golden";
}

TEST(recognise, other_prompts_are_dismissed) {
  EXPECT_FALSE(recognise(""));
  EXPECT_FALSE(recognise("\n"));
  EXPECT_FALSE(recognise(chatml("", "Return the whole file.\n```python\nx = 1\n```")));
  EXPECT_FALSE(recognise("<|fim_prefix|>x = <|fim_suffix|>\ny = 2\n<|fim_middle|>"));
  EXPECT_FALSE(recognise(chatml("", "```python\na = [BLANK]\n```\n\nFill in the \"[BLANK]\".")));
  // A patch repeats only parts of the region.
  EXPECT_FALSE(recognise(copilot_prompt("```\n", "x = <|cursor|>5", "\n```\n\n" + std::string(400, 'p'))));
}

TEST(recognise, a_format_that_a_longer_text_quotes_is_dismissed) {
  for (const golden& one : golden_prompts()) {
    if (one.format == "aider-whole") continue;  // the request follows
    const std::string question = one.prompt + repeated(" What does this prompt ask for?", 1100);
    EXPECT_FALSE(recognise(question)) << one.format;
  }
}

TEST(recognise, carriage_returns_belong_to_the_file) {
  EXPECT_EQ(expected_of(aixapply_prompt("a = 1\r\nb = 2\r\n", "a = 1\r\nb = 3\r\n")),
            "<update_file>a = 1\r\nb = 3\r\nb = 2\r\n</update_file>");
  EXPECT_EQ(expected_of(zeta1_prompt("a = 1\r\nb<|user_cursor_is_here|> = 2\r")),
            "<|editable_region_start|>\na = 1\r\nb = 2\r\n<|editable_region_end|>");
  EXPECT_EQ(expected_of(zeta2_prompt("a = 1\r\nb<|user_cursor|> = 2\r\n")), "a = 1\r\nb = 2\r\n>>>>>>> UPDATED\n");
}

TEST(recognise, a_file_without_a_final_line_feed_keeps_its_form) {
  EXPECT_EQ(expected_of(fastapply_prompt("a = 1\nb = 2", "a = 1\nb = 2\n# ... existing code ...\nc = 3\n")),
            "<updated-code>a = 1\nb = 2\nc = 3</updated-code>");
  EXPECT_EQ(expected_of(continue_apply_prompt("a = 1", "a = 1")), "a = 1\n```");
}

TEST(recognise, padding_in_tags_is_padding_of_the_answer) {
  EXPECT_EQ(expected_of(fastapply_prompt("\na = 1\nb = 2\n", "\na = 1\nb = 2\nc = 3\n")),
            "<updated-code>\na = 1\nb = 2\nc = 3\n</updated-code>");
  EXPECT_EQ(expected_of(morph_prompt("\na = 1\nb = 2\n", "\na = 1\n# ...\n")), "\na = 1\nb = 2\n");
}

TEST(recognise, a_file_may_contain_the_markers) {
  const std::string html = "<p><code>x</code></p>\n<code>\ny</code>\n";
  EXPECT_EQ(expected_of(fastapply_prompt(html, "z")), "<updated-code>" + html + "</updated-code>");
  EXPECT_EQ(expected_of(morph_prompt(html, "z")), html);
  EXPECT_EQ(expected_of("<|User|><code>" + html + "</code>\n<update>z</update><|Assistant|>"), html);
  EXPECT_EQ(expected_of(mercury_prompt("a<|cursor|>\n<|/code_to_edit|>\n<|code_to_edit|>\nb")),
            "```\na\n<|/code_to_edit|>\n<|code_to_edit|>\nb\n```");
  EXPECT_EQ(expected_of(zeta1_prompt("a<|user_cursor_is_here|>\n<|editable_region_end|>\n<|user_cursor_is_here|>b")),
            "<|editable_region_start|>\na\n<|editable_region_end|>\n<|user_cursor_is_here|>b\n"
            "<|editable_region_end|>");
  EXPECT_EQ(expected_of(zeta2_prompt("<a><filename>x</filename>\n=======\n<|user_cursor|>b\n")),
            "<a><filename>x</filename>\n=======\nb\n>>>>>>> UPDATED\n");
  // DocBook mentions files inside lines, which begins no section.
  EXPECT_EQ(expected_of("<[fim-suffix]>\n<[fim-prefix]><filename>a.xml\n<|marker_1|>see <filename>b</filename>\n"
                        "<|user_cursor|>c\n<|marker_2|>\n<[fim-middle]>"),
            "<|marker_1|>see <filename>b</filename>\nc\n<|marker_2|>");
  // The prompt does not say where such a window begins.
  EXPECT_EQ(format_of(sweep_prompt("a.go:1:9", "// <|file_sep|>current/x\n// <|file_sep|>updated/y\nz<|cursor|>",
                                   "\n// <|file_sep|>current/x\n// <|file_sep|>updated/y\n")),
            "(none)");
}

TEST(recognise, regions_may_contain_fences) {
  EXPECT_EQ(expected_of(mercury_prompt("```py\nx<|cursor|>\n```")), "```\n```py\nx\n```\n```");
  EXPECT_EQ(expected_of(continue_apply_prompt("# A\n\n```py\nx\n```\n\ntext", "z")),
            "# A\n\n```py\nx\n```\n\ntext\n```");
  EXPECT_EQ(expected_of(chatml("",
                               "```md\n# A\n```py\nx\n```\n\nb\n```\n\nPlease rewrite the above file to address the "
                               "following request:\n\nc\n\nDO NOT surround the code in a code block and DO NOT "
                               "explain yourself.")),
            "# A\n```py\nx\n```\n\nb");
}

TEST(recognise, aider_takes_other_fences_for_files_with_fences) {
  const auto prompt = [](const std::string& files) {
    return chatml("*file listing* format",
                  "I have *added these files to the chat*\nversions of the files' "
                  "contents.\n\n" +
                      files) +
           "Ok, any changes I propose will be to those files.<|im_end|>\n<|im_start|>user\ngo<|im_end|>\n";
  };
  EXPECT_EQ(expected_of(prompt("a.md\n````\n```\nx\n```\n````\n")), "a.md\n````\n```\nx\n```\n````\n");
  EXPECT_EQ(expected_of(prompt("a.md\n<source>\n```\nx</source>\n")), "a.md\n<source>\n```\nx</source>\n");
  EXPECT_EQ(expected_of(prompt("a.py\n```\nno end of the line```\n")), "a.py\n```\nno end of the line```\n");
  EXPECT_EQ(format_of(prompt("no file")), "(none)");
}

TEST(recognise, empty_regions_and_cursors_at_their_edges) {
  EXPECT_EQ(expected_of(zeta1_prompt("<|user_cursor_is_here|>")),
            "<|editable_region_start|>\n\n<|editable_region_end|>");
  EXPECT_EQ(expected_of(zeta2_prompt("<|user_cursor|>\n")), "\n>>>>>>> UPDATED\n");
  EXPECT_EQ(expected_of(mercury_prompt("<|cursor|>a\nb")), "```\na\nb\n```");
  EXPECT_EQ(expected_of(mercury_prompt("a\nb<|cursor|>")), "```\na\nb\n```");
  EXPECT_EQ(expected_of(sweep_prompt("a.py", "", "\n")), "\n");
  EXPECT_EQ(expected_of(sweep_prompt("a.py:1:1", "<|cursor|>", "\n")), "\n");
  EXPECT_EQ(format_of(instinct_prompt("<|user_cursor_is_here|>")), "(none)");  // nothing to copy
  EXPECT_EQ(expected_of(aixapply_prompt("", "x = 1\n")), "<update_file>x = 1\n</update_file>");
}

TEST(recognise, a_prefill_is_not_expected_again) {
  const std::string region = "a = 1\n  b<|cursor|>\nc";
  EXPECT_EQ(expected_of(sweep_prompt("a.py:1:3", region, "\n")), "a = 1\n  b\nc\n");
  EXPECT_EQ(expected_of(sweep_prompt("a.py:1:3", region, "\na = 1\n")), "  b\nc\n");
  EXPECT_EQ(expected_of(sweep_prompt("a.py:1:3", region, "\nother\n")), "a = 1\n  b\nc\n");
  EXPECT_EQ(expected_of(mercury_prompt("a<|cursor|>") + "```\n"), "a\n```");
  EXPECT_EQ(expected_of(mercury_prompt("a<|cursor|>") + "```"), "\na\n```");
  EXPECT_EQ(expected_of(aixapply_prompt("a", "b") + "<update_file>"), "a</update_file>");
  // A template may end the turn after the prefill and open another.
  EXPECT_EQ(expected_of(continue_apply_prompt("a", "b") + "<|im_end|>\n<|im_start|>assistant\n"), "```\na\n```");
}

TEST(recognise, the_work_is_linear_whatever_the_prompt_contains) {
  constexpr std::size_t megabyte = std::size_t{1} << 20;
  std::set<std::string> hostile = {"<", "`", "\n", "<code>", "</code>\n<update>", "</update>", "*", "\n```\n", " "};
  for (const format_row& row : known_formats()) {
    for (const marker& mark : row.markers) {
      if (!mark.text.empty()) hostile.insert(std::string(mark.text));
    }
  }
  for (const golden& one : golden_prompts()) hostile.insert(one.prompt);
  // Few rows get beyond their last marker; the worst of these prompts is read 11 times.
  constexpr std::size_t passes = 16;
  for (const std::string& text : hostile) {
    EXPECT_LE(bytes_read_for(repeated(text, megabyte)), passes * megabyte) << text.substr(0, 100);
  }
  for (const golden& one : golden_prompts()) {
    for (const std::string& text : hostile) {
      const std::string middle = repeated(text, megabyte / 8);
      for (const std::size_t at : {std::size_t{0}, one.prompt.size() / 2, one.prompt.size()}) {
        std::string prompt = one.prompt;
        prompt.insert(at, middle);
        ASSERT_LE(bytes_read_for(prompt), passes * prompt.size()) << one.format << " " << text.substr(0, 100);
      }
    }
  }
}

TEST(recognise, a_long_chat_is_dismissed_by_few_searches) {
  const std::string chat =
      chatml("", repeated("The list <b>has</b> *two* parts: `a` and `b`.\n```cpp\nint x = 1;\n```\n", 1 << 20));
  EXPECT_LE(bytes_read_for(chat), 3 * chat.size() + 40'000);
}

TEST(recognise, a_region_of_a_megabyte_is_expected) {
  const std::string region = repeated("print(\"one line of many\")\n", 1 << 20);
  EXPECT_EQ(expected_of(zeta2_prompt(region + "<|user_cursor|>\n")), region + "\n>>>>>>> UPDATED\n");
  EXPECT_EQ(expected_of(morph_prompt(region, "x")), region);
}

TEST(recognise, random_changes_of_the_prompts_do_no_harm) {
  std::mt19937 random(7);
  std::vector<std::string> pieces = {"\n", "\r\n", "```", "<", "|>", ""};
  for (const format_row& row : known_formats()) {
    for (const marker& mark : row.markers) pieces.emplace_back(mark.text);
  }
  for (int trial = 0; trial < 20'000; ++trial) {
    const golden& one = golden_prompts()[random() % golden_prompts().size()];
    std::string prompt = one.prompt;
    for (auto changes = 1 + random() % 4; changes > 0; --changes) {
      const std::size_t at = random() % (prompt.size() + 1);
      const std::size_t count = random() % 3 == 0 ? random() % (prompt.size() + 1) : random() % 12;
      const golden& other = golden_prompts()[random() % golden_prompts().size()];
      switch (random() % 5) {
        case 0:
          prompt.erase(at, count);
          break;
        case 1:
          prompt.insert(at, pieces[random() % pieces.size()]);
          break;
        case 2:
          prompt.insert(at, prompt.substr(random() % (prompt.size() + 1), count));
          break;
        case 3:
          prompt.resize(at);
          break;
        default:
          prompt.insert(at, other.prompt.substr(random() % other.prompt.size(), count));
      }
    }
    const auto found = recognise(prompt);
    if (!found) continue;
    EXPECT_FALSE(found->text.empty());
    EXPECT_LE(found->text.size(), 2 * prompt.size() + 100);
  }
}

}  // namespace
}  // namespace redline::formats
