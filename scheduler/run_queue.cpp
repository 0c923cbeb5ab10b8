#include "scheduler/run_queue.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace redline::scheduler {
namespace {

// A sequence that has not asked for this long (its client reads slowly, its drafter is down) may lose its pages to one
// that starves; a session between two rounds of a healthy system is back much sooner.
constexpr microseconds idle_before_eviction{250'000};

// A session that makes its next draft is back sooner; were a chunk begun meanwhile, each of its rounds would wait for
// one.
constexpr microseconds pause_between_rounds{30'000};

// Two may arrive at one instant: without the second criterion neither would yield to the other.
bool came_before(instant a, sequence_id a_id, instant b, sequence_id b_id) {
  return std::pair(a, a_id) < std::pair(b, b_id);
}

}  // namespace

run_queue::run_queue(queue_limits limits, std::unique_ptr<policy> order)
    : limits_(limits),
      policy_(std::move(order)),
      typical_drafts_(std::size_t{limits.running_max} + limits.waiting_max) {}

/// Every splice lies inside of the log as the ones before leave it, and the tail joins on.
bool run_queue::fits(const sequence_state& q, const submission& s) {
  std::uint64_t count = q.log.size();
  for (const log_splice& each : s.splices) {
    if (each.at > count || each.removed_count > count - each.at) return false;
    count += each.tokens.size();
    count -= each.removed_count;
    if (count > q.tokens_max) return false;
  }
  return s.from <= count;
}

void run_queue::apply(sequence_state& q, std::span<const log_splice> splices) {
  for (const log_splice& s : splices) {
    const auto first = q.log.begin() + s.at;
    q.log.insert(q.log.erase(first, first + s.removed_count), s.tokens.begin(), s.tokens.end());
    if (!s.keeps_later) q.kv.keep(s.at);
    const std::uint32_t table_count = q.kv.count();
    const std::uint32_t at = q.kv.count_before(s.at);
    const std::uint32_t removed = q.kv.count_before(s.at + s.removed_count) - at;
    const auto inserted = static_cast<std::uint32_t>(s.tokens.size());
    q.kv.splice(s.at, s.removed_count, inserted);
    if (at == table_count) continue;  // no KV behind: nothing moves
    const std::int32_t shift =
        s.moves_later ? static_cast<std::int32_t>(inserted) - static_cast<std::int32_t>(s.removed_count) : 0;
    q.splices.push_back({table_count, at, removed, shift, s.policy});
    // New tokens see what is before them, those behind have seen what was.
    if (q.exact_count >= s.at) q.exact_count = s.at + inserted;
  }
}

token_range run_queue::pending(const sequence_state& q) {
  return q.kv.first_gap(static_cast<std::uint32_t>(q.log.size()) - (q.prefill_only ? 1 : 0));
}

void run_queue::note_change(sequence_id sequence, sequence_state& q) {
  if (!std::exchange(q.table_changed, true)) changed_.push_back(sequence);
}

/// Who holds its pages is told otherwise.
void run_queue::lose_kv(sequence_id sequence, sequence_state& q) {
  q.kv = {};
  q.room = 0;
  q.splices.clear();
  if (std::exchange(q.table_changed, false)) std::erase(changed_, sequence);
  q.awaits.reset();
  q.recomputed_count += q.exact_count == all_exact ? 0 : 1;
  q.exact_count = all_exact;
}

submit_outcome run_queue::submit(const submission& s, instant now) {
  if (s.from == 0 && s.tail.empty()) return submit_outcome::empty_log;
  const auto found = sequences_.find(s.sequence);
  if (found == sequences_.end()) {
    if (s.from != 0 || !s.splices.empty()) return submit_outcome::log_gap;
    if (s.tokens_max > limits_.tokens_max || pages_for(s.tokens_max, page_tokens_) > limits_.pages_count ||
        s.tail.size() > s.tokens_max) {
      return submit_outcome::too_long;
    }
    if (!s.prefill_only && running_count_ >= limits_.running_max && waiting_count() >= limits_.waiting_max) {
      return submit_outcome::queue_full;
    }
  } else {
    const sequence_state& old = found->second;
    if (s.round < old.round) return submit_outcome::stale;
    if (s.round == old.round) return old.open ? submit_outcome::already_running : submit_outcome::already_answered;
    if (old.open && !old.prefill_only && !old.given_up) return submit_outcome::stale;
    if (old.in_flight) return submit_outcome::busy;
    if (!fits(old, s)) return submit_outcome::log_gap;
    if (s.from + s.tail.size() > old.tokens_max) return submit_outcome::too_long;
  }

  auto& q = sequences_[s.sequence];
  if (found == sequences_.end()) {
    q.tenant = s.tenant;
    q.typical = typical_drafts_.of(s.tenant);
    q.arrival = now;
    q.tokens_max = s.tokens_max;
  }
  const std::uint32_t table_count = q.kv.count();
  apply(q, s.splices);
  const auto known_tail = std::span(q.log).subspan(s.from);
  const auto same = std::mismatch(s.tail.begin(), s.tail.end(), known_tail.begin(), known_tail.end()).first;
  const auto unchanged_count = s.from + static_cast<std::uint32_t>(same - s.tail.begin());
  q.log.resize(s.from);
  q.log.insert(q.log.end(), s.tail.begin(), s.tail.end());
  // The last token is computed in any case, for its logits.
  q.kv.keep(std::min(unchanged_count, static_cast<std::uint32_t>(q.log.size()) - 1));
  if (q.kv.is_empty() || q.kv.ranges().back().end <= q.exact_count) q.exact_count = all_exact;
  q.cached_count = q.kv.count();
  q.awaits.reset();
  if (!q.splices.empty() || q.kv.count() < table_count) note_change(s.sequence, q);
  const std::size_t draft_room = q.tokens_max > q.log.size() ? q.tokens_max - q.log.size() : 0;
  q.draft.assign(s.draft.begin(), s.draft.begin() + static_cast<std::ptrdiff_t>(std::min(s.draft.size(), draft_room)));
  q.sources.assign(s.sources.begin(), s.sources.end());
  q.round = s.round;
  q.prefill_only = s.prefill_only;
  q.given_up = false;
  if (q.prefill_only) q.draft.clear();
  q.open = true;
  q.passes = 0;
  q.rows = 0;
  admit_waiting(now);
  if (pending(q).count() == 0) {
    close(q, now);
    return submit_outcome::nothing_to_do;
  }
  return submit_outcome::taken;
}

void run_queue::close(sequence_state& q, instant now) {
  q.open = false;
  q.given_up = false;
  q.idle_since = now;
}

void run_queue::give_up(sequence_id sequence, round_id round, instant now) {
  const auto it = sequences_.find(sequence);
  if (it == sequences_.end() || !it->second.open || it->second.round != round) return;
  if (it->second.in_flight)
    it->second.given_up = true;
  else
    close(it->second, now);
}

std::uint32_t run_queue::waiting_count() const {
  return static_cast<std::uint32_t>(std::count_if(sequences_.begin(), sequences_.end(), [](const auto& entry) {
    const sequence_state& q = entry.second;
    return q.open && !q.prefill_only && !q.admitted;
  }));
}

/// Of the sequences with a place that have asked for nothing for a while.
run_queue::sequence_state* run_queue::longest_idle(instant now) {
  sequence_state* longest = nullptr;
  for (auto& [id, q] : sequences_) {
    if (!q.admitted || q.open || now - q.idle_since < idle_before_eviction) continue;
    if (longest == nullptr || q.idle_since < longest->idle_since) longest = &q;
  }
  return longest;
}

/// A sequence that waits may take the place of one that is kept between two answers, which queues up again with its
/// next round; its KV stays until the pages are needed. A place for work that nobody waits for is given last, and taken
/// back.
void run_queue::admit_waiting(instant now) {
  for (;;) {
    std::pair<const sequence_id, sequence_state>* first = nullptr;
    sequence_state* background = nullptr;  // has a place
    for (auto& entry : sequences_) {
      sequence_state& q = entry.second;
      if (q.admitted && q.open && q.prefill_only && !q.in_flight) background = &q;
      if (q.admitted || !q.open) continue;
      if (first == nullptr || (q.prefill_only != first->second.prefill_only
                                   ? first->second.prefill_only
                                   : came_before(q.arrival, entry.first, first->second.arrival, first->first))) {
        first = &entry;
      }
    }
    if (first == nullptr) return;
    if (running_count_ >= limits_.running_max) {
      sequence_state* yields = longest_idle(now);
      if (yields == nullptr && !first->second.prefill_only) yields = background;
      if (yields == nullptr) return;
      yields->admitted = false;
      --running_count_;
    }
    first->second.admitted = true;
    ++running_count_;
  }
}

void run_queue::release(sequence_id sequence) {
  const auto it = sequences_.find(sequence);
  if (it == sequences_.end()) return;
  if (it->second.admitted) --running_count_;
  if (it->second.table_changed) std::erase(changed_, sequence);
  sequences_.erase(it);
  admit_waiting({});  // then nobody counts as idle; the next plan looks again
}

batch_plan run_queue::plan(budget limits, instant now) {
  page_tokens_ = limits.page_tokens;
  admit_waiting(now);
  items_.clear();
  for (auto& [id, q] : sequences_) {
    if (!q.admitted || !q.open || q.in_flight) continue;
    if (q.awaits && q.awaits->until > now) continue;
    q.awaits.reset();
    const token_range next = pending(q);
    const bool at_end = next.end == q.log.size();
    items_.push_back({.sequence = id,
                      .tenant = q.tenant,
                      .arrival = q.arrival,
                      .computed_count = next.begin,
                      .pending_count = next.count(),
                      .draft_count = at_end ? static_cast<std::uint32_t>(q.draft.size()) : 0,
                      .room = q.room,
                      .background = q.prefill_only,
                      .wants_logits = at_end,
                      .sources = q.sources,
                      .drafts = &q.drafts,
                      .typical = q.typical.get()});
  }
  policy_->rank(items_, now, order_);
  const auto first_background =
      std::stable_partition(order_.begin(), order_.end(), [&](item_index i) { return !items_[i].background; });
  auto plan = build_batch(items_, {order_.begin(), first_background}, limits, cost_);
  if (!plan.runs.empty() || !plan.left.empty() || pause_end(now)) return plan;
  // What nobody waits for has passes of its own, of one chunk: whoever comes by is held up no longer.
  limits.rows_max = std::min(limits.rows_max, limits.prompt_chunk_rows_max);
  return build_batch(items_, {first_background, order_.end()}, limits, cost_);
}

/// While the answer of a session may go on any moment: until when.
std::optional<instant> run_queue::pause_end(instant now) const {
  std::optional<instant> end;
  for (const auto& [id, q] : sequences_) {
    const instant back = q.idle_since + pause_between_rounds;
    if (!q.open && !q.prefill_only && back > now && (!end || back > *end)) end = back;
  }
  return end;
}

std::optional<instant> run_queue::next_look(instant now) const {
  const bool any = std::any_of(sequences_.begin(), sequences_.end(),
                               [](const auto& entry) { return entry.second.open && entry.second.prefill_only; });
  return any ? pause_end(now) : std::nullopt;
}

void run_queue::learn_costs(std::span<const cost::cost_sample> samples) {
  if (!cost_.is_blank()) return;
  for (const cost::cost_sample& s : samples) cost_.observe(s.size, s.took);
}

void run_queue::begin(const batch_plan& plan) {
  for (const auto& run : plan.runs) sequences_.at(run.sequence).in_flight = true;
}

void run_queue::put_back(const batch_plan& plan) {
  for (const auto& run : plan.runs) {
    const auto it = sequences_.find(run.sequence);
    if (it == sequences_.end() || !it->second.in_flight) continue;
    it->second.in_flight = false;
    if (it->second.given_up) close(it->second, it->second.idle_since);
  }
}

std::vector<round_outcome> run_queue::complete(const batch_plan& plan, std::span<const run_answer> answers,
                                               microseconds took, instant now) {
  REDLINE_ASSERT(plan.runs.size() == answers.size(), "one answer for every run");
  cost_.observe(plan.size, took);
  std::vector<round_outcome> done;
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    const planned_run& run = plan.runs[i];
    policy_->charge(run.tenant,
                    took * run.rows() / std::max<std::int64_t>(static_cast<std::int64_t>(plan.size.rows), 1));
    const auto it = sequences_.find(run.sequence);
    // Released meanwhile, or even opened again under the same id: then this answer is about a run nobody asked for.
    if (it == sequences_.end() || !it->second.in_flight) continue;
    sequence_state& q = it->second;
    q.in_flight = false;
    q.passes += 1;
    q.rows += run.rows();
    if (!run.wants_logits) {
      q.kv.add({run.first, run.first + run.log_count});
      const bool is_over = q.prefill_only && pending(q).count() == 0;
      if (!is_over && !q.given_up) continue;
      if (!q.given_up) done.push_back({run.sequence, q.round, 0, q.passes, q.rows, q.recomputed_count, q.cached_count});
      close(q, now);
      continue;
    }
    q.kv.add({run.first, static_cast<std::uint32_t>(q.log.size()) + answers[i].accepted_count});
    if (const std::uint32_t refused = run.draft_count - answers[i].accepted_count; refused > 0) {
      q.room += refused;
      note_change(run.sequence, q);
    }
    q.log.insert(q.log.end(), answers[i].tokens.begin(), answers[i].tokens.end());
    q.drafts.note(q.sources, run.draft_count, answers[i].accepted_count);
    // Also of a draft that was cut to nothing: what is thought of drafts must come back when none is tried.
    if (!q.draft.empty()) q.typical->note(q.sources, run.draft_count, answers[i].accepted_count);
    q.draft.clear();
    if (!q.given_up)
      done.push_back({run.sequence, q.round, run.draft_count, q.passes, q.rows, q.recomputed_count, q.cached_count});
    close(q, now);
  }
  return done;
}

std::optional<sequence_id> run_queue::choose_victim(const batch_plan& plan, instant now) {
  // Of all that starve the oldest is helped: whoever ranks first may be the youngest, and then nobody would have to
  // yield.
  const sequence_state* hungry = nullptr;
  sequence_id hungry_id;
  for (const left_behind& l : plan.left) {
    const auto it = sequences_.find(l.sequence);
    if (l.why != limit::pages || it == sequences_.end() || it->second.prefill_only) continue;
    if (hungry == nullptr || came_before(it->second.arrival, l.sequence, hungry->arrival, hungry_id)) {
      hungry = &it->second;
      hungry_id = l.sequence;
    }
  }
  if (hungry == nullptr) return std::nullopt;

  // The longest idle first, and work that nobody waits for; else the latest comer, if it came after the starving one:
  // the oldest always gets on.
  const auto is_idle = [&](const sequence_state& q) {
    return q.open ? q.prefill_only : now - q.idle_since >= idle_before_eviction;
  };
  const std::pair<const sequence_id, sequence_state>* victim = nullptr;
  for (const auto& entry : sequences_) {
    const sequence_state& q = entry.second;
    if (q.in_flight || q.kv.is_empty() || entry.first == hungry_id) continue;
    const bool idle = is_idle(q);
    if (!idle && !came_before(hungry->arrival, hungry_id, q.arrival, entry.first)) continue;
    if (victim == nullptr) {
      victim = &entry;
      continue;
    }
    const bool victim_idle = is_idle(victim->second);
    if (idle != victim_idle ? idle
        : idle              ? q.idle_since < victim->second.idle_since
                            : came_before(victim->second.arrival, victim->first, q.arrival, entry.first)) {
      victim = &entry;
    }
  }
  // When nobody else has KV, its own table must be what takes too many pages: slots that lie empty between moved
  // pieces. They come back when it is computed anew.
  const auto has_kv = [](const auto& entry) { return !entry.second.kv.is_empty(); };
  const bool alone = !hungry->kv.is_empty() && std::count_if(sequences_.begin(), sequences_.end(), has_kv) == 1;
  if (victim == nullptr && (hungry->in_flight || !alone)) return std::nullopt;
  const sequence_id id = victim == nullptr ? hungry_id : victim->first;
  lose_kv(id, sequences_.at(id));
  return id;
}

void run_queue::forget_all_kv() {
  for (auto& [id, q] : sequences_) {
    lose_kv(id, q);
    q.in_flight = false;
    if (q.given_up) close(q, q.idle_since);
  }
}

std::vector<table_change> run_queue::take_changes(const batch_plan& plan) {
  for (const auto& run : plan.runs) note_change(run.sequence, sequences_.at(run.sequence));
  for (const left_behind& l : plan.left) {
    if (l.why == limit::pages) note_change(l.sequence, sequences_.at(l.sequence));
  }
  std::vector<table_change> changes;
  for (const sequence_id sequence : std::exchange(changed_, {})) {
    sequence_state& q = sequences_.at(sequence);
    q.table_changed = false;
    changes.push_back({sequence, std::exchange(q.splices, {}), q.kv.count()});
  }
  return changes;
}

void run_queue::note_room(sequence_id sequence, std::uint32_t tokens_count) {
  const auto it = sequences_.find(sequence);
  if (it != sequences_.end()) it->second.room = tokens_count;
}

void run_queue::await_prefix(sequence_id sequence, std::uint64_t question, instant until) {
  sequence_state& q = sequences_.at(sequence);
  REDLINE_ASSERT(q.kv.is_empty() && !q.in_flight, "only what has no KV can be told of some");
  q.awaits = {question, until};
}

bool run_queue::adopt_prefix(sequence_id sequence, std::uint64_t question, std::uint32_t count) {
  const auto it = sequences_.find(sequence);
  if (it == sequences_.end() || !it->second.awaits || it->second.awaits->number != question || question == 0)
    return false;
  sequence_state& q = it->second;
  q.awaits.reset();
  if (count >= q.log.size()) return false;
  if (count > 0) q.kv.add({0, count});
  q.cached_count = count;
  return true;
}

std::span<const token> run_queue::computed_prefix(sequence_id sequence) const {
  const sequence_state& q = sequences_.at(sequence);
  const std::uint32_t computed = q.kv.first_gap(static_cast<std::uint32_t>(q.log.size())).begin;
  return std::span(q.log).first(std::min(computed, q.exact_count));
}

std::uint32_t run_queue::known_count(sequence_id sequence) const {
  const auto it = sequences_.find(sequence);
  return it == sequences_.end() ? 0 : static_cast<std::uint32_t>(it->second.log.size());
}

std::uint32_t run_queue::exact_count(sequence_id sequence) const {
  const sequence_state& q = sequences_.at(sequence);
  return std::min(q.exact_count, static_cast<std::uint32_t>(q.log.size()));
}

std::span<const token> run_queue::log(sequence_id sequence) const { return sequences_.at(sequence).log; }
std::span<const token> run_queue::draft(sequence_id sequence) const { return sequences_.at(sequence).draft; }

void run_queue::check_integrity() const {
  std::uint32_t admitted = 0;
  std::size_t changed = 0;
  for (const auto& [id, q] : sequences_) {
    admitted += q.admitted ? 1 : 0;
    q.kv.check_integrity();
    REDLINE_ASSERT(q.kv.is_empty() || q.kv.ranges().back().end <= q.log.size(), "more tokens are computed than known");
    REDLINE_ASSERT(!q.open || pending(q).count() > 0, "an open round has nothing to compute");
    changed += q.table_changed ? 1 : 0;
    REDLINE_ASSERT(q.table_changed || q.splices.empty(), "a splice is not told");
    REDLINE_ASSERT(!q.in_flight || (q.open && q.admitted), "a run is in flight that nobody asked for");
  }
  REDLINE_ASSERT(changed == changed_.size(), "a change is not told, or twice");
  REDLINE_ASSERT(admitted == running_count_, "the count of running sequences is off");
  REDLINE_ASSERT(running_count_ <= limits_.running_max, "more sequences run than may");
}

}  // namespace redline::scheduler
