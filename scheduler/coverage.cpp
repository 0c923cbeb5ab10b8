#include "scheduler/coverage.hpp"

#include <algorithm>

#include "runtime/base/assert.hpp"

namespace redline::scheduler {

std::uint32_t coverage::count() const { return covered_.empty() ? 0 : count_before(covered_.back().end); }

std::uint32_t coverage::count_before(std::uint32_t end) const {
  std::uint32_t count = 0;
  for (const token_range& r : covered_) count += std::min(r.end, end) - std::min(r.begin, end);
  return count;
}

std::uint32_t coverage::end_of(std::uint32_t count) const {
  std::uint32_t end = 0;
  for (const token_range& r : covered_) {
    if (count == 0) break;
    const std::uint32_t mine = std::min(count, r.count());
    end = r.begin + mine;
    count -= mine;
  }
  return end;
}

token_range coverage::first_gap(std::uint32_t log_count) const {
  if (covered_.empty() || covered_.front().begin > 0) {
    return {0, covered_.empty() ? log_count : std::min(covered_.front().begin, log_count)};
  }
  const std::uint32_t begin = std::min(covered_.front().end, log_count);
  return {begin, covered_.size() > 1 ? std::min(covered_[1].begin, log_count) : log_count};
}

void coverage::add(token_range computed) {
  if (computed.count() == 0) return;
  const auto at =
      std::find_if(covered_.begin(), covered_.end(), [&](const token_range& r) { return r.begin >= computed.begin; });
  REDLINE_ASSERT(at == covered_.end() || computed.end <= at->begin, "only tokens that are not covered are added");
  auto added = covered_.insert(at, computed);
  if (added + 1 != covered_.end() && added->end == (added + 1)->begin) {
    added->end = (added + 1)->end;
    covered_.erase(added + 1);
  }
  if (added == covered_.begin()) return;
  const auto before = added - 1;
  REDLINE_ASSERT(before->end <= added->begin, "only tokens that are not covered are added");
  if (before->end < added->begin) return;
  before->end = added->end;
  covered_.erase(added);
}

void coverage::keep(std::uint32_t count) {
  while (!covered_.empty() && covered_.back().begin >= count) covered_.pop_back();
  if (!covered_.empty()) covered_.back().end = std::min(covered_.back().end, count);
}

void coverage::splice(std::uint32_t at, std::uint32_t removed_count, std::uint32_t inserted_count) {
  std::vector<token_range> before;
  std::vector<token_range> after;
  const std::uint32_t cut = at + removed_count;
  for (const token_range& r : covered_) {
    if (r.begin < at) before.push_back({r.begin, std::min(r.end, at)});
    if (r.end > cut) after.push_back({std::max(r.begin, cut) - cut, r.end - cut});
  }
  covered_ = std::move(before);
  for (const token_range& r : after) add({r.begin + at + inserted_count, r.end + at + inserted_count});
}

void coverage::check_integrity() const {
  for (std::size_t i = 0; i < covered_.size(); ++i) {
    REDLINE_ASSERT(covered_[i].begin < covered_[i].end, "no empty ranges");
    REDLINE_ASSERT(i == 0 || covered_[i - 1].end < covered_[i].begin, "ranges are in order and apart");
  }
}

}  // namespace redline::scheduler
