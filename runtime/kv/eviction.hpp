#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>

#include "runtime/kv/splice_policy.hpp"

namespace redline::kv {

/// What happens when an answer reaches the end of its window. All policies except `off` drop the oldest tokens.
enum class eviction_policy : std::uint8_t {
  off,         // the answer ends
  reevaluate,  // the other tokens are computed again
  shift,       // the other tokens' keys are rotated in place
  lazy,        // the other tokens' keys keep their rotation; attention rotates the query instead
  last_,
};
inline constexpr std::array<std::string_view, 4> eviction_names = {"off", "reevaluate", "shift", "lazy"};
[[nodiscard]] constexpr std::string_view name_of(eviction_policy p) {
  return eviction_names[static_cast<std::size_t>(p)];
}
[[nodiscard]] constexpr std::optional<eviction_policy> parse_eviction_policy(std::string_view name) {
  for (std::size_t i = 0; i < eviction_names.size(); ++i) {
    if (eviction_names[i] == name) return static_cast<eviction_policy>(i);
  }
  return std::nullopt;
}
[[nodiscard]] constexpr splice_policy to_splice_policy(eviction_policy p) {
  switch (p) {
    case eviction_policy::shift:
      return splice_policy::eager;
    case eviction_policy::lazy:
      return splice_policy::lazy;
    default:
      return splice_policy::exact;
  }
}

/// How an answer continues beyond its window.
struct eviction_options {
  eviction_policy policy = eviction_policy::off;
  /// Number of first tokens that are never dropped; by default the prompt. In a conversation only whole turns that
  /// begin after them are dropped.
  std::optional<std::uint32_t> n_keep;
  /// Number of tokens dropped at a time; by default half of the droppable ones, extended to a nearby start of a line.
  std::optional<std::uint32_t> n_discard;
  /// Length of the window in tokens. 0, or more than the model's context, means the model's context.
  std::uint32_t n_ctx = 0;
  static constexpr auto fields(auto& self) { return std::tie(self.policy, self.n_keep, self.n_discard, self.n_ctx); }
};

}  // namespace redline::kv
