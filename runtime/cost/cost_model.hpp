#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <tuple>

#include "runtime/base/environment.hpp"
#include "runtime/cost/expert_union.hpp"

namespace redline::cost {

/// The size of a forward pass, as far as its cost depends on it.
struct work_size {
  std::uint64_t rows = 0;
  std::uint64_t pairs = 0;    // sum over rows of the number of tokens that the row attends to
  std::uint64_t context = 0;  // sum over runs of the number of tokens whose keys and values are read
  std::uint64_t logits = 0;   // rows that want logits
};

[[nodiscard]] constexpr work_size operator+(const work_size& a, const work_size& b) {
  return {a.rows + b.rows, a.pairs + b.pairs, a.context + b.context, a.logits + b.logits};
}

/// A run of `rows` rows after `before` tokens.
[[nodiscard]] constexpr work_size size_of_run(std::uint64_t before, std::uint64_t rows, std::uint64_t logits) {
  return {rows, rows * before + rows * (rows + 1) / 2, before + rows, logits};
}

/// A measured pass.
struct cost_sample {
  work_size size;
  microseconds took{0};
  std::uint64_t experts = 0;  // distinct experts that it touched, over all layers; 0 means not counted
};

/// Predicts the time of a forward pass: a base, a cost per row, per (row, context token) pair, per context token read
/// and per row of logits, and deviations from that line at numbers of rows where a machine's curve bends (a
/// bandwidth-bound pass of eight rows costs as much as one row; a pass of a hundred is bound by arithmetic). It is
/// learned from observed passes by a Kalman filter whose parameters drift slowly, so that it follows changes of the
/// machine's speed. A mixture of experts also has a cost per distinct expert: the experts that passes touched teach
/// that cost, and the number that a pass will touch is predicted from its rows.
class cost_model {
 public:
  cost_model() : cost_model(mixture_shape{}) {}
  /// Makes a model for these experts.
  explicit cost_model(const mixture_shape& of);
  /// experts: distinct experts that the pass touched, over all layers; 0 means not counted.
  void observe(const work_size& size, microseconds took, std::uint64_t experts = 0);
  /// Learns the experts of a pass over realistic text, which the passes measured at startup are not.
  void observe_text(const work_size& size, std::uint64_t experts);
  /// The number of distinct experts, over all layers; 0 for a dense model.
  [[nodiscard]] double predict_experts(const work_size& size) const { return experts_.predict(size.rows, size.logits); }
  [[nodiscard]] microseconds predict(const work_size& size) const;
  /// Whether nothing was observed yet; predictions are then zero.
  [[nodiscard]] bool is_unmeasured() const { return observed_count_ == 0; }

 private:
  /// Numbers of rows where the curve may bend.
  static constexpr std::array<double, 10> bends = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
  static constexpr std::size_t laws_count = 6;  // base, rows, pairs, context, logits, experts
  static constexpr std::size_t parameters_count = laws_count + bends.size();
  using vector = std::array<double, parameters_count>;
  [[nodiscard]] vector features(const work_size& size, double experts) const;
  [[nodiscard]] double predict_us(const vector& x) const;
  void change_speed(double ratio);

  expert_union experts_;
  vector weights_{};
  vector prior_{};                                     // variances before the first observation, in units of scale_^2
  std::array<vector, parameters_count> covariance_{};  // in units of scale_^2
  double scale_ = 0;                                   // microseconds of the first observed pass
  std::uint64_t observed_count_ = 0;
  std::uint32_t outliers_in_row_ = 0;
  double slower_by_ = 0;  // the smallest slowdown among these
  std::uint32_t fast_in_row_ = 0;
  double faster_by_ = 0;  // the smallest speedup among these
};

/// The current cost of a round of a sequence, as drafting decisions need it. Zeros mean unknown.
struct step_cost {
  std::uint32_t pass_us = 0;   // a pass with a single row
  std::uint32_t row_ns = 0;    // one more row in it
  std::uint32_t sessions = 1;  // sessions that share the pass

  [[nodiscard]] bool is_known() const { return pass_us > 0; }
  [[nodiscard]] double row_us() const { return row_ns / 1000.0; }
  bool operator==(const step_cost&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.pass_us, self.row_ns, self.sessions); }
};
/// The cost after `context` tokens.
[[nodiscard]] step_cost step_cost_at(const cost_model& passes, std::uint64_t context);

}  // namespace redline::cost
