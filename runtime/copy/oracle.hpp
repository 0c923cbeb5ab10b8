#pragma once

#include <cstdint>
#include <span>

#include "runtime/copy/program.hpp"

namespace redline::copy {

struct oracle_options {
  unit of = unit::lines;
  std::uint32_t span_min = 1;           // units of a copy at least
  std::uint64_t work_max = 32'000'000;  // equal pairs of units looked at, and lengths tried
};

/// The program of fewest bytes that makes `after` out of the files, by dynamic programming over every span of equal
/// units; copies may repeat and change places. Ties go to the longer copy, then to the earlier span. Beyond half of the
/// work only whole runs of equal units are tried, beyond all of it a line difference decides (of the first file):
/// longer than needed, but right. Resolving it gives `after`, always.
[[nodiscard]] program shortest_program(std::span<const document> files, const document& after,
                                       const oracle_options& options = {});

}  // namespace redline::copy
