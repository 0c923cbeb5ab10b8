#include "actors/serving/session.hpp"

#include <algorithm>
#include <utility>

#include "actors/serving/draft_model.hpp"
#include "actors/serving/verify_scheduler.hpp"

namespace redline::actors {
namespace {

constexpr microseconds tick{250'000};

}  // namespace

session::session(actor::actor_context& context, token_log work, session_partners partners)
    : actor_of(context), work_(std::move(work)), partners_(partners) {
  stats_.prompt_tokens = work_.prompt_count();
  stats_.evicted_tokens = work_.evicted_count();
  stats_.evictions = stats_.evicted_tokens > 0 ? 1 : 0;
}

void session::on_start() {
  began_ = heard_ = context().now();
  context().after(tick, session_tick{});
  // The drafter reads the prompt while the target does; the first round has nothing to verify.
  if (partners_.drafter && work_.spec().draft.how != draft::method::regular) ask_drafter(0, 0);
  round_ = {partners_.borrowed ? partners_.borrowed->last_round.value + 1 : 1};
  const auto step = work_.begin();
  tell_client(step);
  // Of a borrowed sequence the scheduler finds out itself what of the log is unchanged.
  if (step.finished)
    finish(*step.finished, step.why_not);
  else
    ask_target(0);
}

log_tail session::tail(std::uint32_t from) const {
  const auto tokens = work_.log().subspan(std::min<std::size_t>(from, work_.log().size()));
  return {from, {tokens.begin(), tokens.end()}};
}

void session::next_round() {
  ++round_.value;
  draft_.clear();
  parts_.clear();
  draft_is_span_ = false;
  if (pause_wanted_) {
    phase_ = phase::paused;
    return;
  }
  if (auto span = work_.span_draft(); !span.empty()) {
    draft_ = std::move(span);
    draft_is_span_ = true;
    ask_target(target_knows_);
    return;
  }
  if (work_.spec().draft.how != draft::method::regular) draft_ = work_.likely_draft();
  if (!draft_.empty()) {
    parts_ = {{draft::source::program, static_cast<std::uint32_t>(draft_.size())}};
    ask_target(target_knows_);
    return;
  }
  // The last token of the answer needs no draft: the target's own token fills the room.
  const std::uint32_t wanted = std::min({draft::draft_tokens_max(work_.spec().draft), work_.round_room() - 1, width_});
  if (drafter_lost_ && context().now() - *drafter_lost_ >= partners_.drafter_retry) {
    drafter_lost_.reset();
    drafter_knows_ = 0;
  }
  if (drafter() && wanted > 0) {
    phase_ = phase::proposing;
    ask_drafter(drafter_knows_, wanted);
  } else {
    ask_target(target_knows_);
  }
}

actor::actor_ref<draft_model> session::drafter() const {
  return drafter_lost_ ? partners_.stand_in : partners_.drafter;
}

/// The stand-in knows nothing of the log yet; what it drafts begins with the next round.
void session::lose_drafter() {
  if (drafter_lost_) return;
  drafter_lost_ = context().now();
  drafter_knows_ = 0;
}

void session::ask_drafter(std::uint32_t from, std::uint32_t tokens_max) {
  asked_ = context().now();
  propose wish{.session = work_.spec().session,
               .tenant = work_.spec().tenant,
               .round = round_,
               .log = tail(from),
               .prompt_count = work_.prompt_count(),
               .options = work_.spec().draft,
               .sampling = work_.spec().sampling,
               .tokens_max = tokens_max,
               .step = step_};
  // A drafter keeps both or neither, so one that asks for the log from its beginning lacks the prediction too.
  if (from == 0 && draft::reads_prediction(work_.spec().draft.how)) wish.prediction = work_.spec().prediction;
  context().tell(drafter(), wish);
  drafter_knows_ = work_.log_count();
}

void session::ask_target(std::uint32_t from) {
  phase_ = phase::verifying;
  asked_ = context().now();
  context().tell(partners_.scheduler,
                 verify_run{.sequence = sequence(),
                            .tenant = work_.spec().tenant,
                            .round = round_,
                            .log = tail(from),
                            .prompt_count = work_.prompt_count(),
                            .draft = draft_,
                            .sampling = work_.spec().sampling,
                            .logprobs = work_.logprobs(),
                            .parts = parts_,
                            .tokens_max = partners_.borrowed ? partners_.borrowed->tokens_max : work_.tokens_max(),
                            .grammar = work_.grammar(),
                            .splices = splices_,
                            .evicted_count = work_.evicted_count()});
  if (!target_strayed_) target_knows_ = work_.log_count();
}

void session::on(const proposal& m) {
  stats_.draft_passes += m.draft_passes;
  if (phase_ != phase::proposing || m.round != round_) {
    // Not a draft this session waits for; but a drafter that lost the log learns it before the next question.
    if (m.log_needed_from) drafter_knows_ = std::min(drafter_knows_, *m.log_needed_from);
    return;
  }
  heard_ = context().now();
  if (m.log_needed_from) {
    const std::uint32_t wanted =
        std::min({draft::draft_tokens_max(work_.spec().draft), work_.round_room() - 1, width_});
    ask_drafter(std::min(*m.log_needed_from, work_.log_count()), wanted);
    return;
  }
  draft_ = work_.usable(m.tokens);
  parts_ = m.parts;
  ask_target(target_knows_);
}

void session::on(const run_pending& m) {
  if (m.round == round_) heard_ = context().now();
}

void session::on(const log_needed& m) {
  if (phase_ != phase::verifying || m.round != round_) return;
  heard_ = context().now();
  splices_.clear();
  if (m.from == 0 && std::exchange(moved_, false)) recomputed_before_ = stats_.reevaluated + 1;
  ask_target(std::min(m.from, work_.log_count()));
}

void session::on(const refused& m) {
  if (phase_ == phase::verifying) finish(finish_reason::failed, m.why, m.retry_after_ms);
}

void session::on(const verified& m) {
  if (phase_ != phase::verifying || m.round != round_) return;
  heard_ = context().now();
  if (m.tokens.empty()) {
    finish(finish_reason::failed, failure{errc::internal, "the scheduler answered a round without a token"});
    return;
  }
  ++stats_.rounds;
  stats_.target_passes += m.passes;
  stats_.target_rows += m.rows;
  stats_.reevaluated = recomputed_before_ + m.recomputed_count;
  splices_.clear();
  if (stats_.rounds == 1) stats_.cached_tokens = std::min(m.cached_count, stats_.prompt_tokens);
  if (stats_.first_token_us == 0) {
    stats_.first_token_us = static_cast<std::uint64_t>((context().now() - began_).count());
    stats_.prompt_exact = std::min(m.exact_count, work_.prompt_count());
  }
  const std::uint32_t before = work_.log_count();
  const auto step = work_.commit(m.tokens, m.logprobs);
  count(m, step.agreed_count - before);
  follow_width(m.verified_count);
  step_ = m.step;
  // The scheduler appended the tokens when it sent them; the log may have gone another way.
  target_knows_ = step.agreed_count;
  target_strayed_ = step.agreed_count < before + m.tokens.size();
  if (!step.finished) make_room();
  tell_client(step);
  if (step.finished)
    finish(*step.finished, step.why_not);
  else
    next_round();
}

void session::tell_client(const token_log::progress& step) {
  if (step.text.empty() && step.tokens.empty()) return;
  context().send(partners_.client, session_text{work_.spec().session, step.text, step.tokens, step.logprobs});
}

/// A full window loses its oldest tokens before the next round.
void session::make_room() {
  const auto gone = work_.make_room();
  if (!gone) return;
  const kv::splice_policy policy = kv::to_splice_policy(work_.spec().eviction.policy);
  splices_.push_back({gone->at, gone->count, {}, policy});
  moved_ = moved_ || kv::keeps_later(policy);
  ++stats_.evictions;
  stats_.evicted_tokens += gone->count;
  target_knows_ = work_.log_count();
  // A drafter is told the window anew from where it changed: its own cache is computed again from there.
  drafter_knows_ = std::min(drafter_knows_, gone->at);
}

/// The scheduler verifies as much of a draft as pays. To draft much more would be work for nothing; twice as much lets
/// the width grow again.
void session::follow_width(std::uint32_t verified_count) {
  if (verified_count < draft_.size()) {
    width_ = std::max(2 * verified_count, width_min);
  } else if (verified_count > 0) {
    width_ = std::min(2 * width_, width_max);
  }
}

/// Adds a round to the counts; `emitted` of its tokens are in the answer.
void session::count(const verified& m, std::size_t emitted) {
  const auto accepted = static_cast<std::uint32_t>(std::min<std::size_t>(m.accepted_count(), emitted));
  if (draft_is_span_) {
    stats_.copy_refused += m.verified_count - std::min(accepted, m.verified_count);
    return;  // the spans themselves are counted at the end
  }
  const std::uint32_t drafted = accepted < m.accepted_count() ? accepted : m.verified_count;
  stats_.drafted += drafted;
  stats_.accepted += accepted;
  std::uint32_t begin = 0;
  for (const auto& part : parts_) {
    auto& source = stats_.sources[static_cast<std::size_t>(part.from)];
    const std::uint32_t end = begin + std::min(part.count, drafted - begin);
    source.drafted += end - begin;
    source.accepted += std::clamp(accepted, begin, end) - begin;
    begin = end;
  }
}

void session::on(const cancel_session&) { leave(); }

void session::on(const pause_session& m) {
  pause_wanted_ = m.paused;
  if (phase_ != phase::paused || m.paused) return;
  --round_.value;  // next_round counts it again
  heard_ = context().now();
  next_round();
}

void session::on(const session_tick&) {
  if (phase_ == phase::over) return;
  context().after(tick, session_tick{});
  const instant now = context().now();
  if (phase_ == phase::proposing && now - asked_ >= partners_.proposal_patience) {
    context().log(log_level::debug, "no proposal in time; the round goes on without a draft");
    lose_drafter();
    ask_target(target_knows_);
  } else if (phase_ == phase::verifying && now - heard_ >= partners_.silence_max) {
    finish(finish_reason::failed,
           failure{errc::not_ready, "the target model has been silent for " +
                                        std::to_string(partners_.silence_max.count() / 1'000'000) + " s"});
  } else if (phase_ == phase::verifying && now - asked_ >= partners_.verdict_retry) {
    ask_target(target_knows_);
  }
}

void session::on(const actor::undeliverable& m) {
  if (m.to == partners_.client) {
    leave();
  } else if (m.to == partners_.drafter.where) {
    lose_drafter();
    if (phase_ == phase::proposing) ask_target(target_knows_);
  }
  // What the scheduler did not get is asked again at the next tick that finds it overdue.
}

void session::finish(finish_reason reason, std::optional<failure> why_not, std::uint32_t retry_after_ms) {
  stats_.completion_tokens = work_.output_count();
  stats_.total_us = static_cast<std::uint64_t>((context().now() - began_).count());
  auto copied = work_.copied();
  for (const auto& span : copied.spans) (span.forced ? stats_.copied_forced : stats_.copied_verified) += span.tokens;
  context().send(partners_.client, session_finished{work_.spec().session, reason, stats_, std::move(why_not),
                                                    retry_after_ms, std::move(copied)});
  leave();
}

void session::leave() {
  if (phase_ == phase::over) return;
  const bool asked = std::exchange(phase_, phase::over) == phase::verifying;
  if (partners_.borrowed) {
    if (asked) context().tell(partners_.scheduler, give_up_round{sequence(), round_});
    context().send(partners_.borrowed->owner, sequence_returned{sequence()});
  } else {
    context().tell(partners_.scheduler, release_sequence{sequence()});
  }
  for (const auto& d : {partners_.drafter, partners_.stand_in}) {
    if (d) context().tell(d, forget{work_.spec().session});
  }
  context().stop();
}

}  // namespace redline::actors

template class redline::actor::actor_cell<redline::actors::session>;
