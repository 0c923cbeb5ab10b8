#include "runtime/kv/window_pages.hpp"

#include "runtime/base/assert.hpp"
#include "runtime/kv/page_pool.hpp"

namespace redline::kv {

window_pages::window_pages(std::uint32_t pages_count, std::uint32_t count, std::uint32_t window)
    : window_(window), of_(pages_count, none), page_of_(count, none), holders_(count, 0), let_go_at_(count, 0) {
  REDLINE_ASSERT(count > 0 && window > 0, "a window has tokens, and storage");
}

std::uint32_t window_pages::first_held(std::uint32_t at) const {
  const std::uint32_t seen = first_seen(at);
  return seen < page_tokens ? 0 : seen - (page_tokens - 1);
}

std::optional<std::uint32_t> window_pages::of(page_id page) const {
  return of_[page.value] == none ? std::nullopt : std::optional(of_[page.value]);
}

void window_pages::give(page_id page, std::optional<page_id> neighbour) {
  REDLINE_ASSERT(of_[page.value] == none && free_count() > 0, "a page has one window page, of those that are free");
  const std::uint32_t unused_count = free_count() - static_cast<std::uint32_t>(spare_.size());
  std::uint32_t at = search_from_;
  if (unused_count == 0) {
    at = spare_.begin()->second;
    take(page_id{page_of_[at]});
  } else if (const auto before = neighbour ? of(*neighbour) : std::nullopt;
             before && *before + 1 < count() && page_of_[*before + 1] == none) {
    at = *before + 1;
  } else {
    while (page_of_[at] != none) at = (at + 1) % count();
    search_from_ = (at + 1) % count();
  }
  page_of_[at] = page.value;
  of_[page.value] = at;
  holders_[at] = 1;
  ++held_count_;
}

void window_pages::take(page_id page) {
  const std::uint32_t at = of_[page.value];
  if (at == none) return;
  REDLINE_ASSERT(holders_[at] <= 1, "a window page that others look at stays");
  if (holders_[at] == 1) let_go(page);
  spare_.erase(let_go_at_[at]);
  page_of_[at] = none;
  of_[page.value] = none;
}

bool window_pages::hold(page_id page) {
  const std::uint32_t at = of_[page.value];
  if (at == none) return false;
  if (holders_[at]++ > 0) return true;
  spare_.erase(let_go_at_[at]);
  ++held_count_;
  return true;
}

void window_pages::let_go(page_id page) {
  const std::uint32_t at = of_[page.value];
  REDLINE_ASSERT(at != none && holders_[at] > 0, "a window page is let go once per holder");
  if (--holders_[at] > 0) return;
  let_go_at_[at] = ++clock_;
  spare_.emplace(clock_, at);
  --held_count_;
}

void window_pages::check_integrity() const {
  std::uint32_t held = 0;
  std::size_t spare = 0;
  for (std::uint32_t at = 0; at < count(); ++at) {
    const bool has_page = page_of_[at] != none;
    REDLINE_ASSERT(!has_page || of_[page_of_[at]] == at, "a page and its window page know each other");
    REDLINE_ASSERT(has_page || holders_[at] == 0, "a held window page has a page");
    held += holders_[at] > 0 ? 1 : 0;
    if (!has_page || holders_[at] > 0) continue;
    ++spare;
    REDLINE_ASSERT(spare_.contains(let_go_at_[at]) && spare_.at(let_go_at_[at]) == at, "spare ones are in their order");
  }
  REDLINE_ASSERT(held == held_count_ && spare == spare_.size(), "held and spare window pages are counted");
}

}  // namespace redline::kv
