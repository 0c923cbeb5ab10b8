#include "scheduler/admission.hpp"

#include <algorithm>

#include "runtime/base/assert.hpp"
#include "runtime/base/tenant_share.hpp"

namespace redline::scheduler {
/// The order that lists the sequence, and its time in that order; nullptr if no order lists it.
std::pair<admission::by_time*, instant> admission::order_of(sequence_id sequence, const priority_facts& at) {
  if (!has_slot(sequence)) {
    if (!at.open) return {nullptr, {}};
    return {at.prefill_only ? &waiting_prefills_ : &waiting_, at.arrival};
  }
  if (!at.open) return {&idle_, at.idle_since};
  if (at.prefill_only && !at.in_flight) return {&running_prefills_, at.arrival};
  return {nullptr, {}};
}

void admission::list(sequence_id sequence, const priority_facts& at) {
  if (const auto [order, time] = order_of(sequence, at); order != nullptr) order->insert({time, sequence});
  if (!at.open && !at.prefill_only) between_rounds_.insert({at.idle_since, sequence});
  if (at.open && at.prefill_only) ++open_prefills_count_;
  if (at.prefill_only) return;
  if (has_slot(sequence)) {
    tenants_[at.tenant].placed.insert({at.arrival, sequence});
  } else if (at.open) {
    tenants_[at.tenant].waiting.insert({at.arrival, sequence});
  }
}

void admission::unlist(sequence_id sequence, const priority_facts& at) {
  if (const auto [order, time] = order_of(sequence, at); order != nullptr) order->erase({time, sequence});
  if (!at.open && !at.prefill_only) between_rounds_.erase({at.idle_since, sequence});
  if (at.open && at.prefill_only) --open_prefills_count_;
  const auto of = tenants_.find(at.tenant);
  if (at.prefill_only || of == tenants_.end()) return;
  of->second.placed.erase({at.arrival, sequence});
  of->second.waiting.erase({at.arrival, sequence});
  if (of->second.placed.empty() && of->second.waiting.empty()) tenants_.erase(of);
}

void admission::update(sequence_id sequence, const priority_facts& at) {
  const auto [known, is_new] = known_.try_emplace(sequence, at);
  if (!is_new) {
    if (known->second == at) return;
    unlist(sequence, known->second);
    known->second = at;
  }
  list(sequence, at);
}

void admission::remove(sequence_id sequence) {
  const auto known = known_.find(sequence);
  if (known == known_.end()) return;
  unlist(sequence, known->second);
  placed_.erase(sequence);
  known_.erase(known);
}

void admission::give_slot(sequence_id sequence) {
  const priority_facts& at = known_.at(sequence);
  unlist(sequence, at);
  placed_.insert(sequence);
  list(sequence, at);
}

void admission::take_slot(sequence_id sequence) {
  const priority_facts& at = known_.at(sequence);
  unlist(sequence, at);
  placed_.erase(sequence);
  list(sequence, at);
}

/// The first arrival of the waiting tenant with the fewest slots; prefills come last.
std::optional<sequence_id> admission::choose_next() const {
  const tenant_slots* next = nullptr;
  const auto key = [](const tenant_slots& t) { return std::pair(t.placed.size(), *t.waiting.begin()); };
  for (const auto& [tenant, each] : tenants_) {
    if (!each.waiting.empty() && (next == nullptr || key(each) < key(*next))) next = &each;
  }
  if (next != nullptr) return next->waiting.begin()->second;
  if (waiting_prefills_.empty()) return std::nullopt;
  return waiting_prefills_.begin()->second;
}

/// The latest arrival of the tenant with the most slots, if it has at least two more than `tenant`. With a difference
/// of one, the two tenants would take the slot from each other in turn.
std::optional<sequence_id> admission::choose_yielding(tenant_id tenant) const {
  const auto own = tenants_.find(tenant);
  const std::size_t own_count = own == tenants_.end() ? 0 : own->second.placed.size();
  const tenant_slots* most = nullptr;
  for (const auto& [other, each] : tenants_) {
    if (most == nullptr || each.placed.size() > most->placed.size()) most = &each;
  }
  if (most == nullptr || most->placed.size() < own_count + 2) return std::nullopt;
  for (auto at = most->placed.rbegin(); at != most->placed.rend(); ++at) {
    if (!known_.at(at->second).in_flight) return at->second;
  }
  return std::nullopt;
}

void admission::admit(instant now) {
  while (const auto next = choose_next()) {
    if (placed_.size() >= slots_max_) {
      const priority_facts& at = known_.at(*next);
      const auto yields = at.prefill_only ? std::nullopt : choose_yielding(at.tenant);
      if (!idle_.empty() && known_.at(idle_.begin()->second).is_idle(now)) {
        take_slot(idle_.begin()->second);
      } else if (!at.prefill_only && !running_prefills_.empty()) {
        take_slot(running_prefills_.rbegin()->second);
      } else if (yields) {
        take_slot(*yields);
      } else {
        return;
      }
    }
    give_slot(*next);
  }
}

bool admission::has_share(tenant_id tenant, std::uint32_t waiting_max) const {
  std::size_t waiting_tenants = 1;
  std::size_t own_count = 0;
  for (const auto& [other, each] : tenants_) {
    if (other == tenant) {
      own_count = each.waiting.size();
    } else if (!each.waiting.empty()) {
      ++waiting_tenants;
    }
  }
  return own_count < equal_share{waiting_max, waiting_tenants}.whole(1);
}

void admission::check_integrity() const {
  admission anew(slots_max_);
  anew.placed_ = placed_;
  for (const auto& [sequence, at] : known_) {
    anew.list(sequence, at);
    REDLINE_ASSERT(!at.in_flight || (at.open && has_slot(sequence)), "a run in flight has an open round and a slot");
  }
  REDLINE_ASSERT(anew.waiting_ == waiting_ && anew.waiting_prefills_ == waiting_prefills_ && anew.idle_ == idle_ &&
                     anew.running_prefills_ == running_prefills_ && anew.between_rounds_ == between_rounds_ &&
                     anew.tenants_ == tenants_ && anew.open_prefills_count_ == open_prefills_count_,
                 "the orders match the facts");
  for (const sequence_id sequence : placed_) REDLINE_ASSERT(known_.contains(sequence), "a running sequence is known");
  REDLINE_ASSERT(placed_.size() <= slots_max_, "no more sequences run than there are slots");
}

}  // namespace redline::scheduler
