#include "actors/serving/draft_model.hpp"

namespace redline::actors {

draft_model::draft_model(actor::actor_context& context, std::unique_ptr<draft::draft_engine> engine)
    : actor_of(context), engine_(std::move(engine)) {}

void draft_model::on(const propose& m) {
  draft::draft_request request{.session = m.session,
                               .tenant = m.tenant,
                               .round = m.round,
                               .from = m.log.from,
                               .tail = m.log.tokens,
                               .prediction = m.prediction,
                               .prompt_count = m.prompt_count,
                               .tokens_max = m.tokens_max,
                               .options = m.options,
                               .step = m.step,
                               .sampling = m.sampling};
  if (const auto known_count = engine_->submit(std::move(request))) {
    context().send(context().sender(),
                   proposal{.session = m.session, .round = m.round, .log_needed_from = known_count});
    return;
  }
  askers_[m.session] = context().sender();
  send_answers();
}

void draft_model::on(const forget& m) {
  engine_->forget(m.session);
  askers_.erase(m.session);
}

bool draft_model::on_idle() {
  const bool more = engine_->step();
  send_answers();
  return more;
}

void draft_model::send_answers() {
  for (auto& answer : engine_->take_answers()) {
    const auto asker = askers_.find(answer.session);
    if (asker == askers_.end()) continue;
    context().send(asker->second, proposal{.session = answer.session,
                                           .round = answer.round,
                                           .tokens = std::move(answer.tokens),
                                           .draft_passes = answer.passes,
                                           .parts = std::move(answer.parts)});
    askers_.erase(asker);
  }
}

}  // namespace redline::actors

template class redline::actor::actor_cell<redline::actors::draft_model>;
