#include "actors/serving/target_model.hpp"

#include <algorithm>
#include <utility>

#include "actors/serving/cache_manager.hpp"
#include "runtime/model/feed_forward.hpp"

namespace redline::actors {
namespace {
constexpr std::size_t pieces_max = 65'535;  // the transformer's own limit
static_assert(draft::mtp_tokens_max <= model::mtp_tokens_max);
}  // namespace

cost::mixture_shape mixture_of(const architecture::model_shape& config) {
  return {.layers = config.mixture_layers(), .experts = config.experts, .used = config.experts_used};
}

target_model::target_model(actor::actor_context& context, std::unique_ptr<model::transformer> transformer,
                           std::uint32_t pages_count, actor::actor_ref<cache_manager> manager,
                           std::vector<pass_cost> costs, std::shared_ptr<sampling::token_chooser> chooser,
                           std::shared_ptr<const grammar::token_trie> trie,
                           std::shared_ptr<grammar::automaton_store> automata)
    : actor_of(context),
      transformer_(std::move(transformer)),
      pages_count_(pages_count),
      manager_(manager),
      costs_(std::move(costs)),
      grammars_(std::move(trie), std::move(automata)),
      chooser_(std::move(chooser)),
      start_id_(context.env().random() | 1) {}

void target_model::on_start() { on(announce_target{}); }

void target_model::on(const announce_target&) {
  const auto& config = transformer_->config();
  const std::uint64_t room = std::uint64_t{pages_count_} * kv::page_tokens;
  context().tell(manager_,
                 target_ready{.context = static_cast<std::uint32_t>(std::min<std::uint64_t>(config.context, room)),
                              .vocabulary = config.vocabulary,
                              .rows_max = transformer_->rows_max(),
                              .pages_count = pages_count_,
                              .window_pages_count = transformer_->size().window_pages,
                              .costs = costs_,
                              .start_id = start_id_,
                              .mixture = mixture_of(config)});
}

static failure wrong_run(const forward_batch& m, const batch_run& run, const std::string& why) {
  return failure{errc::malformed_message,
                 "batch " + std::to_string(m.batch) + ", sequence " + std::to_string(run.sequence.value) + ": " + why};
}

// A batch may have come from another process, so no slot, token or count in it is trusted.

result<void> target_model::check_moves(const forward_batch& m) const {
  const std::uint64_t slots_count = std::uint64_t{pages_count_} * kv::page_tokens;
  const std::uint64_t window_slots = std::uint64_t{transformer_->size().window_pages} * kv::page_tokens;
  const auto leaves_windows = [&](std::uint32_t slot, std::uint32_t count) {
    return slot != kv::token_move::nowhere && std::uint64_t{slot} + count > window_slots;
  };
  for (const auto& move : m.moves) {
    if (std::uint64_t{move.from_slot} + move.count > slots_count ||
        std::uint64_t{move.to_slot} + move.count > slots_count) {
      return failure{errc::malformed_message, "batch " + std::to_string(m.batch) + ": " + std::to_string(move.count) +
                                                  " tokens are moved from slot " + std::to_string(move.from_slot) +
                                                  " to " + std::to_string(move.to_slot) + ", expected slots below " +
                                                  std::to_string(slots_count)};
    }
    if (leaves_windows(move.window_from, move.count) || leaves_windows(move.window_to, move.count)) {
      return failure{errc::malformed_message, "batch " + std::to_string(m.batch) +
                                                  ": tokens are moved to or from slots outside of the window pages"};
    }
  }
  const std::uint32_t states = transformer_->size().state_slots + transformer_->size().state_copies;
  for (const auto& copy : m.copies) {
    if (copy.from < states && copy.to < states) continue;
    return failure{errc::malformed_message, "batch " + std::to_string(m.batch) + ": a state is copied from slot " +
                                                std::to_string(copy.from) + " to " + std::to_string(copy.to) +
                                                ", expected slots below " + std::to_string(states)};
  }
  return {};
}

result<void> target_model::check_tokens(const forward_batch& m, const batch_run& run) const {
  const auto wrong = [&](const std::string& why) { return wrong_run(m, run, why); };
  if (run.tokens.empty()) return wrong("a run without tokens");
  if (run.draft_count >= run.tokens.size()) return wrong("a draft without a token before it");
  if (run.logits_begin > run.tokens.size()) return wrong("logits requested after the end of the run");
  if (run.logits_begin < run.tokens.size() && run.logits_begin + run.draft_count + 1 != run.tokens.size()) {
    return wrong("logits requested for rows other than the draft's");
  }
  std::optional<token> unknown;
  const auto check_token = [&](token t) {
    if (t < 0 || static_cast<std::uint32_t>(t) >= transformer_->config().vocabulary) unknown = t;
  };
  for (const token t : run.tokens) check_token(t);
  if (run.after_draft) check_token(*run.after_draft);
  if (unknown) return wrong("token " + std::to_string(*unknown) + " is outside of the vocabulary");
  return {};
}

result<void> target_model::check_memory(const forward_batch& m, const batch_run& run) const {
  const auto wrong = [&](const std::string& why) { return wrong_run(m, run, why); };
  const kv::pool_size size = transformer_->size();
  const auto& [table, window_table, state] = run.memory;
  // Each piece may have its own offset, and keys are rotated once for each offset.
  if (table.size() > pieces_max) return wrong("more than " + std::to_string(pieces_max) + " pieces");
  if (window_table.size() > pieces_max - table.size()) return wrong("too many pieces");
  std::uint64_t covered = 0;
  for (const auto& piece : table) {
    if (piece.count == 0) return wrong("an empty piece in the page table");
    if (std::uint64_t{piece.first_slot} + piece.count > std::uint64_t{pages_count_} * kv::page_tokens)
      return wrong("a slot outside of the storage");
    covered += piece.count;
  }
  if (run.first_position < 0 || covered != static_cast<std::uint64_t>(run.first_position) + run.tokens.size()) {
    return wrong("a page table of " + std::to_string(covered) + " tokens for a run that ends at " +
                 std::to_string(run.first_position + static_cast<std::int64_t>(run.tokens.size())));
  }
  std::uint64_t seen = 0;
  for (const auto& piece : window_table) {
    if (piece.count == 0) return wrong("an empty piece in the window table");
    if (std::uint64_t{piece.first_slot} + piece.count > std::uint64_t{size.window_pages} * kv::page_tokens)
      return wrong("a slot outside of the window pages");
    seen += piece.count;
  }
  const auto first = static_cast<std::uint64_t>(run.first_position);
  const std::uint64_t expected = size.window_pages == 0 ? 0 : covered - kernels::window_begin(first + 1, size.window);
  if (seen != expected) {
    return wrong("a window table of " + std::to_string(seen) + " tokens, expected " + std::to_string(expected));
  }
  if (size.state_slots != 0) {
    const auto rows = static_cast<std::uint32_t>(run.tokens.size());
    bool is_good = state.slot < size.state_slots && state.records <= size.state_records && state.kept <= rows &&
                   rows - std::min(rows, state.kept) <= size.state_records;
    std::uint32_t last = 0;
    for (const auto& s : state.snapshots) {
      is_good = is_good && s.rows > last && s.rows <= state.records + state.kept && s.slot >= size.state_slots &&
                s.slot - size.state_slots < size.state_copies;
      last = s.rows;
    }
    if (!is_good) return wrong("a state outside of the storage");
  }
  const std::uint32_t context = transformer_->config().context;
  if (covered > context) return wrong("a position beyond the model's context of " + std::to_string(context));
  return {};
}

result<void> target_model::check(const forward_batch& m) const {
  if (const auto good = check_moves(m); !good) return good;
  std::uint64_t rows = 0;
  std::uint64_t logits_rows = 0;
  std::vector<char> written(transformer_->size().state_slots + transformer_->size().state_copies);
  for (const auto& run : m.runs) {
    if (const auto good = check_tokens(m, run); !good) return good;
    if (const auto good = check_memory(m, run); !good) return good;
    if (!written.empty()) {
      bool is_first = std::exchange(written[run.memory.state.slot], 1) == 0;
      for (const auto& s : run.memory.state.snapshots) is_first = is_first && std::exchange(written[s.slot], 1) == 0;
      if (!is_first) return wrong_run(m, run, "a state that another run writes, too");
    }
    rows += run.tokens.size();
    logits_rows += run.tokens.size() - run.logits_begin;
  }
  const auto too_many = [&](std::uint32_t most, const char* what, std::uint64_t found) {
    return failure{errc::malformed_message, "batch " + std::to_string(m.batch) + ": expected at most " +
                                                std::to_string(most) + what + ", found " + std::to_string(found)};
  };
  if (rows > transformer_->rows_max()) return too_many(transformer_->rows_max(), " rows", rows);
  if (logits_rows > transformer_->logits_rows_max()) {
    return too_many(transformer_->logits_rows_max(), " rows with logits", logits_rows);
  }
  return {};
}

/// Grammars that are known by name are looked up first, since new ones may replace them in the cache.
result<target_model::batch_grammars> target_model::find_grammars(const forward_batch& m) {
  using enum grammar::grammar_kind;
  batch_grammars out(m.runs.size());
  std::unordered_map<std::uint64_t, std::shared_ptr<grammar::grammar_cache::entry>> named;
  for (const batch_run& run : m.runs) {
    if (run.grammar.kind == known) named.emplace(run.grammar_name, grammars_.find_named(run.grammar_name));
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const batch_run& run = m.runs[i];
    if (run.grammar.kind == none || run.grammar.kind == known) continue;
    const auto entry = grammars_.find(run.grammar, run.grammar_name);
    if (!entry) return wrong_run(m, run, entry.error().context);
    named[run.grammar_name] = out[i] = *entry;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const batch_run& run = m.runs[i];
    if (run.grammar.kind != known || !named[run.grammar_name]) continue;
    out[i] = named[run.grammar_name];
    const auto good = grammars_.check_state(*out[i], run.grammar.state);
    if (!good) return wrong_run(m, run, good.error().context);
  }
  return out;
}

namespace {

/// The verification of one run of a batch.
struct judged_run {
  std::optional<grammar::grammar_matcher> rules;
  std::optional<sampling::draft_verification> verification;
  std::uint32_t first_row = 0;  // index among the batch's rows that want logits
  bool takes_turns = false;
};

/// A row of a step of the output head.
struct step_row {
  std::size_t run;
  std::size_t row;  // index in the run
};

/// The rows that the head computes next: the next one of each run, which decides in any case; then, as far as they cost
/// little more, those that count if drafts are right, the nearest first. The rows of a run are adjacent and in order.
std::vector<step_row> next_step(const std::vector<judged_run>& runs, std::size_t rows_together) {
  std::size_t left = 0;
  for (const auto& r : runs) left += r.verification ? r.verification->rows_left() : 0;
  std::vector<std::size_t> counts(runs.size(), 0);
  // Leaving a few rows for later would read the head's weights once more.
  const std::size_t most = left <= rows_together + rows_together / 2 ? left : rows_together;
  for (std::size_t taken = 0, depth = 0; depth == 0 || taken < most; ++depth) {
    const std::size_t before = taken;
    for (std::size_t i = 0; i < runs.size() && (depth == 0 || taken < most); ++i) {
      if (!runs[i].verification || runs[i].verification->rows_left() <= depth) continue;
      ++counts[i], ++taken;
    }
    if (taken == before) break;
  }
  std::vector<step_row> out;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (std::size_t k = 0; k < counts[i]; ++k) out.push_back({i, runs[i].verification->next_row() + k});
  }
  return out;
}

}  // namespace

