#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace redline::formats {

/// A prompt of a public format, with its frame byte for byte and our own code in it, as a chat template renders it.
struct golden {
  std::string_view format;
  std::string prompt;
  std::string expected;
};

inline std::string chatml(const std::string& system, const std::string& user) {
  return (system.empty() ? "" : "<|im_start|>system\n" + system + "<|im_end|>\n") + "<|im_start|>user\n" + user +
         "<|im_end|>\n<|im_start|>assistant\n";
}
inline std::string llama3(const std::string& user) {
  return "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n" + user +
         "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n";
}

inline std::string aixapply_prompt(const std::string& file, const std::string& update) {
  return chatml("You patch code. Answer with <update_file>[the file]</update_file>",
                "<language>Python</language>\n\n<source_file>" + file + "</source_file>\n\n<update_snippet>" + update +
                    "</update_snippet>\n\nWrite the whole new code as told.") +
         "<think>\n\n</think>\n\n";
}
inline std::string fastapply_prompt(const std::string& file, const std::string& update) {
  return chatml("You merge code.",
                "Put every change of the <update> snippet into the <code> below.\n- Answer only with the new code, "
                "between <updated-code> and </updated-code> tags.\n\n<code>" +
                    file + "</code>\n\n<update>" + update + "</update>\n\nWrite the complete code.");
}
inline std::string morph_prompt(const std::string& file, const std::string& update) {
  return llama3("<instruction>I raise the limit</instruction>\n<code>" + file + "</code>\n<update>" + update +
                "</update>");
}
inline std::string continue_apply_prompt(const std::string& file, const std::string& update) {
  return chatml("", "ORIGINAL CODE:\n```\n" + file + "\n```\n\nSUGGESTED EDIT:\n```\n" + update +
                        "\n```\n\nApply the SUGGESTED EDIT to the code above it.\n- Write code only.") +
         "```\n";
}
inline std::string zeta1_prompt(const std::string& region) {
  return "### Instruction:\nRewrite the excerpt.\n\n### User Edits:\n\nUser edited \"limits.py\":\n```diff\n-LIMIT = "
         "4\n+LIMIT = 5\n```\n\n### User Excerpt:\n\n```limits.py\n<|start_of_file|>\nimport "
         "os\n<|editable_region_start|>\n" +
         region + "\n<|editable_region_end|>\nprint(LIMIT)\n```\n\n### Response:\n";
}
inline std::string zeta2_prompt(const std::string& region) {
  return "<[fim-suffix]>print(LIMIT)\n<[fim-prefix]><filename>other.py\nx = 1\n...\n\n<filename>edit_history\n--- "
         "a/limits.py\n+++ b/limits.py\n@@ -1 +1 @@\n-LIMIT = 4\n+LIMIT = 5\n\n<filename>limits.py\nimport "
         "os\n<<<<<<< CURRENT\n" +
         region + "=======\n<[fim-middle]>";
}
/// `current` is the current window, `prefill` the beginning of the new one; both windows have the same heading.
inline std::string sweep_prompt(const std::string& heading, const std::string& current, const std::string& prefill) {
  return "<|file_sep|>limits.py\nLIMIT = 4\n\n<|file_sep|>limits.py.diff\noriginal:\nLIMIT = 4\nupdated:\nLIMIT = "
         "5\n<|file_sep|>original/" +
         heading + "\nLIMIT = 4\n<|file_sep|>current/" + heading + "\n" + current + "\n<|file_sep|>updated/" + heading +
         prefill;
}
inline std::string instinct_prompt(const std::string& region) {
  return chatml(
      "Rewrite what stands between <|editable_region_start|> and <|editable_region_end|> under ### User "
      "Excerpt:.",
      "Look at the excerpt.\n\n### Context:\n<|context_file|>: other.py\n<|snippet|>\nx = 1\n\n### User "
      "Edits:\n\nUser edited file \"limits.py\"\n\n```diff\n-LIMIT = 4\n+LIMIT = 5\n```\n\n### User "
      "Excerpt:\nlimits.py\n\nimport os\n<|editable_region_start|>\n" +
          region + "\n<|editable_region_end|>\nprint(LIMIT)```\n### Response:");
}
inline std::string viewed_and_file(const std::string& file) {
  return "<|recently_viewed_code_snippets|>\n<|recently_viewed_code_snippet|>\ncode_snippet_file_path: other.py\nx = "
         "1\n<|/recently_viewed_code_snippet|>\n<|/recently_viewed_code_snippets|>\n\n<|current_file_content|>\n"
         "current_file_path: limits.py\n" +
         file + "\n<|/current_file_content|>\n";
}
inline std::string mercury_prompt(const std::string& region) {
  return chatml("Rewrite what stands between <|code_to_edit|> and <|/code_to_edit|>.",
                viewed_and_file("import os\n<|code_to_edit|>\n" + region + "\n<|/code_to_edit|>\nprint(LIMIT)") +
                    "\n<|edit_diff_history|>\n--- limits.py\n+++ limits.py\n@@ -2 +2 @@\n-LIMIT = 4\n+LIMIT = "
                    "5\n<|/edit_diff_history|>\n");
}
/// `ending` follows the area: the rest of a fence around it, and the closing instruction.
inline std::string copilot_prompt(const std::string& begin, const std::string& region, const std::string& ending) {
  return chatml("Predict the next edit between <|code_to_edit|> and <|/code_to_edit|>.",
                begin + viewed_and_file("import os\nLIMIT = 5\nprint(LIMIT)") +
                    "\n<|edit_diff_history|>\n@@ -2 +2 @@\n-LIMIT = 4\n+LIMIT = 5\n<|/edit_diff_history|>\n\n"
                    "<|area_around_code_to_edit|>\nimport os\n<|code_to_edit|>\n" +
                    region + "\n<|/code_to_edit|>\nprint(LIMIT)\n<|/area_around_code_to_edit|>" + ending);
}

