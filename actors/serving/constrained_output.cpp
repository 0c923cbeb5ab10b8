#include "actors/serving/constrained_output.hpp"

#include <algorithm>
#include <utility>

#include "runtime/grammar/copy_grammar.hpp"
#include "runtime/grammar/syntax/steps.hpp"

namespace redline::actors {
namespace {

// Limit of a span that is tokenized where it begins, in less than a millisecond.
constexpr std::size_t tokenized_at_once_bytes_max = 4096;
// The grade of drafts of what a call's grammar leaves.
constexpr std::uint8_t call_grade = 3;

}  // namespace

constrained_output::constrained_output(std::shared_ptr<const output_rules> rules)
    : rules_(std::move(rules)), state_(rules_->grammar->automaton().begin()) {
  if (rules_->is_program()) copy_.emplace(rules_);
  if (rules_->known) arguments_.emplace(rules_->known);
}

bool constrained_output::is_complete() const { return rules_->grammar->automaton().is_terminated(state_); }
bool constrained_output::is_lost() const { return rules_->grammar->automaton().is_lost(state_); }
bool constrained_output::may_end() const { return rules_->grammar->automaton().is_accepting(state_); }
bool constrained_output::wants_logprobs() const {
  return copy_ && rules_->copy.trust == copy_trust::automatic && !rules_->copy.anchors;
}

std::vector<std::uint32_t> constrained_output::grammar_state() const {
  return {state_.cells().begin(), state_.cells().end()};
}

constrained_output::acceptance constrained_output::accept_token(token t, std::optional<float> logprob,
                                                                std::string& text) {
  const auto& automaton = rules_->grammar->automaton();
  if (const auto span = span_left(); !span.empty()) {  // the model verifies it: a forced span is never left open
    if (span.front() != t) {
      copy_->refuse_span();
      state_ = automaton.begin();
      return acceptance::span_ended;
    }
    automaton.skip_unconstrained_token(state_);
    copy_->insert_span_token(text);
    return acceptance::taken;
  }
  using place = grammar::compiled_grammar::place;
  grammar::step_count uncounted;  // one token
  const auto where = rules_->grammar->place_token(state_, t, uncounted);
  if (where == place::none) return acceptance::forbidden;
  // A draft may go beyond what the grammar decides. There the model had no choice, so its certainty does not count.
  advance(t, where == place::decided ? std::optional(0.0F) : logprob, text);
  return where == place::decided ? acceptance::decided : acceptance::taken;
}

/// Takes a token that the grammar has accepted. logprob: the model's own; 0 for a token decided without it.
void constrained_output::advance(token t, std::optional<float> logprob, std::string& text) {
  const auto piece = rules_->grammar->trie().tokenizer().piece(t);
  if (!copy_) {
    const bool is_shown = std::binary_search(rules_->shown.begin(), rules_->shown.end(), t);
    if (arguments_) follow_arguments(piece);
    text += is_shown ? rules_->grammar->trie().tokenizer().piece(t, true) : piece;
    return;
  }
  copy_->feed(piece, logprob, text);
  if (!copy_->in_span()) return;
  const auto left = copy_->untokenized();
  if (!left)
    begin_span();
  else if (left->bytes.size() <= tokenized_at_once_bytes_max)
    tokenize_span(left->spell());
}

void constrained_output::tokenize_span(std::vector<token> spelling) {
  copy_->tokenize_span(std::move(spelling));
  begin_span();
}

/// Begins the span, now that the number of its tokens is known.
void constrained_output::begin_span() {
  const auto& programs = static_cast<const grammar::copy_grammar&>(rules_->grammar->automaton());
  programs.resume(state_, copy_->is_span_forced() ? 0 : static_cast<std::uint32_t>(copy_->span_left().size()));
}

std::optional<constrained_output::decided> constrained_output::next_decided(grammar::step_count& steps) {
  if (const auto left = untokenized()) tokenize_span(left->spell());
  if (copy_ && copy_->is_span_forced()) return decided{.id = span_left().front(), .is_copied = true};
  if (!span_left().empty() || is_complete()) return std::nullopt;
  const auto only = rules_->grammar->jump_forward(state_, steps);
  return only ? std::optional(decided{.id = *only}) : std::nullopt;
}

void constrained_output::append_decided(const decided& next, std::string& text) {
  if (next.is_copied) {
    copy_->insert_span_token(text);
    return;
  }
  const bool is_taken = rules_->grammar->trie().accept_token(rules_->grammar->automaton(), state_, next.id);
  REDLINE_ASSERT(is_taken, "the grammar allows a token that must follow");
  advance(next.id, 0.0F, text);
}

std::vector<token> constrained_output::usable(std::vector<token> draft, grammar::step_count& steps) const {
  const auto& grammar = *rules_->grammar;
  auto s = state_;
  std::size_t kept = 0;
  while (kept < draft.size() && !steps.is_over() && !grammar.automaton().awaits_span(s) &&
         !grammar.automaton().is_terminated(s) && !grammar.automaton().is_lost(s) &&
         grammar.accept_token(s, draft[kept], steps))
    ++kept;
  draft.resize(kept);
  return draft;
}

/// piece: of the token that led to the present state.
void constrained_output::follow_arguments(std::string_view piece) {
  const bool was_in = std::exchange(in_arguments_, rules_->tools->is_in_arguments(state_));
  if (!was_in && in_arguments_) {
    arguments_->reset();
    piece = piece.substr(std::min(piece.rfind('{'), piece.size()));  // markup comes before it
  }
  if (was_in || in_arguments_) arguments_->feed(piece);
}

/// A position in a call, and the arguments up to there.
struct constrained_output::call_follower {
  const grammar::tool_automaton& automaton;
  grammar::automaton_state state;
  draft::escaped_copy arguments;
  bool in_arguments = false;

