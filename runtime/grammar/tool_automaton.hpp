#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/grammar/automata/rules_automaton.hpp"
#include "runtime/grammar/schema/schema_rules.hpp"
#include "runtime/tools/call_format.hpp"

namespace redline::grammar {

/// A tool as an answer may call it.
struct callable_tool {
  std::string name;
  std::vector<written_element> elements;  // for formats with elements, in the order in which they are written
};

/// Answers that may call tools: any text up to the beginning of a call, then the call with arguments that follow the
/// tool's schema, then text again or the next call of a list. Text before and between calls is unrestricted, so drafts
/// and sampling work there as they do without a grammar. It also has what tool_reader needs to read such an answer.
class tool_automaton final : public rules_automaton {
 public:
  /// tools: by name, ascending.
  tool_automaton(rules_automaton rules, const tools::call_format& format, std::vector<callable_tool> tools)
      : rules_automaton(std::move(rules)), format_(format), tools_(std::move(tools)) {}

  [[nodiscard]] const tools::call_format& format() const { return format_; }
  [[nodiscard]] const std::vector<callable_tool>& callable() const { return tools_; }
  /// Whether the text is in a JSON object of arguments, or one begins.
  [[nodiscard]] bool is_in_arguments(const automaton_state& s) const {
    return !format_.has_elements && !is_markup(s) && !is_terminated(s) && !is_lost(s);
  }

  /// In markup, a control token stands for its text. In free text it may be anywhere, as without a grammar, and in
  /// values nowhere.
  [[nodiscard]] bool advance_control(automaton_state& s, std::string_view text) const override {
    if (!tools::shows_control(format_, text)) return is_free(s);
    return is_markup(s) && std::ranges::all_of(text, [&](char c) { return advance(s, static_cast<std::uint8_t>(c)); });
  }

 private:
  const tools::call_format& format_;
  std::vector<callable_tool> tools_;
};

}  // namespace redline::grammar
