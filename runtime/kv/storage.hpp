#pragma once

#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/kv/amount.hpp"
#include "runtime/kv/page_table.hpp"

namespace redline::kv {

/// A sequence's part of a pass, as its memory sees it: tokens [first, first + count) of its table, of which the last
/// drafts_count may be taken back.
struct run_range {
  sequence_id sequence;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t drafts_count = 0;
  [[nodiscard]] std::uint32_t end() const { return first + count; }
};

/// Where a pass finds a sequence's memory.
struct run_memory {
  std::vector<piece> table;         // up to the run's end
  std::vector<piece> window_table;  // from the first token that a row of the run sees in a layer with a window
  static constexpr auto fields(auto& self) { return std::tie(self.table, self.window_table); }
};

/// What one kind of layer keeps of sequences beside the pages of their tables. A length counts tokens of the table. The
/// cache calls each verb for the pages first, then for every kind.
class storage {
 public:
  storage() = default;
  storage(const storage&) = delete;
  storage& operator=(const storage&) = delete;
  virtual ~storage() = default;

  /// What no sequence holds.
  [[nodiscard]] virtual amount free() const = 0;
  /// Adds what this kind asks of a sequence that grows.
  virtual void add_growth(sequence_id sequence, const page_table& table, growth& to) const = 0;
  /// The largest length, at most the given one, from which the sequence can go on.
  [[nodiscard]] virtual std::uint32_t resume_at(sequence_id sequence, const page_table& table,
                                                std::uint32_t length) const = 0;
  /// The table was cut to a length that `resume_at` gave.
  virtual void rewind(sequence_id sequence, page_table& table) = 0;
  /// Holds what a run that begins at `length` reads, until the next verb of this sequence. False: some of it is gone.
  [[nodiscard]] virtual bool pin(sequence_id sequence, page_table& table, std::uint32_t length) = 0;
  /// The table has grown by the run, for which `free` was enough.
  virtual void extend(const run_range& run, page_table& table) = 0;
  /// What the run reads and writes. All runs of the pass have been extended.
  virtual void describe(const run_range& run, const page_table& table, run_memory& out) const = 0;
  /// The run was described: what only it reads may go to others once the pass is done.
  virtual void note_pass(const run_range& run, page_table& table) = 0;
  /// The table begins with known pages, of another sequence's making. Returns the largest length that the sequence can
  /// go on from.
  [[nodiscard]] virtual std::uint32_t adopt(sequence_id sequence, page_table& table) = 0;
  /// The table's first pages become known to others.
  virtual void offer(sequence_id sequence, const page_table& table, std::span<const page_id> pages) = 0;
  /// A page that was known is forgotten.
  virtual void forget(page_id page) = 0;
  virtual void release(sequence_id sequence) = 0;
  virtual void clear() = 0;
  /// Aborts on a contradiction.
  virtual void check_integrity() const = 0;
};

}  // namespace redline::kv
