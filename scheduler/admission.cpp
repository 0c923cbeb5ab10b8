#include "scheduler/admission.hpp"

#include "runtime/base/assert.hpp"

namespace redline::scheduler {
namespace {

// A session that makes its next draft is back sooner; were a prefill's chunk begun meanwhile, each of its rounds would
// wait for one.
constexpr microseconds pause_between_rounds{30'000};

}  // namespace

/// The order that the sequence is in, and its time there; nullptr if in none.
std::pair<admission::by_time*, instant> admission::order_of(sequence_id sequence, const standing& at) {
  if (!has_place(sequence)) {
    if (!at.open) return {nullptr, {}};
    return {at.prefill_only ? &waiting_prefills_ : &waiting_, at.arrival};
  }
  if (!at.open) return {&idle_, at.idle_since};
  if (at.prefill_only && !at.in_flight) return {&running_prefills_, at.arrival};
  return {nullptr, {}};
}

void admission::list(sequence_id sequence, const standing& at) {
  if (const auto [order, time] = order_of(sequence, at); order != nullptr) order->insert({time, sequence});
  if (!at.open && !at.prefill_only) between_rounds_.insert({at.idle_since, sequence});
  if (at.open && at.prefill_only) ++open_prefills_count_;
}

void admission::unlist(sequence_id sequence, const standing& at) {
  if (const auto [order, time] = order_of(sequence, at); order != nullptr) order->erase({time, sequence});
  if (!at.open && !at.prefill_only) between_rounds_.erase({at.idle_since, sequence});
  if (at.open && at.prefill_only) --open_prefills_count_;
}

void admission::update(sequence_id sequence, const standing& at) {
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

void admission::give_place(sequence_id sequence) {
  const standing& at = known_.at(sequence);
  unlist(sequence, at);
  placed_.insert(sequence);
  list(sequence, at);
}

void admission::take_place(sequence_id sequence) {
  const standing& at = known_.at(sequence);
  unlist(sequence, at);
  placed_.erase(sequence);
  list(sequence, at);
}

void admission::admit(instant now) {
  for (;;) {
    const by_time& first = waiting_.empty() ? waiting_prefills_ : waiting_;
    if (first.empty()) return;
    const sequence_id next = first.begin()->second;
    if (placed_.size() >= places_max_) {
      if (!idle_.empty() && known_.at(idle_.begin()->second).is_idle(now)) {
        take_place(idle_.begin()->second);
      } else if (!waiting_.empty() && !running_prefills_.empty()) {
        take_place(running_prefills_.rbegin()->second);
      } else {
        return;
      }
    }
    give_place(next);
  }
}

std::optional<instant> admission::pause_end(instant now) const {
  if (between_rounds_.empty()) return std::nullopt;
  const instant end = between_rounds_.rbegin()->first + pause_between_rounds;
  return end > now ? std::optional(end) : std::nullopt;
}

void admission::check_integrity() const {
  admission anew(places_max_);
  anew.placed_ = placed_;
  for (const auto& [sequence, at] : known_) {
    anew.list(sequence, at);
    REDLINE_ASSERT(!at.in_flight || (at.open && has_place(sequence)), "a run is in flight that was not asked for");
  }
  REDLINE_ASSERT(anew.waiting_ == waiting_ && anew.waiting_prefills_ == waiting_prefills_ && anew.idle_ == idle_ &&
                     anew.running_prefills_ == running_prefills_ && anew.between_rounds_ == between_rounds_ &&
                     anew.open_prefills_count_ == open_prefills_count_,
                 "an order contradicts the standings");
  for (const sequence_id sequence : placed_) REDLINE_ASSERT(known_.contains(sequence), "an unknown sequence runs");
  REDLINE_ASSERT(placed_.size() <= places_max_, "more sequences run than may");
}

}  // namespace redline::scheduler
