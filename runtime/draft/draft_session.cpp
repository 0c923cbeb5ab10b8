#include "runtime/draft/draft_session.hpp"

#include <algorithm>
#include <utility>

namespace redline::draft {
namespace {

/// Whether the prediction is believed rather than what lookup found. Where the answer has just left the prediction, the
/// longer match is; elsewhere both match, and the one that was right when they last disagreed.
bool believes_prediction(const disagreement_record& record, std::uint32_t agreed, std::uint32_t matched) {
  constexpr std::uint32_t settled = 4;
  return agreed < settled || matched < settled ? agreed >= matched : record.trusts_prediction();
}

std::size_t agreement(std::span<const token> draft, std::span<const token> came) {
  return static_cast<std::size_t>(std::mismatch(draft.begin(), draft.end(), came.begin(), came.end()).first -
                                  draft.begin());
}

}  // namespace

draft_session::draft_session(tenant_id tenant, std::shared_ptr<tenant_drafts> tenants_drafts)
    : tenant_(tenant), tenants_drafts_(std::move(tenants_drafts)), policy_(tenants_drafts_->policy) {}

void draft_session::take_log(draft_request& r) {
  learn(r);
  if (r.from == 0) {
    prediction_ = text::edit_cursor(std::exchange(r.prediction, {}));
    predicted_to_ = 0;
  }
  log_.truncate(r.from);
  log_.append(r.tail);
  follow_prediction(r);
}

void draft_session::follow_prediction(const draft_request& r) {
  const auto log = log_.tokens();
  if (r.from < predicted_to_) {
    prediction_.rewind();
    predicted_to_ = 0;
  }
  predicted_to_ = std::max<std::size_t>(predicted_to_, r.prompt_count);
  for (; predicted_to_ < log.size(); ++predicted_to_) prediction_.emit(log[predicted_to_]);
}

ready_drafts draft_session::ready_after(const text::edit_cursor& prediction, std::span<const token> pending,
                                        const draft_options& options, bool predicts, std::uint32_t most) const {
  ready_drafts out;
  const auto found = log_.look_up(pending, options.max_matching_ngram_size, most);
  out.looked_up.add(source::lookup, grade_of_match(found.matched), found.tokens);
  const auto ahead = predicts ? prediction.ahead(most) : std::span<const token>{};
  if (ahead.empty()) return out;
  const std::uint8_t grade = grade_of_match(prediction.agreed());
  out.predicted.add(source::prediction, grade, ahead);
  // After the prediction's end: the closing fence of a file, the answer's end.
  if (found.tokens.size() > ahead.size() && std::equal(ahead.begin(), ahead.end(), found.tokens.begin())) {
    out.predicted.add(source::lookup, grade, std::span(found.tokens).subspan(ahead.size()));
  }
  out.trusts_prediction =
      found.tokens.empty() || believes_prediction(disagreements_, prediction.agreed(), found.matched);
  return out;
}

void draft_session::begin_round(const ready_drafts& drafts) {
  round_ = {.log_count = log_.tokens().size(),
            .ready = drafts,
            .weighs_model = false,
            .prices = {},
            .ready_value = {},
            .model = {}};
}

bool draft_session::begin_round(const ready_drafts& drafts, double tokens_max, const models_reading& reading,
                                const round_prices& prices) {
  begin_round(drafts);
  round_->weighs_model = true;
  round_->prices = prices;
  round_->ready_value = best_round(parts(drafts.believed().runs), prices);
  const draft_policy::place here{.tokens_max = tokens_max,
                                 .grade = drafts.grade(),
                                 .ready = round_->ready_value,
                                 .unread = reading.unread,
                                 .tokens_to_come = reading.tokens_to_come};
  return policy_.chooses_model(here, prices);
}

void draft_session::note_models_draft(const graded_draft& draft, double passes) {
  if (round_) round_->model = {.draft = draft, .passes = passes};
}

void draft_session::learn_of(const graded_draft& draft, std::span<const token> came) {
  const std::size_t right = agreement(draft.tokens, came);
  const bool is_wrong = right < std::min(draft.tokens.size(), came.size());
  acceptance_.learn(draft.runs, static_cast<std::uint32_t>(right), is_wrong);
  tenants_drafts_->acceptance.learn(draft.runs, static_cast<std::uint32_t>(right), is_wrong);
}

/// Compares the last round's drafts with the tokens that came. A log that is sent again from an earlier token does not
/// say which of them came.
void draft_session::learn(const draft_request& r) {
  if (!round_ || (r.from == round_->log_count && r.tail.empty())) return;
  const auto round = std::exchange(round_, std::nullopt);
  if (r.from != round->log_count) return;
  const std::span<const token> came = r.tail;
  const ready_drafts& ready = round->ready;
  learn_of(ready.looked_up, came);
  learn_of(ready.predicted, came);
  disagreements_.learn(ready.predicted.tokens, ready.looked_up.tokens, came);
  if (round->model) learn_of(round->model->draft, came);
  if (!round->weighs_model) return;
  const auto tokens = static_cast<double>(came.size());
  if (round->model) {
    const rounds_ahead without = rounds_without_model(r, round->prices);
    policy_.learn_model(ready.grade(),
                        {.extra_tokens = tokens - round->ready_value.tokens,
                         .rows = best_round(parts(round->model->draft.runs), round->prices).rows,
                         .passes = round->model->passes,
                         .ready_rounds = without.rounds,
                         .ready_rows = without.rows},
                        round->prices);
  }
  policy_.learn_round(tokens);
}

/// What rounds without the model would have taken for the tokens that came.
draft_session::rounds_ahead draft_session::rounds_without_model(const draft_request& r,
                                                                const round_prices& prices) const {
  rounds_ahead ahead;
  text::edit_cursor prediction = prediction_;
  for (std::span<const token> left = r.tail; !left.empty();) {
    const auto before = std::span(r.tail).first(r.tail.size() - left.size());
    const auto draft =
        ready_after(prediction, before, r.options, reads_prediction(r.options.how), r.options.lookup_tokens_max);
    const round_value value = best_round(parts(draft.believed().runs), prices);
    const auto accepted = std::min(agreement(draft.believed().tokens, left), static_cast<std::size_t>(value.rows));
    const std::size_t count = std::min(accepted + 1, left.size());
    // A round that would have given more than what came counts in part.
    const double gives = std::max(static_cast<double>(accepted + 1), accepted == left.size() ? value.tokens : 0.0);
    ahead.rounds += static_cast<double>(count) / gives;
    ahead.rows += static_cast<double>(count) / gives * value.rows;
    for (const token t : left.first(count)) prediction.emit(t);
    left = left.subspan(count);
  }
  return ahead;
}

}  // namespace redline::draft
