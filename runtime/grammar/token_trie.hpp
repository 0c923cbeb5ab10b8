#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/grammar/byte_automaton.hpp"
#include "runtime/text/tokenizer.hpp"

namespace redline::grammar {

using token_mask = std::vector<std::uint64_t>;  // one bit per token

/// The texts of a vocabulary as a tree of bytes. Walking the tree with an automaton finds the tokens that it accepts:
/// common prefixes are tried once, free text is looked up, and subtrees that stay in one state are taken whole. It is
/// immutable except for a cache under a mutex, so it can be used from any thread.
class token_trie {
 public:
  /// Fails when some ASCII byte has no token of its own: a grammar could then reach a dead end.
  static result<std::shared_ptr<const token_trie>> make(std::shared_ptr<const text::tokenizer> tokenizer);

  /// The tokens that may follow: those whose bytes the automaton accepts, and end tokens in an accepting state.
  [[nodiscard]] token_mask next_token_mask(const byte_automaton& m, const automaton_state& s) const;
  /// Whether each of these bytes has a token of its own.
  [[nodiscard]] bool can_tokenize(std::string_view bytes) const;
  /// Tokens whose text is exactly these bytes, for which can_tokenize must be true. They are the tokenizer's own tokens
  /// if those decode to the same bytes, and otherwise the longest token at each position.
  [[nodiscard]] std::vector<token> spell(std::string_view bytes) const;
  /// The longest token that `bytes` (not empty) begin with and that the automaton accepts.
  [[nodiscard]] std::optional<token> longest_token(const byte_automaton& m, const automaton_state& s,
                                                   std::string_view bytes) const;
  /// Consumes the token's bytes, or a control token as a whole. Returns false for a token that cannot follow, which
  /// leaves `s` undefined, and for tokens that end the text.
  [[nodiscard]] bool accept_token(const byte_automaton& m, automaton_state& s, token t, step_count& steps) const;
  [[nodiscard]] bool accept_token(const byte_automaton& m, automaton_state& s, token t) const {
    step_count uncounted;
    return accept_token(m, s, t, uncounted);
  }

  /// The control token with the longest text that `run` begins with. It is never a token that ends the text.
  [[nodiscard]] std::optional<token> control_at(std::string_view run) const;
  /// Whether the mask allows every token.
  [[nodiscard]] bool is_full(const token_mask& mask) const;

  [[nodiscard]] const text::tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  // Nodes are stored depth first: a node's children follow it, and `next` is the first node after its subtree. Tokens
  // have the same order: a subtree's are tokens_[nodes_[n].tokens] up to, not including,
  // tokens_[nodes_[nodes_[n].next].tokens].
  struct node {
    std::uint32_t next = 0;
    std::uint32_t tokens = 0;
    std::uint16_t depth = 1;  // bytes to the end of the longest token in its subtree, including its own byte
    std::uint8_t byte = 0;
  };
  /// The tokens that fit a free text.
  struct free_text_tokens {
    const free_text* table = nullptr;
    std::vector<std::uint8_t> whole;     // by node: a bit for each state from which its whole subtree fits
    token_mask all;                      // those that fit from state 0
    std::vector<token> by_characters;    // the same tokens, ordered by number of characters
    std::vector<std::uint32_t> up_to{};  // by number of characters: how many tokens have at most that many

    /// The tokens of at most `characters` characters.
    [[nodiscard]] token_mask up_to_characters(std::uint32_t characters) const;
  };
  class walk;

  explicit token_trie(std::shared_ptr<const text::tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}
  void build();
  [[nodiscard]] const free_text_tokens& find_free_text(const free_text& table) const;
  void find_whole(free_text_tokens& found) const;
  void find_tokens(free_text_tokens& found) const;

  std::shared_ptr<const text::tokenizer> tokenizer_;
  std::vector<node> nodes_;
  std::vector<std::uint64_t> kinds_;  // by node: the kinds of characters in its subtree
  std::vector<token> tokens_;
  std::vector<token> ends_;
  std::vector<token> controls_;  // tokens without bytes that do not end the text
  byte_set single_bytes_;        // bytes that have a token of their own
  mutable std::mutex mutex_;
  mutable std::deque<free_text_tokens> free_texts_;  // a handful
};

}  // namespace redline::grammar
