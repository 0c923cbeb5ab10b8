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

/// Texts of which each may be chosen once, with a separator between two. The parts are the separator, which begins with
/// a literal, and what follows each key.
struct selection_rule {
  static constexpr std::size_t any_order_max = 32;  // keys
  std::vector<std::string> keys;                    // how the texts begin: all different, not empty
  bool in_order = true;
  bool has_parts = true;       // otherwise nothing follows a key; with parts no key begins with another
  std::vector<bool> required;  // whether the text of a key must be there; may be empty
  bool has_others = false;     // the last part is another text, any number of times; in order it comes after all these
  std::uint32_t least = 0, most = UINT32_MAX;  // in any order: how many texts, not counting others
};

/// The right side of a rule as a tree, whatever syntax it was written in.
struct part {
  enum class kind : std::uint8_t {
    literal,
    characters,  // one of a set
    expression,  // a text that matches it
    measured,    // the same, with a number of characters
    rule,
    sequence,
    choice,
    repeat,
    selection,   // texts that differ, each at most once
    other_text,  // any inside of a JSON string but these, each character in one spelling
  };
  kind what = kind::sequence;
  std::string text{};                             // literal
  std::vector<code_range> ranges{};               // characters: ascending, apart, no surrogates
  std::shared_ptr<const regex_dfa> expression{};  // expression, measured
  bool is_escaped = false;                        // the same: quotes, backslashes and controls as in a JSON string
  std::uint32_t rule = 0;                         // rule: its number
  std::vector<part> parts{};                      // sequence, choice; repeat: one; selection: see selection_rule
  std::uint32_t least = 0;                        // repeat, measured
  std::uint32_t most = 0;                         // the same; UINT32_MAX means any number
  std::shared_ptr<const selection_rule> selection{};
  // other_text: the excluded texts, as inside quotes, ascending, different. The parts are the rules of any text and of
  // a character beyond ASCII.
  std::shared_ptr<const std::vector<std::string>> but{};
};

struct rule {
  std::string name;
  std::size_t line = 0;  // of its definition; of its first use until then
  bool is_written = false;
  part right{};
  bool is_markup = false;  // its own texts, without those of rules that it calls, surround values
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
