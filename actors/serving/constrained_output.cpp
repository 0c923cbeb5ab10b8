#include "actors/serving/constrained_output.hpp"

#include <algorithm>
#include <utility>

#include "runtime/grammar/copy_grammar.hpp"
#include "runtime/grammar/steps.hpp"

namespace redline::actors {
namespace {

// To follow a draft: some 3 ms, for 64 tokens that are spelled with all of 256 bytes that must follow.
constexpr std::uint64_t usable_steps_max = std::uint64_t{64} * 256 * 16;
// Of a span that is spelled where it begins: less than a millisecond.
constexpr std::size_t spelled_at_once_bytes_max = 4096;

}  // namespace

constrained_output::constrained_output(std::shared_ptr<const output_rules> rules)
    : rules_(std::move(rules)), state_(rules_->grammar->automaton().begin()) {
  if (rules_->is_program()) copy_.emplace(rules_);
  if (rules_->known) arguments_.emplace(rules_->known);
}

bool constrained_output::is_complete() const { return rules_->grammar->automaton().is_terminated(state_); }
bool constrained_output::may_end() const { return rules_->grammar->automaton().is_accepting(state_); }
bool constrained_output::wants_logprobs() const {
  return copy_ && rules_->copy.trust == copy_trust::automatic && !rules_->copy.anchors;
}

grammar::constraint constrained_output::constraint(bool is_known) const {
  grammar::constraint c = is_known ? grammar::without_text({}) : rules_->constraint;
  c.state.assign(state_.cells().begin(), state_.cells().end());
  return c;
}

constrained_output::acceptance constrained_output::accept_token(token t, std::optional<float> logprob,
                                                                std::string& text) {
  const auto& automaton = rules_->grammar->automaton();
  if (const auto span = span_left(); !span.empty()) {  // one that the model verifies: a forced one is never left open
    if (span.front() != t) {
      copy_->break_off_span();
      state_ = automaton.begin();
      return acceptance::span_ended;
    }
    automaton.skip_unconstrained_token(state_);
    copy_->insert_span_token(text);
    return acceptance::taken;
  }
  if (!rules_->grammar->accept_token(state_, t)) return acceptance::forbidden;
  advance(t, logprob, text);
  return acceptance::taken;
}

/// The meaning of a token that the grammar has accepted. logprob: the model's own; 0 of a token decided without it.
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
  const auto left = copy_->unspelled();
  if (!left)
    begin_span();
  else if (left->bytes.size() <= spelled_at_once_bytes_max)
    spell_span(left->spell());
}

void constrained_output::spell_span(std::vector<token> spelling) {
  copy_->spell_span(std::move(spelling));
  begin_span();
}

/// Now that the number of its tokens is known.
void constrained_output::begin_span() {
  const auto& programs = static_cast<const grammar::copy_grammar&>(rules_->grammar->automaton());
  programs.resume(state_, copy_->is_span_forced() ? 0 : static_cast<std::uint32_t>(copy_->span_left().size()));
}

std::optional<constrained_output::decided> constrained_output::append_decided() {
  decided next;
  if (const auto left = unspelled()) spell_span(left->spell());
  if (copy_ && copy_->is_span_forced()) {
    next.id = copy_->insert_span_token(next.text);
    next.is_copied = true;
    return next;
  }
  if (!span_left().empty() || is_complete()) return std::nullopt;
  const auto forced = rules_->grammar->take_jump_forward(state_);
  if (!forced) return std::nullopt;
  next.id = *forced;
  advance(next.id, 0.0F, next.text);
  return next;
}

std::vector<token> constrained_output::usable(std::vector<token> draft) const {
  const auto& grammar = *rules_->grammar;
  auto s = state_;
  std::size_t kept = 0;
  const auto before = grammar::steps_taken;
  while (kept < draft.size() && grammar::steps_taken - before < usable_steps_max &&
         !grammar.automaton().awaits_span(s) && !grammar.automaton().is_terminated(s) &&
         grammar.accept_token(s, draft[kept]))
    ++kept;
  draft.resize(kept);
  return draft;
}

/// piece: of the token that led to the present state.
void constrained_output::follow_arguments(std::string_view piece) {
  using phase = grammar::tool_automaton::phase;
  const bool was_in = std::exchange(in_arguments_, grammar::tool_automaton::phase_of(state_) == phase::arguments);
  if (!was_in && in_arguments_) {
    arguments_->reset();
    piece = piece.substr(std::min(piece.rfind('{'), piece.size()));  // before it stands markup
  }
  if (was_in || in_arguments_) arguments_->feed(piece);
}

constrained_output::copied constrained_output::copied_ahead(std::uint32_t tokens_max) const {
  if (!in_arguments_ || !arguments_) return {};
  // A token has more than four bytes where text is repeated at length; what is cut costs the next round nothing.
  const std::size_t bytes_max = std::size_t{6} * tokens_max;
  const auto next = arguments_->ahead(bytes_max);
  if (!next) return {};
  copied out{rules_->grammar->trie().tokenizer().encode(next->bytes, {.continues = true}), next->matched / 4};
  // Where the text is cut, the last token is not that of the whole.
  if (next->bytes.size() >= bytes_max && !out.tokens.empty()) out.tokens.pop_back();
  if (out.tokens.size() > tokens_max) out.tokens.resize(tokens_max);
  return out;
}

std::vector<token> constrained_output::likely_rest() const {
  if (!copy_ || copy_->in_span() || is_complete()) return {};
  const auto& grammar = *rules_->grammar;
  std::vector<token> draft;
  auto s = state_;
  const std::string text = copy_->likely_rest();
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
