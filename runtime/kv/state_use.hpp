#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

namespace redline::kv {

/// How a run reads and leaves its sequence's state in the recurrent layers of a model.
///
/// A slot has the state before the rows of the last run that may be taken back, and a record of each of these rows. The
/// next run applies the records of those that were accepted first.
struct state_use {
  /// After so many rows, of the records and then of the kept ones, the state is copied to another slot.
  struct snapshot {
    std::uint32_t rows = 0;
    std::uint32_t slot = 0;
    static constexpr auto fields(auto& self) { return std::tie(self.rows, self.slot); }
  };
  std::uint32_t slot = 0;
  bool begins = true;         // the sequence has no tokens before the run
  std::uint32_t records = 0;  // rows of the previous run that the state lacks and that were accepted
  std::uint32_t kept = 0;     // leading rows of the run that the state has afterwards; the others become records
  std::vector<snapshot> snapshots = {};  // ascending
  static constexpr auto fields(auto& self) {
    return std::tie(self.slot, self.begins, self.records, self.kept, self.snapshots);
  }
};

/// A state that is copied from one slot to another before a pass.
struct state_copy {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  static constexpr auto fields(auto& self) { return std::tie(self.from, self.to); }
};

}  // namespace redline::kv
