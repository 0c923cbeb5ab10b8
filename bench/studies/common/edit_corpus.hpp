#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "actors/prompts/edit_prompt.hpp"
#include "bench/studies/common/names.hpp"
#include "runtime/base/result.hpp"

namespace redline::studies {

/// An edit whose result is known.
struct known_edit {
  std::string id;
  edit_task task;
  std::string after;
  double edit_ratio = 0;  // see edit_ratio_of
};

/// The characters of removed and added lines as a share of the characters of both files: 0 for the same file, 1 where
/// no line is kept.
[[nodiscard]] double edit_ratio_of(std::string_view before, std::string_view after);
/// Counts the characters of well-formed UTF-8; other bytes count as one each.
[[nodiscard]] std::size_t characters_of(std::string_view text);

/// Parses one JSON object per line with "instruction", "before" and "after", and optional "id" and "path" (which names
/// the language). Empty lines and other fields are skipped. A failure names the line and the field.
result<std::vector<known_edit>> parse_edits(std::string_view lines, const std::string& name);
/// Reads a file and orders its edits by edit ratio.
result<std::vector<known_edit>> read_edits(const std::string& path);

/// Makes a prediction that is not quite right. About the share `right` of the lines stays, chosen by `seed`; of the
/// others, every second one is left out and every second one has its first word changed.
[[nodiscard]] std::string damaged(std::string_view text, double right, std::string_view seed);

/// The positions of `count` items at even distances among `all`; every position when count is 0 or too large.
[[nodiscard]] std::vector<std::size_t> spread(std::size_t all, std::size_t count);

/// The file of --edits: `given`, or a default if that is empty. It fails where the default does not exist.
result<std::string> edits_path(const std::string& given);

}  // namespace redline::studies
