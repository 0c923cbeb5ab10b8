#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redline::text {

/// Lines with their line feeds; the last may lack one. Only a line feed ends a line.
[[nodiscard]] std::vector<std::string_view> split_lines(std::string_view text);

/// One line of an edit script.
struct diff_line {
  enum class kind : std::uint8_t { kept, removed, added };
  kind what = kind::kept;
  std::string_view text;
};

/// A shortest edit script from `before` to `after` (Myers, "An O(ND) difference algorithm", 1986); beyond a bound on
/// the work the middle is replaced as a whole, which is still right. Views point into the arguments.
[[nodiscard]] std::vector<diff_line> diff_lines(std::string_view before, std::string_view after);

/// Unified hunks with `context` lines around changes; with colour: ANSI red and green.
[[nodiscard]] std::string unified_diff(std::string_view before, std::string_view after, const std::string& name,
                                       bool colour, std::size_t context = 3);

}  // namespace redline::text
