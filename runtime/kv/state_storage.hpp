#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "runtime/kv/storage.hpp"

namespace redline::kv {

/// The states of recurrent layers as a kind of memory: a slot for each sequence (state_use), and slots for copies of
/// states at borders of cached pages, which make these prefixes usable. It has only numbers; the model has the states.
///
/// A state is copied where a run passes a multiple of `spacing` tokens, at the last page border before each parting,
/// and at the last one of each run. Of the latter a sequence keeps the last of its answer, and without partings the
/// last of its prompt, so that the next turn of a chat finds one of them.
///
/// A copy is worth the tokens that would be computed again without it: those from the nearest copy before it. If a slot
/// is needed, the copy goes whose worth, counted from its last use, is the smallest. A copy that is used or made begins
/// at the level of the last one that went, so a copy without a use goes in the end, whatever it was worth.
/// Source: Young, "The k-server dual and loose competitiveness for paging" (1994).
class state_storage final : public storage {
 public:
  static constexpr std::uint32_t spacing = 2048;

  /// size: with at least one slot, and at least 2 records, since a prompt that is scored advances by drafted tokens.
  /// pool: that of the tables; it outlives this.
  state_storage(const page_pool& pool, const pool_size& size)
      : pool_(pool),
        slots_count_(size.state_slots),
        records_max_(size.state_records),
        taken_(size.state_slots + size.state_copies, false) {}

  [[nodiscard]] amount free() const override;
  [[nodiscard]] std::uint32_t copies_kept() const override { return static_cast<std::uint32_t>(snapshots_.size()); }
  void add_growth(sequence_id sequence, const page_table& table, growth& to) const override;
  [[nodiscard]] std::uint32_t resume_at(sequence_id sequence, const page_table& table,
                                        std::uint32_t length) const override;
  void rewind(sequence_id sequence, page_table& table) override;
  [[nodiscard]] bool pin(sequence_id sequence, page_table& table, std::uint32_t length) override;
  void extend(const run_range& run, page_table& table) override;
  void describe(const run_range& run, const page_table& table, run_memory& out) const override;
  void note_pass(const run_range&, page_table&) override {}
  [[nodiscard]] std::uint32_t adopt(sequence_id sequence, page_table& table) override;
  void offer(sequence_id sequence, const page_table& table, std::span<const page_id> pages) override;
  [[nodiscard]] bool is_richer(sequence_id sequence, std::size_t index, page_id known) const override;
  void forget(page_id page) override;
  void note_splice(sequence_id sequence, std::uint32_t at) override;
  void note_computed(sequence_id sequence) override;
  void put_back(sequence_id sequence) override;
  void release(sequence_id sequence) override;
  void clear() override;
  void take_copies(std::vector<state_copy>& to) override;
  void check_integrity() const override;

 private:
  /// A copied state that is not offered yet.
  struct border {
    std::uint32_t slot = 0;
    bool is_prompt = false;
    bool is_last = false;  // the last of a run: a later one replaces it
  };
  struct holding {
    std::uint32_t slot = 0;
    std::uint32_t base = 0;                   // how many tokens the slot's state covers once the last run is computed
    std::uint32_t records = 0;                // later rows that can be applied
    std::uint32_t made = 0;                   // how many it covers by now: copies up to there were made
    std::map<std::uint32_t, border> borders;  // by length
    // The pages of its last borders in prompt and answer, which the next ones replace.
    std::optional<page_id> of_prompt, of_answer;
    state_use use;                                      // of the last run
    std::uint32_t base_before = 0, records_before = 0;  // before it
    [[nodiscard]] std::uint32_t end() const { return base + records; }
  };
  struct snapshot {
    std::uint32_t slot = 0;
    std::uint32_t length = 0;
    std::optional<page_id> before;  // the nearest one of a part of its prefix
    std::uint64_t level = 0;        // that of the storage when it was last used
    std::uint64_t order = 0;        // of that use
  };

  void keep(std::span<const page_id> pages, std::size_t index, std::uint32_t slot);
  [[nodiscard]] std::uint64_t level_of(const snapshot& s) const;
  void note_use(snapshot& s);
  std::optional<std::uint32_t> take_unused(std::uint32_t from, std::size_t end);
  std::optional<std::uint32_t> take_for_copy();
  std::uint32_t take_for_sequence();
  void drop_borders(holding& h, std::uint32_t from);
  void give(std::uint32_t slot) { taken_[slot] = false; }

  const page_pool& pool_;
  std::uint32_t slots_count_;  // of sequences; the others are for copies
  std::uint32_t records_max_;
  std::vector<bool> taken_;  // by slot
  std::unordered_map<sequence_id, holding> held_;
  std::unordered_map<page_id, snapshot> snapshots_;  // by cached page
  std::uint64_t level_ = 0;                          // of the last snapshot that went, in tokens
  std::uint64_t uses_ = 0;
  std::vector<state_copy> copies_;  // for the next pass
};

}  // namespace redline::kv
