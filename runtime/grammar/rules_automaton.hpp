#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/grammar/byte_automaton.hpp"
#include "runtime/grammar/syntax/grammar_rules.hpp"

namespace redline::grammar {

/// The texts of a grammar in GBNF or Lark (syntax/grammar_rules.hpp). A pushdown automaton that follows all derivations
/// at the same time: its state is a set of stacks that share their lower parts. A stack has at most depth_max frames,
/// and a frame is only pushed if the text can be completed within that limit, so no state is a dead end. A call at the
/// end of a rule needs no frame. If there are more derivations than fit in a state, the state is lost (`is_lost`).
class gbnf_automaton final : public byte_automaton {
 public:
  static constexpr std::size_t positions_max = 1 << 14;
  static constexpr std::size_t items_max = 1 << 16;  // of all closures
  static constexpr std::size_t compile_steps_max = 2'000'000;
  static constexpr std::size_t closure_items_max = 64;  // of one closure: the ways to continue from a position
  static constexpr std::uint32_t depth_max = 64;
  static constexpr std::size_t heads_max = 100;

  /// Refuses rules that are missing or never end, left recursion that cannot be removed, and grammars beyond the
  /// limits, with the rule's name or line.
  static result<std::shared_ptr<const gbnf_automaton>> compile(std::string_view grammar, step_count& steps);
  static result<std::shared_ptr<const gbnf_automaton>> compile(std::string_view grammar) {
    step_count steps(compile_steps_max);
    return compile(grammar, steps);
  }

  [[nodiscard]] automaton_state begin() const override;
  using byte_automaton::advance;
  using byte_automaton::known_run;
  [[nodiscard]] bool advance(automaton_state& s, std::uint8_t byte, step_count& steps) const override;
  [[nodiscard]] bool is_accepting(const automaton_state& s) const override { return s[0] == may_end; }
  [[nodiscard]] bool is_terminated(const automaton_state& s) const override { return s.size() == 1 && s[0] == may_end; }
  [[nodiscard]] bool is_lost(const automaton_state& s) const override { return s[0] == lost; }
  [[nodiscard]] std::string_view known_run(const automaton_state& s, step_count& steps) const override;
  [[nodiscard]] free_text_rule free_text_at(const automaton_state& s) const override;
  [[nodiscard]] bool is_valid(const automaton_state& s) const override;

 private:
  friend class gbnf_compiler;
  static constexpr std::uint32_t no_closure = UINT32_MAX;
  static constexpr std::uint32_t bottom = 0xff;
  /// The first cell of a state.
  enum mark : std::uint32_t { goes_on, may_end, lost };

  /// A position in a rule.
  struct position {
    enum class kind : std::uint8_t { bytes, split, call, end };
    kind what = kind::end;
    bool is_tail = false;             // call: nothing follows it in its rule
    std::uint32_t next = 0;           // bytes, call: the position after it; split: the first way
    std::uint32_t other = 0;          // bytes: the set; split: the second way; call: the beginning of its rule
    std::uint32_t need = UINT32_MAX;  // frames needed to reach the end of the rule from here
    std::uint32_t closure = no_closure;
    std::uint32_t run = 0;  // bytes of a literal: where the rest of it begins in literals_
    std::uint32_t run_count = 0;
    std::uint32_t text_loop = UINT32_MAX;  // bytes: the position before this one that plain text comes back to
  };
  /// A way to the next byte: the frames to push, the lowest first, and the position that takes the byte.
  struct item {
    std::vector<std::uint32_t> pushes;
    std::uint32_t head = 0;
    std::uint32_t need = 0;  // frames needed above the present ones to complete the text
    bool operator==(const item& o) const { return head == o.head && pushes == o.pushes; }
  };
  struct closure {
    std::vector<item> items;
    bool is_nullable = false;      // the rule may end here
    std::uint32_t text_items = 0;  // items that take plain text
  };
  /// A state that is being built from another one.
  struct step {
    const automaton_state* from = nullptr;
    automaton_state to;
    std::array<std::uint8_t, automaton_state::cells_max> copies;  // by cell of `from`: the same frame in `to`, or 0
    std::size_t heads = 0;
    std::size_t work = 0;
    bool is_lost = false;  // some derivation does not fit
  };

  gbnf_automaton() = default;
  static automaton_state lost_state();
  static const free_text& plain_text();
  static const byte_set& plain_first_bytes();
  void reach(step& s, std::uint32_t place, std::uint32_t below) const;
  [[nodiscard]] std::uint32_t copy_frame(step& s, std::uint32_t cell) const;
  [[nodiscard]] static std::uint32_t frames_from(const automaton_state& s, std::uint32_t cell);
  [[nodiscard]] std::uint32_t put(step& s, std::uint32_t below, std::uint32_t place, bool is_head) const;

  std::vector<position> positions_;
  std::vector<closure> closures_;
  std::vector<byte_set> sets_;
  std::string literals_;
  std::uint32_t root_ = 0;
};

}  // namespace redline::grammar
