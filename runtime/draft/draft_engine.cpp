#include "runtime/draft/draft_engine.hpp"

#include <algorithm>
#include <utility>

#include "runtime/model/acceptance.hpp"

namespace redline::draft {

/// Tokens that are looked up for the small model where nothing is known: few where little speaks for them.
static constexpr std::array<double, grades_count> looked_up_at_first = {4, 8, 16, 32, 64, 80, 80};
/// How much the newest round counts at least in the mean of what they take beside the pass.
static constexpr double round_weight = 1.0 / 32;
/// A round that took longer than so many expected ones was held up by something else, and counts as this.
static constexpr double expected_rounds_max = 3;
static constexpr double looked_up_min = 4;
static constexpr double looked_up_max = 512;

/// What lookup and the prediction have behind a text, and which of the two is believed.
struct draft_engine::ready_drafts {
  text::prompt_lookup::finding found;
  std::vector<token> predicted;  // and behind the prediction's end what lookup has there
  std::size_t own_count = 0;     // of these, the prediction's
  std::uint32_t agreed = 0;      // last tokens that speak for it
  bool trusts_prediction = false;

  [[nodiscard]] draft_offer lookup_offer() const {
    return {source::lookup, found.matched, static_cast<std::uint32_t>(found.tokens.size())};
  }
  [[nodiscard]] draft_offer prediction_offer() const {
    return {source::prediction, agreed, static_cast<std::uint32_t>(predicted.size())};
  }
  [[nodiscard]] draft_offer believed_offer() const { return trusts_prediction ? prediction_offer() : lookup_offer(); }
  [[nodiscard]] std::span<const token> believed() const { return trusts_prediction ? predicted : found.tokens; }
};

/// One job's part of a forward: `pending` log or draft tokens whose KV is missing, then lookup's guess behind them.
struct draft_engine::planned {
  std::vector<token> context;  // what the model reads of the log, and the draft: what the run's logits follow
  std::vector<token> tokens;   // the run: pending, then guess
  std::size_t first = 0;       // index of tokens[0] in the context
  std::vector<token> guess;
  std::uint8_t grade = 0;  // of the guess
  bool wants_logits = false;
};

draft_engine::draft_engine(std::unique_ptr<model::transformer> small_model, std::vector<token> end_tokens,
                           engine_limits limits, const environment* clock, draft_replay replay, cost::cost_model passes)
    : model_(std::move(small_model)),
      end_tokens_(std::move(end_tokens)),
      limits_(limits),
      pool_(limits.pages_count),
      typical_(limits.sessions_max),
      clock_(clock),
      replay_(std::move(replay)),
      passes_(std::move(passes)) {}

bool draft_engine::has_embedding(token t) const {
  return model_ && t >= 0 && static_cast<std::uint32_t>(t) < model_->config().vocabulary;
}

bool draft_engine::is_end(token t) const {
  return std::find(end_tokens_.begin(), end_tokens_.end(), t) != end_tokens_.end();
}

bool draft_engine::can_use_model(const session_state& s) const {
  return model_ && s.embedded_count == s.log.tokens().size();
}

std::optional<std::uint32_t> draft_engine::submit(draft_request request) {
  auto known = sessions_.find(request.session);
  if (known != sessions_.end() && known->second.tenant != request.tenant) {
    forget(request.session);  // nothing of one tenant is kept for another
    known = sessions_.end();
  }
  const std::size_t known_count = known == sessions_.end() ? 0 : known->second.log.tokens().size();
  if (request.from > known_count) return static_cast<std::uint32_t>(known_count);
  if (known == sessions_.end() && sessions_.size() >= limits_.sessions_max) forget_longest_unused();

  session_state& s = sessions_[request.session];
  if (known == sessions_.end()) s.chooser = source_chooser(typical_.of(request.tenant));
  note_answer(s, request);
  s.last_used = ++use_counter_;
  take_log(s, request);
  std::erase_if(jobs_, [&](const job& j) { return j.request.session == request.session; });

  job j{.request = std::move(request)};
  if (j.request.options.how == method::automatic) choose_source(s, j);
  const method how = j.request.options.how;
  if ((how == method::assisted || how == method::blazedit) && can_use_model(s)) {
    jobs_.push_back(std::move(j));
    return std::nullopt;
  }
  if (how != method::regular && how != method::automatic) draft_without_model(s, j);
  finish(j);
  return std::nullopt;
}

/// The wish for the next draft tells when the last one was answered. Where others wanted drafts meanwhile the target
/// worked for them too, and where tokens were wrong nobody tells how many it verified: then the time says nothing.
void draft_engine::note_answer(session_state& s, const draft_request& r) {
  const auto handed = std::exchange(s.handed, std::nullopt);
  if (!handed || handed->use != use_counter_ || r.from != handed->log_count || r.step.pass_us == 0) return;
  if (r.tail.size() != handed->tokens_count + 1) return;
  const double expected = r.step.pass_us + static_cast<double>(handed->tokens_count) * r.step.row_us();
  const double took =
      std::min(static_cast<double>((clock_->now() - handed->at).count()), expected_rounds_max * expected);
  const double weight = std::max(round_weight, 1.0 / ++rounds_count_);
  round_us_ += weight * (std::max(took - expected, 0.0) - round_us_);
}

void draft_engine::take_log(session_state& s, draft_request& r) {
  s.tenant = r.tenant;
  learn_ready(s, r);
  if (r.from == 0) {
    s.prediction = text::edit_cursor(std::exchange(r.prediction, {}));
    s.predicted_to = 0;
  }
  if (r.from < s.guessed_at) s.guesses.clear();
  s.log.truncate(r.from);
  s.window.cut(r.from);
  s.log.append(r.tail);
  const auto log = s.log.tokens();
  s.embedded_count = std::min<std::size_t>(s.embedded_count, r.from);
  while (s.embedded_count < log.size() && has_embedding(log[s.embedded_count])) ++s.embedded_count;
  learn(s);
  follow_prediction(s, r);
}

void draft_engine::follow_prediction(session_state& s, const draft_request& r) {
  const auto log = s.log.tokens();
  if (r.from < s.predicted_to) {
    s.prediction.rewind();
    s.predicted_to = 0;
  }
  s.predicted_to = std::max<std::size_t>(s.predicted_to, r.prompt_count);
  for (; s.predicted_to < log.size(); ++s.predicted_to) s.prediction.emit(log[s.predicted_to]);
}

/// What ready drafts took for the tokens that came, or would have taken where the model drafted.
void draft_engine::learn_ready(session_state& s, const draft_request& r) {
  if (r.from != s.guessed_at || r.tail.empty() || r.options.how != method::automatic) return;
  const auto tried = std::find_if(s.guesses.begin(), s.guesses.end(), [](const guess_made& g) { return g.tried; });
  ready_stretch instead{.tokens = static_cast<double>(r.tail.size())};
  if (tried == s.guesses.end() || tried->offer.from != source::model) {
    instead.passes = 1;
    if (tried != s.guesses.end()) {
      instead.rows = s.chooser.rows(tried->offer, static_cast<std::uint32_t>(r.tail.size() - 1));
    }
    s.chooser.learn_ready(instead);
    return;
  }
  text::edit_cursor prediction = s.prediction;
  for (std::span<const token> left = r.tail; !left.empty();) {
    const auto before = std::span<const token>(r.tail).first(r.tail.size() - left.size());
    const ready_drafts drafts = ready(s, prediction, before, r.options, r.options.lookup_tokens_max);
    const auto draft = drafts.believed();
    const auto agreed = static_cast<std::size_t>(
        std::mismatch(draft.begin(), draft.end(), left.begin(), left.end()).first - draft.begin());
    const draft_offer offer = drafts.believed_offer();
    if (agreed == left.size()) {
      // The pass would have given more: these tokens have a share in it.
      const double more = std::min(static_cast<double>(draft.size()), s.chooser.gain(offer));
      const auto here = static_cast<double>(agreed);
      instead.passes += here / (1 + std::max(here, more));
      instead.rows += here;
      break;
    }
    instead.passes += 1;
    instead.rows += s.chooser.rows(offer, static_cast<std::uint32_t>(agreed));
    for (const token t : left.first(agreed + 1)) prediction.emit(t);
    left = left.subspan(agreed + 1);
  }
  s.chooser.learn_ready(instead);
}

/// Compares the last round's guesses with the tokens that came.
void draft_engine::learn(session_state& s) {
  const auto log = s.log.tokens();
  if (s.guesses.empty() || log.size() <= s.guessed_at) return;
  const auto came = log.subspan(s.guessed_at);
  const guess_made* predicted = nullptr;
  const guess_made* looked_up = nullptr;
  const guess_made* modelled = nullptr;
  for (const guess_made& g : s.guesses) {
    if (g.offer.from == source::prediction) predicted = &g;
    if (g.offer.from == source::model) modelled = &g;
    if (g.offer.from == source::lookup) looked_up = &g;
    const auto agreed = static_cast<std::size_t>(
        std::mismatch(came.begin(), came.end(), g.tokens.begin(), g.tokens.end()).first - came.begin());
    const draft_result result{.drafted = static_cast<std::uint32_t>(g.tokens.size()),
                              .accepted = static_cast<std::uint32_t>(agreed),
                              .open = agreed == came.size() && agreed < g.tokens.size(),
                              .model_passes = g.model_passes};
    if (g.tried)
      s.chooser.learn(g.offer, result);
    else
      s.chooser.learn_untried(g.offer, result);
  }
  if (predicted != nullptr && looked_up != nullptr) s.rivalry.learn(predicted->tokens, looked_up->tokens, came);
  if (modelled != nullptr && looked_up != nullptr) {
    const auto grade = grade_of_match(looked_up->offer.matched);
    s.model_rivalry[grade].learn(modelled->tokens, looked_up->tokens, came);
  }
  s.guesses.clear();
}

/// What the model will give that has not checked copies of this grade yet. Who was right where the two disagreed, be it
/// behind shorter matches, will stop a copy where it ends and go on behind it.
double draft_engine::expected_of_model(const session_state& s, const draft_offer& looked_up) {
  for (std::size_t grade = grade_of_match(looked_up.matched) + 1U; grade-- > 0;) {
    if (!s.model_rivalry[grade].has_seen()) continue;
    return s.model_rivalry[grade].trusts_prediction()
               ? s.chooser.gain(looked_up) + s.chooser.gain({.from = source::model})
               : 0;
  }
  return 0;
}

void draft_engine::add(job& j, source from, std::uint8_t grade, std::span<const token> tokens) {
  if (tokens.empty()) return;
  j.draft.insert(j.draft.end(), tokens.begin(), tokens.end());
  const auto count = static_cast<std::uint32_t>(tokens.size());
  if (!j.parts.empty() && j.parts.back().from == from && j.parts.back().grade == grade) {
    j.parts.back().count += count;
  } else {
    j.parts.push_back({from, count, grade});
  }
}

/// Of what comes behind the log as it is now.
void draft_engine::begin_guesses(session_state& s) {
  s.guesses.clear();
  s.guessed_at = s.log.tokens().size();
}

/// Remembers what a source proposes for this round, to be compared with what comes.
void draft_engine::guess(session_state& s, const draft_offer& offer, std::span<const token> tokens, bool tried) {
  s.guesses.push_back({.offer = offer, .tokens = {tokens.begin(), tokens.end()}, .tried = tried});
}

/// Whether the prediction is believed rather than what lookup found. Where the answer has just left the prediction, the
/// longer match is; elsewhere both match, and who was right when they last disagreed.
static bool believes_prediction(const source_rivalry& rivalry, std::uint32_t agreed, std::uint32_t matched) {
  constexpr std::uint32_t settled = 4;
  return agreed < settled || matched < settled ? agreed >= matched : rivalry.trusts_prediction();
}

/// prediction: stands behind the log and `pending`.
draft_engine::ready_drafts draft_engine::ready(const session_state& s, const text::edit_cursor& prediction,
                                               std::span<const token> pending, const draft_options& options,
                                               std::uint32_t most) {
  ready_drafts out;
  out.found = s.log.look_up(pending, options.max_matching_ngram_size, most);
  const auto ahead = prediction.ahead(most);
  if (ahead.empty()) return out;
  out.own_count = ahead.size();
  out.agreed = prediction.agreed();
  out.predicted.assign(ahead.begin(), ahead.end());
  // Behind the prediction's end: the closing fence of a file, the answer's end.
  const auto& looked_up = out.found.tokens;
  if (looked_up.size() > ahead.size() && std::equal(ahead.begin(), ahead.end(), looked_up.begin())) {
    out.predicted = looked_up;
  }
  out.trusts_prediction = looked_up.empty() || believes_prediction(s.rivalry, out.agreed, out.found.matched);
  return out;
}

/// What of the log the model is to read for this draft.
reading_window draft_engine::window_for(const session_state& s, const draft_request& r) const {
  reading_window window = s.window;
  window.follow(s.log.tokens().size(), s.log.copied_from(), std::min(r.tokens_max, context_max() / 4), context_max());
  return window;
}

draft_prices draft_engine::prices_for(const session_state& s, const draft_request& r) const {
  const cost::step_cost& step = r.step;
  draft_prices prices;
  if (step.pass_us > 0) {
    prices.measured = true;
    prices.row = step.row_us() / step.pass_us;
    const auto sessions = static_cast<double>(std::max(step.sessions, 1U));
    prices.pass = prices.row + std::max(1 - prices.row, 0.0) / sessions;
    prices.round = round_us_ / step.pass_us / sessions;
  }
  if (!model_) return prices;
  const auto log = s.log.tokens();
  const reading_window window = window_for(s, r);
  const std::size_t context_count = window.count(log.size());
  const auto unread = static_cast<double>(context_count - window.matching(log, s.cached));
  // Until it was measured, a row of the small model is as much cheaper as its passes are.
  const cost::step_cost own = cost::step_cost_at(passes_, context_count);
  const bool timed = own.pass_us > 0 && step.pass_us > 0;
  if (timed) prices.model_pass = own.pass_us / step.pass_us;
  const auto answered = static_cast<double>(log.size() - std::min<std::size_t>(log.size(), r.prompt_count));
  const double row = timed ? own.row_us() / step.pass_us : prices.row * prices.model_pass;
  prices.model_catch_up = std::min(unread, answered) * row;
  prices.model_first = unread * row - prices.model_catch_up;
  // An edited file is about as long as the one in the prompt.
  const double to_come = 2.0 * r.prompt_count - static_cast<double>(log.size());
  prices.tokens_to_come = std::max(prices.tokens_to_come, to_come);
  return prices;
}

/// Turns `automatic` into a method for this round: with a draft that is ready, one that the model is to make, or none.
void draft_engine::choose_source(session_state& s, job& j) {
  draft_options& options = j.request.options;
  if (j.request.tokens_max == 0) {
    options.how = method::lookup;  // the model reads the log when it is first chosen: often it never is
    return;
  }
  const ready_drafts drafts =
      ready(s, s.prediction, {}, options, std::min(options.lookup_tokens_max, j.request.tokens_max));
  const draft_offer looked_up = drafts.lookup_offer();
  std::vector<draft_offer> offers{drafts.believed_offer()};
  if (can_use_model(s)) {
    const std::uint32_t longest = options.max_num_run * (options.micro_draft_tokens + 1);
    offers.push_back({.from = source::model,
                      .matched = looked_up.matched,
                      .tokens = std::min(j.request.tokens_max, longest),
                      .expected = looked_up.tokens == 0 ? 0 : expected_of_model(s, looked_up)});
  }
  const draft_prices prices = prices_for(s, j.request);
  const auto chosen = s.chooser.choose(offers, prices);

  begin_guesses(s);
  for (const draft_offer& offer : {drafts.prediction_offer(), looked_up}) {
    if (offer.tokens == 0) continue;
    const bool by_prediction = offer.from == source::prediction;
    const bool tried = chosen && chosen->from == offer.from;
    const std::span<const token> all = by_prediction ? drafts.predicted : drafts.found.tokens;
    const auto tokens = all.first(tried ? chosen->tokens : s.chooser.length(offer, prices));
    guess(s, offer, tokens, tried);
    if (tried) add_ready(j, drafts, tokens.size());
  }
  if (chosen && chosen->from == source::model) {
    options.how = method::blazedit;
    j.request.tokens_max = chosen->tokens;
    j.chosen = true;
    j.matched = looked_up.matched;
  }
}

/// The first `count` tokens of the draft that is believed.
void draft_engine::add_ready(job& j, const ready_drafts& drafts, std::size_t count) {
  const draft_offer offer = drafts.believed_offer();
  const auto tokens = drafts.believed().first(count);
  const std::size_t own_count = std::min(drafts.trusts_prediction ? drafts.own_count : count, count);
  add(j, offer.from, grade_of_match(offer.matched), tokens.first(own_count));
  add(j, source::lookup, grade_of_match(offer.matched), tokens.subspan(own_count));
}

/// From lookup, or from the prediction where that is believed.
void draft_engine::draft_without_model(session_state& s, job& j) {
  const draft_options& options = j.request.options;
  const bool predicts = options.how == method::prediction;
  const ready_drafts drafts = ready(s, predicts ? s.prediction : text::edit_cursor(), {}, options,
                                    std::min(options.lookup_tokens_max, j.request.tokens_max));
  add_ready(j, drafts, drafts.believed().size());
  begin_guesses(s);
  if (drafts.predicted.empty() || drafts.found.tokens.empty()) return;
  guess(s, drafts.prediction_offer(), drafts.predicted, drafts.trusts_prediction);
  guess(s, drafts.lookup_offer(), drafts.found.tokens, !drafts.trusts_prediction);
}

void draft_engine::finish(const job& j) {
  draft_answer answer{
      .session = j.request.session, .round = j.request.round, .tokens = j.draft, .passes = j.passes, .parts = j.parts};
  if (j.chosen) {
    session_state& s = sessions_.at(j.request.session);
    const cost::step_cost own = cost::step_cost_at(passes_, s.cached.size());
    s.guesses.push_back({.offer = {.from = source::model, .matched = j.matched},
                         .tokens = j.draft,
                         .model_passes = own.pass_us > 0 ? j.us / own.pass_us : static_cast<double>(j.runs_count),
                         .tried = true});
  }
  const bool alone = std::all_of(jobs_.begin(), jobs_.end(),
                                 [&](const job& other) { return other.request.session == j.request.session; });
  if (clock_ != nullptr && alone && j.request.tokens_max > 0) {
    session_state& s = sessions_.at(j.request.session);
    s.handed = {clock_->now(), s.log.tokens().size(), j.draft.size(), use_counter_};
  }
  answers_.push_back(std::move(answer));
}

std::vector<draft_answer> draft_engine::take_answers() { return std::exchange(answers_, {}); }

void draft_engine::forget(session_id session) {
  const auto it = sessions_.find(session);
  if (it == sessions_.end()) return;
  it->second.table.clear(pool_);
  sessions_.erase(it);
  std::erase_if(jobs_, [&](const job& j) { return j.request.session == session; });
}

void draft_engine::forget_longest_unused() {
  const auto oldest = std::min_element(sessions_.begin(), sessions_.end(), [](const auto& a, const auto& b) {
    return a.second.last_used < b.second.last_used;
  });
  if (oldest != sessions_.end()) forget(oldest->first);
}

/// Frees pages of sessions that are not at work until `count` more tokens fit; false when they cannot.
bool draft_engine::make_room(session_state& s, session_id owner, std::uint32_t count) {
  while (s.table.pages_needed(pool_, count) > pool_.free_count()) {
    session_state* victim = nullptr;
    for (auto& [id, other] : sessions_) {
      if (id == owner || other.table.held_count() == 0) continue;
      const bool busy = std::any_of(jobs_.begin(), jobs_.end(), [&](const job& j) { return j.request.session == id; });
      if (!busy && (victim == nullptr || other.last_used < victim->last_used)) victim = &other;
    }
    if (victim == nullptr) return false;
    victim->table.clear(pool_);
    victim->cached.clear();
  }
  return s.table.append(pool_, count);
}

/// What the job brings into the next forward. False when it cannot go on: its draft is as long as it gets.
bool draft_engine::plan_run(job& j, std::uint32_t rows_left, planned& out) {
  session_state& s = sessions_.at(j.request.session);
  s.window = window_for(s, j.request);
  out.context = s.window.read(s.log.tokens());
  out.context.insert(out.context.end(), j.draft.begin(), j.draft.end());
  if (out.context.empty()) return false;

  const auto reusable = std::mismatch(s.cached.begin(), s.cached.end(), out.context.begin(), out.context.end()).first;
  const bool drafting = j.request.tokens_max > 0;
  std::size_t computed = static_cast<std::size_t>(reusable - s.cached.begin());
  if (drafting) computed = std::min(computed, out.context.size() - 1);  // the last token's logits are wanted
  s.cached.resize(computed);
  s.table.truncate(pool_, static_cast<std::uint32_t>(computed));

  const std::size_t pending = out.context.size() - computed;
  if (pending == 0) return false;
  const std::uint32_t chunk = std::min(rows_left, limits_.prompt_chunk_rows_max);
  out.first = computed;
  out.wants_logits = drafting && pending <= chunk;
  const std::size_t count = std::min<std::size_t>(pending, chunk);
  out.tokens.assign(out.context.begin() + static_cast<std::ptrdiff_t>(computed),
                    out.context.begin() + static_cast<std::ptrdiff_t>(computed + count));
  if (out.wants_logits && j.request.options.how == method::blazedit) {
    look_up_for_model(s, j, rows_left - static_cast<std::uint32_t>(count), out);
  }
  if (computed + out.tokens.size() > context_max()) return false;
  return make_room(s, j.request.session, static_cast<std::uint32_t>(out.tokens.size()));
}

std::uint32_t draft_engine::context_max() const {
  const std::uint32_t own = model_->config().context;
  return limits_.context_max == 0 ? own : std::min(limits_.context_max, own);
}

/// What the model is to check behind the draft. Where the target's cost is known, as much as it was right about lately:
/// the small model's rows have their price as well.
void draft_engine::look_up_for_model(session_state& s, const job& j, std::uint32_t rows_left, planned& out) const {
  // The model adds one token of its own behind what it accepts.
  const std::uint32_t room = j.request.tokens_max - static_cast<std::uint32_t>(j.draft.size()) - 1;
  const std::uint32_t most = std::min({j.request.options.micro_draft_tokens, room, rows_left});
  auto found = s.log.look_up(j.draft, j.request.options.max_matching_ngram_size, most);
  out.grade = grade_of_match(found.matched);
  double& length = s.looked_up_lengths[out.grade];
  if (length == 0) length = looked_up_at_first[out.grade];
  if (j.request.step.pass_us > 0 && static_cast<double>(found.tokens.size()) > length) {
    found.tokens.resize(static_cast<std::size_t>(length));
  }
  out.guess = std::move(found.tokens);
  out.tokens.insert(out.tokens.end(), out.guess.begin(), out.guess.end());
}

/// Whether another pass of the small model is worth its time and a row of the target's: it brings at least one token,
/// if all before it is accepted. Always, where no times are known.
bool draft_engine::pays_to_go_on(const job& j) const {
  const cost::step_cost& step = j.request.step;
  const cost::step_cost own = cost::step_cost_at(passes_, sessions_.at(j.request.session).cached.size());
  if (step.pass_us == 0 || own.pass_us == 0) return true;
  return j.chance * step.pass_us > own.pass_us + step.row_us();
}

/// Takes the logits of a run in; false when the job is finished.
bool draft_engine::absorb(job& j, const planned& p, std::span<const float> logits) {
  session_state& s = sessions_.at(j.request.session);
  ++j.passes;
  s.cached.insert(s.cached.end(), p.tokens.begin(), p.tokens.end());
  if (!p.wants_logits) return j.request.tokens_max > 0 || s.cached.size() < p.context.size();

  const std::size_t vocabulary = model_->config().vocabulary;
  std::vector<token> history;
  if (j.request.sampling.needs_history()) {
    history.assign(s.log.tokens().begin(), s.log.tokens().end());
    history.insert(history.end(), j.draft.begin(), j.draft.end());
  }
  const model::token_context before{history, s.log.tokens().size() + j.draft.size(), j.request.prompt_count};
  const std::size_t answered = before.count - std::min<std::size_t>(before.count, j.request.prompt_count);
  const auto replayed =
      replay_ ? replay_(j.request.session, static_cast<std::uint32_t>(answered), p.guess) : replayed_choices{};
  const auto got = model::accept(logits, vocabulary, p.guess, j.request.sampling, before, {}, replayed.tokens);
  const std::size_t rejected = p.guess.size() - got.accepted_count;
  s.cached.resize(s.cached.size() - rejected);
  s.table.truncate(pool_, static_cast<std::uint32_t>(s.cached.size()));
  ++j.runs_count;
  if (!p.guess.empty()) {
    double& length = s.looked_up_lengths[p.grade];
    length = rejected == 0 ? std::min(2 * length, looked_up_max)
                           : std::max((length + 2.0 * static_cast<double>(got.accepted_count)) / 2, looked_up_min);
  }
  float sure = model::top_probability(logits.subspan(got.accepted_count * vocabulary, vocabulary));
  if (!replayed.tokens.empty()) sure = replayed.sure;
  j.chance *= sure;
  for (const token& t : got.tokens) {
    const bool own = &t == &got.tokens.back();
    add(j, source::model, own ? grade_of_probability(sure) : grades_count - 1, {&t, 1});
    if (is_end(t)) return false;
  }
  if (j.draft.size() >= j.request.tokens_max) return false;
  const draft_options& how = j.request.options;
  if (how.how == method::blazedit) return j.runs_count < how.max_num_run && pays_to_go_on(j);
  return j.draft.size() < how.assisted_tokens_max && sure >= how.confidence_min;
}

bool draft_engine::step() {
  if (jobs_.empty()) return false;
  std::vector<planned> plans;
  std::vector<std::size_t> owners;
  std::vector<std::size_t> done;
  std::uint32_t rows_left = model_->rows_max();
  for (std::size_t i = 0; i < jobs_.size() && rows_left > 0; ++i) {
    planned p;
    if (!plan_run(jobs_[i], rows_left, p)) {
      done.push_back(i);
      continue;
    }
    rows_left -= static_cast<std::uint32_t>(p.tokens.size());
    plans.push_back(std::move(p));
    owners.push_back(i);
  }

  std::vector<model::run> batch;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const planned& p = plans[i];
    batch.push_back(
        {.tokens = p.tokens,
         .first_position = static_cast<position>(p.first),
         .table = sessions_.at(jobs_[owners[i]].request.session).table.pieces(),
         .logits_begin = static_cast<std::uint32_t>(p.tokens.size() - (p.wants_logits ? p.guess.size() + 1 : 0))});
  }
  if (!batch.empty()) {
    const instant began = clock_ != nullptr ? clock_->now() : instant{};
    const auto logits = model_->forward(batch);
    ++passes_count_;
    std::size_t row = 0;
    const std::size_t vocabulary = model_->config().vocabulary;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      const std::size_t rows = batch[i].logits_count();
      if (!absorb(jobs_[owners[i]], plans[i], logits.subspan(row * vocabulary, rows * vocabulary))) {
        done.push_back(owners[i]);
      }
      row += rows;
    }
    if (clock_ != nullptr) time_pass(plans, owners, clock_->now() - began);
  }
  std::sort(done.begin(), done.end());
  for (const std::size_t i : done) finish(jobs_[i]);
  for (auto it = done.rbegin(); it != done.rend(); ++it) jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(*it));
  return !jobs_.empty();
}

