#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "scheduler/priority_facts.hpp"

namespace redline::scheduler {

/// Assigns slots among the running sequences to sequences with an open round, in equal shares per waiting tenant. A
/// tenant alone may have all slots. The caller reports every change of a sequence's priority facts. The sequences are
/// kept in order, so a call takes time logarithmic in their number for each slot that changes hands.
class admission {
 public:
  explicit admission(std::uint32_t slots_max) : slots_max_(slots_max) {}

  /// The sequence's current priority facts. A new sequence has no slot.
  void update(sequence_id sequence, const priority_facts& at);
  void remove(sequence_id sequence);

  /// Assigns free slots: rounds with an answer before prefills, then the tenant with the fewest slots, then by arrival.
  /// When none is free, the sequence that has been idle the longest yields its slot and queues again with its next
  /// round; its KV stays until the pages are needed. A prefill yields to a round with an answer. The latest arrival of
  /// the tenant with the most slots yields to a tenant with fewer.
  void admit(instant now);

  [[nodiscard]] bool has_slot(sequence_id sequence) const { return placed_.contains(sequence); }
  /// The sequences that have a slot.
  [[nodiscard]] const std::set<sequence_id>& placed() const { return placed_; }
  [[nodiscard]] std::uint32_t running_count() const { return static_cast<std::uint32_t>(placed_.size()); }
  /// Rounds with an answer that wait for a slot. Prefills do not count.
  [[nodiscard]] std::uint32_t waiting_count() const { return static_cast<std::uint32_t>(waiting_.size()); }
  /// Whether the tenant has used less than its equal share of waiting_max, at least one, even if the queue is full.
  [[nodiscard]] bool has_share(tenant_id tenant, std::uint32_t waiting_max) const;
  [[nodiscard]] bool has_open_prefill() const { return open_prefills_count_ > 0; }
  using by_time = std::set<std::pair<instant, sequence_id>>;  // two sequences may arrive at the same instant
  /// Sequences whose last round had an answer and that have no open round, ordered by when they were answered.
  [[nodiscard]] const by_time& between_rounds() const { return between_rounds_; }

  /// Whether `at` is the last reported priority_facts.
  [[nodiscard]] bool knows(sequence_id sequence, const priority_facts& at) const {
    const auto known = known_.find(sequence);
    return known != known_.end() && known->second == at;
  }
  /// Aborts when the orders contradict the facts.
  void check_integrity() const;

 private:
  void list(sequence_id sequence, const priority_facts& at);
  void unlist(sequence_id sequence, const priority_facts& at);
  [[nodiscard]] std::pair<by_time*, instant> order_of(sequence_id sequence, const priority_facts& at);
  void give_slot(sequence_id sequence);
  void take_slot(sequence_id sequence);
  [[nodiscard]] std::optional<sequence_id> choose_next() const;
  [[nodiscard]] std::optional<sequence_id> choose_yielding(tenant_id tenant) const;

  /// One tenant's sequences whose rounds have answers; prefills do not count.
  struct tenant_slots {
    by_time waiting;  // by arrival
    by_time placed;
    bool operator==(const tenant_slots&) const = default;
  };

  std::uint32_t slots_max_;
  std::unordered_map<sequence_id, priority_facts> known_;
  std::set<sequence_id> placed_;
  // Each sequence is in at most one of these four:
  by_time waiting_;           // open round and no slot, by arrival
  by_time waiting_prefills_;  // prefills with an open round and no slot, by arrival
  by_time idle_;              // slot and no open round, by idle_since
  by_time running_prefills_;  // prefills with a slot, not in flight, by arrival
  by_time between_rounds_;
  std::map<tenant_id, tenant_slots> tenants_;  // tenants with at least one such sequence
  std::uint32_t open_prefills_count_ = 0;
};

}  // namespace redline::scheduler
