#include "actors/http/shapes/apply/next_edit.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "actors/http/shapes/apply/whole_answer_writer.hpp"
#include "actors/http/shapes/openai/translation.hpp"

namespace redline::apply {
namespace {

using api::api_error, api::field_reader, api::json;

constexpr std::string_view section = "<|file_sep|>", cursor_mark = "<|cursor|>";
// The models were trained on ten lines on both sides of the cursor, behind a larger part of the file.
constexpr std::size_t lines_aside = 10;
// What stands before the cursor keeps its KV from one key to the next. What comes behind it is computed again each
// time.
constexpr std::size_t file_bytes_before = 6000, file_bytes_behind = 1500, first_line_grid = 2048;
constexpr std::size_t chunk_bytes_max = 6000, change_bytes_max = 6000;  // of all together
constexpr std::size_t chunks_max = 256, problems_max = 1000, problems_shown = 20;
constexpr std::size_t answer_tokens_min = 256, answer_tokens_max = 2048;

/// How many of the client's units the text has.
std::size_t units_of(std::string_view text, bool counts_bytes) {
  if (counts_bytes) return text.size();
  std::size_t units = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    units += (byte & 0xc0) == 0x80 ? 0 : byte >= 0xf0 ? 2 : 1;
  }
  return units;
}

bool is_inside_character(std::string_view text, std::size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
}

/// The byte at which that many units end, at the beginning of a character; the text's size if it has fewer.
std::size_t byte_at(std::string_view text, std::size_t units, bool counts_bytes) {
  std::size_t at = 0;
  for (std::size_t seen = 0; at < text.size() && seen < units; ++at) seen += units_of(text.substr(at, 1), counts_bytes);
  while (is_inside_character(text, at)) ++at;
  return at;
}

std::size_t line_begin(std::string_view text, std::size_t at) {
  const auto before = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
  return before == std::string_view::npos ? 0 : before + 1;
}

/// The byte of the line feed, or the text's size.
std::size_t line_end(std::string_view text, std::size_t at) { return std::min(text.find('\n', at), text.size()); }

std::string with_line_feed(std::string_view text) {
  return std::string(text) + (text.empty() || text.ends_with('\n') ? "" : "\n");
}

/// Whole lines of the file around the cursor. They begin behind a multiple of
/// `first_line_grid`, so that the next request's prompt begins alike while the cursor moves little, and finds its KV.
std::string_view lines_around(std::string_view text, std::size_t cursor) {
  std::size_t begin = line_begin(text, cursor), end = line_end(text, cursor);
  if (cursor - begin > file_bytes_before || end - cursor > file_bytes_behind) return {};
  const auto earliest = cursor - std::min(cursor, file_bytes_before);
  const auto stable = (earliest + first_line_grid - 1) / first_line_grid * first_line_grid;
  if (stable == 0)
    begin = 0;
  else if (const auto behind = line_end(text, stable - 1) + 1; behind < begin)
    begin = behind;
  while (end < text.size() && line_end(text, end + 1) - cursor <= file_bytes_behind) end = line_end(text, end + 1);
  return text.substr(begin, end - begin);
}

struct change {
  std::string_view path, before, after;
};

/// Reads "File: PATH:", "<<<<<<< ORIGINAL", old lines, "=======", new lines, ">>>>>>> UPDATED", any number of times.
std::vector<change> read_changes(std::string_view text) {
  constexpr std::string_view open = "<<<<<<< ORIGINAL\n", middle = "=======\n", close = ">>>>>>> UPDATED";
  std::vector<change> found;
  std::string_view path;
  while (!text.empty()) {
    const auto begin = text.find(open);
    if (begin == std::string_view::npos) break;
    if (const auto named = text.substr(0, begin).rfind("File: "); named != std::string_view::npos) {
      path = text.substr(named + 6, begin - named - 6);
      path = path.substr(0, path.find('\n'));
      if (path.ends_with(':')) path.remove_suffix(1);
    }
    text.remove_prefix(begin + open.size());
    const auto end = text.find(close);
    if (end == std::string_view::npos) break;
    const auto both = text.substr(0, end);
    text.remove_prefix(end + close.size());
    const auto cut = both.find(middle);
    if (cut != std::string_view::npos) found.push_back({path, both.substr(0, cut), both.substr(cut + middle.size())});
  }
  return found;
}

/// The newest changes that fit.
std::string tell_changes(std::string_view text, std::string_view path) {
  std::string all;
  const auto changes = read_changes(text);
  for (auto one = changes.rbegin(); one != changes.rend(); ++one) {
    std::string told(section);
    told.append(one->path.empty() ? path : one->path).append(".diff\noriginal:\n").append(with_line_feed(one->before));
    told.append("updated:\n").append(with_line_feed(one->after));
    if (all.size() + told.size() > change_bytes_max) break;
    all.insert(0, told);
  }
  return all;
}

/// Pieces of other files, the first ones that fit. Chunks of some names are no files but facts.
void tell_chunks(field_reader& fields, const char* name, std::optional<api_error>& error, std::string& files,
                 std::string& facts) {
  const json* chunks = fields.array(name, chunks_max);
  if (chunks == nullptr) return;
  for (std::size_t i = 0; i < chunks->size() && !error; ++i) {
    const auto at = api::indexed(name, i);
    if (!(*chunks)[i].is_object()) return fields.refuse_type(at, "an object", (*chunks)[i]);
    const api::request_limits limits;
    field_reader chunk((*chunks)[i], at, error);
    const auto path = chunk.text("file_path", limits.text_bytes_max).value_or("");
    const auto content = chunk.text("content", limits.text_bytes_max).value_or("");
    if (path.empty() || content.empty() || files.size() + facts.size() + content.size() > chunk_bytes_max) continue;
    if (path == "diagnostics") {
      facts.append(section).append("context/diagnostics\n").append(with_line_feed(content));
    } else if (path == "treesitter_context") {
      facts.append(section).append("context/treesitter\n").append(with_line_feed(content));
    } else if (path == "staged_git_diff") {
      facts.append(section).append("context/staged_diff\n").append(with_line_feed(content));
    } else {
      files.append(section).append(path).append("\n").append(with_line_feed(content));
    }
  }
}

std::string tell_problems(field_reader& fields, std::optional<api_error>& error) {
  const json* problems = fields.array("editor_diagnostics", problems_max);
  std::string told;
  for (std::size_t i = 0; problems != nullptr && i < std::min(problems->size(), problems_shown) && !error; ++i) {
    const auto at = api::indexed("editor_diagnostics", i);
    if (!(*problems)[i].is_object()) {
      fields.refuse_type(at, "an object", (*problems)[i]);
      break;
    }
    const api::request_limits limits;
    field_reader one((*problems)[i], at, error);
    const auto line = one.integer("line", 0, 1'000'000'000);
    const auto message = one.text("message", limits.text_bytes_max).value_or("");
    if (line) told.append("Line ").append(std::to_string(*line)).append(": ");
    told.append(message.substr(0, message.find('\n'))).append("\n");
  }
  return told.empty() ? told : std::string(section) + "context/diagnostics\n" + told;
}

/// What the answer continues: the lines above the cursor's, or only the first one if lines were inserted above.
std::string_view given_lines(std::string_view window, std::size_t cursor, bool changed_above) {
  if (!changed_above) return window.substr(0, line_begin(window, cursor));
  std::size_t end = window.substr(0, cursor).find('\n');
  if (end == std::string_view::npos) return window.substr(0, cursor);
  while (end < cursor && window[end] == '\n') ++end;
  return window.substr(0, end);
}

class next_edit_writer final : public whole_answer_writer {
 public:
  next_edit_writer(edit_window window, api::response_head head) : window_(std::move(window)), head_(std::move(head)) {}

  [[nodiscard]] std::string whole(std::span<const api::choice> choices,
                                  const api::usage_report& /*usage*/) const override {
    const api::choice& one = choices.front();
    std::string_view before = window_.text, after = before;
    std::string written = window_.given + one.text;
    written.erase(written.find_last_not_of(" \t\r\n") + 1);
    if (one.finish == api::finish_reason::stop) {
      // White space at the end is not the model's to decide: it ends wherever it likes.
      const auto last = before.find_last_not_of(" \t\r\n");
      written.append(before.substr(last == std::string_view::npos ? 0 : last + 1));
      after = written;
    }
    const std::size_t shorter = std::min(before.size(), after.size());
    std::size_t same = 0, tail = 0;
    while (same < shorter && before[same] == after[same]) ++same;
    while (same > 0 && (is_inside_character(before, same) || is_inside_character(after, same))) --same;
    while (tail < shorter - same && before[before.size() - 1 - tail] == after[after.size() - 1 - tail]) ++tail;
    while (tail > 0 && is_inside_character(before, before.size() - tail)) --tail;
    const auto offset = [&](std::size_t byte) {
      return window_.first_offset + units_of(before.substr(0, byte), window_.counts_bytes);
    };
    json line;
    line["autocomplete_id"] = head_.id;
    line["start_index"] = offset(same);
    line["end_index"] = offset(before.size() - tail);
    line["completion"] = after.substr(same, after.size() - tail - same);
    line["confidence"] = confidence_of(one);
    return dump_json(line) + "\n";
  }

 private:
  /// The geometric mean of the probabilities of the answer's tokens.
  static double confidence_of(const api::choice& one) {
    if (!one.tokens || one.tokens->empty()) return 0;
    double sum = 0;
    for (const auto& report : *one.tokens) sum += report.chosen.logprob;
    return std::round(std::exp(sum / static_cast<double>(one.tokens->size())) * 1000) / 1000;
  }

  const edit_window window_;
  const api::response_head head_;
};

}  // namespace

std::unique_ptr<api::answer_writer> next_edit_shape::make_writer(const api::response_head& head) const {
  return std::make_unique<next_edit_writer>(window_, head);
}

api::checked<api::generation_request> parse_next_edit(std::string_view body, const api::request_limits& limits) {
  const auto parsed = api::parse_body(body);
  if (!parsed) return parsed.error();
  std::optional<api_error> error;
  field_reader fields(*parsed, "", error);
  const auto path = fields.text("file_path", limits.text_bytes_max);
  if (!path) fields.refuse("file_path", "'file_path' is required: the name of the file.");
  const auto file = fields.text("file_contents", limits.text_bytes_max);
  if (!file) fields.refuse("file_contents", "'file_contents' is required: the file as it is now.");
  const auto position = fields.integer("cursor_position", 0, std::int64_t{1} << 40);
  if (!position) {
    fields.refuse("cursor_position",
                  "'cursor_position' is required: where the cursor is in 'file_contents', in UTF-16 code units, or in "
                  "bytes with 'use_bytes'.");
  }
  const bool counts_bytes = fields.boolean("use_bytes").value_or(false);
  const bool changed_above = fields.boolean("changes_above_cursor").value_or(false);
  const auto changes = fields.text("recent_changes", limits.text_bytes_max).value_or("");
  std::string chunks, facts;
  tell_chunks(fields, "file_chunks", error, chunks, facts);
  tell_chunks(fields, "retrieval_chunks", error, chunks, facts);
  facts += tell_problems(fields, error);
  if (error) return std::move(*error);
  const std::size_t cursor = byte_at(*file, static_cast<std::size_t>(*position), counts_bytes);
  if (units_of(*file, counts_bytes) < static_cast<std::size_t>(*position)) {
    fields.refuse("cursor_position", "'cursor_position' is " + std::to_string(*position) +
                                         ", behind the end of "
                                         "'file_contents', which has " +
                                         std::to_string(units_of(*file, counts_bytes)) +
                                         (counts_bytes ? " bytes." : " UTF-16 code units."));
    return std::move(*error);
  }

  std::size_t begin = line_begin(*file, cursor), end = line_end(*file, cursor);
  for (std::size_t i = 0; i < lines_aside && begin > 0; ++i) begin = line_begin(*file, begin - 1);
  for (std::size_t i = 0; i < lines_aside && end < file->size(); ++i) end = line_end(*file, end + 1);
  edit_window window{.text = file->substr(begin, end - begin),
                     .given = {},
                     .first_offset = units_of(std::string_view(*file).substr(0, begin), counts_bytes),
                     .counts_bytes = counts_bytes};
  window.given = given_lines(window.text, cursor - begin, changed_above);
  const auto first_line = 1 + std::count(file->begin(), file->begin() + static_cast<std::ptrdiff_t>(begin), '\n');
  const auto last_line = first_line + std::count(window.text.begin(), window.text.end(), '\n');
  const std::string lines = "/" + *path + ":" + std::to_string(first_line) + ":" + std::to_string(last_line) + "\n";
  std::string marked = window.text;
  marked.insert(cursor - begin, cursor_mark);

  std::string prompt;
  const auto add = [&](std::string_view heading, std::string_view text) {
    prompt.append(section).append(heading).append(text).append("\n");
  };
  if (const auto around = lines_around(*file, cursor); !around.empty()) add(*path + "\n", around);
  if (!chunks.empty()) prompt.append(section).append("context/retrieval\n").append(chunks);
  prompt += facts + tell_changes(changes, *path);
  add("original" + lines, window.text);
  add("current" + lines, marked);
  prompt.append(section).append("updated").append(lines).append(window.given);

  json out;
  out["prompt"] = std::move(prompt);
  out["max_tokens"] = std::clamp(window.text.size() / 2, answer_tokens_min, answer_tokens_max);
  out["temperature"] = 0;
  out["stop"] = json::array({section, "<|endoftext|>"});
  out["logprobs"] = 0;
  api::copy_members(*parsed, out, {{"model", "model"}, {"max_tokens", "max_tokens"}});
  api::copy_our_members(*parsed, out);
  return api::read_translated(out, std::make_shared<next_edit_shape>(std::move(window)), {{"file_contents", "prompt"}},
                              limits, api::endpoint::completions);
}

}  // namespace redline::apply
