#include "runtime/kv/page_pool.hpp"

#include <algorithm>

#include "runtime/base/assert.hpp"

namespace redline::kv {

page_pool::page_pool(pool_size size) : references_(size.pages, 0), kept_(size.pages, false), free_count_(size.pages) {
  if (size.window_pages != 0) windows_.emplace(size.pages, size.window_pages, size.window);
}

std::optional<page_id> page_pool::allocate(std::optional<page_id> neighbour) {
  if (available() == 0) return std::nullopt;
  std::uint32_t page = search_from_;
  if (neighbour && neighbour->value + 1 < pages_count() && references_[neighbour->value + 1] == 0) {
    page = neighbour->value + 1;
  } else {
    while (references_[page] != 0) page = (page + 1) % pages_count();
    search_from_ = (page + 1) % pages_count();
  }
  references_[page] = 1;
  ++references_total_;
  --free_count_;
  if (windows_) windows_->give(page_id{page}, neighbour);
  return page_id{page};
}

void page_pool::retain(page_id page) {
  REDLINE_ASSERT(page.value < pages_count() && references_[page.value] != 0, "only a held page can be shared");
  if (kept_[page.value] && references_[page.value] == 1) --spare_count_;
  ++references_[page.value];
  ++references_total_;
}

void page_pool::release(page_id page) {
  REDLINE_ASSERT(page.value < pages_count() && references_[page.value] != 0, "a page is released once per reference");
  --references_total_;
  if (--references_[page.value] == 0) {
    ++free_count_;
    if (windows_) windows_->take(page);
  }
  if (kept_[page.value] && references_[page.value] == 1) ++spare_count_;
}

void page_pool::keep(page_id page) {
  retain(page);
  REDLINE_ASSERT(!kept_[page.value], "a page is kept once");
  kept_[page.value] = true;
  ++kept_count_;
}

void page_pool::give_up(page_id page) {
  REDLINE_ASSERT(page.value < pages_count() && kept_[page.value], "only a kept page is given up");
  if (references_[page.value] == 1) --spare_count_;
  kept_[page.value] = false;
  --kept_count_;
  given_up_.push_back(page);
  release(page);
}

std::uint32_t page_pool::references(page_id page) const {
  REDLINE_ASSERT(page.value < pages_count(), "a page of this pool");
  return references_[page.value];
}

void page_pool::check_integrity() const {
  std::uint32_t unheld = 0;
  std::uint32_t kept = 0;
  std::uint32_t spare = 0;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < references_.size(); ++i) {
    unheld += references_[i] == 0 ? 1 : 0;
    kept += kept_[i] ? 1 : 0;
    spare += kept_[i] && references_[i] == 1 ? 1 : 0;
    total += references_[i];
  }
  check_some(0, pages_count());
  if (windows_) windows_->check_integrity();
  REDLINE_ASSERT(total == references_total_, "references are counted");
  REDLINE_ASSERT(unheld == free_count_, "free + held = all");
  REDLINE_ASSERT(kept == kept_count_ && spare == spare_count_, "kept and spare pages are counted");
}

void page_pool::check_some(std::uint32_t first, std::uint32_t count) const {
  const auto end = static_cast<std::uint32_t>(std::min(std::uint64_t{first} + count, std::uint64_t{pages_count()}));
  for (std::uint32_t i = first; i < end; ++i) {
    REDLINE_ASSERT(!kept_[i] || references_[i] > 0, "a kept page is held");
    REDLINE_ASSERT(references_[i] > 0 || !windows_ || !windows_->of(page_id{i}), "a free page has no window page");
  }
}

}  // namespace redline::kv
