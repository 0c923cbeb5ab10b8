#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/grammar/automata/rule_tables.hpp"
#include "runtime/grammar/syntax/grammar_rules.hpp"
#include "runtime/grammar/syntax/steps.hpp"

namespace redline::grammar {

/// Refuses rules that have no text, and grammars beyond the limits of rules_compilation or of the steps.
result<rule_tables> compile_rules(grammar_rules grammar, step_count& steps);

/// A compilation of rules: what its two phases share. First the positions of each rule become a graph
/// (rule_positions), then the places that a text can be at, with what follows there, become tables (rule_places).
struct rules_compilation {
  static constexpr std::size_t positions_max = 1 << 18;
  static constexpr std::size_t ways_max = 1 << 19;  // of all tables: ways to take a byte, and calls
  static constexpr std::size_t heads_max = 4096;    // ways to take a byte at one place

  rules_compilation(grammar_rules grammar, step_count& count)
      : subject(std::move(grammar.subject)), rules(std::move(grammar.rules)), root(grammar.root), steps(count) {}

  void refuse(const std::string& what) {
    if (!why) why = failure{errc::invalid_argument, subject + ": " + what};
  }
  /// Counts work. Returns false if compilation has failed or takes too long.
  bool spend(std::size_t count);
  /// The number of a set of bytes in the tables.
  std::uint32_t set_of(const byte_set& bytes);

  std::string subject;  // of the rules, for messages
  std::vector<rule> rules;
  std::uint32_t root;
  step_count& steps;
  rule_tables tables;
  std::unordered_map<byte_set, std::uint32_t> set_numbers;
  std::optional<failure> why;  // once it has failed
};

}  // namespace redline::grammar
