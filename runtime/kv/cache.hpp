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

/// The memory of a pass: of each run, in order, and what is copied before it.
struct allocated {
  std::vector<run_memory> runs;
  std::vector<token_move> moves;  // in order
};
/// These sequences want to go on from a place before which something is gone.
struct kv_lost {
  std::vector<sequence_id> sequences;
};
/// There is too little for all of the runs.
struct shortage {};

/// The bookkeeping of one model's memory, of all kinds: what each sequence holds, what is free, which prefixes are
/// known. Whole pages of prefixes stay when their sequence is over, for others of its scope, until memory is needed.
/// Has no clock, sends nothing, and never reads or writes the bytes in a page.
class cache {
 public:
  explicit cache(pool_size size);

  /// One more kind. To be called before the first sequence.
  void add(std::unique_ptr<storage> more);

  /// What no sequence holds, with what only known prefixes keep.
  [[nodiscard]] amount free() const;
  /// What the sequence takes when it grows.
  [[nodiscard]] growth next(sequence_id sequence) const;
  /// Tokens that it has memory of.
  [[nodiscard]] std::uint32_t length(sequence_id sequence) const;

  /// Gives a sequence, instead of what it has, the whole pages of the longest known prefix of `log`. Returns the tokens
  /// that it can go on from. O(pages of the prefix).
  std::uint32_t adopt(sequence_id sequence, tenant_id scope, std::span<const token> log);
  /// The first tokens of the sequence's log, which are computed and exact: others of the scope whose logs begin with
  /// them may have its pages.
  void offer(sequence_id sequence, tenant_id scope, std::span<const token> exact);
  /// Drops all tokens after the first `length`, or as many more as must be computed again to go on. Returns how many
  /// are left.
  std::uint32_t rewind(sequence_id sequence, std::uint32_t length);
  /// s: lies within the sequence's memory.
  void splice(sequence_id sequence, const table_splice& s);
  /// Copies the tokens of a fragmented sequence together, if that frees pages and there is room for it.
  bool compact(sequence_id sequence);
  /// The memory for a pass: all runs get theirs, or none. At most one run of a sequence, within its length. No other
  /// pass begins before this one is done.
  [[nodiscard]] std::variant<allocated, kv_lost, shortage> allocate(std::span<const run_range> runs);
  /// The sequence has nothing any more.
  void release(sequence_id sequence);
  /// The model's memory is as new: nothing is held or known.
  void clear();

  /// From now on changes of the known prefixes are noted for `take_prefix_changes`.
  void note_prefix_changes() { prefixes_.note_changes(); }
  [[nodiscard]] std::vector<prefix_change> take_prefix_changes() { return prefixes_.take_changes(); }
  /// As prefix_index::recent_blocks.
  [[nodiscard]] std::vector<std::uint64_t> recent_blocks(std::size_t max) const { return prefixes_.recent_blocks(max); }

  /// Aborts when memory is lost or held twice.
  void check_integrity() const;
  /// The same of about `count` pages of each kind, beginning where the last check ended. Returns how many it looked at.
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
  std::vector<std::unique_ptr<storage>> kinds_;  // beside the pages
  std::vector<token_move> moves_;                // for the next pass
  // How far the checks have come.
  std::uint32_t next_page_ = 0;
  std::vector<sequence_id> next_tables_;
  prefix_index::check_progress next_known_;
};

}  // namespace redline::kv
