#pragma once

#include <cstdint>
#include <span>

#include "runtime/copy/program.hpp"

namespace redline::copy {

struct oracle_options {
  unit of = unit::lines;
  std::uint32_t span_min = 1;           // least number of units in a copy
  std::uint64_t work_max = 32'000'000;  // bound on equal pairs of units, and on span lengths tried
};

/// The program of fewest bytes that makes `after` out of the files, by dynamic programming over every span of equal
/// units; spans may be copied repeatedly and in any order. Ties go to the longer copy, then to the earlier span. After
/// half of work_max only maximal spans are tried; beyond work_max the program comes from a line difference with the
/// first file, which is longer than necessary but correct. Resolving the program always gives `after`.
[[nodiscard]] program shortest_program(std::span<const document> files, const document& after,
                                       const oracle_options& options = {});

}  // namespace redline::copy
