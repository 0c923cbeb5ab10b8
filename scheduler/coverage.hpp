#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/token_range.hpp"

namespace redline::scheduler {

/// Which tokens of a log have KV. Usually they form a prefix; after an edit in the middle there are holes, and the page
/// table stores the tokens outside the holes consecutively. The first hole is filled first, so that a token is never
/// computed before the tokens it attends to.
class coverage {
 public:
  [[nodiscard]] bool is_empty() const { return covered_.empty(); }
  /// The number of tokens that have KV: the length of the page table.
  [[nodiscard]] std::uint32_t count() const;
  /// The number of tokens with KV among the first `end` tokens of the log.
  [[nodiscard]] std::uint32_t count_before(std::uint32_t end) const;
  /// The position in the log after the first `count` tokens that have KV.
  [[nodiscard]] std::uint32_t end_of(std::uint32_t count) const;
  /// The first tokens without KV, up to the next token that has it or to the log's end. Empty if all tokens have KV.
  [[nodiscard]] token_range first_gap(std::uint32_t log_count) const;

  /// The tokens of the range, which lies in a gap, now have KV.
  void add(token_range computed);
  /// Tokens after the log's first `count` no longer have KV.
  void keep(std::uint32_t count);
  /// Tokens [at, at + removed_count) left the log and inserted_count new ones came; the others keep their KV.
  void splice(std::uint32_t at, std::uint32_t removed_count, std::uint32_t inserted_count);

  [[nodiscard]] std::span<const token_range> ranges() const { return covered_; }
  /// Aborts if ranges are empty, out of order or adjacent.
  void check_integrity() const;

 private:
  std::vector<token_range> covered_;  // in order, none empty, none adjacent to the next
};

}  // namespace redline::scheduler
