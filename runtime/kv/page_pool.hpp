#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/kv/window_pages.hpp"

namespace redline::kv {

/// Tokens in one page. 32: the depth of one bf16 tile product, and sharing stays fine-grained.
inline constexpr std::uint32_t page_tokens = 32;

/// How many pages there are, and window pages (window_pages.hpp), where layers with a window have storage of their own.
struct pool_size {
  // Not explicit: most pools have no window pages.
  constexpr pool_size(std::uint32_t pages_count, std::uint32_t windows_count = 0, std::uint32_t tokens = 0)
      : pages(pages_count), window_pages(windows_count), window(tokens) {}

  std::uint32_t pages;
  std::uint32_t window_pages;  // 0: all layers lie in the pages
  std::uint32_t window;        // tokens that a row of such a layer sees, its own the last; 0 without window pages
};

/// Reference counts of KV pages: free + held = all. Never touches the bytes in a page. A held page may be kept: one of
/// its references is the prefix cache's, which can be given up when pages are needed.
class page_pool {
 public:
  explicit page_pool(pool_size size);

  [[nodiscard]] std::uint32_t pages_count() const { return static_cast<std::uint32_t>(references_.size()); }
  [[nodiscard]] std::uint32_t free_count() const { return free_count_; }
  /// Pages that can be allocated now: free ones that can have a window page, where there are such.
  [[nodiscard]] std::uint32_t available() const {
    return windows_ ? std::min(free_count_, windows_->free_count()) : free_count_;
  }

  /// nullptr: all layers lie in the pages. A page that is allocated has a window page, which the caller holds once. It
  /// goes with its page, or when no table holds it and another page needs one.
  [[nodiscard]] window_pages* windows() { return windows_ ? &*windows_ : nullptr; }
  [[nodiscard]] const window_pages* windows() const { return windows_ ? &*windows_ : nullptr; }

  /// A free page with one reference; the page right after `neighbour` when that is free, so that a sequence's slots
  /// stay consecutive. nullopt when none is available.
  std::optional<page_id> allocate(std::optional<page_id> neighbour = std::nullopt);
  void retain(page_id page);
  void release(page_id page);
  [[nodiscard]] std::uint32_t references(page_id page) const;

  /// Adds the prefix cache's reference; a page has at most one.
  void keep(page_id page);
  /// Drops that reference.
  void give_up(page_id page);
  /// Pages of which that reference was dropped since the last call.
  [[nodiscard]] std::vector<page_id> take_given_up() { return std::exchange(given_up_, {}); }
  [[nodiscard]] bool is_kept(page_id page) const { return kept_[page.value]; }
  [[nodiscard]] std::uint32_t kept_count() const { return kept_count_; }
  /// Kept pages that have no other reference.
  [[nodiscard]] std::uint32_t spare_count() const { return spare_count_; }

  /// Of all pages together.
  [[nodiscard]] std::uint64_t references_total() const { return references_total_; }

  /// Aborts when the free count and the reference counts disagree.
  void check_integrity() const;
  /// The same as far as a page alone can tell, of the pages [first, first + count) that there are.
  void check_some(std::uint32_t first, std::uint32_t count) const;

 private:
  std::vector<std::uint32_t> references_;
  std::vector<bool> kept_;
  std::vector<page_id> given_up_;
  std::uint64_t references_total_ = 0;
  std::uint32_t kept_count_ = 0;
  std::uint32_t spare_count_ = 0;
  std::uint32_t free_count_ = 0;
  std::uint32_t search_from_ = 0;
  std::optional<window_pages> windows_;
};

}  // namespace redline::kv
