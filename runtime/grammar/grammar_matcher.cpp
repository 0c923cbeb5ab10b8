#include "runtime/grammar/grammar_matcher.hpp"

#include <algorithm>

namespace redline::grammar {
namespace {

constexpr std::size_t forced_bytes_max = 256;

/// The only byte that can come, when there is one.
std::optional<std::uint8_t> only_byte(const machine& m, const state& s) {
  if (m.plain(s).text != nullptr || m.may_end(s) || m.stands(s)) return std::nullopt;
  if (const auto known = m.known_byte(s)) return known;
  std::optional<std::uint8_t> found;
  for (unsigned byte = 0; byte < 256; ++byte) {
    state after = s;
    if (!m.advance(after, static_cast<std::uint8_t>(byte))) continue;
    if (found) return std::nullopt;
    found = static_cast<std::uint8_t>(byte);
  }
  return found;
}

}  // namespace

std::optional<token> compiled_grammar::forced(const state& s) const {
  if (rules_->free_tokens(s) > 0) return std::nullopt;
  std::string bytes;
  state here = s;
  while (bytes.size() < forced_bytes_max) {
    const auto byte = only_byte(*rules_, here);
    if (!byte || !rules_->advance(here, *byte)) break;
    bytes += static_cast<char>(*byte);
  }
  if (bytes.empty()) return std::nullopt;
  // Behind them stands a choice, into which the token that ends them in a tokenizer's text may reach.
  const bool goes_on = !rules_->stands(here) && !rules_->is_over(here);
  const std::scoped_lock lock(mutex_);
  const std::string key = (goes_on ? '+' : '.') + bytes;
  const auto known = first_tokens_.find(key);
  if (known != first_tokens_.end()) return known->second;
  const auto tokens = trie_->spell(bytes);
  const bool decides = tokens.size() > (goes_on ? 1U : 0U);
  if (first_tokens_.size() >= first_tokens_max) first_tokens_.clear();
  return first_tokens_[key] = decides ? std::optional(tokens.front()) : std::nullopt;
}

bool compiled_grammar::advance(state& s, token t) const {
  if (rules_->free_tokens(s) > 0) {
    rules_->pass_free_token(s);
    return true;
  }
  if (const auto only = forced(s); only && *only != t) return false;
  return trie_->advance(*rules_, s, t);
}

result<grammar_cache::entry*> grammar_cache::find(const constraint& c) {
  ++clock_;
  entry* found = nullptr;
  for (const auto& e : entries_) {
    if (e->grammar.same_grammar(c)) found = e.get();
  }
  if (found == nullptr) {
    if (!trie_) return failure{errc::unsupported_format, "the model's vocabulary cannot spell what a grammar needs"};
    REDLINE_TRY_ASSIGN(auto rules, compile(c));
    if (entries_.size() >= languages_max) {
      entries_.erase(std::min_element(entries_.begin(), entries_.end(),
                                      [](const auto& a, const auto& b) { return a->used < b->used; }));
    }
    auto fresh = std::make_unique<entry>();
    fresh->grammar = c;
    fresh->grammar.where.clear();
    fresh->language = std::make_shared<compiled_grammar>(std::move(rules), trie_);
    found = entries_.emplace_back(std::move(fresh)).get();
  }
  found->used = clock_;
  if (c.where.size() > state::cells_max ||
      (!c.where.empty() && !found->language->rules().is_possible(state(c.where)))) {
    return failure{errc::malformed_message, "a place that the grammar does not have"};
  }
  return found;
}

std::span<const std::uint64_t> grammar_matcher::allowed() {
  const compiled_grammar& language = *language_.language;
  if (language.rules().free_tokens(state_) > 0) return {};
  if (const auto only = language.forced(state_)) {
    single_.assign((language.trie().tokenizer().size() + 63) / 64, 0);
    single_[static_cast<std::size_t>(*only) / 64] |= std::uint64_t{1} << (*only % 64);
    return single_;
  }
  const auto cells = state_.cells();
  const std::string key(reinterpret_cast<const char*>(cells.data()), cells.size_bytes());
  const auto known = language_.masks.find(key);
  if (known != language_.masks.end()) return known->second;
  if (language_.masks.size() >= grammar_cache::masks_max) language_.masks.clear();
  return language_.masks[key] = language.trie().allowed(language.rules(), state_);
}

bool grammar_matcher::take(token chosen) {
  const auto& rules = language_.language->rules();
  return language_.language->advance(state_, chosen) && !rules.stands(state_) && !rules.is_over(state_);
}

}  // namespace redline::grammar
