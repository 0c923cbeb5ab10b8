#include "runtime/grammar/grammar_matcher.hpp"

#include <algorithm>
#include <utility>

#include "runtime/base/assert.hpp"
#include "runtime/grammar/syntax/steps.hpp"

namespace redline::grammar {
namespace {

constexpr std::size_t jump_bytes_max = 256;
constexpr std::uint32_t tries_max = 32;     // most bytes of a jump found by trying all 256; most tokens are shorter
constexpr std::size_t spelling_steps = 16;  // steps that the tokenizer takes per byte

/// The bytes that must come next, or only the first of them; empty where there is a choice. They are known to the
/// automaton, or are the only one of all 256 bytes that it accepts.
std::string_view find_only_bytes(const byte_automaton& m, const automaton_state& s, std::uint8_t& tried,
                                 step_count& steps) {
  if (m.free_text_at(s).table != nullptr || m.is_accepting(s) || m.awaits_span(s)) return {};
  if (const auto known = m.known_run(s, steps); !known.empty()) return known;
  bool is_found = false;
  const auto possible = m.possible_bytes(s);
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (!possible[byte]) continue;
    automaton_state after = s;
    if (!m.advance(after, static_cast<std::uint8_t>(byte), steps)) continue;
    if (is_found) return {};
    is_found = true;
    tried = static_cast<std::uint8_t>(byte);
  }
  return is_found ? std::string_view(reinterpret_cast<const char*>(&tried), 1) : std::string_view{};
}

}  // namespace

/// The control token that must come next in markup, if there is one.
std::optional<token> compiled_grammar::find_control(const automaton_state& s, step_count& steps) const {
  if (!automaton_->is_markup(s)) return std::nullopt;
  const auto run = automaton_->known_run(s, steps);
  return run.empty() ? std::nullopt : trie_->control_at(run);
}

std::optional<token> compiled_grammar::jump_forward(const automaton_state& s, step_count& steps) const {
  if (automaton_->unconstrained_tokens(s) > 0) return std::nullopt;
  if (const auto control = find_control(s, steps)) return control;
  std::string bytes;
  automaton_state here = s;
  bool is_cut = false;      // more bytes must follow
  bool is_control = false;  // a control token must follow, and no other token extends into it
  std::uint32_t tries = 0;
  for (bool goes_on = true; goes_on && bytes.size() < jump_bytes_max;) {
    std::uint8_t tried = 0;
    if (tries == tries_max) {
      is_cut = true;
      break;
    }
    auto run = find_only_bytes(*automaton_, here, tried, steps);
    if (run.data() == reinterpret_cast<const char*>(&tried)) ++tries;
    is_cut = run.size() > jump_bytes_max - bytes.size();
    run = run.substr(0, jump_bytes_max - bytes.size());
    goes_on = !run.empty();
    for (const char c : run) {
      // If the bytes are cut off, the state after them is not needed.
      goes_on = goes_on && (is_cut || automaton_->advance(here, static_cast<std::uint8_t>(c), steps));
      if (goes_on) bytes += c;
      is_control = goes_on && !is_cut && find_control(here, steps).has_value();
      goes_on = goes_on && !is_control;
      if (!goes_on) break;
    }
  }
  if (bytes.empty()) return std::nullopt;
  // If a choice comes after the bytes, the tokenizer's last token for them may extend into it.
  const bool before_choice =
      is_cut || (!is_control && !automaton_->awaits_span(here) && !automaton_->is_terminated(here));
  const std::scoped_lock lock(mutex_);
  const std::string key = (before_choice ? '+' : '.') + bytes;
  const auto known = first_tokens_.find(key);
  if (known != first_tokens_.end()) return known->second;
  steps.add(spelling_steps * bytes.size());
  const auto tokens = trie_->spell(bytes);
  const bool decides = tokens.size() > (before_choice ? 1U : 0U);
  if (first_tokens_.size() >= first_tokens_max) first_tokens_.clear();
  return first_tokens_[key] = decides ? std::optional(tokens.front()) : std::nullopt;
}

std::optional<token> compiled_grammar::take_jump_forward(automaton_state& s, step_count& steps) const {
  const auto only = jump_forward(s, steps);
  if (!only) return std::nullopt;
  const bool is_taken = trie_->accept_token(*automaton_, s, *only, steps);
  REDLINE_ASSERT(is_taken, "the grammar allows a token that must follow");
  return only;
}

compiled_grammar::place compiled_grammar::place_token(automaton_state& s, token t, step_count& steps) const {
  if (automaton_->unconstrained_tokens(s) > 0) {
    automaton_->skip_unconstrained_token(s);
    return place::chosen;
  }
  const auto only = jump_forward(s, steps);
  if ((only && *only != t) || !trie_->accept_token(*automaton_, s, t, steps)) return place::none;
  return only ? place::decided : place::chosen;
}

