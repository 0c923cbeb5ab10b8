#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/grammar/automata/rules_automaton.hpp"

namespace redline::grammar {

inline std::shared_ptr<const rules_automaton> make(std::string_view text) {
  auto made = rules_automaton::compile(text);
  EXPECT_TRUE(made) << made.error().describe();
  return made ? *made : nullptr;
}

/// The state after the text; nullopt if some byte is not allowed.
inline std::optional<automaton_state> after(const byte_automaton& m, std::string_view text) {
  automaton_state s = m.begin();
  for (const char c : text) {
    EXPECT_TRUE(m.is_valid(s));
    if (!m.advance(s, static_cast<std::uint8_t>(c))) return std::nullopt;
  }
  EXPECT_TRUE(m.is_valid(s)) << text;
  return s;
}
inline bool accepts(const byte_automaton& m, std::string_view text) {
  const auto s = after(m, text);
  return s && m.is_accepting(*s);
}

inline std::string why_not(std::string_view text) {
  const auto made = rules_automaton::compile(text);
  return made ? "it was taken" : made.error().context;
}

inline void each_text(std::string_view letters, std::size_t most, const std::function<void(const std::string&)>& what) {
  std::string text;
  const std::function<void()> go_on = [&] {
    what(text);
    if (text.size() == most) return;
    for (const char c : letters) {
      text += c;
      go_on();
      text.pop_back();
    }
  };
  go_on();
}

/// Whether the grammar accepts the text.
inline bool accepts(std::string_view grammar, std::string_view text) {
  const auto m = make(grammar);
  return m && accepts(*m, text);
}

}  // namespace redline::grammar
