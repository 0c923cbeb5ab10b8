#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/grammar/automata/byte_automaton.hpp"
#include "runtime/grammar/byte_tree.hpp"
#include "runtime/text/tokenizer.hpp"

namespace redline::grammar {

using token_mask = std::vector<std::uint64_t>;  // one bit per token

inline void allow(token_mask& mask, token t) { mask[static_cast<std::size_t>(t) / 64] |= std::uint64_t{1} << (t % 64); }
inline void forbid(token_mask& mask, token t) {
  mask[static_cast<std::size_t>(t) / 64] &= ~(std::uint64_t{1} << (t % 64));
}

/// The tokens of a vocabulary that fit a free text, and those that leave it.
struct free_text_tokens {
  const free_text* table = nullptr;
  std::vector<std::uint8_t> whole{};   // by node of the vocabulary: see byte_tree::find_whole
  token_mask all{};                    // those that fit from state 0
  std::vector<token> by_characters{};  // the same tokens, ordered by number of characters
  std::vector<std::uint32_t> up_to{};  // by number of characters: how many tokens have at most that many
  byte_tree leaving{};                 // tokens that leave the text after some characters, by their bytes from there
  std::vector<std::uint32_t> leaving_places{};  // the same, as indices in the vocabulary's tokens, ascending
  std::uint32_t leaving_bytes_max = 0;          // of the longest of them
  std::uint8_t some_byte = 0;                   // a character of the text

  /// The tokens of at most `characters` characters.
  [[nodiscard]] token_mask up_to_characters(std::uint32_t characters) const;
};

/// The texts of a vocabulary as a tree of bytes, for finding the tokens that an automaton accepts (token_masks). It is
/// immutable except for a cache under a mutex, so it can be used from any thread.
class token_trie {
 public:
  /// Fails when some ASCII byte has no token of its own: a grammar could then reach a dead end.
  static result<std::shared_ptr<const token_trie>> make(std::shared_ptr<const text::tokenizer> tokenizer);

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
  [[nodiscard]] const byte_tree& tree() const { return tree_; }
  [[nodiscard]] std::span<const token> ends() const { return ends_; }          // tokens that end the text
  [[nodiscard]] std::span<const token> controls() const { return controls_; }  // others without bytes
  /// The tokens that fit a free text, found when they are first asked for. They live as long as this object.
  [[nodiscard]] const free_text_tokens& find_free_text(const free_text& table) const;

 private:
  explicit token_trie(std::shared_ptr<const text::tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}
  void build();
  void find_tokens(free_text_tokens& found) const;

  std::shared_ptr<const text::tokenizer> tokenizer_;
  byte_tree tree_;
  std::vector<token> ends_;
  std::vector<token> controls_;  // tokens without bytes that do not end the text
  byte_set single_bytes_;        // bytes that have a token of their own
  mutable std::mutex mutex_;
  mutable std::deque<free_text_tokens> free_texts_;  // a handful
};

}  // namespace redline::grammar
