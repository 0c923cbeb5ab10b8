#include "runtime/grammar/json_automaton.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include "runtime/grammar/syntax/steps.hpp"

namespace redline::grammar {
namespace {

// A state is the number of consecutive whitespace characters and then a stack of frames, the innermost last. A frame
// has four cells: its kind, the node of the schema, and two whose meaning depends on the kind.
constexpr std::size_t frame_cells = 4;
enum cell : std::size_t { kind_cell, node_cell, a, b };

enum frame : std::uint32_t {
  value,         // a value is due
  object_begin,  // after "{"                            a: the next member
  object_key,    // in a declared name                   a: the first member that fits, b: bytes written
  object_colon,  // after a name                         a: the member
  object_next,   // after a value                        a: the next member
  object_comma,  // after a comma                        a: the next member
  array_begin,   // after "["
  array_next,    // after a value                        a: values so far, b: the used ones, if unique
  string,        //                                      a: see string_step, b: characters if counted, or pattern state
  literal,       //                                      a: the first literal that fits, b: bytes written
  number,        //                                      a: see number_step, b: digits of the part, or see number_of
  frames_count,
};

// Values below `backslash` are states of characters(); the first one, `text`, is between two characters.
enum string_step : std::uint32_t {
  text,
  backslash = free_text::states_max,
  hex1,
  hex2,
  hex2_no_surrogate,
  hex3,
  hex4,
  string_steps,
};
enum number_step : std::uint32_t { minus, zero, whole, dot, fraction, e, e_sign, exponent, negative, number_steps };

constexpr std::size_t known_bytes_max = 256;  // of a continuation of several texts; a caller asks again for the rest
constexpr std::uint32_t digits_max = 15;      // more would not survive a round trip through a double
constexpr std::uint32_t exponent_digits_max = 2;

bool is_whitespace(std::uint8_t byte) { return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t'; }
bool is_digit(std::uint8_t byte) { return byte >= '0' && byte <= '9'; }
bool is_hex(std::uint8_t byte) {
  return is_digit(byte) || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}

/// The characters that a JSON string may contain unescaped, as UTF-8.
const free_text& characters() {
  static const free_text table = free_text::characters(bytes_between(0x20, 0x7f).reset('"').reset('\\'));
  return table;
}

std::size_t top(const automaton_state& s) { return s.size() - frame_cells; }

void push(automaton_state& s, frame f, std::uint32_t node, std::uint32_t x = 0, std::uint32_t y = 0) {
  for (const std::uint32_t c : {static_cast<std::uint32_t>(f), node, x, y}) s.push(c);
}

bool counts_characters(const json_node& n) { return n.characters_min > 0 || n.characters_max != UINT32_MAX; }

// For a bounded integer, b is the lower half of the number so far; a contains the upper half above the step.
constexpr std::uint32_t step_bits = 8;
std::uint32_t step_of(const automaton_state& s, std::size_t t) { return s[t + a] & ((1U << step_bits) - 1); }
std::uint64_t number_of(const automaton_state& s, std::size_t t) {
  return std::uint64_t{s[t + a] >> step_bits} << 32 | s[t + b];
}
void set_number(automaton_state& s, std::size_t t, std::uint32_t step, std::uint64_t number) {
  s[t + a] = step | static_cast<std::uint32_t>(number >> 32) << step_bits;
  s[t + b] = static_cast<std::uint32_t>(number);
}

// The short escapes that patterns use, and what each stands for.
constexpr std::string_view escape_names = "\"\\bfnrt", escape_meanings = "\"\\\b\f\n\r\t";

std::optional<std::uint8_t> unescape(std::uint8_t byte) {
  const auto at = escape_names.find(static_cast<char>(byte));
  if (at == std::string_view::npos) return std::nullopt;
  return static_cast<std::uint8_t>(escape_meanings[at]);
}

/// The byte of a set that has exactly one, in static storage.
std::string_view the_only(const byte_set& of) {
  static constexpr auto bytes = [] {
    std::array<char, 256> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<char>(i);
    return all;
  }();
  std::size_t byte = 0;
  while (!of[byte]) ++byte;
  return {&bytes[byte], 1};
}

bool may_stop(std::uint32_t step) { return step == zero || step == whole || step == fraction || step == exponent; }

}  // namespace

bool json_node::contains(bool negative, std::uint64_t digits) const {
  const auto n = negative ? -static_cast<std::int64_t>(digits) : static_cast<std::int64_t>(digits);
  return (!low || n >= *low) && (!high || n <= *high) && !(negative && digits == 0) && n % multiple == 0;
}

bool json_node::can_begin(bool negative, std::uint64_t digits) const {
  if (digits == 0) return contains(negative, 0);
  constexpr std::int64_t most = bound_max;
  const std::int64_t least_size = std::max<std::int64_t>(1, negative ? -high.value_or(-1) : low.value_or(1));
  const std::int64_t most_size = negative ? -low.value_or(-most) : high.value_or(most);
  for (auto n = static_cast<std::int64_t>(digits), behind = std::int64_t{0}; n <= most_size;
       n *= 10, behind = behind * 10 + 9) {
    const std::int64_t from = std::max(n, least_size);
    const std::int64_t to = std::min(n + behind, most_size);
    if (from <= to && to / multiple * multiple >= from) return true;
  }
  return false;
}

automaton_state json_automaton::begin() const {
  automaton_state s;
  s.push(whitespace_max_);  // no whitespace before the value, which would only confuse the model
  push(s, value, root_);
  return s;
}

/// Whether the node's smallest value fits on top of the stack.
bool json_automaton::fits(const automaton_state& s, std::uint32_t node) const {
  return (s.size() - 1) / frame_cells + nodes_[node].height <= frames_max;
}

bool json_automaton::begin_value(automaton_state& s, std::uint32_t node, std::uint8_t byte, step_count& steps) const {
  const json_node& n = nodes_[node];
  if (!n.first[byte] || !fits(s, node)) return false;
  switch (n.kind) {
    case json_node::value_kind::choice:
      for (const auto c : n.choices) {
        if (nodes_[c].first[byte]) return begin_value(s, c, byte, steps);
      }
      return false;
    case json_node::value_kind::literals: {
      push(s, literal, node, 0, 0);
      return in_literal(s, byte, steps);
    }
    default:
      break;
  }
  if (byte == '{')
    push(s, object_begin, node);
  else if (byte == '[')
    push(s, array_begin, node);
  else if (byte == '"')
    push(s, string, node);
  else if (byte == '-')
    push(s, number, node, minus);
  else if (byte == '0')
    push(s, number, node, zero);
  else if (is_digit(byte))
    push(s, number, node, whole, n.is_bounded() ? byte - '0' : 1);
  else {  // any: true, false or null, the literals of node 1
    push(s, literal, 1, 0, 0);
    return in_literal(s, byte, steps);
  }
  return true;
}

bool json_automaton::advance(automaton_state& s, std::uint8_t byte, step_count& steps) const {
  steps.add();
  if (is_terminated(s)) return false;
  const std::size_t t = top(s);
  switch (s[t + kind_cell]) {
    case string:
      return in_string(s, byte);
    case literal:
      return in_literal(s, byte, steps);
    case number:
      return in_number(s, byte, steps);
    case object_key:
      return in_key(s, byte, steps);
    default:
      break;
  }
  if (is_whitespace(byte)) return ++s[0] <= whitespace_max_ && (whitespace_max_ > 1 || byte == ' ');
  s[0] = 0;
  if (s[t + kind_cell] == value) {
    const std::uint32_t node = s[t + node_cell];
    s.drop(frame_cells);
    return begin_value(s, node, byte, steps);
  }
  return s[t + kind_cell] == array_begin || s[t + kind_cell] == array_next ? in_array(s, byte, steps)
                                                                           : in_object(s, byte, steps);
}

std::uint32_t json_automaton::find_member(const json_node& n, std::uint32_t from, const automaton_state& s,
                                          step_count& steps) const {
  const auto count = static_cast<std::uint32_t>(n.members.size());
  if (from >= count) return count;
  for (std::uint32_t i = from; i <= n.members[from].last_choice; ++i, steps.add()) {
    if (fits(s, n.members[i].value)) return i;
  }
  return count;
}

bool json_automaton::may_be_member(const json_node& n, std::uint32_t i, const automaton_state& s,
                                   step_count& steps) const {
  steps.add();
  const std::uint32_t first = s[top(s) + a];
  return i >= first && i <= n.members[first].last_choice && fits(s, n.members[i].value);
}

bool json_automaton::in_object(automaton_state& s, std::uint8_t byte, step_count& steps) const {
  const std::size_t t = top(s);
  const json_node& n = nodes_[s[t + node_cell]];
  const std::uint32_t next = s[t + a];
  const bool declared = !n.members.empty();
  switch (s[t + kind_cell]) {
    case object_colon: {
      if (byte != ':') return false;
      const std::uint32_t node = declared ? n.members[next].value : n.other;
      const auto goes_on = declared ? n.members[next].goes_on : std::nullopt;
      s[t + kind_cell] = object_next;
      s[t + node_cell] = goes_on.value_or(s[t + node_cell]);
      s[t + a] = goes_on ? 1 : next + 1;
      push(s, value, node);
      return true;
    }
    case object_begin:
    case object_comma:
      if (byte == '"') {
        if (!declared) {
          if (!fits(s, n.other)) return false;
          s[t + kind_cell] = object_colon;
          push(s, string, 0);
          return true;
        }
        const auto member = find_member(n, next, s, steps);
        if (member >= n.members.size()) return false;
        s[t + kind_cell] = object_key;
        s[t + a] = member;
        s[t + b] = 1;
        return true;
      }
      if (s[t + kind_cell] == object_comma) return false;
      [[fallthrough]];
    default: {
      if (byte == ',' && s[t + kind_cell] == object_next) {
        if (declared && find_member(n, next, s, steps) >= n.members.size()) return false;
        if (!declared && !fits(s, n.other)) return false;
        s[t + kind_cell] = object_comma;
        return true;
      }
      if (byte != '}') return false;
      if (declared && next < n.members.size() && n.members[n.members[next].last_choice].required) return false;
      s.drop(frame_cells);
      return true;
    }
  }
}

bool json_automaton::in_key(automaton_state& s, std::uint8_t byte, step_count& steps) const {
  const std::size_t t = top(s);
  const json_node& n = nodes_[s[t + node_cell]];
  const std::uint32_t written = s[t + b];
  const auto alike = n.texts.find_alike(n.members[s[t + a]].name, written, steps);
  const auto go_on = n.texts.narrow(alike, written, byte, steps);
  auto member = static_cast<std::uint32_t>(n.members.size());
  // Usually the first member that fit so far still does, and no other comes before it.
  const std::uint32_t first = n.members[s[t + a]].name;
  const bool is_first = go_on.begin <= first && first < go_on.end && may_be_member(n, s[t + a], s, steps);
  if (is_first) member = s[t + a];
  for (std::uint32_t i = go_on.begin; !is_first && i < go_on.end; ++i) {
    if (n.by_name[i] < member && may_be_member(n, n.by_name[i], s, steps)) member = n.by_name[i];
  }
  if (member >= n.members.size()) return false;
  s[t + a] = member;
  if (++s[t + b] == n.texts[n.members[member].name].size()) {
    s[t + kind_cell] = object_colon;
    s[t + b] = 0;
  }
  return true;
}

bool json_automaton::in_array(automaton_state& s, std::uint8_t byte, step_count& steps) const {
  const std::size_t t = top(s);
  const json_node& n = nodes_[s[t + node_cell]];
  const std::uint32_t count = s[t + a];
  if (byte == ']' && count >= n.items_min) {
    s.drop(frame_cells);
    return true;
  }
  if (s[t + kind_cell] == array_next) {
    if (byte != ',' || count >= n.items_max || !fits(s, n.other)) return false;
    push(s, value, n.other);
    // Takes effect after the value, whose own frame is on top until then.
    s[t + a] = std::min(count + 1, UINT32_MAX - 1);
    return true;
  }
  if (n.items_max == 0) return false;
  s[t + kind_cell] = array_next;
  s[t + a] = 1;
  return begin_value(s, n.other, byte, steps);
}

bool json_automaton::in_string(automaton_state& s, std::uint8_t byte) const {
  const std::size_t t = top(s);
  std::uint32_t& step = s[t + a];
  const json_node& n = nodes_[s[t + node_cell]];
  if (n.pattern) return in_pattern(s, byte);
  if (step == text) {
    if (byte == '"') {
      if (s[t + b] < n.characters_min) return false;
      s.drop(frame_cells);
      return true;
    }
    if (counts_characters(n) && ++s[t + b] > n.characters_max) return false;
  }
  if (step < backslash) {
    if (step == text && byte == '\\') {
      step = backslash;
      return true;
    }
    const auto then = characters().next[step][byte];
    step = then;
    return then != free_text::outside;
  }
  const auto go = [&](bool right, std::uint32_t then) {
    step = then;
    return right;
  };
  switch (step) {
    case backslash:
      if (byte == 'u') return go(true, hex1);
      return go(byte == '"' || byte == '\\' || byte == '/' || byte == 'b' || byte == 'f' || byte == 'n' ||
                    byte == 'r' || byte == 't',
                text);
    // A lone surrogate is not a character. Characters that would need a pair can be written unescaped.
    case hex1:
      return go(is_hex(byte), byte == 'd' || byte == 'D' ? hex2_no_surrogate : hex2);
    case hex2:
      return go(is_hex(byte), hex3);
    case hex2_no_surrogate:
      return go(byte >= '0' && byte <= '7', hex3);
    case hex3:
      return go(is_hex(byte), hex4);
    case hex4:
      return go(is_hex(byte), text);
    default:
      return false;
  }
}

bool json_automaton::in_pattern(automaton_state& s, std::uint8_t byte) const {
  const std::size_t t = top(s);
  const regex_dfa& texts = *nodes_[s[t + node_cell]].pattern;
  const std::uint32_t at = s[t + b];
  if (s[t + a] == backslash) {
    const auto meant = unescape(byte);
    if (!meant || texts.next(at, *meant) == regex_dfa::dead) return false;
    s[t + a] = text;
    s[t + b] = texts.next(at, *meant);
    return true;
  }
  if (byte == '"') {
    if (!texts.accepts(at)) return false;
    s.drop(frame_cells);
    return true;
  }
  if (byte == '\\') {
    s[t + a] = backslash;
    for (const char c : escape_meanings) {
      if (texts.next(at, static_cast<std::uint8_t>(c)) != regex_dfa::dead) return true;
    }
    return false;
  }
  if (byte < 0x20 || texts.next(at, byte) == regex_dfa::dead) return false;
  s[t + b] = texts.next(at, byte);
  return true;
}

std::uint32_t json_automaton::used_literals(const automaton_state& s) const {
  if (s.size() < 1 + 2 * frame_cells) return 0;
  const std::size_t around = top(s) - frame_cells;
  return s[around + kind_cell] == array_next && nodes_[s[around + node_cell]].is_unique ? s[around + b] : 0;
}

/// Pops the literal on top, which is text `index` of its node. The text may select the object that contains it.
void json_automaton::end_literal(automaton_state& s, std::uint32_t index) const {
  const json_node& n = nodes_[s[top(s) + node_cell]];
  s.drop(frame_cells);
  if (s.size() > 1 && s[top(s) + kind_cell] == array_next && nodes_[s[top(s) + node_cell]].is_unique) {
    s[top(s) + b] |= 1U << index;
  }
  if (index >= n.goes_on.size() || s.size() == 1 || s[top(s) + kind_cell] != object_next) return;
  s[top(s) + node_cell] = n.goes_on[index];
  s[top(s) + a] = 1;
}

bool json_automaton::in_literal(automaton_state& s, std::uint8_t byte, step_count& steps) const {
  const std::size_t t = top(s);
  const sorted_texts& all = nodes_[s[t + node_cell]].texts;
  const std::uint32_t first = s[t + a];
  const std::uint32_t written = s[t + b];
  auto go_on = all.narrow({first, all.find_alike(first, written, steps).end}, written, byte, steps);
  if (const auto used = used_literals(s); used != 0) {
    while (!go_on.is_empty() && (used >> go_on.begin & 1U) != 0) ++go_on.begin;
    while (!go_on.is_empty() && (used >> (go_on.end - 1) & 1U) != 0) --go_on.end;
  }
  if (go_on.is_empty()) {
    if (written == 0 || all[first].size() != written) return false;
    end_literal(s, first);  // it was complete: the byte belongs to the enclosing value
    return advance(s, byte, steps);
  }
  s[t + a] = go_on.begin;
  s[t + b] = written + 1;
  // Among texts with a common beginning, the shortest comes first.
  const bool is_longest = go_on.end - go_on.begin == 1;
  if (is_longest && all[go_on.begin].size() == written + 1) end_literal(s, go_on.begin);
  return true;
}

std::string_view json_automaton::known_run(const automaton_state& s, step_count& steps) const {
  if (is_terminated(s)) return {};
  const std::size_t t = top(s);
  switch (s[t + kind_cell]) {
    case literal:
      return known_of_literal(s, steps);
    case object_key:
      return known_of_name(s, steps);
    case string:
      return nodes_[s[t + node_cell]].pattern ? known_of_pattern(s) : std::string_view{};
    case number:
      return {};
    default:
      // Whitespace may come first if some is still allowed.
      return s[0] < whitespace_max_ ? std::string_view{} : known_sign(s, steps);
  }
}

std::string_view json_automaton::known_of_literal(const automaton_state& s, step_count& steps) const {
  const std::size_t t = top(s);
  const sorted_texts& all = nodes_[s[t + node_cell]].texts;
  const std::uint32_t first = s[t + a];
  const std::uint32_t written = s[t + b];
  const auto alike = sorted_texts::range{first, all.find_alike(first, written, steps).end};
  // If the text is complete and no longer one begins with it, the enclosing value continues.
  if (written > 0 && alike.end - alike.begin == 1 && all[first].size() == written) {
    automaton_state after = s;
    end_literal(after, first);
    return known_run(after, steps);
  }
  return all.find_continuation(alike, written, known_bytes_max, steps);
}

std::string_view json_automaton::known_of_name(const automaton_state& s, step_count& steps) const {
  const std::size_t t = top(s);
  const json_node& n = nodes_[s[t + node_cell]];
  const std::uint32_t written = s[t + b];
  auto alike = n.texts.find_alike(n.members[s[t + a]].name, written, steps);
  while (!alike.is_empty() && !may_be_member(n, n.by_name[alike.begin], s, steps)) ++alike.begin;
  while (!alike.is_empty() && !may_be_member(n, n.by_name[alike.end - 1], s, steps)) --alike.end;
  return alike.is_empty() ? std::string_view{} : n.texts.find_continuation(alike, written, known_bytes_max, steps);
}

/// The next byte as JSON writes it: an escape, or the quote after a text that cannot be continued.
std::string_view json_automaton::known_of_pattern(const automaton_state& s) const {
  const std::size_t t = top(s);
  const regex_dfa& texts = *nodes_[s[t + node_cell]].pattern;
  const std::uint32_t at = s[t + b];
  if (!texts.goes_on(at)) return s[t + a] == backslash ? std::string_view{} : std::string_view("\"");
  const auto only = texts.only_byte(at);
  if (only.empty()) return {};
  const auto escape = escape_meanings.find(only.front());
  const bool is_escaped = escape != std::string_view::npos;
  if (s[t + a] == backslash) return is_escaped ? escape_names.substr(escape, 1) : std::string_view{};
  return is_escaped ? std::string_view("\\") : only;
}

/// The first byte of a value, or the punctuation around it, where no whitespace may come.
std::string_view json_automaton::known_sign(const automaton_state& s, step_count& steps) const {
  const std::size_t t = top(s);
  const json_node& n = nodes_[s[t + node_cell]];
  const bool declared = !n.members.empty();
  switch (s[t + kind_cell]) {
    case value: {
      automaton_state around = s;
      around.drop(frame_cells);
      return n.first.count() == 1 && fits(around, s[t + node_cell]) ? the_only(n.first) : std::string_view{};
    }
    case object_colon:
      return ":";
    case object_comma:
      return (declared ? find_member(n, s[t + a], s, steps) < n.members.size() : fits(s, n.other)) ? "\"" : "";
    case array_begin:
      return n.items_max == 0 && s[t + a] >= n.items_min ? "]" : "";
    case array_next: {
      const bool may_go_on = s[t + a] < n.items_max && fits(s, n.other);
      const bool may_end = s[t + a] >= n.items_min;
      if (may_go_on == may_end) return {};
      return may_end ? "]" : ",";
    }
    case object_begin:
    case object_next: {
      const std::uint32_t next = s[t + a];
      const bool may_go_on = declared ? find_member(n, next, s, steps) < n.members.size() : fits(s, n.other);
      const bool may_end = !(declared && next < n.members.size() && n.members[n.members[next].last_choice].required);
      if (may_go_on == may_end) return {};
      if (may_end) return "}";
      return s[t + kind_cell] == object_begin ? "\"" : ",";
    }
    default:
      return {};
  }
}

bool json_automaton::in_bounded(automaton_state& s, std::uint8_t byte, step_count& steps) const {
  const std::size_t t = top(s);
  const json_node& n = nodes_[s[t + node_cell]];
  if (!is_digit(byte)) {
    if (!number_may_stop(s)) return false;
    s.drop(frame_cells);
    return advance(s, byte, steps);
  }
  const std::uint32_t step = step_of(s, t);
  const std::uint32_t digit = byte - '0';
  const bool is_negative = step == minus || step == negative;
  if (step == zero || (step == minus && digit == 0)) return false;
  const std::uint64_t longer = number_of(s, t) * 10 + digit;
  if (longer > json_node::bound_max || !n.can_begin(is_negative, longer)) return false;
  set_number(s, t, step == minus ? negative : step, longer);
  return true;
}

bool json_automaton::number_may_stop(const automaton_state& s) const {
  const std::size_t t = top(s);
  const json_node& n = nodes_[s[t + node_cell]];
  if (!n.is_bounded()) return may_stop(s[t + a]);
  if (step_of(s, t) == minus) return false;
  return n.contains(step_of(s, t) == negative, number_of(s, t));
}

bool json_automaton::in_number(automaton_state& s, std::uint8_t byte, step_count& steps) const {
  const std::size_t t = top(s);
  if (nodes_[s[t + node_cell]].is_bounded()) return in_bounded(s, byte, steps);
  std::uint32_t& step = s[t + a];
  std::uint32_t& digits = s[t + b];
  const bool integer = nodes_[s[t + node_cell]].kind == json_node::value_kind::integer;
  const auto go = [&](std::uint32_t then, std::uint32_t count) {
    step = then;
    digits = count;
    return true;
  };
  if (is_digit(byte)) {
    switch (step) {
      case minus:
        return byte == '0' ? go(zero, 1) : go(whole, 1);
      case whole:
      case fraction:
        return ++digits <= digits_max;
      case exponent:
        return ++digits <= exponent_digits_max;
      case dot:
        return go(fraction, 1);
      case e:
      case e_sign:
        return go(exponent, 1);
      default:
        return false;
    }
  }
  if (!integer) {
    if (byte == '.' && (step == zero || step == whole)) return go(dot, 0);
    if ((byte == 'e' || byte == 'E') && may_stop(step) && step != exponent) return go(e, 0);
    if ((byte == '-' || byte == '+') && step == e) return go(e_sign, 0);
  }
  if (!may_stop(step)) return false;
  s.drop(frame_cells);
  return advance(s, byte, steps);
}

bool json_automaton::is_accepting(const automaton_state& s) const {
  if (is_terminated(s)) return true;
  if (s.size() != 1 + frame_cells) return false;
  const std::size_t t = top(s);
  if (s[t + kind_cell] == number) return number_may_stop(s);
  return s[t + kind_cell] == literal && s[t + b] > 0 && nodes_[s[t + node_cell]].texts[s[t + a]].size() == s[t + b];
}

byte_automaton::free_text_rule json_automaton::free_text_at(const automaton_state& s) const {
  if (s.size() == 1) return {};
  const std::size_t t = top(s);
  if (s[t + kind_cell] != string || s[t + a] != text) return {};
  const json_node& n = nodes_[s[t + node_cell]];
  if (n.pattern) return {};
  if (!counts_characters(n)) return {&characters()};
  // At maxLength only the closing quote may follow.
  const std::uint32_t left = n.characters_max - s[t + b];
  if (left == 0) return {};
  return {.table = &characters(),
          .characters_min = n.characters_min - std::min(n.characters_min, s[t + b]),
          .characters_max = left};
}

bool json_automaton::is_valid(const automaton_state& s) const {
  if (s.size() < 1 || (s.size() - 1) % frame_cells != 0 || (s.size() - 1) / frame_cells > frames_max) return false;
  if (s[0] > whitespace_max_) return false;
  for (std::size_t t = 1; t < s.size(); t += frame_cells) {
    if (s[t + kind_cell] >= frames_count || s[t + node_cell] >= nodes_.size()) return false;
    const json_node& n = nodes_[s[t + node_cell]];
    const bool innermost = t + frame_cells == s.size();
    const auto is = [&](json_node::value_kind k) { return n.kind == json_node::value_kind::any || n.kind == k; };
    switch (s[t + kind_cell]) {
      case value:
        break;
      case object_begin:
      case object_next:
      case object_comma:
        if (!is(json_node::value_kind::object) || (!n.members.empty() && s[t + a] > n.members.size())) return false;
        break;
      case object_colon:
        if (!is(json_node::value_kind::object) || (!n.members.empty() && s[t + a] >= n.members.size())) return false;
        break;
      case object_key:
        if (n.kind != json_node::value_kind::object || s[t + a] >= n.members.size() || s[t + b] < 1 ||
            s[t + b] >= n.texts[n.members[s[t + a]].name].size()) {
          return false;
        }
        break;
      case array_begin:
      case array_next:
        if (!is(json_node::value_kind::array)) return false;
        // The array uses no more literals than it has values, so some are left wherever another value may follow.
        if (n.is_unique && (std::uint64_t{s[t + b]} >> nodes_[n.other].texts.count() != 0 ||
                            static_cast<std::uint32_t>(std::popcount(s[t + b])) > s[t + a])) {
          return false;
        }
        break;
      case string:
        if (s[t + a] >= string_steps || !innermost) return false;
        if (n.pattern ? s[t + b] >= n.pattern->states_count() || (s[t + a] != text && s[t + a] != backslash)
                      : s[t + b] > (counts_characters(n) ? n.characters_max : 0)) {
          return false;
        }
        break;
      case literal:
        if (n.kind != json_node::value_kind::literals || s[t + a] >= n.texts.count() || s[t + b] < 1 ||
            s[t + b] > n.texts[s[t + a]].size() || !innermost) {
          return false;
        }
        break;
      default:  // number
        if ((n.is_bounded() ? step_of(s, t) : s[t + a]) >= number_steps || !innermost) return false;
        if (n.is_bounded() && number_of(s, t) > json_node::bound_max) return false;
    }
  }
  return true;
}

automaton_state regex_automaton::begin() const {
  automaton_state s;
  s.push(texts_.begin());
  return s;
}

bool regex_automaton::advance(automaton_state& s, std::uint8_t byte, step_count& steps) const {
  steps.add();
  const auto then = texts_.next(s[0], byte);
  s[0] = then;
  return then != regex_dfa::dead;
}

}  // namespace redline::grammar
