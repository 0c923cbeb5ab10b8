#include "actors/serving/cache_manager.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "actors/serving/target_model.hpp"

namespace redline::actors {

using scheduler::round_kind;
using scheduler::submit_outcome;

namespace {
constexpr microseconds manager_period{500'000};
constexpr microseconds leader_patience{30'000'000};   // a prompt that takes longer is preempted again and again
constexpr std::uint32_t prefix_looks_max = 4;         // per sequence, since leaders may come and go
constexpr std::uint64_t pass_us_max = 3'600'000'000;  // no pass takes an hour
constexpr std::uint32_t stalled_retry_ms = 5'000;
constexpr microseconds asking_age_max{2'000'000};  // age of a request, for scheduler_report::asking_count
constexpr std::uint32_t shortages_max = 2;         // then a pass takes only runs that need no more memory
/// The time in which all of the memory is checked once, part by part.
constexpr microseconds check_interval{10'000'000};
/// Finding the recently used prefixes takes a millisecond, and many gateways ask.
constexpr microseconds kept_interval{900'000};

scheduler::queue_limits with_memory(scheduler::queue_limits limits, kv::pool_size size) {
  limits.memory = kv::amount_of(size);
  return limits;
}

std::unique_ptr<scheduler::policy> make_policy(const std::string& name) {
  auto policy = scheduler::make_policy(name);
  if (!policy) throw std::runtime_error(policy.error().describe());
  return std::move(*policy);
}

/// An upper bound of the bytes that the run takes in a message, with its page table and any other table.
std::size_t estimate_bytes(const batch_run& run, std::size_t tables) {
  constexpr std::size_t integer_bytes = 5, id_bytes = 9, other_bytes = 256;
  const std::size_t pages = (static_cast<std::size_t>(run.first_position) + run.tokens.size()) / kv::page_tokens + 1;
  std::size_t rule_tokens = run.sampling.banned_early.size() + run.sampling.allowed.size();
  for (const auto& sequence : run.sampling.banned_sequences) rule_tokens += 1 + sequence.size();
  return other_bytes + integer_bytes * (run.tokens.size() + run.latest.size() + 2 * run.counts.size() + rule_tokens) +
         run.counts.size() + tables * (1 + 3 * integer_bytes) * pages +
         (1 + integer_bytes + id_bytes) * run.sampling.logit_bias.size() + run.grammar.text.size() +
         integer_bytes * (run.grammar.shape.size() + run.grammar.state.size());
}

/// The lengths of a prompt before its last two messages: before the answer, and before what the user may change.
std::vector<std::uint32_t> partings_of(std::span<const token> prompt, token message_start) {
  std::vector<std::uint32_t> out;
  for (std::size_t i = prompt.size(); i > 0 && out.size() < 2; --i) {
    if (prompt[i - 1] == message_start) out.insert(out.begin(), static_cast<std::uint32_t>(i - 1));
  }
  return out;
}
}  // namespace

cache_manager::cache_manager(actor::actor_context& context, const scheduler_options& options, kv::pool_size size,
                             actor::actor_ref<target_model> target, listener changes)
    : actor_of(context),
      options_(options),
      size_(size),
      memory_(size),
      queue_(with_memory(options.limits, size), make_policy(options.policy)),
      grammars_(context.env().random() >> 1, options.automata),
      work_(context, options.pool),
      target_(target),
      batch_(context.env().random() >> 1),  // the pass of a manager that died must not look like one of ours
      kept_(context.env().random()),
      listener_(std::move(changes)) {
  statistics_.counts.pages_count = size.pages;
  statistics_.counts.states_count = size.state_slots;
  statistics_.counts.state_copies_max = size.state_copies;
  statistics_.counts.tokens_max = options.limits.tokens_max;
  if (listener_) memory_.note_prefix_changes();
}

void cache_manager::on_start() {
  // An earlier manager may have published prefixes.
  if (listener_) listener_({{.what = kv::prefix_change::kind::cleared}});
  target_lost_at_ = context().now();
  context().tell(target_, announce_target{});
  context().after(manager_period, manager_tick{});
}

void cache_manager::tell_prefix_changes() {
  if (!listener_) return;
  const auto changes = memory_.take_prefix_changes();
  if (!changes.empty()) listener_(changes);
}

// Rounds.

void cache_manager::on(const verify_run& m) {
  take({.session = context().sender(), .run = m, .span = context().span()});
  step();
}

void cache_manager::refuse(const asked_round& q, failure why, std::uint32_t retry_after_ms) {
  context().send(q.session, refused{q.run.round.sequence, std::move(why), retry_after_ms});
}

/// If splices do not fit, no part of our copy of the log can be trusted.
void cache_manager::ask_for_log(const asked_round& q) {
  const scheduler::round& r = q.run.round;
  context().send(q.session, log_needed{r.sequence, r.number, r.splices.empty() ? queue_.known_count(r.sequence) : 0});
}

void cache_manager::take(const asked_round& q) {
  const scheduler::round& r = q.run.round;
  if (is_stalled()) {
    return refuse(q,
                  {errc::not_ready, "the target model has not answered for " +
                                        std::to_string(options_.target_patience.count() / 1'000'000) + " s"},
                  stalled_retry_ms);
  }
  sequence_client* const known = clients_.find(r.sequence);
  if (known != nullptr) known->heard = context().now();
  const bool is_compiling = compiling_.contains(r.sequence);
  if (!is_compiling && clients_.lacks_terms(q)) return ask_for_log(q);
  if (is_compiling || (q.run.terms && !grammars_.is_compiled(q.run.terms->grammar))) return compile_for(q);
  const sequence_terms& terms = q.run.terms ? *q.run.terms : known->terms;
  const bool is_new = !queue_.holds(r.sequence);
  const auto done = queue_.submit(r, terms.facts, context().now());
  switch (done.outcome) {
    case submit_outcome::taken:
    case submit_outcome::nothing_to_do:
      return open(q, done, is_new);
    case submit_outcome::busy:
      clients_.let_wait(q);
      [[fallthrough]];
    case submit_outcome::already_running:
      context().send(q.session, run_pending{r.sequence, r.number});
      return;
    case submit_outcome::stale:
      return;
    case submit_outcome::already_answered:
      std::visit([&](const auto& last) { context().send(q.session, last); }, known->last);
      return;
    case submit_outcome::log_gap:
      return ask_for_log(q);
    case submit_outcome::queue_full:
      ++statistics_.counts.refused_total;
      return refuse(q,
                    {errc::queue_full, std::to_string(queue_.running_count()) + " requests run and " +
                                           std::to_string(queue_.waiting_count()) + " wait"},
                    statistics_.retry_after_ms());
    case submit_outcome::too_long: {
      const auto most =
          std::min(std::uint64_t{options_.limits.tokens_max}, std::uint64_t{size_.pages} * kv::page_tokens);
      return refuse(q, {errc::context_length_exceeded, "expected at most " + std::to_string(most) +
                                                           " tokens in a sequence, found " +
                                                           std::to_string(terms.facts.tokens_max)});
    }
    case submit_outcome::empty_log:
      return refuse(q, {errc::invalid_argument, "the prompt has no tokens"});
  }
}

/// Keeps a round until its grammar is compiled, on another thread: a pass that needs the grammar would keep all others
/// waiting. Gateways in this process have compiled it already.
void cache_manager::compile_for(const asked_round& q) {
  const scheduler::round& r = q.run.round;
  auto& waiting = compiling_[r.sequence];
  const bool is_first = waiting.empty();
  let_wait(waiting, q);
  if (!is_first) {
    context().send(q.session, run_pending{r.sequence, r.number});
    return;
  }
  const auto begun = work_.run(
      q.run.terms->facts.tenant, q.run.terms->grammar.text.size(),
      [automata = options_.automata, grammar = q.run.terms->grammar] { return automata->get(grammar); },
      [this, sequence = r.sequence](const auto& done) { take_compiled(sequence, done ? *done : done.error()); });
  if (begun) return;
  compiling_.erase(r.sequence);
  refuse(q, begun.error(), statistics_.retry_after_ms());
}

/// The automaton is the caller's, so it is known while the rounds are taken.
void cache_manager::take_compiled(sequence_id sequence,
                                  const result<std::shared_ptr<const grammar::byte_automaton>>& automaton) {
  const auto at = compiling_.extract(sequence);
  if (at.empty()) return;  // released since then
  for (const asked_round& q : at.mapped()) {
    if (automaton)
      take(q);
    else
      refuse(q, automaton.error());
  }
  step();
}

/// Records a round that the queue has taken.
void cache_manager::open(const asked_round& q, const scheduler::submitted& taken, bool is_new) {
  const scheduler::round& r = q.run.round;
  sequence_client& c = clients_.open(r.sequence);
  if (q.run.terms) {
    c.terms = *q.run.terms;
    c.grammar = grammars_.share(c.terms.grammar);
    c.terms.grammar = {};
  }
  c.session = q.session;
  c.heard = context().now();
  c.queued_at = context().now();
  if (!r.splices.empty() || r.from < c.counts.counted()) c.counts.forget();
  c.prompt_count = q.run.prompt_count;
  c.evicted_count = q.run.evicted_count;
  c.grammar_state = q.run.grammar_state;
  c.mtp = q.run.mtp;
  c.is_scored = r.kind == round_kind::score;
  const bool is_prefill = r.kind == round_kind::prefill;
  if (!is_prefill) {
    const bool is_remote = actor::process_of(q.session) != actor::process_of(self().where);
    c.trace.begin(options_.tracer, context().env(), q.span, is_remote);
  }
  for (const kv::table_splice& s : taken.splices) memory_.splice(r.sequence, s);
  trim_memory(r.sequence);
  if (is_new) {
    c.scope = options_.sharing == prefix_sharing::all ? tenant_id{} : c.terms.facts.tenant;
    if (c.terms.prefix_scope != 0) c.scope = {c.terms.prefix_scope};
    statistics_.counts.queried_total += queue_.log(r.sequence).count();
    followers_.add(r.sequence, c.scope);
    look_for_prefix(r.sequence);
    if (!is_prefill) c.unacknowledged_first_round = r.number;
  }
  if (taken.outcome != submit_outcome::nothing_to_do) return;
  const prefilled done{r.sequence, r.number, queue_.log(r.sequence).exact_count()};
  c.last = done;
  context().send(q.session, done);
}

void cache_manager::on(const give_up_round& m) {
  const auto is_given_up = [&](const asked_round& one) { return one.run.round.number == m.round; };
  if (const auto at = compiling_.find(m.sequence); at != compiling_.end()) {
    std::erase_if(at->second, is_given_up);
    if (at->second.empty()) compiling_.erase(at);
  }
  sequence_client* const known = clients_.find(m.sequence);
  if (known == nullptr) return;
  std::erase_if(known->overtaking, is_given_up);
  queue_.give_up(m.sequence, m.round, context().now());
  known->trace.end();
  let_followers_look(m.sequence);
  step();  // a pass may have waited for its next round
}

void cache_manager::on(const release_sequence& m) {
  compiling_.erase(m.sequence);
  if (!queue_.holds(m.sequence)) return;
  offer_prefix_of(m.sequence);
  clients_.at(m.sequence).trace.end();
  forget(m.sequence);
  step();
}

void cache_manager::forget(sequence_id sequence) {
  queue_.release(sequence);
  clients_.erase(sequence);
  followers_.remove(sequence);
  memory_.release(sequence);
  let_followers_look(sequence);
}

void cache_manager::refuse_sequence(sequence_id sequence, const failure& why) {
  sequence_client* const known = clients_.find(sequence);
  if (known == nullptr) return;
  context().send(known->session, refused{sequence, why});
  known->trace.end(&why);
  forget(sequence);
}

// Passes.

/// Sends the next pass, unless one is out or there is nothing to compute.
void cache_manager::step() {
  if (!is_pass_out_ && target_up_) {
    for (const asked_round& q : clients_.take_waiting()) take(q);
    while (plan_pass()) {
    }
  }
  tell_prefix_changes();
}

std::vector<kv::run_range> cache_manager::make_ranges() const {
  std::vector<kv::run_range> out;
  for (const auto& run : plan_.runs) {
    out.push_back({run.sequence, run.first, run.rows(), run.draft_count});
    if (size_.state_slots == 0 || run.log_count < 2 || !options_.message_start) continue;
    out.back().partings = partings_of(queue_.log(run.sequence).tokens(), *options_.message_start);
  }
  return out;
}

/// Makes one attempt. Returns false if a pass is on its way or nothing more can be done now; true if there may be more
/// to plan, because memory came free, or a sequence lost its KV or its round.
bool cache_manager::plan_pass() {
  const instant now = context().now();
  const auto growth = [this](sequence_id sequence) { return memory_.next(sequence); };
  auto budget = options_.budget;
  for (std::uint32_t shortages = 0;; ++shortages) {
    // A run in the middle of a log may pin more than its sequence had when the pass was planned.
    budget.free = shortages < shortages_max ? memory_.free() : kv::amount{};
    plan_ = queue_.plan(budget, now, growth);
    if (plan_.runs.empty()) return !plan_.left.empty() && make_memory(now) ? true : (arm_replan(now), false);
    auto runs = make_runs();
    if (!runs) return true;
    auto memory = memory_.allocate(make_ranges());
    if (auto* given = std::get_if<kv::allocated>(&memory)) {
      send_pass(std::move(*runs), std::move(*given));
      return false;
    }
    if (const auto* lost = std::get_if<kv::kv_lost>(&memory)) {
      for (const sequence_id sequence : lost->sequences) compute_again(sequence);
      return true;
    }
  }
}

/// When nothing fits, moves scattered tokens together or takes the KV of a sequence.
bool cache_manager::make_memory(instant now) {
  for (const scheduler::left_out& l : plan_.left) {
    if (l.why == scheduler::limit::memory && memory_.compact(l.sequence)) return true;
  }
  const auto victim = queue_.choose_victim(plan_, now);
  if (!victim) return false;
  ++statistics_.counts.preempted_total;
  memory_.release(*victim);
  return true;
}

/// now: when the plan was made. A timer that is due later is left alone: planning once more does no harm.
void cache_manager::arm_replan(instant now) {
  const auto next = queue_.replan_at();
  if (!next || (replan_at_ && *replan_at_ <= *next)) return;
  replan_at_ = next;
  context().after(*next - now, replan{});
}

void cache_manager::on(const replan&) {
  replan_at_.reset();
  step();
}

/// Turns the plan into runs that fit into one message; the rest stays for the next pass. Returns nullopt when the plan
/// must be made again, because a sequence that never fits was refused.
std::optional<std::vector<batch_run>> cache_manager::make_runs() {
  std::vector<batch_run> runs;
  std::size_t bytes = 0;
  cost::work_size size;
  for (const auto& planned : plan_.runs) {
    batch_run run = make_run(planned);
    bytes += estimate_bytes(run, size_.window_pages == 0 ? 1 : 2);
    if (bytes > options_.batch_bytes_max || run.counts.size() > sizes::array_count_max) break;
    size = size + cost::size_of_run(planned.first, planned.rows(), planned.wants_logits ? planned.draft_count + 1 : 0);
    runs.push_back(std::move(run));
  }
  if (runs.size() == plan_.runs.size()) return runs;
  if (runs.empty()) {
    refuse_sequence(
        plan_.runs[0].sequence,
        {errc::invalid_argument,
         "the penalties need " + std::to_string(bytes) + " bytes for the answer so far, expected at most " +
             std::to_string(options_.batch_bytes_max) + "; ask for a shorter answer or leave the penalties out"});
    return std::nullopt;
  }
  plan_.runs.resize(runs.size());
  plan_.size = size;
  plan_.predicted = queue_.cost().predict(size);
  return runs;
}

batch_run cache_manager::make_run(const scheduler::planned_run& planned) {
  sequence_client& c = clients_.at(planned.sequence);
  const sampling::sampling_params& sampling = c.terms.sampling;
  const auto log = queue_.log(planned.sequence).tokens();
  const auto whole_draft = queue_.draft(planned.sequence);
  const auto draft = whole_draft.first(planned.draft_count);
  const auto mine = log.subspan(planned.first, planned.log_count);
  batch_run run{.sequence = planned.sequence, .first_position = static_cast<position>(planned.first)};
  run.tokens.assign(mine.begin(), mine.end());
  run.tokens.insert(run.tokens.end(), draft.begin(), draft.end());
  run.draft_count = planned.draft_count;
  run.logits_begin = planned.wants_logits ? planned.log_count - 1 : planned.rows();
  run.prompt_count = c.prompt_count;
  run.log_count = log.size() + c.evicted_count;
  run.sampling = sampling;
  run.logprobs = c.is_scored ? c.terms.prompt_logprobs : c.terms.logprobs;
  run.scores_draft = c.is_scored;
  if (!planned.wants_logits || c.is_scored) return run;
  run.mtp = c.mtp;
  if (c.grammar) {
    grammars_.put(run, *c.grammar, c.grammar_state, batch_ + 1, target_start_id_);
    // Whether a copied token is kept must not depend on how much of the draft the pass takes.
    if (draft.size() < whole_draft.size()) run.after_draft = whole_draft[draft.size()];
  }
  if (!sampling.needs_history()) return run;
  const auto output = log.subspan(std::min<std::size_t>(c.prompt_count, log.size()));
  const auto latest = output.last(std::min(output.size(), sampling.sequences_reach()));
  run.latest.assign(latest.begin(), latest.end());
  if (sampling.has_penalties()) run.counts = c.counts.count(log, c.prompt_count, sampling.repetition_penalty != 1);
  return run;
}

void cache_manager::send_pass(std::vector<batch_run> runs, kv::allocated memory) {
  forward_batch pass{
      .batch = ++batch_, .runs = std::move(runs), .moves = std::move(memory.moves), .copies = std::move(memory.copies)};
  has_moves_ = !pass.moves.empty() || !pass.copies.empty();
  for (std::size_t i = 0; i < pass.runs.size(); ++i) pass.runs[i].memory = std::move(memory.runs[i]);
  queue_.begin(plan_);
  is_pass_out_ = true;
  sent_at_ = context().now();
  for (const auto& run : plan_.runs) {
    sequence_client& c = clients_.at(run.sequence);
    if (const auto since = std::exchange(c.queued_at, std::nullopt)) c.queued = sent_at_ - *since;
  }
  context().tell(target_, pass);
}

void cache_manager::on(const batch_done& m) {
  if (!is_pass_out_ || m.batch != batch_) return;
  is_pass_out_ = false;
  const bool is_ours = std::equal(m.results.begin(), m.results.end(), plan_.runs.begin(), plan_.runs.end(),
                                  [](const auto& r, const auto& run) { return r.sequence == run.sequence; });
  if (m.lacks_grammars && !m.why_not && grammars_.spell_all()) {
    put_back_pass();
  } else if (m.why_not || m.lacks_grammars || !is_ours) {
    fail_pass(m.why_not.value_or(
        m.lacks_grammars
            ? failure{errc::internal, "the target model reports a missing grammar that was sent to it"}
            : failure{errc::internal, "the target model's answer does not match the batch that was sent"}));
    if (m.why_not && has_moves_) lose_all_kv();  // what was to be copied before the pass was not
  } else {
    answer_rounds(m, microseconds{static_cast<std::int64_t>(std::min(m.elapsed_us, pass_us_max))});
  }
  step();
}

/// Takes the results of a pass, and answers the rounds that are over.
void cache_manager::answer_rounds(const batch_done& m, microseconds took) {
  grammars_.note_batch_done();
  std::vector<scheduler::run_answer> answers;
  // A run without an answer counts as one token, in a sequence that is released below.
  for (const auto& r : m.results) answers.push_back({r.accepted_count, r.why_not ? std::vector<token>{0} : r.tokens});
  statistics_.note_pass(plan_, took, m.experts_count);
  statistics_.counts.mtp_us_total += std::min(m.mtp_us, pass_us_max);
  const microseconds drafted{static_cast<std::int64_t>(std::min(m.mtp_us, pass_us_max))};
  const auto done = queue_.complete(plan_, answers, took, context().now() - drafted, m.experts_count);
  for (const auto& run : plan_.runs) {
    const sequence_client* const c = clients_.find(run.sequence);
    if (c == nullptr) continue;
    if (run.wants_logits && c->grammar) shared_grammars::note_told(*c->grammar, target_start_id_);
    memory_.note_computed(run.sequence);
    trim_memory(run.sequence);
  }
  std::vector<sequence_id> prompts_done;
  for (const auto& outcome : done) {
    const auto at = std::find_if(m.results.begin(), m.results.end(),
                                 [&](const run_result& r) { return r.sequence == outcome.sequence; });
    if (at->why_not) continue;
    sequence_client& c = clients_.at(outcome.sequence);
    const std::uint32_t exact_count = queue_.log(outcome.sequence).exact_count();
    if (queue_.facts_of(outcome.sequence).prefill_only) {
      c.last = prefilled{outcome.sequence, outcome.round, exact_count};
    } else {
      verified& v = c.last.emplace<verified>(verified{.sequence = outcome.sequence,
                                                      .round = outcome.round,
                                                      .tokens = at->tokens,
                                                      .logprobs = at->logprobs,
                                                      .verified_count = outcome.verified_count,
                                                      .passes = outcome.passes,
                                                      .rows = outcome.rows,
                                                      .recomputed_count = outcome.recomputed_count,
                                                      .cached_count = outcome.cached_count,
                                                      .exact_count = exact_count,
                                                      .step = step_cost_of(outcome.sequence, done.size()),
                                                      .queued_us = static_cast<std::uint64_t>(c.queued.count()),
                                                      .mtp = at->mtp});
      if (options_.budget.whole_drafts) v.mtp.row_us = 0;
      c.unacknowledged_first_round.reset();
      c.trace.note_round(v, c.prompt_count);
    }
    if (followers_.note_prompt_done(outcome.sequence)) {
      offer_prefix_of(outcome.sequence);
      prompts_done.push_back(outcome.sequence);
    }
    std::visit([&](const auto& last) { context().send(c.session, last); }, c.last);
  }
  for (const sequence_id sequence : prompts_done) let_followers_look(sequence);
  for (const run_result& r : m.results) {
    if (!r.why_not) continue;
    ++statistics_.counts.overflowed_total;
    context().log(log_level::error, "sequence " + std::to_string(r.sequence.value) + ": " + r.why_not->describe());
    refuse_sequence(r.sequence, *r.why_not);
  }
  serve_followers();
}

/// Takes back a pass that was not computed, with its memory. The copies before it were made.
void cache_manager::put_back_pass() {
  queue_.put_back(plan_);
  for (const auto& run : plan_.runs) {
    memory_.put_back(run.sequence);
    if (queue_.holds(run.sequence)) trim_memory(run.sequence);
  }
}

void cache_manager::fail_pass(const failure& why) {
  context().log(log_level::error, "a batch failed: " + why.describe());
  for (const auto& run : plan_.runs) refuse_sequence(run.sequence, why);
}

/// Returns zeros with --draft-length whole, as does the time of MTP drafts, so that the number of passes does not
/// depend on the machine's speed.
cost::step_cost cache_manager::step_cost_of(sequence_id sequence, std::size_t sessions) const {
  if (options_.budget.whole_drafts) return {};
  auto cost = cost::step_cost_at(queue_.cost(), queue_.log(sequence).count());
  cost.sessions = static_cast<std::uint32_t>(std::max<std::size_t>(sessions, 1));
  return cost;
}

// Memory.

/// Gives back memory of tokens that no longer have KV, and computes again what the memory cannot continue from.
void cache_manager::trim_memory(sequence_id sequence) {
  const std::uint32_t count = queue_.log(sequence).kv_count();
  const std::uint32_t left = memory_.rewind(sequence, count);
  if (left < count) queue_.keep_kv(sequence, left);
}

/// The sequence must go on after a position where some of its memory is gone. A cached prefix may have more of it.
void cache_manager::compute_again(sequence_id sequence) {
  ++statistics_.counts.preempted_total;
  queue_.forget_kv(sequence);
  memory_.release(sequence);
  look_for_prefix(sequence);
}

/// Forgets a pass that is out, too.
void cache_manager::lose_all_kv() {
  is_pass_out_ = false;
  queue_.forget_all_kv();
  memory_.clear();
}

/// Gives a sequence the cached prefix of its log. Its last token is always computed, for its logits. A prefill, which
/// leaves the last token out, computes one more, so that there is something to do.
void cache_manager::look_for_prefix(sequence_id sequence) {
  const scheduler::sequence_log& log = queue_.log(sequence);
  const std::uint32_t left = queue_.facts_of(sequence).prefill_only ? 2 : 1;
  if (options_.sharing == prefix_sharing::off || log.count() < kv::page_tokens + left) return;
  sequence_client& c = clients_.at(sequence);
  ++c.prefix_looks;
  const std::uint32_t before = log.kv_count();
  const std::uint32_t found = memory_.adopt(sequence, c.scope, log.tokens().first(log.count() - left));
  queue_.note_adopted(sequence, found);
  statistics_.counts.cached_total += found - std::min(before, found);
  look_for_leader(sequence);
}

/// A prompt that is being computed now may share more than the cached prefix.
void cache_manager::look_for_leader(sequence_id sequence) {
  if (clients_.at(sequence).prefix_looks >= prefix_looks_max) return;
  const auto chosen = followers_.choose_leader(sequence, queue_);
  if (!chosen) return;
  if (chosen->is_computed) {
    offer_prefix_of(chosen->leader);
    look_for_prefix(sequence);
  } else {
    followers_.follow(sequence, *chosen);
    queue_.wait_until(sequence, context().now() + leader_patience);
  }
}

void cache_manager::offer_prefix_of(sequence_id sequence) {
  const auto tokens = queue_.log(sequence).computed_prefix();
  if (options_.sharing == prefix_sharing::off || tokens.size() < kv::page_tokens) return;
  memory_.offer(sequence, clients_.at(sequence).scope, tokens);
}

/// Called when the leader has offered what it computed, or is gone.
void cache_manager::let_followers_look(sequence_id leader) {
  for (const sequence_id sequence : followers_.release_followers(leader)) {
    if (queue_.waits(sequence)) look_for_prefix(sequence);
  }
}

/// After a pass, a follower whose common part is computed adopts it, and one that would wait for nothing goes on alone.
void cache_manager::serve_followers() {
  for (const auto& run : plan_.runs) {
    if (!queue_.holds(run.sequence)) continue;
    const auto computed = static_cast<std::uint32_t>(queue_.log(run.sequence).computed_prefix().size());
    const auto served = followers_.release_served(run.sequence, computed);
    if (!served.empty()) offer_prefix_of(run.sequence);
    for (const sequence_id sequence : served) {
      if (queue_.waits(sequence)) look_for_prefix(sequence);
    }
  }
  for (const sequence_id sequence : followers_.release_stalled(plan_, queue_)) queue_.end_wait(sequence);
}

void cache_manager::on(const read_kept& m) {
  if (!kept_at_ || context().now() - *kept_at_ >= kept_interval) {
    kept_at_ = context().now();
    kept_.update(memory_.recent_blocks(kept_keys_max));
  }
  auto news = kept_.since(m.revision);
  context().send(context().sender(),
                 kept_prefixes{news.revision, news.is_all, std::move(news.added), std::move(news.dropped)});
}

bool cache_manager::on_idle() {
  const std::uint32_t parts = (size_.pages + check_pages_max - 1) / check_pages_max;
  if (context().now() - checked_ < check_interval / std::max(parts, 1U)) return false;
  checked_ = context().now();
  checked_count_ += memory_.check_some(check_pages_max);
  return false;
}

void cache_manager::check_integrity() const {
  queue_.check_integrity();
  followers_.check_integrity();
  memory_.check_integrity();
}

// The target model, and processes that go.

/// Marks the target model as down until it sends target_ready, which it is asked for repeatedly.
void cache_manager::lose_target() {
  if (std::exchange(target_up_, false)) target_lost_at_ = context().now();
}

/// Whether the target model has been silent for so long that sessions should not go on waiting.
bool cache_manager::is_stalled() const {
  if (!target_up_) return context().now() - target_lost_at_ >= options_.target_patience;
  return is_pass_out_ && context().now() - sent_at_ >= std::max(options_.target_patience, 8 * plan_.predicted);
}

void cache_manager::on(const target_ready& m) {
  if (m.pages_count < size_.pages || m.window_pages_count < size_.window_pages ||
      m.rows_max < options_.budget.rows_max) {
    std::string why_not = "the target model has " + std::to_string(m.pages_count) + " pages and " +
                          std::to_string(m.rows_max) + " rows, expected at least " + std::to_string(size_.pages) +
                          " and " + std::to_string(options_.budget.rows_max) +
                          "; start both processes with the same options";
    if (why_not == statistics_.counts.why_not) return;  // the answer to a repeated request
    statistics_.counts.why_not = std::move(why_not);
    context().log(log_level::error, statistics_.counts.why_not);
    return;
  }
  statistics_.counts.why_not.clear();
  // Its KV is unchanged: this answers a repeated announce_target.
  if (target_up_ && m.start_id != 0 && m.start_id == target_start_id_ && !is_stalled()) return;
  target_up_ = true;
  target_start_id_ = m.start_id;
  std::vector<cost::cost_sample> samples;
  for (const pass_cost& c : m.costs) {
    samples.push_back({cost::size_of_run(c.context, c.rows, c.logits),
                       microseconds{static_cast<std::int64_t>(std::min(c.took_us, pass_us_max))}, c.experts_count});
  }
  queue_.learn_costs(samples, m.mixture);
  lose_all_kv();
  step();
  for (const actor::address& asked : std::exchange(wait_for_target_, {})) tell_status(asked, false);
}

void cache_manager::on(const manager_tick&) {
  context().after(manager_period, manager_tick{});
  const instant now = context().now();
  if (!target_up_ || is_stalled()) context().tell(target_, announce_target{});
  const auto silent = clients_.where([&](sequence_id sequence, const sequence_client& c) {
    return !queue_.awaits_answer(sequence) && now - c.heard >= options_.abandoned_after;
  });
  for (const sequence_id sequence : silent) on(release_sequence{sequence});
  // New sequences that are not answered at once learn that they will be.
  for (auto& [sequence, c] : clients_.all()) {
    if (const auto round = std::exchange(c.unacknowledged_first_round, std::nullopt))
      context().send(c.session, run_pending{sequence, *round});
  }
  step();  // some may get the slot of an idle sequence
  if (is_pass_out_) return;
  queue_.check_integrity();
  followers_.check_integrity();
}

void cache_manager::on(const report_status& m) {
  const actor::address asks = context().sender();
  if (!target_up_ && std::ranges::find(wait_for_target_, asks) == wait_for_target_.end())
    wait_for_target_.push_back(asks);
  tell_status(asks, m.with_details);
}

void cache_manager::tell_status(const actor::address& asks, bool with_details) {
  const instant now = context().now();
  statistics_.counts.ready = target_up_ && !is_stalled();
  statistics_.counts.pages_held = size_.pages - std::min(memory_.free()[kv::kind::page], size_.pages);
  statistics_.counts.states_held =
      size_.state_slots - std::min(memory_.free()[kv::kind::state_slot], size_.state_slots);
  statistics_.counts.state_copies = memory_.state_copies();
  const auto asking = clients_.where([&](sequence_id sequence, const sequence_client& c) {
    return queue_.awaits_answer(sequence) || now - c.heard < asking_age_max;
  });
  statistics_.counts.asking_count = static_cast<std::uint32_t>(asking.size());
  context().send(asks, statistics_.report(queue_, actor::process_of(self().where), with_details));
}

void cache_manager::on(const actor::peer_state& m) {
  if (m.reachable) return;
  const auto orphans =
      clients_.where([&](sequence_id, const sequence_client& c) { return actor::process_of(c.session) == m.process; });
  for (const sequence_id sequence : orphans) on(release_sequence{sequence});
}

// A session that cannot be reached is gone, and its supervisor knows. What the target model missed is repeated when it
// comes back: target_ready starts everything again.
void cache_manager::on(const actor::undeliverable& m) {
  if (m.to == target_.where) {
    // Normal while the target model loads.
    context().log(target_up_ ? log_level::warning : log_level::debug,
                  "cannot reach " + actor::to_string(m.to) + ": " + m.why.describe());
    const bool may_pass_later = m.why.code == errc::unreachable || m.why.code == errc::mailbox_full;
    if (m.what != forward_batch::id || may_pass_later) return lose_target();
    if (!is_pass_out_ || m.about != batch_) return;
    fail_pass(m.why);
    lose_all_kv();
    return step();
  }
  const auto orphans = clients_.where(
      [&](sequence_id, const sequence_client& c) { return c.session == m.to && m.why.code == errc::unreachable; });
  for (const sequence_id sequence : orphans) on(release_sequence{sequence});
}

}  // namespace redline::actors

template class redline::actor::actor_cell<redline::actors::cache_manager>;
