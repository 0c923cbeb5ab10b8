#include "runtime/formats/format_table.hpp"

#include <algorithm>

namespace redline::formats {
namespace {

constexpr auto choose_first = marker::choice::first;
constexpr auto choose_at_start = marker::choice::at_start;
constexpr std::size_t long_closing = 1024;  // an instruction that ends the user's turn
constexpr std::string_view marker_tag = "<|marker";
constexpr std::size_t marker_tag_max = 32;  // bytes; "<|marker_12|>", "<|marker-3|>", "<|marker_aB3_|>"

/// The end of the line that contains `from`, without its line feed.
std::size_t line_end(text_scanner& in, std::size_t from, std::size_t end) {
  return std::min(in.first("\n", from, end), end);
}

/// Sweep's three windows have the same heading, and the prompt ends with the beginning of the third. A file that
/// contains such headings itself leads to different ones, and then nothing is expected.
bool adjust_sweep(text_scanner& in, const format_row& row, match& m) {
  const std::string_view prompt = in.text();
  const span_of_bytes& updated = m.markers[row.markers[3].text.empty() ? 2 : 3];
  const auto heading_after = [&](const span_of_bytes& mark) {
    return span_of_bytes{mark.end, line_end(in, mark.end, prompt.size())};
  };
  const span_of_bytes current = heading_after(m.markers[1]);
  const span_of_bytes last = heading_after(updated);
  const std::string_view name = last.of(prompt);
  if (name.empty() || current.of(prompt) != name || heading_after(m.markers[0]).of(prompt) != name) return false;
  if (current.end >= updated.begin || prompt[updated.begin - 1] != '\n') return false;
  m.source = {current.end + 1, std::max(current.end + 1, updated.begin - 1)};
  m.prefill = {std::min(last.end + 1, prompt.size()), prompt.size()};
  if (last.end == prompt.size()) m.head = "\n";
  return true;
}

/// The blocks between markers, with the markers, of the file that contains the cursor. The answer may begin at any
/// marker; the cursor that follows the text finds it.
bool adjust_marked_blocks(text_scanner& in, const format_row& row, match& m) {
  const std::string_view prompt = in.text();
  const span_of_bytes files{m.markers[0].end, m.markers[2].begin};
  const span_of_bytes& cursor = m.markers[1];
  std::size_t begin = files.begin;
  for (std::size_t i = cursor.begin; (i = in.last(row.file, files.begin, i)) != nowhere;) {
    if (i != files.begin && prompt[i - 1] != '\n') continue;  // mentioned in a line
    begin = i;
    break;
  }
  std::size_t end = files.end;
  for (std::size_t i = cursor.end; (i = in.first(row.file, i, files.end)) != nowhere; i += row.file.size()) {
    if (prompt[i - 1] != '\n') continue;
    end = i;
    break;
  }
  const std::size_t opening = in.first(marker_tag, begin, cursor.begin);
  const std::size_t closing = in.last(marker_tag, cursor.end, end);
  if (opening == nowhere || closing == nowhere) return false;
  const std::size_t closed = in.first("|>", closing, std::min(end, closing + marker_tag_max));
  if (closed == nowhere) return false;
  m.source = {opening, closed + 2};
  return true;
}

/// Aider's files as the prompt lists them, which is how the answer lists those that it changes: each behind its path,
/// in a fence. All are expected, since the request does not say which are changed.
bool adjust_aider(text_scanner& in, const format_row&, match& m) {
  const std::string_view prompt = in.text();
  const std::size_t begin = m.source.begin + (m.source.of(prompt).starts_with('\n') ? 1 : 0);
  const std::size_t path_end = line_end(in, begin, m.source.end);
  if (path_end == m.source.end) return false;
  const span_of_bytes fence{path_end + 1, line_end(in, path_end + 1, m.source.end)};
  const std::string_view opening = fence.of(prompt);
  if (opening.starts_with('<')) {  // a tag, which aider takes if the files contain fences
    const std::size_t closing = in.last("</", fence.end, m.source.end);
    if (closing == nowhere) return false;
    m.source = {begin, std::min(closing + opening.size() + 1, m.source.end)};
    return true;
  }
  if (!opening.starts_with("```")) return false;
  const std::size_t closing = in.last(opening, fence.end, m.source.end);
  if (closing == nowhere) return false;
  m.source = {begin, closing + opening.size()};
  return true;
}

constexpr marker update_after_code{.text = "<update>", .before = "</code>"};
constexpr marker code_after_instruction{.text = "<code>", .before = "</instruction>"};
constexpr marker area{"<|area_around_code_to_edit|>"}, area_end{"<|/area_around_code_to_edit|>"};
constexpr marker code_to_edit{"<|code_to_edit|>", choose_first}, code_to_edit_end{"<|/code_to_edit|>"};
constexpr marker region{"<|editable_region_start|>", choose_first}, region_end{"<|editable_region_end|>"};

constexpr format_row rows[] = {
    // Whole files.
    {.name = "aixapply",
     .markers = {{{.text = "<source_file>", .before = "</language>"},
                  {.text = "<update_snippet>", .before = "</source_file>"},
                  {"</update_snippet>"}}},
     .head = "<update_file>",
     .tail = "</update_file>",
     .has_update = true},
    {.name = "fastapply",
     .markers = {{{"snippet into the <code> below"}, {"<code>", choose_first}, update_after_code, {"</update>"}}},
     .source = 1,
     .head = "<updated-code>",
     .tail = "</updated-code>",
     .has_update = true},
    // Relace's turn ends with a line feed, Morph's does not; the answers have the same form.
    {.name = "relace", .markers = {{code_after_instruction, update_after_code, {"</update>\n"}}}, .has_update = true},
    {.name = "relace",
     .markers = {{{"<code>", choose_at_start}, update_after_code, {"</update>\n"}}},
     .has_update = true},
    {.name = "morph", .markers = {{code_after_instruction, update_after_code, {"</update>"}}}, .has_update = true},
    {.name = "morph", .markers = {{{"<code>", choose_at_start}, update_after_code, {"</update>"}}}, .has_update = true},
    {.name = "continue-apply",
     .markers = {{{"ORIGINAL CODE:\n```"},
                  {.text = "SUGGESTED EDIT:\n```", .before = "\n```"},
                  {"\n```\n\nApply the SUGGESTED EDIT"}}},
     .edges = edge::fence,
     .head = "```\n",
     .tail = "\n```",
     .has_update = true,
     .after_max = long_closing},
    {.name = "continue-edit",
     .markers = {{{"This is the code to rewrite:\n```"},
                  {"\n```\n\nThe user's request is: \""},
                  {"Here is the rewritten code:"}}},
     .edges = edge::fence},
    {.name = "continue-edit",
     .markers = {{{"```", choose_at_start},
                  {"\n```\n\nPlease rewrite the above file to address the following request:"},
                  {"DO NOT surround the code in a code block and DO NOT explain yourself."}}},
     .edges = edge::fence},
    {.name = "aider-whole",
     .markers = {{{"*file listing*", choose_first},
                  {"*added these files to the chat*"},
                  {"of the files' contents.\n", choose_first},
                  {"any changes I propose will be to those files"}}},
     .source = 2,
     .tail = "\n",
     .after_max = nowhere,
     .adjust = adjust_aider},
    // Regions.
    {.name = "zeta-1",
     .markers = {{{"### User Excerpt:\n\n```"}, region, region_end, {"```\n\n### Response:"}}},
     .source = 1,
     .edges = edge::lines,
     .cursor = "<|user_cursor_is_here|>",
     .head = "<|editable_region_start|>\n",
     .tail = "\n<|editable_region_end|>"},
    {.name = "zeta-2",
     .markers = {{{"<[fim-prefix]>"}, {"<<<<<<< CURRENT\n"}, {"=======\n<[fim-middle]>"}}},
     .source = 1,
     .cursor = "<|user_cursor|>",
     .tail = ">>>>>>> UPDATED\n"},
    {.name = "zeta-2.1",
     .markers = {{{"<[fim-prefix]>"}, {"<|user_cursor|>"}, {"<[fim-middle]>"}}},
     .cursor = "<|user_cursor|>",
     .file = "<filename>",
     .adjust = adjust_marked_blocks},
    {.name = "zeta-2.1-qwen",  // V0608: the suffix follows the region
     .markers = {{{"<|fim_prefix|>"}, {"<|user_cursor|>"}, {"<|fim_suffix|>\n"}, {"<|fim_middle|>"}}},
     .cursor = "<|user_cursor|>",
     .file = "<|file_sep|>",
     .adjust = adjust_marked_blocks},
    {.name = "sweep-2",
     .markers = {{{"<|file_sep|>original/"}, {"<|file_sep|>current/"}, {"<|cursor|>"}, {"<|file_sep|>updated/"}}},
     .cursor = "<|cursor|>",
     .tail = "\n",
     .after_max = nowhere,
     .adjust = adjust_sweep},
    {.name = "sweep-1",
     .markers = {{{"<|file_sep|>original/"}, {"<|file_sep|>current/"}, {"<|file_sep|>updated/"}}},
     .tail = "\n",
     .after_max = nowhere,
     .adjust = adjust_sweep},
    {.name = "instinct",
     .markers = {{{"### User Excerpt:"}, region, region_end, {"```\n### Response:"}}},
     .source = 1,
     .edges = edge::lines,
     .cursor = "<|user_cursor_is_here|>"},
    {.name = "mercury",
     .markers = {{{"<|current_file_content|>"},
                  code_to_edit,
                  code_to_edit_end,
                  {.text = "<|edit_diff_history|>", .before = "<|/current_file_content|>"},
                  {"<|/edit_diff_history|>"}}},
     .source = 1,
     .edges = edge::lines,
     .cursor = "<|cursor|>",
     .head = "```\n",
     .tail = "\n```"},
    // Copilot's strategies, told apart by what the closing instruction says about the answer. Patches are not copies.
    {.name = "copilot-edit",
     .markers = {{area, code_to_edit, code_to_edit_end, area_end, {"</EDIT>"}}},
     .source = 1,
     .edges = edge::lines,
     .cursor = "<|cursor|>",
     .head = "<EDIT>\n",
     .tail = "\n</EDIT>",
     .after_max = long_closing},
    {.name = "copilot-fence",
     .markers = {{area, code_to_edit, code_to_edit_end, area_end, {"revised code goes here\n```"}}},
     .source = 1,
     .edges = edge::lines,
     .cursor = "<|cursor|>",
     .head = "```\n",
     .tail = "\n```"},
    {.name = "copilot-bare",
     .markers = {{area, code_to_edit, code_to_edit_end, area_end, {"do not include the tags themselves"}}},
     .source = 1,
     .edges = edge::lines,
     .cursor = "<|cursor|>",
     .after_max = long_closing},
    {.name = "copilot-bare",
     .markers = {{area, code_to_edit, code_to_edit_end, area_end, {"<|/aggressive|>"}}},
     .source = 1,
     .edges = edge::lines,
     .cursor = "<|cursor|>"},
    {.name = "copilot-bare",  // a fence around the prompt and no instruction: what comes around the copy is not known
     .markers = {{area, code_to_edit, code_to_edit_end, {"<|/area_around_code_to_edit|>\n```"}}},
     .source = 1,
     .edges = edge::lines,
     .cursor = "<|cursor|>"},
    {.name = "copilot-edit",  // codexv21: neither a fence nor an instruction
     .markers = {{area, code_to_edit, code_to_edit_end, area_end}},
     .source = 1,
     .edges = edge::lines,
     .cursor = "<|cursor|>",
     .head = "<EDIT>\n",
     .tail = "\n</EDIT>"},
};

}  // namespace

std::span<const format_row> known_formats() { return rows; }

}  // namespace redline::formats
