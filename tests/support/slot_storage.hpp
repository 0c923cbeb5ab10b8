#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "runtime/kv/storage.hpp"

namespace redline::test {

/// The memory of recurrent layers: per sequence a slot with the state before the rows that may still be taken back, and
/// a record of each of those rows; also snapshots of the state at the borders of cached pages, in spare slots. It has
/// only counts and names; `recurrent_model` has the states.
class slot_storage final : public kv::storage {
 public:
  slot_storage(std::uint32_t slots, std::uint32_t drafts_max) : drafts_max_(drafts_max), taken_(slots, false) {}

  /// What a run does: it continues in this slot, whose state is that of `base` tokens, after the first `records` rows
  /// of its record; leaves the state of `base_after` tokens there; and keeps those at the named page borders.
  struct state_run {
    std::uint32_t slot = 0, base = 0, records = 0, base_after = 0;
    std::map<std::uint32_t, std::uint32_t> snapshots;  // slot by length
  };
  /// The runs of the last pass, by sequence.
  std::map<std::uint64_t, state_run> runs;
  /// Slots that were copied for an adopting sequence: from, to.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> copies;
  /// Slots that became free since the model last looked.
  std::vector<std::uint32_t> freed;

  [[nodiscard]] kv::amount free() const override {
    kv::amount out;
    out[kv::kind::state_slot] = static_cast<std::uint32_t>(taken_.size() - held_.size());
    return out;
  }
  void add_growth(sequence_id sequence, const kv::page_table&, kv::growth& to) const override {
    if (!held_.contains(sequence.value)) to.opening[kv::kind::state_slot] = 1;
    to.drafts_max = std::min(to.drafts_max, drafts_max_);
  }
  [[nodiscard]] std::uint32_t resume_at(sequence_id sequence, const kv::page_table&,
                                        std::uint32_t length) const override {
    const auto at = held_.find(sequence.value);
    return at == held_.end() || length < at->second.base ? 0 : std::min(length, at->second.end());
  }
  void rewind(sequence_id sequence, kv::page_table& table) override {
    const auto at = held_.find(sequence.value);
    if (at == held_.end()) return;
    if (table.token_count() < at->second.base) return release(sequence);
    at->second.records = table.token_count() - at->second.base;
  }
  [[nodiscard]] bool pin(sequence_id sequence, kv::page_table&, std::uint32_t length) override {
    const auto at = held_.find(sequence.value);
    return length == (at == held_.end() ? 0 : at->second.end());
  }
  void extend(const kv::run_range& run, kv::page_table& table) override {
    auto [at, is_new] = held_.try_emplace(run.sequence.value);
    holding& h = at->second;
    if (is_new) h.slot = take();
    state_run& r = runs[run.sequence.value] = {.slot = h.slot, .base = h.base, .records = h.records, .snapshots = {}};
    r.base_after = run.end() - 1 - run.drafts_count;
    h.base = r.base_after;
    h.records = 1 + run.drafts_count;
    // The state passes these borders during the run; one that is not offered is dropped at the next pass.
    for (const auto& [length, slot] : h.borders) give(slot);
    h.borders.clear();
    for (std::uint32_t border = (run.first / kv::page_tokens + 1) * kv::page_tokens; border <= r.base_after;
         border += kv::page_tokens) {
      if (const auto slot = take_spare()) h.borders[border] = r.snapshots[border] = *slot;
    }
    (void)table;
  }
  void describe(const kv::run_range&, const kv::page_table&, kv::run_memory&) const override {}
  void note_pass(const kv::run_range&, kv::page_table&) override {}
  [[nodiscard]] std::uint32_t adopt(sequence_id sequence, kv::page_table& table) override {
    const auto pages = table.whole_pages(~0U);
    for (std::size_t count = pages.size(); count > 0; --count) {
      const auto known = snapshots_.find(pages[count - 1].value);
      if (known == snapshots_.end()) continue;
      if (held_.size() == taken_.size()) return 0;
      const std::uint32_t from = known->second;
      used_.push_back(pages[count - 1].value);
      const auto to = take_spare(pages[count - 1].value);
      if (!to) return 0;
      copies.emplace_back(from, *to);
      held_[sequence.value] = {.slot = *to, .base = static_cast<std::uint32_t>(count) * kv::page_tokens};
      return held_[sequence.value].base;
    }
    return 0;
  }
  void offer(sequence_id sequence, const kv::page_table&, std::span<const page_id> pages) override {
    const auto at = held_.find(sequence.value);
    if (at == held_.end()) return;
    for (auto& [length, slot] : at->second.borders) {
      const std::size_t index = length / kv::page_tokens - 1;
      if (index >= pages.size() || !snapshots_.try_emplace(pages[index].value, slot).second) {
        give(slot);
      } else {
        used_.push_back(pages[index].value);
      }
    }
    at->second.borders.clear();
  }
  void forget(page_id page) override {
    const auto at = snapshots_.find(page.value);
    if (at == snapshots_.end()) return;
    give(at->second);
    snapshots_.erase(at);
  }
  void release(sequence_id sequence) override {
    const auto at = held_.find(sequence.value);
    if (at == held_.end()) return;
    for (const auto& [length, slot] : at->second.borders) give(slot);
    give(at->second.slot);
    held_.erase(at);
  }
  void clear() override {
    for (std::uint32_t slot = 0; slot < taken_.size(); ++slot) {
      if (taken_[slot]) give(slot);
    }
    held_.clear();
    snapshots_.clear();
  }
  void check_integrity() const override {
    std::size_t owned = held_.size() + snapshots_.size();
    for (const auto& [sequence, h] : held_) owned += h.borders.size();
    REDLINE_ASSERT(owned == static_cast<std::size_t>(std::ranges::count(taken_, true)), "a slot has one owner");
  }

