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

/// Characters of removed and added lines as a share of the characters of both files: 0 for the same file, 1 where no
/// line is kept.
[[nodiscard]] double edit_ratio_of(std::string_view before, std::string_view after);
/// Of well-formed UTF-8; other bytes count one each.
[[nodiscard]] std::size_t characters_of(std::string_view text);

/// One JSON object per line with "instruction", "before" and "after", perhaps "id" and "path" (which names the
/// language); empty lines and other fields are skipped. A failure names the line and the field.
result<std::vector<known_edit>> parse_edits(std::string_view lines, const std::string& name);
/// Of a file; in order of the edit ratio.
result<std::vector<known_edit>> read_edits(const std::string& path);

/// A prediction that is not quite right: about the share `right` of the lines stays, chosen by `seed`; of the others
/// every second is left out and every second has its first word changed.
[[nodiscard]] std::string damaged(std::string_view text, double right, std::string_view seed);

/// Places of `count` things among `all` at even distances; of all when count is 0 or too many.
[[nodiscard]] std::vector<std::size_t> spread(std::size_t all, std::size_t count);

/// --edits: where they are when the flag is empty.
[[nodiscard]] std::string default_edits_path();

}  // namespace redline::studies
