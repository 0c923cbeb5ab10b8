#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "scheduler/standing.hpp"

namespace redline::scheduler {

/// Gives places among the running sequences to those with an open round, in equal shares to the tenants that want some.
/// A tenant alone may have them all. Told of every change of a sequence's standing;
/// keeps them in order, so that no call takes longer than the logarithm of their number, for each place that changes
/// hands.
class admission {
 public:
  explicit admission(std::uint32_t places_max) : places_max_(places_max) {}

  /// A sequence's standing now; one that is not known yet has no place.
  void update(sequence_id sequence, const standing& at);
  void remove(sequence_id sequence);

  /// Gives places away: to rounds with an answer before prefills, to the tenant that has the fewest, then by arrival.
  /// When none is free, the sequence that has been idle for longest yields its place, and queues up again with its next
  /// round; its KV stays until the pages are needed. A prefill yields its place to a round with an answer, and the
  /// latest comer of the tenant that has the most places to a tenant that has fewer.
  void admit(instant now);

  [[nodiscard]] bool has_place(sequence_id sequence) const { return placed_.contains(sequence); }
  /// The sequences that have a place.
  [[nodiscard]] const std::set<sequence_id>& placed() const { return placed_; }
  [[nodiscard]] std::uint32_t running_count() const { return static_cast<std::uint32_t>(placed_.size()); }
  /// Rounds with an answer that wait for a place. Prefills do not count.
  [[nodiscard]] std::uint32_t waiting_count() const { return static_cast<std::uint32_t>(waiting_.size()); }
  /// Though more than waiting_max wait: whether the tenant has less than its share of those places, at least one.
  [[nodiscard]] bool has_share(tenant_id tenant, std::uint32_t waiting_max) const;
  [[nodiscard]] bool has_open_prefill() const { return open_prefills_count_ > 0; }
  using by_time = std::set<std::pair<instant, sequence_id>>;  // two may come at one instant
  /// Sequences whose last round had an answer and that have no open one, by when they were answered.
  [[nodiscard]] const by_time& between_rounds() const { return between_rounds_; }

  /// The standing is what was told last.
  [[nodiscard]] bool knows(sequence_id sequence, const standing& at) const {
    const auto known = known_.find(sequence);
    return known != known_.end() && known->second == at;
  }
  /// Aborts when the orders contradict the standings.
  void check_integrity() const;

 private:
  void list(sequence_id sequence, const standing& at);
  void unlist(sequence_id sequence, const standing& at);
  [[nodiscard]] std::pair<by_time*, instant> order_of(sequence_id sequence, const standing& at);
  void give_place(sequence_id sequence);
  void take_place(sequence_id sequence);
  [[nodiscard]] std::optional<sequence_id> choose_next() const;
  [[nodiscard]] std::optional<sequence_id> choose_yielding(tenant_id tenant) const;

  /// Of one tenant. Sequences whose rounds have answers; prefills do not count.
  struct tenant_places {
    by_time waiting;  // by arrival
    by_time placed;
    bool operator==(const tenant_places&) const = default;
  };

  std::uint32_t places_max_;
  std::unordered_map<sequence_id, standing> known_;
  std::set<sequence_id> placed_;
  // Each sequence is in at most one of these four:
  by_time waiting_;           // with an open round and no place, by arrival
  by_time waiting_prefills_;  // the same of prefills
  by_time idle_;              // with a place and no open round, by idle_since
  by_time running_prefills_;  // prefills with a place, not in flight, by arrival
  by_time between_rounds_;
  std::map<tenant_id, tenant_places> tenants_;  // that have some
  std::uint32_t open_prefills_count_ = 0;
};

}  // namespace redline::scheduler
