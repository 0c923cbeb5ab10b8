#include "actors/serving/draft_model.hpp"

namespace redline::actors {

draft_model::draft_model(actor::actor_context& context, std::unique_ptr<draft::small_model_runner> runner,
                         std::shared_ptr<trace::tracer> tracer)
    : actor_of(context), runner_(std::move(runner)), tracer_(std::move(tracer)) {}

void draft_model::on(const propose& m) {
  if (tracer_ && context().span() && !traced_.contains(m.session)) {
    if (traced_.size() == traced_max) traced_.clear();  // the ends of most must have been lost
    const bool is_elsewhere = actor::process_of(context().sender()) != actor::process_of(self().where);
    traced_[m.session].span = {tracer_, context().env(), context().span(), "redline.draft",
                               is_elsewhere ? trace::span_kind::server : trace::span_kind::internal};
  }
  draft::model_request request{.session = m.session,
                               .asker = context().sender().value,
                               .tenant = m.tenant,
                               .round = m.round,
                               .from = m.log.from,
                               .tail = m.log.tokens,
                               .prompt_count = m.prompt_count,
                               .tokens_max = m.tokens_max,
                               .options = m.options,
                               .round_us = m.round_us,
                               .row_ns = m.row_ns,
                               .sampling = m.sampling};
  if (const auto known_count = runner_->submit(std::move(request))) {
    context().send(context().sender(),
                   proposal{.session = m.session, .round = m.round, .log_needed_from = known_count});
    return;
  }
  send_answers();
}

void draft_model::on(const forget& m) {
  runner_->forget(m.session);
  end_trace(m.session);
}

void draft_model::end_trace(session_id session) {
  const auto at = traced_.find(session);
  if (at == traced_.end()) return;
  auto& [span, rounds, passes, tokens] = at->second;
  span.set("redline.rounds", rounds);
  span.set("redline.draft_passes", passes);
  span.set("redline.proposed", tokens);
  span.end();
  traced_.erase(at);
}

bool draft_model::on_idle() {
  const bool more = runner_->step();
  send_answers();
  return more;
}

void draft_model::send_answers() {
  for (auto& answer : runner_->take_answers()) {
    if (const auto at = traced_.find(answer.session); at != traced_.end()) {
      ++at->second.rounds;
      at->second.passes += answer.passes;
      at->second.tokens += static_cast<std::int64_t>(answer.draft.tokens.size());
      at->second.span.add_event("redline.proposal",
                                {{"redline.draft_passes", std::int64_t{answer.passes}},
                                 {"redline.proposed", static_cast<std::int64_t>(answer.draft.tokens.size())}});
    }
    context().send(actor::address{answer.asker}, proposal{.session = answer.session,
                                                          .round = answer.round,
                                                          .tokens = std::move(answer.draft.tokens),
                                                          .runs = std::move(answer.draft.runs),
                                                          .draft_passes = answer.passes,
                                                          .took_us = answer.took_us,
                                                          .cost = answer.cost,
                                                          .unread = answer.unread,
                                                          .reads_max = runner_->context_max()});
  }
}

}  // namespace redline::actors

template class redline::actor::actor_cell<redline::actors::draft_model>;
