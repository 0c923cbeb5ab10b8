#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/kv/window_pages.hpp"

namespace redline::kv {

/// Tokens in one page. 32 is the depth of one bf16 tile product, and keeps sharing fine-grained.
inline constexpr std::uint32_t page_tokens = 32;

/// The number of pages, and of window pages (window_pages.hpp) if layers with a window have separate storage.
struct pool_size {
  // Not explicit: most pools have no window pages.
  constexpr pool_size(std::uint32_t pages_count, std::uint32_t windows_count = 0, std::uint32_t tokens = 0)
      : pages(pages_count), window_pages(windows_count), window(tokens) {}

  std::uint32_t pages;
  std::uint32_t window_pages;  // 0 if all layers are stored in the pages
  std::uint32_t window;  // tokens that a row of a layer with a window sees, including its own; 0 without window pages
  std::uint32_t state_slots = 0;    // states of recurrent layers, one for each sequence; 0 if the model has none
  std::uint32_t state_copies = 0;   // states of cached prefixes, in slots that follow those
  std::uint32_t state_records = 0;  // rows of a run that a sequence's state can have records of
};

/// Reference counts of KV pages: every page is free or referenced. Never accesses the bytes of a page. A page may be
/// cached: one of its references then belongs to the prefix cache, and can be dropped when pages are needed.
class page_pool {
 public:
  explicit page_pool(pool_size size);

  [[nodiscard]] std::uint32_t pages_count() const { return static_cast<std::uint32_t>(references_.size()); }
  [[nodiscard]] std::uint32_t free_count() const { return free_count_; }
  /// Pages that can be allocated now: free ones, up to the number of free window pages if there are any.
  [[nodiscard]] std::uint32_t available() const {
    return windows_ ? std::min(free_count_, windows_->free_count()) : free_count_;
  }

  /// nullptr if all layers are stored in the pages. An allocated page has a window page with one reference owned by the
  /// caller. It is freed with its page, or when no table references it and another page needs one.
  [[nodiscard]] window_pages* windows() { return windows_ ? &*windows_ : nullptr; }
  [[nodiscard]] const window_pages* windows() const { return windows_ ? &*windows_ : nullptr; }

  /// Returns a free page with one reference; the page right after `neighbour` if that is free, so that a sequence's
  /// slots stay consecutive. nullopt if none is available.
  std::optional<page_id> allocate(std::optional<page_id> neighbour = std::nullopt);
  void retain(page_id page);
  void release(page_id page);
  [[nodiscard]] std::uint32_t references(page_id page) const;

  /// Adds the prefix cache's reference; a page has at most one.
  void keep(page_id page);
  /// Drops the prefix cache's reference.
  void give_up(page_id page);
  /// The pages whose cache reference was dropped since the last call.
  [[nodiscard]] std::vector<page_id> take_given_up() { return std::exchange(given_up_, {}); }
  [[nodiscard]] bool is_kept(page_id page) const { return kept_[page.value]; }
  [[nodiscard]] std::uint32_t kept_count() const { return kept_count_; }
  /// The number of cached pages without other references.
  [[nodiscard]] std::uint32_t spare_count() const { return spare_count_; }

  /// The sum over all pages.
  [[nodiscard]] std::uint64_t references_total() const { return references_total_; }

  /// Aborts if the free count and the reference counts disagree.
  void check_integrity() const;
  /// Checks what can be checked per page, for existing pages in [first, first + count).
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
