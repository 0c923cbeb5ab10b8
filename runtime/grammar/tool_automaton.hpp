#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/grammar/bound_text.hpp"
#include "runtime/grammar/byte_automaton.hpp"
#include "runtime/grammar/sorted_texts.hpp"
#include "runtime/tools/call_format.hpp"

namespace redline::grammar {

/// One parameter of a call whose arguments are elements.
struct tool_element {
  std::string name;
  bool required = false;
  std::shared_ptr<const byte_automaton> value;  // JSON; null for raw text up to the element's end
  std::shared_ptr<const bound_text> text;       // raw text that a schema restricts; null for any
};

/// A tool as an answer may call it.
struct callable_tool {
  std::string name;
  std::shared_ptr<const byte_automaton> arguments;  // a JSON object; null for formats with elements
  std::vector<tool_element> elements;               // in the order in which they are written
};

/// Answers that may call tools: any text up to the beginning of a call, then the call with arguments that follow the
/// tool's schema, then text again or the next call of a list. Text before and between calls is unrestricted, so drafts
/// and sampling work there as they do without a grammar. tool_reader reads answers with the same automaton.
class tool_automaton final : public byte_automaton {
 public:
  struct rules {
    const tools::call_format* format = nullptr;
    std::vector<callable_tool> tools;  // not empty; by name, ascending
    bool must_call = false;            // the answer is a call from its first byte
    bool many = true;                  // more than one call is allowed
  };
  explicit tool_automaton(rules r);

  /// What the next byte of an answer belongs to.
  enum class phase : std::uint32_t {
    text,             // text, as far as is known
    bare,             // perhaps a call without its `begin`
    bare_name,        // perhaps the name of such a call
    opening,          // markup at the beginning of an answer that must call
    before_name,      // markup
    name,             // a name, or the markup after it
    after_name,       // markup
    arguments,        // JSON
    next_element,     // markup: another element, or the end of the arguments
    element_name,     // a name, or the markup after it
    after_element,    // markup
    element_text,     // a value, or its end
    element_json,     // a value, or its end
    end_element,      // markup
    after_arguments,  // markup
    next_call,        // markup: another call of the list, or its end
    done,             // nothing follows
    element_bound,    // a text that a schema restricts, or its end
    last_,
  };
  [[nodiscard]] static phase phase_of(const automaton_state& s) { return static_cast<phase>(s[0]); }
  /// The tool of a call whose name is complete.
  [[nodiscard]] const callable_tool& tool_of(const automaton_state& s) const { return rules_.tools[s[2]]; }
  /// The current element, if its name is complete.
  [[nodiscard]] const tool_element& element_of(const automaton_state& s) const { return tool_of(s).elements[s[3]]; }
  /// How many of the last bytes may be the beginning of a call, or of a value's end.
  [[nodiscard]] static std::uint32_t matched(const automaton_state& s) { return s[1]; }
  [[nodiscard]] const tools::call_format& format() const { return *rules_.format; }

  [[nodiscard]] automaton_state begin() const override;
  using byte_automaton::advance;
  using byte_automaton::known_run;
  [[nodiscard]] bool advance(automaton_state& s, std::uint8_t byte, step_count& steps) const override;
  [[nodiscard]] bool advance_control(automaton_state& s, std::string_view text) const override;
  [[nodiscard]] bool is_accepting(const automaton_state& s) const override;
  [[nodiscard]] bool is_terminated(const automaton_state& s) const override { return phase_of(s) == phase::done; }
  [[nodiscard]] bool is_free(const automaton_state& s) const override { return phase_of(s) <= phase::bare_name; }
  [[nodiscard]] bool is_markup(const automaton_state& s) const override;
  [[nodiscard]] std::string_view known_run(const automaton_state& s, step_count& steps) const override;
  [[nodiscard]] free_text_rule free_text_at(const automaton_state& s) const override;
  [[nodiscard]] byte_set possible_bytes(const automaton_state& s) const override;
  [[nodiscard]] byte_kinds kinds_of_bytes(const automaton_state& s) const override;
  [[nodiscard]] bool is_lost(const automaton_state& s) const override;
  [[nodiscard]] bool is_valid(const automaton_state& s) const override;

 private:
  /// Two texts of which one follows. An empty one cannot follow.
  struct fork {
    std::string_view go_on;
    std::string_view end;
  };
  [[nodiscard]] std::string_view literal_of(phase at) const;
  [[nodiscard]] fork fork_of(const automaton_state& s) const;
  [[nodiscard]] sorted_texts::range names_alike(const automaton_state& s, step_count& steps) const;
  [[nodiscard]] std::uint32_t last_element(const automaton_state& s) const;
  [[nodiscard]] bool may_be_element(const automaton_state& s, std::uint32_t i, step_count& steps) const;
  /// The automaton that follows a value with a schema, in arguments or in one element; null elsewhere.
  [[nodiscard]] const byte_automaton* inner_automaton(const automaton_state& s) const;

  void enter(automaton_state& s, phase at) const;
  void enter_json(automaton_state& s, phase at, const byte_automaton& json) const;
  void leave_literal(automaton_state& s) const;
  void leave_call(automaton_state& s) const;
  [[nodiscard]] bool in_text(automaton_state& s, std::uint8_t byte) const;
  [[nodiscard]] bool in_bare(automaton_state& s, std::uint8_t byte, step_count& steps) const;
  [[nodiscard]] bool in_literal(automaton_state& s, std::uint8_t byte) const;
  [[nodiscard]] bool in_name(automaton_state& s, std::uint8_t byte, step_count& steps) const;
  [[nodiscard]] bool in_fork(automaton_state& s, std::uint8_t byte) const;
  [[nodiscard]] bool in_element_name(automaton_state& s, std::uint8_t byte, step_count& steps) const;
  [[nodiscard]] bool in_element_text(automaton_state& s, std::uint8_t byte) const;
  [[nodiscard]] bool in_element_bound(automaton_state& s, std::uint8_t byte, step_count& steps) const;
  [[nodiscard]] bool in_json(automaton_state& s, std::uint8_t byte, step_count& steps) const;

  rules rules_;
  sorted_texts names_;
  std::string opening_;
  std::string element_end_;
};

}  // namespace redline::grammar
