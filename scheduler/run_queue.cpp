#include "scheduler/run_queue.hpp"

#include <algorithm>
#include <utility>

#include "scheduler/preemption.hpp"

namespace redline::scheduler {
namespace {

constexpr double alone_factor = 2.5;  // times the limit of a pass
constexpr double lateness_max = 2;    // a machine that is even later is busy with something else
// While drafts are cut, this part of the time may be lost on trying a width that was not measured meanwhile.
constexpr int trial_share = 64;
constexpr std::size_t expected_max = 256;  // sequences considered for a wait, the most recently answered
constexpr std::size_t tenants_max = 1024;  // tenants whose return times are stored separately
// Used before any session was seen to come back: typical of a session that drafts with a model.
constexpr microseconds first_return{30'000};
constexpr double fill_pace = 1.0 / 32;
constexpr double around_pace = 1.0 / 16;
constexpr double around_us_max = 10'000;  // longer delays are not an overhead of every pass

}  // namespace

run_queue::run_queue(queue_limits limits, std::unique_ptr<policy> order)
    : limits_(limits), policy_(std::move(order)), slots_(limits.running_max) {
  all_returns_.observe(first_return);
}

/// The outcome for a round that is not taken.
std::optional<submit_outcome> run_queue::refusal(const round& r, const sequence_facts& facts) const {
  if (r.from == 0 && r.tail.empty()) return submit_outcome::empty_log;
  const auto found = sequences_.find(r.sequence);
  if (found == sequences_.end()) {
    if (r.from != 0 || !r.splices.empty()) return submit_outcome::log_gap;
    const bool has_memory = kv::growth{}.taken_by(facts.tokens_max).fits(limits_.memory);
    if (facts.tokens_max > limits_.tokens_max || !has_memory || r.tail.size() > facts.tokens_max) {
      return submit_outcome::too_long;
    }
    const bool is_full = running_count() >= limits_.running_max && waiting_count() >= limits_.waiting_max;
    if (r.kind != round_kind::prefill && is_full && !slots_.has_share(facts.tenant, limits_.waiting_max)) {
      return submit_outcome::queue_full;
    }
    return std::nullopt;
  }
  const sequence_state& old = found->second;
  if (r.number < old.round) return submit_outcome::stale;
  if (r.number == old.round) return old.at.open ? submit_outcome::already_running : submit_outcome::already_answered;
  if (old.at.open && !old.at.prefill_only && !old.given_up) return submit_outcome::stale;
  if (old.at.in_flight) return submit_outcome::busy;
  if (!old.log.fits(r.splices, r.from, old.facts.tokens_max)) return submit_outcome::log_gap;
  if (r.from + r.tail.size() > old.facts.tokens_max) return submit_outcome::too_long;
  return std::nullopt;
}

run_queue::entry& run_queue::open_sequence(const round& r, const sequence_facts& facts, instant now) {
  const auto [it, is_new] = sequences_.try_emplace(r.sequence);
  if (is_new) {
    sequence_state& q = it->second;
    q.facts = facts;
    q.at.arrival = now;
    q.at.tenant = facts.tenant;
  }
  return *it;
}

std::vector<kv::table_splice> run_queue::open_round(entry& e, const round& r, instant now) {
  sequence_state& q = e.second;
  const bool is_prefill = r.kind == round_kind::prefill;
  const bool was_answered = q.at.idle_since != instant{} && !q.at.open && !q.at.prefill_only;
  if (was_answered) {
    note_return(q, now - q.at.idle_since);
    if (pass_out_ && !is_prefill) ++asked_meanwhile_;
  }
  q.next = sequence_state::next_round::may_come;
  auto splices = q.log.change(r.splices, r.from, r.tail);
  q.cached_count = q.log.kv_count();
  q.waits_until.reset();
  q.round = r.number;
  q.draft.clear();
  if (!is_prefill) {
    const std::size_t draft_room = q.facts.tokens_max > q.log.count() ? q.facts.tokens_max - q.log.count() : 0;
    const auto draft = std::span(r.draft).first(std::min(r.draft.size(), draft_room));
    q.draft.assign(draft.begin(), draft.end());
  }
  q.scores_draft = r.kind == round_kind::score;
  q.segments = r.segments;
  q.passes = 0;
  q.rows = 0;
  q.missed_count = 0;
  q.given_up = false;
  q.at.open = true;
  q.at.prefill_only = is_prefill;
  slots_.update(e.first, q.at);
  return splices;
}

submitted run_queue::submit(const round& r, const sequence_facts& facts, instant now) {
  if (const auto why_not = refusal(r, facts)) return {*why_not, {}};
  entry& e = open_sequence(r, facts, now);
  submitted out{submit_outcome::taken, open_round(e, r, now)};
  slots_.admit(now);
  if (pending(e.second).count() > 0) return out;
  close(e, now);
  out.outcome = submit_outcome::nothing_to_do;
  return out;
}

void run_queue::close(entry& e, instant now) {
  sequence_state& q = e.second;
  q.given_up = false;
  q.at.open = false;
  q.at.idle_since = now;
  slots_.update(e.first, q.at);
}

void run_queue::give_up(sequence_id sequence, round_id round, instant now) {
  const auto it = sequences_.find(sequence);
  if (it == sequences_.end() || it->second.round != round) return;
  if (!it->second.at.open) {
    it->second.next = sequence_state::next_round::not_expected;
  } else if (it->second.at.in_flight) {
    it->second.given_up = true;
  } else {
    close(*it, now);
  }
}

void run_queue::release(sequence_id sequence) {
  const auto it = sequences_.find(sequence);
  if (it == sequences_.end()) return;
  sequences_.erase(it);
  slots_.remove(sequence);
  slots_.admit({});  // at a time when no sequence counts as idle; the next plan looks again
}

work_item run_queue::item_of(const entry& e) {
  const sequence_state& q = e.second;
  const token_range next = pending(q);
  const bool at_end = next.end == q.log.count();
  return {.sequence = e.first,
          .facts = q.facts,
          .arrival = q.at.arrival,
          .computed_count = next.begin,
          .pending_count = next.count(),
          .draft_count = at_end ? static_cast<std::uint32_t>(q.draft.size()) : 0,
          .background = q.at.prefill_only,
          .wants_logits = at_end,
          .missed_count = q.missed_count,
          .scores_draft = q.scores_draft,
          .segments = q.segments};
}

batch_plan run_queue::plan(budget limits, instant now, const growth_of& growth) {
  slots_.admit(now);
  if (still_waits(now)) return {};
  if (!pass_out_) planned_at_ = now;
  items_.clear();
  for (const sequence_id sequence : slots_.placed()) {
    entry& e = *sequences_.find(sequence);
    sequence_state& q = e.second;
    if (!q.at.open || q.at.in_flight) continue;
    if (q.waits_until && *q.waits_until > now) continue;
    q.waits_until.reset();
    items_.push_back(item_of(e));
    if (growth) items_.back().growth = growth(sequence);
  }
  rank(*policy_, items_, now, order_);
  const auto first_background = std::ranges::find_if(order_, [&](item_index i) { return items_[i].background; });
  limits.trials = trials_;
  // A lone sequence delays only rounds that come meanwhile, and long passes read the weights less often.
  const double longer = slots_.placed().size() == 1 ? alone_factor : 1;
  limits.time_max = microseconds{static_cast<std::int64_t>(static_cast<double>(limits.time_max.count()) * longer /
                                                           std::clamp(overrun_p95_.value(), 1.0, lateness_max))};
  long_pass_ = limits.time_max / 2;
  auto plan = build_batch(items_, {order_.begin(), first_background}, limits, cost_);
  if (!plan.runs.empty() && begins_to_wait(plan, false, limits.time_max, now)) return {};
  if (!plan.runs.empty() || !plan.left.empty() || first_background == order_.end()) return plan;
  // Prefills have passes of their own, of one chunk, so that a round that comes meanwhile waits no longer than that.
  limits.rows_max = std::min(limits.rows_max, limits.prompt_chunk_rows_max);
  plan = build_batch(items_, {first_background, order_.end()}, limits, cost_);
  if (!plan.runs.empty() && begins_to_wait(plan, true, limits.time_max, now)) return {};
  return plan;
}

const return_times& run_queue::returns_of(tenant_id tenant) const {
  const auto known = tenant_returns_.find(tenant);
  return known == tenant_returns_.end() ? all_returns_ : known->second;
}

void run_queue::note_return(sequence_state& q, microseconds after) {
  q.returns.observe(after);
  if (!std::exchange(returns_seen_, true)) all_returns_ = return_times{all_returns_memory};
  all_returns_.observe(after);
  if (tenant_returns_.size() >= tenants_max && !tenant_returns_.contains(q.facts.tenant)) tenant_returns_.clear();
  tenant_returns_.try_emplace(q.facts.tenant, all_returns_memory).first->second.observe(after);
}

bool run_queue::is_away(sequence_id sequence) const {
  const auto it = sequences_.find(sequence);
  return it != sequences_.end() && it->second.next == sequence_state::next_round::is_waited_for;
}

/// The wait lasts until all sequences have come or are gone, or until the time is over.
bool run_queue::still_waits(instant now) {
  if (!wait_end_) return false;
  while (!waited_for_.empty() && !is_away(waited_for_.back())) waited_for_.pop_back();
  if (!waited_for_.empty() && now < *wait_end_) return true;
  for (const sequence_id sequence : waited_for_) {
    if (!is_away(sequence)) continue;
    sequences_.at(sequence).next = sequence_state::next_round::not_expected;
    ++gathered_.missed;
  }
  gathered_.waited += now - wait_began_;
  waited_for_.clear();
  wait_end_.reset();
  return false;
}

bool run_queue::begins_to_wait(const batch_plan& plan, bool is_background, microseconds time_max, instant now) {
  std::vector<expected_round> expected;
  std::vector<sequence_id> who;
  const auto& away = slots_.between_rounds();
  for (auto at = away.rbegin(); at != away.rend() && expected.size() < expected_max; ++at) {
    const auto& [since, sequence] = *at;
    if (now - since >= return_times::longest()) break;
    const sequence_state& q = sequences_.at(sequence);
    if (q.next != sequence_state::next_round::may_come || !slots_.has_slot(sequence)) continue;
    expected.push_back({q.returns.predict(now - since, returns_of(q.facts.tenant)),
                        cost::size_of_run(q.log.count() - 1, q.last_rows, q.last_rows)});
    who.push_back(sequence);
  }
  const bool answers = std::ranges::any_of(plan.runs, [](const planned_run& r) { return r.wants_logits; });
  const auto wait = choose_wait({.rounds = is_background ? 0 : static_cast<double>(plan.runs.size()),
                                 .size = plan.size,
                                 .time_max = time_max,
                                 .comes_back = answers ? all_returns_.typical() : microseconds{0},
                                 .around = microseconds{static_cast<std::int64_t>(around_us_)},
                                 .expected = expected},
                                cost_);
  if (!wait) return false;
  const auto step = static_cast<std::size_t>(*wait);
  for (std::size_t i = 0; i < who.size(); ++i) {
    if (expected[i].comes_within[step] < counted_on_chance) continue;
    sequences_.at(who[i]).next = sequence_state::next_round::is_waited_for;
    waited_for_.push_back(who[i]);
  }
  wait_began_ = now;
  wait_end_ = now + return_times::step(step);
  ++gathered_.waits;
  return true;
}

void run_queue::learn_costs(std::span<const cost::cost_sample> samples, const cost::mixture_shape& of) {
  if (!cost_.is_unmeasured()) return;
  cost_ = cost::cost_model(of);
  for (const cost::cost_sample& s : samples) cost_.observe(s.size, s.took, s.experts);
}

void run_queue::begin(const batch_plan& plan) {
  for (const auto& run : plan.runs) {
    sequence_state& q = sequences_.at(run.sequence);
    q.at.in_flight = true;
    q.missed_count = 0;
    slots_.update(run.sequence, q.at);
  }
  if (plan.runs.empty()) return;
  pass_out_ = true;
  asked_meanwhile_ = 0;
  for (const left_out& l : plan.left) ++sequences_.at(l.sequence).missed_count;
}

void run_queue::end_run(entry& e) {
  e.second.at.in_flight = false;
  slots_.update(e.first, e.second.at);
}

void run_queue::put_back(const batch_plan& plan) {
  pass_out_ = false;
  for (const auto& run : plan.runs) {
    const auto it = sequences_.find(run.sequence);
    if (it == sequences_.end() || !it->second.at.in_flight) continue;
    end_run(*it);
    if (it->second.given_up) close(*it, it->second.at.idle_since);
  }
}

std::vector<round_outcome> run_queue::complete(const batch_plan& plan, std::span<const run_answer> answers,
                                               microseconds took, instant now, std::uint64_t experts) {
  REDLINE_ASSERT(plan.runs.size() == answers.size(), "one answer for every run");
  cost_.observe(plan.size, took, experts);
  cost_.observe_text(plan.size, experts);
  if (pass_out_) {
    const auto around = static_cast<double>((now - planned_at_ - took).count());
    around_us_ += around_pace * (std::clamp(around, 0.0, around_us_max) - around_us_);
  }
  if (plan.predicted > std::max(long_pass_, microseconds{0}))
    overrun_p95_.observe(static_cast<double>(took.count()) / static_cast<double>(plan.predicted.count()));
  if (plan.drafts_cut > 0) trials_.allow(took / trial_share);
  trials_.note_pass(plan.size.rows, plan.lost);
  note_fill(plan);
  std::vector<round_outcome> done;
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    const planned_run& run = plan.runs[i];
    policy_->charge(run.tenant,
                    took * run.rows() / std::max<std::int64_t>(static_cast<std::int64_t>(plan.size.rows), 1));
    const auto it = sequences_.find(run.sequence);
    // The sequence was released meanwhile, or even opened again under the same id: this answer is for an old run.
    if (it == sequences_.end() || !it->second.at.in_flight) continue;
    sequence_state& q = it->second;
    end_run(*it);
    q.passes += 1;
    q.rows += run.rows();
    bool is_over = true;
    if (run.wants_logits) {
      const run_answer& answer = answers[i];
      q.last_rows = 1 + run.draft_count;
      q.log.note_verified(run.first, answer.accepted_count, answer.tokens);
      q.draft.clear();
    } else {
      q.log.note_computed({run.first, run.first + run.log_count});
      is_over = q.at.prefill_only && pending(q).count() == 0;
    }
    if (is_over && !q.given_up) {
      done.push_back(
          {run.sequence, q.round, run.draft_count, q.passes, q.rows, q.log.recomputed_count(), q.cached_count});
    }
    if (is_over || q.given_up) close(*it, now);
  }
  return done;
}

/// Averages the decoding sequences in the pass as a part of those that could have been in it.
void run_queue::note_fill(const batch_plan& plan) {
  if (!std::exchange(pass_out_, false)) return;
  const auto in_it = std::ranges::count_if(plan.runs, [](const planned_run& r) { return r.decodes(); });
  if (in_it == 0) return;
  const auto left = std::ranges::count_if(plan.left, [&](const left_out& l) {
    const auto it = sequences_.find(l.sequence);
    return it != sequences_.end() && it->second.at.open && item_of(*it).decodes();
  });
  const auto could_be = static_cast<double>(in_it + left + asked_meanwhile_);
  gathered_.fill += fill_pace * (static_cast<double>(in_it) / could_be - gathered_.fill);
}

std::optional<sequence_id> run_queue::choose_victim(const batch_plan& plan, instant now) {
  std::vector<preemption_candidate> lack_memory;
  std::vector<preemption_candidate> prefills;
  for (const left_out& l : plan.left) {
    const auto it = sequences_.find(l.sequence);
    if (l.why != limit::memory || it == sequences_.end()) continue;
    (it->second.at.prefill_only ? prefills : lack_memory).push_back({l.sequence, it->second.at});
  }
  if (lack_memory.empty() && prefills.empty()) return std::nullopt;
  // Looks at all sequences, which costs little compared with the pass that computes the lost KV again.
  std::vector<preemption_candidate> with_kv;
  for (const auto& [sequence, q] : sequences_) {
    if (q.log.has_kv()) with_kv.push_back({sequence, q.at, q.log.kv_count()});
  }
  const bool is_prefill = lack_memory.empty();
  // A prefill takes no memory from others, but its own table may take too much.
  if (is_prefill && with_kv.size() != 1) return std::nullopt;
  auto& starving = is_prefill ? prefills : lack_memory;
  sort_starving(starving);
  for (const auto& one : starving) {
    const auto victim = scheduler::choose_victim(with_kv, one, now);
    if (!victim) continue;
    if (is_prefill && *victim != one.sequence) return std::nullopt;
    lose_kv(*sequences_.find(*victim));
    return victim;
  }
  return std::nullopt;
}

void run_queue::lose_kv(entry& e) {
  e.second.log.lose_kv();
  e.second.waits_until.reset();
}

void run_queue::forget_all_kv() {
  pass_out_ = false;
  for (entry& e : sequences_) {
    lose_kv(e);
    end_run(e);
    if (e.second.given_up) close(e, e.second.at.idle_since);
  }
}

void run_queue::wait_until(sequence_id sequence, instant until) {
  sequence_state& q = sequences_.at(sequence);
  REDLINE_ASSERT(!q.at.in_flight, "a sequence in flight does not wait to adopt KV");
  q.waits_until = until;
}

void run_queue::note_adopted(sequence_id sequence, std::uint32_t count) {
  sequence_state& q = sequences_.at(sequence);
  REDLINE_ASSERT(!q.at.in_flight && count < q.log.count(), "a sequence adopts KV only while it is not in flight");
  q.waits_until.reset();
  if (q.log.has_kv()) q.log.lose_kv();  // the new pages replace the old ones
  q.log.note_computed({0, count});
  q.cached_count = count;
}

std::uint32_t run_queue::known_count(sequence_id sequence) const {
  const auto it = sequences_.find(sequence);
  return it == sequences_.end() ? 0 : it->second.log.count();
}

std::uint64_t run_queue::pending_rows() const {
  std::uint64_t rows = 0;
  for (const auto& [id, q] : sequences_) {
    if (q.at.open && !q.at.prefill_only) rows += pending(q).count();
  }
  return rows;
}

double run_queue::prompt_row_us() const {
  constexpr std::uint32_t rows = 256;
  if (cost_.is_unmeasured()) return 0;
  return static_cast<double>(cost_.predict(cost::size_of_run(rows, rows, 0)).count()) / rows;
}

void run_queue::check_integrity() const {
  slots_.check_integrity();
  for (const auto& [sequence, q] : sequences_) {
    q.log.check_integrity();
    REDLINE_ASSERT(slots_.knows(sequence, q.at), "admission knows the state of each sequence");
    REDLINE_ASSERT(!q.at.open || pending(q).count() > 0, "an open round has tokens to compute");
  }
}

}  // namespace redline::scheduler
