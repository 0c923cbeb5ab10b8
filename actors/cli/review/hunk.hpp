#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/text/line_diff.hpp"

namespace redline::actors::cli {

struct hunk_line {
  text::diff_line::kind what = text::diff_line::kind::kept;
  std::string text;  // with its line feed, where the file has one
  bool operator==(const hunk_line&) const = default;
};

/// A change with the lines around it.
struct hunk {
  std::size_t begin = 0;  // lines of the old file before it
  std::vector<hunk_line> lines;

  [[nodiscard]] std::size_t old_count() const;
  [[nodiscard]] std::size_t new_count() const;
};

/// The difference in order; changes whose surroundings meet are one hunk.
std::vector<hunk> hunks_of(std::string_view before, std::string_view after, std::size_t context = 3);

/// The old file with these of its hunks, in order, taken.
std::string with_hunks(std::string_view before, const std::vector<hunk>& taken);

/// A hunk's lines as a patch has them, without the line that begins with @@. colour: for a terminal, with what it would
/// obey escaped.
std::string body_of(const hunk& h, bool colour = false);

/// A patch of one file for `git apply` and `patch -p1`, empty without hunks. `path` is relative to where it is applied.
std::string patch_of(const std::string& path, const std::vector<hunk>& taken, bool colour = false);
/// "@@ -3,7 +3,9 @@"; `grown`: how many lines the hunks before it add.
std::string heading_of(const hunk& h, std::ptrdiff_t grown = 0);

/// What a person made of `body_of(h)`: lines with '#' are left out. The lines that it says are in the old file must be
/// those of `h`; a body without lines is refused, too.
result<hunk> read_body(const hunk& h, std::string_view body);

}  // namespace redline::actors::cli
