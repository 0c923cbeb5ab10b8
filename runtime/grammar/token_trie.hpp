#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/grammar/machine.hpp"
#include "runtime/tokenizer/tokenizer.hpp"

namespace redline::grammar {

/// A bit per token.
using token_mask = std::vector<std::uint64_t>;

/// A vocabulary's texts as a tree of bytes, so that the tokens a machine accepts are found without trying each: what
/// begins alike is tried once, and plain text is looked up. Immutable but for a cache behind a mutex; safe from any
/// thread.
class token_trie {
 public:
  /// Fails when some ASCII byte has no token of its own: then grammars could lead into dead ends.
  static result<std::shared_ptr<const token_trie>> make(std::shared_ptr<const text::tokenizer> tokenizer);

  /// The tokens that may come at `s`: those whose bytes the machine takes, and end tokens where the text may end.
  [[nodiscard]] token_mask allowed(const machine& m, const state& s) const;
  /// Every byte has a token of its own.
  [[nodiscard]] bool can_spell(std::string_view bytes) const;
  /// Tokens that spell exactly these bytes, which it can: as the tokenizer writes them where it keeps them, else the
  /// longest first.
  [[nodiscard]] std::vector<token> spell(std::string_view bytes) const;
  /// The longest token that begins `bytes` (not empty) and that the machine takes.
  [[nodiscard]] std::optional<token> longest(const machine& m, const state& s, std::string_view bytes) const;
  /// Whether the token's bytes can come at `s`, which then stands behind them. False for tokens without bytes.
  [[nodiscard]] bool advance(const machine& m, state& s, token t) const;

  [[nodiscard]] const text::tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  // Depth first: a node's children follow it, `next` is behind the last of its tree. Tokens stand in the same order, so
  // those of a tree are nodes_[n].tokens to nodes_[nodes_[n].next].tokens.
  struct node {
    std::uint32_t next = 0;
    std::uint32_t tokens = 0;
    std::uint16_t depth = 1;  // bytes to the end of the longest token in its tree, its own included
    std::uint8_t byte = 0;
  };
  /// What a plain text takes.
  struct plain_tokens {
    const plain_text* text = nullptr;
    std::vector<std::uint8_t> whole;     // by node: a bit for each state from which all of its tree is taken
    token_mask all;                      // from state 0
    std::vector<token> by_characters;    // the same tokens, the shortest first
    std::vector<std::uint32_t> up_to{};  // how many of them have at most so many characters

    /// Tokens of at most so many characters.
    [[nodiscard]] token_mask of_at_most(std::uint32_t characters) const;
  };
  class walk;

  explicit token_trie(std::shared_ptr<const text::tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}
  void build();
  [[nodiscard]] const plain_tokens& tokens_of(const plain_text& text) const;
  void find_whole(plain_tokens& found) const;
  void find_tokens(plain_tokens& found) const;

  std::shared_ptr<const text::tokenizer> tokenizer_;
  std::vector<node> nodes_;
  std::vector<token> tokens_;
  std::vector<token> ends_;
  byte_set written_;  // bytes that have a token of their own
  mutable std::mutex mutex_;
  mutable std::deque<plain_tokens> plain_;  // a handful
};

}  // namespace redline::grammar
