#pragma once

#include <algorithm>
#include <cstddef>

#include "runtime/kv/state_use.hpp"

namespace redline::model {

/// The last rows of numbers that a layer saw of a sequence, as a part of the sequence's state: `before` rows that
/// precede the records, and those of the records. Rows have `width` floats; those of the pass are consecutive.
struct row_history {
  float* last;     // [before][width]
  float* records;  // [records_max][width]
  std::size_t before;
  std::size_t width;

  /// The row that came `back` rows before row `at` of a run, whose own rows begin at `of_run`.
  [[nodiscard]] const float* row_before(const kv::state_use& use, const float* of_run, std::size_t at,
                                        std::size_t back) const {
    if (back <= at) return of_run + (at - back) * width;
    back -= at + 1;
    if (back < use.records) return records + (use.records - 1 - back) * width;
    return last + (before - 1 - (back - use.records)) * width;
  }

  /// Writes the last rows as they are after `end` rows of the records and then of the run.
  void write_last(const kv::state_use& use, const float* of_run, std::size_t end, float* to) const {
    // In memory each row comes after the one that it replaces.
    for (std::size_t i = 0; i < before; ++i) {
      const std::size_t from = i + end;
      const float* const row = from < before                 ? last + from * width
                               : from < before + use.records ? records + (from - before) * width
                                                             : of_run + (from - before - use.records) * width;
      if (row != to + i * width) std::copy_n(row, width, to + i * width);
    }
  }

  /// Leaves the last rows before those that were not kept, and records of these.
  void remember(const kv::state_use& use, const float* of_run, std::size_t row_count) const {
    write_last(use, of_run, std::size_t{use.records} + use.kept, last);
    std::copy_n(of_run + use.kept * width, (row_count - use.kept) * width, records);
  }
};

}  // namespace redline::model
