#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "runtime/base/ids.hpp"

namespace redline::kv {

/// The second storage of a pool: keys and values of the layers that see only the last tokens of a sequence. A page has
/// its tokens' part of it in a window page, until no table looks at it any more and another page needs one: of those
/// that no table holds, the one that was let go longest ago is taken. So what lies behind every window comes free, and
/// is still there for who wants to go on from an earlier place, while nothing else needs the memory.
class window_pages {
 public:
  /// pages_count: of the pool; count: window pages, at least 1; window: tokens that a row sees, its own the last.
  window_pages(std::uint32_t pages_count, std::uint32_t count, std::uint32_t window);

  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(page_of_.size()); }
  /// Window pages that no table holds.
  [[nodiscard]] std::uint32_t free_count() const { return count() - held_count_; }
  /// The first token that a row at index `at` of its sequence sees.
  [[nodiscard]] std::uint32_t first_seen(std::uint32_t at) const { return at < window_ ? 0 : at + 1 - window_; }
  /// The first token whose window page a sequence holds that goes on at `at`: a page more than what is seen, so that
  /// another sequence can share its last whole page and go on there.
  [[nodiscard]] std::uint32_t first_held(std::uint32_t at) const;

  /// The page's window page; nullopt when it has none (any more).
  [[nodiscard]] std::optional<std::uint32_t> of(page_id page) const;
  /// Gives a page that has none a window page, which is held once; the one after the neighbour's when that is unused.
  /// At least one must be free.
  void give(page_id page, std::optional<page_id> neighbour);
  /// Takes it away, if there is one, which at most the caller holds.
  void take(page_id page);
  /// One more table looks at it. False when there is none.
  bool hold(page_id page);
  void let_go(page_id page);

  /// Aborts when counts and orders contradict each other.
  void check_integrity() const;

 private:
  static constexpr std::uint32_t none = 0xffffffffU;

  std::uint32_t window_;
  std::vector<std::uint32_t> of_;                 // by page
  std::vector<std::uint32_t> page_of_;            // by window page
  std::vector<std::uint32_t> holders_;            // likewise
  std::vector<std::uint64_t> let_go_at_;          // likewise: key in spare_
  std::map<std::uint64_t, std::uint32_t> spare_;  // window pages that have a page and that no table holds
  std::uint64_t clock_ = 0;
  std::uint32_t held_count_ = 0;
  std::uint32_t search_from_ = 0;
};

}  // namespace redline::kv
