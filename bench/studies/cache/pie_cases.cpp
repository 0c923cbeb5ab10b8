#include "bench/studies/cache/pie_cases.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "bench/studies/common/statistics.hpp"
#include "runtime/text/line_diff.hpp"

namespace redline::studies {
namespace {

using nlohmann::json;

failure malformed(const std::string& where, std::string_view wanted) {
  return {errc::file_malformed, where + ": expected " + std::string(wanted)};
}

result<std::string> text_of(const json& object, const char* name, const std::string& where) {
  const auto it = object.find(name);
  if (it == object.end() || !it->is_string()) return malformed(where, "a string '" + std::string(name) + "'");
  return it->get<std::string>();
}

result<pie_context::op> op_of(const json& given, std::size_t lines_count, const std::string& where) {
  const auto place = [&](const char* name) { return given.is_object() ? given.value(name, json()) : json(); };
  const json begin = place("start");
  const json end = place("end");
  const json lines = place("text");
  if (!begin.is_number_unsigned() || !end.is_number_unsigned() || !lines.is_array()) {
    return malformed(where, "inverse operations with 'start', 'end' and lines as 'text'");
  }
  pie_context::op out{.begin = begin.get<std::size_t>(), .end = end.get<std::size_t>(), .lines = {}};
  if (out.begin > out.end || out.end > lines_count) return malformed(where, "inverse operations inside the context");
  for (const json& line : lines) {
    if (!line.is_string()) return malformed(where, "lines as 'text'");
    out.lines.push_back(line.get<std::string>());
  }
  return out;
}

result<pie_context> context_of(const json& row, const std::string& where) {
  if (!row.is_object() || !row.contains("tasks") || !row["tasks"].is_array())
    return malformed(where, "an object with 'tasks'");
  pie_context out;
  REDLINE_TRY_ASSIGN(out.id, text_of(row, "id", where));
  REDLINE_TRY_ASSIGN(out.language, text_of(row, "language", where));
  REDLINE_TRY_ASSIGN(out.next_line, text_of(row, "target_line", where));
  REDLINE_TRY_ASSIGN(const auto text, text_of(row, "prefix_context", where));
  for (const auto line : text::split_lines(text)) out.lines.emplace_back(line);
  for (const json& given : row["tasks"]) {
    if (!given.is_object() || !given.contains("inverse") || !given["inverse"].is_array()) {
      return malformed(where, "tasks with 'inverse'");
    }
    pie_context::task task;
    REDLINE_TRY_ASSIGN(task.name, text_of(given, "task", where));
    for (const json& op : given["inverse"]) {
      REDLINE_TRY_ASSIGN(auto one, op_of(op, out.lines.size(), where));
      if (!task.back.empty() && one.begin < task.back.back().end)
        return malformed(where, "inverse operations in order");
      task.back.push_back(std::move(one));
    }
    out.tasks.push_back(std::move(task));
  }
  return out;
}

std::string joined(const std::vector<std::string>& lines, std::size_t begin, std::size_t end) {
  std::string out;
  for (std::size_t i = begin; i < end; ++i) out += lines[i];
  return out;
}

}  // namespace

std::optional<pie_case> pie_context::cut(std::string_view task_name, std::size_t first_line) const {
  const auto found = std::find_if(tasks.begin(), tasks.end(), [&](const task& t) { return t.name == task_name; });
  if (found == tasks.end() || found->back.empty() || found->back.front().begin < first_line) return std::nullopt;
  pie_case out{.id = id,
               .task = found->name,
               .before = {},
               .after = joined(lines, first_line, lines.size()),
               .next_line = next_line};
  std::size_t at = first_line;
  for (const op& o : found->back) {
    out.before += joined(lines, at, o.begin) + joined(o.lines, 0, o.lines.size());
    at = o.end;
  }
  out.before += joined(lines, at, lines.size());
  return out;
}

result<std::vector<pie_context>> parse_pie_contexts(std::string_view lines, const std::string& name) {
  std::vector<pie_context> out;
  std::size_t number = 0;
  for (const auto line : text::split_lines(lines)) {
    ++number;
    if (line.find_first_not_of(" \r\n") == std::string_view::npos) continue;
    const auto row = json::parse(line, nullptr, false);
    REDLINE_TRY_ASSIGN(auto one, context_of(row, name + ":" + std::to_string(number)));
    out.push_back(std::move(one));
  }
  return out;
}

std::string default_pie_path() {
  const char* path = "../shared/data/pie/pie_contexts.jsonl";
  return std::filesystem::exists(path) ? path : "";
}

double similarity(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (const char c : a) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t up = row[j];
      row[j] = std::min({up + 1, row[j - 1] + 1, diagonal + (c == b[j - 1] ? 0 : 1)});
      diagonal = up;
    }
  }
  if (a.empty() && b.empty()) return 1;
  return 1 - ratio(static_cast<double>(row.back()), static_cast<double>(std::max(a.size(), b.size())));
}

}  // namespace redline::studies
