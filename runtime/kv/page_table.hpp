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

/// A copy within storage: `count` keys and values go from consecutive slots to others, the keys rotated by `turn`
/// positions on the way. from_slot == to_slot only rotates the keys. Moves must be done in order. Where layers with a
/// window have storage of their own, their keys and values go from window_from to window_to, or nowhere.
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

/// A sequence's map from token index to slots, in token order, and the pages that hold them. Owns one reference to
/// every page in it; can be moved, not copied. Neighbouring pieces are merged where slots and offsets allow.
///
/// New tokens, wherever they belong in the text, are stored in the page that was allocated last while it has room, and
/// never in a page with another owner. Slots of dropped tokens are freed with their whole page, or by compaction.
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

  [[nodiscard]] std::size_t pages_count() const { return live_.size(); }

  /// Tokens that can be added without another page.
  [[nodiscard]] std::uint32_t room(const page_pool& pool) const;
  /// Pages that adding `count` tokens would take from the pool.
  [[nodiscard]] std::uint32_t pages_needed(const page_pool& pool, std::uint32_t count) const;
  /// Inserts `count` tokens after the first `at`; they take the offset and the exactness of the token before them.
  /// False, with nothing changed, when the pool has too few free pages.
  bool insert(page_pool& pool, std::uint32_t at, std::uint32_t count);
  bool append(page_pool& pool, std::uint32_t count) { return insert(pool, token_count_, count); }
  /// Appends a page that has another owner too: page_tokens tokens at offset 0. All tokens so far must be exact.
  void append_shared(page_pool& pool, page_id page);
  /// Keeps the first `count` tokens (rollback after a rejected draft); pages left empty go back to the pool.
  void truncate(page_pool& pool, std::uint32_t count);
  /// Gives every page back.
  void clear(page_pool& pool) { truncate(pool, 0); }

  /// Drops tokens [at, at + removed_count). Those after them move by `shift` positions and are no longer exact.
  /// O(pieces); no key is touched.
  void splice(page_pool& pool, std::uint32_t at, std::uint32_t removed_count, std::int32_t shift);
  /// Sets the offsets of the tokens from `at` on to 0 and returns the key rotations that the caller must do. Pages with
  /// another owner keep their offsets.
  std::vector<token_move> apply_offsets(const page_pool& pool, std::uint32_t at);

  /// Pieces are so many or so short, or pages so empty, that compact() pays.
  [[nodiscard]] bool is_fragmented() const;
  /// Moves all tokens that lie scattered into fresh pages and returns the moves, which the caller must do before
  /// anything else is written. Exact tokens keep their bits. Holds all window pages that are there. No moves, with
  /// nothing changed, when the pool has too few free pages.
  std::vector<token_move> compact(page_pool& pool);

  /// Where the pool has window pages: holds those of the tokens that a sequence needs which goes on at `at`, and of all
  /// after them, as far as they are still there; lets all others go.
  void hold_windows(page_pool& pool, std::uint32_t at);
  /// Whether the window pages of tokens [from, end) are still there.
  [[nodiscard]] bool has_windows(const page_pool& pool, std::uint32_t from, std::uint32_t end) const;
  /// The pieces of the same tokens, which are there, with slots of the window pages.
  [[nodiscard]] std::vector<piece> window_pieces(const page_pool& pool, std::uint32_t from, std::uint32_t end) const;

  /// The first tokens whose KV has the bits that computing the sequence anew would give. New tokens are as exact as the
  /// token before them.
  [[nodiscard]] std::uint32_t exact_count() const { return exact_count_; }
  /// The first pages, at most `count`, that hold page_tokens exact tokens each, in order, and nothing else.
  [[nodiscard]] std::vector<page_id> whole_pages(std::uint32_t count) const;

  /// Aborts when pieces, counts and pages contradict each other.
  void check_integrity() const;

 private:
  /// Tokens of one page, for compact().
  struct part {
    piece at;
    bool stays = false;
    bool exact = false;
    bool seen = true;  // its window page is there
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
  std::vector<std::uint32_t> windows_held_;                // pages whose window page this table holds, in order
  std::uint32_t token_count_ = 0;
  std::uint32_t exact_count_ = 0;
  std::optional<page_id> open_;  // new tokens are stored in this page,
  std::uint32_t open_fill_ = 0;  // from this slot of it on
};

}  // namespace redline::kv
