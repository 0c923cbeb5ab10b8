#pragma once

#include <memory>

#include "runtime/grammar/automata/byte_automaton.hpp"
#include "runtime/grammar/token_trie.hpp"

namespace redline::grammar {

/// Finds the tokens of a vocabulary that an automaton accepts, by walking the tree of their bytes: common prefixes are
/// tried once, free text is looked up, and subtrees that stay in one state are taken whole. It remembers states and
/// where bytes lead from them, also from one mask to the next, in about 1 MiB. Trie and automaton must outlive it.
class token_masks {
 public:
  token_masks(const token_trie& trie, const byte_automaton& m);
  ~token_masks();

  /// The tokens that may follow: those whose bytes the automaton accepts, and end tokens in an accepting state.
  [[nodiscard]] token_mask find(const automaton_state& s);

 private:
  class walk;
  std::unique_ptr<walk> walk_;
};

}  // namespace redline::grammar
