#pragma once

#include <algorithm>
#include <cstdint>

namespace redline {

/// What each of several owners (tenants, mostly) may have of something that all of them use. Two rules, for all parts
/// of the server:
///
/// `equal_share` is of what comes back soon or can be taken back: places, pages, bytes of connections that can be
/// closed. An owner alone has all of it, and gives way when others come.
///
/// `part_of_one` is of what stays with its holder for as long as he likes: edit sessions, the memory of requests,
/// connections. There the part has to be kept free before others come, so an owner alone does not have more either.
struct equal_share {
  std::uint64_t total = 0;   // that all may have together, or that they have
  std::uint64_t owners = 1;  // who have some or want some, the one that asks among them

  /// In whole units, but at least so many if there are as many.
  [[nodiscard]] constexpr std::uint64_t whole(std::uint64_t least = 0) const {
    return std::min(total, std::max(least, total / std::max<std::uint64_t>(owners, 1)));
  }
  /// Exact, without rounding: what is neither over the share nor below it is the share.
  [[nodiscard]] constexpr bool is_below(std::uint64_t own) const { return own * owners < total; }
  [[nodiscard]] constexpr bool is_over(std::uint64_t own) const { return own * owners > total; }
};

/// One of `parts`, at least 1.
constexpr std::uint64_t part_of_one(std::uint64_t total, std::uint64_t parts = 4) {
  return std::max<std::uint64_t>(1, total / parts);
}

}  // namespace redline
