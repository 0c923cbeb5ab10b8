#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/grammar/syntax/regex_dfa.hpp"

namespace redline::grammar {

/// Characters from first to last, both included.
struct code_range {
  char32_t first = 0, last = 0;
};

/// The right side of a rule as a tree, whatever syntax it was written in.
struct part {
  enum class kind : std::uint8_t {
    literal,
    characters,  // one of a set
    expression,  // a text that matches it
    rule,
    sequence,
    choice,
    repeat,
  };
  kind what = kind::sequence;
  std::string text{};                             // literal
  std::vector<code_range> ranges{};               // characters: ascending, apart, no surrogates
  std::shared_ptr<const regex_dfa> expression{};  // expression
  bool is_escaped = false;                        // expression: quotes, backslashes and controls as in a JSON string
  std::uint32_t rule = 0;                         // rule: its number
  std::vector<part> parts{};                      // sequence, choice; repeat: one
  std::uint32_t least = 0;                        // repeat
  std::uint32_t most = 0;                         // repeat; UINT32_MAX means any number
};

struct rule {
  std::string name;
  std::size_t line = 0;  // of its definition; of its first use until then
  bool is_written = false;
  part right{};
};

/// A grammar that was read.
struct grammar_rules {
  static constexpr std::size_t rules_max = 2000;
  static constexpr std::uint32_t repeats_max = 1024;
  static constexpr std::uint32_t states_max = 1 << 14;  // of all its expressions together
  std::vector<rule> rules;
  std::uint32_t root = 0;           // the number of the rule that a whole text matches
  std::string subject = "grammar";  // what the rules were, for error messages
};

/// The ranges, or all others if `negated`: ascending, apart, and without surrogates, which no text contains.
[[nodiscard]] std::vector<code_range> tidy(std::vector<code_range> ranges, bool negated);

/// Reads a grammar in GBNF or Lark, depending on its first rule. Fails with the line of an error, and if it takes more
/// than the limit of `steps`.
[[nodiscard]] result<grammar_rules> read_grammar(std::string_view text, step_count& steps);

}  // namespace redline::grammar
