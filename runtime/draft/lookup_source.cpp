#include "runtime/draft/lookup_source.hpp"

#include <algorithm>

namespace redline::draft {

void lookup_source::append(std::span<const token> committed, bool is_prompt) {
  waiting_.insert(waiting_.end(), committed.begin(), committed.end());
  // Reserves a quarter more for the answer.
  if (is_prompt) log_.reserve(waiting_.size() + waiting_.size() / 4);
}

void lookup_source::drop(std::uint32_t at, std::uint32_t count) {
  const auto indexed = log_.tokens().first(std::min(kept_, log_.tokens().size()));
  const std::size_t kept = std::min<std::size_t>(at, indexed.size());
  std::vector<token> later(indexed.begin() + static_cast<std::ptrdiff_t>(kept), indexed.end());
  later.insert(later.end(), waiting_.begin(), waiting_.end());
  const auto begin = later.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(at - kept, later.size()));
  later.erase(begin, begin + std::min<std::ptrdiff_t>(count, later.end() - begin));
  kept_ = kept;
  waiting_ = std::move(later);
}

bool lookup_source::catch_up(std::uint32_t tokens_max) {
  const std::size_t size = log_.tokens().size();
  const std::size_t leaving = std::min<std::size_t>(size - std::min(kept_, size), tokens_max);
  log_.truncate(size - leaving);
  if (log_.tokens().size() > kept_) return true;
  kept_ = SIZE_MAX;
  const auto count = static_cast<std::ptrdiff_t>(std::min(waiting_.size(), tokens_max - leaving));
  log_.append(std::span(waiting_).first(static_cast<std::size_t>(count)));
  waiting_.erase(waiting_.begin(), waiting_.begin() + count);
  return !waiting_.empty();
}

graded_draft lookup_source::look(std::span<const token> pending, std::uint32_t tokens_max) const {
  graded_draft out;
  if (!waiting_.empty() || log_.tokens().size() > kept_) return out;
  const auto found = log_.look_up(pending, ngram_max_, tokens_max);
  out.add(source::lookup, grade_of_match(found.matched), found.tokens);
  return out;
}

}  // namespace redline::draft
