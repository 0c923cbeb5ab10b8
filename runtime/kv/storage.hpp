#pragma once

#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/kv/amount.hpp"
#include "runtime/kv/page_table.hpp"
#include "runtime/kv/state_use.hpp"

namespace redline::kv {

/// A sequence's part of a pass, as its memory sees it: tokens [first, first + count) of its table, the last
/// drafts_count of which may be rolled back.
struct run_range {
  sequence_id sequence;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t drafts_count = 0;
  /// Lengths at which another sequence is likely to differ from this one, in order; some may be outside the run.
  std::vector<std::uint32_t> partings = {};
  [[nodiscard]] std::uint32_t end() const { return first + count; }
};

/// The location of a sequence's memory in a pass.
struct run_memory {
  std::vector<piece> table;         // up to the run's end
  std::vector<piece> window_table;  // from the first token that a row of the run sees in a layer with a window
  state_use state;                  // if the model has recurrent layers
  static constexpr auto fields(auto& self) { return std::tie(self.table, self.window_table, self.state); }
};

/// The memory that one kind of layer has for sequences in addition to the pages of their tables. A length counts tokens
/// of the table. The cache calls each operation for the pages first, then for every kind.
class storage {
 public:
  storage() = default;
  storage(const storage&) = delete;
  storage& operator=(const storage&) = delete;
  virtual ~storage() = default;

  /// The memory that no sequence uses.
  [[nodiscard]] virtual amount free() const = 0;
  /// Adds what this kind needs for a sequence that grows.
  virtual void add_growth(sequence_id sequence, const page_table& table, growth& to) const = 0;
  /// The largest length, at most `length`, from which the sequence can continue.
  [[nodiscard]] virtual std::uint32_t resume_at(sequence_id sequence, const page_table& table,
                                                std::uint32_t length) const = 0;
  /// Called after the table was cut to a length returned by `resume_at`.
  virtual void rewind(sequence_id sequence, page_table& table) = 0;
  /// Keeps what a run beginning at `length` reads, until the next call for this sequence. False if some is gone.
  [[nodiscard]] virtual bool pin(sequence_id sequence, page_table& table, std::uint32_t length) = 0;
  /// Called after the table has grown by the run, for which `free` sufficed.
  virtual void extend(const run_range& run, page_table& table) = 0;
  /// Adds what the run reads and writes. All runs of the pass have been extended.
  virtual void describe(const run_range& run, const page_table& table, run_memory& out) const = 0;
  /// Called after `describe`: memory that only this run reads may be reused once the pass is done.
  virtual void note_pass(const run_range& run, page_table& table) = 0;
  /// Called when the table begins with cached pages of another sequence. Returns the largest length from which the
  /// sequence can continue.
  [[nodiscard]] virtual std::uint32_t adopt(sequence_id sequence, page_table& table) = 0;
  /// Called when the table's first pages are cached for others.
  virtual void offer(sequence_id sequence, const page_table& table, std::span<const page_id> pages) = 0;
  /// Whether the sequence has more for the prefix that ends with page `index` of its table than there is for the page
  /// that is cached for it.
  [[nodiscard]] virtual bool is_richer(sequence_id, std::size_t /*index*/, page_id /*known*/) const { return false; }
  /// Called when a cached page is evicted.
  virtual void forget(page_id page) = 0;
  /// Called after tokens from `at` on were removed, inserted or moved.
  virtual void note_splice(sequence_id, std::uint32_t /*at*/) {}
  /// Called before `rewind` when the pass is done: the run was computed, or not.
  virtual void note_computed(sequence_id) {}
  virtual void put_back(sequence_id) {}
  /// The copies that it keeps for cached prefixes.
  [[nodiscard]] virtual std::uint32_t copies_kept() const { return 0; }
  /// Adds the states to copy before the next pass.
  virtual void take_copies(std::vector<state_copy>&) {}
  virtual void release(sequence_id sequence) = 0;
  virtual void clear() = 0;
  /// Aborts if the state is inconsistent.
  virtual void check_integrity() const = 0;
};

}  // namespace redline::kv
