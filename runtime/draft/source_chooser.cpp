#include "runtime/draft/source_chooser.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace redline::draft {
namespace {

/// Of an average, how much the newest value counts; the first few count more, an answer may have only a dozen drafts.
constexpr double forgetting = 0.1;
constexpr double guess_weight = 2;  // of the expectation at first, in drafts

/// What a new session expects of a draft that 0, 1, 2, 3, 4 or 5, 6 to 8, and more matching tokens speak for.
constexpr double gain_at_first[] = {0.5, 1, 3, 6, 12, 18, 24};
/// A client means its prediction for this answer: one token that agrees is enough to believe it before the draft model.
constexpr double predicted_gain_at_first[] = {0.5, 6, 7, 8, 12, 18, 24};
constexpr double length_at_first = 80;
/// The same of the draft model, for which nothing speaks beforehand.
constexpr double model_gain_at_first = 6;
constexpr double model_passes_at_first = 2;
constexpr double model_length_at_first = 32;
constexpr double model_rows_at_first = 8;
/// Of a copy's expected gain, what is right of as many rows.
constexpr double right_at_first = 0.75;
constexpr double length_max = 512;
/// What is promised now counts as so many tokens beside those that ready drafts are known to have served.
constexpr double promised_tokens = 8;
/// What ready drafts take is known better than what the model takes, which also keeps the target's threads and caches
/// from it: it has to save so much of its costs.
constexpr double model_margin = 0.1;
/// Nothing is known of what the model would have given, so in rounds without it the expectation goes back to the first.
constexpr double model_drift = 1.0 / 256;
/// The same of all sessions together, so that many short answers don't each try what failed in those before.
constexpr double typical_drift = 1.0 / 4096;
/// How much of what others saw counts as if it were the session's own, in drafts.
constexpr double typical_seen_max = 4;
constexpr double kept_per_session = 0.98;
/// What the model reads at first is shared by at least as many drafts; fewer, and what is thought of it could never
/// mend.
constexpr double drafts_to_come_min = 3;
/// Of two sources that disagree, how much of older outcomes is kept at each new one.
constexpr double kept_per_disagreement = 0.9;

}  // namespace

void source_rivalry::learn(std::span<const token> predicted, std::span<const token> looked_up,
                           std::span<const token> came) {
  const auto [p, l] = std::mismatch(predicted.begin(), predicted.end(), looked_up.begin(), looked_up.end());
  const auto agreed = static_cast<std::size_t>(p - predicted.begin());
  if (p == predicted.end() || l == looked_up.end() || agreed >= came.size()) return;
  if (!std::equal(came.begin(), came.begin() + static_cast<std::ptrdiff_t>(agreed), predicted.begin())) return;
  predicted_right_ *= kept_per_disagreement;
  looked_up_right_ *= kept_per_disagreement;
  if (came[agreed] == *p) predicted_right_ += 1;
  if (came[agreed] == *l) looked_up_right_ += 1;
}

source_chooser::record source_chooser::model_at_first() {
  return {.gain = model_gain_at_first,
          .passes = model_passes_at_first,
          .rows = model_rows_at_first,
          .right = model_gain_at_first,
          .length = model_length_at_first};
}

source_chooser::source_chooser() {
  static_assert(std::size(gain_at_first) == classes_count && std::size(predicted_gain_at_first) == classes_count);
  for (const source from : all_sources) {
    for (std::size_t i = 0; i < classes_count; ++i) {
      record& r = records_[static_cast<std::size_t>(from)][i];
      if (from == source::model) {
        r = model_at_first();
      } else {
        const double gain = from == source::prediction ? predicted_gain_at_first[i] : gain_at_first[i];
        r = {.gain = gain, .rows = gain, .right = right_at_first * gain, .length = length_at_first};
      }
    }
  }
}

