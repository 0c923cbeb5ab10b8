#pragma once

#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/kv/page_pool.hpp"

namespace redline::kv {

/// `count` tokens of one sequence in consecutive slots. A slot is a token's place in storage:
/// slot = page * page_tokens + index in page; neighbouring pages make neighbouring slots, so a piece may span pages.
/// A key was rotated for some position when it was written; it now counts as that position + `offset`.
struct piece {
  std::uint32_t first_slot = 0;
  std::uint32_t count = 0;
  std::int32_t offset = 0;
  bool operator==(const piece&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.first_slot, self.count, self.offset); }
};

/// A sequence's map from token index to slots, in token order, and the pages it holds. Owns one reference to every
/// page in it; moves, never copies. All operations keep neighbouring pieces merged where slots and offsets allow.
class page_table {
 public:
  page_table() = default;
  page_table(page_table&&) noexcept = default;
  page_table& operator=(page_table&&) noexcept = default;

  [[nodiscard]] std::uint32_t token_count() const { return token_count_; }
  [[nodiscard]] std::span<const piece> pieces() const { return pieces_; }
  [[nodiscard]] std::span<const page_id> pages() const { return pages_; }

  /// Pages that `append(count)` would have to take from the pool.
  [[nodiscard]] std::uint32_t pages_needed(std::uint32_t count) const;
  /// Grows by `count` tokens with offset 0, filling the last page first. False, and nothing changed, when the pool
  /// has too few free pages.
  bool append(page_pool& pool, std::uint32_t count);
  /// Keeps the first `count` tokens (rollback after a rejected draft); whole pages behind them go back to the pool.
  void truncate(page_pool& pool, std::uint32_t count);
  /// Gives every page back.
  void clear(page_pool& pool) { truncate(pool, 0); }

  /// Aborts when the pieces do not cover token_count() tokens or lie outside of the held pages.
  void check_integrity() const;

 private:
  std::vector<piece> pieces_;
  std::vector<page_id> pages_;  // in token order
  std::uint32_t token_count_ = 0;
};

}  // namespace redline::kv
