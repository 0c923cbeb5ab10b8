#include "runtime/draft/book.hpp"

#include <algorithm>
#include <utility>

namespace redline::draft {
namespace {

/// Appending a token to a lookup takes a third of a microsecond, or two if the text never repeats itself.
constexpr std::uint32_t indexed_at_once = 2048;
constexpr std::uint32_t width_min = 8;
constexpr double passes_max = 1000;  // per draft, whatever a draft model reports
constexpr std::uint32_t width_max = 1U << 16;

std::size_t agreement(std::span<const token> draft, std::span<const token> came) {
  return static_cast<std::size_t>(std::mismatch(draft.begin(), draft.end(), came.begin(), came.end()).first -
                                  draft.begin());
}

bool asks_always(method how) { return how == method::assisted || how == method::blazedit; }

}  // namespace

round_costs costs_of(const cost::step_cost& target, const cost::step_cost& model, double overhead_us) {
  round_costs costs;
  if (!target.is_known()) return costs;
  const round_costs guess;
  const double pass_us = target.pass_us;
  costs.row_us = target.row_us();
  costs.round_us = std::min(costs.row_us, pass_us) +
                   (std::max(pass_us - costs.row_us, 0.0) + overhead_us) / std::max(target.sessions, 1U);
  // Until it is measured, a row of the small model is assumed to be cheaper by the same ratio as its passes.
  costs.model_pass_us = model.is_known() ? model.pass_us : pass_us * guess.model_pass_us / guess.round_us;
  costs.model_row_us = model.is_known() ? model.row_us() : costs.row_us * guess.model_pass_us / guess.round_us;
  return costs;
}

round_value best_round(std::span<const draft_part> draft, const round_costs& costs) {
  round_value best;
  double rate = best.rate(costs);
  double tokens = 1;
  double rows = 0;
  double chance = 1;
  for (const draft_part& part : draft) {
    for (std::uint32_t i = 0; i < part.count; ++i) {
      chance *= part.chance();
      const round_value wider{tokens += chance, rows += 1};
      if (wider.tokens < rate * wider.us(costs)) continue;
      best = wider;
      rate = wider.rate(costs);
    }
  }
  return best;
}

book::book(const draft_options& options, std::shared_ptr<tenant_record> tenant, const book_constants& constants)
    : options_(options),
      tenant_(std::move(tenant)),
      constants_(constants),
      mtp_paid_(tenant_->mtp),
      acceptance_(constants),
      model_(tenant_->model),
      width_(width_max) {
  const double kept = 1 - 1 / constants_.remembered_drafts;
  tenant_->answers = kept * tenant_->answers + 1;
  tenant_->saved_us *= kept;
}

void book::add(std::unique_ptr<draft_source> source) { sources_.push_back({.source = std::move(source)}); }

void book::add_mtp() {
  auto source = std::make_unique<mtp_source>();
  mtp_ = source.get();
  add(std::move(source));
}

bool book::append(std::span<const token> committed, bool is_prompt) {
  for (entry& e : sources_) {
    e.source->append(committed, is_prompt);
    e.is_behind = true;
  }
  return catch_up();
}

bool book::drop(std::uint32_t at, std::uint32_t count) {
  for (entry& e : sources_) {
    e.source->drop(at, count);
    e.is_behind = true;
  }
  return catch_up();
}

bool book::catch_up() {
  for (entry& e : sources_) {
    if (!e.is_behind) continue;
    e.is_behind = e.source->catch_up(indexed_at_once);
    if (e.is_behind) return true;
  }
  return false;
}

/// The weighed drafts of all sources; empty for sources that find nothing.
std::vector<book::candidate> book::look_all(std::span<const token> pending, std::uint32_t tokens_max,
                                            const round_costs& costs) const {
  std::vector<candidate> all;
  all.reserve(sources_.size());
  for (const entry& e : sources_) {
    candidate& c = all.emplace_back();
    c.stands = e.source->stands();
    const bool is_copied = c.stands == standing::text;
    c.draft = e.source->look(pending, is_copied ? std::min(tokens_max, options_.lookup_tokens_max) : tokens_max);
    if (c.stands == standing::binding && !c.draft.tokens.empty()) break;
  }
  std::vector<std::size_t> contested(all.size(), std::size_t{1} << 31);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i + 1; j < all.size(); ++j) {
      const auto& a = all[i].draft.tokens;
      const auto& b = all[j].draft.tokens;
      const std::size_t same = agreement(a, b);
      if (same == std::min(a.size(), b.size())) continue;
      contested[i] = std::min(contested[i], same);
      contested[j] = std::min(contested[j], same);
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (contested[i] < all[i].draft.tokens.size()) all[i].draft.contest(contested[i]);
    weigh(all[i], costs);
  }
  return all;
}

