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

/// Work on storage: `count` keys and values go from consecutive slots to others, the keys turned by `turn` positions on
/// the way. Within one place (from_slot == to_slot) only the keys are turned. Moves are done in order.
struct token_move {
  std::uint32_t from_slot = 0;
  std::uint32_t to_slot = 0;
  std::uint32_t count = 0;
  std::int32_t turn = 0;
  bool operator==(const token_move&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.from_slot, self.to_slot, self.count, self.turn); }
};

/// What a token's keys and values are worth.
enum class provenance : std::uint8_t {
  exact,    // bit for bit what computing the tokens before it and it would give
  shifted,  // computed exactly, for a window that has moved since
  stale,    // computed for a text that was edited since
};

/// A sequence's map from token index to slots, in token order, and the pages that hold them. Owns one reference to
/// every page in it; moves, never copies. Neighbouring pieces are merged where slots and offsets allow.
///
/// New tokens go, wherever they belong in the text, to the page that was taken last while it has room, and never to a
/// page with another owner. Slots of dropped tokens come back with their whole page, or by compaction.
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
  /// Calls body(page) for every page held, in no order.
  template<class Body>
  void for_each_page(Body body) const {
    for (const auto& [page, count] : live_) body(page_id{page});
  }

  /// Tokens that can be added without another page.
  [[nodiscard]] std::uint32_t room(const page_pool& pool) const;
  /// Pages that adding `count` tokens would take from the pool.
  [[nodiscard]] std::uint32_t pages_needed(const page_pool& pool, std::uint32_t count) const;
  /// Adds `count` tokens behind the first `at`, to be computed as the position of their index asks; they take the
  /// offset and the provenance of the token before them. False, and nothing changed, when the pool has too few free
  /// pages.
  bool insert(page_pool& pool, std::uint32_t at, std::uint32_t count);
  bool append(page_pool& pool, std::uint32_t count) { return insert(pool, token_count_, count); }
  /// Adds a page of another owner: page_tokens tokens at offset 0. Only behind exact tokens.
  void append_shared(page_pool& pool, page_id page);
  /// Keeps the first `count` tokens (rollback after a rejected draft); whole pages behind them go back to the pool.
  void truncate(page_pool& pool, std::uint32_t count);
  /// Gives every page back.
  void clear(page_pool& pool) { truncate(pool, 0); }

  /// Drops tokens [at, at + removed_count); those behind move by `shift` positions and are worth at most `later` from
  /// now on. O(pieces); no key is touched.
  void splice(page_pool& pool, std::uint32_t at, std::uint32_t removed_count, std::int32_t shift, provenance later);
  /// Takes the offsets of the tokens from `at` on into the keys themselves: returns the rotations to do. Pages with
  /// another owner keep their offsets.
  std::vector<token_move> settle(const page_pool& pool, std::uint32_t at);

  /// Pieces are so many or so short, or pages so empty, that copying everything into fresh pages pays.
  [[nodiscard]] bool is_fragmented() const;
  /// Copies all tokens that lie scattered into fresh pages: returns the moves to do before anything else is written.
  /// Exact tokens stay bit for bit. No moves, and nothing changed, when pages are lacking.
  std::vector<token_move> compact(page_pool& pool);

  [[nodiscard]] std::uint32_t count_of(provenance p) const;
  /// The page that holds tokens [index * page_tokens, (index + 1) * page_tokens) and nothing else, when they are exact
  /// and lie in one page in order.
  [[nodiscard]] std::optional<page_id> whole_page(std::uint32_t index) const;

  /// Aborts when pieces, counts and pages contradict each other.
  void check_integrity() const;

 private:
  std::size_t split_at(std::uint32_t at);
  void merge_at(std::size_t index);
  void drop(page_pool& pool, std::uint32_t first_slot, std::uint32_t count);
  void note(std::uint32_t first_slot, std::uint32_t count);
  void reopen();
  [[nodiscard]] std::uint32_t end_in_page(std::uint32_t page) const;

  std::vector<piece> pieces_;
  std::unordered_map<std::uint32_t, std::uint32_t> live_;  // tokens by page
  std::uint32_t token_count_ = 0;
  std::uint32_t exact_count_ = 0;  // tokens [0, exact_count_) are exact,
  std::uint32_t stale_begin_ = 0;  // [exact_count_, stale_begin_) shifted, the others stale
  std::optional<page_id> open_;    // where new tokens go,
  std::uint32_t open_fill_ = 0;    // from this slot of it on
};

}  // namespace redline::kv
