#include "runtime/grammar/syntax/regex_dfa.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "runtime/base/hex.hpp"
#include "runtime/grammar/syntax/steps.hpp"

namespace redline::grammar {
namespace {

constexpr std::uint32_t nfa_states_max = 8192;
constexpr std::uint32_t repeats_max = 1000;
constexpr std::uint32_t depth_max = 32;
constexpr std::uint32_t none = UINT32_MAX;
constexpr char32_t character_max = 0x10FFFF;

/// Characters from `low` to `high`, both included.
struct character_range {
  char32_t low = 0, high = 0;
};
using character_class = std::vector<character_range>;

void add(character_class& to, char32_t low, char32_t high) { to.push_back({low, high}); }

/// The same characters as ascending ranges that do not touch each other.
character_class joined(character_class of) {
  std::sort(of.begin(), of.end(), [](auto& x, auto& y) { return x.low < y.low; });
  character_class out;
  for (const auto& r : of) {
    if (!out.empty() && r.low <= out.back().high + 1)
      out.back().high = std::max(out.back().high, r.high);
    else
      out.push_back(r);
  }
  return out;
}

character_class opposite(character_class of) {
  std::sort(of.begin(), of.end(), [](auto& x, auto& y) { return x.low < y.low; });
  character_class out;
  char32_t next = 0;
  for (const auto& r : of) {
    if (r.low > next) add(out, next, r.low - 1);
    next = std::max<char32_t>(next, r.high + 1);
  }
  if (next <= character_max) add(out, next, character_max);
  return out;
}

/// With `ecma`, \s is that of ECMA-262, which includes the whitespace of Unicode.
std::optional<character_class> class_of_escape(char c, bool ecma) {
  character_class out;
  switch (c) {
    case 'd':
    case 'D':
      add(out, '0', '9');
      break;
    case 'w':
    case 'W':
      add(out, '0', '9');
      add(out, 'A', 'Z');
      add(out, 'a', 'z');
      add(out, '_', '_');
      break;
    case 's':
    case 'S':
      add(out, '\t', '\r');
      add(out, ' ', ' ');
      if (!ecma) break;
      for (const char32_t one : {0xA0, 0x1680, 0x202F, 0x205F, 0x3000, 0xFEFF}) add(out, one, one);
      add(out, 0x2000, 0x200A);
      add(out, 0x2028, 0x2029);
      break;
    default:
      return std::nullopt;
  }
  return c < 'a' ? opposite(out) : out;
}

/// A piece of the automaton with one way in and one way out.
struct fragment {
  std::uint32_t in = none, out = none;
};

/// A nondeterministic automaton. A state has any number of free steps, and of steps over a range of bytes; also of free
/// steps that can only be taken at the beginning of the text, or at its end.
struct nfa {
  struct step {
    std::uint8_t low = 0, high = 0;
    std::uint32_t to = none;
  };
  struct state {
    std::vector<std::uint32_t> free, at_begin, at_end;
    std::vector<step> steps;
  };
  std::vector<state> states;
  fragment all;
  fragment rest;  // of any text at the end; has no states with match::whole

  /// The states that lead to the last one without a byte at the end of the text, or if bytes follow: at its beginning
  /// more may.
  struct uses {
    std::vector<bool> ends, goes_on;
  };
  [[nodiscard]] uses find_uses() const {
    uses out{std::vector<bool>(states.size()), std::vector<bool>(states.size())};
    std::vector<std::vector<std::uint32_t>> free(states.size()), others(states.size());
    for (std::uint32_t s = 0; s < states.size(); ++s) {
      for (const auto to : states[s].free) free[to].push_back(s);
      for (const auto to : states[s].at_end) others[to].push_back(s);
    }
    const auto spread = [&](std::vector<bool>& known, std::vector<std::uint32_t> open) {
      while (!open.empty()) {
        const auto s = open.back();
        open.pop_back();
        if (known[s]) continue;
        known[s] = true;
        open.insert(open.end(), free[s].begin(), free[s].end());
        open.insert(open.end(), others[s].begin(), others[s].end());
      }
    };
    spread(out.ends, {all.out});
    others.assign(states.size(), {});
    std::vector<std::uint32_t> ends;
    for (std::uint32_t s = 0; s < states.size(); ++s) {
      for (const auto& step : states[s].steps) others[step.to].push_back(s);
      if (out.ends[s]) ends.push_back(s);
    }
    spread(out.goes_on, std::move(ends));
    return out;
  }
};

class parser {
 public:
  /// Refuses an expression that exceeds the limit of `steps`, because repetitions parse what they repeat again.
  parser(std::string_view text, const regex_dfa::options& o, step_count& steps)
      : text_(text), options_(o), steps_(steps) {}