  /// Returns false where the grammar forbids the byte.
  bool take(char byte, grammar::step_count& steps) {
    const bool was_in = in_arguments;
    if (!automaton.advance(state, static_cast<std::uint8_t>(byte), steps)) return false;
    in_arguments = automaton.is_in_arguments(state);
    if (was_in) arguments.feed({&byte, 1});
    if (!was_in && in_arguments) arguments.reset();
    return true;
  }
};

/// What follows if the grammar leaves nothing else, except whitespace or a further member or value: then the sign that
/// closes the open value. Empty if there is a choice.
std::string_view constrained_output::likely_sign(const call_follower& at, grammar::step_count& steps) const {
  constexpr std::string_view signs =
      " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~";
  const auto& m = at.automaton;
  if (m.free_text_at(at.state).table != nullptr || m.is_terminated(at.state)) return {};
  if (const auto known = m.known_run(at.state, steps); !known.empty()) return known;
  bool may_be_whitespace = false, may_go_on = false;
  std::string_view only;
  for (std::size_t i = 0; i < signs.size(); ++i) {
    auto after = at.state;
    if (!m.advance(after, static_cast<std::uint8_t>(signs[i]), steps)) continue;
    if (signs[i] == ' ') {
      may_be_whitespace = true;
    } else if (signs[i] == ',') {
      may_go_on = true;
    } else if (only.empty()) {
      only = signs.substr(i, 1);
    } else {
      return {};
    }
  }
  if (may_be_whitespace && at.in_arguments && at.arguments.wants_whitespace()) return " ";
  const bool ends = only == "}" || only == "]";
  return !may_go_on || ends ? only : only.empty() ? std::string_view(",") : std::string_view{};
}

draft::graded_draft constrained_output::likely_call(std::uint32_t tokens_max, grammar::step_count& steps) const {
  const auto& grammar = *rules_->grammar;
  const auto& tokenizer = grammar.trie().tokenizer();
  draft::graded_draft out;
  if (!arguments_ || grammar.automaton().is_free(state_)) return out;
  // Tokens have more than four bytes where text is repeated at length; what is cut costs the next round nothing.
  const std::size_t bytes_max = std::min(std::size_t{6} * tokens_max, tokenized_at_once_bytes_max);
  call_follower ahead{*rules_->tools, state_, *arguments_, in_arguments_};
  std::string text;
  std::vector<std::pair<std::size_t, draft::graded_segment>> ends;  // of the text's parts, and what speaks for each
  for (bool goes_on = true; goes_on && text.size() < bytes_max && !steps.is_over();) {
    draft::graded_segment part{draft::source::program, call_grade, 0};
    std::string more;
    if (const auto copy = ahead.in_arguments ? ahead.arguments.ahead(bytes_max - text.size()) : std::nullopt) {
      more = copy->bytes;
      part = {draft::source::lookup, draft::grade_of_match(copy->matched / 4), 0};
    } else {
      more = likely_sign(ahead, steps);
    }
    goes_on = !more.empty();
    for (const char c : more) {
      goes_on = goes_on && ahead.take(c, steps);
      if (goes_on) text += c;
    }
    ends.emplace_back(text.size(), part);
  }
  // The text is tokenized as far as the grammar takes it. What the grammar decides has the grammar's own tokens.
  auto s = state_;
  std::size_t at = 0;
  std::size_t part = 0;
  const auto take = [&](token t) {
    auto after = s;
    const auto piece = tokenizer.piece(t, true);
    if (!std::string_view(text).substr(at).starts_with(piece) || !grammar.accept_token(after, t, steps)) return false;
    s = after;
    while (ends[part].first <= at) ++part;
    out.add(ends[part].second.from, ends[part].second.grade, {&t, 1});
    at += piece.size();
    return true;
  };
  // After each token of the grammar's own the rest is tokenized again: a few times is enough for a draft.
  std::size_t cut_bytes = 0;
  for (bool goes_on = true; goes_on && at < text.size() && out.tokens.size() < tokens_max;) {
    cut_bytes += text.size() - at;
    if (cut_bytes > 4 * tokenized_at_once_bytes_max || steps.is_over()) break;
    auto tokens = tokenizer.encode(std::string_view(text).substr(at), {.continues = true});
    // Where the text is cut, the last token differs from that of the whole.
    if (text.size() >= bytes_max) tokens.pop_back();
    std::size_t taken = 0;
    while (taken < tokens.size() && out.tokens.size() < tokens_max && !steps.is_over() && take(tokens[taken])) ++taken;
    const auto forced = taken < tokens.size() ? grammar.jump_forward(s, steps) : std::nullopt;
    goes_on = forced && out.tokens.size() < tokens_max && take(*forced);
  }
  return out;
}

std::vector<token> constrained_output::likely_continuation() const {
  if (!copy_ || copy_->in_span() || is_complete()) return {};
  const auto& grammar = *rules_->grammar;
  std::vector<token> draft;
  auto s = state_;
  const std::string text = copy_->likely_continuation();
  for (std::string_view left = text; !left.empty();) {
    auto t = grammar.jump_forward(s);
    if (!t) t = grammar.trie().longest_token(grammar.automaton(), s, left);
    if (!t || !left.starts_with(grammar.trie().tokenizer().piece(*t)) || !grammar.accept_token(s, *t)) break;
    left.remove_prefix(grammar.trie().tokenizer().piece(*t).size());
    draft.push_back(*t);
  }
  return draft;
}

}  // namespace redline::actors
