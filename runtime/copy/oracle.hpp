#pragma once

#include <cstdint>
#include <span>

#include "runtime/copy/program.hpp"

namespace redline::copy {

struct oracle_options {
  unit of = unit::lines;
  std::uint32_t span_min = 1;           // minimum number of units in a copy
  std::uint64_t work_max = 32'000'000;  // limit on equal pairs of units, and on span lengths tried
};

/// The program with the fewest bytes that makes `after` from the files, by dynamic programming over every span of equal
/// units; spans may be copied repeatedly and in any order. Ties go to the longer copy, then to the earlier span. After
/// half of work_max only maximal spans are tried. Beyond work_max the program comes from a line diff against the first
/// file: it is longer than necessary but correct. Resolving the program always gives `after`.
[[nodiscard]] program shortest_program(std::span<const document> files, const document& after,
                                       const oracle_options& options = {});

}  // namespace redline::copy