/// Each job has its rows' share of a pass, less the price of those that read the log: they are charged by themselves.
void draft_engine::time_pass(std::span<const planned> plans, std::span<const std::size_t> owners, microseconds took) {
  cost::work_size size;
  for (const planned& p : plans) {
    size = size + cost::size_of_run(p.first, p.tokens.size(), p.wants_logits ? p.guess.size() + 1 : 0);
  }
  passes_.observe(size, took);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!plans[i].wants_logits) continue;
    const auto rows = static_cast<double>(plans[i].tokens.size());
    const auto own_rows = static_cast<double>(plans[i].guess.size() + 1);
    const double us_per_row = static_cast<double>(took.count()) / static_cast<double>(size.rows);
    const double reading_us = (rows - own_rows) * cost::step_cost_at(passes_, plans[i].first).row_us();
    jobs_[owners[i]].us += std::max(rows * us_per_row - reading_us, own_rows * us_per_row);
  }
}

void draft_engine::check_integrity() const {
  pool_.check_integrity();
  std::size_t held = 0;
  for (const auto& [id, s] : sessions_) {
    s.table.check_integrity();
    held += s.table.held_count();
    REDLINE_ASSERT(s.table.token_count() == s.cached.size(), "the cached tokens and their table disagree");
  }
  REDLINE_ASSERT(held + pool_.free_count() == pool_.pages_count(), "the draft model's pages are not conserved");
}

}  // namespace redline::draft
