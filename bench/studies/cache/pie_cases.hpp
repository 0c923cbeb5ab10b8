#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"

namespace redline::studies {

/// A text before and after an edit, and the line that follows it in either case.
struct pie_case {
  std::string id;
  std::string task;
  std::string before;
  std::string after;
  std::string next_line;
};

/// A context with its tasks, as `pie_contexts.jsonl` has them. Each task leads back from the context to the text before
/// an edit.
struct pie_context {
  struct op {
    std::size_t begin = 0;  // lines [begin, end) of the context are replaced by `lines`
    std::size_t end = 0;
    std::vector<std::string> lines;
  };
  struct task {
    std::string name;
    std::vector<op> back;
  };
  std::string id;
  std::string language;
  std::vector<std::string> lines;  // each line with its line feed
  std::string next_line;
  std::vector<task> tasks;

  /// The context from line `first_line` on. Returns nullopt when the task does not exist or its edit does not lie
  /// wholly after that line.
  [[nodiscard]] std::optional<pie_case> cut(std::string_view task_name, std::size_t first_line) const;
};

/// A failure names the line and the field.
result<std::vector<pie_context>> parse_pie_contexts(std::string_view lines, const std::string& name);
/// The file that --cases means when it is empty.
[[nodiscard]] std::string default_pie_path();

/// 1 - Levenshtein distance in bytes over the longer length; 1 for two empty texts.
[[nodiscard]] double similarity(std::string_view a, std::string_view b);

}  // namespace redline::studies
