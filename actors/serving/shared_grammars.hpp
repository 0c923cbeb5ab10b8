#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/messages/target_messages.hpp"
#include "runtime/grammar/automaton_store.hpp"

namespace redline::actors {

/// A grammar that some sequences follow. Its text is sent to a target model once.
struct shared_grammar {
  grammar::constraint text;  // without a state
  std::size_t digest = 0;
  std::uint64_t name = 0;
  std::uint64_t told_start_id = 0;  // `start_id` of the target model that has had its text; 0 if none has
  std::uint64_t told_batch = 0;     // the last batch with its text
  std::shared_ptr<const grammar::byte_automaton> automaton;  // kept, so that no pass compiles it
};

/// The grammars of all sequences, and which of their texts the target model has.
class shared_grammars {
 public:
  /// first_name: a number that no other list begins with, so that a target model does not mix up their names.
  shared_grammars(std::uint64_t first_name, std::shared_ptr<grammar::automaton_store> automata)
      : last_name_(first_name), automata_(std::move(automata)) {}

  /// Whether the grammar is compiled. Edit programs count as such, since their grammar takes no time.
  [[nodiscard]] bool is_compiled(const grammar::constraint& text) const {
    using enum grammar::grammar_kind;
    return text.kind == none || text.kind == copy || automata_->find(text) != nullptr;
  }

  /// Returns null for the grammar `none`. Equal texts share one grammar as long as a sequence has it.
  [[nodiscard]] std::shared_ptr<shared_grammar> share(const grammar::constraint& text);
  /// Sets a run's grammar name and state, and the text unless the target model has it already or gets it with another
  /// run of the batch.
  void put(batch_run& run, shared_grammar& g, const std::vector<std::uint32_t>& state, std::uint64_t batch,
           std::uint64_t target_start_id);
  /// The target model has had the text.
  static void note_told(shared_grammar& g, std::uint64_t target_start_id) { g.told_start_id = target_start_id; }
  /// The target model keeps a bounded number of grammars, and one that a batch named was gone: the next batch sends the
  /// texts of all. Returns false if the last batch did so already.
  [[nodiscard]] bool spell_all();
  void note_batch_done() { spells_all_ = false; }

 private:
  std::uint64_t last_name_;
  std::shared_ptr<grammar::automaton_store> automata_;
  std::vector<std::weak_ptr<shared_grammar>> all_;
  bool spells_all_ = false;
};

}  // namespace redline::actors
