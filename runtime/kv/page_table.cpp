#include "runtime/kv/page_table.hpp"

#include <algorithm>

#include "kernels/kernel_table.hpp"
#include "runtime/base/assert.hpp"

namespace redline::kv {

static_assert(page_tokens == kernels::kv_page_tokens, "kernels and bookkeeping agree on the size of a page");

namespace {

// Each piece costs attention an incomplete tile, so no more than two per page are tolerated, and eight in a short
// table.
constexpr std::size_t pieces_per_page_max = 2;
constexpr std::size_t pieces_tolerated = 8;
// Pages beyond what the tokens need: half as many again, so that compaction copies a token at most a few times.
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
  return open_ && pool.references(*open_) == 1 ? page_tokens - open_fill_ : 0;
}

std::uint32_t page_table::pages_needed(const page_pool& pool, std::uint32_t count) const {
  const std::uint32_t free_slots = room(pool);
  return count <= free_slots ? 0 : pages_of(count - free_slots);
}

/// Splits the piece that holds token `at`, so that one begins there; returns its index.
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

/// Joins piece `index` to the one before it where slots and offsets allow.
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
    pool.release(page_id{page});
    if (open_ && open_->value == page) open_.reset();
  });
}

/// Index after the last slot of the page that holds a token of this table.
std::uint32_t page_table::end_in_page(std::uint32_t page) const {
  std::uint32_t end = 0;
  for (const piece& p : pieces_) {
    const std::uint32_t last = end_of(p) - 1;
    if (p.first_slot / page_tokens > page || last / page_tokens < page) continue;
    end = std::max(end, last / page_tokens == page ? last % page_tokens + 1 : page_tokens);
  }
  return end;
}

/// To be called after tokens were dropped. The slots after the last token in the open page are free again; without an
/// open page the last token's page is reopened.
void page_table::reopen() {
  if (!open_ && !pieces_.empty()) open_ = page_id{(end_of(pieces_.back()) - 1) / page_tokens};
  open_fill_ = open_ ? end_in_page(open_->value) : 0;
}

bool page_table::insert(page_pool& pool, std::uint32_t at, std::uint32_t count) {
  REDLINE_ASSERT(at <= token_count_, "tokens are inserted within the sequence or at its end");
  if (pages_needed(pool, count) > pool.free_count()) return false;
  if (count == 0) return true;
  std::size_t index = split_at(at);
  const std::int32_t offset = index == 0 ? 0 : pieces_[index - 1].offset;
  const std::size_t later_pieces = pieces_.size() - index;
  for (std::uint32_t left = count; left > 0;) {
    std::uint32_t free_slots = room(pool);
    if (free_slots == 0) {
      open_ = pool.allocate(open_);
      REDLINE_ASSERT(open_.has_value(), "the pool had enough free pages a moment ago");
      open_fill_ = 0;
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
  reopen();
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
  reopen();
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
        if (!moves.empty() && moves.back().turn == p.offset && moves.back().from_slot + moves.back().count == slot) {
          moves.back().count += count;
        } else {
          moves.push_back({slot, slot, count, p.offset});
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

// Whole pages of a piece stay where they are. The rest is copied in token order. Exact tokens have offset 0 and keep
// it, so their bits stay; the others take the last token's offset, as tokens that are added later will.
std::vector<token_move> page_table::compact(page_pool& pool) {
  struct part {
    piece at;
    bool stays = false;
    bool exact = false;
  };
  std::vector<part> parts;
  std::uint32_t copied_count = 0;
  const std::size_t boundary = split_at(exact_count_);
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const piece p = pieces_[i];
    for_pages(p.first_slot, p.count, [&](std::uint32_t, std::uint32_t slot, std::uint32_t count) {
      parts.push_back({{slot, count, p.offset}, count == page_tokens, i < boundary});
      if (count != page_tokens) copied_count += count;
    });
  }
  merge_at(boundary);
  if (copied_count == 0 || pages_of(copied_count) > pool.free_count()) return {};

  const std::int32_t common = pieces_.back().offset;
  std::vector<token_move> moves;
  page_table fresh;
  std::optional<page_id> to;
  std::uint32_t fill = page_tokens;
  for (const part& p : parts) {
    const auto add = [&fresh](piece whole) {
      fresh.pieces_.push_back(whole);
      fresh.merge_at(fresh.pieces_.size() - 1);
      fresh.note(whole.first_slot, whole.count);
    };
    if (p.stays) {
      pool.retain(page_id{p.at.first_slot / page_tokens});
      add(p.at);
      continue;
    }
    const std::int32_t offset = p.exact ? 0 : common;
    for (std::uint32_t done = 0; done < p.at.count;) {
      if (fill == page_tokens) {
        to = pool.allocate(to);
        REDLINE_ASSERT(to.has_value(), "the pool had enough free pages a moment ago");
        fill = 0;
      }
      const std::uint32_t count = std::min(p.at.count - done, page_tokens - fill);
      const std::uint32_t slot = to->value * page_tokens + fill;
      moves.push_back({p.at.first_slot + done, slot, count, p.at.offset - offset});
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

std::optional<page_id> page_table::whole_page(std::uint32_t index) const {
  if (std::uint64_t{index + 1} * page_tokens > exact_count_) return std::nullopt;
  std::uint32_t at = index * page_tokens;
  for (const piece& p : pieces_) {
    if (at >= p.count) {
      at -= p.count;
      continue;
    }
    const std::uint32_t slot = p.first_slot + at;
    if (slot % page_tokens != 0 || p.count - at < page_tokens) return std::nullopt;
    return page_id{slot / page_tokens};
  }
  return std::nullopt;
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
  REDLINE_ASSERT(live == live_, "a page is held while it holds a token");
  REDLINE_ASSERT(exact_count_ <= token_count_, "exact tokens come first");
  REDLINE_ASSERT(!open_ || (live_.contains(open_->value) && open_fill_ >= end_in_page(open_->value)),
                 "the next slot to fill is free");
}

}  // namespace redline::kv
