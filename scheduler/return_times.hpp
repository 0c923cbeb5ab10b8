#pragma once

#include <array>
#include <cstddef>

#include "runtime/base/environment.hpp"

namespace redline::scheduler {

/// How soon sequences ask for their next round after an answer: a histogram of what was seen, whose old entries fade.
/// Times from 64 us to 66 ms are told apart, two steps to an octave; later ones count as not coming back.
class return_times {
 public:
  /// memory: answers after which an entry has faded to a third.
  constexpr explicit return_times(double memory) : kept_(1 - 1 / memory) {}

  static constexpr std::size_t steps_count = 21;
  /// The longest time of a step, counted from 0.
  [[nodiscard]] static microseconds step(std::size_t i);
  [[nodiscard]] static microseconds longest() { return step(steps_count - 1); }

  void observe(microseconds after);

  /// Chances, for each step w, that a sequence which was answered `since` ago and has not asked yet asks within w from
  /// now. prior: what is known of others like it, as if it had been seen for two rounds.
  using chances = std::array<double, steps_count>;
  [[nodiscard]] chances predict(microseconds since, const return_times& prior) const;
  /// The time within which half of those that come back do. 0: not known.
  [[nodiscard]] microseconds typical() const;

 private:
  using counts = std::array<double, steps_count + 1>;  // by step; the last: later than all steps
  [[nodiscard]] static std::size_t step_of(microseconds after);

  double kept_;
  double sum_ = 0;
  counts counts_{};
};

}  // namespace redline::scheduler
