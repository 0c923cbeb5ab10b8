#include "runtime/kv/page_table.hpp"

#include <algorithm>
#include <utility>

#include "kernels/kernel_table.hpp"
#include "runtime/base/assert.hpp"

namespace redline::kv {

static_assert(page_tokens == kernels::kv_page_tokens, "kernels and bookkeeping agree on the size of a page");

namespace {

// Each piece costs attention an incomplete tile, so no more than two per page are accepted, or eight in a short table.
constexpr std::size_t pieces_per_page_max = 2;
constexpr std::size_t pieces_tolerated = 8;
// Pages beyond what the tokens need: compaction waits for half as many again, so that it copies a token only a few
// times.
constexpr std::uint32_t pages_spare_min = 3;

std::uint32_t end_of(const piece& p) { return p.first_slot + p.count; }
std::uint32_t pages_of(std::uint32_t tokens) { return (tokens + page_tokens - 1) / page_tokens; }

/// Calls body(page, first slot, count) for the part of [first_slot, first_slot + count) in each page.
template<class Body>
void for_pages(std::uint32_t first_slot, std::uint32_t count, Body body) {
  while (count > 0) {
    const std::uint32_t in_page = std::min(count, page_tokens - first_slot % page_tokens);
    body(first_slot / page_tokens, first_slot, in_page);
    first_slot += in_page;
    count -= in_page;
  }
}

/// The token's slot in the window pages, or `nowhere` if its page has none.
std::uint32_t window_slot(const page_pool& pool, std::uint32_t slot) {
  const auto page = pool.windows() == nullptr ? std::nullopt : pool.windows()->of(page_id{slot / page_tokens});
  return page ? *page * page_tokens + slot % page_tokens : token_move::nowhere;
}

/// Whether move `b` continues move `a`.
bool follows(const token_move& a, const token_move& b) {
  const auto goes_on = [&](std::uint32_t x, std::uint32_t y) {
    return x == token_move::nowhere ? y == x : x + a.count == y;
  };
  return a.turn == b.turn && a.from_slot + a.count == b.from_slot && a.to_slot + a.count == b.to_slot &&
         goes_on(a.window_from, b.window_from) && goes_on(a.window_to, b.window_to);
}

}  // namespace

std::vector<piece> page_table::prefix(std::uint32_t count) const {
  std::vector<piece> some;
  for (const piece& p : pieces_) {
    if (count == 0) break;
    some.push_back({p.first_slot, std::min(p.count, count), p.offset});
    count -= some.back().count;
  }
  return some;
}

std::uint32_t page_table::room(const page_pool& pool) const {
  if (!open_ || pool.references(*open_) != 1) return 0;
  const bool is_whole = pool.windows() == nullptr || std::ranges::binary_search(windows_held_, open_->value);
  return is_whole ? page_tokens - open_fill_ : 0;
}

std::uint32_t page_table::pages_needed(const page_pool& pool, std::uint32_t count) const {
  const std::uint32_t free_slots = room(pool);
  return count <= free_slots ? 0 : pages_of(count - free_slots);
}

/// Splits the piece that contains token `at`, so that a piece begins there; returns its index.
std::size_t page_table::split_at(std::uint32_t at) {
  if (at == token_count_) return pieces_.size();
  std::size_t i = 0;
  while (at >= pieces_[i].count) at -= pieces_[i++].count;
  if (at == 0) return i;
  const piece rest{pieces_[i].first_slot + at, pieces_[i].count - at, pieces_[i].offset};
  pieces_[i].count = at;
  pieces_.insert(pieces_.begin() + static_cast<std::ptrdiff_t>(i) + 1, rest);
  return i + 1;
}

/// Merges piece `index` with the previous one if slots and offsets allow.
void page_table::merge_at(std::size_t index) {
  if (index == 0 || index >= pieces_.size()) return;
  piece& before = pieces_[index - 1];
  if (end_of(before) != pieces_[index].first_slot || before.offset != pieces_[index].offset) return;
  before.count += pieces_[index].count;
  pieces_.erase(pieces_.begin() + static_cast<std::ptrdiff_t>(index));
}

void page_table::note(std::uint32_t first_slot, std::uint32_t count) {
  for_pages(first_slot, count,
            [&](std::uint32_t page, std::uint32_t, std::uint32_t in_page) { live_[page] += in_page; });
}

void page_table::drop(page_pool& pool, std::uint32_t first_slot, std::uint32_t count) {
  for_pages(first_slot, count, [&](std::uint32_t page, std::uint32_t, std::uint32_t in_page) {
    const auto at = live_.find(page);
    REDLINE_ASSERT(at != live_.end() && at->second >= in_page, "tokens are dropped from held pages");
    at->second -= in_page;
    if (at->second > 0) return;
    live_.erase(at);
    const auto held = std::ranges::lower_bound(windows_held_, page);
    if (held != windows_held_.end() && *held == page) {
      pool.windows()->let_go(page_id{page});
      windows_held_.erase(held);
    }
    pool.release(page_id{page});
    if (open_ && open_->value == page) open_.reset();
  });
}

/// Index after the last slot of the page that has a token of this table.
std::uint32_t page_table::end_in_page(std::uint32_t page) const {
  std::uint32_t end = 0;
  for (const piece& p : pieces_) {
    const std::uint32_t last = end_of(p) - 1;
    if (p.first_slot / page_tokens > page || last / page_tokens < page) continue;
    end = std::max(end, last / page_tokens == page ? last % page_tokens + 1 : page_tokens);
  }
  return end;
}

/// Call it after tokens were dropped. The slots after the last token in the open page are free again; without an open
/// page the last token's page is reopened.
void page_table::reopen(page_pool& pool) {
  if (!open_ && !pieces_.empty()) open_ = page_id{(end_of(pieces_.back()) - 1) / page_tokens};
  open_fill_ = open_ ? end_in_page(open_->value) : 0;
  hold_open(pool);
}

/// Tokens added to the open page also need its window page. If that is gone, the page takes no more tokens.
void page_table::hold_open(page_pool& pool) {
  if (!open_ || pool.windows() == nullptr) return;
  const auto at = std::ranges::lower_bound(windows_held_, open_->value);
  const bool is_held = at != windows_held_.end() && *at == open_->value;
  if (!is_held && pool.windows()->hold(*open_)) windows_held_.insert(at, open_->value);
}

/// Notes a page that was just allocated.
void page_table::note_held(const page_pool& pool, page_id page) {
  if (pool.windows() == nullptr) return;
  windows_held_.insert(std::ranges::lower_bound(windows_held_, page.value), page.value);
}

/// wanted: pages in ascending order.
void page_table::set_held(page_pool& pool, std::vector<std::uint32_t> wanted) {
  for (const std::uint32_t page : windows_held_) {
    if (!std::ranges::binary_search(wanted, page)) pool.windows()->let_go(page_id{page});
  }
  std::erase_if(wanted, [&](std::uint32_t page) {
    return !std::ranges::binary_search(windows_held_, page) && !pool.windows()->hold(page_id{page});
  });
  windows_held_ = std::move(wanted);
  hold_open(pool);
}

/// Calls body(page, first slot, count, offset) for the tokens [from, end), page by page.
template<class Body>
void page_table::for_pages_of(std::uint32_t from, std::uint32_t end, Body body) const {
  std::uint32_t first = token_count_;
  std::size_t i = pieces_.size();
  while (i > 0 && first > from) first -= pieces_[--i].count;
  for (; i < pieces_.size() && first < end; first += pieces_[i++].count) {
    const std::uint32_t skipped = from > first ? from - first : 0;
    const std::uint32_t stop = std::min(pieces_[i].count, end - first);
    if (skipped >= stop) continue;
    for_pages(pieces_[i].first_slot + skipped, stop - skipped,
              [&](std::uint32_t page, std::uint32_t slot, std::uint32_t count) {
                body(page_id{page}, slot, count, pieces_[i].offset);
              });
  }
}

void page_table::hold_windows(page_pool& pool, std::uint32_t at) {
  if (pool.windows() == nullptr) return;
  std::vector<std::uint32_t> wanted;
  for_pages_of(pool.windows()->first_held(at), token_count_,
               [&](page_id page, std::uint32_t, std::uint32_t, std::int32_t) {
                 if (wanted.empty() || wanted.back() != page.value) wanted.push_back(page.value);
               });
  std::ranges::sort(wanted);
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  set_held(pool, std::move(wanted));
}

bool page_table::has_windows(const page_pool& pool, std::uint32_t from, std::uint32_t end) const {
  bool all = true;
  for_pages_of(from, end, [&](page_id page, std::uint32_t, std::uint32_t, std::int32_t) {
    all = all && pool.windows()->of(page).has_value();
  });
  return all;
}

std::vector<piece> page_table::window_pieces(const page_pool& pool, std::uint32_t from, std::uint32_t end) const {
  std::vector<piece> some;
  for_pages_of(from, end, [&](page_id page, std::uint32_t slot, std::uint32_t count, std::int32_t offset) {
    REDLINE_ASSERT(pool.windows()->of(page), "a window page that a row sees is there");
    const piece next{window_slot(pool, slot), count, offset};
    if (!some.empty() && end_of(some.back()) == next.first_slot && some.back().offset == offset) {
      some.back().count += count;
    } else {
      some.push_back(next);
    }
  });
  return some;
}

bool page_table::insert(page_pool& pool, std::uint32_t at, std::uint32_t count) {
  REDLINE_ASSERT(at <= token_count_, "tokens are inserted within the sequence or at its end");
  if (pages_needed(pool, count) > pool.available()) return false;
  if (count == 0) return true;
  std::size_t index = split_at(at);
  const std::int32_t offset = index == 0 ? 0 : pieces_[index - 1].offset;
  const std::size_t later_pieces = pieces_.size() - index;
  for (std::uint32_t left = count; left > 0;) {
    std::uint32_t free_slots = room(pool);
    if (free_slots == 0) {
      open_ = pool.allocate(open_);
      REDLINE_ASSERT(open_.has_value(), "the pool has enough free pages");
      open_fill_ = 0;
      note_held(pool, *open_);
      free_slots = page_tokens;
    }
    const piece fresh{open_->value * page_tokens + open_fill_, std::min(left, free_slots), offset};
    note(fresh.first_slot, fresh.count);
    open_fill_ += fresh.count;
    left -= fresh.count;
    pieces_.insert(pieces_.begin() + static_cast<std::ptrdiff_t>(index), fresh);
    merge_at(index);
    index = pieces_.size() - later_pieces;
  }
  merge_at(index);
  token_count_ += count;
  if (at <= exact_count_) exact_count_ += count;
  return true;
}

void page_table::append_shared(page_pool& pool, page_id page) {
  REDLINE_ASSERT(exact_count_ == token_count_ && !live_.contains(page.value), "a shared page follows exact tokens");
  pool.retain(page);
  live_[page.value] = page_tokens;
  pieces_.push_back({page.value * page_tokens, page_tokens, 0});
  merge_at(pieces_.size() - 1);
  token_count_ += page_tokens;
  exact_count_ = token_count_;
  open_ = page;
  open_fill_ = page_tokens;
}

void page_table::truncate(page_pool& pool, std::uint32_t count) {
  if (count >= token_count_) return;
  while (token_count_ > count) {
    piece& last = pieces_.back();
    const std::uint32_t dropped = std::min(last.count, token_count_ - count);
    last.count -= dropped;
    token_count_ -= dropped;
    drop(pool, end_of(last), dropped);
    if (last.count == 0) pieces_.pop_back();
  }
  exact_count_ = std::min(exact_count_, count);
  reopen(pool);
}

void page_table::splice(page_pool& pool, std::uint32_t at, std::uint32_t removed_count, std::int32_t shift) {
  REDLINE_ASSERT(at <= token_count_ && removed_count <= token_count_ - at,
                 "only tokens of the sequence can be removed");
  const std::size_t first = split_at(at);
  const std::size_t end = split_at(at + removed_count);
  for (std::size_t i = first; i < end; ++i) drop(pool, pieces_[i].first_slot, pieces_[i].count);
  pieces_.erase(pieces_.begin() + static_cast<std::ptrdiff_t>(first),
                pieces_.begin() + static_cast<std::ptrdiff_t>(end));
  for (std::size_t i = first; i < pieces_.size(); ++i) pieces_[i].offset += shift;
  merge_at(first);
  token_count_ -= removed_count;
  exact_count_ = std::min(exact_count_, at);
  reopen(pool);
}

std::vector<token_move> page_table::apply_offsets(const page_pool& pool, std::uint32_t at) {
  std::vector<token_move> moves;
  std::vector<piece> merged;
  const std::size_t first = split_at(at);
  merged.assign(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(first));
  const auto add = [&merged](piece p) {
    if (!merged.empty() && end_of(merged.back()) == p.first_slot && merged.back().offset == p.offset) {
      merged.back().count += p.count;
    } else {
      merged.push_back(p);
    }
  };
  for (std::size_t i = first; i < pieces_.size(); ++i) {
    const piece p = pieces_[i];
    for_pages(p.first_slot, p.count, [&](std::uint32_t page, std::uint32_t slot, std::uint32_t count) {
      const bool own = pool.references(page_id{page}) == 1;
      if (own && p.offset != 0) {
        const std::uint32_t in_window = window_slot(pool, slot);
        const token_move next{slot, slot, count, p.offset, in_window, in_window};
        if (!moves.empty() && follows(moves.back(), next)) {
          moves.back().count += count;
        } else {
          moves.push_back(next);
        }
      }
      add({slot, count, own ? 0 : p.offset});
    });
  }
  pieces_ = std::move(merged);
  return moves;
}

bool page_table::is_fragmented() const {
  const std::uint32_t wanted = pages_of(token_count_);
  return pieces_.size() > pieces_per_page_max * wanted + pieces_tolerated ||
         held_count() > wanted + std::max(pages_spare_min, wanted / 2);
}

/// The tokens page by page, in order.
std::vector<page_table::part> page_table::parts(const page_pool& pool) {
  std::vector<part> out;
  const std::size_t boundary = split_at(exact_count_);
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const piece p = pieces_[i];
    for_pages(p.first_slot, p.count, [&](std::uint32_t page, std::uint32_t slot, std::uint32_t count) {
      const bool seen = pool.windows() == nullptr || pool.windows()->of(page_id{page});
      out.push_back({{slot, count, p.offset}, count == page_tokens, i < boundary, seen});
    });
  }
  merge_at(boundary);
  return out;
}