  result<nfa> run() {
    fragment all = alternatives(0);
    if (!why_ && at_ < text_.size()) refuse("a ')' too many");
    if (options_.how == regex_dfa::match::anywhere) {
      nfa_.rest = characters(opposite({}));
      all = after(star(characters(opposite({}))), after(all, star(nfa_.rest)));
    }
    if (why_) return *why_;
    nfa_.all = all;
    return std::move(nfa_);
  }

 private:
  void refuse(const std::string& what) {
    if (!why_) why_ = failure{errc::invalid_argument, what + " at character " + std::to_string(at_)};
  }
  [[nodiscard]] bool is_at(char c) const { return at_ < text_.size() && text_[at_] == c; }

  void spend() {
    steps_.add();
    if (steps_.is_over()) refuse("the expression takes too long to compile: expected fewer repetitions, found more");
  }

  std::uint32_t add_state() {
    spend();
    if (nfa_.states.size() >= nfa_states_max)
      refuse("the expression is too large: expected fewer repetitions, found too many");
    if (why_) return 0;
    nfa_.states.emplace_back();
    return static_cast<std::uint32_t>(nfa_.states.size() - 1);
  }
  void join(std::uint32_t from, std::uint32_t to) {
    if (!why_) nfa_.states[from].free.push_back(to);
  }
  fragment empty() {
    const auto in = add_state();
    return {in, in};
  }
  fragment after(fragment x, fragment y) {
    join(x.out, y.in);
    return {x.in, y.out};
  }

  fragment alternatives(std::uint32_t depth) {
    if (depth > depth_max) refuse("groups nested deeper than " + std::to_string(depth_max));
    const fragment out{add_state(), add_state()};
    for (bool more = true; more && !why_;) {
      const fragment one = alternative(depth);
      join(out.in, one.in);
      join(one.out, out.out);
      more = is_at('|');
      if (more) ++at_;
    }
    return out;
  }

  fragment alternative(std::uint32_t depth) {
    fragment out = empty();
    while (at_ < text_.size() && text_[at_] != '|' && text_[at_] != ')' && !why_) out = after(out, repeated(depth));
    return out;
  }
  fragment anchor(char c) {
    if (!options_.may_anchor) refuse(std::string("'") + c + "' is not supported here");
    const fragment out{add_state(), add_state()};
    if (!why_) (c == '^' ? nfa_.states[out.in].at_begin : nfa_.states[out.in].at_end).push_back(out.out);
    return out;
  }

  fragment star(fragment one) {
    const fragment out{add_state(), add_state()};
    join(out.in, one.in);
    join(out.in, out.out);
    join(one.out, one.in);
    join(one.out, out.out);
    return out;
  }

  fragment repeated(std::uint32_t depth) {
    const std::size_t begin = at_;
    fragment one = atom(depth);
    const std::size_t end = at_;
    for (;;) {
      std::uint32_t least = 1, most = 1;
      if (is_at('*')) {
        least = 0;
        most = none;
      } else if (is_at('+')) {
        most = none;
      } else if (is_at('?')) {
        least = 0;
      } else if (!is_at('{') || !read_counts(least, most)) {
        return one;
      }
      ++at_;
      if (is_at('?')) ++at_;  // lazy repetition accepts the same texts
      if (is_at('*') || is_at('+') || is_at('{')) refuse("a repetition of a repetition needs a group");
      one = repeat(one, begin, end, least, most, depth);
      if (why_) return one;
    }
  }

