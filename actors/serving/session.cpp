#include "actors/serving/session.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "actors/serving/answer_sources.hpp"
#include "actors/serving/cache_manager.hpp"
#include "actors/serving/draft_model.hpp"
#include "actors/serving/placer.hpp"
#include "actors/serving/retired_book.hpp"
#include "runtime/base/token_chain.hpp"

namespace redline::actors {
namespace {

constexpr microseconds session_period{250'000};
constexpr std::size_t scored_tokens_max = 256;  // per round: as many as a prompt's chunk has

}  // namespace

session::session(actor::actor_context& context, token_log work, session_partners partners)
    : actor_of(context), work_(std::move(work)), partners_(std::move(partners)) {
  stats_.prompt_tokens = work_.prompt_count();
  stats_.evicted_tokens = work_.evicted_count();
  stats_.evictions = stats_.evicted_tokens > 0 ? 1 : 0;
}

void session::on_start() {
  began_ = context().now();
  context().send_under(work_.spec().span);
  const auto& learned = partners_.learned;
  book_ = std::make_unique<draft::book>(
      work_.spec().draft, learned ? learned->of(work_.spec().tenant) : std::make_shared<draft::tenant_record>());
  add_sources(*book_, work_);
  context().after(session_period, session_tick{});
  talk_.begin(live());
}

/// The main loop of an answer: verify, commit, stream, draft, and repeat.
actor::task<> session::live() {
  if (partners_.borrowed) numerics_ = partners_.borrowed->numerics;
  const bool is_bound_elsewhere = numerics_ && bound_to() && numerics_ != bound_to();
  if ((!partners_.manager || is_bound_elsewhere) && !co_await find_target()) co_return;
  // The prompt is indexed, and the draft model reads it, while the target does.
  if (book_->append(work_.log(), true)) context().tell(self(), session_step{});
  book_knows_ = work_.log_count();
  if (can_ask_drafter()) tell_drafter(0, 0);
  // The cache manager finds out itself how much of a borrowed sequence's log is unchanged.
  round_ = {partners_.borrowed ? partners_.borrowed->last_round.value + 1 : 1};
  if (work_.spec().prompt_logprobs && !co_await score_prompt()) co_return;
  auto step = co_await stream_forced_tokens(work_.begin());
  // What is expected of the whole answer is verified with the prompt. For other drafts nothing speaks yet.
  const bool is_predicted = draft::reads_prediction(work_.spec().draft.how) && !work_.spec().prediction.empty();
  if ((is_predicted || !work_.spec().known_text.empty()) && !step.finished) {
    draft_ = co_await next_draft({});
  } else {
    draft_.mtp = book_->ask_mtp(costs());
  }
  while (!step.finished) {
    const verified* const answer = co_await ask_target();
    if (answer == nullptr) co_return;  // the client knows why
    step = co_await stream_forced_tokens(commit(*answer));
    if (!step.finished && is_late()) tell_client(step = work_.cut());
    if (step.finished) break;
    ++round_.value;
    while (paused_) (void)co_await talk_.next<pause_session>();
    draft_ = co_await next_draft({.is_there = can_ask_drafter(), .unread = drafter_unread()});
  }
  finish(*step.finished, step.why_not);
}

/// Whether the answer has used up its time and has at least one line.
bool session::is_late() const {
  const std::uint64_t most = work_.spec().predict_us_max;
  if (most == 0 || !has_line_) return false;
  return static_cast<std::uint64_t>((context().now() - began_).count()) >= stats_.first_token_us + most;
}

/// In a pool, waits for a worker. Returns false if there is none, and the session is over.
actor::task<bool> session::find_target() {
  const instant began = context().now();
  for (;;) {
    ask_for_place(0);
    const auto m = co_await talk_.next<session_placed, no_place>(context().now() + partners_.verdict_retry);
    if (m.as<session_placed>() != nullptr) co_return true;
    if (const auto* no = m.as<no_place>()) {
      finish(finish_reason::failed, no->why, no->retry_after_ms);
      co_return false;
    }
    if (context().now() - began < partners_.silence_max) continue;
    finish(finish_reason::failed, failure{errc::not_ready, "no worker of the pool was found"});
    co_return false;
  }
}

/// For a borrowed sequence the owner finds the worker.
void session::ask_for_place(actor::process_number not_process) {
  const actor::address whom = partners_.borrowed ? partners_.borrowed->owner : partners_.placer.where;
  if (whom.value == 0) return;
  const auto prompt = work_.log().first(std::min<std::size_t>(work_.prompt_count(), work_.log().size()));
  context().send(whom, place_session{.session = work_.spec().session,
                                     .model = partners_.place.model,
                                     .numerics = bound_to(),
                                     .affinity = partners_.place.affinity,
                                     .tokens_max = work_.tokens_max(),
                                     .prompt_tokens = static_cast<std::uint32_t>(prompt.size()),
                                     .prefixes = chain_prefixes(prompt),
                                     .wants_draft = partners_.place.wants_draft,
                                     .not_process = not_process,
                                     .scope = work_.spec().prefix_scope != 0 ? tenant_id{work_.spec().prefix_scope}
                                                                             : work_.spec().tenant});
}

/// Makes the session send everything again that the cache manager knew, to it or to another one.
void session::forget_target() {
  target_knows_ = 0;
  target_answered_ = false;
  terms_told_ = false;
  target_log_differs_ = false;
  splices_.clear();
  // Another cache manager computes the log as it is, where the lost one may have moved KV.
  recomputed_before_ = stats_.reevaluated + (std::exchange(moved_, false) ? 1 : 0);
}

void session::on(const session_placed& m) {
  if (!partners_.borrowed && m.session != work_.spec().session) return;
  // An answer with tokens goes on only where they would have been the same.
  if (bound_to() && m.numerics != bound_to()) return ask_for_place(0);
  numerics_ = m.numerics;
  const bool is_elsewhere = partners_.manager.where != m.manager;
  if (is_elsewhere) {
    if (partners_.manager) {
      context().log(log_level::info, "continues at " + actor::to_string(m.manager));
      context().tell(partners_.manager, release_sequence{sequence()});
      forget_target();
    }
    partners_.manager = {m.manager};
  }
  if (partners_.place.wants_draft && m.drafter.value != 0 && partners_.drafter.where != m.drafter) {
    partners_.drafter = {m.drafter};
    drafter_lost_.reset();
    drafter_knows_ = drafter_read_ = 0;
  }
  if (is_elsewhere || m.ask_again) (void)talk_.hear(m);
}

/// Sends the client a step and everything that is decided after it, a part in each handler, so that others run in
/// between. Returns the last part's step.
actor::task<token_log::progress> session::stream_forced_tokens(token_log::progress step) {
  for (;;) {
    tell_client(step);
    if (!step.is_cut) co_return step;
    while (paused_) (void)co_await talk_.next<pause_session>();
    if (auto span = work_.untokenized()) {
      work_.tokenize_span(co_await spell(std::move(*span)));
    } else {
      context().tell(self(), session_step{});
      (void)co_await talk_.next<session_step>(context().now() + session_period);  // which may be lost
    }
    step = work_.go_on();
  }
}

/// Tokenizes a span on another thread, since it may have megabytes.
actor::task<std::vector<token>> session::spell(untokenized_span span) {
  std::optional<result<std::vector<token>>> spelled;
  const auto job = [span] { return span.spell(); };
  if (!pool_) pool_.emplace(context(), partners_.pool);
  while (!pool_->run(work_.spec().tenant, span.bytes.size(), job, [&](auto done) { spelled = std::move(done); })) {
    (void)co_await talk_.next<session_step>(context().now() + session_period);  // the pool's queue is full: tries later
  }
  while (!spelled) (void)co_await talk_.next<actor::job_done>();
  if (!*spelled) throw std::runtime_error("a copied span could not be tokenized: " + spelled->error().describe());
  co_return std::move(**spelled);
}

/// Sends the log-probabilities of the prompt's tokens. Each round asks for some, as a draft that is accepted as a
/// whole, and its results are sent at once, so that those of a whole prompt are stored nowhere. All tokens are
/// computed, since cached KV does not include log-probabilities. Returns false if the session is over.
actor::task<bool> session::score_prompt() {
  const auto prompt = work_.log();
  for (scored_count_ = 1; *scored_count_ < prompt.size(); ++round_.value) {
    const auto next = prompt.subspan(*scored_count_);
    const auto wanted = next.first(std::min<std::size_t>(next.size(), scored_tokens_max));
    draft_ = {.tokens = {wanted.begin(), wanted.end()}};
    const verified* const answer = co_await ask_target();
    if (answer == nullptr) co_return false;
    count_pass(*answer);
    const std::uint32_t scored = answer->verified_count;
    if (scored > wanted.size() || answer->logprobs.size() <= scored) {
      finish(finish_reason::failed,
             failure{errc::internal, "the target model did not return the log-probabilities of the prompt"});
      co_return false;
    }
    session_text told{.session = work_.spec().session, .numerics = numerics_};
    told.prompt_logprobs.assign(answer->logprobs.begin(), answer->logprobs.begin() + scored);
    context().send(partners_.client, told);
    // The cache manager has one token more than was asked for.
    *scored_count_ += scored;
    target_answered_ = true;
    target_knows_ = *scored_count_;
    target_log_differs_ = true;
    while (paused_) (void)co_await talk_.next<pause_session>();
  }
  scored_count_.reset();
  draft_ = {};
  co_return true;
}

/// The target model's answer to the log and the draft. Null if there is none, and the session is over.
actor::task<const verified*> session::ask_target() {
  tell_target(target_knows_);
  instant asked = context().now();
  instant last_heard = asked;
  for (;;) {
    const auto m = co_await talk_.next<verified, log_needed, refused, run_pending, session_placed, no_place>(
        std::min(asked + partners_.verdict_retry, last_heard + partners_.silence_max));
    const instant now = context().now();
    if (!m.is_timeout()) last_heard = now;
    if (const auto* answer = m.as<verified>()) {
      refused_since_.reset();
      if (!answer->tokens.empty()) co_return answer;
      finish(finish_reason::failed, failure{errc::internal, "the cache manager answered a round without a token"});
      co_return nullptr;
    }
    if (const auto* no = m.as<refused>()) {
      // What one worker cannot take now, another one may.
      const bool may_pass_elsewhere = no->retry_after_ms != 0 || no->why.code == errc::draining;
      const bool has_patience = stats_.rounds == 0 ? ++places_refused_ <= places_refused_max
                                                   : now - refused_since_.value_or(now) < partners_.place_patience;
      if (partners_.placer && may_pass_elsewhere && has_patience) {
        if (!refused_since_) refused_since_ = now;
        ask_for_place(actor::process_of(partners_.manager.where));
        continue;
      }
      finish(finish_reason::failed, no->why, no->retry_after_ms);
      co_return nullptr;
    }
    if (const auto* no = m.as<no_place>()) {
      finish(finish_reason::failed, no->why, no->retry_after_ms);
      co_return nullptr;
    }
    if (now - last_heard >= partners_.silence_max) {
      finish(finish_reason::failed,
             failure{errc::not_ready, "the target model has been silent for " +
                                          std::to_string(partners_.silence_max.count() / 1'000'000) + " s"});
      co_return nullptr;
    }
    if (m.as<run_pending>() != nullptr) {
      if (stats_.rounds == 0 && !std::exchange(admission_told_, true)) {
        context().send(partners_.client, session_admitted{work_.spec().session, numerics_});
      }
      continue;
    }
    asked = now;
    if (const auto* gap = m.as<log_needed>()) {
      splices_.clear();
      terms_told_ = false;
      if (gap->from == 0 && std::exchange(moved_, false)) recomputed_before_ = stats_.reevaluated + 1;
      tell_target(std::min(gap->from, asked_count()));
    } else {
      // A cache manager that has not answered yet may have an older log of this sequence, or have missed the new one.
      tell_target(target_answered_ ? target_knows_ : 0);
    }
  }
}

/// The draft of the next round: the book's, or the draft model's if the book wants it asked and it answers in time.
actor::task<session::round_draft> session::next_draft(draft::book::model_state model) {
  tell_book();
  const bool is_span = work_.in_span();
  const auto usable = [this](draft::graded_draft& d) { d.truncate(work_.usable(d.tokens).size()); };
  const auto as_draft = [&](draft::book::decision d) {
    round_draft out{.tokens = std::move(d.draft.tokens), .parts = std::move(d.parts), .is_span = is_span};
    out.mtp = book_->ask_mtp(costs());
    out.mtp.if_refused = !out.parts.empty() && out.parts.front().from != draft::source::mtp;
    return out;
  };
  // The last token of the answer needs no draft: it is the target's own token.
  auto choice = book_->choose(costs(), work_.round_room() - 1, model, usable);
  if (choice.ask_model == 0) co_return as_draft(std::move(choice));
  for (std::uint32_t from = drafter_knows_;;) {
    tell_drafter(from, choice.ask_model);
    const auto m = co_await talk_.next<proposal, actor::undeliverable>(context().now() + partners_.proposal_patience);
    const auto* answer = m.as<proposal>();
    if (answer == nullptr) {
      if (m.is_timeout()) context().log(log_level::debug, "no proposal in time; the round continues without one");
      lose_drafter();
      co_return as_draft(std::move(choice));
    }
    if (!answer->log_needed_from) {
      const bool is_timed = answer->took_us > 0 && answer->cost.is_known();
      const double passes =
          is_timed ? static_cast<double>(answer->took_us) / answer->cost.pass_us : answer->draft_passes;
      co_return as_draft(book_->hear_model({answer->tokens, answer->runs}, passes, usable));
    }
    from = std::min(*answer->log_needed_from, work_.log_count());
  }
}

void session::tell_book() {
  const auto fresh = work_.log().subspan(book_knows_);
  if (!fresh.empty()) (void)book_->append(fresh);
  book_knows_ = work_.log_count();
}

/// Does the next part of work that is too long for one handler, including what the book has to index.
void session::on(const session_step& m) {
  if (book_ && book_->catch_up()) context().tell(self(), session_step{});
  (void)talk_.hear(m);
}

log_tail session::tail(std::uint32_t from) const {
  const auto tokens = work_.log().subspan(std::min<std::size_t>(from, work_.log().size()));
  return {from, {tokens.begin(), tokens.end()}};
}

bool session::can_ask_drafter() {
  const draft::method how = work_.spec().draft.how;
  if (!partners_.drafter || !draft::asks_model(how)) return false;
  if (drafter_lost_ && context().now() - *drafter_lost_ >= partners_.drafter_retry) drafter_lost_.reset();
  return !drafter_lost_;
}

void session::lose_drafter() {
  if (drafter_lost_) return;
  drafter_lost_ = context().now();
  drafter_knows_ = drafter_read_ = 0;
}

void session::hear_costs(const proposal& m) {
  if (m.cost.is_known()) drafter_cost_ = m.cost;
  drafter_reads_max_ = m.reads_max;
  drafter_read_ = drafter_knows_ - std::min(drafter_knows_, m.unread);
}

double session::drafter_unread() const {
  const std::uint32_t unread = work_.log_count() - std::min(work_.log_count(), drafter_read_);
  return drafter_reads_max_ > 0 ? std::min(unread, drafter_reads_max_) : unread;
}

void session::tell_drafter(std::uint32_t from, std::uint32_t tokens_max) {
  const draft::draft_options& how = work_.spec().draft;
  const draft::round_costs now = costs();
  // Until it is known whether the model will be asked for drafts, it is asked what its passes cost.
  const bool sends_log = tokens_max > 0 || how.how != draft::method::automatic;
  context().tell(partners_.drafter, propose{.session = work_.spec().session,
                                            .tenant = work_.spec().tenant,
                                            .round = round_,
                                            .log = sends_log ? tail(from) : log_tail{},
                                            .prompt_count = work_.prompt_count(),
                                            .options = how,
                                            .sampling = work_.spec().sampling,
                                            .tokens_max = tokens_max,
                                            .round_us = step_.is_known() ? static_cast<std::uint32_t>(now.round_us) : 0,
                                            .row_ns = step_.row_ns});
  if (sends_log) drafter_knows_ = work_.log_count();
}

sequence_terms session::terms() const {
  const generation_spec& spec = work_.spec();
  return {.facts = {.tenant = spec.tenant,
                    .tokens_max = partners_.borrowed ? partners_.borrowed->tokens_max : work_.tokens_max()},
          .prefix_scope = spec.prefix_scope,
          .sampling = spec.sampling,
          .logprobs = work_.logprobs(),
          .prompt_logprobs = spec.prompt_logprobs,
          .grammar = work_.grammar()};
}

/// Asks about the log as far as `asked_count`; the receiver has its first `from` tokens.
void session::tell_target(std::uint32_t from) {
  using scheduler::round_kind;
  const auto asked = work_.log().first(asked_count());
  const auto tail = asked.subspan(std::min<std::size_t>(from, asked.size()));
  scheduler::round round{.sequence = sequence(),
                         .number = round_,
                         .kind = scored_count_ ? round_kind::score : round_kind::answer,
                         .splices = splices_,
                         .from = from,
                         .tail = {tail.begin(), tail.end()},
                         .draft = draft_.tokens};
  for (const auto& part : draft_.parts) round.segments.push_back(part.as_segment());
  const bool knows_terms = terms_told_ && from > 0;
  context().tell(partners_.manager, verify_run{.round = std::move(round),
                                               .prompt_count = std::min(asked_count(), work_.prompt_count()),
                                               .evicted_count = work_.evicted_count(),
                                               .grammar_state = work_.grammar_state(),
                                               .terms = knows_terms ? std::nullopt : std::optional(terms()),
                                               .mtp = draft_.mtp});
  if (!target_log_differs_) target_knows_ = asked_count();
  asked_ = context().now();
}

/// Takes the target's tokens into the log, and makes space for more.
token_log::progress session::commit(const verified& m) {
  count_pass(m);
  stats_.reevaluated = recomputed_before_ + m.recomputed_count;
  splices_.clear();
  if (stats_.rounds == 1) stats_.cached_tokens = std::min(m.cached_count, stats_.prompt_tokens);
  if (stats_.first_token_us == 0) {
    stats_.first_token_us = static_cast<std::uint64_t>((context().now() - began_).count());
    stats_.prompt_exact = std::min(m.exact_count, work_.prompt_count());
  }
  time_round(m);
  book_->judge(m.tokens, m.verified_count);
  const std::uint32_t before = work_.log_count();
  auto step = work_.commit(m.tokens, m.logprobs);
  count(m, step.agreed_count - before);
  if (work_.spec().trace) begin_trace(m, step.agreed_count - before);
  step_ = m.step;
  target_answered_ = terms_told_ = true;
  // The cache manager appended the tokens when it sent them; the log may have gone another way.
  target_knows_ = step.agreed_count;
  target_log_differs_ = step.agreed_count < before + m.tokens.size();
  if (!target_log_differs_) book_->hear_mtp(step.agreed_count, m.mtp);
  if (!step.finished) make_room();
  return step;
}

/// Evicts the oldest tokens of a full window before the next round.
void session::make_room() {
  tell_book();
  const auto gone = work_.make_room();
  if (!gone) return;
  if (book_->drop(gone->at, gone->count)) context().tell(self(), session_step{});
  book_knows_ = work_.log_count();
  const kv::splice_policy policy = kv::to_splice_policy(work_.spec().eviction.policy);
  splices_.push_back({gone->at, gone->count, {}, policy});
  moved_ = moved_ || kv::keeps_later(policy);
  ++stats_.evictions;
  stats_.evicted_tokens += gone->count;
  target_knows_ = work_.log_count();
  // A drafter is sent the window again from where it changed: its own cache is computed again from there.
  drafter_knows_ = std::min(drafter_knows_, gone->at);
  drafter_read_ = std::min(drafter_read_, gone->at);
}

/// Measures what the round took besides its pass, if the pass had no other session's rows.
void session::time_round(const verified& m) {
  if (m.passes != 1 || !m.step.is_known() || m.step.sessions > 1 || stats_.rounds == 1) return;
  const double pass_us = m.step.pass_us + m.verified_count * m.step.row_us();
  book_->note_overhead(static_cast<double>((context().now() - asked_).count()) - pass_us);
}

void session::count_pass(const verified& m) {
  ++stats_.rounds;
  stats_.target_passes += m.passes;
  stats_.target_rows += m.rows;
  if (stats_.rounds == 1) stats_.queued_us = m.queued_us;
}

/// Adds a round to the counts; `emitted` of its tokens are in the answer.
void session::count(const verified& m, std::size_t emitted) {
  const auto accepted = static_cast<std::uint32_t>(std::min<std::size_t>(m.accepted_count(), emitted));
  if (draft_.is_span) {
    stats_.copy_refused += m.verified_count - std::min(accepted, m.verified_count);
    return;  // the spans themselves are counted at the end
  }
  const std::uint32_t drafted = accepted < m.accepted_count() ? accepted : m.verified_count;
  stats_.drafted += drafted;
  stats_.accepted += accepted;
  std::uint32_t begin = 0;
  for (const auto& part : draft_.parts) {
    auto& source = stats_.sources[static_cast<std::size_t>(part.from)];
    const std::uint32_t end = begin + std::min(part.count, drafted - begin);
    source.drafted += end - begin;
    source.accepted += std::clamp(accepted, begin, end) - begin;
    begin = end;
  }
}

void session::begin_trace(const verified& m, std::uint32_t emitted) {
  step_trace& t = round_trace_.emplace(step_trace{.round = round_.value, .passes = m.passes, .rows = m.rows});
  t.verified = m.verified_count;
  t.accepted = std::min(m.accepted_count(), emitted);
  said_count_ = emitted;
  if (draft_.is_span) {
    t.drafts.push_back({token_origin::copy, static_cast<std::uint32_t>(draft_.tokens.size()), 0});
    return;
  }
  for (const auto& part : draft_.parts) {
    const token_origin from = to_origin(part.from);
    if (t.drafts.empty() || t.drafts.back().from != from) t.drafts.push_back({from, 0, 0});
    t.drafts.back().tokens += part.count;
  }
}

void session::tell_client(const token_log::progress& step) {
  auto trace = trace_of(step);
  if (step.text.empty() && step.tokens.empty() && !trace) return;
  has_line_ = has_line_ || step.text.find('\n') != std::string::npos;
  context().send(partners_.client, session_text{work_.spec().session, step.text, step.tokens, step.logprobs, numerics_,
                                                std::move(trace)});
}

/// Where a step's tokens came from, if the request asked for that.
std::optional<step_trace> session::trace_of(const token_log::progress& step) {
  if (!work_.spec().trace || (step.tokens.empty() && !round_trace_)) return std::nullopt;
  step_trace out = std::exchange(round_trace_, std::nullopt).value_or(step_trace{.round = round_.value});
  out.at_us = static_cast<std::uint64_t>((context().now() - began_).count());
  const std::uint32_t said = std::exchange(said_count_, 0);
  std::size_t run = 0;
  std::uint32_t run_end = out.drafts.empty() ? 0 : out.drafts.front().tokens;
  for (std::uint32_t i = 0; i < step.tokens.size(); ++i) {
    token_origin from = token_origin::model;
    if (i >= said) {
      // The model did not choose these tokens. A program's own words are no text of the answer, but what it copies is.
      from = work_.is_program() && step.bytes[i] > 0 ? token_origin::copy : token_origin::grammar;
    } else if (i < out.accepted) {
      while (i >= run_end && run + 1 < out.drafts.size()) run_end += out.drafts[++run].tokens;
      if (i < run_end) from = out.drafts[run].from;
    }
    if (out.came.empty() || out.came.back().from != from) out.came.push_back({from, 0, 0});
    ++out.came.back().tokens;
    out.came.back().bytes += step.bytes[i];
  }
  return out;
}

/// A late proposal is not used as a draft, but it may say that the drafter lost the log.
void session::on(const proposal& m) {
  if (m.session != work_.spec().session) return;
  stats_.draft_passes += m.draft_passes;
  if (!m.log_needed_from) hear_costs(m);
  if (m.round == round_ && talk_.hear(m)) return;
  if (m.log_needed_from) drafter_knows_ = std::min(drafter_knows_, *m.log_needed_from);
}

void session::on(const actor::job_done& m) {
  if (pool_) pool_->on(m);
  (void)talk_.hear(m);
}

void session::on(const pause_session& m) {
  paused_ = m.paused;
  (void)talk_.hear(m);
}

void session::on(const session_tick&) {
  context().after(session_period, session_tick{});
  talk_.note_time(context().now());
}

// What the cache manager did not get is asked again at the next tick that finds it overdue; in a pool, of another one.
void session::on(const actor::undeliverable& m) {
  if (m.to == partners_.client) {
    leave();
  } else if (m.to == partners_.manager.where) {
    if (m.why.code == errc::unreachable && m.what != release_sequence::id) ask_for_place(actor::process_of(m.to));
  } else if (m.to == partners_.drafter.where) {
    lose_drafter();
    (void)talk_.hear(m);
  }
}

void session::finish(finish_reason reason, std::optional<failure> why_not, std::uint32_t retry_after_ms) {
  stats_.completion_tokens = work_.output_count();
  stats_.total_us = static_cast<std::uint64_t>((context().now() - began_).count());
  auto copied = work_.copied();
  for (const auto& span : copied.spans) (span.forced ? stats_.copied_forced : stats_.copied_verified) += span.tokens;
  context().send(partners_.client, session_finished{work_.spec().session, reason, stats_, std::move(why_not),
                                                    retry_after_ms, std::move(copied), std::string(work_.stop_text())});
  leave();
}

void session::leave() {
  if (std::exchange(has_left_, true)) return;
  if (partners_.borrowed) {
    if (partners_.manager) context().tell(partners_.manager, give_up_round{sequence(), round_});
    context().send(partners_.borrowed->owner, sequence_returned{sequence()});
  } else if (partners_.manager) {
    context().tell(partners_.manager, release_sequence{sequence()});
  }
  if (partners_.placer) context().tell(partners_.placer, leave_place{work_.spec().session});
  if (partners_.drafter) context().tell(partners_.drafter, forget{work_.spec().session});
  // A long book is taken apart by another actor, a part at a time.
  if (book_ && book_->drop(0, book_knows_)) {
    context().spawn<retired_book>("retired book", {4, 4}, std::move(book_));
  }
  context().stop();
}

}  // namespace redline::actors

template class redline::actor::actor_cell<redline::actors::session>;
