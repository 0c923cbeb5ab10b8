#include "actors/serving/verify_scheduler.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "actors/serving/cache_manager.hpp"
#include "actors/serving/target_model.hpp"

namespace redline::actors {

using scheduler::submit_outcome;

namespace {
constexpr microseconds tick{500'000};
constexpr microseconds leader_patience{30'000'000};   // a prompt that takes longer is preempted again and again
constexpr std::uint32_t prefix_questions_max = 4;     // of a sequence: leaders may come and go
constexpr std::uint64_t pass_us_max = 3'600'000'000;  // no pass takes an hour
constexpr std::uint32_t stalled_retry_ms = 5'000;
constexpr microseconds asking_age_max{2'000'000};  // of a question, for scheduler_report::asking_count

/// At most as many bytes as the run takes in a message, with its page table and what other tables it gets.
std::size_t estimate_bytes(const batch_run& run, std::size_t tables) {
  constexpr std::size_t integer_bytes = 5, id_bytes = 9, other_bytes = 256;
  const std::size_t pages = (static_cast<std::size_t>(run.first_position) + run.tokens.size()) / kv::page_tokens + 1;
  std::size_t rule_tokens = run.sampling.banned_early.size() + run.sampling.allowed.size();
  for (const auto& sequence : run.sampling.banned_sequences) rule_tokens += 1 + sequence.size();
  return other_bytes + integer_bytes * (run.tokens.size() + run.latest.size() + 2 * run.counts.size() + rule_tokens) +
         run.counts.size() + tables * (1 + 3 * integer_bytes) * pages +
         (1 + integer_bytes + id_bytes) * run.sampling.logit_bias.size() + run.grammar.schema.size() +
         integer_bytes * (run.grammar.shape.size() + run.grammar.state.size());
}
}  // namespace

verify_scheduler::verify_scheduler(actor::actor_context& context, const scheduler_options& options,
                                   std::unique_ptr<scheduler::policy> policy, actor::actor_ref<cache_manager> cache,
                                   actor::actor_ref<target_model> target)
    : actor_of(context), options_(options), queue_(options.limits, std::move(policy)), cache_(cache), target_(target) {
  report_.pages_count = options.limits.pages_count;
}

void verify_scheduler::on_start() {
  // Numbers of a scheduler that died must not look like ours.
  sent_.batch = context().env().random() >> 1;
  epoch_ = context().env().random() >> 1;
  grammar_name_ = context().env().random() >> 1;
  target_lost_at_ = context().now();
  context().tell(target_, announce_target{});
  context().after(tick, scheduler_tick{});
}

void verify_scheduler::on(const verify_run& m) {
  take({.session = context().sender(), .run = m, .span = context().span()});
  step();
}

void verify_scheduler::on(const prefill_run& m) {
  take({.session = context().sender(),
        .run = {.sequence = m.sequence,
                .tenant = m.tenant,
                .round = m.round,
                .log = m.log,
                .prompt_count = m.log.from + static_cast<std::uint32_t>(m.log.tokens.size()),
                .tokens_max = m.tokens_max,
                .splices = m.splices},
        .prefill_only = true});
  step();
}

void verify_scheduler::take(const question& q) {
  const verify_run& m = q.run;
  const auto refuse = [&](failure why, std::uint32_t retry_after_ms = 0) {
    context().send(q.session, refused{m.sequence, std::move(why), retry_after_ms});
  };
  if (is_stalled()) {
    return refuse({errc::not_ready, "the target model has not answered for " +
                                        std::to_string(options_.target_patience.count() / 1'000'000) + " s"},
                  stalled_retry_ms);
  }
  if (const auto known = clients_.find(m.sequence); known != clients_.end()) known->second.heard = context().now();
  // If splices do not fit, no part of our copy of the log can be trusted.
  const auto ask_for_log = [&] {
    context().send(q.session, log_needed{m.sequence, m.round, m.splices.empty() ? queue_.known_count(m.sequence) : 0});
  };
  if (lacks_grammar_of(q)) return ask_for_log();
  std::vector<scheduler::draft_stretch> chances;
  for (const auto& part : m.parts) chances.push_back({part.count, part.chance()});
  std::vector<scheduler::log_splice> splices;
  for (const log_splice& s : m.splices) {
    splices.push_back({s.at, s.removed_count, s.tokens, kv::keeps_later(s.policy), kv::moves_later(s.policy),
                       static_cast<std::uint8_t>(s.policy)});
  }
  const scheduler::submission round{.sequence = m.sequence,
                                    .tenant = m.tenant,
                                    .round = m.round,
                                    .splices = splices,
                                    .from = m.log.from,
                                    .tail = m.log.tokens,
                                    .draft = m.draft,
                                    .chances = chances,
                                    .tokens_max = m.tokens_max,
                                    .prefill_only = q.prefill_only,
                                    .scores_draft = m.scores_draft};
  const bool is_new = !queue_.holds(m.sequence);
  const submit_outcome outcome = queue_.submit(round, context().now());
  switch (outcome) {
    case submit_outcome::taken:
    case submit_outcome::nothing_to_do: {
      auto& c = clients_[m.sequence];
      if (m.grammar.kind != grammar::grammar_kind::known) c.grammar = share_grammar(m.grammar);
      c.grammar_state = m.grammar.state;
      c.session = q.session;
      c.heard = context().now();
      c.queued_at = context().now();
      if (!m.splices.empty() || m.log.from < c.counts.counted()) c.counts.forget();
      c.prompt_count = m.prompt_count;
      c.sampling = m.sampling;
      c.logprobs = m.logprobs;
      c.evicted_count = m.evicted_count;
      c.scores_draft = m.scores_draft;
      if (!q.prefill_only) begin_trace(c, q);
      if (is_new) {
        c.scope = options_.sharing == prefix_sharing::all ? tenant_id{} : m.tenant;
        if (m.prefix_scope != 0) c.scope = {m.prefix_scope};
        report_.queried_total += queue_.log(m.sequence).count();
        followers_.add(m.sequence, c.scope);
        look_for_prefix(m.sequence);
        if (!q.prefill_only) c.untold = m.round;
      }
      if (outcome == submit_outcome::nothing_to_do) {
        const prefilled done{m.sequence, m.round, queue_.log(m.sequence).exact_count()};
        c.last = done;
        context().send(q.session, done);
      }
      return;
    }
    case submit_outcome::busy: {
      // Earlier ones stay queued: its splices apply to the log that they leave.
      auto& waiting = clients_.at(m.sequence).overtaking;
      const auto same = [&](const auto& one) { return one.run.round >= m.round; };
      if (std::none_of(waiting.begin(), waiting.end(), same)) waiting.push_back(q);
      overtaken_ = true;
      context().send(q.session, run_pending{m.sequence, m.round});
      return;
    }
    case submit_outcome::already_running:
      context().send(q.session, run_pending{m.sequence, m.round});
      return;
    case submit_outcome::stale:
      return;
    case submit_outcome::already_answered:
      std::visit([&](const auto& last) { context().send(q.session, last); }, clients_.at(m.sequence).last);
      return;
    case submit_outcome::log_gap:
      return ask_for_log();
    case submit_outcome::queue_full:
      ++report_.refused_total;
      refuse({errc::queue_full, std::to_string(queue_.running_count()) + " requests run and " +
                                    std::to_string(queue_.waiting_count()) + " wait"},
             retry_after_ms());
      return;
    case submit_outcome::too_long:
      refuse({errc::context_length_exceeded,
              "expected at most " +
                  std::to_string(
                      std::min(options_.limits.tokens_max, options_.limits.pages_count * options_.budget.page_tokens)) +
                  " tokens in a sequence, found " + std::to_string(m.tokens_max)});
      return;
    case submit_outcome::empty_log:
      refuse({errc::invalid_argument, "the prompt has no tokens"});
      return;
  }
}

/// It says that we have it, as of a round before: of this session, not of another that had the sequence.
bool verify_scheduler::lacks_grammar_of(const question& q) const {
  if (q.run.grammar.kind != grammar::grammar_kind::known) return false;
  const auto known = clients_.find(q.run.sequence);
  return known == clients_.end() || !known->second.grammar || known->second.session != q.session;
}

std::shared_ptr<verify_scheduler::shared_grammar> verify_scheduler::share_grammar(const grammar::constraint& text) {
  if (text.kind == grammar::grammar_kind::none) return nullptr;
  const std::size_t digest = std::hash<std::string_view>()(text.schema);
  for (const auto& [sequence, c] : clients_) {
    if (c.grammar && c.grammar->digest == digest && c.grammar->text.same_grammar(text)) return c.grammar;
  }
  auto fresh =
      std::make_shared<shared_grammar>(shared_grammar{.text = text, .digest = digest, .name = ++grammar_name_});
  fresh->text.state.clear();
  return fresh;
}

/// Of a borrowed sequence one answer comes after the other.
void verify_scheduler::begin_trace(client& c, const question& q) {
  if (c.traced && c.traced->of == q.span) return;
  end_trace(c);
  if (!options_.tracer || !q.span) return;
  const bool is_elsewhere = actor::process_of(q.session) != actor::process_of(self().where);
  c.traced = std::make_unique<traced_answer>(traced_answer{.of = q.span});
  auto& env = context().env();
  c.traced->sequence = {options_.tracer, env, q.span, "redline.sequence",
                        is_elsewhere ? trace::span_kind::server : trace::span_kind::internal};
  c.traced->prompt = {options_.tracer, env, c.traced->sequence.context(), "redline.prompt"};
}

/// The first round reads the prompt; later ones are events of the sequence's span.
void verify_scheduler::trace_round(client& c, const verified& answer) {
  if (!c.traced) return;
  traced_answer& t = *c.traced;
  ++t.rounds;
  t.passes += answer.passes;
  t.rows += answer.rows;
  t.drafted += answer.verified_count;
  t.accepted += answer.accepted_count();
  if (t.prompt) {
    t.prompt.set("redline.prompt_tokens", std::int64_t{c.prompt_count});
    t.prompt.set("redline.cached_tokens", std::int64_t{answer.cached_count});
    t.prompt.set("redline.passes", std::int64_t{answer.passes});
    t.prompt.set("redline.rows", std::int64_t{answer.rows});
    t.prompt.set("redline.queued_us", static_cast<std::int64_t>(answer.queued_us));
    return t.prompt.end();
  }
  t.sequence.add_event("redline.round", {{"redline.passes", std::int64_t{answer.passes}},
                                         {"redline.rows", std::int64_t{answer.rows}},
                                         {"redline.drafted", std::int64_t{answer.verified_count}},
                                         {"redline.accepted", std::int64_t{answer.accepted_count()}}});
}

void verify_scheduler::end_trace(client& c, const failure* why_not) {
  const auto ended = std::exchange(c.traced, nullptr);
  if (!ended) return;
  auto& span = ended->sequence;
  span.set("redline.rounds", ended->rounds);
  span.set("redline.passes", ended->passes);
  span.set("redline.rows", ended->rows);
  span.set("redline.drafted", ended->drafted);
  span.set("redline.accepted", ended->accepted);
  if (why_not != nullptr) span.fail(why_not->describe());
  span.end();
}

// A guess: a hundred rounds, each as long as a batch takes on average.
std::uint32_t verify_scheduler::retry_after_ms() const {
  if (report_.batches_total == 0) return 1000;
  const std::uint64_t batch_us = report_.forward_us_total / report_.batches_total;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(batch_us * 100 / 1000, 500, 30'000));
}

void verify_scheduler::on(const give_up_round& m) {
  const auto known = clients_.find(m.sequence);
  if (known == clients_.end()) return;
  std::erase_if(known->second.overtaking, [&](const auto& one) { return one.run.round == m.round; });
  queue_.give_up(m.sequence, m.round, context().now());
  end_trace(known->second);
  let_followers_look(m.sequence);
  step();  // a pass may have waited for its next round
}

void verify_scheduler::on(const release_sequence& m) {
  if (!queue_.holds(m.sequence)) return;
  offer_prefix_of(m.sequence);
  queue_.release(m.sequence);
  end_trace(clients_.at(m.sequence));
  clients_.erase(m.sequence);
  followers_.remove(m.sequence);
  release_pages_of(m.sequence);
  let_followers_look(m.sequence);
  step();
}

void verify_scheduler::release_pages_of(sequence_id sequence) {
  context().tell(cache_, release_pages{epoch_, sequence});
  pages_came_free_ = true;
}

/// Plans the next batch and sends it. When nothing fits into the pages that the cache manager last counted, it counts
/// again, in answer to a batch without runs, before any sequence loses its KV.
void verify_scheduler::step() {
  if (is_batch_out_ || !target_up_) return;
  take_overtaking();
  auto budget = options_.budget;
  budget.pages_free = std::min(pages_free_, window_pages_free_);  // every new page takes one of both
  const instant now = context().now();
  plan_ = queue_.plan(budget, now);
  if (plan_.runs.empty()) {
    if (plan_.left.empty()) return look_again(now);
    if (!pages_came_free_ && !queue_.has_changes()) {
      const auto victim = queue_.choose_victim(plan_, now);
      if (!victim) return look_again(now);
      ++report_.preempted_total;
      release_pages_of(*victim);
    }
  }
  place();
}

/// now: when the plan was made. A timer that is due later is left alone: planning once more does no harm.
void verify_scheduler::look_again(instant now) {
  const auto next = queue_.next_look();
  if (!next || (look_at_ && *look_at_ <= *next)) return;
  look_at_ = next;
  context().after(*next - now, wait_over{});
}

void verify_scheduler::on(const wait_over&) {
  look_at_.reset();
  step();
}

void verify_scheduler::place() {
  sent_ = {.epoch = epoch_, .batch = sent_.batch + 1};
  if (!make_runs()) return step();
  for (const auto& change : queue_.take_changes(plan_)) {
    table_change& to = sent_.changes.emplace_back(table_change{.sequence = change.sequence});
    to.keep_count = change.keep_count;
    for (const auto& s : change.splices) {
      to.splices.push_back({s.keep_count, s.at, s.removed_count, s.shift, static_cast<kv::splice_policy>(s.policy)});
    }
  }
  queue_.begin(plan_);
  is_batch_out_ = true;
  pages_came_free_ = false;  // the answer counts them
  placed_at_ = sent_at_ = context().now();
  for (const auto& run : plan_.runs) {
    client& c = clients_.at(run.sequence);
    if (const auto since = std::exchange(c.queued_at, std::nullopt)) c.queued = placed_at_ - *since;
  }
  context().tell(cache_, sent_);
}

/// Turns the plan into runs that fit into one message; what does not fit stays for the next batch. False when the plan
/// has to be made anew, because a sequence that never fits was refused.
bool verify_scheduler::make_runs() {
  std::size_t bytes = 0;
  cost::work_size size;
  std::size_t count = 0;
  for (; count < plan_.runs.size(); ++count) {
    const auto& planned = plan_.runs[count];
    batch_run run = make_run(planned);
    bytes += estimate_bytes(run, options_.limits.window_pages_count == 0 ? 1 : 2);
    if (bytes > options_.batch_bytes_max || run.counts.size() > sizes::array_count_max) break;
    size = size + cost::size_of_run(planned.first, planned.rows(), planned.wants_logits ? planned.draft_count + 1 : 0);
    sent_.runs.push_back(std::move(run));
  }
  if (count == plan_.runs.size()) return true;
  if (count == 0) {
    refuse_sequence(
        plan_.runs[0].sequence,
        {errc::invalid_argument,
         "the penalties need " + std::to_string(bytes) + " bytes of the answer so far, expected at most " +
             std::to_string(options_.batch_bytes_max) + "; ask for a shorter answer or leave the penalties out"});
    return false;
  }
  plan_.runs.resize(count);
  plan_.size = size;
  plan_.predicted = queue_.cost().predict(size);
  return true;
}

/// Its text, unless the target model has it already or gets it with another run of this batch.
void verify_scheduler::add_grammar(batch_run& run, const client& c) const {
  shared_grammar& g = *c.grammar;
  const bool has_it = (target_life_ != 0 && g.told_life == target_life_) || g.told_batch == sent_.batch;
  if (has_it && !spells_grammars_) {
    run.grammar = grammar::without_text({});
  } else {
    run.grammar = g.text;
    g.told_batch = sent_.batch;
  }
  run.grammar.state = c.grammar_state;
  run.grammar_name = g.name;
}

batch_run verify_scheduler::make_run(const scheduler::planned_run& planned) {
  client& c = clients_.at(planned.sequence);
  const auto log = queue_.log(planned.sequence).tokens();
  const auto draft = queue_.draft(planned.sequence).first(planned.draft_count);
  const auto mine = log.subspan(planned.first, planned.log_count);
  batch_run run{.sequence = planned.sequence, .first_position = static_cast<position>(planned.first)};
  run.tokens.assign(mine.begin(), mine.end());
  run.tokens.insert(run.tokens.end(), draft.begin(), draft.end());
  run.draft_count = planned.draft_count;
  run.logits_begin = planned.wants_logits ? planned.log_count - 1 : planned.rows();
  run.prompt_count = c.prompt_count;
  run.log_count = log.size() + c.evicted_count;
  run.sampling = c.sampling;
  run.logprobs = c.logprobs;
  run.scores_draft = c.scores_draft;
  if (planned.wants_logits && c.grammar) add_grammar(run, c);
  if (!planned.wants_logits || c.scores_draft || !c.sampling.needs_history()) return run;
  const auto output = log.subspan(std::min<std::size_t>(c.prompt_count, log.size()));
  const auto latest = output.last(std::min(output.size(), c.sampling.sequences_reach()));
  run.latest.assign(latest.begin(), latest.end());
  if (c.sampling.has_penalties()) {
    run.counts = c.counts.count(log, c.prompt_count, c.sampling.repetition_penalty != 1);
  }
  return run;
}

void verify_scheduler::note_pages(const page_report& pages) {
  pages_free_ = pages.free_count;
  window_pages_free_ = pages.window_free_count;
  for (const page_room& room : pages.rooms) queue_.note_room(room.sequence, room.tokens_count);
}

void verify_scheduler::on(const batch_held& m) {
  if (!is_batch_out_ || m.batch != sent_.batch) return;
  is_batch_out_ = false;
  if (m.tables_lost) {
    context().log(log_level::warning, "the cache manager has restarted; all KV is computed again");
    lose_all_kv();
  } else {
    queue_.put_back(plan_);
    note_pages(m.pages);
    for (const sequence_id sequence : m.windows_lost) compute_again(sequence);
  }
  step();
}

/// It wants to go on from a place behind which its windows are gone. A known prefix may have more of them.
void verify_scheduler::compute_again(sequence_id sequence) {
  if (!queue_.holds(sequence)) return;
  ++report_.preempted_total;
  queue_.forget_kv(sequence);
  release_pages_of(sequence);
  look_for_prefix(sequence);
}

void verify_scheduler::on(const batch_lost& m) {
  if (!is_batch_out_ || m.batch != sent_.batch) return;
  const bool may_pass_later = m.why.code == errc::unreachable || m.why.code == errc::mailbox_full;
  if (may_pass_later) return lose_target();
  fail_batch(m.why);
  lose_all_kv();
  step();
}

/// Until it says that it is ready, which it is asked for again and again.
void verify_scheduler::lose_target() {
  if (std::exchange(target_up_, false)) target_lost_at_ = context().now();
}

/// Nothing has come from the target model for so long that the sessions should not go on waiting.
bool verify_scheduler::is_stalled() const {
  if (!target_up_) return context().now() - target_lost_at_ >= options_.target_patience;
  return is_batch_out_ && context().now() - placed_at_ >= std::max(options_.target_patience, 8 * plan_.predicted);
}

void verify_scheduler::on(const batch_done& m) {
  if (!is_batch_out_ || m.batch != sent_.batch) return;
  is_batch_out_ = false;
  note_pages(m.pages);
  if (m.lacks_grammars && !m.why_not) return spell_grammars();
  const bool is_ours = std::equal(m.results.begin(), m.results.end(), plan_.runs.begin(), plan_.runs.end(),
                                  [](const auto& r, const auto& run) { return r.sequence == run.sequence; });
  if (m.why_not || !is_ours) {
    fail_batch(m.why_not.value_or(
        failure{errc::internal, "the target model's answer does not match the batch that was sent"}));
    step();
    return;
  }
  note_grammars();
  std::vector<scheduler::run_answer> answers;
  // A run without an answer counts as one token, of a sequence that is released below.
  for (const auto& r : m.results) {
    answers.push_back({r.accepted_count, r.why_not ? std::vector<token>{0} : r.tokens});
  }
  const microseconds took{static_cast<std::int64_t>(m.elapsed_us)};
  const double miss = std::abs(static_cast<double>(plan_.predicted.count() - took.count())) /
                      std::max<double>(static_cast<double>(took.count()), 1.0);
  report_.cost_error_ratio += 0.05 * (miss - report_.cost_error_ratio);
  ++report_.batches_total;
  report_.rows_total += plan_.size.rows;
  report_.forward_us_total += m.elapsed_us;
  report_.experts_total += m.experts_count;
  note_batch(took);

  const auto done = queue_.complete(plan_, answers, took, context().now(), m.experts_count);
  std::vector<sequence_id> prompts_done;
  for (const auto& outcome : done) {
    const auto at = std::find_if(m.results.begin(), m.results.end(),
                                 [&](const run_result& r) { return r.sequence == outcome.sequence; });
    if (at->why_not) continue;
    client& c = clients_.at(outcome.sequence);
    const std::uint32_t exact_count = queue_.log(outcome.sequence).exact_count();
    if (queue_.standing_of(outcome.sequence).prefill_only) {
      c.last = prefilled{outcome.sequence, outcome.round, exact_count};
    } else {
      c.last = verified{.sequence = outcome.sequence,
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
                        .queued_us = static_cast<std::uint64_t>(c.queued.count())};
      c.untold.reset();
      trace_round(c, std::get<verified>(c.last));
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
    ++report_.overflowed_total;
    context().log(log_level::error, "sequence " + std::to_string(r.sequence.value) + ": " + r.why_not->describe());
    refuse_sequence(r.sequence, *r.why_not);
  }
  serve_followers(plan_);
  step();
}

/// The target model has had the texts of this batch.
void verify_scheduler::note_grammars() {
  spells_grammars_ = false;
  for (const auto& run : plan_.runs) {
    const auto at = clients_.find(run.sequence);
    if (run.wants_logits && at != clients_.end() && at->second.grammar) at->second.grammar->told_life = target_life_;
  }
}

/// It keeps a bounded number of grammars, and one that the batch named was gone.
void verify_scheduler::spell_grammars() {
  if (std::exchange(spells_grammars_, true)) {
    spells_grammars_ = false;
    fail_batch({errc::internal, "the target model lacks a grammar that it was sent"});
  } else {
    queue_.put_back(plan_);
  }
  step();
}

/// Zeros with --draft-length whole, so that the number of passes does not depend on how fast the machine is at the
/// moment.
cost::step_cost verify_scheduler::step_cost_of(sequence_id sequence, std::size_t sessions) const {
  if (options_.budget.whole_drafts) return {};
  auto cost = cost::step_cost_at(queue_.cost(), queue_.log(sequence).count());
  cost.sessions = static_cast<std::uint32_t>(std::max<std::size_t>(sessions, 1));
  return cost;
}

/// The leader has offered what it computed, or is gone.
void verify_scheduler::let_followers_look(sequence_id leader) {
  for (const sequence_id sequence : followers_.release_followers(leader)) {
    if (queue_.awaits_prefix(sequence)) look_for_prefix(sequence);
  }
}

/// After a pass: whose common part is computed adopts it, and who would wait for nothing goes on alone.
void verify_scheduler::serve_followers(const scheduler::batch_plan& plan) {
  for (const auto& run : plan.runs) {
    if (!queue_.holds(run.sequence)) continue;
    const auto computed = static_cast<std::uint32_t>(queue_.log(run.sequence).computed_prefix().size());
    const auto served = followers_.release_served(run.sequence, computed);
    if (!served.empty()) offer_prefix_of(run.sequence);
    for (const sequence_id sequence : served) {
      if (queue_.awaits_prefix(sequence)) look_for_prefix(sequence);
    }
  }
  for (const sequence_id sequence : followers_.release_stalled(plan, queue_)) queue_.end_wait(sequence);
}

/// What is known of a new sequence's prompt, which others have computed. Its last token is computed in any case, for
/// its logits; of a prefill, which leaves the last one out, one more, so that there is something to do.
void verify_scheduler::look_for_prefix(sequence_id sequence) {
  const auto log = queue_.log(sequence).tokens();
  const std::uint32_t left = queue_.standing_of(sequence).prefill_only ? 2 : 1;
  if (options_.sharing == prefix_sharing::off || log.size() < options_.budget.page_tokens + left) return;
  client& c = clients_.at(sequence);
  ++c.prefix_questions;
  queue_.await_prefix(sequence, ++question_, context().now() + options_.cache_patience);
  context().tell(cache_, adopt_prefix{epoch_, sequence, question_, c.scope, {log.begin(), log.end() - left}});
}

/// More than is known may be shared with a prompt that is being computed now.
void verify_scheduler::look_for_leader(sequence_id sequence) {
  if (clients_.at(sequence).prefix_questions >= prefix_questions_max) return;
  const auto chosen = followers_.choose_leader(sequence, queue_, options_.budget.page_tokens);
  if (!chosen) return;
  if (chosen->is_computed) {
    offer_prefix_of(chosen->leader);
    look_for_prefix(sequence);
  } else {
    followers_.follow(sequence, *chosen);
    queue_.await_prefix(sequence, 0, context().now() + leader_patience);
  }
}

void verify_scheduler::offer_prefix_of(sequence_id sequence) {
  const auto tokens = queue_.log(sequence).computed_prefix();
  if (options_.sharing == prefix_sharing::off || tokens.size() < options_.budget.page_tokens) return;
  context().tell(cache_, offer_prefix{epoch_, sequence, clients_.at(sequence).scope, {tokens.begin(), tokens.end()}});
}

void verify_scheduler::on(const prefix_adopted& m) {
  const std::uint32_t before = queue_.holds(m.sequence) ? queue_.log(m.sequence).kv_count() : 0;
  if (!queue_.adopt_prefix(m.sequence, m.question, m.count)) return;
  pages_free_ = m.free_count;
  window_pages_free_ = m.window_free_count;
  report_.cached_total += m.count - std::min(before, m.count);
  look_for_leader(m.sequence);
  step();
}

/// Takes the rounds that came while a pass for the one before was in flight.
void verify_scheduler::take_overtaking() {
  if (!std::exchange(overtaken_, false)) return;
  std::vector<question> waiting;
  for (auto& [sequence, c] : clients_) {
    std::move(c.overtaking.begin(), c.overtaking.end(), std::back_inserter(waiting));
    c.overtaking.clear();
  }
  for (const question& q : waiting) take(q);
}

void verify_scheduler::fail_batch(const failure& why) {
  context().log(log_level::error, "a batch failed: " + why.describe());
  for (const auto& run : plan_.runs) refuse_sequence(run.sequence, why);
}

void verify_scheduler::refuse_sequence(sequence_id sequence, const failure& why) {
  const auto it = clients_.find(sequence);
  if (it == clients_.end()) return;
  context().send(it->second.session, refused{sequence, why});
  end_trace(it->second, &why);
  queue_.release(sequence);
  clients_.erase(it);
  followers_.remove(sequence);
  release_pages_of(sequence);
  let_followers_look(sequence);
}

/// Does not wait for a batch that is out: the cache manager drops its tables when it sees the new epoch.
void verify_scheduler::lose_all_kv() {
  is_batch_out_ = false;
  ++epoch_;
  queue_.forget_all_kv();
  pages_free_ = options_.limits.pages_count;
  window_pages_free_ =
      options_.limits.window_pages_count == 0 ? page_report::no_windows : options_.limits.window_pages_count;
  pages_came_free_ = true;  // of which the cache manager is told by the next batch, even one without runs
}

void verify_scheduler::on(const target_ready& m) {
  if (m.pages_count < options_.limits.pages_count || m.window_pages_count < options_.limits.window_pages_count ||
      m.rows_max < options_.budget.rows_max) {
    std::string why_not = "the target model has " + std::to_string(m.pages_count) + " pages and " +
                          std::to_string(m.rows_max) + " rows, expected at least " +
                          std::to_string(options_.limits.pages_count) + " and " +
                          std::to_string(options_.budget.rows_max) + "; start both processes with the same flags";
    if (why_not == report_.why_not) return;  // it was asked again
    report_.why_not = std::move(why_not);
    context().log(log_level::error, report_.why_not);
    return;
  }
  report_.why_not.clear();
  // Its KV is as it was: this answers an announcement that was asked for more than once.
  if (target_up_ && m.life != 0 && m.life == target_life_ && !is_stalled()) return;
  target_up_ = true;
  target_life_ = m.life;
  std::vector<cost::cost_sample> samples;
  for (const pass_cost& c : m.costs) {
    samples.push_back({cost::size_of_run(c.context, c.rows, c.logits),
                       microseconds{static_cast<std::int64_t>(std::min<std::uint64_t>(c.took_us, pass_us_max))},
                       c.experts_count});
  }
  queue_.learn_costs(samples, m.mixture);
  lose_all_kv();
  step();
}

void verify_scheduler::on(const scheduler_tick&) {
  context().after(tick, scheduler_tick{});
  if (!target_up_ || is_stalled()) context().tell(target_, announce_target{});
  if (is_batch_out_ && target_up_ && context().now() - sent_at_ >= options_.cache_patience) {
    sent_at_ = context().now();
    context().tell(cache_, sent_);
  }
  release_abandoned();
  tell_waiting();
  // Some may have waited long enough for the cache manager's answer, others may get the place of an idle sequence.
  step();
  if (is_batch_out_) return;
  queue_.check_integrity();
  followers_.check_integrity();
  if (!target_up_ || !pages_came_free_) return;
  plan_ = {};
  place();
}

/// New sequences that are not answered at once learn that they will be.
void verify_scheduler::tell_waiting() {
  for (auto& [sequence, c] : clients_) {
    if (const auto round = std::exchange(c.untold, std::nullopt))
      context().send(c.session, run_pending{sequence, *round});
  }
}

void verify_scheduler::release_abandoned() {
  std::vector<sequence_id> silent;
  for (const auto& [sequence, c] : clients_) {
    const bool open = queue_.awaits_answer(sequence);
    if (!open && context().now() - c.heard >= options_.abandoned_after) silent.push_back(sequence);
  }
  for (const sequence_id sequence : silent) on(release_sequence{sequence});
}

/// For who looks at the server: what the last passes were.
void verify_scheduler::note_batch(microseconds took) {
  if (batches_.size() == worker_status::batches_max) batches_.pop_front();
  batch_record& b = batches_.emplace_back();
  b.number = report_.batches_total;
  b.us = static_cast<std::uint64_t>(took.count());
  b.predicted_us = static_cast<std::uint64_t>(plan_.predicted.count());
  b.sequences = static_cast<std::uint32_t>(plan_.runs.size());
  for (const auto& run : plan_.runs) {
    const bool is_step = run.wants_logits && run.log_count == 1;
    (is_step ? b.decode_rows : b.prompt_rows) += run.log_count;
    b.draft_rows += run.draft_count;
  }
}

worker_status verify_scheduler::as_worker() const {
  worker_status out{.process = actor::process_of(self().where),
                    .ready = report_.ready,
                    .running_count = report_.running_count,
                    .waiting_count = report_.waiting_count,
                    .pages_count = report_.pages_count,
                    .pages_held = report_.pages_held,
                    .batches_total = report_.batches_total,
                    .rows_total = report_.rows_total,
                    .forward_us_total = report_.forward_us_total,
                    .preempted_total = report_.preempted_total,
                    .cost_error_ratio = report_.cost_error_ratio,
                    .batches = {batches_.begin(), batches_.end()},
                    .batch_fill = queue_.gathered().fill};
  for (std::uint32_t rows = 1; rows <= worker_status::cost_rows_max && !queue_.cost().is_blank(); rows *= 2) {
    const auto predicted = queue_.cost().predict(cost::size_of_run(0, rows, 1));
    out.cost.push_back({rows, static_cast<std::uint64_t>(predicted.count())});
  }
  return out;
}

void verify_scheduler::on(const report_status& m) {
  report_.ready = target_up_ && !is_stalled();
  report_.running_count = queue_.running_count();
  report_.waiting_count = queue_.waiting_count();
  report_.pages_held = options_.limits.pages_count - std::min(pages_free_, options_.limits.pages_count);
  report_.tokens_max = options_.limits.tokens_max;
  report_.pending_rows = queue_.pending_rows();
  report_.prompt_row_ns = static_cast<std::uint32_t>(std::min(queue_.prompt_row_us() * 1000, 4e9));
  report_.asking_count = static_cast<std::uint32_t>(std::ranges::count_if(clients_, [&](const auto& one) {
    return queue_.awaits_answer(one.first) || context().now() - one.second.heard < asking_age_max;
  }));
  const auto& gathered = queue_.gathered();
  report_.batch_fill = gathered.fill;
  report_.waits_total = gathered.waits;
  report_.waited_us_total = static_cast<std::uint64_t>(gathered.waited.count());
  report_.waits_missed_total = gathered.missed;
  report_.workers.clear();
  if (m.with_details) report_.workers.push_back(as_worker());
  context().send(context().sender(), report_);
}

void verify_scheduler::on(const actor::peer_state& m) {
  if (m.reachable) return;
  std::vector<sequence_id> orphans;
  for (const auto& [sequence, c] : clients_) {
    if (actor::process_of(c.session) == m.process) orphans.push_back(sequence);
  }
  for (const sequence_id sequence : orphans) on(release_sequence{sequence});
}

// A session that cannot be reached is gone, and its supervisor knows. What the cache manager or the target model missed
// is repeated when they come back: target_ready starts everything anew.
void verify_scheduler::on(const actor::undeliverable& m) {
  if (m.to == cache_.where || m.to == target_.where) {
    // Normal while the target model loads.
    context().log(target_up_ ? log_level::warning : log_level::debug,
                  "cannot reach " + actor::to_string(m.to) + ": " + m.why.describe());
    if (m.to == target_.where) lose_target();
    return;
  }
  std::vector<sequence_id> orphans;
  for (const auto& [sequence, c] : clients_) {
    if (c.session == m.to && m.why.code == errc::unreachable) orphans.push_back(sequence);
  }
  for (const sequence_id sequence : orphans) on(release_sequence{sequence});
}

}  // namespace redline::actors

template class redline::actor::actor_cell<redline::actors::verify_scheduler>;