void book::weigh(candidate& c, const round_costs& costs) const {
  c.parts = parts(c.draft);
  c.value = best_round(c.parts, costs);
}

std::size_t book::best_of(const std::vector<candidate>& all, const round_costs& costs) {
  std::size_t best = all.size();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].draft.tokens.empty()) continue;
    if (all[i].stands == standing::binding) return i;
    if (best == all.size() || all[i].value.rate(costs) > all[best].value.rate(costs)) best = i;
  }
  return best;
}

book::decision book::decide(graded_draft draft) const {
  decision out;
  out.parts = parts(draft);
  out.draft = std::move(draft);
  return out;
}

book::decision book::choose(const round_costs& costs, std::uint32_t tokens_max, const model_state& model,
                            const usable& cut) {
  round_.emplace();
  open_round& r = *round_;
  r.costs = costs;
  r.tokens_max = tokens_max;
  r.candidates = look_all({}, r.tokens_max, costs);
  for (candidate& c : r.candidates) {
    if (c.stands == standing::binding) continue;
    const std::size_t said = c.draft.tokens.size();
    cut(c.draft);
    if (c.draft.tokens.size() < said) weigh(c, costs);
  }
  r.best = best_of(r.candidates, costs);
  r.mtp_spent_us = std::exchange(mtp_spent_us_, std::nullopt);
  decision out;
  bool has_form = false;
  if (r.best < r.candidates.size()) {
    candidate& best = r.candidates[r.best];
    has_form = best.stands != standing::text;
    r.grade = best.draft.runs.front().grade;
    out = decide(best.draft);
    out.is_binding = best.stands == standing::binding;
  }
  r.offered = static_cast<std::uint32_t>(out.draft.tokens.size());
  const std::uint32_t model_max = std::min(tokens_max, std::min(width_, draft_tokens_max(options_)));
  if (out.is_binding || !model.is_there || model_max == 0) return out;
  const bool asks =
      asks_always(options_.how) ? !has_form : options_.how == method::automatic && model_pays(model, costs);
  if (asks) out.ask_model = model_max;
  return out;
}

double book::saved_us(const model_tally& t, const round_costs& costs) {
  return t.rounds_saved * costs.round_us + t.rows_saved * costs.row_us - t.passes * costs.model_pass_us;
}

/// The expected outcome of one model draft at a position of this grade: from recent drafts at such positions, else from
/// drafts at all positions, else from the first guess.
model_tally book::expected_of_model(std::uint8_t grade) const {
  const auto mean = [&](const model_tally& seen, const model_tally& expected) {
    // The guess weighs less the more drafts have been forgotten. Otherwise a lasting guess could keep asking a model
    // that saves nothing and costs less than a part of a round.
    const double first = constants_.first_weight * (1 - seen.drafts / constants_.remembered_model_drafts);
    const double all = seen.drafts + first;
    return model_tally{.drafts = 1,
                       .rounds_saved = (seen.rounds_saved + first * expected.rounds_saved) / all,
                       .rows_saved = (seen.rows_saved + first * expected.rows_saved) / all,
                       .passes = (seen.passes + first * expected.passes) / all};
  };
  // Before it was tried, a forward pass of the draft model is assumed to save a round, for two rows.
  const double saved = constants_.first_saved_rounds;
  const model_tally guess{.drafts = 1, .rounds_saved = saved, .rows_saved = -2 * saved, .passes = saved};
  return mean(model_.of[grade], mean(model_.all, guess));
}

