#pragma once

#include <array>
#include <cstddef>

#include "runtime/base/environment.hpp"

namespace redline::scheduler {

/// How soon after an answer sequences submit their next round: a histogram of observed times whose old entries fade. It
/// resolves times from 64 us to 66 ms, two steps to an octave; later ones count as not coming back.
class return_times {
 public:
  /// memory: the number of answers after which an entry has faded to a third.
  constexpr explicit return_times(double memory) : kept_(1 - 1 / memory) {}

  static constexpr std::size_t steps_count = 21;
  /// The longest time of a step, counted from 0.
  [[nodiscard]] static microseconds step(std::size_t i);
  [[nodiscard]] static microseconds longest() { return step(steps_count - 1); }

  void observe(microseconds after);

  /// For each step w, the chance that a sequence that was answered `since` ago and has not come back does so within w
  /// from now. prior: the history of similar sequences, weighted like two rounds.
  using chances = std::array<double, steps_count>;
  [[nodiscard]] chances predict(microseconds since, const return_times& prior) const;
  /// The time within which half of the sequences that come back do so; 0 if unknown.
  [[nodiscard]] microseconds typical() const;

 private:
  using counts = std::array<double, steps_count + 1>;  // by step; the last entry counts times beyond all steps
  [[nodiscard]] static std::size_t step_of(microseconds after);

  double kept_;
  double sum_ = 0;
  counts counts_{};
};

}  // namespace redline::scheduler
