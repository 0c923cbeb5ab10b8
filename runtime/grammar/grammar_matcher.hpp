#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/grammar/automaton_store.hpp"
#include "runtime/grammar/token_masks.hpp"
#include "runtime/grammar/token_trie.hpp"
#include "runtime/sampling/row_filter.hpp"

namespace redline::grammar {

/// An automaton over a vocabulary. Where the grammar leaves only one continuation, its tokens are decided without the
/// model (jump-forward decoding). They depend on the state alone, so plain decoding and drafts give the same tokens.
/// The model chooses the last token before a choice: where "<" must follow, the vocabulary may have "</" and "<copy",
/// and then the model has never seen "<" alone.
class compiled_grammar {
 public:
  compiled_grammar(std::shared_ptr<const byte_automaton> automaton, std::shared_ptr<const token_trie> trie)
      : automaton_(std::move(automaton)), trie_(std::move(trie)) {}

  [[nodiscard]] const byte_automaton& automaton() const { return *automaton_; }
  [[nodiscard]] const token_trie& trie() const { return *trie_; }

  /// The token that must follow, if only one can. Adds its work to `steps`, as the functions below do.
  [[nodiscard]] std::optional<token> jump_forward(const automaton_state& s, step_count& steps) const;
  /// The same, and consumes the token.
  [[nodiscard]] std::optional<token> take_jump_forward(automaton_state& s, step_count& steps) const;
  /// How a token follows a state.
  enum class place : std::uint8_t {
    none,     // it cannot follow
    chosen,   // the model chooses it
    decided,  // the grammar decides it: jump_forward gives it, and no other can follow
  };
  /// Consumes a token. If it cannot follow, `s` is undefined afterwards. Any token can follow while unconstrained
  /// tokens are due.
  [[nodiscard]] place place_token(automaton_state& s, token t, step_count& steps) const;
  /// The same; returns false if the token cannot follow.
  [[nodiscard]] bool accept_token(automaton_state& s, token t, step_count& steps) const {
    return place_token(s, t, steps) != place::none;
  }
  /// The same functions for callers that do not limit the work.
  [[nodiscard]] std::optional<token> jump_forward(const automaton_state& s) const {
    step_count uncounted;
    return jump_forward(s, uncounted);
  }
  [[nodiscard]] bool accept_token(automaton_state& s, token t) const {
    step_count uncounted;
    return accept_token(s, t, uncounted);
  }

 private:
  [[nodiscard]] std::optional<token> find_control(const automaton_state& s, step_count& steps) const;

  std::shared_ptr<const byte_automaton> automaton_;
  std::shared_ptr<const token_trie> trie_;
  static constexpr std::size_t first_tokens_max = 256;
  mutable std::mutex mutex_;
  /// First tokens by the bytes that must follow and whether a choice comes after them.
  mutable std::unordered_map<std::string, std::optional<token>> first_tokens_;
};

/// The compiled grammars of one target model, each with the masks of recent states. The cache is bounded. An evicted
/// entry lives on while others own it, and its grammar is compiled again when needed. For use by one thread.
class grammar_cache {
 public:
  /// automata: where grammars are compiled, if they are not known there.
  explicit grammar_cache(std::shared_ptr<const token_trie> trie,
                         std::shared_ptr<automaton_store> automata = std::make_shared<automaton_store>())
      : trie_(std::move(trie)), automata_(std::move(automata)) {}

  struct entry {
    std::shared_ptr<const compiled_grammar> grammar;
    float copied_min = 1;  // see constraint
    std::unique_ptr<token_masks> make_masks;
    std::unordered_map<std::string, token_mask> masks;  // by the state's cells
    token_mask span_mask;                               // of the rows of copied spans; empty until it is needed
    std::uint64_t used = 0;
    std::uint64_t name = 0;  // the last name that a sender gave it; 0 if there is none
  };
  /// Finds a grammar by its text, or makes it. With a name, find_named finds it from then on. Fails for a malformed
  /// grammar or an invalid state.
  result<std::shared_ptr<entry>> find(const constraint& c, std::uint64_t name = 0);
  /// The grammar that came with its text under this name; null if it is no longer in the cache.
  std::shared_ptr<entry> find_named(std::uint64_t name);
  [[nodiscard]] static result<void> check_state(const entry& e, std::span<const std::uint32_t> state);

  static constexpr std::size_t grammars_max = 128;
  static constexpr std::size_t grammar_bytes_max = 128 << 20;  // of all, without their masks
  static constexpr std::size_t masks_max = 24;                 // per grammar; a mask of 150,000 tokens is 19 KB

 private:
  void make_room(std::size_t bytes);

  std::shared_ptr<const token_trie> trie_;  // if null, find always fails
  std::shared_ptr<automaton_store> automata_;
  std::vector<std::shared_ptr<entry>> entries_;
  std::uint64_t clock_ = 0;
};

/// Follows one sequence through its grammar.
class grammar_matcher final : public sampling::row_filter {
 public:
  /// The state of `c` must be one of the grammar's. The matcher must not outlive the entry.
  grammar_matcher(grammar_cache::entry& entry, const constraint& c)
      : entry_(entry), state_(c.state.empty() ? entry.grammar->automaton().begin() : automaton_state(c.state)) {}

  std::span<const std::uint64_t> next_token_mask() override;
  [[nodiscard]] std::optional<float> copied_min() const override;
  bool accept_token(token chosen) override;

 private:
  [[nodiscard]] bool is_in_span() const { return entry_.grammar->automaton().unconstrained_tokens(state_) > 0; }

  grammar_cache::entry& entry_;
  automaton_state state_;
  token_mask single_;
};

}  // namespace redline::grammar
