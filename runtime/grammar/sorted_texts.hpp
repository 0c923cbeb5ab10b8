#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/grammar/syntax/steps.hpp"

namespace redline::grammar {

/// Different texts in the order of their bytes, so that texts with a common beginning are neighbours. How much two
/// neighbours have in common is known from the start: what was written so far is a range of indices, and no step
/// compares it again.
class sorted_texts {
 public:
  sorted_texts() = default;
  /// Sorts them; equal ones become one.
  explicit sorted_texts(std::vector<std::string> texts);

  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(texts_.size()); }
  [[nodiscard]] const std::string& operator[](std::uint32_t i) const { return texts_[i]; }
  /// The index of one of the texts.
  [[nodiscard]] std::uint32_t find(std::string_view text) const;
  [[nodiscard]] bool contains(std::string_view text) const { return std::ranges::binary_search(texts_, text); }

  struct range {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    [[nodiscard]] bool is_empty() const { return begin >= end; }
  };
  /// Those whose first `length` bytes, of which text i has at least as many, are text i's.
  [[nodiscard]] range find_alike(std::uint32_t i, std::uint32_t length, step_count& steps) const;
  /// Those of `alike`, whose first `length` bytes are the same, that go on with `byte`.
  [[nodiscard]] range narrow(range alike, std::uint32_t length, std::uint8_t byte, step_count& steps) const;
  /// The bytes, at most `bytes_max`, with which all of `alike`, whose first `length` bytes are the same, go on.
  [[nodiscard]] std::string_view find_continuation(range alike, std::uint32_t length, std::size_t bytes_max,
                                                   step_count& steps) const;

 private:
  std::vector<std::string> texts_;
  // A tree of minima: node n has the smaller value of 2n and 2n + 1, and leaf leaves_ + i the number of bytes that text
  // i has in common with the one before it; 0 for the first text and after the last.
  std::vector<std::uint32_t> common_;
  std::uint32_t leaves_ = 1;
};

}  // namespace redline::grammar
