#include "bench/studies/cache/cached_log.hpp"

#include <algorithm>

#include "runtime/base/assert.hpp"

namespace redline::studies {

token most_probable(std::span<const float> logits) {
  return static_cast<token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

void cached_log::keep(std::uint32_t count) {
  table_.truncate(pool_, kv_.count_before(count));
  kv_.keep(count);
}

void cached_log::splice(const scheduler::log_splice& s) {
  const auto first = log_.begin() + s.at;
  log_.insert(log_.erase(first, first + s.removed_count), s.tokens.begin(), s.tokens.end());
  if (!kv::keeps_later(s.policy)) keep(s.at);
  const std::uint32_t at = kv_.count_before(s.at);
  const std::uint32_t removed = kv_.count_before(s.at + s.removed_count) - at;
  const auto inserted = static_cast<std::uint32_t>(s.tokens.size());
  const bool moves = kv::moves_later(s.policy);
  const std::int32_t shift =
      moves ? static_cast<std::int32_t>(inserted) - static_cast<std::int32_t>(s.removed_count) : 0;
  if (at < kv_.count()) table_.splice(pool_, at, removed, shift);
  kv_.splice(s.at, s.removed_count, inserted);
}

void cached_log::become(std::span<const scheduler::log_splice> splices, std::vector<token> log) {
  for (const auto& s : splices) splice(s);
  const auto same = std::mismatch(log_.begin(), log_.end(), log.begin(), log.end()).first - log_.begin();
  keep(static_cast<std::uint32_t>(same));
  log_ = std::move(log);
}

std::span<const float> cached_log::compute(std::uint32_t end, std::uint32_t logits_count) {
  std::span<const float> said;
  for (;;) {
    const auto gap = kv_.first_gap(end);
    if (gap.count() == 0) return said;
    const std::uint32_t count = std::min(gap.count(), model_.rows_max());
    const bool last = gap.begin + count == end;
    // All tokens before the first gap have KV, so a token's position in the table is its position in the log.
    REDLINE_ASSERT(table_.insert(pool_, gap.begin, count), "the pool has room for whatever is asked");
    const auto pieces = table_.prefix(gap.begin + count);
    const model::run one{.tokens = std::span(log_).subspan(gap.begin, count),
                         .first_position = static_cast<position>(gap.begin),
                         .table = pieces,
                         .logits_begin = count - (last ? logits_count : 0)};
    said = model_.forward({&one, 1});
    computed_ += count;
    kv_.add({gap.begin, gap.begin + count});
  }
}

void cached_log::prepare() { compute(static_cast<std::uint32_t>(log_.size()) - 1, 0); }

std::span<const float> cached_log::read_last() {
  const auto count = static_cast<std::uint32_t>(log_.size());
  prepare();
  keep(count - 1);
  return compute(count, 1);
}

std::vector<float> cached_log::read_ahead(std::span<const token> next) {
  REDLINE_ASSERT(!next.empty() && next.size() <= model_.rows_max(), "one pass reads ahead");
  const auto before = static_cast<std::uint32_t>(log_.size());
  prepare();
  keep(before - 1);
  log_.insert(log_.end(), next.begin(), next.end() - 1);
  const auto said = compute(static_cast<std::uint32_t>(log_.size()), static_cast<std::uint32_t>(next.size()));
  std::vector<float> out(said.begin(), said.end());
  log_.resize(before);
  keep(before);
  return out;
}

void cached_log::pretend() {
  const auto count = static_cast<std::uint32_t>(log_.size());
  REDLINE_ASSERT(kv_.is_empty() && table_.append(pool_, count), "the pool has room for whatever is asked");
  kv_.add({0, count});
}

std::vector<float> cached_log::key_of(std::uint32_t index, std::uint32_t layer) {
  const auto pieces = table_.prefix(kv_.count_before(index + 1));
  const kv::piece& p = pieces.back();
  const auto page = pool_.allocate();
  REDLINE_ASSERT(page.has_value(), "the pool has room for whatever is asked");
  const std::uint32_t scratch = page->value * kv::page_tokens;
  const kv::token_move move{.from_slot = p.first_slot + p.count - 1, .to_slot = scratch, .count = 1, .turn = p.offset};
  model_.move_tokens({&move, 1});
  pool_.release(*page);
  return model_.key_at(layer, scratch);
}

}  // namespace redline::studies
