#include "runtime/kv/page_pool.hpp"

#include "runtime/base/assert.hpp"

namespace redline::kv {

page_pool::page_pool(std::uint32_t pages_count) : references_(pages_count, 0), free_count_(pages_count) {}

std::optional<page_id> page_pool::allocate(std::optional<page_id> neighbour) {
  if (free_count_ == 0) return std::nullopt;
  std::uint32_t page = search_from_;
  if (neighbour && neighbour->value + 1 < pages_count() && references_[neighbour->value + 1] == 0) {
    page = neighbour->value + 1;
  } else {
    while (references_[page] != 0) page = (page + 1) % pages_count();
    search_from_ = (page + 1) % pages_count();
  }
  references_[page] = 1;
  --free_count_;
  return page_id{page};
}

void page_pool::retain(page_id page) {
  REDLINE_ASSERT(page.value < pages_count() && references_[page.value] != 0, "only a held page can be shared");
  ++references_[page.value];
}

void page_pool::release(page_id page) {
  REDLINE_ASSERT(page.value < pages_count() && references_[page.value] != 0, "a page is released once per reference");
  if (--references_[page.value] == 0) ++free_count_;
}

std::uint32_t page_pool::references(page_id page) const {
  REDLINE_ASSERT(page.value < pages_count(), "a page of this pool");
  return references_[page.value];
}

void page_pool::check_integrity() const {
  std::uint32_t unheld = 0;
  for (const std::uint32_t count : references_) unheld += count == 0 ? 1 : 0;
  REDLINE_ASSERT(unheld == free_count_, "free + held = all");
}

}  // namespace redline::kv
