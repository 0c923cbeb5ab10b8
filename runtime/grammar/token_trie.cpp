#include "runtime/grammar/token_trie.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <unordered_map>

#include "runtime/base/pause_point.hpp"

namespace redline::grammar {
namespace {

// A walk recurses once for each byte of a token, so a grammar never allows tokens that are longer than this.
constexpr std::size_t token_bytes_max = 256;

void set(token_mask& mask, token t) { mask[static_cast<std::size_t>(t) / 64] |= std::uint64_t{1} << (t % 64); }
void clear(token_mask& mask, token t) { mask[static_cast<std::size_t>(t) / 64] &= ~(std::uint64_t{1} << (t % 64)); }

/// The kinds of characters by first byte, a bit for each kind: control characters, digits, lowercase and uppercase
/// letters, each other ASCII character, and a few ranges beyond ASCII. Bytes that begin no character are 0.
constexpr std::array<std::uint64_t, 256> kinds_of_bytes = [] {
  std::array<std::uint64_t, 256> kinds{};
  std::size_t count = 0;
  const auto add = [&](std::size_t first, std::size_t last) {
    for (std::size_t b = first; b <= last; ++b) kinds[b] = std::uint64_t{1} << count;
    ++count;
  };
  add(0, 0x1f);
  kinds[0x7f] = kinds[0];
  add('0', '9');
  add('a', 'z');
  add('A', 'Z');
  for (const char c : {'\t', '\n', '\r'}) add(static_cast<std::size_t>(c), static_cast<std::size_t>(c));
  for (std::size_t b = ' '; b < 0x7f; ++b) {
    if (kinds[b] == 0) add(b, b);
  }
  // 0xc2, 0xe2 and 0xef begin the characters that classes tend to leave out, such as line ends and no-break spaces.
  add(0xc2, 0xc2);
  add(0xc3, 0xdf);
  add(0xe0, 0xe1);
  add(0xe2, 0xe2);
  add(0xe3, 0xee);
  add(0xef, 0xef);
  add(0xf0, 0xf4);
  return kinds;
}();
constexpr std::uint64_t malformed = std::uint64_t{1} << 63;  // the bytes are not valid UTF-8

/// Any characters.
const free_text& utf8_text() {
  static const free_text table = free_text::characters(bytes_between(0, 0x7f));
  return table;
}

}  // namespace

result<std::shared_ptr<const token_trie>> token_trie::make(std::shared_ptr<const text::tokenizer> tokenizer) {
  std::shared_ptr<token_trie> trie(new token_trie(std::move(tokenizer)));
  trie->build();
  for (std::uint32_t n = 0; n + 1 < trie->nodes_.size(); n = trie->nodes_[n].next) {
    const auto& node = trie->nodes_[n];
    const bool is_token = trie->nodes_[n + 1].tokens > node.tokens;
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
  return std::shared_ptr<const token_trie>(std::move(trie));
}

void token_trie::build() {
  const auto piece = [this](token t) { return tokenizer_->piece(t); };
  for (token t = 0; t < static_cast<token>(tokenizer_->size()); ++t) {
    if (tokenizer_->is_end_of_generation(t))
      ends_.push_back(t);
    else if (piece(t).empty())
      controls_.push_back(t);
    else if (piece(t).size() <= token_bytes_max)
      tokens_.push_back(t);
  }
  std::sort(tokens_.begin(), tokens_.end(), [&](token a, token b) {
    const auto x = piece(a), y = piece(b);
    return x != y ? x < y : a < b;
  });
  std::vector<std::uint32_t> open;  // the nodes of the last token's bytes
  std::string_view before;
  for (std::uint32_t i = 0; i < tokens_.size(); ++i) {
    const auto bytes = piece(tokens_[i]);
    const auto same = static_cast<std::size_t>(
        std::mismatch(bytes.begin(), bytes.end(), before.begin(), before.end()).first - bytes.begin());
    for (; open.size() > same; open.pop_back()) nodes_[open.back()].next = static_cast<std::uint32_t>(nodes_.size());
    for (std::size_t k = 0; k < same; ++k) {
      auto& depth = nodes_[open[k]].depth;
      depth = std::max(depth, static_cast<std::uint16_t>(bytes.size() - k));
    }
    for (std::size_t k = same; k < bytes.size(); ++k) {
      open.push_back(static_cast<std::uint32_t>(nodes_.size()));
      nodes_.push_back({.tokens = i,
                        .depth = static_cast<std::uint16_t>(bytes.size() - k),
                        .byte = static_cast<std::uint8_t>(bytes[k])});
    }
    before = bytes;
  }
  const auto count = static_cast<std::uint32_t>(nodes_.size());
  for (const auto n : open) nodes_[n].next = count;
  nodes_.push_back({.next = count, .tokens = static_cast<std::uint32_t>(tokens_.size())});
  kinds_.resize(nodes_.size());
  for (std::uint32_t n = count; n-- > 0;) {
    kinds_[n] = kinds_of_bytes[nodes_[n].byte];
    for (std::uint32_t child = n + 1; child < nodes_[n].next; child = nodes_[child].next) kinds_[n] |= kinds_[child];
  }
  free_text_tokens characters{.table = &utf8_text()};
  find_whole(characters);
  for (std::uint32_t n = 0; n < count; ++n) {
    if ((characters.whole[n] & 1) == 0) kinds_[n] |= malformed;
  }
}

const token_trie::free_text_tokens& token_trie::find_free_text(const free_text& table) const {
  const std::scoped_lock lock(mutex_);
  for (const auto& known : free_texts_) {
    if (known.table == &table) return known;
  }
  auto& found = free_texts_.emplace_back();
  found.table = &table;
  find_whole(found);
  find_tokens(found);
  return found;
}

void token_trie::find_whole(free_text_tokens& found) const {
  found.whole.resize(nodes_.size());
  for (auto n = static_cast<std::uint32_t>(nodes_.size() - 1); n-- > 0;) {
    std::uint8_t children_fit = 0xff;
    for (std::uint32_t child = n + 1; child < nodes_[n].next; child = nodes_[child].next)
      children_fit &= found.whole[child];
    for (std::size_t at = 0; at < free_text::states_max; ++at) {
      const auto then = found.table->next[at][nodes_[n].byte];
      if (then != free_text::outside && (children_fit >> then & 1) != 0)
        found.whole[n] |= static_cast<std::uint8_t>(1U << at);
    }
  }
}

void token_trie::find_tokens(free_text_tokens& found) const {
  found.all.resize((tokenizer_->size() + 63) / 64);
  std::vector<std::vector<token>> by_count(token_bytes_max + 1);
  for (const token t : tokens_) {
    std::uint8_t at = 0;
    std::size_t characters = 0;
    for (const char c : tokenizer_->piece(t)) {
      if (at == 0) ++characters;
      at = found.table->next[at][static_cast<std::uint8_t>(c)];
      if (at == free_text::outside) break;
    }
    if (at == free_text::outside) continue;
    set(found.all, t);
    by_count[characters].push_back(t);
  }
  for (const auto& tokens : by_count) {
    found.by_characters.insert(found.by_characters.end(), tokens.begin(), tokens.end());
    found.up_to.push_back(static_cast<std::uint32_t>(found.by_characters.size()));
  }
}

token_mask token_trie::free_text_tokens::up_to_characters(std::uint32_t characters) const {
  if (characters >= up_to.size() || up_to[characters] == by_characters.size()) return all;
  const auto count = up_to[characters];
  if (count > by_characters.size() / 2) {
    token_mask out = all;
    for (std::size_t i = count; i < by_characters.size(); ++i) clear(out, by_characters[i]);
    return out;
  }
  token_mask out(all.size());
  for (std::size_t i = 0; i < count; ++i) set(out, by_characters[i]);
  return out;
}

/// Finds the tokens that an automaton accepts. It remembers states, so the automaton is asked once for each state and
/// byte. Where all kinds of characters in a subtree lead back to a state, its tokens are taken without visiting them.
class token_trie::walk {
 public:
  walk(const token_trie& trie, const byte_automaton& m) : trie_(trie), nodes_(trie.nodes_), automaton_(m) {}

  token_mask run(const automaton_state& s) {
    const auto end = static_cast<std::uint32_t>(nodes_.size() - 1);
    place& at = *find_place(s, 0);
    const auto rule = at.rule;
    if (rule.table == nullptr) {
      out_.resize((trie_.tokenizer_->size() + 63) / 64);
      tree(at, 0, 0, end);
    } else {
      const auto& plain = *at.plain;
      out_ = plain.up_to_characters(rule.characters_max);
      for (std::uint32_t n = 0; n < end; n = nodes_[n].next) {
        if (nodes_[n].byte != rule.exit_byte) {
          leaving_free_text(at, 0, plain, 0, n, nodes_[n].next);
          continue;
        }
        for (std::uint32_t i = nodes_[n].tokens; i < nodes_[nodes_[n].next].tokens; ++i) clear(out_, trie_.tokens_[i]);
        tree(at, 0, n, nodes_[n].next);
      }
    }
    return std::move(out_);
  }

 private:
  /// A state and what the walk knows of it.
  struct place {
    static constexpr std::uint16_t untried = 0, forbidden = 1, first = 2;
    automaton_state state;
    byte_automaton::free_text_rule rule{};
    const free_text_tokens* plain = nullptr;  // the tokens that fit rule.table
    bool comes_back = false;                  // some byte leads back here
    bool has_loops = false;                   // `loops` is set
    std::uint64_t loops = 0;                  // kinds of which every character leads back here
    std::array<std::uint16_t, 256> next{};    // by byte: untried, forbidden, or `first` plus an index in places_
  };
  /// The most states and cells that are remembered, about 7 MiB. An automaton with more in one mask hardly comes back
  /// to any.
  static constexpr std::size_t states_max = 4096;
  static constexpr std::size_t cells_max = 1 << 20;

  void begin(place& p, const automaton_state& s) {
    p.state = s;
    p.rule = automaton_.free_text_at(s);
    p.plain = p.rule.table != nullptr ? &free_text_of(*p.rule.table) : nullptr;
    p.comes_back = p.has_loops = false;
    const auto possible = automaton_.possible_bytes(s);
    for (std::size_t b = 0; b < 256; ++b) p.next[b] = possible[b] ? place::untried : place::forbidden;
  }
  static std::string_view key_of(const automaton_state& s) {
    return {reinterpret_cast<const char*>(s.cells().data()), s.cells().size_bytes()};
  }
  /// `depth` counts the token bytes so far. States that are not remembered are overwritten by the next of the same
  /// depth.
  place* find_place(const automaton_state& s, std::size_t depth, std::uint16_t* number = nullptr) {
    if (const auto known = numbers_.find(key_of(s)); known != numbers_.end()) {
      if (number != nullptr) *number = static_cast<std::uint16_t>(place::first + known->second);
      return &places_[known->second];
    }
    if (places_.size() < states_max && cells_ + s.size() <= cells_max) {
      cells_ += s.size();
      place& made = places_.emplace_back();
      begin(made, s);
      const auto at = static_cast<std::uint16_t>(places_.size() - 1);
      numbers_.emplace(key_of(made.state), at);
      if (number != nullptr) *number = static_cast<std::uint16_t>(place::first + at);
      return &made;
    }
    while (passing_.size() <= depth) passing_.emplace_back();
    begin(passing_[depth], s);
    return &passing_[depth];
  }
  /// Null if the byte is forbidden.
  place* find_next(place& at, std::uint8_t byte, std::size_t depth) {
    std::uint16_t& known = at.next[byte];
    if (known >= place::first) return &places_[known - place::first];
    if (known == place::forbidden) return nullptr;
    automaton_state after = at.state;
    if (!automaton_.advance(after, byte)) {
      known = place::forbidden;
      return nullptr;
    }
    place* const found = find_place(after, depth + 1, &known);
    at.comes_back = at.comes_back || found == &at;
    return found;
  }
  void find_loops(place& at, std::size_t depth) {
    at.has_loops = true;
    std::uint64_t leaving = malformed;
    std::vector<ways> known;
    for (std::size_t b = 0; b < 0x100; ++b) {
      const auto kind = kinds_of_bytes[b];
      if (kind != 0 && (leaving & kind) == 0 && !leads_back(at, static_cast<std::uint8_t>(b), at, 0, depth, known))
        leaving |= kind;
    }
    at.loops = ~leaving;
  }
  /// Whether every completion of a character leads back, given the state within it and that of utf8_text.
  struct ways {
    const place* from = nullptr;
    std::uint8_t state = 0;
    bool lead_back = false;
  };
  /// Whether the byte leads from `from` to `to`, with every possible completion of the character that it belongs to.
  bool leads_back(place& from, std::uint8_t byte, const place& to, std::uint8_t state, std::size_t depth,
                  std::vector<ways>& known) {
    const auto then = utf8_text().next[state][byte];
    place* const after = find_next(from, byte, depth);
    if (after == nullptr || then == 0) return after == &to;
    for (const auto& one : known) {
      if (one.from == after && one.state == then) return one.lead_back;
    }
    // With more different ways than this, the characters count as not leading back.
    bool all = known.size() < std::size_t{4} * free_text::states_max;
    for (std::size_t b = 0x80; all && b < 0xc0; ++b) {
      const auto next = static_cast<std::uint8_t>(b);
      all = utf8_text().next[then][b] == free_text::outside || leads_back(*after, next, to, then, depth + 1, known);
    }
    known.push_back({after, then, all});
    return all;
  }

  /// Whether all tokens of the node's subtree fit.
  bool is_whole(place& at, std::size_t depth, std::uint32_t n) {
    if (at.plain != nullptr && nodes_[n].byte != at.rule.exit_byte && (at.plain->whole[n] & 1) != 0 &&
        nodes_[n].depth <= at.rule.characters_max)
      return true;
    // Asking for 256 bytes pays off for a subtree of more nodes than that.
    if (at.comes_back && !at.has_loops && nodes_[n].next - n > 256) find_loops(at, depth);
    return at.has_loops && (trie_.kinds_[n] & ~at.loops) == 0;
  }

  void tree(place& at, std::size_t depth, std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t n = begin; n < end; n = nodes_[n].next) {
      if (is_whole(at, depth, n)) {
        take(n, nodes_[n].next);
        continue;
      }
      place* const after = find_next(at, nodes_[n].byte, depth);
      if (after == nullptr) continue;
      take(n, n + 1);
      tree(*after, depth + 1, n + 1, nodes_[n].next);
    }
  }

  /// Adds the tokens that leave the free text somewhere; the others are in the mask already.
  void leaving_free_text(place& here, std::size_t depth, const free_text_tokens& plain, std::uint8_t at,
                         std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t n = begin; n < end; n = nodes_[n].next) {
      if ((plain.whole[n] >> at & 1) != 0) continue;
      place* const after = find_next(here, nodes_[n].byte, depth);
      if (after == nullptr) continue;
      const auto then = plain.table->next[at][nodes_[n].byte];
      if (then != free_text::outside) {
        leaving_free_text(*after, depth + 1, plain, then, n + 1, nodes_[n].next);
      } else {
        take(n, n + 1);
        tree(*after, depth + 1, n + 1, nodes_[n].next);
      }
    }
  }