source_chooser::source_chooser(std::shared_ptr<source_chooser> typical) : source_chooser() {
  typical_ = std::move(typical);
  if (!typical_) return;
  typical_->tokens_count_ *= kept_per_session;
  typical_->model_drafts_count_ *= kept_per_session;
  for (std::size_t from = 0; from < std::size(records_); ++from) {
    for (std::size_t i = 0; i < classes_count; ++i) {
      const record& t = typical_->records_[from][i];
      records_[from][i] = {.gain = t.gain,
                           .seen = std::min(t.seen, typical_seen_max),
                           .passes = t.passes,
                           .rows = t.rows,
                           .right = t.right,
                           .length = t.length,
                           .ready = t.ready};
    }
  }
}

std::size_t source_chooser::class_of(const draft_offer& offer) { return grade_of_match(offer.matched); }

const source_chooser::record& source_chooser::record_of(const draft_offer& offer) const {
  return records_[static_cast<std::size_t>(offer.from)][class_of(offer)];
}
source_chooser::record& source_chooser::record_of(const draft_offer& offer) {
  return records_[static_cast<std::size_t>(offer.from)][class_of(offer)];
}

std::uint32_t source_chooser::length(const draft_offer& offer, const draft_prices& prices) const {
  if (prices.measured) return offer.tokens;
  return std::min(offer.tokens, static_cast<std::uint32_t>(record_of(offer).length));
}

double source_chooser::gain(const draft_offer& offer) const {
  const record& r = record_of(offer);
  return r.seen == 0 && offer.expected > 0 ? offer.expected : r.gain;
}

/// Tokens per cost of a pass with this draft, without what the model catches up on; plain decoding has 1.
source_chooser::promise source_chooser::promise_of(const draft_offer& offer, const draft_prices& prices) const {
  const record& r = record_of(offer);
  const double tokens = length(offer, prices);
  const bool is_known = r.seen > 0 || offer.expected == 0;
  const double right = prices.measured && is_known ? r.right : gain(offer);
  const double rows = !prices.measured ? tokens : is_known ? r.rows : offer.expected;
  double model = 0;
  if (offer.from == source::model) {
    double drafts_to_come = prices.tokens_to_come / (1 + right);
    if (typical_) {
      const double per_token = typical_->model_drafts_count_ / typical_->tokens_count_;
      drafts_to_come = std::min(drafts_to_come, per_token * prices.tokens_to_come);
    }
    drafts_to_come = std::max(drafts_to_come, drafts_to_come_min);
    model = prices.model_pass * r.passes + prices.model_first / drafts_to_come;
  }
  return {1 + std::min(right, tokens), prices.pass + prices.round + prices.row * std::min(rows, tokens) + model};
}

/// Tokens per cost of the ready drafts that this draft of the model would replace. now: what the best of them promises.
double source_chooser::ready_worth(const draft_offer& models, const draft_prices& prices, double now) const {
  const ready_stretch& r = record_of(models).ready;
  const double takes = r.passes * (prices.pass + prices.round) + r.rows * prices.row;
  return (r.tokens + promised_tokens) / (takes + promised_tokens / now);
}

/// Rounds to leave a record out for, since it failed or promises less than it costs.
std::uint32_t source_chooser::rest_of(const record& r, double worth) {
  if (r.misses >= misses_max) return std::min(1u << std::min(r.misses - misses_max, 16u), rest_max);
  return worth > 1 ? 0 : rest_max;
}

std::optional<source_chooser::choice> source_chooser::choose(std::span<const draft_offer> offers,
                                                             const draft_prices& prices) {
  const double plain = 1 / (prices.pass + prices.round);
  lost_per_token_ = 0;
  const draft_offer* best = nullptr;
  double best_worth = 0;
  for (const draft_offer& offer : offers) {
    if (offer.tokens == 0) continue;
    record& r = record_of(offer);
    const promise now = promise_of(offer, prices);
    const bool by_model = offer.from == source::model;
    bool is_better = now.worth() > best_worth;
    if (by_model) {
      drift(offer);
      const double saved = now.tokens / ready_worth(offer, prices, std::max(best_worth, plain)) - now.takes;
      lost_per_token_ = saved / now.tokens;
      is_better = saved > model_margin * now.takes && lost_ + saved >= prices.model_catch_up;
      // Where nothing has come since the last choice this one stands for it.
      if (!open_.empty() && open_.back().so_far.tokens == 0) open_.pop_back();
      open_.push_back({.models = offer, .to_come = now.tokens, .so_far = {}});
    }
    const bool is_free = prices.measured && !by_model;
    if (!is_free && r.rested < rest_of(r, now.worth() / plain)) {
      ++r.rested;
    } else if (is_better) {
      best = &offer;
      best_worth = now.worth();
    }
  }
  if (best == nullptr) return std::nullopt;
  return choice{best->from, length(*best, prices)};
}