result<std::shared_ptr<grammar_cache::entry>> grammar_cache::find(const constraint& c, std::uint64_t name) {
  if (!trie_)
    return failure{errc::unsupported_format,
                   "the model's vocabulary has no token for some ASCII byte, which grammars need"};
  REDLINE_TRY_ASSIGN(auto automaton, automata_->get(c));
  const auto at = std::ranges::find_if(entries_, [&](const auto& e) {
    return &e->grammar->automaton() == automaton.get() && e->copied_min == c.copied_min;
  });
  std::shared_ptr<entry> found = at == entries_.end() ? nullptr : *at;
  if (!found) {
    make_room(automaton->size_bytes());
    found = entries_.emplace_back(std::make_shared<entry>());
    found->copied_min = c.copied_min;
    found->grammar = std::make_shared<compiled_grammar>(std::move(automaton), trie_);
    found->make_masks = std::make_unique<token_masks>(*trie_, found->grammar->automaton());
  }
  found->used = ++clock_;
  if (name != 0) found->name = name;
  REDLINE_TRY(check_state(*found, c.state));
  return found;
}

/// Removes the grammars whose last use is longest ago, until one more of this size fits, or none is left.
void grammar_cache::make_room(std::size_t bytes) {
  for (const auto& e : entries_) bytes += e->grammar->automaton().size_bytes();
  while (!entries_.empty() && (entries_.size() >= grammars_max || bytes > grammar_bytes_max)) {
    const auto oldest = std::ranges::min_element(entries_, {}, [](const auto& e) { return e->used; });
    bytes -= (*oldest)->grammar->automaton().size_bytes();
    entries_.erase(oldest);
  }
}

std::shared_ptr<grammar_cache::entry> grammar_cache::find_named(std::uint64_t name) {
  const auto at = std::ranges::find_if(entries_, [&](const auto& e) { return name != 0 && e->name == name; });
  if (at == entries_.end()) return nullptr;
  (*at)->used = ++clock_;
  return *at;
}

result<void> grammar_cache::check_state(const entry& e, std::span<const std::uint32_t> state) {
  if (state.size() > automaton_state::cells_max ||
      (!state.empty() && !e.grammar->automaton().is_valid(automaton_state(state)))) {
    return failure{errc::malformed_message,
                   "the state is not one of the grammar's; the peers may run different versions"};
  }
  return {};
}

namespace {

/// The tokens that may stand in a copied span: those of text, except where they would begin what the grammar begins
/// with. There the model would leave the span, whose end only the program decides.
token_mask make_span_mask(grammar_cache::entry& e) {
  const auto& tokenizer = e.grammar->trie().tokenizer();
  token_mask mask = e.make_masks->find(e.grammar->automaton().begin());
  for (token_mask::value_type& word : mask) word = ~word;
  for (token t = 0; t < static_cast<token>(tokenizer.size()); ++t) {
    if (tokenizer.piece(t).empty()) forbid(mask, t);
  }
  return mask;
}

}  // namespace

std::optional<float> grammar_matcher::copied_min() const {
  return is_in_span() ? std::optional(entry_.copied_min) : std::nullopt;
}

std::span<const std::uint64_t> grammar_matcher::next_token_mask() {
  const compiled_grammar& grammar = *entry_.grammar;
  if (is_in_span()) {
    if (entry_.span_mask.empty()) entry_.span_mask = make_span_mask(entry_);
    return entry_.span_mask;
  }
  if (const auto only = grammar.jump_forward(state_)) {
    single_.assign((grammar.trie().tokenizer().size() + 63) / 64, 0);
    single_[static_cast<std::size_t>(*only) / 64] |= std::uint64_t{1} << (*only % 64);
    return single_;
  }
  const auto cells = state_.cells();
  const std::string key(reinterpret_cast<const char*>(cells.data()), cells.size_bytes());
  const auto known = entry_.masks.find(key);
  if (known != entry_.masks.end()) return known->second;
  if (entry_.masks.size() >= grammar_cache::masks_max) entry_.masks.clear();
  token_mask mask = entry_.make_masks->find(state_);
  // Having no mask costs less than having one that allows everything.
  if (grammar.automaton().is_free(state_) && grammar.trie().is_full(mask)) mask.clear();
  return entry_.masks[key] = std::move(mask);
}

bool grammar_matcher::accept_token(token chosen) {
  const auto& automaton = entry_.grammar->automaton();
  return entry_.grammar->accept_token(state_, chosen) && !automaton.awaits_span(state_) &&
         !automaton.is_terminated(state_) && !automaton.is_lost(state_);
}

}  // namespace redline::grammar