/// Judges each run's draft by its logits. The head is computed in steps of rows, so that those after a draft's first
/// refusal cost little. Choosing from a hundred thousand tokens takes milliseconds with some parameters, so the threads
/// of the passes share the runs. Grammars keep masks and a chooser counts, so runs with those take turns.
std::vector<sampling::acceptance> target_model::judge(const forward_batch& m, const batch_grammars& grammars,
                                                      std::span<const model::run> batch) {
  const std::size_t vocabulary = transformer_->config().vocabulary;
  kernels::worker_team& team = transformer_->team();
  std::vector<judged_run> runs(batch.size());
  std::uint32_t rows = 0;
  bool scores = false;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const batch_run& run = m.runs[i];
    judged_run& to = runs[i];
    to.first_row = std::exchange(rows, rows + batch[i].logits_count());
    if (batch[i].logits_count() == 0) continue;
    if (grammars[i] && !run.scores_draft) to.rules.emplace(*grammars[i], run.grammar);
    to.takes_turns = to.rules || chooser_ != nullptr;
    // A chooser counts the tokens of the answer, and its benchmark has no penalties.
    const sampling::token_context before{.log = run.latest,
                                         .count = run.log_count,
                                         .prompt_count = chooser_ ? run.prompt_count : 0,
                                         .counts = run.counts};
    sampling::verification_options how{.logprobs_count = run.logprobs,
                                       .filter = to.rules ? &*to.rules : nullptr,
                                       .after_draft = run.after_draft,
                                       .chooser = {chooser_.get(), run.sequence.value}};
    if (run.scores_draft) how = {.logprobs_count = run.logprobs.value_or(0), .scores = true};
    scores |= run.scores_draft;
    to.verification.emplace(std::span(run.tokens).last(run.draft_count), run.sampling, before, how);
  }
  // A text that is scored needs all its rows.
  const std::size_t rows_together = scores ? transformer_->logits_rows_max() : transformer_->head_step_rows();
  std::vector<std::uint32_t> wanted;
  std::vector<sampling::judged_row> judged;
  for (auto step = next_step(runs, rows_together); !step.empty(); step = next_step(runs, rows_together)) {
    wanted.clear();
    bool needs_logits = false;
    for (const step_row& s : step) {
      wanted.push_back(runs[s.run].first_row + static_cast<std::uint32_t>(s.row));
      needs_logits |= !runs[s.run].verification->needs_only_best();
    }
    judged.assign(step.size(), {});
    if (needs_logits) {
      const auto logits = transformer_->logits_of(wanted);
      team.parallel_for(step.size(), [&](std::size_t k, std::uint32_t) {
        judged[k].logits = logits.subspan(k * vocabulary, vocabulary);
        const kernels::row_best best = transformer_->best_of_row(judged[k].logits);
        judged[k].best = {best.value, static_cast<token>(best.index)};
      });
    } else {
      const auto best = transformer_->best_of(wanted);
      for (std::size_t k = 0; k < step.size(); ++k) judged[k].best = {best[k].value, static_cast<token>(best[k].index)};
    }
    std::vector<std::size_t> begins, in_turn;
    for (std::size_t k = 0; k < step.size(); ++k) {
      if (k > 0 && step[k].run == step[k - 1].run) continue;
      (runs[step[k].run].takes_turns ? in_turn : begins).push_back(k);
    }
    const auto judge_run = [&](std::size_t k) {
      const std::size_t run = step[k].run;
      sampling::draft_verification& v = *runs[run].verification;
      for (; k < step.size() && step[k].run == run && !v.is_done(); ++k) v.judge(judged[k]);
    };
    team.parallel_for(begins.size(), [&](std::size_t item, std::uint32_t) { judge_run(begins[item]); });
    for (const std::size_t k : in_turn) judge_run(k);
  }
  std::vector<sampling::acceptance> out(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (runs[i].verification) out[i] = runs[i].verification->take();
  }
  return out;
}

