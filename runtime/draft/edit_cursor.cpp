#include "runtime/draft/edit_cursor.hpp"

#include <algorithm>
#include <utility>

namespace redline::draft {

edit_cursor::edit_cursor(std::vector<token> known) {
  if (known.empty()) return;
  known_ = std::make_shared<known_text>(known_text{.tokens = std::move(known), .places = {}});
}

bool edit_cursor::index(std::size_t tokens_max) {
  if (!known_) return true;
  known_text& text = *known_;
  const std::size_t end = std::min(text.indexed + tokens_max, text.tokens.size());
  for (; text.indexed < end; ++text.indexed) {
    text.places[text.tokens[text.indexed]].push_back(static_cast<std::uint32_t>(text.indexed + 1));
  }
  return end == text.tokens.size();
}

void edit_cursor::rewind() {
  emitted_.clear();
  place_ = agreed_ = misses_ = 0;
  begun_ = has_left_ = false;
}

/// How many tokens before `place` match the last emitted ones.
std::uint32_t edit_cursor::agreement(std::uint32_t place) const {
  const std::size_t most = std::min<std::size_t>({agreed_max, place, emitted_.size()});
  std::uint32_t length = 0;
  while (length < most && known_->tokens[place - 1 - length] == emitted_[emitted_.size() - 1 - length]) ++length;
  return length;
}

/// The position after `t` with the longest match of emitted tokens; on a tie the nearest ahead, then the nearest back.
edit_cursor::found edit_cursor::longest_before(token t) const {
  found best;
  const auto all = known_->places.find(t);
  if (all == known_->places.end()) return best;
  const auto& places = all->second;
  const auto consider = [&](std::uint32_t place) {
    const std::uint32_t agreed = agreement(place);
    if (agreed > best.agreed) best = {place, agreed};
  };
  const auto here = std::lower_bound(places.begin(), places.end(), place_);
  auto forward = here;
  for (std::size_t n = 0; n < occurrences_max && forward != places.end(); ++n, ++forward) consider(*forward);
  auto backward = here;
  for (std::size_t n = 0; n < occurrences_max && backward != places.begin(); ++n) consider(*--backward);
  return best;
}

void edit_cursor::emit(token t) {
  if (empty()) return;
  if (emitted_.size() == 2 * agreed_max) emitted_.erase(emitted_.begin(), emitted_.begin() + agreed_max);
  emitted_.push_back(t);
  const bool lost = misses_ > misses_max;
  if (!lost && place_ < known_->tokens.size() && known_->tokens[place_] == t) {
    ++place_;
    agreed_ = std::min(agreed_ + 1, agreed_max);
    misses_ = 0;
    begun_ = true;
    return;
  }
  has_left_ = true;
  // A single token suffices to find a position a little further on, but not to find a first position.
  const found best = longest_before(t);
  if (best.agreed >= (begun_ && !lost ? 1 : anchor_tokens)) {
    place_ = best.place;
    agreed_ = best.agreed;
    misses_ = agreed_ < anchor_tokens ? misses_ + 1 : 0;
    begun_ = true;
    return;
  }
  agreed_ = 0;
  if (lost) return;
  ++misses_;
  if (begun_ && place_ < known_->tokens.size()) ++place_;
}

std::span<const token> edit_cursor::ahead(std::size_t count) const {
  if (empty() || misses_ > misses_max) return {};
  return std::span(known_->tokens).subspan(place_, std::min(count, known_->tokens.size() - place_));
}

}  // namespace redline::draft
