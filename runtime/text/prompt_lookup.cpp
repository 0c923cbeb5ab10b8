#include "runtime/text/prompt_lookup.hpp"

#include <algorithm>

namespace redline::text {

void prompt_lookup::append(std::span<const token> tokens) {
  for (const token t : tokens) {
    places_[t].push_back(static_cast<std::uint32_t>(tokens_.size()));
    tokens_.push_back(t);
  }
}

void prompt_lookup::truncate(std::size_t count) {
  while (tokens_.size() > count) {
    places_[tokens_.back()].pop_back();
    tokens_.pop_back();
  }
}

std::vector<token> prompt_lookup::propose(std::span<const token> pending, std::uint32_t ngram_max,
                                          std::uint32_t draft_max) const {
  const std::size_t total = tokens_.size() + pending.size();
  if (total < 2 || ngram_max == 0 || draft_max == 0) return {};
  const auto at = [&](std::size_t i) { return i < tokens_.size() ? tokens_[i] : pending[i - tokens_.size()]; };

  std::size_t best_end = 0;     // one behind the best occurrence
  std::size_t best_length = 0;
  // Tries the n-grams that end with the token at `place`; true when none longer can come.
  const auto consider = [&](std::size_t place) {
    std::size_t length = 1;
    while (length < ngram_max && length <= place && at(place - length) == at(total - 1 - length)) ++length;
    if (length > best_length) {
      best_length = length;
      best_end = place + 1;
    }
    return best_length == ngram_max;
  };

  const token last = at(total - 1);
  bool done = false;
  if (const auto found = places_.find(last); found != places_.end()) {
    for (const std::uint32_t place : found->second) {
      if (place + 1 >= total) break;
      done = consider(place);
      if (done) break;
    }
  }
  for (std::size_t place = tokens_.size(); !done && place + 1 < total; ++place) {
    if (at(place) == last) done = consider(place);
  }
  if (best_length == 0) return {};
  std::vector<token> draft;
  for (std::size_t i = best_end; i < total && draft.size() < draft_max; ++i) draft.push_back(at(i));
  return draft;
}

}  // namespace redline::text
