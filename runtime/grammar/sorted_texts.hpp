#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/grammar/syntax/steps.hpp"

namespace redline::grammar {

/// Distinct texts in byte order, so that texts with a common beginning are neighbors. The length of each common
/// beginning is computed once. The text written so far is a range of indices, and no step compares it again.
class sorted_texts {
 public:
  sorted_texts() = default;
  /// Sorts the texts and removes duplicates.
  explicit sorted_texts(std::vector<std::string> texts);

  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(texts_.size()); }
  [[nodiscard]] const std::string& operator[](std::uint32_t i) const { return texts_[i]; }
  /// The index of `text`, which must be one of the texts.
  [[nodiscard]] std::uint32_t find(std::string_view text) const;
  [[nodiscard]] bool contains(std::string_view text) const { return std::ranges::binary_search(texts_, text); }

  struct range {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    [[nodiscard]] bool is_empty() const { return begin >= end; }
  };
  /// The texts that agree with text i in its first `length` bytes. Text i has at least that many.
  [[nodiscard]] range find_alike(std::uint32_t i, std::uint32_t length, step_count& steps) const;
  /// The texts of `alike` that continue with `byte`. They agree in their first `length` bytes.
  [[nodiscard]] range narrow(range alike, std::uint32_t length, std::uint8_t byte, step_count& steps) const;
  /// The bytes, at most `bytes_max`, with which all texts of `alike` continue. They agree in their first `length`
  /// bytes.
  [[nodiscard]] std::string_view find_continuation(range alike, std::uint32_t length, std::size_t bytes_max,
                                                   step_count& steps) const;

 private:
  std::vector<std::string> texts_;
  // A tree of minima: node n is the smaller of nodes 2n and 2n + 1. Leaf leaves_ + i is the number of bytes that text i
  // has in common with the text before it; it is 0 for the first text and after the last one.
  std::vector<std::uint32_t> common_;
  std::uint32_t leaves_ = 1;
};

}  // namespace redline::grammar
