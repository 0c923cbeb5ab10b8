#pragma once

#include <optional>
#include <span>

#include "runtime/cost/cost_model.hpp"
#include "scheduler/return_times.hpp"

namespace redline::scheduler {

/// A sequence between two rounds: it was answered, and may ask for its next round at any moment.
struct expected_round {
  return_times::chances comes_within{};  // by step
  cost::work_size size;                  // of the round it will ask for
};

/// A pass that could begin now, and those who could be in it a moment later.
struct gathering {
  double rounds = 0;           // that get on by the pass as it is; 0: nobody waits for what it computes
  cost::work_size size;        // of the pass
  microseconds time_max{0};    // a pass that takes longer is made smaller instead
  microseconds comes_back{0};  // how soon those who are answered by it ask again
  microseconds around{0};      // what each pass takes beside its computation: planning, messages, waking up
  std::span<const expected_round> expected;
};

/// How long the pass is to wait for those who are expected, as a step of `return_times`, so that most rounds are
/// answered per second; nullopt: it begins at once. Three ways to go on are compared by rounds per second:
///
///   wait       (a + k) / (w + T(a and k))           k of the expected come within w and are in the pass
///   alternate  (a + k) / (T(a) + T(k))              two groups take turns, each computed while the other is away
///   skip       (2a + k) / (T(a) + r + T(a and k))   the others are in every second pass, and r is comes_back
///
/// with T from the learned costs, each with what is around a pass, and k from the learned return times. So nothing is
/// waited for longer than what that saves on average, two groups stay apart where the draft of one takes as long as the
/// other's pass, and a sequence alone never waits.
[[nodiscard]] std::optional<std::size_t> choose_wait(const gathering& g, const cost::cost_model& cost);

/// Sequences that are less likely than this to come within the wait are not counted on.
inline constexpr double counted_on_chance = 0.5;

}  // namespace redline::scheduler
