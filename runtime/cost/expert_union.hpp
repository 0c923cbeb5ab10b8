#pragma once

#include <cstdint>
#include <tuple>

namespace redline::cost {

/// The shape of a mixture of experts, whose weights are most of what its passes read.
struct mixture_shape {
  std::uint32_t layers = 0;   // layers that are mixtures; 0 if the model is dense
  std::uint32_t experts = 0;  // experts per layer
  std::uint32_t used = 0;     // experts per row

  [[nodiscard]] bool is_dense() const { return layers == 0 || experts == 0 || used == 0; }
  [[nodiscard]] std::uint64_t all() const { return std::uint64_t{layers} * experts; }
  bool operator==(const mixture_shape&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.layers, self.experts, self.used); }
};

/// Predicts how many distinct experts a pass touches, summed over the layers. `n` rows that choose independently touch
/// E * (1 - (1 - k/E)^n) of a layer's E experts, k each. Text repeats itself and experts are not equally popular, so n
/// rows touch only as many as n^g independent rows would. g, from 0 (all rows choose alike) to 1, is the one learned
/// number, updated by an extended Kalman filter. The power of n follows Heaps' law, which describes how slowly new
/// words appear in a text. Before any text was seen, g is 1.
class expert_union {
 public:
  expert_union() = default;  // for a dense model: no experts
  explicit expert_union(const mixture_shape& of) : of_(of) {}

  /// Learns from a pass of `rows` rows, `logits` of which want logits, that touched `touched` experts. Rows without
  /// logits are dropped after the last attention, so the last layer has chosen experts only for the others.
  void observe(std::uint64_t rows, std::uint64_t logits, std::uint64_t touched);
  [[nodiscard]] double predict(std::uint64_t rows, std::uint64_t logits) const;
  [[nodiscard]] double growth() const { return growth_; }
  [[nodiscard]] const mixture_shape& of() const { return of_; }

 private:
  struct curve {
    double experts = 0;
    double slope = 0;  // derivative by g
  };
  [[nodiscard]] curve of_layer(std::uint64_t rows) const;
  [[nodiscard]] curve of_pass(std::uint64_t rows, std::uint64_t logits) const;

  mixture_shape of_;
  double growth_ = 1;
  double variance_ = 1;  // variance of growth_, which is initially anything between 0 and 1
};

}  // namespace redline::cost
