#pragma once

#include <cstdint>
#include <tuple>

namespace redline::cost {

/// The experts of a mixture of experts: most of what its passes read.
struct mixture_shape {
  std::uint32_t layers = 0;   // that are mixtures; 0: the model is dense
  std::uint32_t experts = 0;  // of each
  std::uint32_t used = 0;     // of these, by each row

  [[nodiscard]] bool is_dense() const { return layers == 0 || experts == 0 || used == 0; }
  [[nodiscard]] std::uint64_t all() const { return std::uint64_t{layers} * experts; }
  bool operator==(const mixture_shape&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.layers, self.experts, self.used); }
};

/// How many distinct experts a pass touches, summed over the layers. `n` rows that choose independently touch
/// E * (1 - (1 - k/E)^n) of a layer's E experts, k each. Text repeats itself, and some experts are liked more than
/// others, so that n rows touch what only n^g independent ones would; g, from 0 (all rows choose alike) to 1, is the
/// one number that is learned, by an extended Kalman filter. A power of n as in Heaps' law, which says how slowly new
/// words come up in a text. Before any text was seen, g is 1.
class expert_union {
 public:
  expert_union() = default;  // of a dense model: no experts
  explicit expert_union(const mixture_shape& of) : of_(of) {}

  /// A pass of `rows` rows, `logits` of which want logits, touched so many. After the last attention rows without
  /// logits are dropped, so that the last layer has chosen for the others only.
  void observe(std::uint64_t rows, std::uint64_t logits, std::uint64_t touched);
  [[nodiscard]] double predict(std::uint64_t rows, std::uint64_t logits) const;
  [[nodiscard]] double growth() const { return growth_; }
  [[nodiscard]] const mixture_shape& of() const { return of_; }

 private:
  struct curve {
    double experts = 0;
    double slope = 0;  // by g
  };
  [[nodiscard]] curve of_layer(std::uint64_t rows) const;
  [[nodiscard]] curve of_pass(std::uint64_t rows, std::uint64_t logits) const;

  mixture_shape of_;
  double growth_ = 1;
  double variance_ = 1;  // of it: anything between 0 and 1
};

}  // namespace redline::cost