/// The number of pages for parts that do not stay. Tokens whose window page is gone do not share a page with others,
/// which would lose theirs.
std::uint32_t page_table::pages_wanted(std::span<const part> parts) {
  std::uint32_t wanted = 0;
  std::uint32_t room = 0;
  bool seen_before = true;
  for (const part& p : parts) {
    if (p.stays) continue;
    if (p.seen != std::exchange(seen_before, p.seen)) room = 0;
    const std::uint32_t more = p.at.count <= room ? 0 : pages_of(p.at.count - room);
    wanted += more;
    room += more * page_tokens - p.at.count;
  }
  return wanted;
}

// Whole pages of a piece stay in place. The rest is copied in token order. Exact tokens have offset 0 and keep it, so
// their bits stay; the others take the last token's offset, as tokens that are added later do.
std::vector<token_move> page_table::compact(page_pool& pool) {
  hold_windows(pool, 0);
  const std::vector<part> all = parts(pool);
  const std::uint32_t wanted = pages_wanted(all);
  if (wanted == 0 || wanted > pool.available()) return {};

  const std::int32_t common = pieces_.back().offset;
  std::vector<token_move> moves;
  page_table fresh;
  std::optional<page_id> to;
  std::uint32_t fill = page_tokens;
  bool seen_before = true;
  for (const part& p : all) {
    const auto add = [&fresh](piece whole) {
      fresh.pieces_.push_back(whole);
      fresh.merge_at(fresh.pieces_.size() - 1);
      fresh.note(whole.first_slot, whole.count);
    };
    if (p.stays) {
      const page_id page{p.at.first_slot / page_tokens};
      pool.retain(page);
      add(p.at);
      if (pool.windows() != nullptr && pool.windows()->hold(page)) fresh.note_held(pool, page);
      continue;
    }
    if (p.seen != std::exchange(seen_before, p.seen)) fill = page_tokens;
    const std::int32_t offset = p.exact ? 0 : common;
    for (std::uint32_t done = 0; done < p.at.count;) {
      if (fill == page_tokens) {
        to = pool.allocate(to);
        REDLINE_ASSERT(to.has_value(), "the pool has enough free pages");
        fill = 0;
        if (p.seen) {
          fresh.note_held(pool, *to);
        } else {
          pool.windows()->take(*to);
        }
      }
      const std::uint32_t count = std::min(p.at.count - done, page_tokens - fill);
      const std::uint32_t from = p.at.first_slot + done;
      const std::uint32_t slot = to->value * page_tokens + fill;
      moves.push_back({from, slot, count, p.at.offset - offset, window_slot(pool, from), window_slot(pool, slot)});
      add({slot, count, offset});
      fill += count;
      done += count;
    }
  }
  fresh.token_count_ = token_count_;
  fresh.exact_count_ = exact_count_;
  fresh.open_ = to;
  fresh.open_fill_ = fill;
  clear(pool);
  *this = std::move(fresh);
  return moves;
}