/// Asking pays if a draft is expected to save time, and either the savings forgone so far cover what the model has to
/// read (ski rental: at most twice the cost of the better choice, whatever comes), or its savings in a usual answer do.
/// If it does not seem to pay, it is still asked when that takes a small share of the time since the last request.
bool book::model_pays(const model_state& model, const round_costs& costs) {
  const model_tally expected = expected_of_model(round_->grade);
  const double saved = saved_us(expected, costs);
  const double reading = model.unread * costs.model_row_us;
  const bool is_trial = spent_us_ >= constants_.trial_share * (reading - saved);
  const double usual = tenant_->saved_us / tenant_->answers;
  const bool pays = (saved > 0 && std::max(owed_us_ + saved, usual) >= reading) || is_trial;
  if (pays) {
    owed_us_ = spent_us_ = 0;
  } else {
    owed_us_ += std::max(saved, 0.0) / (1 + std::max(expected.rounds_saved, 0.0));
  }
  return pays;
}

book::decision book::hear_model(graded_draft draft, double passes, const usable& cut) {
  if (!round_) return {};
  std::size_t counted = 0;
  for (graded_segment& run : draft.runs) {
    run.count = static_cast<std::uint32_t>(std::min<std::size_t>(run.count, draft.tokens.size() - counted));
    counted += run.count;
    if (run.grade >= grades_count || run.from >= source::last_) run = {source::model, 0, run.count};
  }
  if (counted < draft.tokens.size()) {
    draft.runs.push_back({source::model, 0, static_cast<std::uint32_t>(draft.tokens.size() - counted)});
  }
  draft.truncate(round_->tokens_max);
  cut(draft);
  round_->model = {.draft = draft, .passes = std::clamp(passes, 0.0, passes_max)};
  const bool has_best = round_->best < round_->candidates.size();
  if (draft.tokens.empty()) {
    if (!has_best) return {};
    return decide(round_->candidates[round_->best].draft);
  }
  round_->offered = static_cast<std::uint32_t>(draft.tokens.size());
  return decide(std::move(draft));
}

/// A draft saves what the other sources would have taken for its tokens. Before it was tried, it is assumed to pay. If
/// it does not seem to, it is still asked when that takes a small share of the time since the last request.
mtp_request book::ask_mtp(const round_costs& costs) {
  if (mtp_ == nullptr) return {};
  const mtp_tally& seen = mtp_paid_;
  const bool pays = seen.drafts == 0 || seen.saved_us >= seen.spent_us;
  const bool is_trial = since_mtp_us_ * seen.drafts >= constants_.trial_share * seen.spent_us;
  if (options_.how == method::automatic && !pays && !is_trial) return {};
  const double drafting_us = mtp_row_us_ > 0 ? mtp_row_us_ : costs.model_pass_us;
  const double cost = (drafting_us + costs.row_us) / std::max(costs.round_us, 1.0);
  return {.tokens = mtp_tokens_max, .token_cost = static_cast<float>(std::min(cost, 1.0))};
}

void book::hear_mtp(std::uint32_t at, const mtp_draft& draft) {
  if (mtp_ == nullptr) return;
  mtp_->hear(at, draft);
  if (draft.row_us == 0) return;
  mtp_row_us_ = draft.row_us;
  mtp_spent_us_ = mtp_row_us_ * std::min(draft.rows, mtp_tokens_max);
  since_mtp_us_ = 0;
}

