#include "runtime/grammar/tool_automaton.hpp"

#include <algorithm>
#include <utility>

#include "runtime/base/assert.hpp"
#include "runtime/grammar/syntax/steps.hpp"

namespace redline::grammar {
namespace {

// A state is the phase, the number of its bytes so far (in a fork also which of its two texts fit), the tool (in a
// name, the first that fits), the element (before its name, the next that may come; in it, the first that fits), and
// then the state of the inner automaton, if there is one.
enum cell : std::size_t { at, count, tool, element, own_cells };

// Bits in a fork's count for the texts that fit so far.
constexpr std::uint32_t may_go_on = 1U << 16;
constexpr std::uint32_t may_end = 1U << 17;
constexpr std::uint32_t fork_bytes = may_go_on - 1;

constexpr std::size_t known_bytes_max = 256;

using phase = tool_automaton::phase;

/// Any bytes but this one.
const free_text& text_without(char byte) {
  static const free_text less_than(~byte_set().set('<'));
  static const free_text bracket(~byte_set().set('['));
  static const free_text line_feed(~byte_set().set('\n'));
  return byte == '<' ? less_than : byte == '[' ? bracket : line_feed;
}

automaton_state inner_of(const automaton_state& s) { return automaton_state(s.cells().subspan(own_cells)); }

void set_inner(automaton_state& s, const automaton_state& inner) {
  s.drop(s.size() - own_cells);
  for (const auto c : inner.cells()) s.push(c);
}

}  // namespace

tool_automaton::tool_automaton(rules r) : rules_(std::move(r)) {
  const auto& f = *rules_.format;
  REDLINE_ASSERT(!rules_.tools.empty() && (f.begin.front() == '<' || f.begin.front() == '['), "known formats");
  std::vector<std::string> names;
  for (const auto& t : rules_.tools) names.push_back(t.name);
  names_ = sorted_texts(std::move(names));
  REDLINE_ASSERT(names_.count() == rules_.tools.size(), "tools have different names");
  opening_ = f.bare_begin.empty() ? std::string(f.begin) + std::string(f.before_name) : std::string(f.bare_begin);
  element_end_ = std::string(tools::element_end) + "\n";
}

automaton_state tool_automaton::begin() const {
  automaton_state s;
  for (std::size_t i = 0; i < own_cells; ++i) s.push(0);
  const auto first = rules_.must_call ? phase::opening : rules_.format->bare_begin.empty() ? phase::text : phase::bare;
  s[at] = static_cast<std::uint32_t>(first);
  return s;
}

std::string_view tool_automaton::literal_of(phase p) const {
  switch (p) {
    case phase::opening:
      return opening_;
    case phase::before_name:
      return rules_.format->before_name;
    case phase::after_name:
      return rules_.format->after_name;
    case phase::after_element:
      return tools::element_after_name;
    case phase::end_element:
      return element_end_;
    case phase::after_arguments:
      return rules_.format->after_arguments;
    default:
      return {};
  }
}

// ---- from one phase to the next ------------------------------------------------------------------------------------

void tool_automaton::enter(automaton_state& s, phase p) const {
  s.drop(s.size() - own_cells);
  s[at] = static_cast<std::uint32_t>(p);
  s[count] = 0;
  switch (p) {
    case phase::name:
      s[tool] = 0;
      break;
    case phase::before_name:
    case phase::after_arguments:
      if (literal_of(p).empty()) leave_literal(s);
      break;
    case phase::next_element:
    case phase::next_call: {
      const fork texts = fork_of(s);
      s[count] = (texts.go_on.empty() ? 0 : may_go_on) | (texts.end.empty() ? 0 : may_end);
      break;
    }
    default:
      break;
  }
}

void tool_automaton::enter_json(automaton_state& s, phase p, const byte_automaton& json) const {
  enter(s, p);
  set_inner(s, json.begin());
}

void tool_automaton::leave_literal(automaton_state& s) const {
  switch (phase_of(s)) {
    case phase::opening:
    case phase::before_name:
      return enter(s, phase::name);
    case phase::after_name:
      s[element] = 0;
      if (rules_.format->has_elements) return enter(s, phase::next_element);
      return enter_json(s, phase::arguments, *tool_of(s).arguments);
    case phase::after_element:
      if (element_of(s).value) return enter_json(s, phase::element_json, *element_of(s).value);
      if (element_of(s).text) return enter_json(s, phase::element_bound, *element_of(s).text);
      return enter(s, phase::element_text);
    case phase::end_element:
      ++s[element];
      return enter(s, phase::next_element);
    default:  // after_arguments
      if (!rules_.format->next.empty()) return enter(s, phase::next_call);
      return leave_call(s);
  }
}

void tool_automaton::leave_call(automaton_state& s) const {
  s[tool] = s[element] = 0;
  enter(s, rules_.many && !rules_.format->ends_answer ? phase::text : phase::done);
}

// ---- bytes ---------------------------------------------------------------------------------------------------------

bool tool_automaton::advance(automaton_state& s, std::uint8_t byte, step_count& steps) const {
  steps.add();
  switch (phase_of(s)) {
    case phase::text:
      return in_text(s, byte);
    case phase::bare:
    case phase::bare_name:
      return in_bare(s, byte, steps);
    case phase::name:
      return in_name(s, byte, steps);
    case phase::arguments:
    case phase::element_json:
      return in_json(s, byte, steps);
    case phase::next_element:
    case phase::next_call:
      return in_fork(s, byte);
    case phase::element_name:
      return in_element_name(s, byte, steps);
    case phase::element_text:
      return in_element_text(s, byte);
    case phase::element_bound:
      return in_element_bound(s, byte, steps);
    case phase::done:
    case phase::last_:
      return false;
    default:
      return in_literal(s, byte);
  }
}

/// In markup, a control token stands for its text. In free text it may be anywhere, as without a grammar, and in names
/// and values nowhere.
bool tool_automaton::advance_control(automaton_state& s, std::string_view text) const {
  const auto p = phase_of(s);
  if (p == phase::arguments || p == phase::element_text || p == phase::element_json || p == phase::element_bound ||
      p == phase::done) {
    return false;
  }
  if (!tools::shows_control(*rules_.format, text)) return is_free(s);
  return std::all_of(text.begin(), text.end(), [&](char c) { return advance(s, static_cast<std::uint8_t>(c)); });
}

bool tool_automaton::in_text(automaton_state& s, std::uint8_t byte) const {
  const auto begin = rules_.format->begin;
  if (static_cast<std::uint8_t>(begin[s[count]]) != byte) {
    s[count] = static_cast<std::uint8_t>(begin.front()) == byte ? 1 : 0;  // it occurs only once in `begin`
  } else if (++s[count] == begin.size()) {
    enter(s, phase::before_name);
  }
  return true;
}

bool tool_automaton::in_bare(automaton_state& s, std::uint8_t byte, step_count& steps) const {
  if (phase_of(s) == phase::bare) {
    const auto begin = rules_.format->bare_begin;
    if (static_cast<std::uint8_t>(begin[s[count]]) == byte) {
      if (++s[count] < begin.size()) return true;
      enter(s, phase::name);
      s[at] = static_cast<std::uint32_t>(phase::bare_name);
      return true;
    }
  } else if (in_name(s, byte, steps)) {
    if (phase_of(s) == phase::name) s[at] = static_cast<std::uint32_t>(phase::bare_name);
    return true;
  }
  s[tool] = 0;
  enter(s, phase::text);
  return in_text(s, byte);
}

bool tool_automaton::in_literal(automaton_state& s, std::uint8_t byte) const {
  const auto text = literal_of(phase_of(s));
  if (static_cast<std::uint8_t>(text[s[count]]) != byte) return false;
  if (++s[count] == text.size()) leave_literal(s);
  return true;
}

sorted_texts::range tool_automaton::names_alike(const automaton_state& s, step_count& steps) const {
  return {s[tool], names_.find_alike(s[tool], s[count], steps).end};
}

bool tool_automaton::in_name(automaton_state& s, std::uint8_t byte, step_count& steps) const {
  const auto go_on = names_.narrow(names_alike(s, steps), s[count], byte, steps);
  if (!go_on.is_empty()) {
    s[tool] = go_on.begin;
    ++s[count];
    return true;
  }
  // Among names with a common beginning, the shortest comes first.
  if (s[count] == 0 || names_[s[tool]].size() != s[count]) return false;
  if (static_cast<std::uint8_t>(rules_.format->after_name.front()) != byte) return false;
  enter(s, phase::after_name);
  return in_literal(s, byte);
}

bool tool_automaton::in_json(automaton_state& s, std::uint8_t byte, step_count& steps) const {
  const byte_automaton& json = *inner_automaton(s);
  automaton_state here = inner_of(s);
  automaton_state after = here;
  if (json.advance(after, byte, steps)) {
    if (!json.is_terminated(after)) {
      set_inner(s, after);
    } else {
      enter(s, phase_of(s) == phase::arguments ? phase::after_arguments : phase::end_element);
    }
    return true;
  }
  // A number may continue or end here.
  if (phase_of(s) != phase::element_json || !json.is_accepting(here)) return false;
  enter(s, phase::end_element);
  return in_literal(s, byte);
}

tool_automaton::fork tool_automaton::fork_of(const automaton_state& s) const {
  const auto& f = *rules_.format;
  if (phase_of(s) == phase::next_call) return {rules_.many ? f.next : std::string_view{}, f.end};
  const auto& elements = tool_of(s).elements;
  const bool is_more = s[element] < elements.size();
  const bool must_go_on = is_more && elements[last_element(s)].required;
  return {is_more ? tools::element_begin : std::string_view{}, must_go_on ? std::string_view{} : f.after_arguments};
}

bool tool_automaton::in_fork(automaton_state& s, std::uint8_t byte) const {
  const fork texts = fork_of(s);
  const std::uint32_t done = s[count] & fork_bytes;
  const auto fits = [&](std::string_view text, std::uint32_t flag) {
    return (s[count] & flag) != 0 && static_cast<std::uint8_t>(text[done]) == byte;
  };
  const bool goes_on = fits(texts.go_on, may_go_on);
  const bool ends = fits(texts.end, may_end);
  if (!goes_on && !ends) return false;
  s[count] = (done + 1) | (goes_on ? may_go_on : 0) | (ends ? may_end : 0);
  if (goes_on && done + 1 == texts.go_on.size()) {
    enter(s, phase_of(s) == phase::next_call ? phase::name : phase::element_name);
  } else if (ends && done + 1 == texts.end.size()) {
    leave_call(s);
  }
  return true;
}

/// The last element, from s[element] on, that may come next: the first that is required.
std::uint32_t tool_automaton::last_element(const automaton_state& s) const {
  const auto& elements = tool_of(s).elements;
  auto i = s[element];
  while (i + 1 < elements.size() && !elements[i].required) ++i;
  return i;
}

/// Whether element i may come next and its name begins with what is written.
bool tool_automaton::may_be_element(const automaton_state& s, std::uint32_t i, step_count& steps) const {
  steps.add();
  const auto& elements = tool_of(s).elements;
  const auto written = std::string_view(elements[s[element]].name).substr(0, s[count]);
  return i >= s[element] && i <= last_element(s) && std::string_view(elements[i].name).starts_with(written);
}

bool tool_automaton::in_element_name(automaton_state& s, std::uint8_t byte, step_count& steps) const {
  const auto& elements = tool_of(s).elements;
  for (std::uint32_t i = s[element]; i <= last_element(s); ++i) {
    const auto& name = elements[i].name;
    if (!may_be_element(s, i, steps) || name.size() <= s[count] || static_cast<std::uint8_t>(name[s[count]]) != byte)
      continue;
    s[element] = i;
    ++s[count];
    return true;
  }
  if (static_cast<std::uint8_t>(tools::element_after_name.front()) != byte) return false;
  for (std::uint32_t i = s[element]; i <= last_element(s); ++i) {
    if (!may_be_element(s, i, steps) || elements[i].name.size() != s[count]) continue;
    s[element] = i;
    enter(s, phase::after_element);
    return in_literal(s, byte);
  }
  return false;
}

bool tool_automaton::in_element_text(automaton_state& s, std::uint8_t byte) const {
  const auto end = tools::element_end;
  if (static_cast<std::uint8_t>(end[s[count]]) != byte) {
    s[count] = static_cast<std::uint8_t>(end.front()) == byte ? 1 : 0;
  } else if (++s[count] == end.size()) {
    enter(s, phase::end_element);
    s[count] = static_cast<std::uint32_t>(end.size());
  }
  return true;
}

bool tool_automaton::in_element_bound(automaton_state& s, std::uint8_t byte, step_count& steps) const {
  const bound_text& text = *element_of(s).text;
  automaton_state inner = inner_of(s);
  if (!text.advance(inner, byte, steps)) return false;
  if (text.is_terminated(inner)) {
    enter(s, phase::end_element);
    s[count] = static_cast<std::uint32_t>(tools::element_end.size());
  } else {
    set_inner(s, inner);
    s[count] = bound_text::matched(inner);
  }
  return true;
}

// ---- what may follow -----------------------------------------------------------------------------------------------

const byte_automaton* tool_automaton::inner_automaton(const automaton_state& s) const {
  if (phase_of(s) == phase::arguments) return tool_of(s).arguments.get();
  if (phase_of(s) == phase::element_bound) return element_of(s).text.get();
  return phase_of(s) == phase::element_json ? element_of(s).value.get() : nullptr;
}

bool tool_automaton::is_accepting(const automaton_state& s) const { return is_free(s) || is_terminated(s); }

bool tool_automaton::is_markup(const automaton_state& s) const {
  switch (phase_of(s)) {
    case phase::text:
    case phase::bare:
    case phase::bare_name:
    case phase::arguments:
    case phase::element_name:
    case phase::element_text:
    case phase::element_json:
    case phase::element_bound:
    case phase::done:
    case phase::last_:
      return false;
    case phase::name:
      return s[count] > 0 && names_[s[tool]].size() == s[count];
    default:
      return true;
  }
}

std::string_view tool_automaton::known_run(const automaton_state& s, step_count& steps) const {
  const auto p = phase_of(s);
  if (const auto literal = literal_of(p); !literal.empty()) return literal.substr(s[count]);
  switch (p) {
    case phase::name: {
      const auto alike = names_alike(s, steps);
      const bool is_one = alike.end - alike.begin == 1;
      if (is_one && names_[s[tool]].size() == s[count]) return rules_.format->after_name;
      return names_.find_continuation(alike, s[count], known_bytes_max, steps);
    }
    case phase::next_element:
    case phase::next_call: {
      const fork texts = fork_of(s);
      const std::uint32_t done = s[count] & fork_bytes;
      if ((s[count] & may_end) == 0) return texts.go_on.substr(done);
      if ((s[count] & may_go_on) == 0) return texts.end.substr(done);
      return {};
    }
    case phase::arguments:
    case phase::element_json:
    case phase::element_bound:
      return inner_automaton(s)->known_run(inner_of(s), steps);
    default:
      return {};
  }
}

byte_automaton::free_text_rule tool_automaton::free_text_at(const automaton_state& s) const {
  const auto& f = *rules_.format;
  const auto text = [&](std::optional<std::uint8_t> exit) {
    return free_text_rule{.table = &text_without(f.begin.front()), .exit_byte = exit};
  };
  switch (phase_of(s)) {
    case phase::text:
      return text(static_cast<std::uint8_t>(f.begin[s[count]]));
    case phase::bare:
      return text(static_cast<std::uint8_t>(f.bare_begin[s[count]]));
    case phase::bare_name: {
      step_count steps;  // a few: only one byte is asked for
      const auto alike = names_alike(s, steps);
      const auto next = names_.find_continuation(alike, s[count], 1, steps);
      if (!next.empty()) return text(static_cast<std::uint8_t>(next.front()));
      if (alike.end - alike.begin == 1) return text(static_cast<std::uint8_t>(f.after_name.front()));
      return {};
    }
    case phase::element_text:
      return {.table = &text_without('\n'), .exit_byte = static_cast<std::uint8_t>(tools::element_end[s[count]])};
    case phase::arguments:
    case phase::element_json:
    case phase::element_bound:
      return inner_automaton(s)->free_text_at(inner_of(s));
    default:
      return {};
  }
}

byte_set tool_automaton::possible_bytes(const automaton_state& s) const {
  if (phase_of(s) != phase::arguments) return byte_automaton::possible_bytes(s);
  return inner_automaton(s)->possible_bytes(inner_of(s));
}

byte_automaton::byte_kinds tool_automaton::kinds_of_bytes(const automaton_state& s) const {
  if (phase_of(s) != phase::arguments) return byte_automaton::kinds_of_bytes(s);
  return inner_automaton(s)->kinds_of_bytes(inner_of(s));
}

bool tool_automaton::is_lost(const automaton_state& s) const {
  const byte_automaton* inner = inner_automaton(s);
  return inner != nullptr && (s.size() > automaton_state::cells_max || inner->is_lost(inner_of(s)));
}

bool tool_automaton::is_valid(const automaton_state& s) const {
  if (s.size() < own_cells || s[at] >= static_cast<std::uint32_t>(phase::last_)) return false;
  const auto& f = *rules_.format;
  const auto p = phase_of(s);
  if (s[tool] >= rules_.tools.size()) return false;
  const auto& elements = tool_of(s).elements;
  const bool has_element = p == phase::element_json || p == phase::element_bound;
  if (const byte_automaton* inner = has_element && s[element] >= elements.size() ? nullptr : inner_automaton(s)) {
    return inner->is_valid(inner_of(s)) && (p != phase::element_bound || s[count] == bound_text::matched(inner_of(s)));
  }
  if (s.size() != own_cells) return false;
  switch (p) {
    case phase::text:
      return s[count] < f.begin.size();
    case phase::bare:
      return s[count] < f.bare_begin.size();
    case phase::bare_name:
      return !f.bare_begin.empty() && s[count] <= names_[s[tool]].size();
    case phase::name:
      return s[count] <= names_[s[tool]].size();
    case phase::after_element:
    case phase::end_element:
      return s[element] < elements.size() && s[count] < literal_of(p).size();
    case phase::element_name:
      return s[element] < elements.size() && s[count] <= elements[s[element]].name.size();
    case phase::element_text:
      return s[element] < elements.size() && s[count] < tools::element_end.size();
    case phase::next_element:
    case phase::next_call: {
      if (p == phase::next_element ? !f.has_elements || s[element] > elements.size() : f.next.empty()) return false;
      const fork texts = fork_of(s);
      const std::uint32_t done = s[count] & fork_bytes;
      const auto fits = [&](std::string_view text, std::uint32_t flag) {
        return (s[count] & flag) == 0 || done < text.size();
      };
      return s[count] >= may_go_on && s[count] <= (fork_bytes | may_go_on | may_end) && fits(texts.go_on, may_go_on) &&
             fits(texts.end, may_end);
    }
    case phase::arguments:  // no inner automaton: the format has elements
    case phase::element_json:
    case phase::element_bound:
      return false;
    case phase::done:
      return true;
    default:
      return s[count] < literal_of(p).size();
  }
}

}  // namespace redline::grammar