inline const std::vector<golden>& golden_prompts() {
  static const std::vector<golden> all = [] {
    const std::string file = "import os\nLIMIT = 5\n\ndef small(n):\n    return n < LIMIT\n";
    const std::string update = "# ... existing code ...\nLIMIT = 9\n\ndef small(n):\n# ... existing code ...\n";
    const std::string changed = "import os\nLIMIT = 9\n\ndef small(n):\n    return n < LIMIT\n";
    // Without an anchor before the changed line, the file's own line stays: a guess.
    const std::string guess = "import os\nLIMIT = 5\nLIMIT = 9\n\ndef small(n):\n    return n < LIMIT\n";
    const std::string anchored = "import os\nLIMIT = 9\n\ndef small(n):\n# ... existing code ...\n";
    const std::string window = "LIMIT = 5\nprint(LI<|cursor|>MIT)\nprint(2)";
    const std::string between =
        "\n\nThe developer works between the tags `code_to_edit`. Write the code that was between the "
        "`<|code_to_edit|>` and `<|/code_to_edit|>` tags";
    const std::string aider_files = "limits.py\n```\n" + file + "```\n\nmain.py\n```\nfrom limits import small\n```";
    return std::vector<golden>{
        {"aixapply", aixapply_prompt(file, anchored), "<update_file>" + changed + "</update_file>"},
        {"aixapply", aixapply_prompt(file, update), "<update_file>" + guess + "</update_file>"},
        {"fastapply", fastapply_prompt(file, anchored), "<updated-code>" + changed + "</updated-code>"},
        {"relace",
         chatml("", "\n<instruction>Raise it</instruction>\n<code>" + file + "</code>\n<update>" + anchored +
                        "</update>\n"),
         changed},
        {"relace", chatml("", "\n<code>" + file + "</code>\n<update>" + anchored + "</update>\n"), changed},
        {"morph", morph_prompt(file, anchored), changed},
        {"morph", "[INST] <code>" + file + "</code>\n<update>" + anchored + "</update>[/INST]", changed},
        {"continue-apply", continue_apply_prompt(file, anchored), changed + "\n```"},
        {"continue-edit",
         chatml("",
                "A part of a file is to be rewritten.\n\nThis is the prefix of the file:\n```python\nimport "
                "os\n```\n\nThis is the code to rewrite:\n```python\n" +
                    file +
                    "\n```\n\nThe user's request is: \"raise it\"\n\nOnly code.\n\nHere is the rewritten "
                    "code:"),
         file},
        {"continue-edit",
         chatml("", "```python\n" + file +
                        "\n```\n\nPlease rewrite the above file to address the following "
                        "request:\n\nraise it\n\nAll of it. DO NOT surround the code in a code "
                        "block and DO NOT explain yourself."),
         file},
        {"aider-whole",
         "<|im_start|>system\nAnswer in the *file listing* format.<|im_end|>\n<|im_start|>user\nI have *added these "
         "files to the chat*.\n\nOther messages may contain outdated versions of the files' contents.\n\n" +
             aider_files +
             "\n<|im_end|>\n<|im_start|>assistant\nOk, any changes I propose will be to those "
             "files.<|im_end|>\n<|im_start|>user\nRaise the limit, and write a file listing:\n```\nlike this\n"
             "```<|im_end|>\n<|im_start|>assistant\n",
         aider_files + "\n"},
        {"zeta-1", zeta1_prompt("LIMIT = 5<|user_cursor_is_here|>\nprint(1)"),
         "<|editable_region_start|>\nLIMIT = 5\nprint(1)\n<|editable_region_end|>"},
        {"zeta-2", zeta2_prompt("LIM<|user_cursor|>IT = 5\nprint(1)\n"), "LIMIT = 5\nprint(1)\n>>>>>>> UPDATED\n"},
        {"zeta-2.1",
         "<[fim-suffix]>print(LIMIT)\n<[fim-prefix]><filename>other.py\nx = 1\n\n<filename>limits.py\nimport "
         "os\n<|marker_1|>LIMIT = 5\n\n<|marker_2|>def f():<|user_cursor|>\n    pass\n<|marker_3|>\n<[fim-middle]>",
         "<|marker_1|>LIMIT = 5\n\n<|marker_2|>def f():\n    pass\n<|marker_3|>"},
        {"zeta-2.1",  // numbers relative to the cursor
         "<[fim-suffix]>\n<[fim-prefix]><filename>limits.py\n<|marker-1|>LIMIT = "
         "5\n\n<|marker-0|><|user_cursor|>f()\n<|marker+1|>\n<[fim-middle]>",
         "<|marker-1|>LIMIT = 5\n\n<|marker-0|>f()\n<|marker+1|>"},
        {"zeta-2.1",  // names by content, in all files; the cursor's comes first
         "<[fim-suffix]>\n<[fim-prefix]><filename>limits.py\n<|marker_aB3_|>\nLIMIT = <|user_cursor|>5\n<|marker_x-9k|>"
         "\n...\n<filename>other.py\n<|marker_Qq12|>\nx = 1\n<|marker_Qq13|>\n<[fim-middle]>",
         "<|marker_aB3_|>\nLIMIT = 5\n<|marker_x-9k|>"},
        {"zeta-2.1-qwen",
         "<|fim_prefix|><|file_sep|>other.py\nx = 1\n\n<|file_sep|>limits.py\nimport os\n<|marker_1|>LIMIT = "
         "5<|user_cursor|>\n<|marker_2|>\n<|fim_suffix|>\nprint(LIMIT)\n<|fim_middle|>",
         "<|marker_1|>LIMIT = 5\n<|marker_2|>"},
        {"sweep-1", sweep_prompt("limits.py", "LIMIT = 5\nprint(LIMIT)", ""), "\nLIMIT = 5\nprint(LIMIT)\n"},
        {"sweep-2", sweep_prompt("limits.py:1:3", window, "\nLIMIT = 5\n"), "print(LIMIT)\nprint(2)\n"},
        {"instinct", instinct_prompt("LIMIT = 5<|user_cursor_is_here|>\nprint(1)"), "LIMIT = 5\nprint(1)"},
        {"mercury", mercury_prompt("LIMIT = <|cursor|>5\nprint(1)"), "```\nLIMIT = 5\nprint(1)\n```"},
        {"copilot-edit",
         copilot_prompt("", "LIMIT = <|cursor|>5\nprint(1)",
                        between + ". Begin with <EDIT> or <NO_CHANGE>; an edit ends with </EDIT>."),
         "<EDIT>\nLIMIT = 5\nprint(1)\n</EDIT>"},
        {"copilot-edit", copilot_prompt("", "LIMIT = <|cursor|>5\nprint(1)", ""),
         "<EDIT>\nLIMIT = 5\nprint(1)\n</EDIT>"},
        {"copilot-fence",
         copilot_prompt("```\n", "LIMIT = <|cursor|>5\nprint(1)",
                        "\n```" + between +
                            " like this, but do not include the tags themselves.\n```\n// Your revised code goes "
                            "here\n```"),
         "```\nLIMIT = 5\nprint(1)\n```"},
        {"copilot-bare",
         copilot_prompt("```\n", "LIMIT = <|cursor|>5\nprint(1)",
                        "\n```" + between + ", but do not include the tags themselves. All lines."),
         "LIMIT = 5\nprint(1)"},
        {"copilot-bare",
         copilot_prompt("```\n", "LIMIT = <|cursor|>5\nprint(1)", "\n```\n\n<|aggressive|>high<|/aggressive|>"),
         "LIMIT = 5\nprint(1)"},
        {"copilot-bare", copilot_prompt("```\n", "LIMIT = <|cursor|>5\nprint(1)", "\n```"), "LIMIT = 5\nprint(1)"},
    };
  }();
  return all;
}

}  // namespace redline::formats