  /// Reads the counts at '{' and leaves `at_` on '}'. Returns false if '{' is an ordinary character.
  bool read_counts(std::uint32_t& least, std::uint32_t& most) {
    const auto close = text_.find('}', at_);
    if (close == std::string_view::npos) return false;
    const auto inside = text_.substr(at_ + 1, close - at_ - 1);
    const auto comma = inside.find(',');
    const auto number = [](std::string_view digits, std::uint32_t& out) {
      if (digits.empty() || digits.size() > 6) return false;
      out = 0;
      for (const char c : digits) {
        if (c < '0' || c > '9') return false;
        out = out * 10 + static_cast<std::uint32_t>(c - '0');
      }
      return true;
    };
    if (!number(inside.substr(0, comma), least)) return false;
    most = least;
    if (comma != std::string_view::npos) {
      most = none;
      if (comma + 1 < inside.size() && !number(inside.substr(comma + 1), most)) return false;
    }
    if (least > repeats_max || (most != none && (most > repeats_max || most < least))) {
      refuse("repetitions must be from 0 to " + std::to_string(repeats_max) + ", the fewer first");
    }
    at_ = close;
    return true;
  }

  /// Repeats a fragment. `one` is the first copy; the others are parsed again from the text.
  fragment repeat(fragment one, std::size_t begin, std::size_t end, std::uint32_t least, std::uint32_t most,
                  std::uint32_t depth) {
    const std::size_t back = at_;
    const auto again = [&] {
      at_ = begin;
      const fragment copy = atom(depth);
      if (!why_ && at_ != end) refuse("an expression that is read in two ways");
      return copy;
    };
    fragment out = empty();
    if (most == none) {
      for (std::uint32_t i = 0; i + 1 < least && !why_; ++i) out = after(out, i == 0 ? one : again());
      const fragment last = least > 1 ? again() : one;
      if (least == 0) {
        out = after(out, star(last));
      } else {
        const fragment tail{last.in, add_state()};
        join(last.out, last.in);
        join(last.out, tail.out);
        out = after(out, tail);
      }
    } else {
      const fragment end_of_all = empty();
      for (std::uint32_t i = 0; i < most && !why_; ++i) {
        if (i >= least) join(out.out, end_of_all.in);
        out = after(out, i == 0 ? one : again());
      }
      join(out.out, end_of_all.in);
      out.out = end_of_all.out;
    }
    at_ = back;
    return out;
  }

  fragment atom(std::uint32_t depth) {
    const char c = text_[at_];
    switch (c) {
      case '(': {
        ++at_;
        if (is_at('?')) {
          if (text_.substr(at_).starts_with("?:")) {
            at_ += 2;
          } else if (text_.substr(at_).starts_with("?P<") ||
                     (text_.substr(at_).starts_with("?<") && at_ + 2 < text_.size() && text_[at_ + 2] != '=' &&
                      text_[at_ + 2] != '!')) {
            const auto close = text_.find('>', at_);
            at_ = close == std::string_view::npos ? text_.size() : close + 1;
          } else {
            refuse("look-around and flags are not supported");
            return empty();
          }
        }
        const fragment inside = alternatives(depth + 1);
        if (!is_at(')')) refuse("a ')' is missing");
        ++at_;
        return inside;
      }
      case '[':
        return characters(read_class());
      case '.': {
        ++at_;
        character_class line_end;
        if (!options_.dot_is_any) add(line_end, '\n', '\n');
        if (options_.is_json) line_end = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
        return characters(opposite(line_end));
      }
      case '\\': {
        ++at_;
        if (at_ < text_.size()) {
          if (auto known = class_of_escape(text_[at_], options_.is_json)) {
            ++at_;
            return characters(*known);
          }
        }
        const char32_t one = read_escape();
        return characters(folded({{one, one}}));
      }
      case '*':
      case '+':
      case '?':
        refuse("there is nothing to repeat");
        return empty();
      case '^':
      case '$':
        ++at_;
        return anchor(c);
      default: {
        const char32_t one = read_character();
        return characters(folded({{one, one}}));
      }
    }
  }

  /// Reads an escape after its backslash.
  char32_t read_escape() {
    if (at_ >= text_.size()) {
      refuse("nothing stands behind the last '\\'");
      return 0;
    }
    const char c = text_[at_++];
    switch (c) {
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'f':
        return '\f';
      case 'v':
        return '\v';
      case 'x':
        return read_hex(2);
      case 'u':
        return read_hex(4);
      default:
        break;
    }
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (is_letter) refuse(std::string("'\\") + c + "' is not supported");
    --at_;
    return read_character();
  }

  char32_t read_hex(std::size_t digits) {
    char32_t value = 0;
    for (std::size_t i = 0; i < digits; ++i, ++at_) {
      const char c = at_ < text_.size() ? text_[at_] : ' ';
      const int digit = hex_digit(c);
      if (digit < 0) {
        refuse("hexadecimal digits are missing");
        return 0;
      }
      value = value * 16 + static_cast<char32_t>(digit);
    }
    return value;
  }

