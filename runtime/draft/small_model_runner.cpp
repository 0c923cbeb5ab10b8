#include "runtime/draft/small_model_runner.hpp"

#include <algorithm>
#include <utility>

#include "runtime/sampling/acceptance.hpp"

namespace redline::draft {

/// One job's part of a forward pass: `pending` log or draft tokens without KV, then lookup's guess.
struct small_model_runner::planned {
  std::vector<token>
      context;  // the tokens that precede the run's logits: what the model reads of the log, and the draft
  std::vector<token> tokens;  // the run: pending, then guess
  std::size_t first = 0;      // index of tokens[0] in the context
  std::vector<token> guess;
  graded_segment guess_run;
  bool wants_logits = false;
};

small_model_runner::small_model_runner(limits at_most, parts with)
    : model_(std::move(with.model)),
      end_tokens_(std::move(with.end_tokens)),
      limits_(at_most),
      pool_(at_most.pages_count),
      clock_(with.clock),
      chooser_(std::move(with.chooser)),
      passes_(std::move(with.passes)) {}

std::optional<std::uint32_t> small_model_runner::submit(model_request r) {
  auto known = caches_.find(r.session);
  if (known != caches_.end() && known->second.tenant != r.tenant) {
    forget(r.session);  // one tenant's KV is never used for another
    known = caches_.end();
  }
  const std::size_t known_count = known == caches_.end() ? 0 : known->second.log.tokens().size();
  if (r.from > known_count) return static_cast<std::uint32_t>(known_count);
  if (known == caches_.end()) {
    if (caches_.size() >= limits_.sessions_max) forget_longest_unused();
    known = caches_.try_emplace(r.session).first;
    known->second.tenant = r.tenant;
  }
  cache& c = known->second;
  c.last_used = ++use_counter_;
  drop_job(r.session);
  c.window.cut(r.from);
  c.log.truncate(r.from);
  c.log.append(r.tail);
  c.embedded_count = count_embedded(c.log.tokens(), std::min<std::size_t>(c.embedded_count, r.from));
  job j{.request = std::move(r), .draft = {}};
  // A model that may never be chosen does not follow the log.
  const bool only_asks_costs = j.request.tokens_max == 0 && j.request.options.how == method::automatic;
  if (only_asks_costs || c.embedded_count < c.log.tokens().size()) {
    finish(j);
  } else {
    jobs_.push_back(std::move(j));
  }
  return std::nullopt;
}

void small_model_runner::drop_job(session_id session) {
  std::erase_if(jobs_, [&](const job& j) { return j.request.session == session; });
}

void small_model_runner::finish(job& j) {
  const cache& c = caches_.at(j.request.session);
  const auto log = c.log.tokens();
  const reading_window window = window_for(c, j.request.tokens_max);
  const std::size_t context = window.count(log.size());
  answers_.push_back({.session = j.request.session,
                      .asker = j.request.asker,
                      .round = j.request.round,
                      .draft = std::move(j.draft),
                      .passes = j.passes,
                      .took_us = static_cast<std::uint32_t>(j.us),
                      .cost = step_cost_at(context),
                      .unread = static_cast<std::uint32_t>(context - window.matching(log, c.tokens))});
}

std::vector<model_answer> small_model_runner::take_answers() { return std::exchange(answers_, {}); }

void small_model_runner::forget(session_id session) {
  drop_job(session);
  const auto it = caches_.find(session);
  if (it == caches_.end()) return;
  it->second.table.clear(pool_);
  caches_.erase(it);
}

void small_model_runner::forget_longest_unused() {
  const auto oldest = std::min_element(caches_.begin(), caches_.end(), [](const auto& a, const auto& b) {
    return a.second.last_used < b.second.last_used;
  });
  if (oldest != caches_.end()) forget(oldest->first);
}

std::size_t small_model_runner::count_embedded(std::span<const token> log, std::size_t known) const {
  const std::uint32_t vocabulary = model_->config().vocabulary;
  while (known < log.size() && log[known] >= 0 && static_cast<std::uint32_t>(log[known]) < vocabulary) ++known;
  return known;
}

bool small_model_runner::is_end(token t) const {
  return std::find(end_tokens_.begin(), end_tokens_.end(), t) != end_tokens_.end();
}

std::uint32_t small_model_runner::context_max() const {
  const std::uint32_t own = model_->config().context;
  return limits_.context_max == 0 ? own : std::min(limits_.context_max, own);
}

/// The part of the log that the model reads for a draft of this many tokens.
reading_window small_model_runner::window_for(const cache& c, std::uint32_t tokens_max) const {
  reading_window window = c.window;
  window.follow(c.log.tokens().size(), c.log.copied_from(), std::min(tokens_max, context_max() / 4), context_max());
  return window;
}

/// Frees pages of inactive sessions until `count` more tokens fit; returns false if they cannot.
bool small_model_runner::make_room(cache& c, session_id owner, std::uint32_t count) {
  while (c.table.pages_needed(pool_, count) > pool_.free_count()) {
    cache* victim = nullptr;
    for (auto& [id, other] : caches_) {
      if (id == owner || other.table.held_count() == 0) continue;
      const bool busy = std::any_of(jobs_.begin(), jobs_.end(), [&](const job& j) { return j.request.session == id; });
      if (!busy && (victim == nullptr || other.last_used < victim->last_used)) victim = &other;
    }
    if (victim == nullptr) return false;
    victim->table.clear(pool_);
    victim->tokens.clear();
  }
  return c.table.append(pool_, count);
}

/// Plans the job's run in the next forward pass. Returns false if its draft cannot grow any more.
bool small_model_runner::plan_run(job& j, std::uint32_t rows_left, planned& out) {
  cache& c = caches_.at(j.request.session);
  c.window = window_for(c, j.request.tokens_max);
  out.context = c.window.read(c.log.tokens());
  out.context.insert(out.context.end(), j.draft.tokens.begin(), j.draft.tokens.end());
  if (out.context.empty()) return false;

  const auto reusable = std::mismatch(c.tokens.begin(), c.tokens.end(), out.context.begin(), out.context.end()).first;
  const bool drafting = j.request.tokens_max > 0;
  std::size_t computed = static_cast<std::size_t>(reusable - c.tokens.begin());
  if (drafting) computed = std::min(computed, out.context.size() - 1);  // the last token's logits are needed
  c.tokens.resize(computed);
  c.table.truncate(pool_, static_cast<std::uint32_t>(computed));

  const std::size_t pending = out.context.size() - computed;
  if (pending == 0) return false;
  const std::uint32_t chunk = std::min(rows_left, limits_.prompt_chunk_rows_max);
  out.first = computed;
  out.wants_logits = drafting && pending <= chunk;
  const std::size_t count = std::min<std::size_t>(pending, chunk);
  out.tokens.assign(out.context.begin() + static_cast<std::ptrdiff_t>(computed),
                    out.context.begin() + static_cast<std::ptrdiff_t>(computed + count));
  if (out.wants_logits && j.request.options.how != method::assisted) {
    look_up(j, rows_left - static_cast<std::uint32_t>(count), out);
  }
  if (computed + out.tokens.size() > context_max()) return false;
  return make_room(c, j.request.session, static_cast<std::uint32_t>(out.tokens.size()));
}

/// Chooses what the model should check after the draft: if times are known, the number of tokens with the most tokens
/// per microsecond of both models' passes.
void small_model_runner::look_up(const job& j, std::uint32_t rows_left, planned& out) const {
  // The model adds one token of its own to those it accepts.
  const std::uint32_t room = j.request.tokens_max - static_cast<std::uint32_t>(j.draft.tokens.size()) - 1;
  const std::uint32_t most = std::min({j.request.options.micro_draft_tokens, room, rows_left});
  const cache& c = caches_.at(j.request.session);
  auto found = c.log.look_up(j.draft.tokens, j.request.options.max_matching_ngram_size, most);
  out.guess = std::move(found.tokens);
  out.guess_run = {source::lookup, grade_of_match(found.matched), static_cast<std::uint32_t>(out.guess.size())};
  const cost::step_cost own = step_cost_at(out.context.size());
  if (own.is_known() && j.request.round_us > 0) {
    const round_costs costs{.round_us = static_cast<double>(own.pass_us) + j.request.round_us,
                            .row_us = own.row_us() + j.request.row_ns / 1000.0};
    const auto chances = c.guesses.parts({&out.guess_run, 1}, nullptr);
    out.guess.resize(static_cast<std::size_t>(best_round(chances, costs).rows));
  }
  out.tokens.insert(out.tokens.end(), out.guess.begin(), out.guess.end());
}

/// Whether another pass pays for its time and for a row of the target: it yields at least one token if all before it
/// are accepted. Always true if times are unknown.
bool small_model_runner::pays_to_go_on(const job& j) const {
  const cost::step_cost own = step_cost_at(caches_.at(j.request.session).tokens.size());
  if (j.request.round_us == 0 || !own.is_known()) return true;
  return j.chance * j.request.round_us > own.pass_us + j.request.row_ns / 1000.0;
}

/// Processes the logits of a run; returns false if the job is finished.
bool small_model_runner::absorb(job& j, const planned& p, std::span<const float> logits) {
  cache& c = caches_.at(j.request.session);
  ++j.passes;
  c.tokens.insert(c.tokens.end(), p.tokens.begin(), p.tokens.end());
  if (!p.wants_logits) return j.request.tokens_max > 0 || c.tokens.size() < p.context.size();

  const auto log = c.log.tokens();
  const std::size_t vocabulary = model_->config().vocabulary;
  std::vector<token> history;
  if (j.request.sampling.needs_history()) {
    history.assign(log.begin(), log.end());
    history.insert(history.end(), j.draft.tokens.begin(), j.draft.tokens.end());
  }
  const sampling::token_context before{history, log.size() + j.draft.tokens.size(), j.request.prompt_count};
  const sampling::chooser_of_answer chooser{chooser_.get(), j.request.session.value};
  const auto got = sampling::accept(logits, vocabulary, p.guess, j.request.sampling, before, {.chooser = chooser});
  const std::size_t rejected = p.guess.size() - got.accepted_count;
  c.guesses.learn({&p.guess_run, 1}, static_cast<std::uint32_t>(got.accepted_count), rejected > 0);
  c.tokens.resize(c.tokens.size() - rejected);
  c.table.truncate(pool_, static_cast<std::uint32_t>(c.tokens.size()));
  ++j.runs_count;
  float sure = sampling::top_probability(logits.subspan(got.accepted_count * vocabulary, vocabulary));
  if (chooser_) sure = chooser_->confidence(j.request.session.value, sure);
  j.chance *= sure;
  for (const token& t : got.tokens) {
    const bool own = &t == &got.tokens.back();
    j.draft.add(source::model, own ? grade_of_probability(sure) : grades_count - 1, {&t, 1});
    if (is_end(t)) return false;
  }
  if (j.draft.tokens.size() >= j.request.tokens_max) return false;
  const draft_options& how = j.request.options;
  if (how.how != method::assisted) return j.runs_count < how.max_num_run && pays_to_go_on(j);
  return j.draft.tokens.size() < how.assisted_tokens_max && sure >= how.confidence_min;
}

bool small_model_runner::step() {
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
         .table = caches_.at(jobs_[owners[i]].request.session).table.pieces(),
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

/// Assigns each job its rows' share of a pass, without the cost of rows that read the log, which are charged
/// separately.
void small_model_runner::time_pass(std::span<const planned> plans, std::span<const std::size_t> owners,
                                   microseconds took) {
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
    const double reading_us = (rows - own_rows) * step_cost_at(plans[i].first).row_us();
    jobs_[owners[i]].us += std::max(rows * us_per_row - reading_us, own_rows * us_per_row);
  }
}

void small_model_runner::check_integrity() const {
  pool_.check_integrity();
  std::size_t held = 0;
  for (const auto& [id, c] : caches_) {
    c.table.check_integrity();
    held += c.table.held_count();
    REDLINE_ASSERT(c.table.token_count() == c.tokens.size(), "the cached tokens and their table disagree");
  }
  REDLINE_ASSERT(held + pool_.free_count() == pool_.pages_count(), "the draft model's pages are not conserved");
}

}  // namespace redline::draft
