#include "runtime/grammar/token_masks.hpp"

#include <algorithm>
#include <array>
#include <boost/container/small_vector.hpp>
#include <deque>
#include <string_view>
#include <unordered_map>

namespace redline::grammar {

/// Asks the automaton once for each state that it meets and each kind of bytes there.
class token_masks::walk {
 public:
  walk(const token_trie& trie, const byte_automaton& m) : trie_(trie), tree_(trie.tree()), automaton_(m) {}

  token_mask find(const automaton_state& s) {
    find_texts(s);
    if (places_.size() > kept_max || cells_ > cells_kept_max) {
      numbers_.clear();
      places_.clear();
      passing_.clear();
      cells_ = 0;
    }
    if (automaton_.is_accepting(s)) {
      for (const token t : trie_.ends()) allow(out_, t);
    }
    for (const token t : trie_.controls()) {
      automaton_state after = s;
      if (automaton_.advance_control(after, trie_.tokenizer().piece(t, true))) allow(out_, t);
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
    bool is_kept = false;                     // it is in places_
    bool has_alike = false;                   // see find_alike
    place* alike_next = nullptr;              // the place that most characters lead to
    std::uint64_t alike = 0;                  // kinds of which every character leads there
    std::uint8_t keeps = 0, keeps_known = 0;  // by state of plain_text(): see keeps_text
    byte_automaton::byte_kinds kinds{};
    // By kind of byte: untried, forbidden, or `first` plus an index in places_.
    boost::container::small_vector<std::uint16_t, 32> next;
    [[nodiscard]] bool is_text(const free_text& table) const {
      return rule.table == &table && rule.characters_max == UINT32_MAX && !rule.exit_byte;
    }
  };
  /// The most states and cells that are remembered in a mask, about 7 MiB. An automaton with more in one mask hardly
  /// comes back to any.
  static constexpr std::size_t states_max = 4096;
  static constexpr std::size_t kept_max = 1024;  // from one mask to the next
  static constexpr std::size_t cells_max = 1 << 20, cells_kept_max = 1 << 17;

  void begin(place& p, const automaton_state& s) {
    p.state = s;
    p.rule = automaton_.free_text_at(s);
    p.plain = p.rule.table != nullptr ? &free_text_of(*p.rule.table) : nullptr;
    p.has_alike = false;
    p.alike_next = nullptr;
    p.alike = 0;
    p.keeps = p.keeps_known = 0;
    p.kinds = automaton_.kinds_of_bytes(s);
    p.next.assign(p.kinds.count, place::forbidden);
    each_byte(automaton_.possible_bytes(s), [&](std::size_t b) { p.next[p.kinds.of[b]] = place::untried; });
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
      made.is_kept = true;
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
    std::uint16_t& known = at.next[at.kinds.of[byte]];
    if (known >= place::first) return &places_[known - place::first];
    if (known == place::forbidden) return nullptr;
    automaton_state after = at.state;
    if (!automaton_.advance(after, byte)) {
      known = place::forbidden;
      return nullptr;
    }
    return find_place(after, depth + 1, &known);
  }
  /// Finds the place that most ASCII characters lead to, and the kinds of characters that all lead there.
  void find_alike(place& at, std::size_t depth) {
    at.has_alike = true;
    std::size_t count = 0;
    for (std::size_t b = 0; b < 0x80; ++b) {
      place* const after = find_next(at, static_cast<std::uint8_t>(b), depth);
      if (after == nullptr || !after->is_kept) continue;
      if (count == 0) at.alike_next = after;
      count = after == at.alike_next ? count + 1 : count - 1;  // the vote of Boyer and Moore (1981)
    }
    if (at.alike_next == nullptr) return;
    std::uint64_t others = malformed_text;
    std::vector<ways> known;
    for (std::size_t b = 0; b < 0x100; ++b) {
      const auto kind = kinds_of_characters[b];
      if (kind != 0 && (others & kind) == 0 &&
          !leads_to(at, static_cast<std::uint8_t>(b), *at.alike_next, 0, depth, known))
        others |= kind;
    }
    at.alike = ~others;
  }
  /// Whether all texts of up to `bytes_max` bytes fit if their characters are of these kinds, as far as that is seen
  /// from characters that lead to the same places.
  bool takes_all(place& begin, std::size_t depth, std::uint64_t kinds, std::size_t bytes_max) {
    place* at = &begin;
    for (; bytes_max > 0; --bytes_max) {
      if (!at->has_alike) find_alike(*at, depth);
      if ((kinds & ~at->alike) != 0) return false;
      if (at->alike_next == at) return true;
      at = at->alike_next;
    }
    return true;
  }
  /// Whether every completion of a character leads there, given the state within it and that of utf8_text.
  struct ways {
    const place* from = nullptr;
    std::uint8_t state = 0;
    bool lead_there = false;
  };
  /// Whether the byte leads from `from` to `to`, with every possible completion of the character that it belongs to.
  bool leads_to(place& from, std::uint8_t byte, const place& to, std::uint8_t state, std::size_t depth,
                std::vector<ways>& known) {
    const auto then = utf8_text().next[state][byte];
    place* const after = find_next(from, byte, depth);
    if (after == nullptr || then == 0) return after == &to;
    for (const auto& one : known) {
      if (one.from == after && one.state == then) return one.lead_there;
    }
    // With more different ways than this, the characters count as not leading there.
    bool all = known.size() < std::size_t{4} * free_text::states_max;
    for (std::size_t b = 0x80; all && b < 0xc0; ++b) {
      const auto next = static_cast<std::uint8_t>(b);
      all = utf8_text().next[then][b] == free_text::outside || leads_to(*after, next, to, then, depth + 1, known);
    }
    known.push_back({after, then, all});
    return all;
  }

  /// Finds the tokens that have bytes.
  void find_texts(const automaton_state& s) {
    place& at = *find_place(s, 0);
    const auto rule = at.rule;
    if (rule.table == nullptr) {
      if (!at.has_alike) find_alike(at, 0);
      if (at.alike_next != nullptr && at.alike_next->is_text(plain_text())) {
        find_beside_text(at, *at.alike_next, free_text_of(plain_text()));
      } else {
        out_.resize((trie_.tokenizer().size() + 63) / 64);
        accept(tree_, at, 0, 0, tree_.end());
      }
      return;
    }
    const auto& plain = *at.plain;
    out_ = plain.up_to_characters(rule.characters_max);
    // Where the length of the text does not matter, the tokens that leave it are looked up by what they leave it with.
    const bool is_long = rule.characters_min <= 1 && rule.characters_max >= plain.leaving_bytes_max;
    place* const inside = is_long && !rule.exit_byte ? find_next(at, plain.some_byte, 0) : nullptr;
    if (inside != nullptr) accept(plain.leaving, *inside, 1, 0, plain.leaving.end());
    for (std::uint32_t n = 0; n < tree_.end(); n = tree_.nodes[n].next) {
      if (inside != nullptr) {
        if (rule.table->next[0][tree_.nodes[n].byte] == free_text::outside)
          accept(tree_, at, 0, n, tree_.nodes[n].next);
      } else if (tree_.nodes[n].byte != rule.exit_byte) {
        leaving_free_text(at, 0, plain, 0, n, tree_.nodes[n].next);
      } else {
        leave_out(n);
        accept(tree_, at, 0, n, tree_.nodes[n].next);
      }
    }
  }

  /// Whether all tokens of the node's subtree fit.
  bool is_whole(const byte_tree& of, place& at, std::size_t depth, std::uint32_t n) {
    const auto& here = of.nodes[n];
    if (at.plain != nullptr && &of == &tree_ && here.byte != at.rule.exit_byte && (at.plain->whole[n] & 1) != 0 &&
        here.depth <= at.rule.characters_max)
      return true;
    // Asking for 256 bytes pays off for a subtree of more nodes than that.
    return (at.has_alike || here.next - n > 256) && takes_all(at, depth, of.kinds[n], here.depth);
  }

  /// Adds the tokens of the nodes [begin, end) that fit.
  void accept(const byte_tree& of, place& at, std::size_t depth, std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t n = begin; n < end; n = of.nodes[n].next) {
      if (is_whole(of, at, depth, n)) {
        take(of, n, of.nodes[n].next);
        continue;
      }
      place* const after = find_next(at, of.nodes[n].byte, depth);
      if (after == nullptr) continue;
      take(of, n, n + 1);
      accept(of, *after, depth + 1, n + 1, of.nodes[n].next);
    }
  }

