#include "runtime/draft/lookup_source.hpp"

#include <algorithm>

namespace redline::draft {

void lookup_source::append(std::span<const token> committed, bool) {
  waiting_.insert(waiting_.end(), committed.begin(), committed.end());
}

void lookup_source::drop(std::uint32_t at, std::uint32_t count) {
  const auto indexed = log_.tokens();
  const std::size_t kept = std::min<std::size_t>(at, indexed.size());
  std::vector<token> later(indexed.begin() + static_cast<std::ptrdiff_t>(kept), indexed.end());
  later.insert(later.end(), waiting_.begin(), waiting_.end());
  const auto begin = later.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(at - kept, later.size()));
  later.erase(begin, begin + std::min<std::ptrdiff_t>(count, later.end() - begin));
  log_.truncate(kept);
  waiting_ = std::move(later);
}

bool lookup_source::catch_up(std::uint32_t tokens_max) {
  const auto count = static_cast<std::ptrdiff_t>(std::min<std::size_t>(waiting_.size(), tokens_max));
  log_.append(std::span(waiting_).first(static_cast<std::size_t>(count)));
  waiting_.erase(waiting_.begin(), waiting_.begin() + count);
  return !waiting_.empty();
}

graded_draft lookup_source::look(std::span<const token> pending, std::uint32_t tokens_max) const {
  graded_draft out;
  if (!waiting_.empty()) return out;
  const auto found = log_.look_up(pending, ngram_max_, tokens_max);
  out.add(source::lookup, grade_of_match(found.matched), found.tokens);
  return out;
}

}  // namespace redline::draft
