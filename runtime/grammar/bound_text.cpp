#include "runtime/grammar/bound_text.hpp"

#include <algorithm>
#include <array>

#include "runtime/tools/call_format.hpp"

namespace redline::grammar {
namespace {

// A state is the number of bytes of the end so far, whether the text may continue, and if so the state in the string.
enum cell : std::size_t { end_bytes, has_text, own_cells };

constexpr auto element_end = tools::element_end;

automaton_state text_of(const automaton_state& s) { return automaton_state(s.cells().subspan(own_cells)); }

automaton_state state_of(std::uint32_t matched, const automaton_state* text) {
  automaton_state s;
  s.push(matched);
  s.push(text != nullptr ? 1 : 0);
  if (text != nullptr) {
    for (const auto c : text->cells()) s.push(c);
  }
  return s;
}

/// A byte of a text as it appears in a JSON string, escaped as the JSON writer does it.
struct spelling {
  std::array<char, 6> bytes{};
  std::size_t count = 0;
};

spelling spell(std::uint8_t byte) {
  static constexpr std::string_view plain = "\"\\\b\f\n\r\t", letters = "\"\\bfnrt", digits = "0123456789abcdef";
  if (const auto at = plain.find(static_cast<char>(byte)); at != std::string_view::npos)
    return {{'\\', letters[at]}, 2};
  if (byte >= 0x20) return {{static_cast<char>(byte)}, 1};
  return {{'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]}, 6};
}

}  // namespace

automaton_state bound_text::begin() const {
  automaton_state text = strings_->begin();
  const bool has_strings = strings_->advance(text, '"');
  return state_of(0, has_strings ? &text : nullptr);
}

bool bound_text::may_end(const automaton_state& text, step_count& steps) const {
  automaton_state closed = text;
  return strings_->advance(closed, '"', steps) && strings_->is_terminated(closed);
}

bool bound_text::advance(automaton_state& s, std::uint8_t byte, step_count& steps) const {
  if (is_terminated(s)) return false;
  const bool goes_on = s[has_text] != 0;
  automaton_state text = goes_on ? text_of(s) : automaton_state();
  std::uint32_t matched = s[end_bytes];
  if (matched > 0) {
    matched = static_cast<std::uint8_t>(element_end[matched]) == byte ? matched + 1 : 0;
  }
  if (static_cast<std::uint8_t>(element_end.front()) == byte) matched = goes_on && may_end(text, steps) ? 1 : 0;
  const spelling spelt = spell(byte);
  const bool fits = goes_on && matched < element_end.size() &&
                    std::all_of(spelt.bytes.begin(), spelt.bytes.begin() + spelt.count,
                                [&](char c) { return strings_->advance(text, static_cast<std::uint8_t>(c), steps); });
  s = state_of(matched, fits ? &text : nullptr);
  return fits || matched > 0;
}

bool bound_text::is_terminated(const automaton_state& s) const { return s[end_bytes] == element_end.size(); }

std::string_view bound_text::known_run(const automaton_state& s, step_count& steps) const {
  if (s[has_text] == 0) return element_end.substr(s[end_bytes]);
  if (s[end_bytes] > 0) return {};
  const auto run = strings_->known_run(text_of(s), steps);
  if (run.starts_with('"')) return element_end;
  return run.substr(0, std::min(run.find_first_of("\"\\"), run.size()));
}

byte_automaton::free_text_rule bound_text::free_text_at(const automaton_state& s) const {
  if (s[has_text] == 0) return {};
  auto rule = strings_->free_text_at(text_of(s));
  if (rule.table == nullptr) return {};
  rule.exit_byte = static_cast<std::uint8_t>(element_end[s[end_bytes]]);
  return rule;
}

bool bound_text::is_lost(const automaton_state& s) const { return s[has_text] != 0 && strings_->is_lost(text_of(s)); }

bool bound_text::is_valid(const automaton_state& s) const {
  if (s.size() < own_cells || s[end_bytes] > element_end.size() || s[has_text] > 1) return false;
  if (s[has_text] == 0) return s.size() == own_cells && s[end_bytes] > 0;
  return strings_->is_valid(text_of(s));
}

}  // namespace redline::grammar