  /// Adds the tokens that leave the free text somewhere; the others are in the mask already.
  void leaving_free_text(place& here, std::size_t depth, const free_text_tokens& plain, std::uint8_t at,
                         std::uint32_t begin, std::uint32_t end) {
    const auto& nodes = tree_.nodes;
    for (std::uint32_t n = begin; n < end; n = nodes[n].next) {
      if ((plain.whole[n] >> at & 1) != 0) continue;
      place* const after = find_next(here, nodes[n].byte, depth);
      if (after == nullptr) continue;
      const auto then = plain.table->next[at][nodes[n].byte];
      if (then != free_text::outside) {
        leaving_free_text(*after, depth + 1, plain, then, n + 1, nodes[n].next);
      } else {
        take(tree_, n, n + 1);
        accept(tree_, *after, depth + 1, n + 1, nodes[n].next);
      }
    }
  }

  // Some states allow nearly any text, but are not a free text, since a few texts mean something else: where a member's
  // name begins, the names that the schema declares. Most of their bytes lead to a free text.

  void find_beside_text(place& at, place& inside, const free_text_tokens& plain) {
    out_ = plain.all;
    accept(plain.leaving, inside, 1, 0, plain.leaving.end());
    std::vector<ways> known;
    for (std::uint32_t n = 0; n < tree_.end(); n = tree_.nodes[n].next) {
      const bool is_text = plain.table->next[0][tree_.nodes[n].byte] != free_text::outside;
      if (is_text && leads_to(at, tree_.nodes[n].byte, inside, 0, 0, known)) continue;
      const auto odd = std::ranges::lower_bound(plain.leaving_places, tree_.nodes[n].tokens);
      for (auto i = odd; i != plain.leaving_places.end() && *i < tree_.nodes[tree_.nodes[n].next].tokens; ++i)
        forbid(out_, tree_.tokens[*i]);
      beside_free_text(at, 0, plain, 0, n, tree_.nodes[n].next);
    }
  }
  /// Whether every completion of the character leads to a free text without a limit; `state` is that of the table.
  bool keeps_text(place& at, std::size_t depth, const free_text& table, std::uint8_t state) {
    if (state == 0) return at.is_text(table);
    const auto bit = static_cast<std::uint8_t>(1U << state);
    if ((at.keeps_known & bit) != 0) return (at.keeps & bit) != 0;
    bool all = true;
    for (std::size_t b = 0x80; all && b < 0xc0; ++b) {
      const auto then = table.next[state][b];
      if (then == free_text::outside) continue;
      place* const after = find_next(at, static_cast<std::uint8_t>(b), depth);
      all = after != nullptr && keeps_text(*after, depth + 1, table, then);
    }
    at.keeps_known |= bit;
    if (all) at.keeps |= bit;
    return all;
  }
  /// The mask has the tokens of the free text. Adds those that leave it, and clears those that do not fit.
  void beside_free_text(place& here, std::size_t depth, const free_text_tokens& plain, std::uint8_t at,
                        std::uint32_t begin, std::uint32_t end) {
    const auto& nodes = tree_.nodes;
    for (std::uint32_t n = begin; n < end; n = nodes[n].next) {
      const auto then = plain.table->next[at][nodes[n].byte];
      place* const after = find_next(here, nodes[n].byte, depth);
      if (then == free_text::outside) {
        if (after == nullptr) continue;
        take(tree_, n, n + 1);
        accept(tree_, *after, depth + 1, n + 1, nodes[n].next);
      } else if (after == nullptr) {
        leave_out(n);
      } else if (!keeps_text(*after, depth + 1, *plain.table, then)) {
        beside_free_text(*after, depth + 1, plain, then, n + 1, nodes[n].next);
      } else if ((plain.whole[n] >> at & 1) == 0) {
        leaving_free_text(*after, depth + 1, plain, then, n + 1, nodes[n].next);
      }
    }
  }

