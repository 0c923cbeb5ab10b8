#include "runtime/draft/draft_engine.hpp"

#include <algorithm>

#include "runtime/model/acceptance.hpp"

namespace redline::draft {

/// One job's part of a forward: `pending` log or draft tokens whose KV is missing, then lookup's guess behind them.
struct draft_engine::planned {
  std::vector<token> context;   // log and draft: what the run's logits follow
  std::vector<token> tokens;    // the run: pending, then guess
  std::size_t first = 0;        // index of tokens[0] in the context
  std::vector<token> guess;
  bool wants_logits = false;
};

draft_engine::draft_engine(std::unique_ptr<model::transformer> small_model, std::vector<token> end_tokens,
                           engine_limits limits)
    : model_(std::move(small_model)), end_tokens_(std::move(end_tokens)), limits_(limits), pool_(limits.pages_count) {}

bool draft_engine::uses_model(const draft_request& r) const {
  return model_ && (r.options.how == method::assisted || r.options.how == method::blazedit);
}

bool draft_engine::has_embedding(token t) const {
  return model_ && t >= 0 && static_cast<std::uint32_t>(t) < model_->config().vocabulary;
}

bool draft_engine::is_end(token t) const {
  return std::find(end_tokens_.begin(), end_tokens_.end(), t) != end_tokens_.end();
}

std::optional<std::uint32_t> draft_engine::submit(draft_request request) {
  const auto known = sessions_.find(request.session);
  const std::size_t known_count = known == sessions_.end() ? 0 : known->second.log.tokens().size();
  if (request.from > known_count) return static_cast<std::uint32_t>(known_count);
  if (known == sessions_.end() && sessions_.size() >= limits_.sessions_max) forget_longest_unused();

  session_state& s = sessions_[request.session];
  s.last_used = ++use_counter_;
  s.log.truncate(request.from);
  s.log.append(request.tail);
  const auto log = s.log.tokens();
  s.embedded_count = std::min<std::size_t>(s.embedded_count, request.from);
  while (s.embedded_count < log.size() && has_embedding(log[s.embedded_count])) ++s.embedded_count;
  std::erase_if(jobs_, [&](const job& j) { return j.request.session == request.session; });

  job j{.request = std::move(request)};
  if (uses_model(j.request) && s.embedded_count == log.size()) {
    jobs_.push_back(std::move(j));
    return std::nullopt;
  }
  if (j.request.options.how != method::regular) {
    const std::uint32_t count = std::min(j.request.options.lookup_tokens_max, j.request.tokens_max);
    j.draft = s.log.propose({}, j.request.options.max_matching_ngram_size, count);
  }
  finish(j);
  return std::nullopt;
}

void draft_engine::finish(const job& j) {
  answers_.push_back({j.request.session, j.request.round, j.draft, j.passes});
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
  while (s.table.pages_needed(count) > pool_.free_count()) {
    session_state* victim = nullptr;
    for (auto& [id, other] : sessions_) {
      if (id == owner || other.table.pages().empty()) continue;
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
  const auto log = s.log.tokens();
  out.context.assign(log.begin(), log.end());
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
    // The model adds one token of its own behind what it accepts.
    const std::uint32_t room = j.request.tokens_max - static_cast<std::uint32_t>(j.draft.size()) - 1;
    const std::uint32_t guess_max = std::min({j.request.options.micro_draft_tokens, room,
                                              rows_left - static_cast<std::uint32_t>(count)});
    out.guess = s.log.propose(j.draft, j.request.options.max_matching_ngram_size, guess_max);
    out.tokens.insert(out.tokens.end(), out.guess.begin(), out.guess.end());
  }
  const std::size_t context_max = model_->config().context;
  if (computed + out.tokens.size() > context_max) return false;
  return make_room(s, j.request.session, static_cast<std::uint32_t>(out.tokens.size()));
}

/// Takes the logits of a run in; false when the job is finished.
bool draft_engine::absorb(job& j, const planned& p, std::span<const float> logits) {
  session_state& s = sessions_.at(j.request.session);
  ++j.passes;
  s.cached.insert(s.cached.end(), p.tokens.begin(), p.tokens.end());
  if (!p.wants_logits) return j.request.tokens_max > 0 || s.cached.size() < s.log.tokens().size();

  const std::size_t vocabulary = model_->config().vocabulary;
  const model::token_context before{p.context, static_cast<std::uint32_t>(p.context.size()), j.request.prompt_count};
  const auto got = model::accept(logits, vocabulary, p.guess, j.request.sampling, before);
  const std::size_t rejected = p.guess.size() - got.accepted_count;
  s.cached.resize(s.cached.size() - rejected);
  s.table.truncate(pool_, static_cast<std::uint32_t>(s.cached.size()));
  ++j.runs_count;
  for (const token t : got.tokens) {
    j.draft.push_back(t);
    if (is_end(t)) return false;
  }
  if (j.draft.size() >= j.request.tokens_max) return false;
  const draft_options& how = j.request.options;
  if (how.how == method::blazedit) return j.runs_count < how.max_num_run;
  return j.draft.size() < how.assisted_tokens_max &&
         model::top_probability(logits.first(vocabulary)) >= how.confidence_min;
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
    batch.push_back({.tokens = p.tokens,
                     .first_position = static_cast<position>(p.first),
                     .table = sessions_.at(jobs_[owners[i]].request.session).table.pieces(),
                     .logits_begin = static_cast<std::uint32_t>(p.tokens.size() - (p.wants_logits ? p.guess.size() + 1 : 0))});
  }
  if (!batch.empty()) {
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
  }
  std::sort(done.begin(), done.end());
  for (const std::size_t i : done) finish(jobs_[i]);
  for (auto it = done.rbegin(); it != done.rend(); ++it) jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(*it));
  return !jobs_.empty();
}

void draft_engine::check_integrity() const {
  pool_.check_integrity();
  std::size_t held = 0;
  for (const auto& [id, s] : sessions_) {
    s.table.check_integrity();
    held += s.table.pages().size();
    REDLINE_ASSERT(s.table.token_count() == s.cached.size(), "the cached tokens and their table disagree");
  }
  REDLINE_ASSERT(held + pool_.free_count() == pool_.pages_count(), "the draft model's pages are not conserved");
}

}  // namespace redline::draft
