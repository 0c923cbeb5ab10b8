#include "bench/studies/fleet/fleet_worker.hpp"

#include <algorithm>
#include <utility>

#include "actors/messages/cache_messages.hpp"
#include "scheduler/policy.hpp"

namespace redline::studies {
namespace {

constexpr std::uint32_t page_tokens = 32;
constexpr microseconds kept_interval{900'000};

/// Scheduling depends only on the number of tokens in a log, not on their values.
std::vector<token> some_tokens(std::uint32_t count) { return std::vector<token>(count); }

std::uint32_t whole_pages(std::uint32_t tokens) { return tokens / page_tokens; }

}  // namespace

fleet_worker::fleet_worker(const worker_limits& limits, const pass_curve& curve, std::uint64_t number)
    : limits_(limits),
      queue_({limits.running_max, limits.waiting_max, limits.tokens_max, kv::pages(limits.pages_count)},
             *scheduler::make_policy("fifo")),
      said_((number + 1) << 32) {
  queue_.learn_costs(curve.samples, curve.mixture);
}

fleet_worker::taken fleet_worker::submit(const question& q, instant now) {
  const bool is_new = !queue_.holds(q.sequence);
  scheduler::round round{.sequence = q.sequence,
                         .number = q.round,
                         .from = q.from,
                         .tail = some_tokens(q.tail),
                         .draft = some_tokens(q.draft)};
  if (q.draft > 0) round.segments.emplace_back(q.draft, q.chance);
  const auto outcome = queue_.submit(round, {q.tenant, q.tokens_max}, now).outcome;
  if (outcome != scheduler::submit_outcome::taken || !is_new) return {outcome, 0};
  resident& r = residents_[q.sequence];
  r.kin = q.kin;
  const std::uint32_t cached = find_cached(q.kin, q.tail);
  if (cached == 0) return {outcome, 0};
  queue_.note_adopted(q.sequence, cached);
  r.pages = whole_pages(cached);
  pages_used_ += r.pages;
  forget(q.kin.conversation);  // the pages belong to the sequence now
  trim_kept();
  return {outcome, cached};
}

/// Counts whole pages, without the last token, which is computed for its logits.
std::uint32_t fleet_worker::find_cached(const prompt_kinship& kin, std::uint32_t prompt_tokens) {
  const auto tokens_of = [&](std::uint64_t beginning) {
    const auto at = kept_.find(beginning);
    return at == kept_.end() ? 0 : at->second.tokens;
  };
  const std::uint32_t known = std::max(tokens_of(kin.conversation), std::min(tokens_of(kin.shared), kin.shared_tokens));
  return whole_pages(std::min(known, prompt_tokens - 1)) * page_tokens;
}

std::uint64_t fleet_worker::prompt_kinship::key_of(std::uint32_t blocks) const {
  const bool is_shared = blocks * prefix_block_tokens <= shared_tokens;
  return ((is_shared ? shared : conversation) + 1) * 0x9e3779b97f4a7c15 + blocks;
}

kv::kept_news fleet_worker::say_kept(std::uint64_t revision, instant now) {
  if (!said_at_ || now - *said_at_ >= kept_interval) {
    said_at_ = now;
    std::vector<std::uint64_t> keys;
    for (auto at = kept_order_.rbegin(); at != kept_order_.rend() && keys.size() < actors::kept_keys_max; ++at) {
      const kept_beginning& kept = kept_.at(at->second);
      for (std::uint32_t b = 1; b <= kept.tokens / prefix_block_tokens; ++b) keys.push_back(kept.kin.key_of(b));
    }
    said_.update(keys);
  }
  return said_.since(revision);
}

void fleet_worker::keep(std::uint64_t beginning, const prompt_kinship& kin, std::uint32_t tokens) {
  if (whole_pages(tokens) == 0) return;
  forget(beginning);
  kept_[beginning] = {kin, whole_pages(tokens) * page_tokens, ++stamp_};
  kept_order_[stamp_] = beginning;
  kept_pages_ += whole_pages(tokens);
}

void fleet_worker::forget(std::uint64_t beginning) {
  const auto at = kept_.find(beginning);
  if (at == kept_.end()) return;
  kept_pages_ -= whole_pages(at->second.tokens);
  kept_order_.erase(at->second.stamp);
  kept_.erase(at);
}

/// The cache may use the pages that sequences do not need.
void fleet_worker::trim_kept() {
  while (kept_pages_ + pages_used_ > limits_.pages_count && !kept_order_.empty()) forget(kept_order_.begin()->second);
}

const scheduler::batch_plan* fleet_worker::begin_pass(instant now) {
  for (;;) {
    const auto free = kv::pages(limits_.pages_count - std::min(limits_.pages_count, pages_used_));
    plan_ = queue_.plan({.free = free}, now, [this](sequence_id s) { return next_of(s); });
    if (!plan_.runs.empty()) break;
    if (plan_.left.empty()) return nullptr;
    const auto victim = queue_.choose_victim(plan_, now);
    if (!victim) return nullptr;
    ++preempted_total_;
    pages_used_ -= std::exchange(residents_.at(*victim).pages, 0);
  }
  take_pages(plan_);
  queue_.begin(plan_);
  is_busy_ = true;
  return &plan_;
}

/// A table has space up to the end of its last page.
kv::growth fleet_worker::next_of(sequence_id sequence) const {
  return {.room = residents_.at(sequence).pages * page_tokens - computed_count(sequence)};
}

void fleet_worker::take_pages(const scheduler::batch_plan& plan) {
  for (const auto& run : plan.runs) {
    resident& r = residents_.at(run.sequence);
    const std::uint32_t pages = std::max(r.pages, kv::growth{}.taken_by(run.first + run.rows())[kv::kind::page]);
    pages_used_ += pages - r.pages;
    r.pages = pages;
  }
  trim_kept();
}

std::vector<scheduler::round_outcome> fleet_worker::end_pass(std::span<const scheduler::run_answer> answers,
                                                             microseconds took, instant now) {
  is_busy_ = false;
  ++batches_total_;
  rows_total_ += plan_.size.rows;
  forward_us_total_ += static_cast<std::uint64_t>(took.count());
  return queue_.complete(plan_, answers, took, now);
}

void fleet_worker::release(sequence_id sequence) {
  if (!queue_.holds(sequence)) return;
  const std::uint32_t computed = computed_count(sequence);
  const auto at = residents_.find(sequence);
  const resident r = at->second;
  residents_.erase(at);
  pages_used_ -= r.pages;
  queue_.release(sequence);
  keep(r.kin.conversation, r.kin, computed);
  if (computed >= r.kin.shared_tokens) keep(r.kin.shared, r.kin, r.kin.shared_tokens);
  trim_kept();
}

std::uint32_t fleet_worker::computed_count(sequence_id sequence) const {
  return queue_.holds(sequence) ? queue_.log(sequence).kv_count() : 0;
}

void fleet_worker::check_integrity() const {
  queue_.check_integrity();
  std::uint32_t pages = 0;
  for (const auto& [sequence, r] : residents_) pages += r.pages;
  REDLINE_ASSERT(pages == pages_used_, "pages of sequences are counted wrong");
  pages = 0;
  for (const auto& [beginning, k] : kept_) pages += whole_pages(k.tokens);
  REDLINE_ASSERT(pages == kept_pages_, "pages that are kept are counted wrong");
}

}  // namespace redline::studies
