#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/grammar/automata/rules_compiler.hpp"

namespace redline::grammar {

/// The rules of a grammar as a graph. Its sets, literals, guards and loops are in the tables of the compilation.
struct rule_positions {
  /// A position in a rule.
  enum class kind : std::uint8_t { bytes, split, both, call, text_end, end };
  struct position {
    kind what = kind::end;
    // bytes, call: the position after it; split: the first way; both: the only one; text_end: after the last text
    std::uint32_t next = 0;
    // bytes: the set; split: the second way; both: what must be possible too; call: the rule, whose number its
    // beginning has; text_end: the text
    std::uint32_t other = 0;
    std::uint32_t rule = 0;                     // that it is in
    std::uint32_t loop = rule_tables::no_loop;  // of which it is in a text
    std::uint32_t run = 0;                      // as in rule_tables::head
    std::uint32_t run_count = 0;
    std::uint32_t guard = rule_tables::no_guard;
    bool adds_one = false;
  };
  std::vector<position> all;  // rule i begins at all[i]
  // By loop: where its texts begin, or the separator; and the position after the last.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> loops;
  std::vector<std::vector<std::uint32_t>> begins;  // by loop and text: the position after its key
};

/// Incomplete if the compilation fails (rules_compilation::why).
[[nodiscard]] rule_positions make_positions(rules_compilation& work);

}  // namespace redline::grammar
