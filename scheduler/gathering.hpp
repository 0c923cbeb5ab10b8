#pragma once

#include <optional>
#include <span>

#include "runtime/cost/cost_model.hpp"
#include "scheduler/return_times.hpp"

namespace redline::scheduler {

/// A sequence between two rounds: it was answered, and may submit its next round at any moment.
struct expected_round {
  return_times::chances comes_within{};  // by step
  cost::work_size size;                  // size of the round that it will submit
};

/// A pass that could begin now, and the sequences that could join it a moment later.
struct gathering {
  double rounds = 0;           // rounds that advance by the pass as it is; 0 means that none waits for what it computes
  cost::work_size size;        // size of the pass
  microseconds time_max{0};    // a pass that would take longer is made smaller instead
  microseconds comes_back{0};  // how soon sequences answered by it submit their next round
  microseconds around{0};      // overhead of each pass in addition to computation: planning, messages, wakeups
  std::span<const expected_round> expected;
};

/// How long the pass should wait for expected sequences, as a step of `return_times`, so that the most rounds are
/// answered per second; nullopt if it should begin at once. Three options are compared by rounds per second:
///
///   wait       (a + k) / (w + T(a and k))           k of the expected come within w and are in the pass
///   alternate  (a + k) / (T(a) + T(k))              two groups take turns, each computed while the other is away
///   skip       (2a + k) / (T(a) + r + T(a and k))   the others are in every second pass, and r is comes_back
///
/// T comes from the learned costs and includes the overhead of a pass; k comes from the learned return times. So no
/// pass waits longer than that saves on average, two groups stay apart if drafting in one takes as long as the other's
/// pass, and a lone sequence never waits.
[[nodiscard]] std::optional<std::size_t> choose_wait(const gathering& g, const cost::cost_model& cost);

/// Sequences less likely than this to come within the wait are not counted.
inline constexpr double counted_on_chance = 0.5;

}  // namespace redline::scheduler
