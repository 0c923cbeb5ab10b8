#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/grammar/syntax/regex_dfa.hpp"

namespace redline::grammar {

/// Characters from first to last, both included.
struct code_range {
  char32_t first = 0, last = 0;
};

/// What stands on the right of a rule: a tree, whatever syntax it was written in.
struct part {
  enum class kind : std::uint8_t {
    literal,
    characters,  // one of them
    expression,  // a text of it
    rule,
    sequence,
    choice,
    repeat,
    graph,  // see edges
  };
  kind what = kind::sequence;
  std::string text{};                             // literal
  std::vector<code_range> ranges{};               // characters: ascending, apart, no surrogates
  std::shared_ptr<const regex_dfa> expression{};  // expression
  std::uint32_t rule = 0;                         // rule: its number
  std::vector<part> parts{};                      // sequence, choice; repeat: one; graph: what the edges take
  std::uint32_t least = 0;                        // repeat
  std::uint32_t most = 0;                         // repeat; UINT32_MAX: any
  /// graph: from which node to which, for each of `parts`. It begins at node 0 and ends at the last.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges{};
  std::uint32_t nodes = 0;
};

struct rule {
  std::string name;
  std::size_t line = 0;  // where it is used first, or written
  bool is_written = false;
  part right{};
};

/// A grammar, read.
struct grammar_rules {
  static constexpr std::size_t rules_max = 2000;
  static constexpr std::uint32_t repeats_max = 1024;
  static constexpr std::uint32_t states_max = 1 << 14;  // of its expressions together
  std::vector<rule> rules;
  std::uint32_t root = 0;  // the number of the rule that a whole text is of
};

/// Ascending and apart, without surrogates, which no text holds.
[[nodiscard]] std::vector<code_range> tidy(std::vector<code_range> ranges, bool negated);

/// Reads a grammar in GBNF or in Lark, whichever its first rule is written in, and has its rules begin with themselves
/// no longer (left_recursion.hpp). Fails with the line; and where `steps` pass their limit.
[[nodiscard]] result<grammar_rules> read_grammar(std::string_view text, step_count& steps);

}  // namespace redline::grammar