  /// Reads one character of UTF-8. The text must be valid.
  char32_t read_character() {
    const auto lead = static_cast<unsigned char>(text_[at_++]);
    const std::size_t more = lead < 0xC0 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
    char32_t value = more == 0 ? lead : lead & (0x3FU >> more);
    for (std::size_t i = 0; i < more && at_ < text_.size(); ++i) {
      value = value << 6 | (static_cast<unsigned char>(text_[at_++]) & 0x3FU);
    }
    return value;
  }

  character_class read_class() {
    ++at_;
    const bool is_negated = is_at('^');
    if (is_negated) ++at_;
    character_class out;
    for (bool is_first = true; !why_; is_first = false) {
      spend();
      if (at_ >= text_.size()) {
        refuse("a ']' is missing");
        break;
      }
      if (is_at(']') && !is_first) break;
      if (text_.substr(at_).starts_with("[:")) refuse("named classes are not supported");
      const auto low = read_member(out);
      if (!low) continue;
      char32_t high = *low;
      if (is_at('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        const auto end = read_member(out);
        if (!end || *end < *low) refuse("a range of a class ends before it begins");
        high = end.value_or(*low);
      }
      add(out, *low, high);
    }
    ++at_;
    out = folded(std::move(out));
    return is_negated ? opposite(out) : out;
  }
  /// Adds the other case of each letter if the case does not matter.
  [[nodiscard]] character_class folded(character_class of) const {
    if (!options_.any_case) return of;
    for (std::size_t i = of.size(); i-- > 0;) {
      const auto [low, high] = of[i];
      for (const auto& [first, last] : {character_range{'A', 'Z'}, character_range{'a', 'z'}}) {
        const char32_t from = std::max(low, first), to = std::min(high, last);
        if (from <= to) add(of, from ^ 0x20, to ^ 0x20);
      }
    }
    return of;
  }

  /// Reads one character; returns nothing for a class, which is added to `out`.
  std::optional<char32_t> read_member(character_class& out) {
    if (!is_at('\\')) return read_character();
    ++at_;
    if (at_ < text_.size() && text_[at_] == 'b') {
      ++at_;
      return U'\b';
    }
    const auto known = at_ < text_.size() ? class_of_escape(text_[at_], options_.is_json) : std::nullopt;
    if (!known) return read_escape();
    ++at_;
    out.insert(out.end(), known->begin(), known->end());
    return std::nullopt;
  }

  // Characters as bytes.

  fragment characters(const character_class& set) {
    const fragment out{add_state(), add_state()};
    for (const auto& r : joined(set)) add_range(out, r.low, std::min(r.high, character_max));
    return out;
  }

  void add_range(fragment way, char32_t low, char32_t high) {
    // Surrogates are not characters.
    if (low <= 0xDFFF && high >= 0xD800) {
      if (low < 0xD800) add_range(way, low, 0xD7FF);
      if (high > 0xDFFF) add_range(way, 0xE000, high);
      return;
    }
    for (const char32_t last : {0x7FU, 0x7FFU, 0xFFFFU}) {
      if (low > last || high <= last) continue;
      add_range(way, low, last);
      return add_range(way, last + 1, high);
    }
    const std::size_t more = low <= 0x7F ? 0 : low <= 0x7FF ? 1 : low <= 0xFFFF ? 2 : 3;
    add_bytes(way, low, high, more, true);
  }

  /// Adds code points of the same encoded length: `more` bytes of six bits come after the first.
  void add_bytes(fragment way, char32_t low, char32_t high, std::size_t more, bool is_lead) {
    static constexpr std::uint8_t marks[] = {0x00, 0xC0, 0xE0, 0xF0};
    const auto byte = [&](char32_t value) {
      return static_cast<std::uint8_t>((is_lead ? marks[more] : 0x80) | value >> (6 * more));
    };
    if (why_) return;
    if (more == 0) return add_step(way.in, byte(low), byte(high), way.out);
    const char32_t rest = (char32_t{1} << (6 * more)) - 1;
    // The middle, where any continuation may follow, and the two ends.
    char32_t first = low >> (6 * more), last = high >> (6 * more);
    if (first == last) {
      const auto next = add_state();
      add_step(way.in, byte(low), byte(low), next);
      return add_bytes({next, way.out}, low & rest, high & rest, more - 1, false);
    }
    if ((low & rest) != 0) {
      add_bytes(way, low, low | rest, more, is_lead);
      ++first;
    }
    if ((high & rest) != rest) {
      add_bytes(way, high & ~rest, high, more, is_lead);
      --last;
    }
    if (first > last || last == char32_t(-1)) return;
    const auto next = add_state();
    add_step(way.in, byte(first << (6 * more)), byte(last << (6 * more)), next);
    add_bytes({next, way.out}, 0, rest, more - 1, false);
  }

  void add_step(std::uint32_t from, std::uint8_t low, std::uint8_t high, std::uint32_t to) {
    spend();
    if (!why_) nfa_.states[from].steps.push_back({low, high, to});
  }

  std::string_view text_;
  regex_dfa::options options_;
  step_count& steps_;
  std::size_t at_ = 0;
  nfa nfa_;
  std::optional<failure> why_;
};

/// Replaces a set by the states that are reached for free, in order, as far as a text leads on from them.
void close_over(const nfa& n, const nfa::uses& uses, std::vector<std::uint32_t>& set, bool at_begin,
                step_count& steps) {
  std::vector<bool> seen(n.states.size());
  steps.add(n.states.size() / 64);
  std::vector<std::uint32_t> open = std::move(set);
  set.clear();
  while (!open.empty()) {
    const auto s = open.back();
    open.pop_back();
    steps.add();
    if (seen[s]) continue;
    seen[s] = true;
    const auto& state = n.states[s];
    // States with free steps only are not needed to distinguish sets.
    if (uses.goes_on[s] && (!state.steps.empty() || state.free.empty())) set.push_back(s);
    open.insert(open.end(), state.free.begin(), state.free.end());
    if (at_begin) open.insert(open.end(), state.at_begin.begin(), state.at_begin.end());
  }
  std::sort(set.begin(), set.end());
  // If any text may follow, it does not matter what else may.
  if (n.rest.in != none && seen[n.rest.in]) set = {std::min(n.rest.in, n.all.out), std::max(n.rest.in, n.all.out)};
}

failure too_many_states(std::uint32_t most) {
  return {errc::invalid_argument, "expected expressions of at most " + std::to_string(most) +
                                      " states, found more: make them simpler, or their repetitions fewer"};
}

}  // namespace

result<regex_dfa> regex_dfa::compile(std::string_view pattern, const options& o, step_count& steps) {
  REDLINE_TRY_ASSIGN(const auto n, parser(pattern, o, steps).run());
  const auto uses = n.find_uses();
  regex_dfa out;
  std::map<std::vector<std::uint32_t>, std::uint32_t> known;
  std::vector<std::vector<std::uint32_t>> sets;
  const auto find = [&](std::vector<std::uint32_t> set) -> std::uint32_t {
    close_over(n, uses, set, sets.empty(), steps);
    const auto [at, is_new] = known.try_emplace(set, static_cast<std::uint32_t>(sets.size()));
    if (is_new) {
      sets.push_back(std::move(set));
      out.states_.emplace_back();
      out.states_.back().next.fill(dead);
    }
    return at->second;
  };
  find({n.all.in});
  for (std::uint32_t i = 0; i < sets.size(); ++i) {
    if (sets.size() > o.states_max || steps.is_over()) return too_many_states(o.states_max);
    const auto set = sets[i];
    out.states_[i].accepts = std::ranges::any_of(set, [&](std::uint32_t s) { return uses.ends[s]; });
    // Bytes that no step distinguishes lead to the same set.
    std::vector<std::uint32_t> cuts = {0, 256};
    for (const auto s : set) {
      for (const auto& step : n.states[s].steps) {
        cuts.push_back(step.low);
        cuts.push_back(step.high + 1U);
      }
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
      if (steps.is_over()) return too_many_states(o.states_max);
      std::vector<std::uint32_t> to;
      for (const auto s : set) {
        for (const auto& step : n.states[s].steps) {
          steps.add();
          if (step.low <= cuts[c] && cuts[c] <= step.high) to.push_back(step.to);
        }
      }
      if (to.empty()) continue;
      const auto then = find(std::move(to));
      for (auto byte = cuts[c]; byte < cuts[c + 1]; ++byte)
        out.states_[i].next[byte] = static_cast<std::uint16_t>(then);
    }
  }
  for (auto& s : out.states_) {
    for (std::uint8_t c = 0; o.is_json && c < 0x20; ++c) {
      if (c != '\b' && c != '\f' && c != '\n' && c != '\r' && c != '\t') s.next[c] = dead;
    }
  }
  out.drop_dead_ends(steps);
  if (!out.states_.front().accepts && !out.states_.front().goes_on) {
    return failure{errc::invalid_argument, no_text};
  }
  return out;
}

/// From the largest number of characters down: a state with one character fewer is complete or leads to one that is.
std::vector<std::vector<std::uint32_t>> regex_dfa::completable(text_length length, step_count& steps) const {
  const bool is_bounded = length.most != UINT32_MAX;
  // By state: those that a byte within a character leads to, and those that a first byte does.
  std::vector<std::vector<std::uint16_t>> inside(states_.size()), after(states_.size());
  for (std::size_t s = 0; s < states_.size(); ++s) {
    steps.add(states_[s].next.size());
    for (std::size_t byte = 0; byte < states_[s].next.size(); ++byte) {
      const auto to = states_[s].next[byte];
      auto& list = (byte & 0xC0) == 0x80 ? inside[s] : after[s];
      if (to != dead && std::ranges::find(list, to) == list.end()) list.push_back(to);
    }
  }
  std::uint32_t count = is_bounded ? length.most : length.least;
  std::vector<bool> now(states_.size(), !is_bounded), later(states_.size());  // with `count` characters, and one more
  const auto find = [&] {
    const bool may_end = is_bounded && count >= length.least;
    for (bool is_new = true; is_new && !steps.is_over();) {
      is_new = false;
      for (std::size_t s = 0; s < states_.size(); ++s) {
        steps.add(1 + inside[s].size());
        if (now[s]) continue;
        now[s] = (may_end && states_[s].accepts) ||
                 std::ranges::any_of(after[s], [&](std::uint16_t to) { return later[to]; }) ||
                 std::ranges::any_of(inside[s], [&](std::uint16_t to) { return now[to]; });
        is_new = is_new || now[s];
      }
    }
  };
  find();
  std::vector<std::vector<std::uint32_t>> bounds(states_.size());  // the last first
  for (std::size_t s = 0; s < states_.size(); ++s) {
    if (now[s] && is_bounded) bounds[s].push_back(count + 1);
  }
  while (count > 0 && !steps.is_over()) {
    later = now;
    now.assign(states_.size(), false);
    --count;
    find();
    for (std::size_t s = 0; s < states_.size(); ++s) {
      if (now[s] != later[s]) bounds[s].push_back(count + 1);
    }
    // What is the same once stays so down to the least length, and from there down to none.
    if (now == later) count = is_bounded && count >= length.least ? length.least : 0;
  }
  if (steps.is_over() || !now[begin()]) return {};
  for (std::size_t s = 0; s < states_.size(); ++s) {
    if (now[s]) bounds[s].push_back(0);
    std::reverse(bounds[s].begin(), bounds[s].end());
  }
  return bounds;
}

result<regex_dfa> regex_dfa::combined(const regex_dfa& other, bool is_without, std::uint32_t most,
                                      step_count& steps) const {
  regex_dfa out;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> known;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;  // the other's state may be `dead`
  const auto find = [&](std::uint32_t mine, std::uint32_t its) {
    const auto [at, is_new] = known.try_emplace({mine, its}, static_cast<std::uint32_t>(pairs.size()));
    if (is_new) {
      pairs.emplace_back(mine, its);
      out.states_.emplace_back();
      out.states_.back().next.fill(dead);
      out.states_.back().accepts = states_[mine].accepts && (its != dead && other.states_[its].accepts) != is_without;
    }
    return at->second;
  };
  find(0, 0);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (pairs.size() > most || steps.is_over()) return too_many_states(most);
    const auto [mine, its] = pairs[i];
    steps.add(256);
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const auto a = states_[mine].next[byte];
      const auto b = its == dead ? dead : other.states_[its].next[byte];
      if (a != dead && (b != dead || is_without)) out.states_[i].next[byte] = static_cast<std::uint16_t>(find(a, b));
    }
  }
  out.drop_dead_ends(steps);
  if (!out.states_.front().accepts && !out.states_.front().goes_on) return failure{errc::invalid_argument, no_text};
  return out;
}

