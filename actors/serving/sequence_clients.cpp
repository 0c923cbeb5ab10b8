#include "actors/serving/sequence_clients.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace redline::actors {

void sequence_trace::begin(const std::shared_ptr<trace::tracer>& tracer, environment& env,
                           const trace::span_context& answer, bool is_remote) {
  if (spans_ && spans_->answer == answer) return;
  end();
  if (!tracer || !answer) return;
  spans_ = std::make_unique<spans>(spans{.answer = answer});
  spans_->sequence = {tracer, env, answer, "redline.sequence",
                      is_remote ? trace::span_kind::server : trace::span_kind::internal};
  spans_->prompt = {tracer, env, spans_->sequence.context(), "redline.prompt"};
}

void sequence_trace::note_round(const verified& answer, std::uint32_t prompt_count) {
  if (!spans_) return;
  spans& t = *spans_;
  ++t.rounds;
  t.passes += answer.passes;
  t.rows += answer.rows;
  t.drafted += answer.verified_count;
  t.accepted += answer.accepted_count();
  if (t.prompt) {
    t.prompt.set("redline.prompt_tokens", std::int64_t{prompt_count});
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

void sequence_trace::end(const failure* why_not) {
  const auto ended = std::exchange(spans_, nullptr);
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

sequence_client* sequence_clients::find(sequence_id sequence) {
  const auto at = all_.find(sequence);
  return at == all_.end() ? nullptr : &at->second;
}

bool sequence_clients::lacks_terms(const asked_round& q) {
  if (q.run.terms) return false;
  const sequence_client* known = find(q.run.round.sequence);
  return known == nullptr || known->session != q.session;
}

void let_wait(std::vector<asked_round>& waiting, const asked_round& q) {
  const auto is_later = [&](const asked_round& one) { return one.run.round.number >= q.run.round.number; };
  if (std::ranges::none_of(waiting, is_later)) waiting.push_back(q);
}

void sequence_clients::let_wait(const asked_round& q) {
  actors::let_wait(all_.at(q.run.round.sequence).overtaking, q);
  some_wait_ = true;
}

std::vector<asked_round> sequence_clients::take_waiting() {
  std::vector<asked_round> out;
  if (!std::exchange(some_wait_, false)) return out;
  for (auto& [sequence, c] : all_) {
    std::move(c.overtaking.begin(), c.overtaking.end(), std::back_inserter(out));
    c.overtaking.clear();
  }
  return out;
}

}  // namespace redline::actors
