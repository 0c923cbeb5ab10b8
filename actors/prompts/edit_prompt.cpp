#include "actors/prompts/edit_prompt.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "runtime/text/file_form.hpp"
#include "runtime/text/line_diff.hpp"

namespace redline::actors {
namespace {

std::string language_of(const std::string& path) {
  static constexpr std::pair<std::string_view, std::string_view> known[] = {
      {".py", "python"}, {".js", "javascript"}, {".ts", "typescript"}, {".java", "java"}, {".go", "go"},
      {".rs", "rust"},   {".c", "c"},           {".h", "c"},           {".cpp", "cpp"},   {".cc", "cpp"},
      {".hpp", "cpp"},   {".rb", "ruby"},       {".sh", "bash"}};
  for (const auto& [ending, name] : known) {
    if (path.ends_with(ending)) return std::string(name);
  }
  return {};
}

/// Longer than any sequence of backticks in the file, so that the file cannot end the fence.
std::string fence_of(const std::string& text) {
  std::size_t longest = 0;
  std::size_t run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return std::string(std::max<std::size_t>(3, longest + 1), '`');
}

bool is_whitespace(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

/// How Markdown sees a line: the backticks at its beginning and what follows them.
struct fence_line {
  std::size_t backticks = 0;  // 0 if the line is no fence
  bool is_bare = false;       // only whitespace follows, so it can close a block
};

fence_line read_fence_line(std::string_view line) {
  const std::size_t count = std::min(line.find_first_not_of('`'), line.size());
  const std::string_view rest = line.substr(count);
  if (count < 3 || rest.find('`') != std::string_view::npos) return {};
  return {count, is_whitespace(rest)};
}

bool lacks_final_line_feed(std::string_view text) { return !text.empty() && !text.ends_with('\n'); }

/// The file in an answer that the model ended.
result<std::string> take_out_of_fence(std::size_t shortest, const std::string& answer) {
  std::string file;
  std::size_t outer = 0;  // backticks of the fence around the file
  std::size_t inner = 0;  // backticks of a code block in the file, whose end is not the file's
  bool closed = false;
  for (const auto line : text::split_lines(answer)) {
    const fence_line f = read_fence_line(line);
    if (closed) {
      if (is_whitespace(line)) continue;
      return failure{errc::unusable_answer,
                     "the model's answer continues after its closing fence: expected the fence to be the last line, "
                     "so the file may be cut short; the answer was discarded"};
    }
    if (outer == 0) {
      if (f.backticks >= shortest) outer = f.backticks;
      continue;
    }
    if (inner == 0 && f.backticks == outer && f.is_bare) {
      closed = true;
      continue;
    }
    if (inner == 0 && f.backticks >= outer) {
      inner = f.backticks;
    } else if (inner != 0 && f.backticks >= inner && f.is_bare) {
      inner = 0;
    }
    file += line;
  }
  if (closed) return file;
  return failure{errc::unusable_answer, outer != 0
                                            ? "the model's answer ends inside the file (it did not close the fence)"
                                            : "the model's answer contains no file in a code fence"};
}

}  // namespace

result<void> check_editable(const edit_task& task) {
  const auto why = text::text_complaint(task.before);
  if (!why) return {};
  return failure{errc::invalid_argument, (task.path.empty() ? std::string("the file") : task.path) +
                                             " cannot be edited: it is " + *why + "; it was not changed"};
}

std::string shown_file(const edit_task& task) { return text::shown_text(task.before); }

std::string message_of(const edit_task& task) {
  const std::string shown = shown_file(task);
  const std::string fence = fence_of(shown);
  return task.instruction + "\n" + fence + language_of(task.path) + "\n" + shown +
         (lacks_final_line_feed(shown) ? "\n" : "") + fence;
}

std::string program_message_of(const edit_task& task, const program_wording& how) {
  const std::string shown = shown_file(task);
  std::string numbered;
  std::size_t number = 0;
  for (const auto line : text::split_lines(shown)) {
    numbered += std::to_string(++number) + "\t" + std::string(line);
  }
  const std::string fence = fence_of(shown);
  const std::string file =
      fence + language_of(task.path) + "\n" + numbered + (lacks_final_line_feed(shown) ? "\n" : "") + fence;
  std::string ops;
  if (how.lines && how.anchors) {
    ops +=
        "<copy lines=\"i-j\" first=\"...\" last=\"...\"/> copies lines i to j of the file and says how each of the two "
        "begins "
        "(24 characters at most, up to a quote), ";
  } else if (how.lines) {
    ops += "<copy lines=\"i-j\"/> copies lines i to j of the file, ";
  }
  if (how.tokens) ops += "<copy tokens=\"i-j\"/> copies its tokens i to j, ";
  return task.instruction + "\nWrite an edit program that makes the new file: " + ops +
         "<gen>text</gen> writes new text, </program> ends it. The file, each line behind its number:\n" + file;
}

bool is_models_own_end(std::string_view finish_reason) { return finish_reason == "stop"; }

result<std::string> file_of_answer(const edit_task& task, const edit_answer& answer) {
  REDLINE_TRY(check_editable(task));
  if (!answer.is_whole) {
    return failure{
        errc::unusable_answer,
        "the model's answer was cut before its end, by the context or a token limit, and so the file would be "
        "cut; the answer was discarded"};
  }
  if (const auto why = text::text_complaint(answer.text)) {
    return failure{errc::unusable_answer, "the model's answer is " + *why + "; the answer was discarded"};
  }
  if (answer.is_program) return text::with_form_of(task.before, answer.text);
  REDLINE_TRY_ASSIGN(const auto file, take_out_of_fence(fence_of(shown_file(task)).size(), answer.text));
  return text::with_form_of(task.before, file);
}

std::string answer_of(const edit_task& task, const std::string& after) {
  const std::string fence = fence_of(shown_file(task));
  const std::string shown = text::shown_text(after);
  // file_of_answer removes the line feed again where the old file had none.
  const bool ends_line = !lacks_final_line_feed(task.before) && (shown.empty() || shown.ends_with('\n'));
  return fence + language_of(task.path) + "\n" + shown + (ends_line ? "" : "\n") + fence;
}

}  // namespace redline::actors
