#include "runtime/draft/prompt_lookup.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace redline::draft {
namespace {

/// Long enough to be rare in code, short enough to resynchronize soon after a change: 4 to 8 measure alike.
constexpr std::size_t gram_length = 4;

/// Orders positions ahead of the cursor first, then those before it, each by distance.
std::uint64_t distance(std::uint32_t place, std::uint32_t cursor) {
  return place >= cursor ? place - cursor : (std::uint64_t{1} << 32) + (cursor - place);
}

}  // namespace

/// The log followed by the pending tokens.
class prompt_lookup::view {
 public:
  view(std::span<const token> log, std::span<const token> pending) : log_(log), pending_(pending) {}
  [[nodiscard]] std::size_t size() const { return log_.size() + pending_.size(); }
  [[nodiscard]] std::size_t log_size() const { return log_.size(); }
  token operator[](std::size_t i) const { return i < log_.size() ? log_[i] : pending_[i - log_.size()]; }
  /// How many tokens before `a` and before `b` match, at most `most`.
  [[nodiscard]] std::size_t agreement(std::size_t a, std::size_t b, std::size_t most) const {
    std::size_t length = 0;
    while (length < most && length < a && length < b && (*this)[a - 1 - length] == (*this)[b - 1 - length]) ++length;
    return length;
  }
  /// A hash of the gram that ends before `end` >= gram_length.
  [[nodiscard]] std::uint64_t gram(std::size_t end) const {
    std::uint64_t hash = 0;
    for (std::size_t i = end - gram_length; i < end; ++i) {
      hash = (hash ^ static_cast<std::uint32_t>((*this)[i])) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 29;
    }
    return hash;
  }

 private:
  std::span<const token> log_, pending_;
};

/// The best occurrence so far of the n-gram at the end of the text.
struct prompt_lookup::match {
  std::size_t length_max;
  std::uint32_t cursor;
  std::size_t length = 0;
  std::uint32_t place = 0;

  /// Returns true if no further position in this direction can be better.
  bool offer(const view& all, std::uint32_t candidate) {
    const std::size_t found = all.agreement(candidate, all.size(), length_max);
    const bool nearer = distance(candidate, cursor) < distance(place, cursor);
    if (found > length || (found == length && found > 0 && nearer)) {
      length = found;
      place = candidate;
    }
    return found == length_max;
  }
};

const prompt_lookup::places* prompt_lookup::occurrences_of_gram(const view& all, std::size_t end) const {
  if (end < gram_length) return nullptr;
  const auto found = by_gram_.find(all.gram(end));
  return found == by_gram_.end() ? nullptr : &found->second;
}

/// The cursor advances while the text repeats what follows it, and otherwise moves to the nearest occurrence of the
/// last tokens.
std::uint32_t prompt_lookup::cursor_after(const view& all, std::size_t index, std::uint32_t cursor) const {
  if (cursor > 0 && cursor < index && all[cursor] == all[index]) return cursor + 1;
  const places* const found = occurrences_of_gram(all, index + 1);
  if (found == nullptr) return cursor;
  const auto behind = std::lower_bound(found->begin(), found->end(), cursor);
  const auto agrees = [&](std::uint32_t place) {
    return place <= index && all.agreement(place, index + 1, gram_length) == gram_length;
  };
  if (behind != found->end() && agrees(*behind)) return *behind;
  if (behind != found->begin() && agrees(*std::prev(behind))) return *std::prev(behind);
  return cursor;
}

void prompt_lookup::append(std::span<const token> tokens) {
  for (const token t : tokens) {
    const std::size_t index = tokens_.size();
    tokens_.push_back(t);
    const view all(tokens_, {});
    cursors_.push_back(cursor_after(all, index, index == 0 ? 0 : cursors_.back()));
    const auto place = static_cast<std::uint32_t>(index + 1);
    by_token_[t].push_back(place);
    if (place >= gram_length) by_gram_[all.gram(place)].push_back(place);
  }
}

void prompt_lookup::reserve(std::size_t count) {
  tokens_.reserve(count);
  cursors_.reserve(count);
  by_token_.reserve(count);
  by_gram_.reserve(count);
}

void prompt_lookup::truncate(std::size_t count) {
  while (tokens_.size() > count) {
    const view all(tokens_, {});
    if (const auto t = by_token_.find(tokens_.back()); t->second.size() > 1) {
      t->second.pop_back();
    } else {
      by_token_.erase(t);
    }
    if (tokens_.size() >= gram_length) {
      const auto gram = by_gram_.find(all.gram(tokens_.size()));
      gram->second.pop_back();
      if (gram->second.empty()) by_gram_.erase(gram);
    }
    tokens_.pop_back();
    cursors_.pop_back();
  }
}

void prompt_lookup::consider(const view& all, const places& found, match& best) {
  const auto behind = std::lower_bound(found.begin(), found.end(), best.cursor);
  auto forward = behind;
  for (std::size_t n = 0; n < occurrences_max && forward != found.end() && *forward < all.size(); ++n, ++forward) {
    if (best.offer(all, *forward)) return;
  }
  auto backward = behind;
  for (std::size_t n = 0; n < occurrences_max && backward != found.begin(); ++n) {
    if (best.offer(all, *--backward)) return;
  }
}

prompt_lookup::finding prompt_lookup::look_up(std::span<const token> pending, std::uint32_t ngram_max,
                                              std::uint32_t draft_max) const {
  const view all(tokens_, pending);
  if (all.size() < 2 || ngram_max == 0 || draft_max == 0) return {};
  std::uint32_t cursor = cursors_.empty() ? 0 : cursors_.back();
  for (std::size_t i = tokens_.size(); i < all.size(); ++i) cursor = cursor_after(all, i, cursor);

  match best{.length_max = ngram_max, .cursor = cursor};
  for (std::size_t place = tokens_.size() + 1; place < all.size(); ++place) {
    best.offer(all, static_cast<std::uint32_t>(place));  // occurrences that end inside pending
  }
  if (ngram_max >= gram_length) {
    if (const places* found = occurrences_of_gram(all, all.size())) consider(all, *found, best);
  }
  // Matches of a whole gram were found above; only shorter ones need the single token.
  if (best.length < gram_length) {
    if (const auto found = by_token_.find(all[all.size() - 1]); found != by_token_.end()) {
      consider(all, found->second, best);
    }
  }
  if (best.length == 0) return {};
  // A match that overlaps its own continuation is a repetition, which is continued for as long as it has lasted.
  const std::size_t count = std::max(all.size() - best.place, best.length);
  std::vector<token> draft(std::min<std::size_t>(count, draft_max));
  for (std::size_t i = 0; i < draft.size(); ++i) {
    const std::size_t from = best.place + i;
    draft[i] = from < all.size() ? all[from] : draft[from - all.size()];
  }
  return {std::move(draft), static_cast<std::uint32_t>(best.length)};
}

}  // namespace redline::draft