  /// Adds the tokens of the nodes [begin, end).
  void take(const byte_tree& of, std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t i = of.nodes[begin].tokens; i < of.nodes[end].tokens; ++i) allow(out_, of.tokens[i]);
  }
  /// Clears the tokens of the node's subtree.
  void leave_out(std::uint32_t n) {
    const auto& [nodes, kinds, tokens] = tree_;
    for (std::uint32_t i = nodes[n].tokens; i < nodes[nodes[n].next].tokens; ++i) forbid(out_, tokens[i]);
  }

  /// Remembers the last table, because automata ask for the same one repeatedly.
  const free_text_tokens& free_text_of(const free_text& table) {
    if (last_ == nullptr || last_->table != &table) last_ = &trie_.find_free_text(table);
    return *last_;
  }

  const token_trie& trie_;
  const byte_tree& tree_;
  const byte_automaton& automaton_;
  const free_text_tokens* last_ = nullptr;
  token_mask out_;
  std::deque<place> places_;
  std::size_t cells_ = 0;                                        // of their states
  std::unordered_map<std::string_view, std::uint16_t> numbers_;  // indices in places_ by the state's cells
  std::deque<place> passing_;                                    // states that are not remembered, by depth
};

token_masks::token_masks(const token_trie& trie, const byte_automaton& m) : walk_(std::make_unique<walk>(trie, m)) {}
token_masks::~token_masks() = default;

token_mask token_masks::find(const automaton_state& s) { return walk_->find(s); }

}  // namespace redline::grammar