/// Asks the MTP layer for drafts that continue the results.
void target_model::draft(const forward_batch& m, std::span<const model::run> batch, batch_done& done) {
  if (transformer_->mtp_vocabulary() == 0) return;
  std::vector<model::transformer::mtp_start> starts;
  std::vector<model::transformer::mtp_row> rows, next;
  for (std::size_t i = 0; i < m.runs.size() && starts.size() < model::mtp_drafts_max; ++i) {
    const batch_run& run = m.runs[i];
    const run_result& got = done.results[i];
    const auto most = static_cast<std::uint32_t>(std::min<std::uint64_t>(run.mtp.tokens, draft::mtp_tokens_max));
    const bool holds = run.mtp.if_refused && got.accepted_count == run.draft_count;
    const std::uint64_t end = static_cast<std::uint64_t>(run.first_position) + run.tokens.size() + most;
    if (most == 0 || holds || got.why_not || got.tokens.empty() || end >= transformer_->config().context) continue;
    rows.push_back({static_cast<std::uint32_t>(starts.size()), got.tokens.back()});
    starts.push_back({i, run.logits_begin + got.accepted_count});
  }
  if (starts.empty()) return;
  const instant started = context().now();
  transformer_->begin_drafts(batch, starts);
  std::vector<draft::mtp_length> lengths;
  for (const auto& start : starts) lengths.emplace_back(m.runs[start.run].mtp.token_cost);
  std::size_t drafted = 0;
  for (std::uint32_t step = 0; step < draft::mtp_tokens_max && !rows.empty(); ++step, rows.swap(next)) {
    const auto logits = transformer_->draft(rows);
    const std::size_t vocabulary = transformer_->mtp_vocabulary();
    drafted += rows.size();
    next.clear();
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const auto of_row = logits.subspan(k * vocabulary, vocabulary);
      const std::uint32_t start = rows[k].draft;
      const draft::mtp_request& wanted = m.runs[starts[start].run].mtp;
      draft::mtp_draft& to = done.results[starts[start].run].mtp;
      ++to.rows;
      float chance = sampling::top_probability(of_row);
      auto best = static_cast<token>(transformer_->best_of_row(of_row).index);
      if (chooser_) {
        const batch_run& run = m.runs[starts[start].run];
        const std::uint64_t said = run.log_count - run.prompt_count + done.results[starts[start].run].tokens.size();
        best = chooser_->draft({run.sequence.value, said + to.tokens.size(), std::nullopt}).value_or(best);
        chance = chooser_->confidence(run.sequence.value, chance);
      }
      if (!lengths[start].add(chance)) continue;
      to.tokens.push_back(best);
      to.grades.push_back(draft::grade_of_probability(chance));
      if (to.tokens.size() < wanted.tokens && lengths[start].may_grow()) next.push_back({start, to.tokens.back()});
    }
  }
  done.mtp_us = static_cast<std::uint64_t>(std::max<std::int64_t>((context().now() - started).count(), 1));
  const auto row_us = static_cast<std::uint32_t>(std::max<std::uint64_t>(done.mtp_us / drafted, 1));
  for (const auto& start : starts) done.results[start.run].mtp.row_us = row_us;
}