regex_dfa regex_dfa::multiples_of(std::uint32_t of) {
  regex_dfa out;
  out.states_.resize(of + std::size_t{1});  // the beginning, and a state for each remainder
  for (std::uint32_t s = 0; s <= of; ++s) {
    out.states_[s].next.fill(dead);
    out.states_[s].accepts = s == 1;
    for (std::uint32_t d = s == 0 ? 1 : 0; d < 10; ++d)
      out.states_[s].next['0' + d] = static_cast<std::uint16_t>(1 + ((s == 0 ? 0 : s - 1) * 10 + d) % of);
  }
  step_count steps;
  out.drop_dead_ends(steps);
  return out;
}

result<regex_dfa> regex_dfa::bytes_without(std::string_view text, const std::vector<std::string>& beginnings) {
  regex_dfa out;
  const auto add = [&out] {
    auto& made = out.states_.emplace_back();
    made.next.fill(dead);
    made.accepts = made.goes_on = true;
    return static_cast<std::uint16_t>(out.states_.size() - 1);
  };
  add();
  // A tree of the beginnings, whose leaves are dead ends.
  std::vector<std::pair<std::uint16_t, std::uint8_t>> leaves;
  for (const auto& one : beginnings) {
    std::uint16_t at = 0;
    for (const char c : std::string_view(one).substr(0, one.size() - 1)) {
      const auto byte = static_cast<std::uint8_t>(c);
      if (out.states_[at].next[byte] == dead) {
        if (out.states_.size() + text.size() > bytes_without_max) return too_many_states(bytes_without_max);
        const auto fresh = add();
        out.states_[at].next[byte] = fresh;
      }
      at = out.states_[at].next[byte];
    }
    leaves.emplace_back(at, static_cast<std::uint8_t>(one.back()));
  }
  // Then a state for each number of bytes of `text` at the end.
  const auto loop = beginnings.empty() ? std::uint16_t{0} : add();
  for (std::size_t i = 1; i < text.size(); ++i) add();
  const auto begin = static_cast<std::uint8_t>(text.front());
  for (std::size_t s = 0; s < out.states_.size(); ++s) {
    auto& next = out.states_[s].next;
    for (std::size_t byte = 0; byte < next.size(); ++byte) {
      if (next[byte] == dead) next[byte] = byte != begin ? loop : text.size() == 1 ? dead : loop + 1;
    }
    if (s <= loop) continue;
    const bool is_last = s + 1 == out.states_.size();
    next[static_cast<std::uint8_t>(text[s - loop])] = is_last ? dead : static_cast<std::uint16_t>(s + 1);
  }
  for (const auto& [at, byte] : leaves) out.states_[at].next[byte] = dead;
  return out;
}

