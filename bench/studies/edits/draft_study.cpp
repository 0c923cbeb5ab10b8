#include "bench/studies/edits/draft_study.hpp"

#include <algorithm>

#include "bench/studies/common/answer_replay.hpp"
#include "runtime/draft/lookup_source.hpp"
#include "runtime/draft/prediction_source.hpp"
#include "runtime/draft/prompt_lookup.hpp"

namespace redline::studies {
namespace {

using draft::method;

std::size_t agreement(std::span<const token> a, std::span<const token> b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

/// The draft model of an answer, which repeats the decisions of `small_model_runner` without a model.
class simulated_model {
 public:
  simulated_model(const draft_replay_study::setting& s, const known_answer& known) : setting_(s), known_(known) {}

  struct draft_made {
    draft::graded_draft draft;
    std::uint32_t passes = 0;
    std::uint32_t rows = 0;    // rows of the draft passes
    std::uint32_t unread = 0;  // rows that read the log first
    double us = 0;             // time of the draft passes
  };
  draft_made make(std::span<const token> log, std::uint32_t tokens_max, const draft::round_costs& target) {
    draft_made out;
    out.unread = static_cast<std::uint32_t>(unread(log));
    log_.append(log.subspan(log_.tokens().size()));
    const pass_costs& p = setting_.costs;
    const draft::draft_options options;
    const bool is_blazedit = setting_.how != method::assisted;
    const auto answered = log.size() - known_.prompt.size();
    double chance = 1;
    for (;;) {
      std::vector<token> guess;
      if (is_blazedit) guess = look_up(options, tokens_max, target, out.draft);
      const auto left =
          std::span(known_.answer).subspan(std::min(answered + out.draft.tokens.size(), known_.answer.size()));
      const std::size_t right = agreement(guess, left);
      if (!guess.empty()) guesses_.learn({&run_, 1}, static_cast<std::uint32_t>(right), right < guess.size());
      ++out.passes;
      out.rows += static_cast<std::uint32_t>(guess.size());
      out.us += p.model_us + static_cast<double>(guess.size()) * p.model_row_us;
      out.draft.add(draft::source::model, draft::grades_count - 1, std::span(guess).first(right));
      if (right == left.size()) break;
      const bool is_right =
          model_is_right(answered + out.draft.tokens.size(), known_.answer.size(), setting_.model_right);
      const token own = is_right ? left[right] : (left[right] == 0 ? 2 : 0);
      out.draft.add(draft::source::model, draft::grade_of_probability(static_cast<float>(setting_.model_right)),
                    {&own, 1});
      chance *= setting_.model_right;
      if (out.draft.tokens.size() >= tokens_max || own == known_.answer.back()) break;
      if (!is_blazedit && out.draft.tokens.size() >= options.assisted_tokens_max) break;
      if (is_blazedit && (out.passes >= options.max_num_run || chance * target.round_us <= p.model_us + target.row_us))
        break;
    }
    read_.assign(log.begin(), log.end());
    read_.insert(read_.end(), out.draft.tokens.begin(), out.draft.tokens.end() - 1);  // its last token was not computed
    return out;
  }
  /// The tokens that the model must read before it can draft. It has read its last draft, too.
  [[nodiscard]] double unread(std::span<const token> log) const {
    return static_cast<double>(log.size() - std::min(agreement(read_, log), log.size() - 1));
  }

 private:
  std::vector<token> look_up(const draft::draft_options& options, std::uint32_t tokens_max,
                             const draft::round_costs& target, const draft::graded_draft& draft) {
    const std::uint32_t room = tokens_max - static_cast<std::uint32_t>(draft.tokens.size()) - 1;
    auto found =
        log_.look_up(draft.tokens, options.max_matching_ngram_size, std::min(options.micro_draft_tokens, room));
    run_ = {draft::source::lookup, draft::grade_of_match(found.matched),
            static_cast<std::uint32_t>(found.tokens.size())};
    const pass_costs& p = setting_.costs;
    const draft::round_costs both{.round_us = p.model_us + target.round_us, .row_us = p.model_row_us + target.row_us};
    found.tokens.resize(static_cast<std::size_t>(draft::best_round(guesses_.parts({&run_, 1}, nullptr), both).rows));
    return std::move(found.tokens);
  }

  const draft_replay_study::setting& setting_;
  const known_answer& known_;
  draft::prompt_lookup log_;
  std::vector<token> read_;
  draft::acceptance_record guesses_;
  draft::graded_segment run_;
};

}  // namespace

replay_cost& replay_cost::operator+=(const replay_cost& other) {
  us += other.us;
  rounds += other.rounds;
  rows += other.rows;
  model_passes += other.model_passes;
  model_rows += other.model_rows;
  for (std::size_t i = 0; i < accepted.size(); ++i) accepted[i] += other.accepted[i];
  return *this;
}

draft_replay_study::draft_replay_study(const setting& s)
    : setting_(s), tenant_(std::make_shared<draft::tenant_record>(s.constants)) {}

replay_cost draft_replay_study::replay(const known_answer& known) {
  const pass_costs& p = setting_.costs;
  // What a book is told: the line from one row to 33 (cost::step_cost_at).
  constexpr double line_rows = 32;
  const draft::round_costs costs{.round_us = p.target_us + p.overhead_us,
                                 .row_us = p.row_us * std::max(line_rows - p.free_rows, 0.0) / line_rows,
                                 .model_pass_us = p.model_us,
                                 .model_row_us = p.model_row_us};
  const draft::draft_options options{.how = setting_.how};
  const auto as_it_is = [](draft::graded_draft&) {};
  draft::book book(options, tenant_, setting_.constants);
  if (draft::reads_prediction(setting_.how) && !known.prediction.empty()) {
    book.add(std::make_unique<draft::prediction_source>(known.prediction, known.predicted_by));
  }
  if (setting_.how != method::regular)
    book.add(std::make_unique<draft::lookup_source>(options.max_matching_ngram_size));
  simulated_model model(setting_, known);
  std::vector<token> log = known.prompt;
  (void)book.append(log, true);
  while (book.catch_up()) {
  }
  replay_cost cost;
  draft::book::decision draft;
  // As in sessions, what is expected of the whole answer is verified with the prompt.
  if (draft::reads_prediction(setting_.how) && !known.prediction.empty())
    draft = book.choose(costs, static_cast<std::uint32_t>(known.answer.size() - 1), {}, as_it_is);
  for (std::size_t at = 0; at < known.answer.size();) {
    const auto left = std::span(known.answer).subspan(at);
    // The scheduler verifies the width that gives the most tokens per microsecond.
    const auto width = static_cast<std::size_t>(draft::best_round(draft.parts, costs).rows);
    const std::size_t accepted = std::min({agreement(draft.draft.tokens, left), width, left.size() - 1});
    std::size_t begin = 0;
    for (const auto& part : draft.parts) {
      const std::size_t end = std::min<std::size_t>(begin + part.count, accepted);
      cost.accepted[static_cast<std::size_t>(part.from)] += end - std::min(begin, end);
      begin += part.count;
    }
    const auto came = left.first(accepted + 1);
    ++cost.rounds;
    cost.rows += 1 + width;
    cost.us += costs.round_us + std::max(static_cast<double>(width) - p.free_rows, 0.0) * p.row_us;
    book.judge(came, static_cast<std::uint32_t>(width));
    at += came.size();
    log.insert(log.end(), came.begin(), came.end());
    (void)book.append(came);
    if (at + 1 >= known.answer.size()) {
      draft = {};
      continue;
    }
    const draft::book::model_state state{.is_there = draft::asks_model(setting_.how), .unread = model.unread(log)};
    draft = book.choose(costs, static_cast<std::uint32_t>(known.answer.size() - at - 1), state, as_it_is);
    if (draft.ask_model == 0) continue;
    auto made = model.make(log, draft.ask_model, costs);
    cost.model_passes += made.passes;
    cost.model_rows += made.rows + made.unread;
    cost.us += made.us + made.unread * p.model_row_us;
    draft = book.hear_model(std::move(made.draft), made.us / p.model_us, as_it_is);
  }
  return cost;
}

}  // namespace redline::studies
