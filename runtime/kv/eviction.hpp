#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/kv/splice_policy.hpp"

namespace redline::kv {

/// What happens when an answer reaches the end of its window.
enum class eviction_policy : std::uint8_t {
  off,         // the answer ends
  reevaluate,  // old tokens go, the others are computed again
  shift,       // old tokens go, the others' keys are turned in place
  lazy,        // old tokens go, the others' keys count as moved
};
inline constexpr std::array<std::string_view, 4> eviction_names = {"off", "reevaluate", "shift", "lazy"};
[[nodiscard]] constexpr std::string_view name_of(eviction_policy p) {
  return eviction_names[static_cast<std::size_t>(p)];
}
[[nodiscard]] constexpr std::optional<eviction_policy> eviction_policy_of(std::string_view name) {
  for (std::size_t i = 0; i < eviction_names.size(); ++i) {
    if (eviction_names[i] == name) return static_cast<eviction_policy>(i);
  }
  return std::nullopt;
}
[[nodiscard]] constexpr splice_policy splice_policy_of(eviction_policy p) {
  switch (p) {
    case eviction_policy::shift:
      return splice_policy::eager;
    case eviction_policy::lazy:
      return splice_policy::lazy;
    default:
      return splice_policy::exact;
  }
}

/// How an answer goes on beyond the tokens that are kept computed.
struct eviction_options {
  eviction_policy policy = eviction_policy::off;
  /// The first tokens, which always stay. Absent: the prompt. Of a conversation's prompt only older turns go, whatever
  /// this is: those that begin behind it.
  std::optional<std::uint32_t> n_keep;
  /// Tokens behind those that go at a time. Absent: half of what is not kept, and on to the start of a line where one
  /// is near.
  std::optional<std::uint32_t> n_discard;
  /// Tokens of the window; 0, or more than the context: the context.
  std::uint32_t n_ctx = 0;
};

}  // namespace redline::kv
