#pragma once

#include <cstdint>

namespace redline::draft {

/// What a draft of the small model costs beside its passes: the target answers it later than one that was ready, for
/// the small model's weights stand where its own were in the caches, and its threads slept meanwhile. Told of rounds
/// that had both models for themselves. Pure: no clock.
class handover_price {
 public:
  /// by_model: the small model made the draft. answered_us: from the draft to the wish for the next one. expected_us:
  /// what a pass with that draft takes in general.
  void note(bool by_model, double answered_us, double expected_us);
  /// 0 until enough was seen of both kinds.
  [[nodiscard]] double us() const;

  static constexpr std::uint32_t rounds_min = 8;  // of each kind

 private:
  struct mean {
    double excess_us = 0;  // over what was expected
    std::uint32_t count = 0;
  };
  mean by_model_;
  mean ready_;
};

}  // namespace redline::draft