  /// Adds the tokens of the nodes [begin, end).
  void take(std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t i = nodes_[begin].tokens; i < nodes_[end].tokens; ++i) set(out_, trie_.tokens_[i]);
  }

  /// Remembers the last table, because automata ask for the same one repeatedly.
  const free_text_tokens& free_text_of(const free_text& table) {
    if (last_ == nullptr || last_->table != &table) last_ = &trie_.find_free_text(table);
    return *last_;
  }

  const token_trie& trie_;
  const std::vector<node>& nodes_;
  const byte_automaton& automaton_;
  const free_text_tokens* last_ = nullptr;
  token_mask out_;
  std::deque<place> places_;
  std::size_t cells_ = 0;                                        // of their states
  std::unordered_map<std::string_view, std::uint16_t> numbers_;  // indices in places_ by the state's cells
  std::deque<place> passing_;                                    // states that are not remembered, by depth
};

token_mask token_trie::next_token_mask(const byte_automaton& m, const automaton_state& s) const {
  token_mask out = walk(*this, m).run(s);
  if (m.is_accepting(s)) {
    for (const token t : ends_) set(out, t);
  }
  for (const token t : controls_) {
    automaton_state after = s;
    if (m.advance_control(after, tokenizer_->piece(t, true))) set(out, t);
  }
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
  auto end = static_cast<std::uint32_t>(nodes_.size() - 1);
  for (const char c : bytes) {
    std::uint32_t n = begin;
    while (n < end && nodes_[n].byte != static_cast<std::uint8_t>(c)) n = nodes_[n].next;
    if (n >= end || !m.advance(here, static_cast<std::uint8_t>(c))) break;
    if (nodes_[n + 1].tokens > nodes_[n].tokens) found = tokens_[nodes_[n].tokens];
    begin = n + 1;
    end = nodes_[n].next;
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
