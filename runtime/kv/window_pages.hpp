#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "runtime/base/ids.hpp"

namespace redline::kv {

/// The second storage of a pool: keys and values of the layers that see only the last tokens of a sequence. A page
/// stores its tokens' part of it in a window page until no table references that and another page needs one; the one
/// released longest ago is reused first. So memory outside every window becomes free, but still exists for sequences
/// that continue from an earlier position while nothing else needs it.
class window_pages {
 public:
  /// pages_count: pages of the pool; count: window pages, at least 1; window: tokens that a row sees, with its own.
  window_pages(std::uint32_t pages_count, std::uint32_t count, std::uint32_t window);

  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(page_of_.size()); }
  /// The number of window pages that no table references.
  [[nodiscard]] std::uint32_t free_count() const { return count() - held_count_; }
  /// The first token that a row at index `at` of its sequence sees.
  [[nodiscard]] std::uint32_t first_seen(std::uint32_t at) const { return at < window_ ? 0 : at + 1 - window_; }
  /// The first token whose window page is kept for a sequence that continues at `at`: one page more than is seen, so
  /// that another sequence can share its last whole page and continue there.
  [[nodiscard]] std::uint32_t first_held(std::uint32_t at) const;

  /// The page's window page; nullopt if it has none.
  [[nodiscard]] std::optional<std::uint32_t> of(page_id page) const;
  /// Gives a page without a window page one with one reference; the one after the neighbour's if that is unused. At
  /// least one must be free.
  void give(page_id page, std::optional<page_id> neighbour);
  /// Takes the page's window page away, if it has one. At most the caller may reference it.
  void take(page_id page);
  /// Adds a table's reference to the page's window page. Returns false if there is none.
  bool hold(page_id page);
  void let_go(page_id page);

  /// Aborts if counts and orders are inconsistent.
  void check_integrity() const;

 private:
  static constexpr std::uint32_t none = 0xffffffffU;

  std::uint32_t window_;
  std::vector<std::uint32_t> of_;                 // by page
  std::vector<std::uint32_t> page_of_;            // by window page
  std::vector<std::uint32_t> holders_;            // by window page
  std::vector<std::uint64_t> let_go_at_;          // by window page: key in spare_
  std::map<std::uint64_t, std::uint32_t> spare_;  // window pages that have a page but no references
  std::uint64_t clock_ = 0;
  std::uint32_t held_count_ = 0;
  std::uint32_t search_from_ = 0;
};

}  // namespace redline::kv
