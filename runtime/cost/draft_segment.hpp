#pragma once

#include <cmath>
#include <cstdint>
#include <tuple>

namespace redline::cost {

/// Consecutive tokens of a draft, each with the same chance of acceptance if all before it are accepted.
struct draft_segment {
  static constexpr std::uint16_t certain = 10'000;

  draft_segment() = default;
  draft_segment(std::uint32_t tokens, double chance)
      : count(tokens), chance_e4(static_cast<std::uint16_t>(std::lround(chance * certain))) {}

  std::uint32_t count = 0;
  std::uint16_t chance_e4 = certain;  // in 1/10,000; larger values count as certain

  [[nodiscard]] double chance() const { return chance_e4 < certain ? chance_e4 / double{certain} : 1.0; }
  bool operator==(const draft_segment&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.count, self.chance_e4); }
};

}  // namespace redline::cost
