#pragma once

#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <variant>
#include <vector>

#include "runtime/kv/prefix_index.hpp"
#include "runtime/kv/storage.hpp"
#include "runtime/kv/table_splice.hpp"

namespace redline::kv {

/// The memory of a pass: one entry per run, in order, and the copies to do first.
struct allocated {
  std::vector<run_memory> runs;
  std::vector<token_move> moves;   // to be done in order
  std::vector<state_copy> copies;  // likewise, after them
};
/// These sequences continue from a position before which some KV is gone.
struct kv_lost {
  std::vector<sequence_id> sequences;
};
/// There is too little memory for all of the runs.
struct shortage {};

/// Manages all kinds of memory of one model: what each sequence has, what is free, and which prefixes are cached. Whole
/// prefix pages stay after their sequence has ended, for others in its scope, until memory is needed. It has no clock,
/// sends nothing, and never reads or writes the bytes of a page.
class cache {
 public:
  explicit cache(pool_size size);

  /// Adds another kind. Call it before the first sequence.
  void add(std::unique_ptr<storage> more);

  /// The memory that no sequence uses, including pages that are only cached prefixes.
  [[nodiscard]] amount free() const;
  /// The copies of states that cached prefixes have.
  [[nodiscard]] std::uint32_t state_copies() const;
  /// The memory that the sequence takes when it grows.
  [[nodiscard]] growth next(sequence_id sequence) const;
  /// The number of tokens for which the sequence has memory.
  [[nodiscard]] std::uint32_t length(sequence_id sequence) const;

  /// Replaces a sequence's memory by the whole pages of the longest cached prefix of `log`. Returns the number of
  /// tokens from which it can continue. O(pages of the prefix).
  std::uint32_t adopt(sequence_id sequence, tenant_id scope, std::span<const token> log);
  /// Offers the sequence's leading tokens, which are computed and exact: other sequences of the scope whose logs begin
  /// with them may use its pages.
  void offer(sequence_id sequence, tenant_id scope, std::span<const token> exact);
  /// Drops all tokens after the first `length`, and as many more as must be recomputed to continue. Returns the number
  /// of tokens left.
  std::uint32_t rewind(sequence_id sequence, std::uint32_t length);
  /// s: must lie within the sequence's memory.
  void splice(sequence_id sequence, const table_splice& s);
  /// Moves the tokens of a fragmented sequence together, if that frees pages and there is space for it.
  bool compact(sequence_id sequence);
  /// Allocates the memory for a pass, for all runs or none. A sequence may have at most one run, within its length. No
  /// other pass may begin before this one is done.
  [[nodiscard]] std::variant<allocated, kv_lost, shortage> allocate(std::span<const run_range> runs);
  /// Called for the sequences of a pass when it is done, before `rewind`: it was computed, or it was not, although the
  /// copies before it were made.
  void note_computed(sequence_id sequence);
  void put_back(sequence_id sequence);
  /// Frees all memory of the sequence.
  void release(sequence_id sequence);
  /// Resets to the initial state: nothing is used or cached.
  void clear();

  /// Records changes of the cached prefixes for `take_prefix_changes` from now on.
  void note_prefix_changes() { prefixes_.note_changes(); }
  [[nodiscard]] std::vector<prefix_change> take_prefix_changes() { return prefixes_.take_changes(); }
  /// See prefix_index::recent_blocks.
  [[nodiscard]] std::vector<std::uint64_t> recent_blocks(std::size_t max) const { return prefixes_.recent_blocks(max); }

  /// Aborts if memory is lost or owned twice.
  void check_integrity() const;
  /// Checks about `count` pages of each kind, continuing after the last check. Returns how many it checked.
  std::size_t check_some(std::uint32_t count);

 private:
  [[nodiscard]] std::vector<sequence_id> pin(std::span<const run_range> runs);
  [[nodiscard]] std::uint32_t pages_needed(std::span<const run_range> runs) const;
  void compact_fragmented(std::span<const run_range> runs);
  void forget_given_up();
  void check_sums() const;

  page_pool pool_;
  prefix_index prefixes_;
  std::unordered_map<sequence_id, page_table> tables_;
  std::vector<std::unique_ptr<storage>> kinds_;  // in addition to the pages
  std::vector<token_move> moves_;                // for the next pass
  // The progress of incremental checks.
  std::uint32_t next_page_ = 0;
  std::vector<sequence_id> next_tables_;
  prefix_index::check_progress next_known_;
};

}  // namespace redline::kv
