#include "runtime/draft/draft_engine.hpp"

#include <algorithm>
#include <utility>

namespace redline::draft {
namespace {

/// Steps, in passes, in which the median of what rounds take beside their pass is followed.
constexpr double round_step = 1.0 / 32;

}  // namespace

draft_engine::draft_engine(engine_limits limits, engine_model small)
    : limits_(limits), clock_(small.clock), tenants_(limits.sessions_max) {
  if (!small.model) return;
  runner_.emplace(std::move(small.model), std::move(small.end_tokens), limits.model, small.clock,
                  std::move(small.chooser), std::move(small.passes));
}

bool draft_engine::can_use_model(const entry& e) const {
  return runner_ && e.embedded_count == e.drafts.log().tokens().size();
}

std::optional<std::uint32_t> draft_engine::submit(draft_request request) {
  auto known = sessions_.find(request.session);
  if (known != sessions_.end() && known->second.drafts.tenant() != request.tenant) {
    forget(request.session);  // nothing of one tenant is kept for another
    known = sessions_.end();
  }
  const std::size_t known_count = known == sessions_.end() ? 0 : known->second.drafts.log().tokens().size();
  if (request.from > known_count) return static_cast<std::uint32_t>(known_count);
  if (known == sessions_.end()) {
    if (sessions_.size() >= limits_.sessions_max) forget_longest_unused();
    entry fresh{.drafts = {request.tenant, tenants_.of(request.tenant)}};
    known = sessions_.emplace(request.session, std::move(fresh)).first;
  }

  entry& e = known->second;
  time_round(e, request);
  e.last_used = ++use_counter_;
  if (runner_) {
    runner_->drop_job(request.session);
    runner_->cut(request.session, request.from);
  }
  e.drafts.take_log(request);
  if (runner_) {
    e.embedded_count =
        runner_->count_embedded(e.drafts.log().tokens(), std::min<std::size_t>(e.embedded_count, request.from));
  }

  graded_draft ready;
  if (is_for_model(e, request, ready)) {
    const double round_us = prices_for(request, 0).round_us;
    runner_->submit({.request = std::move(request), .session = &e.drafts, .round_us = round_us});
  } else {
    finish(request, ready, 0, !runner_ || runner_->is_idle());
  }
  return std::nullopt;
}

/// Whether the draft is the model's; if not, it is `ready`. Turns `automatic` into what is made of it in this round.
bool draft_engine::is_for_model(entry& e, draft_request& r, graded_draft& ready) {
  const draft_options& o = r.options;
  if (o.how == method::regular) return false;
  const bool is_models = (o.how == method::assisted || o.how == method::blazedit) && can_use_model(e);
  // A model that may never be chosen does not read along.
  if (r.tokens_max == 0) return is_models;
  const auto drafts = e.drafts.ready(o, reads_prediction(o.how), std::min(o.lookup_tokens_max, r.tokens_max));
  if (o.how == method::automatic && can_use_model(e)) {
    const auto log_count = static_cast<std::uint32_t>(e.drafts.log().tokens().size());
    const std::uint32_t answered = log_count - std::min(log_count, r.prompt_count);
    const auto reading = runner_->reading_for(e.drafts, r);
    // An edited file is about as long as the one in the prompt; another answer may well go on for as long as it did.
    const std::uint32_t to_come = std::max(r.prompt_count - std::min(r.prompt_count, answered), answered);
    const draft_session::models_reading before{.unread = static_cast<double>(reading.unread),
                                               .tokens_to_come = static_cast<double>(to_come)};
    if (e.drafts.begin_round(drafts, r.tokens_max, before, prices_for(r, reading.context))) {
      r.options.how = method::blazedit;
      return true;
    }
  } else {
    e.drafts.begin_round(drafts);
  }
  if (!is_models) ready = drafts.believed();
  return is_models;
}

round_prices draft_engine::prices_for(const draft_request& r, std::size_t models_context) const {
  round_prices prices;
  if (!r.step.is_known()) return prices;
  const auto sessions = static_cast<double>(std::max(r.step.sessions, 1U));
  const double pass_us = r.step.pass_us;
  prices.row_us = r.step.row_us();
  prices.round_us = std::min(prices.row_us, pass_us) + (std::max(pass_us - prices.row_us, 0.0) + round_us_) / sessions;
  if (!runner_) return prices;
  // Until it was measured, a row of the small model is as much cheaper as its passes are.
  const cost::step_cost own = runner_->step_cost_at(models_context);
  const round_prices guess;
  prices.model_pass_us = own.is_known() ? own.pass_us : pass_us * guess.model_pass_us / guess.round_us;
  prices.model_row_us = own.is_known() ? own.row_us() : prices.row_us * guess.model_pass_us / guess.round_us;
  return prices;
}

/// The request for the next draft tells when the last one was answered. Where others wanted drafts meanwhile the target
/// worked for them too, and where tokens were wrong it is not known how many were verified: then the time says nothing.
void draft_engine::time_round(entry& e, const draft_request& r) {
  const auto handed = std::exchange(e.handed, std::nullopt);
  if (!handed || handed->use != use_counter_ || r.from != handed->log_count || !r.step.is_known()) return;
  if (r.tail.size() != handed->tokens_count + 1) return;
  const double expected = r.step.pass_us + static_cast<double>(handed->tokens_count) * r.step.row_us();
  // The median, as a round that something else held up says nothing of the others.
  const bool is_longer = static_cast<double>((clock_->now() - handed->at).count()) - expected > round_us_;
  round_us_ = std::max(round_us_ + (is_longer ? round_step : -round_step) * r.step.pass_us, 0.0);
}

void draft_engine::finish(const draft_request& r, const graded_draft& draft, std::uint32_t passes, bool is_alone) {
  entry& e = sessions_.at(r.session);
  if (clock_ != nullptr && is_alone && r.tokens_max > 0) {
    e.handed = {clock_->now(), e.drafts.log().tokens().size(), draft.tokens.size(), use_counter_};
  }
  answers_.push_back({.session = r.session,
                      .asker = r.asker,
                      .round = r.round,
                      .tokens = draft.tokens,
                      .passes = passes,
                      .parts = e.drafts.parts(draft.runs)});
}

std::vector<draft_answer> draft_engine::take_answers() { return std::exchange(answers_, {}); }

void draft_engine::forget(session_id session) {
  if (runner_) runner_->forget(session);
  sessions_.erase(session);
}

void draft_engine::forget_longest_unused() {
  const auto oldest = std::min_element(sessions_.begin(), sessions_.end(), [](const auto& a, const auto& b) {
    return a.second.last_used < b.second.last_used;
  });
  if (oldest != sessions_.end()) forget(oldest->first);
}

bool draft_engine::step() {
  if (!runner_) return false;
  const auto finished = runner_->step();
  for (const model_job& job : finished) {
    sessions_.at(job.request.session).drafts.note_models_draft(job.draft, runner_->passes_of(job));
    finish(job.request, job.draft, job.passes, runner_->is_idle() && finished.size() == 1);
  }
  return !runner_->is_idle();
}

void draft_engine::check_integrity() const {
  if (runner_) runner_->check_integrity();
}

}  // namespace redline::draft
