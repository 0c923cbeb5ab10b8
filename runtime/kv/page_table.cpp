#include "runtime/kv/page_table.hpp"

#include <algorithm>

#include "kernels/kernel_table.hpp"
#include "runtime/base/assert.hpp"

namespace redline::kv {

static_assert(page_tokens == kernels::kv_page_tokens, "kernels and bookkeeping agree on the size of a page");

namespace {

std::uint32_t end_of(const piece& p) { return p.first_slot + p.count; }

/// Slots left in the last page behind the last token. A full last page and an empty table have none.
std::uint32_t room_in_last_page(std::span<const piece> pieces) {
  if (pieces.empty()) return 0;
  return (page_tokens - end_of(pieces.back()) % page_tokens) % page_tokens;
}

}  // namespace

std::uint32_t page_table::pages_needed(std::uint32_t count) const {
  const std::uint32_t room = room_in_last_page(pieces_);
  if (count <= room) return 0;
  return (count - room - 1) / page_tokens + 1;
}

bool page_table::append(page_pool& pool, std::uint32_t count) {
  if (pages_needed(count) > pool.free_count()) return false;
  while (count > 0) {
    std::uint32_t room = room_in_last_page(pieces_);
    std::uint32_t slot = room == 0 ? 0 : end_of(pieces_.back());
    if (room == 0) {
      const auto page = pool.allocate(pages_.empty() ? std::nullopt : std::optional(pages_.back()));
      REDLINE_ASSERT(page.has_value(), "the pool had enough free pages a moment ago");
      pages_.push_back(*page);
      slot = page->value * page_tokens;
      room = page_tokens;
    }
    const std::uint32_t taken = std::min(room, count);
    if (!pieces_.empty() && pieces_.back().offset == 0 && end_of(pieces_.back()) == slot) {
      pieces_.back().count += taken;
    } else {
      pieces_.push_back({.first_slot = slot, .count = taken, .offset = 0});
    }
    token_count_ += taken;
    count -= taken;
  }
  return true;
}

void page_table::truncate(page_pool& pool, std::uint32_t count) {
  if (count >= token_count_) return;
  while (token_count_ > count) {
    piece& last = pieces_.back();
    const std::uint32_t dropped = std::min(last.count, token_count_ - count);
    last.count -= dropped;
    token_count_ -= dropped;
    if (last.count == 0) pieces_.pop_back();
  }
  // Pages are in token order: those behind the page of the last token hold nothing any more.
  while (!pages_.empty() && (pieces_.empty() || pages_.back().value != (end_of(pieces_.back()) - 1) / page_tokens)) {
    pool.release(pages_.back());
    pages_.pop_back();
  }
}

void page_table::check_integrity() const {
  std::uint32_t tokens = 0;
  std::size_t page = 0;  // index of the page that holds the current piece's tokens
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const piece& p = pieces_[i];
    REDLINE_ASSERT(p.count > 0, "no empty pieces");
    tokens += p.count;
    for (std::uint32_t held = p.first_slot / page_tokens; held <= (end_of(p) - 1) / page_tokens; ++held) {
      while (page < pages_.size() && pages_[page].value != held) ++page;
      REDLINE_ASSERT(page < pages_.size(), "every piece lies in held pages, in token order");
    }
    if (i == 0) continue;
    const piece& before = pieces_[i - 1];
    REDLINE_ASSERT(end_of(before) != p.first_slot || before.offset != p.offset, "mergeable neighbours are merged");
  }
  REDLINE_ASSERT(tokens == token_count_, "the pieces cover the tokens");
}

}  // namespace redline::kv
