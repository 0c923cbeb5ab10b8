#include "runtime/grammar/automata/rules_compiler.hpp"

#include "runtime/base/pause_point.hpp"
#include "runtime/grammar/automata/rule_places.hpp"
#include "runtime/grammar/automata/rule_positions.hpp"

namespace redline::grammar {

bool rules_compilation::spend(std::size_t count) {
  pause_point();
  steps.add(count);
  if (steps.is_over()) refuse("it takes too long to compile: write it with fewer rules and repetitions");
  return !why;
}

std::uint32_t rules_compilation::set_of(const byte_set& bytes) {
  const auto [at, is_new] = set_numbers.try_emplace(bytes, static_cast<std::uint32_t>(tables.sets.size()));
  if (is_new) tables.sets.push_back(bytes);
  return at->second;
}

result<rule_tables> compile_rules(grammar_rules grammar, step_count& steps) {
  rules_compilation work(std::move(grammar), steps);
  const rule_positions positions = make_positions(work);
  if (!work.why) make_places(work, positions);
  if (work.why) return *work.why;
  for (const auto& one : work.rules) work.tables.is_markup.push_back(one.is_markup);
  return std::move(work.tables);
}

}  // namespace redline::grammar
