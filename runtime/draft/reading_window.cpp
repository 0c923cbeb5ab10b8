#include "runtime/draft/reading_window.hpp"

#include <algorithm>

namespace redline::draft {
namespace {

/// Enough for a chat's first words; attention relies on a text's first tokens.
constexpr std::size_t head_max = 32;
/// The copied position jumps where the answer is new, so the parts are chosen again at most once per this many tokens.
constexpr std::size_t stays_for = 64;
/// This many tokens after the copied position must be in the window.
constexpr std::size_t ahead_min = 32;

}  // namespace

void reading_window::follow(std::size_t log_count, std::size_t copied_from, std::size_t room, std::size_t most) {
  const bool is_full = count(log_count) + room > most;
  const bool is_whole = tail_begin_ == 0;
  const bool is_left = copied_from < excerpt_begin_ || (copied_from + ahead_min > excerpt_end_ &&
                                                        copied_from < tail_begin_ && excerpt_end_ < tail_begin_);
  if (is_full || (!is_whole && is_left && log_count >= chosen_at_ + stays_for)) choose(log_count, copied_from, most);
}

/// A quarter of the context is for the end, three eighths for the copied position with two thirds of them after it, and
/// the rest for growth.
void reading_window::choose(std::size_t log_count, std::size_t copied_from, std::size_t most) {
  chosen_at_ = log_count;
  tail_begin_ = log_count - std::min(log_count, most / 4);
  head_end_ = std::min({head_max, most / 16, tail_begin_});
  const std::size_t begin = copied_from - std::min(copied_from, most / 8);
  excerpt_begin_ = std::clamp(begin, head_end_, tail_begin_);
  excerpt_end_ = std::min(excerpt_begin_ + most * 3 / 8, tail_begin_);
}

void reading_window::cut(std::size_t from) {
  if (from <= tail_begin_) *this = {};
}

std::vector<token> reading_window::read(std::span<const token> log) const {
  std::vector<token> out;
  const auto add = [&](std::size_t begin, std::size_t end) {
    out.insert(out.end(), log.begin() + static_cast<std::ptrdiff_t>(begin),
               log.begin() + static_cast<std::ptrdiff_t>(end));
  };
  add(0, head_end_);
  add(excerpt_begin_, excerpt_end_);
  add(tail_begin_, log.size());
  return out;
}

std::size_t reading_window::matching(std::span<const token> log, std::span<const token> seen) const {
  std::size_t same = 0;
  const auto goes_on = [&](std::size_t begin, std::size_t end) {
    const auto part = log.subspan(begin, end - begin);
    const auto left = seen.subspan(same);
    const auto agreed = std::mismatch(part.begin(), part.end(), left.begin(), left.end()).first - part.begin();
    same += static_cast<std::size_t>(agreed);
    return static_cast<std::size_t>(agreed) == part.size();
  };
  (void)(goes_on(0, head_end_) && goes_on(excerpt_begin_, excerpt_end_) && goes_on(tail_begin_, log.size()));
  return same;
}

}  // namespace redline::draft
