#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/grammar/constraint.hpp"

namespace redline::grammar {

/// The automata of a process's grammars, so that a text that comes again, or that another actor has compiled, is not
/// compiled twice. An automaton is known as long as anything owns it; the store owns those used last. Thread-safe.
class automaton_store {
 public:
  static constexpr std::size_t owned_max = 128;
  static constexpr std::size_t bytes_max = 128 << 20;  // of those that it owns, with their texts

  /// The automaton of a grammar; null if it is not known.
  [[nodiscard]] std::shared_ptr<const byte_automaton> find(const constraint& c);
  /// The same, and compiles it on the calling thread if it is not known. Fails as compile_automaton does.
  [[nodiscard]] result<std::shared_ptr<const byte_automaton>> get(const constraint& c);

 private:
  struct entry {
    constraint key;  // without a state
    std::size_t digest = 0;
    std::size_t bytes = 0;
    std::weak_ptr<const byte_automaton> known;
    std::shared_ptr<const byte_automaton> owned;
    std::uint64_t used = 0;
  };
  std::shared_ptr<const byte_automaton> find_locked(const constraint& c, std::size_t digest);
  void make_room();

  std::mutex mutex_;
  std::vector<entry> entries_;
  std::uint64_t clock_ = 0;
};

}  // namespace redline::grammar
