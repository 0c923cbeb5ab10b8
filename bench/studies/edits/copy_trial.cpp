#include "bench/studies/edits/copy_trial.hpp"

#include <algorithm>
#include <optional>

#include "actors/node/engine.hpp"
#include "bench/studies/common/edit_request.hpp"
#include "bench/studies/common/local_runner.hpp"
#include "runtime/copy/oracle.hpp"

namespace redline::studies {
namespace {

/// An edit in both of its forms.
struct prepared {
  const known_edit* edit = nullptr;
  generation_spec plain, program;
  std::vector<token> file, ops;  // the tokens to commit
};

std::optional<token> end_token(const text::tokenizer& tokenizer) {
  for (token t = 0; t < static_cast<token>(tokenizer.size()); ++t) {
    if (tokenizer.is_end_of_generation(t)) return t;
  }
  return std::nullopt;
}

result<std::optional<prepared>> prepare(const known_edit& edit, std::uint32_t answer_tokens_max, const engine& e) {
  prepared p{.edit = &edit, .plain = {}, .program = {}, .file = {}, .ops = {}};
  p.file = e.tokenizer()->encode(answer_of(edit.task, edit.after));
  if (p.file.size() >= answer_tokens_max) return std::optional<prepared>{};
  if (const auto end = end_token(*e.tokenizer())) p.file.push_back(*end);
  REDLINE_TRY_ASSIGN(p.plain, request_of(edit.task, {}, e));
  REDLINE_TRY_ASSIGN(p.program, request_of(edit.task, {}, e, copy_options{}));
  const auto& rules = *p.program.rules;
  const auto ops = copy::shortest_program(rules.files, copy::document(edit.after));
  auto tokens = program_tokens(rules, copy::print_program(ops, false));
  if (!tokens) return std::optional<prepared>{};
  p.ops = std::move(*tokens);
  const std::size_t room = e.context_max();
  const bool fits = p.plain.prompt.size() + p.file.size() < room && p.program.prompt.size() + p.ops.size() < room;
  return fits ? std::optional(std::move(p)) : std::optional<prepared>{};
}

/// Runs all edits, `users` at once, and adds up the time.
class trial {
 public:
  trial(local_runner& runner, answer_replay& replay, std::uint32_t users, clock_kind clock)
      : runner_(runner), replay_(replay), users_(users), clock_(clock) {}

  struct took {
    double seconds = 0;
    std::uint32_t passes = 0;
    std::size_t exact = 0;
  };
  /// A `tokens_max` of 0 means whole answers.
  result<took> run(const std::vector<prepared>& all, bool program, std::uint32_t tokens_max,
                   const draft::draft_options& how) {
    took sum;
    for (std::size_t begin = 0; begin < all.size(); begin += users_) {
      std::vector<generation_spec> requests;
      std::vector<sequence_id> sequences;
      for (std::size_t i = begin; i < std::min<std::size_t>(begin + users_, all.size()); ++i) {
        auto request = program ? all[i].program : all[i].plain;
        if (tokens_max > 0) request.tokens_max = tokens_max;
        requests.push_back(std::move(request));
        sequences.push_back({runner_.next_sequence().value + (i - begin)});
        replay_.replay(sequences.back(), program ? all[i].ops : all[i].file);
      }
      const double began = seconds_on(clock_);
      REDLINE_TRY_ASSIGN(const auto outcomes, runner_.run_all(std::move(requests), how));
      sum.seconds += seconds_on(clock_) - began;
      for (std::size_t i = 0; i < outcomes.size(); ++i) {
        replay_.finish(sequences[i]);
        sum.passes += outcomes[i].stats.target_passes;
        sum.exact += outcomes[i].text == all[begin + i].edit->after ? 1 : 0;
      }
    }
    return sum;
  }

