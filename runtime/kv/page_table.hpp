#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/kv/page_pool.hpp"

namespace redline::kv {

/// `count` tokens of one sequence in consecutive slots. A slot is a token's location in storage: slot = page *
/// page_tokens + index in page. Adjacent pages have adjacent slots, so a piece may span pages. A key was rotated for
/// some position when it was written; it now counts as that position + `offset`.
struct piece {
  std::uint32_t first_slot = 0;
  std::uint32_t count = 0;
  std::int32_t offset = 0;
  bool operator==(const piece&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.first_slot, self.count, self.offset); }
};

/// A copy within storage: `count` keys and values are copied between consecutive slots, with the keys rotated by `turn`
/// positions. from_slot == to_slot only rotates the keys. Moves must be done in order. If layers with a window have
/// separate storage, their keys and values are copied from window_from to window_to, or not at all.
struct token_move {
  static constexpr std::uint32_t nowhere = 0xffffffffU;

  std::uint32_t from_slot = 0;
  std::uint32_t to_slot = 0;
  std::uint32_t count = 0;
  std::int32_t turn = 0;
  std::uint32_t window_from = nowhere;
  std::uint32_t window_to = nowhere;
  bool operator==(const token_move&) const = default;
  static constexpr auto fields(auto& self) {
    return std::tie(self.from_slot, self.to_slot, self.count, self.turn, self.window_from, self.window_to);
  }
};

/// A sequence's map from token index to slots, in token order, and its pages. Owns one reference to each of its pages;
/// can be moved, not copied. Adjacent pieces are merged if slots and offsets allow.
///
/// New tokens, wherever they belong in the text, are stored in the most recently allocated page while it has space, and
/// never in a shared page. Slots of dropped tokens are freed with their whole page, or by compaction.
class page_table {
 public:
  page_table() = default;
  page_table(page_table&&) noexcept = default;
  page_table& operator=(page_table&&) noexcept = default;

  [[nodiscard]] std::uint32_t token_count() const { return token_count_; }
  [[nodiscard]] std::span<const piece> pieces() const { return pieces_; }
  /// The pieces of the first `count` tokens.
  [[nodiscard]] std::vector<piece> prefix(std::uint32_t count) const;
  [[nodiscard]] std::uint32_t held_count() const { return static_cast<std::uint32_t>(live_.size()); }
  /// Calls body(page) for every page of the table, in no particular order.
  template<class Body>
  void for_each_page(Body body) const {
    for (const auto& [page, count] : live_) body(page_id{page});
  }

  [[nodiscard]] std::size_t pages_count() const { return live_.size(); }

  /// The number of tokens that fit without another page.
  [[nodiscard]] std::uint32_t room(const page_pool& pool) const;
  /// The number of pages that adding `count` tokens takes from the pool.
  [[nodiscard]] std::uint32_t pages_needed(const page_pool& pool, std::uint32_t count) const;
  /// Inserts `count` tokens after the first `at`; they take the offset and the exactness of the previous token. Returns
  /// false, with nothing changed, if the pool has too few free pages.
  bool insert(page_pool& pool, std::uint32_t at, std::uint32_t count);
  bool append(page_pool& pool, std::uint32_t count) { return insert(pool, token_count_, count); }
  /// Appends a shared page: page_tokens tokens at offset 0. All tokens so far must be exact.
  void append_shared(page_pool& pool, page_id page);
  /// Keeps the first `count` tokens (rollback after a rejected draft); empty pages return to the pool.
  void truncate(page_pool& pool, std::uint32_t count);
  /// Returns every page to the pool.
  void clear(page_pool& pool) { truncate(pool, 0); }

  /// Drops tokens [at, at + removed_count). The tokens after them move by `shift` positions and are no longer exact.
  /// O(pieces); no key is accessed.
  void splice(page_pool& pool, std::uint32_t at, std::uint32_t removed_count, std::int32_t shift);
  /// Sets the offsets of the tokens from `at` on to 0 and returns the key rotations that the caller must do. Shared
  /// pages keep their offsets.
  std::vector<token_move> apply_offsets(const page_pool& pool, std::uint32_t at);

  /// Whether pieces are so many or so short, or pages so empty, that compact() pays.
  [[nodiscard]] bool is_fragmented() const;
  /// Moves all scattered tokens into new pages and returns the moves, which the caller must do before any other write.
  /// Exact tokens keep their bits. References all existing window pages. Returns no moves, with nothing changed, if the
  /// pool has too few free pages.
  std::vector<token_move> compact(page_pool& pool);

  /// If the pool has window pages: keeps the existing ones for the tokens that a sequence continuing at `at` needs, and
  /// for all tokens after them, and releases the others.
  void hold_windows(page_pool& pool, std::uint32_t at);
  /// Whether the window pages of tokens [from, end) still exist.
  [[nodiscard]] bool has_windows(const page_pool& pool, std::uint32_t from, std::uint32_t end) const;
  /// The pieces of tokens [from, end), with slots of their window pages, which must exist.
  [[nodiscard]] std::vector<piece> window_pieces(const page_pool& pool, std::uint32_t from, std::uint32_t end) const;

  /// The number of leading tokens whose KV has the bits that recomputing the sequence would give. New tokens are as
  /// exact as the previous token.
  [[nodiscard]] std::uint32_t exact_count() const { return exact_count_; }
  /// The first pages, at most `count`, that each contain only page_tokens consecutive exact tokens, in order.
  [[nodiscard]] std::vector<page_id> whole_pages(std::uint32_t count) const;

  /// Aborts if pieces, counts and pages are inconsistent.
  void check_integrity() const;

 private:
  /// Tokens of one page, for compact().
  struct part {
    piece at;
    bool stays = false;
    bool exact = false;
    bool seen = true;  // its window page exists
  };

  [[nodiscard]] std::vector<part> parts(const page_pool& pool);
  [[nodiscard]] static std::uint32_t pages_wanted(std::span<const part> parts);
  std::size_t split_at(std::uint32_t at);
  void merge_at(std::size_t index);
  void drop(page_pool& pool, std::uint32_t first_slot, std::uint32_t count);
  void note(std::uint32_t first_slot, std::uint32_t count);
  void reopen(page_pool& pool);
  void hold_open(page_pool& pool);
  void note_held(const page_pool& pool, page_id page);
  void set_held(page_pool& pool, std::vector<std::uint32_t> wanted);
  template<class Body>
  void for_pages_of(std::uint32_t from, std::uint32_t end, Body body) const;
  [[nodiscard]] std::uint32_t end_in_page(std::uint32_t page) const;

  std::vector<piece> pieces_;
  std::unordered_map<std::uint32_t, std::uint32_t> live_;  // tokens by page
  std::vector<std::uint32_t> windows_held_;                // pages whose window page this table references, in order
  std::uint32_t token_count_ = 0;
  std::uint32_t exact_count_ = 0;
  std::optional<page_id> open_;  // the page where new tokens are stored
  std::uint32_t open_fill_ = 0;  // their first free slot in it
};

}  // namespace redline::kv
