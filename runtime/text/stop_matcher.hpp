#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"

namespace redline::text {

/// Cuts streamed text at the first stop string, like a server that checks after every byte: the stop string that is
/// complete first wins, and of several complete at the same byte the longest. So the text passed on never contains a
/// whole stop string. The result depends only on the text, not on how tokens or rounds divide it, and nothing passed on
/// is ever taken back.
class stop_matcher {
 public:
  static constexpr std::size_t stops_max = 40;
  static constexpr std::size_t stop_bytes_max = 4096;

  /// Refuses more than `stops_max` strings, empty ones and ones longer than `stop_bytes_max`. Without strings, text
  /// passes through unchanged.
  static result<stop_matcher> make(std::vector<std::string> stops);

  /// Returns text that can no longer be part of a match. After a match this is the text before the stop string, and
  /// later calls return nothing.
  [[nodiscard]] std::string feed(std::string_view piece);
  /// Ends the text: returns what was delayed, because it matches nothing. Empty after a match.
  [[nodiscard]] std::string finish();

  /// Index of the stop string that matched.
  [[nodiscard]] std::optional<std::size_t> matched() const { return matched_; }
  [[nodiscard]] const std::string& stop(std::size_t index) const { return patterns_[index].stop; }
  [[nodiscard]] std::size_t held_bytes() const { return held_.size(); }

 private:
  struct pattern {
    std::string stop;
    /// borders[n]: length of the longest proper border of the first n bytes (Knuth, Morris, Pratt).
    std::vector<std::size_t> borders;
    /// How many of its first bytes the text so far ends with.
    std::size_t matching = 0;
  };

  static void advance(pattern& p, char byte);

  std::vector<pattern> patterns_;
  /// The longest suffix of the text so far that begins a stop string.
  std::string held_;
  std::optional<std::size_t> matched_;
};

}  // namespace redline::text
