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
  std::string text;  // with its line feed, if the file has one
  bool operator==(const hunk_line&) const = default;
};

/// A change with the lines around it.
struct hunk {
  std::size_t begin = 0;  // number of old lines before the hunk
  std::vector<hunk_line> lines;

  [[nodiscard]] std::size_t old_count() const;
  [[nodiscard]] std::size_t new_count() const;
};

/// The difference as hunks in order. Changes whose context overlaps form one hunk.
std::vector<hunk> hunks_of(std::string_view before, std::string_view after, std::size_t context = 3);

/// The old file with these of its hunks applied, in order.
std::string with_hunks(std::string_view before, const std::vector<hunk>& taken);

/// A hunk's lines as in a patch, without the @@ line. colour: for a terminal, with control sequences escaped.
std::string body_of(const hunk& h, bool colour = false);

/// A patch of one file for `git apply` and `patch -p1`; empty without hunks. `path` is relative to the folder where the
/// patch is applied.
std::string patch_of(const std::string& path, const std::vector<hunk>& taken, bool colour = false);
/// "@@ -3,7 +3,9 @@". grown: the number of lines that earlier hunks add.
std::string heading_of(const hunk& h, std::ptrdiff_t grown = 0);

/// Parses the user's edited version of `body_of(h)`. Ignores lines that begin with '#'. The lines marked as old must be
/// those of `h`. A body without lines is refused.
result<hunk> read_body(const hunk& h, std::string_view body);

}  // namespace redline::actors::cli