 private:
  local_runner& runner_;
  answer_replay& replay_;
  std::uint32_t users_;
  clock_kind clock_;
};

}  // namespace

result<trial_result> try_programs(const std::vector<known_edit>& edits, std::uint32_t count, std::uint32_t users,
                                  std::uint32_t answer_tokens_max, std::uint32_t repeats, clock_kind clock,
                                  local_runner& runner, answer_replay& replay) {
  const engine& e = runner.parts();
  std::vector<prepared> fitting;
  for (const auto& edit : edits) {
    REDLINE_TRY_ASSIGN(auto p, prepare(edit, answer_tokens_max, e));
    if (p) fitting.push_back(std::move(*p));
  }
  trial_result out{.users = users};
  if (fitting.empty()) return out;
  std::vector<prepared> chosen;
  for (const auto i : spread(fitting.size(), count)) chosen.push_back(fitting[i]);
  for (std::size_t i = 0; chosen.size() < users; ++i) chosen.push_back(chosen[i]);
  for (const auto& p : chosen) out.cover += line_cover(*p.edit, e.token_trie());

  trial t(runner, replay, users, clock);
  const draft::draft_options regular{.how = draft::method::regular};
  const draft::draft_options lookup{.how = draft::method::lookup};
  struct variant {
    bool program;
    std::uint32_t tokens_max;
    const draft::draft_options& how;
    trial::took best{};
  };
  variant all[] = {{false, 1, regular}, {true, 1, regular}, {true, 0, regular}, {true, 0, lookup}, {false, 0, regular}};
  REDLINE_TRY(t.run({chosen.front()}, true, 1, regular));  // warms up
  for (std::uint32_t repeat = 0; repeat < repeats; ++repeat) {
    for (auto& v : all) {
      REDLINE_TRY_ASSIGN(const auto took, t.run(chosen, v.program, v.tokens_max, v.how));
      if (repeat == 0 || took.seconds < v.best.seconds) v.best = took;
    }
  }
  const auto& [plain_prompts, program_prompts, program, guessed, whole] = all;
  out.edits = chosen.size();
  out.exact = std::min(program.best.exact, guessed.best.exact);
  out.regular_seconds = whole.best.seconds - plain_prompts.best.seconds;
  out.program_seconds = program.best.seconds - program_prompts.best.seconds;
  out.guessed_seconds = guessed.best.seconds - program_prompts.best.seconds;
  out.program_passes = program.best.passes;
  out.guessed_passes = guessed.best.passes;
  return out;
}

namespace {

/// The file that the answer's program makes; nullopt when the answer is not a program.
std::optional<std::string> file_made_by(const outcome& got, const output_rules& rules, bool as_text) {
  if (got.reason != finish_reason::stop) return std::nullopt;
  auto shape = rules.shape;
  shape.anchors = false;  // the reported program leaves them out
  const auto program = copy::parse_program(as_text ? got.text : got.copied.program, shape);
  const auto bytes = program ? copy::resolve(*program, rules.files) : result<std::string>(program.error());
  if (!bytes || (!as_text && *bytes != got.text)) return std::nullopt;
  return *bytes;
}

}  // namespace

result<own_result> try_own_programs(const std::vector<known_edit>& edits, std::uint32_t count,
                                    const own_writing& writing, local_runner& runner) {
  own_result out{.writing = writing.name};
  const engine& e = runner.parts();
  struct fitting_edit {
    const known_edit* edit;
    generation_spec request;
    std::shared_ptr<const output_rules> rules;
  };
  std::vector<fitting_edit> fitting;
  for (const auto& edit : edits) {
    REDLINE_TRY_ASSIGN(auto request, request_of(edit.task, {}, e, writing.how.value_or(copy_options{})));
    const std::size_t answer = e.tokenizer()->encode(edit.after).size();
    if (request.prompt.size() + 2 * answer + 64 > e.context_max()) continue;
    request.tokens_max = static_cast<std::uint32_t>(2 * answer + 64);
    fitting.push_back({&edit, std::move(request), nullptr});
    fitting.back().rules = fitting.back().request.rules;
    if (!writing.how) fitting.back().request.rules.reset();
  }
  if (fitting.empty()) return out;
  for (const auto i : spread(fitting.size(), count)) {
    const draft::draft_options lookup{.how = draft::method::lookup};
    REDLINE_TRY_ASSIGN(const auto got, runner.run(fitting[i].request, lookup, [](const session_text&) {}));
    const auto made = file_made_by(got, *fitting[i].rules, !writing.how);
    ++out.edits;
    out.valid += made ? 1 : 0;
    out.exact += made == fitting[i].edit->after ? 1 : 0;
    const bool is_refused = std::ranges::any_of(got.copied.spans, &copied_span::refused);
    out.refused += is_refused ? 1 : 0;
    out.refused_exact += is_refused && made == fitting[i].edit->after ? 1 : 0;
    for (const auto& span : got.copied.spans) ++(span.forced ? out.forced : out.verified);
  }
  return out;
}

}  // namespace redline::studies
