#pragma once

#include <array>
#include <cstdint>

#include "runtime/base/environment.hpp"

namespace redline::scheduler {

/// The size of a forward pass, as far as its cost depends on it.
struct work_size {
  std::uint64_t rows = 0;
  std::uint64_t pairs = 0;  // sum over rows of the tokens that the row attends to
};

/// Predicts the time of a forward pass: base + per row + per (row, context token) pair, learned from the passes seen by
/// recursive least squares with forgetting, so that it follows a machine whose speed changes.
class cost_model {
 public:
  cost_model();
  void observe(const work_size& size, microseconds took);
  [[nodiscard]] microseconds predict(const work_size& size) const;
  /// Nothing was observed yet; predictions are then a guess that errs on the low side.
  [[nodiscard]] bool is_blank() const { return observed_count_ == 0; }

 private:
  using vector = std::array<double, 3>;
  static vector features(const work_size& size);

  vector weights_{};
  std::array<vector, 3> covariance_{};
  std::uint64_t observed_count_ = 0;
};

}  // namespace redline::scheduler
