#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redline::text {

/// Splits into lines with their line feeds; the last may lack one. Only a line feed ends a line.
[[nodiscard]] std::vector<std::string_view> split_lines(std::string_view text);

/// One line of an edit script.
struct diff_line {
  enum class kind : std::uint8_t { kept, removed, added };
  kind what = kind::kept;
  std::string_view text;
};

/// A shortest edit script from `before` to `after` (Myers, "An O(ND) difference algorithm", 1986). Beyond a limit on
/// the work, the middle is replaced as a whole, which is still correct. Views refer to the arguments. The limit is on
/// differing lines; memory and time are quadratic in it.
[[nodiscard]] std::vector<diff_line> diff_lines(std::string_view before, std::string_view after,
                                                std::ptrdiff_t differences_max = 2000);

}  // namespace redline::text
