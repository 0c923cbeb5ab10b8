#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/grammar/byte_automaton.hpp"
#include "runtime/grammar/sorted_texts.hpp"
#include "runtime/grammar/syntax/regex_dfa.hpp"

namespace redline::grammar {

/// A kind of value in a compiled schema. Nodes refer to each other by index.
struct json_node {
  enum class value_kind : std::uint8_t { any, object, array, string, number, integer, literals, choice };
  struct member {
    std::uint32_t name = 0;   // index in texts, which contains it as JSON with the quotes
    std::uint32_t value = 0;  // node
    bool required = false;
    std::uint32_t last_choice = 0;           // first required member from this one on, or the last member
    std::optional<std::uint32_t> goes_on{};  // after it the object is this node, and it is its first member
  };

  value_kind kind = value_kind::any;
  std::vector<member> members;           // object: the declared ones in the order in which they are written
  std::vector<std::uint32_t> by_name{};  // object: the members in the order of texts
  std::uint32_t other = 0;               // node of the values of an array, or of an object without declared members
  std::uint32_t items_min = 0;           // array
  std::uint32_t items_max = UINT32_MAX;  // array
  bool is_unique = false;                // array: of at most unique_max literals, each at most once
  std::uint32_t characters_min = 0;      // string
  std::uint32_t characters_max = UINT32_MAX;
  std::optional<std::int64_t> low;  // integer: the inclusive bounds; number: `low` may be 0
  std::optional<std::int64_t> high;
  std::int64_t multiple = 1;                   // integer: the value is a multiple of this
  std::shared_ptr<const regex_dfa> pattern{};  // string: its characters, including the limits on their number
  /// literals: by text, the object node whose first member has this value; empty if the text selects no object.
  std::vector<std::uint32_t> goes_on{};
  sorted_texts texts{};                // literals: the values as JSON; object: the names of members
  std::vector<std::uint32_t> choices;  // choice: the alternatives; object: the nodes that `goes_on` may select
  byte_set first;                      // bytes that a value can begin with
  std::uint32_t height = 1;            // stack depth that its smallest value needs

  /// Greatest absolute value of a bound.
  static constexpr std::int64_t bound_max = 999'999'999'999'999;
  static constexpr std::uint32_t unique_max = 32;
  [[nodiscard]] bool is_bounded() const { return kind == value_kind::integer && (low || high || multiple > 1); }
  /// For bounded integers: whether some number within the bounds begins with, or is, these digits.
  [[nodiscard]] bool can_begin(bool negative, std::uint64_t digits) const;
  [[nodiscard]] bool contains(bool negative, std::uint64_t digits) const;
};

/// Accepts the JSON values of a schema. A pushdown automaton of bounded depth: one frame per open container.
class json_automaton final : public byte_automaton {
 public:
  /// nodes[0] is any value. Every index, `first` and `height` must be right. `whitespace_max` is the most whitespace
  /// between two tokens; if it is 1, only a space is allowed.
  json_automaton(std::vector<json_node> nodes, std::uint32_t root, std::uint32_t whitespace_max = whitespace_default)
      : nodes_(std::move(nodes)), root_(root), whitespace_max_(whitespace_max) {}

  /// Matches what models usually write: `{"a": 1, "b": 2}`.
  static constexpr std::uint32_t whitespace_default = 1;

  /// Greatest depth of the stack.
  static constexpr std::uint32_t frames_max = 30;

  [[nodiscard]] automaton_state begin() const override;
  using byte_automaton::advance;
  using byte_automaton::known_run;
  [[nodiscard]] bool advance(automaton_state& s, std::uint8_t byte, step_count& steps) const override;
  [[nodiscard]] bool is_accepting(const automaton_state& s) const override;
  [[nodiscard]] bool is_terminated(const automaton_state& s) const override { return s.size() == 1; }
  [[nodiscard]] std::string_view known_run(const automaton_state& s, step_count& steps) const override;
  [[nodiscard]] free_text_rule free_text_at(const automaton_state& s) const override;
  [[nodiscard]] bool is_valid(const automaton_state& s) const override;

 private:
  [[nodiscard]] bool fits(const automaton_state& s, std::uint32_t node) const;
  [[nodiscard]] bool begin_value(automaton_state& s, std::uint32_t node, std::uint8_t byte, step_count& steps) const;
  [[nodiscard]] bool in_object(automaton_state& s, std::uint8_t byte, step_count& steps) const;
  [[nodiscard]] bool in_key(automaton_state& s, std::uint8_t byte, step_count& steps) const;
  [[nodiscard]] bool in_array(automaton_state& s, std::uint8_t byte, step_count& steps) const;
  [[nodiscard]] bool in_string(automaton_state& s, std::uint8_t byte) const;
  [[nodiscard]] bool in_pattern(automaton_state& s, std::uint8_t byte) const;
  /// A bit for each text of the literal on top that the array around it already contains.
  [[nodiscard]] std::uint32_t used_literals(const automaton_state& s) const;
  void end_literal(automaton_state& s, std::uint32_t index) const;
  [[nodiscard]] std::string_view known_of_literal(const automaton_state& s, step_count& steps) const;
  [[nodiscard]] std::string_view known_of_name(const automaton_state& s, step_count& steps) const;
  [[nodiscard]] std::string_view known_of_pattern(const automaton_state& s) const;
  [[nodiscard]] std::string_view known_sign(const automaton_state& s, step_count& steps) const;
  [[nodiscard]] bool in_literal(automaton_state& s, std::uint8_t byte, step_count& steps) const;
  [[nodiscard]] bool in_number(automaton_state& s, std::uint8_t byte, step_count& steps) const;
  [[nodiscard]] bool in_bounded(automaton_state& s, std::uint8_t byte, step_count& steps) const;
  [[nodiscard]] bool number_may_stop(const automaton_state& s) const;
  /// The first member from `from` on that may be written here; members.size() if there is none.
  [[nodiscard]] std::uint32_t find_member(const json_node& n, std::uint32_t from, const automaton_state& s,
                                          step_count& steps) const;
  /// Whether member i may be the one whose name is being written.
  [[nodiscard]] bool may_be_member(const json_node& n, std::uint32_t i, const automaton_state& s,
                                   step_count& steps) const;

  std::vector<json_node> nodes_;
  std::uint32_t root_;
  std::uint32_t whitespace_max_;
};

/// The texts that match a regular expression.
class regex_automaton final : public byte_automaton {
 public:
  explicit regex_automaton(regex_dfa texts) : texts_(std::move(texts)) {}

  [[nodiscard]] automaton_state begin() const override;
  using byte_automaton::advance;
  using byte_automaton::known_run;
  [[nodiscard]] bool advance(automaton_state& s, std::uint8_t byte, step_count& steps) const override;
  [[nodiscard]] bool is_accepting(const automaton_state& s) const override { return texts_.accepts(s[0]); }
  [[nodiscard]] bool is_terminated(const automaton_state& s) const override { return !texts_.goes_on(s[0]); }
  [[nodiscard]] std::string_view known_run(const automaton_state& s, step_count&) const override {
    return texts_.only_byte(s[0]);
  }
  [[nodiscard]] bool is_valid(const automaton_state& s) const override {
    return s.size() == 1 && s[0] < texts_.states_count();
  }

 private:
  regex_dfa texts_;
};

}  // namespace redline::grammar