void target_model::on(const forward_batch& m) {
  batch_done done{.batch = m.batch};
  const auto good = check(m);
  const auto grammars = good ? find_grammars(m) : result<batch_grammars>(good.error());
  if (!grammars) {
    done.why_not = grammars.error();
    context().tell(manager_, done);
    return;
  }
  transformer_->move_tokens(m.moves);  // even if a grammar is missing: the manager does not send them again
  transformer_->copy_states(m.copies);
  for (std::size_t i = 0; i < m.runs.size(); ++i) {
    if (m.runs[i].grammar.kind != grammar::grammar_kind::none && !(*grammars)[i]) done.lacks_grammars = true;
  }
  if (done.lacks_grammars) {
    context().tell(manager_, done);
    return;
  }
  const instant started = context().now();
  std::vector<model::run> batch;
  for (const auto& run : m.runs) {
    batch.push_back({.tokens = run.tokens,
                     .first_position = run.first_position,
                     .table = run.memory.table,
                     .logits_begin = run.logits_begin,
                     .window_table = run.memory.window_table,
                     .state = run.memory.state});
  }
  const std::uint64_t experts_before = transformer_->experts().experts;
  transformer_->forward_body(batch);
  done.experts_count = transformer_->experts().experts - experts_before;

  std::vector<sampling::acceptance> judged = judge(m, *grammars, batch);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const batch_run& run = m.runs[i];
    run_result answer{.sequence = run.sequence};
    if (batch[i].logits_count() > 0) {
      sampling::acceptance& got = judged[i];
      if (!got.is_usable) {
        answer.why_not = failure{errc::internal,
                                 "the model computed no finite number for the next token (numbers overflowed): "
                                 "check the model file with 'redline doctor', or serve it with --kv f32"};
      }
      if (chooser_ && !run.scores_draft)
        chooser_->note_verified(run.sequence.value, run.draft_count, got.accepted_count);
      answer.accepted_count = got.accepted_count;
      answer.tokens = std::move(got.tokens);
      answer.logprobs = std::move(got.logprobs);
    }
    done.results.push_back(std::move(answer));
  }
  done.elapsed_us = static_cast<std::uint64_t>((context().now() - started).count());
  draft(m, batch, done);
  context().tell(manager_, done);
}

}  // namespace redline::actors

template class redline::actor::actor_cell<redline::actors::target_model>;
