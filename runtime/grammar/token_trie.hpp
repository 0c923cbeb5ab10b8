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

/// A bit per token.
using token_mask = std::vector<std::uint64_t>;

/// A vocabulary's texts as a tree of bytes. The tokens that an automaton accepts are found by walking the tree with it,
/// so common prefixes are tried once, free text is looked up, and what loops in a state is taken whole. Immutable but
/// for a cache under a mutex; safe from any thread.
class token_trie {
 public:
  /// Fails when some ASCII byte has no token of its own: a grammar could then reach a dead end.
  static result<std::shared_ptr<const token_trie>> make(std::shared_ptr<const text::tokenizer> tokenizer);

  /// The tokens that may follow: those whose bytes the automaton accepts, and end tokens in an accepting state.
  [[nodiscard]] token_mask next_token_mask(const byte_automaton& m, const automaton_state& s) const;
  /// Whether each of these bytes has a token of its own.
  [[nodiscard]] bool can_spell(std::string_view bytes) const;
  /// Tokens that spell exactly these bytes, for which can_spell must hold: the tokenizer's own where they decode to the
  /// same bytes, else the longest tokens first.
  [[nodiscard]] std::vector<token> spell(std::string_view bytes) const;
  /// The longest token that `bytes` (not empty) begin with and that the automaton accepts.
  [[nodiscard]] std::optional<token> longest_token(const byte_automaton& m, const automaton_state& s,
                                                   std::string_view bytes) const;
  /// Consumes the token's bytes, or a control token as one. False when they cannot follow, with `s` undefined, and for
  /// tokens that end the text.
  [[nodiscard]] bool accept_token(const byte_automaton& m, automaton_state& s, token t, step_count& steps) const;
  [[nodiscard]] bool accept_token(const byte_automaton& m, automaton_state& s, token t) const {
    step_count uncounted;
    return accept_token(m, s, t, uncounted);
  }

  /// The control token with the longest text that `run` begins with; none ends the text.
  [[nodiscard]] std::optional<token> control_at(std::string_view run) const;
  /// It allows every token.
  [[nodiscard]] bool is_full(const token_mask& mask) const;

  [[nodiscard]] const text::tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  // Depth first: a node's children follow it, `next` is the first node after its subtree. Tokens are in the same order,
  // so those of a subtree are tokens_[nodes_[n].tokens] up to, not including, tokens_[nodes_[nodes_[n].next].tokens].
  struct node {
    std::uint32_t next = 0;
    std::uint32_t tokens = 0;
    std::uint16_t depth = 1;  // bytes to the end of the longest token in its subtree, its own included
    std::uint8_t byte = 0;
  };
  /// The tokens that fit a free text.
  struct free_text_tokens {
    const free_text* table = nullptr;
    std::vector<std::uint8_t> whole;     // by node: a bit for each state from which its whole subtree fits
    token_mask all;                      // those that fit from state 0
    std::vector<token> by_characters;    // the same tokens, those of fewest characters first
    std::vector<std::uint32_t> up_to{};  // by number of characters: how many of them have at most so many

    /// The tokens of at most so many characters.
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
  std::vector<std::uint64_t> kinds_;  // by node: what its subtree's characters are
  std::vector<token> tokens_;
  std::vector<token> ends_;
  std::vector<token> controls_;  // tokens without bytes that do not end the text
  byte_set single_bytes_;        // bytes that have a token of their own
  mutable std::mutex mutex_;
  mutable std::deque<free_text_tokens> free_texts_;  // a handful
};

}  // namespace redline::grammar