void source_chooser::drift(const draft_offer& offer) {
  const auto towards = [](record& r, const record& expected, double share) {
    r.gain += (expected.gain - r.gain) * share;
    r.rows += (expected.rows - r.rows) * share;
    r.right += (expected.right - r.right) * share;
  };
  if (typical_) towards(typical_->record_of(offer), model_at_first(), typical_drift);
  towards(record_of(offer), typical_ ? typical_->record_of(offer) : model_at_first(), model_drift);
}

double source_chooser::rows(const draft_offer& offer, std::uint32_t accepted) const {
  return std::min<double>(offer.tokens, std::max(accepted + 1.0, record_of(offer).rows));
}

void source_chooser::learn_stretch(const draft_offer& models, const ready_stretch& whole) {
  if (typical_) typical_->learn_stretch(models, whole);
  ready_stretch& r = record_of(models).ready;
  r.tokens += whole.tokens - forgetting * r.tokens;
  r.passes += whole.passes - forgetting * r.passes;
  r.rows += whole.rows - forgetting * r.rows;
}

/// A stretch that ends within what came has its share of it.
void source_chooser::learn_ready(const ready_stretch& came) {
  lost_ = std::max(0.0, lost_ + lost_per_token_ * came.tokens);
  std::erase_if(open_, [&](open_stretch& o) {
    const double left = o.to_come - o.so_far.tokens;
    const double share = std::min(1.0, left / came.tokens);
    o.so_far.tokens += share * came.tokens;
    o.so_far.passes += share * came.passes;
    o.so_far.rows += share * came.rows;
    if (left > came.tokens) return false;
    learn_stretch(o.models, o.so_far);
    return true;
  });
}

void source_chooser::note(record& r, const draft_result& result, bool tried) {
  const double accepted = result.accepted;
  const double newest = std::max(forgetting, 1 / (guess_weight + r.seen + 1));
  // Behind a token that was wrong nobody tells how many more were verified: about as many as usual.
  const double drafted = result.drafted;
  const double rows = !tried        ? std::min(drafted, r.rows)
                      : result.open ? accepted
                                    : std::min(drafted, std::max(accepted + 1, r.rows));
  r.rows += newest * (rows - r.rows);
  r.right += newest * (std::min(accepted, rows) - r.right);
  if (!result.open || accepted > r.gain) {
    r.gain += newest * (accepted - r.gain);
    ++r.seen;
  }
  if (result.accepted > 0) r.misses = 0;
}

void source_chooser::learn(const draft_offer& offer, const draft_result& result) {
  if (typical_) typical_->learn(offer, result);
  tokens_count_ += result.accepted + 1;
  if (offer.from == source::model) {
    model_drafts_count_ += 1;
    lost_ = lost_per_token_ = 0;
  }
  record& r = record_of(offer);
  note(r, result, true);
  r.rested = 0;
  r.passes += forgetting * (result.model_passes - r.passes);
  if (result.accepted == result.drafted && result.accepted > 0) {
    r.length = std::min(4 * r.length, length_max);
  } else if (!result.open) {
    r.length = std::clamp<double>(r.length / 2 + 2 * result.accepted, length_min, length_max);
  }
  if (result.accepted == 0 && !result.open) ++r.misses;
}

void source_chooser::learn_untried(const draft_offer& offer, const draft_result& result) {
  if (result.drafted == 0) return;
  if (typical_) typical_->learn_untried(offer, result);
  note(record_of(offer), result, false);
}

}  // namespace redline::draft
