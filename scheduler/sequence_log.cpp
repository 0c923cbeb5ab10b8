#include "scheduler/sequence_log.hpp"

#include <algorithm>

#include "runtime/base/assert.hpp"

namespace redline::scheduler {

bool sequence_log::fits(std::span<const log_splice> splices, std::uint32_t from, std::uint32_t count_max) const {
  std::uint64_t count = tokens_.size();
  for (const log_splice& s : splices) {
    if (s.at > count || s.removed_count > count - s.at) return false;
    count += s.tokens.size();
    count -= s.removed_count;
    if (count > count_max) return false;
  }
  return from <= count;
}

void sequence_log::apply(const log_splice& s, std::vector<kv::table_splice>& to_memory) {
  const auto first = tokens_.begin() + s.at;
  tokens_.insert(tokens_.erase(first, first + s.removed_count), s.tokens.begin(), s.tokens.end());
  if (!kv::keeps_later(s.policy)) kv_.keep(s.at);
  const std::uint32_t table_count = kv_.count();
  const std::uint32_t at = kv_.count_before(s.at);
  const std::uint32_t removed = kv_.count_before(s.at + s.removed_count) - at;
  const auto inserted = static_cast<std::uint32_t>(s.tokens.size());
  kv_.splice(s.at, s.removed_count, inserted);
  if (at == table_count) return;  // no token after it has KV, so nothing moves
  const std::int32_t shift =
      kv::moves_later(s.policy) ? static_cast<std::int32_t>(inserted) - static_cast<std::int32_t>(s.removed_count) : 0;
  to_memory.push_back({table_count, at, removed, shift, s.policy});
  // The new tokens are computed from those before them; the tokens after them were computed from the old ones.
  if (inexact_from_ >= s.at) inexact_from_ = s.at + inserted;
}

std::vector<kv::table_splice> sequence_log::change(std::span<const log_splice> splices, std::uint32_t from,
                                                   std::span<const token> tail) {
  std::vector<kv::table_splice> to_memory;
  for (const log_splice& s : splices) apply(s, to_memory);
  const auto known_tail = std::span(tokens_).subspan(from);
  const auto same = std::mismatch(tail.begin(), tail.end(), known_tail.begin(), known_tail.end()).first;
  const auto unchanged_count = from + static_cast<std::uint32_t>(same - tail.begin());
  tokens_.resize(from);
  tokens_.insert(tokens_.end(), tail.begin(), tail.end());
  kv_.keep(std::min(unchanged_count, count() - 1));
  if (kv_.is_empty() || kv_.ranges().back().end <= inexact_from_) inexact_from_ = all_exact;
  return to_memory;
}

void sequence_log::note_computed(token_range computed) { kv_.add(computed); }

void sequence_log::note_verified(std::uint32_t first, std::uint32_t accepted_count, std::span<const token> appended) {
  kv_.add({first, count() + accepted_count});
  tokens_.insert(tokens_.end(), appended.begin(), appended.end());
}

void sequence_log::lose_kv() {
  kv_ = {};
  recomputed_count_ += inexact_from_ == all_exact ? 0 : 1;
  inexact_from_ = all_exact;
}

token_range sequence_log::pending(bool without_last) const { return kv_.first_gap(count() - (without_last ? 1 : 0)); }

std::span<const token> sequence_log::computed_prefix() const {
  return tokens().first(std::min(kv_.first_gap(count()).begin, inexact_from_));
}

std::uint32_t sequence_log::exact_count() const { return std::min(inexact_from_, count()); }

void sequence_log::check_integrity() const {
  kv_.check_integrity();
  REDLINE_ASSERT(kv_.is_empty() || kv_.ranges().back().end <= tokens_.size(),
                 "no more tokens are computed than are known");
}

}  // namespace redline::scheduler