 private:
  struct holding {
    std::uint32_t slot = 0;
    std::uint32_t base = 0;                          // how many tokens the slot's state covers
    std::uint32_t records = 0;                       // later rows that can be applied
    std::map<std::uint32_t, std::uint32_t> borders;  // slots of the last pass, by length
    [[nodiscard]] std::uint32_t end() const { return base + records; }
  };

  void give(std::uint32_t slot) {
    taken_[slot] = false;
    freed.push_back(slot);
  }
  /// Takes an unused slot, or that of a snapshot of another page.
  std::optional<std::uint32_t> take_spare(std::optional<std::uint32_t> not_page = std::nullopt) {
    const auto unused = std::ranges::find(taken_, false);
    if (unused == taken_.end()) {
      for (const std::uint32_t page : used_) {
        if (page == not_page || !snapshots_.contains(page)) continue;
        forget(page_id{page});
        break;
      }
    }
    const auto at = std::ranges::find(taken_, false);
    if (at == taken_.end()) return std::nullopt;
    *at = true;
    const auto slot = static_cast<std::uint32_t>(at - taken_.begin());
    std::erase(freed, slot);
    return slot;
  }
  /// Takes a slot for a sequence, which may be any slot that no other sequence owns.
  std::uint32_t take() {
    if (const auto spare = take_spare()) return *spare;
    for (auto& [sequence, h] : held_) {
      if (h.borders.empty()) continue;
      runs[sequence].snapshots.erase(h.borders.begin()->first);
      give(h.borders.begin()->second);
      h.borders.erase(h.borders.begin());
      break;
    }
    const auto slot = take_spare();
    REDLINE_ASSERT(slot.has_value(), "a slot was free when the pass was planned");
    return *slot;
  }

  std::uint32_t drafts_max_;
  std::vector<bool> taken_;
  std::map<std::uint64_t, holding> held_;
  std::map<std::uint32_t, std::uint32_t> snapshots_;  // slots by cached page
  std::vector<std::uint32_t> used_;                   // those pages, least recently used first
};

}  // namespace redline::test