bool regex_dfa::matches(std::string_view text) const {
  std::uint32_t at = begin();
  for (const char c : text) {
    const auto then = next(at, static_cast<std::uint8_t>(c));
    if (then == dead) return false;
    at = then;
  }
  return accepts(at);
}

void regex_dfa::drop_dead_ends(step_count& steps) {
  std::vector<std::vector<std::uint32_t>> before(states_.size());
  std::vector<std::uint32_t> open;
  std::vector<bool> ends(states_.size());
  for (std::uint32_t s = 0; s < states_.size(); ++s) {
    std::uint16_t last = dead;
    for (const auto to : states_[s].next) {
      if (to != dead && to != last) before[to].push_back(s);
      last = to;
    }
    if (states_[s].accepts) open.push_back(s);
  }
  while (!open.empty()) {
    const auto s = open.back();
    open.pop_back();
    steps.add();
    if (ends[s]) continue;
    ends[s] = true;
    open.insert(open.end(), before[s].begin(), before[s].end());
  }
  for (auto& s : states_) {
    std::uint32_t left = 0;
    for (std::size_t byte = 0; byte < s.next.size(); ++byte) {
      auto& to = s.next[byte];
      if (to != dead && !ends[to]) to = dead;
      if (to == dead) continue;
      ++left;
      s.only = static_cast<char>(byte);
    }
    s.goes_on = left > 0;
    s.is_forced = left == 1 && !s.accepts;
  }
}

}  // namespace redline::grammar
