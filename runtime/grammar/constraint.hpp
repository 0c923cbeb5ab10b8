#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/copy/program_machine.hpp"
#include "runtime/grammar/automata/byte_automaton.hpp"

namespace redline::grammar {

enum class grammar_kind : std::uint8_t {
  none,
  copy,   // edit programs over files
  json,   // values of a JSON schema
  tools,  // text that may call tools
  known,  // a grammar that the receiver already has; the message says which
  regex,  // texts that match a regular expression
  rules,  // texts of a grammar, in GBNF or Lark
  last_,
};

/// The grammar that an answer has to follow, as the client wrote it.
struct grammar_text {
  grammar_kind kind = grammar_kind::json;  // json, regex or rules
  std::string text;
  bool operator==(const grammar_text&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.kind, self.text); }
};

/// A grammar and a state in it, as sent in messages. A receiver gets the grammar's text at first and after losing it,
/// and otherwise the kind `known`.
struct constraint {
  grammar_kind kind = grammar_kind::none;
  std::string text;                  // for json, regex and rules; for tools, see tool_constraint
  std::vector<std::uint32_t> shape;  // for copy, see copy_constraint
  std::vector<std::uint32_t> state;  // cells of the automaton's state; empty means the beginning
  float copied_min = 1;              // for copy, see row_filter::copied_min

  /// Whether the grammars are the same; the states may differ.
  [[nodiscard]] bool same_grammar(const constraint& o) const { return same_automaton(o) && copied_min == o.copied_min; }
  [[nodiscard]] bool same_automaton(const constraint& o) const {
    return kind == o.kind && text == o.text && shape == o.shape;
  }
  bool operator==(const constraint&) const = default;
  static constexpr auto fields(auto& self) {
    return std::tie(self.kind, self.text, self.shape, self.state, self.copied_min);
  }
};

inline constexpr std::size_t grammar_bytes_max = 32 << 10;  // of an expression or of rules

/// `shape` contains 1 for line spans or 0; 1 for token spans plus 2 for anchors; then each file's lines and tokens.
[[nodiscard]] constraint copy_constraint(const copy::program_shape& shape);
[[nodiscard]] constraint text_constraint(grammar_text text);

/// The same state in a grammar that the receiver already has.
[[nodiscard]] constraint without_text(constraint c);

/// Fails for a malformed or unsupported grammar, for `none` and for `known`. Ignores `state`.
[[nodiscard]] result<std::shared_ptr<const byte_automaton>> compile_automaton(const constraint& c);

}  // namespace redline::grammar
