#include "runtime/grammar/token_trie.hpp"

#include <algorithm>

namespace redline::grammar {
namespace {

// A walk goes as deep as a token is long, so a file's longest tokens do not take part.
constexpr std::size_t token_bytes_max = 256;

void set(token_mask& mask, token t) { mask[static_cast<std::size_t>(t) / 64] |= std::uint64_t{1} << (t % 64); }
void clear(token_mask& mask, token t) { mask[static_cast<std::size_t>(t) / 64] &= ~(std::uint64_t{1} << (t % 64)); }

}  // namespace

result<std::shared_ptr<const token_trie>> token_trie::make(std::shared_ptr<const text::tokenizer> tokenizer) {
  std::shared_ptr<token_trie> index(new token_trie(std::move(tokenizer)));
  index->build();
  for (std::uint32_t n = 0; n + 1 < index->nodes_.size(); n = index->nodes_[n].next) {
    const auto& node = index->nodes_[n];
    const std::uint32_t behind = index->nodes_[n + 1].tokens;
    if (behind > node.tokens) index->written_.set(node.byte);
  }
  // Bytes that UTF-8 never uses are left out of some vocabularies; the grammars' own characters are all ASCII.
  for (std::size_t byte = 0; byte < 0x80; ++byte) {
    if (!index->written_[byte]) {
      return failure{
          errc::unsupported_format,
          "a grammar needs a token for every ASCII byte; the vocabulary has none for " + std::to_string(byte)};
    }
  }
  return std::shared_ptr<const token_trie>(std::move(index));
}

void token_trie::build() {
  const auto piece = [this](token t) { return tokenizer_->piece(t); };
  for (token t = 0; t < static_cast<token>(tokenizer_->size()); ++t) {
    if (tokenizer_->is_end_of_generation(t))
      ends_.push_back(t);
    else if (!piece(t).empty() && piece(t).size() <= token_bytes_max)
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
}

const token_trie::plain_tokens& token_trie::tokens_of(const plain_text& text) const {
  const std::scoped_lock lock(mutex_);
  for (const auto& known : plain_) {
    if (known.text == &text) return known;
  }
  auto& found = plain_.emplace_back();
  found.text = &text;
  find_whole(found);
  find_tokens(found);
  return found;
}

void token_trie::find_whole(plain_tokens& found) const {
  found.whole.resize(nodes_.size());
  for (auto n = static_cast<std::uint32_t>(nodes_.size() - 1); n-- > 0;) {
    std::uint8_t behind = 0xff;
    for (std::uint32_t child = n + 1; child < nodes_[n].next; child = nodes_[child].next) behind &= found.whole[child];
    for (std::size_t at = 0; at < plain_text::states_max; ++at) {
      const auto then = found.text->next[at][nodes_[n].byte];
      if (then != plain_text::outside && (behind >> then & 1) != 0)
        found.whole[n] |= static_cast<std::uint8_t>(1U << at);
    }
  }
}

void token_trie::find_tokens(plain_tokens& found) const {
  found.all.resize((tokenizer_->size() + 63) / 64);
  std::vector<std::vector<token>> by_count(token_bytes_max + 1);
  for (const token t : tokens_) {
    std::uint8_t at = 0;
    std::size_t characters = 0;
    for (const char c : tokenizer_->piece(t)) {
      if (at == 0) ++characters;
      at = found.text->next[at][static_cast<std::uint8_t>(c)];
      if (at == plain_text::outside) break;
    }
    if (at == plain_text::outside) continue;
    set(found.all, t);
    by_count[characters].push_back(t);
  }
  for (const auto& tokens : by_count) {
    found.by_characters.insert(found.by_characters.end(), tokens.begin(), tokens.end());
    found.up_to.push_back(static_cast<std::uint32_t>(found.by_characters.size()));
  }
}

token_mask token_trie::plain_tokens::of_at_most(std::uint32_t characters) const {
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

/// Finds the tokens that a machine takes.
class token_trie::walk {
 public:
  walk(const token_trie& index, const machine& m) : index_(index), nodes_(index.nodes_), machine_(m) {}

  token_mask run(const state& s) {
    const auto end = static_cast<std::uint32_t>(nodes_.size() - 1);
    const auto place = machine_.plain(s);
    if (place.text == nullptr) {
      out_.resize((index_.tokenizer_->size() + 63) / 64);
      tree(s, 0, end);
    } else {
      const auto& plain = tokens_of(*place.text);
      out_ = plain.of_at_most(place.most);
      for (std::uint32_t n = 0; n < end; n = nodes_[n].next) {
        if (nodes_[n].byte != place.beside) {
          beside_plain(s, plain, 0, n, nodes_[n].next);
          continue;
        }
        for (std::uint32_t i = nodes_[n].tokens; i < nodes_[nodes_[n].next].tokens; ++i) clear(out_, index_.tokens_[i]);
        tree(s, n, nodes_[n].next);
      }
    }
    return std::move(out_);
  }

 private:
  void tree(const state& s, std::uint32_t begin, std::uint32_t end) {
    const auto place = machine_.plain(s);
    const plain_tokens* plain = place.text != nullptr ? &tokens_of(*place.text) : nullptr;
    for (std::uint32_t n = begin; n < end; n = nodes_[n].next) {
      if (plain != nullptr && nodes_[n].byte != place.beside && (plain->whole[n] & 1) != 0 &&
          nodes_[n].depth <= place.most) {
        take(n, nodes_[n].next);
        continue;
      }
      state after = s;
      if (!machine_.advance(after, nodes_[n].byte)) continue;
      take(n, n + 1);
      tree(after, n + 1, nodes_[n].next);
    }
  }

  /// Tokens that leave the plain text somewhere; the others are in the mask.
  void beside_plain(const state& s, const plain_tokens& plain, std::uint8_t at, std::uint32_t begin,
                    std::uint32_t end) {
    for (std::uint32_t n = begin; n < end; n = nodes_[n].next) {
      if ((plain.whole[n] >> at & 1) != 0) continue;
      state after = s;
      if (!machine_.advance(after, nodes_[n].byte)) continue;
      const auto then = plain.text->next[at][nodes_[n].byte];
      if (then != plain_text::outside) {
        beside_plain(after, plain, then, n + 1, nodes_[n].next);
      } else {
        take(n, n + 1);
        tree(after, n + 1, nodes_[n].next);
      }
    }
  }

  /// The tokens of the nodes [begin, end).
  void take(std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t i = nodes_[begin].tokens; i < nodes_[end].tokens; ++i) set(out_, index_.tokens_[i]);
  }

  /// The last one at hand: a machine asks for the same again and again.
  const plain_tokens& tokens_of(const plain_text& text) {
    if (last_ == nullptr || last_->text != &text) last_ = &index_.tokens_of(text);
    return *last_;
  }

  const token_trie& index_;
  const std::vector<node>& nodes_;
  const machine& machine_;
  const plain_tokens* last_ = nullptr;
  token_mask out_;
};

token_mask token_trie::allowed(const machine& m, const state& s) const {
  token_mask out = walk(*this, m).run(s);
  if (m.may_end(s)) {
    for (const token t : ends_) set(out, t);
  }
  return out;
}

std::optional<token> token_trie::longest(const machine& m, const state& s, std::string_view bytes) const {
  std::optional<token> found;
  state here = s;
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

/// Any bytes at all.
class anything final : public machine {
 public:
  [[nodiscard]] state begin() const override { return {}; }
  [[nodiscard]] bool advance(state&, std::uint8_t) const override { return true; }
  [[nodiscard]] bool may_end(const state&) const override { return true; }
  [[nodiscard]] bool is_over(const state&) const override { return false; }
  [[nodiscard]] bool is_possible(const state& s) const override { return s.size() == 0; }
};

}  // namespace

bool token_trie::can_spell(std::string_view bytes) const {
  return std::all_of(bytes.begin(), bytes.end(), [&](char c) { return written_[static_cast<std::uint8_t>(c)]; });
}

std::vector<token> token_trie::spell(std::string_view bytes) const {
  auto tokens = tokenizer_->encode(bytes);
  std::string back;
  for (const token t : tokens) back += tokenizer_->piece(t);
  if (back == bytes) return tokens;
  tokens.clear();
  for (const anything any; !bytes.empty();) {
    const auto t = longest(any, {}, bytes);
    if (!t) break;  // a byte that the vocabulary lacks
    tokens.push_back(*t);
    bytes.remove_prefix(tokenizer_->piece(*t).size());
  }
  return tokens;
}

bool token_trie::advance(const machine& m, state& s, token t) const {
  if (tokenizer_->is_end_of_generation(t)) return false;
  const auto bytes = tokenizer_->piece(t);
  if (bytes.empty() || bytes.size() > token_bytes_max) return false;
  for (const char c : bytes) {
    if (!m.advance(s, static_cast<std::uint8_t>(c))) return false;
  }
  return true;
}

}  // namespace redline::grammar