std::vector<page_id> page_table::whole_pages(std::uint32_t count) const {
  std::vector<page_id> out;
  const std::uint32_t most = std::min(count, exact_count_ / page_tokens);
  for (const piece& p : pieces_) {
    // Pieces before this one were whole pages, so it begins at a page boundary of tokens.
    for (std::uint32_t at = 0; out.size() < most && p.count - at >= page_tokens; at += page_tokens) {
      if (p.first_slot % page_tokens != 0) return out;
      out.push_back(page_id{(p.first_slot + at) / page_tokens});
    }
    if (out.size() == most || p.count % page_tokens != 0) break;
  }
  return out;
}

void page_table::check_integrity() const {
  std::uint32_t tokens = 0;
  std::unordered_map<std::uint32_t, std::uint32_t> live;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const piece& p = pieces_[i];
    REDLINE_ASSERT(p.count > 0, "no empty pieces");
    REDLINE_ASSERT(tokens >= exact_count_ || p.offset == 0, "exact tokens have offset 0");
    tokens += p.count;
    for_pages(p.first_slot, p.count,
              [&](std::uint32_t page, std::uint32_t, std::uint32_t count) { live[page] += count; });
    if (i == 0) continue;
    const piece& before = pieces_[i - 1];
    REDLINE_ASSERT(end_of(before) != p.first_slot || before.offset != p.offset, "mergeable neighbours are merged");
  }
  REDLINE_ASSERT(tokens == token_count_, "the pieces cover the tokens");
  REDLINE_ASSERT(live == live_, "a page is in use while it contains a token");
  REDLINE_ASSERT(std::ranges::is_sorted(windows_held_) &&
                     std::ranges::all_of(windows_held_, [&](std::uint32_t page) { return live_.contains(page); }),
                 "window pages are in use only for pages in use");
  REDLINE_ASSERT(exact_count_ <= token_count_, "exact tokens come first");
  REDLINE_ASSERT(!open_ || (live_.contains(open_->value) && open_fill_ >= end_in_page(open_->value)),
                 "the next slot to fill is free");
}

}  // namespace redline::kv
