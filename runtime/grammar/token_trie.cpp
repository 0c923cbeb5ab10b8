#include "runtime/grammar/token_trie.hpp"

#include <algorithm>
#include <bit>

#include "runtime/base/pause_point.hpp"

namespace redline::grammar {
namespace {

// A walk recurses once for each byte of a token, so a grammar never allows tokens that are longer than this.
constexpr std::size_t token_bytes_max = 256;

}  // namespace

result<std::shared_ptr<const token_trie>> token_trie::make(std::shared_ptr<const text::tokenizer> tokenizer) {
  std::shared_ptr<token_trie> trie(new token_trie(std::move(tokenizer)));
  trie->build();
  const auto& nodes = trie->tree_.nodes;
  for (std::uint32_t n = 0; n < trie->tree_.end(); n = nodes[n].next) {
    const auto& node = nodes[n];
    const bool is_token = nodes[n + 1].tokens > node.tokens;
    if (is_token) trie->single_bytes_.set(node.byte);
  }
  // Some vocabularies lack tokens for bytes that UTF-8 never uses. The grammars' own characters are all ASCII.
  for (std::size_t byte = 0; byte < 0x80; ++byte) {
    if (!trie->single_bytes_[byte]) {
      return failure{
          errc::unsupported_format,
          "grammars need a token for every ASCII byte; the vocabulary has none for byte " + std::to_string(byte)};
    }
  }
  (void)trie->find_free_text(plain_text());  // now, because it takes some 20 ms
  return std::shared_ptr<const token_trie>(std::move(trie));
}

void token_trie::build() {
  std::vector<std::pair<std::string_view, token>> spelled;
  for (token t = 0; t < static_cast<token>(tokenizer_->size()); ++t) {
    const auto piece = tokenizer_->piece(t);
    if (tokenizer_->is_end_of_generation(t))
      ends_.push_back(t);
    else if (piece.empty())
      controls_.push_back(t);
    else if (piece.size() <= token_bytes_max)
      spelled.emplace_back(piece, t);
  }
  tree_ = byte_tree::of(std::move(spelled));
}

const free_text_tokens& token_trie::find_free_text(const free_text& table) const {
  const std::scoped_lock lock(mutex_);
  for (const auto& known : free_texts_) {
    if (known.table == &table) return known;
  }
  auto& found = free_texts_.emplace_back();
  found.table = &table;
  found.whole = tree_.find_whole(table);
  find_tokens(found);
  return found;
}

void token_trie::find_tokens(free_text_tokens& found) const {
  found.all.resize((tokenizer_->size() + 63) / 64);
  std::vector<std::vector<token>> by_count(token_bytes_max + 1);
  std::vector<std::pair<std::string_view, token>> leaving;
  for (std::uint32_t place = 0; place < tree_.tokens.size(); ++place) {
    const token t = tree_.tokens[place];
    const auto bytes = tokenizer_->piece(t);
    std::uint8_t at = 0;
    std::uint32_t characters = 0;
    std::size_t i = 0;
    for (; i < bytes.size(); ++i) {
      const auto then = found.table->next[at][static_cast<std::uint8_t>(bytes[i])];
      if (then == free_text::outside) break;
      if (at == 0) ++characters;
      at = then;
    }
    if (i == bytes.size()) {
      allow(found.all, t);
      by_count[characters].push_back(t);
    } else if (at == 0 && i > 0) {
      leaving.emplace_back(bytes.substr(i), t);
      found.leaving_places.push_back(place);
      found.leaving_bytes_max = std::max(found.leaving_bytes_max, static_cast<std::uint32_t>(bytes.size()));
    }
  }
  found.leaving = byte_tree::of(std::move(leaving));
  const auto& first = found.table->next[0];
  found.some_byte = static_cast<std::uint8_t>(std::ranges::find(first, 0) - first.begin());
  for (const auto& tokens : by_count) {
    found.by_characters.insert(found.by_characters.end(), tokens.begin(), tokens.end());
    found.up_to.push_back(static_cast<std::uint32_t>(found.by_characters.size()));
  }
}

token_mask free_text_tokens::up_to_characters(std::uint32_t characters) const {
  if (characters >= up_to.size() || up_to[characters] == by_characters.size()) return all;
  const auto count = up_to[characters];
  if (count > by_characters.size() / 2) {
    token_mask out = all;
    for (std::size_t i = count; i < by_characters.size(); ++i) forbid(out, by_characters[i]);
    return out;
  }
  token_mask out(all.size());
  for (std::size_t i = 0; i < count; ++i) allow(out, by_characters[i]);
  return out;
}

std::optional<token> token_trie::control_at(std::string_view run) const {
  std::optional<token> found;
  std::size_t longest = 0;
  for (const token t : controls_) {
    const auto text = tokenizer_->piece(t, true);
    if (text.size() <= longest || !run.starts_with(text)) continue;
    found = t;
    longest = text.size();
  }
  return found;
}

bool token_trie::is_full(const token_mask& mask) const {
  std::size_t count = 0;
  for (const auto word : mask) count += static_cast<std::size_t>(std::popcount(word));
  return count == tokenizer_->size();
}

std::optional<token> token_trie::longest_token(const byte_automaton& m, const automaton_state& s,
                                               std::string_view bytes) const {
  std::optional<token> found;
  automaton_state here = s;
  std::uint32_t begin = 0;
  const auto& nodes = tree_.nodes;
  auto end = tree_.end();
  for (const char c : bytes) {
    std::uint32_t n = begin;
    while (n < end && nodes[n].byte != static_cast<std::uint8_t>(c)) n = nodes[n].next;
    if (n >= end || !m.advance(here, static_cast<std::uint8_t>(c))) break;
    if (nodes[n + 1].tokens > nodes[n].tokens) found = tree_.tokens[nodes[n].tokens];
    begin = n + 1;
    end = nodes[n].next;
  }
  return found;
}

namespace {

/// Accepts any bytes.
class any_bytes final : public byte_automaton {
 public:
  [[nodiscard]] automaton_state begin() const override { return {}; }
  [[nodiscard]] bool advance(automaton_state&, std::uint8_t, step_count&) const override { return true; }
  [[nodiscard]] bool is_accepting(const automaton_state&) const override { return true; }
  [[nodiscard]] bool is_terminated(const automaton_state&) const override { return false; }
  [[nodiscard]] bool is_valid(const automaton_state& s) const override { return s.size() == 0; }
};

}  // namespace

bool token_trie::can_tokenize(std::string_view bytes) const {
  return std::all_of(bytes.begin(), bytes.end(), [&](char c) { return single_bytes_[static_cast<std::uint8_t>(c)]; });
}

std::vector<token> token_trie::spell(std::string_view bytes) const {
  auto tokens = tokenizer_->encode(bytes);
  std::string back;
  for (const token t : tokens) back += tokenizer_->piece(t);
  if (back == bytes) return tokens;
  tokens.clear();
  for (const any_bytes any; !bytes.empty();) {
    pause_point();
    const auto t = longest_token(any, {}, bytes);
    if (!t) break;  // the vocabulary lacks this byte
    tokens.push_back(*t);
    bytes.remove_prefix(tokenizer_->piece(*t).size());
  }
  return tokens;
}

bool token_trie::accept_token(const byte_automaton& m, automaton_state& s, token t, step_count& steps) const {
  if (tokenizer_->is_end_of_generation(t)) return false;
  const auto bytes = tokenizer_->piece(t);
  if (bytes.empty()) return m.advance_control(s, tokenizer_->piece(t, true));
  if (bytes.size() > token_bytes_max) return false;
  for (const char c : bytes) {
    if (!m.advance(s, static_cast<std::uint8_t>(c), steps)) return false;
  }
  return true;
}

}  // namespace redline::grammar
