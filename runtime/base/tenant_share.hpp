#pragma once

#include <algorithm>
#include <cstdint>

namespace redline {

/// How much each of several owners (mostly tenants) may have of a shared resource. All parts of the server use two
/// rules:
///
/// `equal_share` is for what returns soon or can be taken back: slots, pages, bytes of connections that can be closed.
/// An owner alone gets all of it, and yields when others come.
///
/// `part_of_one` is for what its owner may keep indefinitely: edit sessions, the memory of requests, connections. There
/// the rest must stay free for others in advance, so an owner alone does not get more, either.
struct equal_share {
  std::uint64_t total = 0;   // the maximum for all together, or what they have now
  std::uint64_t owners = 1;  // owners that have or want some, including the one that asks

  /// The share in whole units; at least `least`, but at most the total.
  [[nodiscard]] constexpr std::uint64_t whole(std::uint64_t least = 0) const {
    return std::min(total, std::max(least, total / std::max<std::uint64_t>(owners, 1)));
  }
  /// Exact, without rounding: a value neither over the share nor below it is the share.
  [[nodiscard]] constexpr bool is_below(std::uint64_t own) const { return own * owners < total; }
  [[nodiscard]] constexpr bool is_over(std::uint64_t own) const { return own * owners > total; }
};

/// One of `parts` equal parts, at least 1.
constexpr std::uint64_t part_of_one(std::uint64_t total, std::uint64_t parts = 4) {
  return std::max<std::uint64_t>(1, total / parts);
}

}  // namespace redline