/// Compares the round with one of the best other source.
void book::learn_of_mtp(const open_round& round, std::span<const token> came, std::uint32_t verified_count) {
  double saved = 0;
  if (!round.model && round.best < round.candidates.size() && sources_[round.best].source.get() == mtp_) {
    std::vector<candidate> others = round.candidates;
    others[round.best].draft = {};
    const std::size_t second = best_of(others, round.costs);
    const round_value without = second < others.size() ? others[second].value : round_value{};
    const round_value with{.tokens = static_cast<double>(came.size()), .rows = static_cast<double>(verified_count)};
    saved = with.tokens / without.rate(round.costs) - with.us(round.costs);
  }
  const double kept = 1 - 1 / constants_.remembered_model_drafts;
  for (mtp_tally* const t : {&mtp_paid_, &tenant_->mtp}) {
    t->drafts = kept * t->drafts + 1;
    t->saved_us = kept * t->saved_us + saved;
    t->spent_us = kept * t->spent_us + *round.mtp_spent_us;
  }
}

void book::learn_of(const graded_draft& draft, std::span<const token> came) {
  const std::size_t right = agreement(draft.tokens, came);
  const bool is_wrong = right < std::min(draft.tokens.size(), came.size());
  acceptance_.learn(draft.runs, static_cast<std::uint32_t>(right), is_wrong);
  tenant_->acceptance.learn(draft.runs, static_cast<std::uint32_t>(right), is_wrong);
}

void book::judge(std::span<const token> came, std::uint32_t verified_count) {
  if (!round_) return;
  const open_round round = *std::exchange(round_, std::nullopt);
  for (const candidate& c : round.candidates) learn_of(c.draft, came);
  if (round.model) {
    learn_of(round.model->draft, came);
    if (options_.how != method::assisted) learn_of_model(round, came, verified_count);
  }
  const double round_us = round.costs.round_us + verified_count * round.costs.row_us;
  if (round.mtp_spent_us) learn_of_mtp(round, came, verified_count);
  spent_us_ += round_us;
  since_mtp_us_ += round_us;
  if (verified_count < round.offered) {
    width_ = std::max(static_cast<std::uint32_t>(constants_.width_growth * verified_count), width_min);
  } else if (verified_count > 0) {
    width_ = static_cast<std::uint32_t>(std::min<double>(constants_.width_growth * width_, width_max));
  }
}

/// Replays round by round what the copies would have given at the same positions. (Their rate elsewhere says little
/// here: the model is asked where copies are poor.)
void book::learn_of_model(const open_round& round, std::span<const token> came, std::uint32_t verified_count) {
  model_tally saved{.drafts = 1,
                    .rounds_saved = -1,
                    .rows_saved = -static_cast<double>(verified_count),
                    .passes = round.model->passes};
  for (std::size_t at = 0; at < came.size();) {
    const auto left = came.subspan(at);
    const auto all = at == 0 ? round.candidates : look_all(came.first(at), round.tokens_max, round.costs);
    const std::size_t best = best_of(all, round.costs);
    const round_value value = best < all.size() ? all[best].value : round_value{};
    const std::size_t right = best < all.size() ? agreement(all[best].draft.tokens, left) : 0;
    const std::size_t accepted = std::min(right, static_cast<std::size_t>(value.rows));
    const std::size_t count = std::min(accepted + 1, left.size());
    // A round that would have given more tokens than remain counts in part.
    const double gives = std::max(static_cast<double>(accepted + 1), accepted == left.size() ? value.tokens : 0.0);
    const double share = static_cast<double>(count) / gives;
    saved.rounds_saved += share;
    saved.rows_saved += share * value.rows;
    at += count;
  }
  tenant_->saved_us += saved_us(saved, round.costs);
  add_to_tallies(round.grade, saved);
}

void book::add_to_tallies(std::uint8_t grade, const model_tally& came) {
  const double kept = 1 - 1 / constants_.remembered_model_drafts;
  for (model_tally* const t : {&model_.of[grade], &model_.all, &tenant_->model.of[grade], &tenant_->model.all}) {
    t->drafts = kept * t->drafts + came.drafts;
    t->rounds_saved = kept * t->rounds_saved + came.rounds_saved;
    t->rows_saved = kept * t->rows_saved + came.rows_saved;
    t->passes = kept * t->passes + came.passes;
  }
}

}  // namespace redline::draft
