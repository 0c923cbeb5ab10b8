#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "runtime/base/hex.hpp"
#include "runtime/base/utf8.hpp"
#include "runtime/grammar/gbnf_automaton.hpp"
#include "runtime/grammar/steps.hpp"

namespace redline::grammar {
namespace {

constexpr std::uint32_t unending = 1U << 20;  // frames that a rule without an end takes
constexpr std::size_t depth_of_groups_max = 64;
constexpr std::size_t rounds_max = 512;  // of what is found by going over all positions again and again
constexpr char32_t last_code = 0x10ffff;

struct code_range {
  char32_t first = 0, last = 0;
};

/// What stands on the right of a rule.
struct part {
  enum class kind : std::uint8_t { literal, characters, rule, sequence, choice, repeat };
  kind what = kind::sequence;
  std::string text{};                // literal
  std::vector<code_range> ranges{};  // characters: ascending, apart
  std::uint32_t rule = 0;
  std::vector<part> parts{};
  std::uint32_t least = 0;  // repeat
  std::uint32_t most = 0;   // UINT32_MAX: any
};

struct rule {
  std::string name;
  std::size_t line = 0;  // where it is used first, or written
  bool is_written = false;
  part right{};
};

/// Ascending and apart, without surrogates, which no text holds.
std::vector<code_range> tidy(std::vector<code_range> ranges, bool negated) {
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<code_range> joined;
  for (const auto& r : ranges) {
    if (!joined.empty() && r.first <= joined.back().last + 1)
      joined.back().last = std::max(joined.back().last, r.last);
    else
      joined.push_back(r);
  }
  if (negated) {
    std::vector<code_range> rest;
    char32_t from = 0;
    for (const auto& r : joined) {
      if (r.first > from) rest.push_back({from, r.first - 1});
      from = r.last + 1;
    }
    if (from <= last_code) rest.push_back({from, last_code});
    joined = std::move(rest);
  }
  std::vector<code_range> out;
  for (const auto& r : joined) {
    if (r.first < 0xd800) out.push_back({r.first, std::min<char32_t>(r.last, 0xd7ff)});
    if (r.last > 0xdfff) out.push_back({std::max<char32_t>(r.first, 0xe000), r.last});
  }
  return out;
}

/// Reads the text of a grammar.
class gbnf_reader {
 public:
  explicit gbnf_reader(std::string_view text) : text_(text) {}

  result<std::vector<rule>> read() {
    for (skip_blanks(true); !why_ && at_ < text_.size(); skip_blanks(true)) read_rule();
    if (!why_) check_rules();
    if (why_) return *why_;
    return std::move(rules_);
  }

 private:
  void refuse(const std::string& what) { refuse(what, line_); }
  void refuse(const std::string& what, std::size_t line) {
    if (!why_) why_ = failure{errc::invalid_argument, "grammar, line " + std::to_string(line) + ": " + what};
  }
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  [[nodiscard]] bool looks_at(std::string_view word) const { return text_.substr(at_).starts_with(word); }
  static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  }
  void skip_blanks(bool over_lines) {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
        if (at_ == text_.size()) return;
        --at_;
        continue;
      }
      if (c == '\n' && over_lines) ++line_;
      if (c != ' ' && c != '\t' && c != '\r' && (c != '\n' || !over_lines)) return;
    }
  }
  std::string read_name() {
    const std::size_t from = at_;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    return std::string(text_.substr(from, at_ - from));
  }
  std::uint32_t rule_of(const std::string& name) {
    const auto [at, is_new] = by_name_.try_emplace(name, static_cast<std::uint32_t>(rules_.size()));
    if (is_new) rules_.push_back({.name = name, .line = line_});
    if (rules_.size() > gbnf_automaton::rules_max)
      refuse("expected at most " + std::to_string(gbnf_automaton::rules_max) + " rules");
    return at->second;
  }

  void read_rule() {
    const std::size_t line = line_;
    const std::string name = read_name();
    skip_blanks(true);
    if (name.empty() || !looks_at("::=")) {
      // A rule with one colon, or what only Lark puts before a rule: ?name, !name, %import, // a comment.
      const bool is_lark =
          name.empty() ? std::string_view("?!%/").find(peek()) != std::string_view::npos : peek() == ':';
      return refuse(is_lark ? "expected a rule: NAME ::= ..., found one in Lark: grammars are written in GBNF here"
                            : "expected a rule: NAME ::= ...",
                    line);
    }
    at_ += 3;
    const auto number = rule_of(name);
    if (why_) return;
    if (rules_[number].is_written) return refuse("the rule '" + name + "' is written twice", line);
    rules_[number].is_written = true;
    rules_[number].line = line;
    skip_blanks(true);
    part right = read_choice(0);
    if (why_) return;
    if (at_ < text_.size() && peek() != '\n') {
      return refuse("expected the end of the rule '" + name + "', found '" +
                    utf8::sanitize(text_.substr(at_, std::min<std::size_t>(16, text_.find('\n', at_) - at_))) + "'");
    }
    rules_[number].right = std::move(right);
  }

  part read_choice(std::size_t depth) {
    part out{.what = part::kind::choice};
    if (depth > depth_of_groups_max) refuse("groups are nested too deeply");
    for (;;) {
      out.parts.push_back(read_sequence(depth));
      if (why_) return out;
      // A line may begin with the bar.
      const std::size_t at = at_, line = line_;
      skip_blanks(true);
      if (peek() == '|') {
        ++at_;
        skip_blanks(true);
        continue;
      }
      if (depth == 0) at_ = at, line_ = line;
      return out;
    }
  }

  part read_sequence(std::size_t depth) {
    part out{.what = part::kind::sequence};
    for (;;) {
      skip_blanks(depth > 0);
      const char c = peek();
      if (at_ >= text_.size() || c == '|' || c == ')' || c == '\n') return out;
      part one;
      if (c == '"') {
        one = read_literal();
      } else if (c == '[') {
        one = read_class();
      } else if (c == '.') {
        ++at_;
        one = {.what = part::kind::characters, .ranges = tidy({}, true)};
      } else if (c == '(') {
        ++at_;
        skip_blanks(true);
        one = read_choice(depth + 1);
        if (!why_ && peek() != ')') refuse("expected ')'");
        ++at_;
      } else if (is_name(c)) {
        one = {.what = part::kind::rule};
        one.rule = rule_of(read_name());
      } else if (c == '<') {
        refuse("tokens ('<...>') are not supported: write their text");
      } else {
        refuse("expected a text, a class, a group or a rule's name, found '" + utf8::sanitize(text_.substr(at_, 1)) +
               "'");
      }
      if (!why_) read_repeat(one);
      if (why_) return out;
      out.parts.push_back(std::move(one));
    }
  }

  void read_repeat(part& one) {
    for (std::size_t in_a_row = 0;;) {
      skip_blanks(false);
      std::uint32_t least = 0, most = UINT32_MAX;
      const char c = peek();
      if (c == '{') {
        ++at_;
        if (!read_bounds(least, most)) return;
      } else if (c == '*' || c == '+' || c == '?') {
        ++at_;
        if (c == '+') least = 1;
        if (c == '?') most = 1;
      } else {
        return;
      }
      part again{.what = part::kind::repeat, .least = least, .most = most};
      again.parts.push_back(std::move(one));
      one = std::move(again);
      if (++in_a_row > 8) return refuse("too many repetitions of a repetition");
    }
  }
  bool read_bounds(std::uint32_t& least, std::uint32_t& most) {
    const auto number = [this](std::uint32_t otherwise) {
      skip_blanks(false);
      if (peek() < '0' || peek() > '9') return otherwise;
      std::uint32_t n = 0;
      for (; peek() >= '0' && peek() <= '9'; ++at_) n = std::min<std::uint32_t>(1U << 20, n * 10 + (peek() - '0'));
      skip_blanks(false);
      return n;
    };
    least = number(0);
    most = least;
    if (peek() == ',') {
      ++at_;
      most = number(UINT32_MAX);
    }
    const bool is_good = peek() == '}' && least <= most && least <= gbnf_automaton::repeats_max &&
                         (most == UINT32_MAX || most <= gbnf_automaton::repeats_max);
    if (!is_good) {
      refuse("expected {m}, {m,} or {m,n} with m up to n and both up to " +
             std::to_string(gbnf_automaton::repeats_max));
      return false;
    }
    ++at_;
    return true;
  }

  /// One character of a text or a class, perhaps escaped.
  char32_t read_character() {
    if (peek() != '\\') {
      const auto c = utf8::decode(text_, at_);
      at_ += c.size_bytes;
      if (c.value >= 0xd800 && c.value <= 0xdfff) refuse("expected UTF-8");
      return c.value;
    }
    ++at_;
    const char c = peek();
    ++at_;
    switch (c) {
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'x':
        return read_hex(2);
      case 'u':
        return read_hex(4);
      case 'U':
        return read_hex(8);
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
      case '^':
      case '/':
      case '\'':
        return static_cast<unsigned char>(c);
      default:
        refuse("an unknown escape after '\\'");
        return 0;
    }
  }
  char32_t read_hex(int digits) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
      const char c = peek();
      const int digit = hex_digit(c);
      if (digit < 0) {
        refuse("expected " + std::to_string(digits) + " hexadecimal digits");
        return 0;
      }
      value = value * 16 + static_cast<char32_t>(digit);
    }
    if (value > last_code || (value >= 0xd800 && value <= 0xdfff)) refuse("expected a character of Unicode");
    return value;
  }
  part read_literal() {
    part out{.what = part::kind::literal};
    ++at_;
    while (!why_ && at_ < text_.size() && peek() != '"' && peek() != '\n') utf8::append(out.text, read_character());
    if (peek() != '"') refuse("a text does not end on its line");
    ++at_;
    return out;
  }
  part read_class() {
    ++at_;
    const bool negated = peek() == '^';
    if (negated) ++at_;
    std::vector<code_range> ranges;
    while (!why_ && at_ < text_.size() && peek() != ']' && peek() != '\n') {
      code_range r;
      r.first = r.last = read_character();
      if (peek() == '-' && peek(1) != ']') {
        ++at_;
        r.last = read_character();
      }
      if (r.first > r.last) refuse("a range of a class ends before it begins");
      ranges.push_back(r);
    }
    if (peek() != ']') refuse("a class does not end on its line");
    ++at_;
    return {.what = part::kind::characters, .ranges = tidy(std::move(ranges), negated)};
  }

  void check_rules() {
    const auto root = by_name_.find("root");
    if (root == by_name_.end() || !rules_[root->second].is_written) return refuse("expected a rule named 'root'");
    for (const auto& one : rules_) {
      if (!one.is_written) return refuse("there is no rule '" + one.name.substr(0, 64) + "'", one.line);
    }
    std::swap(root_, root->second);
  }

 public:
  [[nodiscard]] std::uint32_t root() const { return root_; }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::vector<rule> rules_;
  std::unordered_map<std::string, std::uint32_t> by_name_;
  std::uint32_t root_ = 0;
  std::optional<failure> why_;
};

}  // namespace

/// Makes the places of an automaton, and what can follow at each.
class gbnf_compiler {
 public:
  gbnf_compiler(std::vector<rule> rules, std::uint32_t root) : rules_(std::move(rules)), root_(root) {}

  result<std::shared_ptr<const gbnf_automaton>> run() {
    for (std::size_t i = 0; i < rules_.size(); ++i) add({});  // where rules begin: calls to their right sides
    for (std::uint32_t i = 0; i < rules_.size() && !why_; ++i) {
      name_ = rules_[i].name;
      const auto end = add({.what = kind::end});
      const auto begin = add_part(rules_[i].right, end);
      out_->positions_[i] = {.what = kind::split, .next = begin, .other = begin};
    }
    if (!why_) find_nullable();
    if (!why_) refuse_left_recursion();
    if (!why_) find_needs();
    if (!why_) make_closures();
    if (!why_) find_text_loops();
    if (why_) return *why_;
    out_->root_ = root_;
    return std::shared_ptr<const gbnf_automaton>(std::move(out_));
  }

 private:
  using position = gbnf_automaton::position;
  using kind = gbnf_automaton::position::kind;
  using item = gbnf_automaton::item;
  using closure = gbnf_automaton::closure;

  void refuse(const std::string& what) {
    if (!why_) why_ = failure{errc::invalid_argument, "grammar: " + what};
  }
  /// False where it has taken too much.
  bool spend(std::size_t steps) {
    steps_taken += steps;
    if (steps_taken - steps_begin_ > gbnf_automaton::compile_steps_max)
      refuse("it takes too long to compile: write it with fewer rules and repetitions");
    return !why_;
  }
  std::uint32_t add(position p) {
    if (!spend(1)) return 0;
    if (out_->positions_.size() >= gbnf_automaton::positions_max) {
      refuse("it takes more than " + std::to_string(gbnf_automaton::positions_max) + " places in the rule '" + name_ +
             "': repeat less");
      return 0;
    }
    out_->positions_.push_back(p);
    return static_cast<std::uint32_t>(out_->positions_.size() - 1);
  }
  std::uint32_t set_of(const byte_set& bytes) {
    const auto [at, is_new] = sets_.try_emplace(bytes.to_string(), static_cast<std::uint32_t>(out_->sets_.size()));
    if (is_new) out_->sets_.push_back(bytes);
    return at->second;
  }

  /// Where the part begins, if `next` comes after it.
  std::uint32_t add_part(const part& p, std::uint32_t next) {
    if (why_) return 0;
    switch (p.what) {
      case part::kind::literal:
        return add_literal(p.text, next);
      case part::kind::characters:
        return add_characters(p.ranges, next);
      case part::kind::rule:
        return add(
            {.what = kind::call, .is_tail = out_->positions_[next].what == kind::end, .next = next, .other = p.rule});
      case part::kind::sequence:
        for (auto at = p.parts.rbegin(); at != p.parts.rend(); ++at) next = add_part(*at, next);
        return next;
      case part::kind::choice: {
        std::vector<alternative> all;
        for (const auto& one : p.parts) all.push_back({.rest = begin_of(one)});
        return add_alternatives(all, next);
      }
      case part::kind::repeat:
        return add_repeat(p, next);
    }
    return next;
  }
  // Alternatives that begin with the same text share it, so that a list of many texts is one place at a time.

  struct alternative {
    std::vector<const part*> rest;  // parts one after the other
    std::size_t taken = 0;          // bytes of the first, a literal
    [[nodiscard]] std::string_view text() const {
      if (rest.empty() || rest.front()->what != part::kind::literal) return {};
      return std::string_view(rest.front()->text).substr(taken);
    }
    void take(std::size_t count) {
      taken += count;
      if (taken < rest.front()->text.size()) return;
      rest.erase(rest.begin());
      taken = 0;
    }
  };
  static std::vector<const part*> begin_of(const part& p) {
    std::vector<const part*> out;
    if (p.what != part::kind::sequence) return {&p};
    for (const auto& one : p.parts) {
      if (one.what != part::kind::literal || !one.text.empty()) out.push_back(&one);
    }
    return out;
  }
  std::uint32_t add_alternative(const alternative& one, std::uint32_t next) {
    const auto text = one.text();
    for (auto i = one.rest.size(); i-- > (text.empty() ? 0U : 1U);) next = add_part(*one.rest[i], next);
    return text.empty() ? next : add_literal(text, next);
  }
  std::uint32_t add_alternatives(const std::vector<alternative>& all, std::uint32_t next) {
    std::vector<std::vector<alternative>> groups;  // by first byte, in order; others alone
    std::array<std::size_t, 256> group_of{};
    for (const auto& one : all) {
      if (!spend(1)) return 0;
      const auto text = one.text();
      std::size_t* known = text.empty() ? nullptr : &group_of[static_cast<std::uint8_t>(text.front())];
      if (known != nullptr && *known != 0) {
        groups[*known - 1].push_back(one);
        continue;
      }
      groups.push_back({one});
      if (known != nullptr) *known = groups.size();
    }
    std::vector<std::uint32_t> ways;
    for (auto& group : groups) {
      if (group.size() == 1) {
        ways.push_back(add_alternative(group.front(), next));
        continue;
      }
      const std::string first(group.front().text());
      std::size_t same = first.size();
      for (const auto& one : group) {
        const auto text = one.text();
        same = std::min(
            same, static_cast<std::size_t>(std::mismatch(first.begin(), first.end(), text.begin(), text.end()).first -
                                           first.begin()));
      }
      if (!spend(same * group.size() / 8)) return 0;
      for (auto& one : group) one.take(same);
      ways.push_back(add_literal(std::string_view(first).substr(0, same), add_alternatives(group, next)));
    }
    if (why_) return 0;
    std::uint32_t joined = ways.back();
    for (auto i = ways.size() - 1; i-- > 0;) joined = add({.what = kind::split, .next = ways[i], .other = joined});
    return joined;
  }

  std::uint32_t add_repeat(const part& p, std::uint32_t next) {
    const part& body = p.parts.front();
    std::uint32_t at = next;
    if (p.most == UINT32_MAX) {
      const auto loop = add({.what = kind::split, .next = 0, .other = next});
      const auto begin = add_part(body, loop);
      if (why_) return 0;
      out_->positions_[loop].next = begin;
      if (p.least == 0) return loop;
      at = begin;  // the last of those that must be
      for (std::uint32_t i = 1; i < p.least && !why_; ++i) at = add_part(body, at);
      return at;
    }
    for (std::uint32_t i = p.least; i < p.most && !why_; ++i) {
      at = add({.what = kind::split, .next = add_part(body, at), .other = next});
    }
    for (std::uint32_t i = 0; i < p.least && !why_; ++i) at = add_part(body, at);
    return at;
  }
  std::uint32_t add_literal(std::string_view text, std::uint32_t next) {
    const auto begin = static_cast<std::uint32_t>(out_->literals_.size());
    out_->literals_ += text;
    for (std::size_t i = text.size(); i-- > 0 && !why_;) {
      position p{
          .what = kind::bytes, .next = next, .other = set_of(byte_set().set(static_cast<std::uint8_t>(text[i])))};
      p.run = begin + static_cast<std::uint32_t>(i);
      p.run_count = static_cast<std::uint32_t>(text.size() - i);
      next = add(p);
    }
    return next;
  }

  // Characters as the bytes of UTF-8: ranges of code points whose encodings are ranges byte by byte.

  std::uint32_t add_characters(const std::vector<code_range>& ranges, std::uint32_t next) {
    // By what comes after them, the bytes that may come first.
    std::map<std::uint32_t, byte_set> firsts;
    std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> shared;
    for (const auto& r : ranges) split(r.first, r.last, next, firsts, shared);
    if (firsts.empty()) return add({.what = kind::bytes, .next = next, .other = set_of({})});  // no character at all
    std::optional<std::uint32_t> all;
    for (auto at = firsts.rbegin(); at != firsts.rend(); ++at) {
      const auto one = add({.what = kind::bytes, .next = at->first, .other = set_of(at->second)});
      all = all ? add({.what = kind::split, .next = one, .other = *all}) : one;
    }
    return *all;
  }
  void split(char32_t first, char32_t last, std::uint32_t next, std::map<std::uint32_t, byte_set>& firsts,
             std::map<std::pair<std::uint32_t, std::string>, std::uint32_t>& shared) {
    if (why_) return;
    for (const char32_t most : {char32_t{0x7f}, char32_t{0x7ff}, char32_t{0xffff}}) {
      if (first > most || last <= most) continue;
      split(first, most, next, firsts, shared);
      return split(most + 1, last, next, firsts, shared);
    }
    if (last > 0x7f) {
      for (int i = 1; i < 4; ++i) {
        const char32_t low = (char32_t{1} << (6 * i)) - 1;
        if ((first & ~low) == (last & ~low)) continue;
        if ((first & low) != 0) {
          split(first, first | low, next, firsts, shared);
          return split((first | low) + 1, last, next, firsts, shared);
        }
        if ((last & low) != low) {
          split(first, (last & ~low) - 1, next, firsts, shared);
          return split(last & ~low, last, next, firsts, shared);
        }
      }
    }
    std::string from, to;
    utf8::append(from, first);
    utf8::append(to, last);
    for (std::size_t i = from.size(); i-- > 0;) {
      byte_set bytes;
      for (unsigned b = static_cast<std::uint8_t>(from[i]); b <= static_cast<std::uint8_t>(to[i]); ++b) bytes.set(b);
      if (i == 0) {
        firsts[next] |= bytes;
        return;
      }
      const auto [at, is_new] = shared.try_emplace({next, bytes.to_string()}, 0U);
      if (is_new) at->second = add({.what = kind::bytes, .next = next, .other = set_of(bytes)});
      next = at->second;
    }
  }

  // What is known of rules as wholes.

  /// look(place): looks at a place again and says whether what is known of it has changed.
  template<class Look>
  void until_nothing_changes(Look look) {
    bool changed = true;
    for (std::size_t round = 0; changed; ++round) {
      if (round == rounds_max) return refuse("its rules depend on each other too deeply");
      if (!spend(out_->positions_.size())) return;
      changed = false;
      for (std::size_t i = out_->positions_.size(); i-- > 0;) changed = look(i) || changed;
    }
  }

  void find_nullable() {
    auto& all = out_->positions_;
    nullable_.assign(all.size(), false);
    until_nothing_changes([&](std::size_t i) {
      if (nullable_[i]) return false;
      const position& p = all[i];
      const bool is = p.what == kind::end || (p.what == kind::split && (nullable_[p.next] || nullable_[p.other])) ||
                      (p.what == kind::call && nullable_[p.other] && nullable_[p.next]);
      nullable_[i] = is;
      return is;
    });
  }

  /// The rules that a rule may call before it has taken a byte.
  std::vector<std::uint32_t> called_first(std::uint32_t begin) {
    std::vector<std::uint32_t> out, open{begin};
    std::vector<bool>& seen = seen_;
    seen.assign(out_->positions_.size(), false);
    if (!spend(1 + out_->positions_.size() / 64)) return out;
    while (!open.empty()) {
      const auto at = open.back();
      open.pop_back();
      if (seen[at]) continue;
      seen[at] = true;
      if (!spend(1)) return out;
      const position& p = out_->positions_[at];
      if (p.what == kind::split) {
        open.push_back(p.other);
        open.push_back(p.next);
      } else if (p.what == kind::call) {
        if (std::find(out.begin(), out.end(), p.other) == out.end()) out.push_back(p.other);
        if (nullable_[p.other]) open.push_back(p.next);
      }
    }
    return out;
  }
  void refuse_left_recursion() {
    enum class mark : std::uint8_t { fresh, open, done };
    std::vector<mark> marks(rules_.size(), mark::fresh);
    std::vector<std::vector<std::uint32_t>> firsts(rules_.size());
    for (std::uint32_t i = 0; i < rules_.size(); ++i) firsts[i] = called_first(i);
    struct frame {
      std::uint32_t rule;
      std::size_t next;
    };
    for (std::uint32_t i = 0; i < rules_.size(); ++i) {
      if (marks[i] != mark::fresh) continue;
      std::vector<frame> open{{i, 0}};
      marks[i] = mark::open;
      while (!open.empty()) {
        auto& top = open.back();
        if (top.next == firsts[top.rule].size()) {
          marks[top.rule] = mark::done;
          order_.push_back(top.rule);
          open.pop_back();
          continue;
        }
        const auto called = firsts[top.rule][top.next++];
        if (marks[called] == mark::open) {
          return refuse("the rule '" + rules_[called].name.substr(0, 64) +
                        "' begins with itself (left recursion): write it with * or +, or with the recursion last");
        }
        if (marks[called] == mark::fresh) {
          marks[called] = mark::open;
          open.push_back({called, 0});
        }
      }
    }
  }

  /// Frames that it takes to end a rule from each place; of what never ends too many.
  void find_needs() {
    auto& all = out_->positions_;
    for (auto& p : all) p.need = unending;
    until_nothing_changes([&](std::size_t i) {
      position& p = all[i];
      std::uint32_t need = p.need;
      switch (p.what) {
        case kind::end:
          need = 0;
          break;
        case kind::bytes:
          need = out_->sets_[p.other].any() ? all[p.next].need : unending;
          break;
        case kind::split:
          need = std::min(all[p.next].need, all[p.other].need);
          break;
        case kind::call:
          need = std::max(std::min(unending, all[p.other].need + (p.is_tail ? 0 : 1)), all[p.next].need);
          break;
      }
      const bool is_less = need < p.need;
      p.need = std::min(p.need, need);
      return is_less;
    });
    if (why_) return;
    if (all[root_].need <= gbnf_automaton::depth_max) return;
    for (auto r = static_cast<std::uint32_t>(rules_.size()); r-- > 0;) {  // those that others need mostly stand last
      if (all[r].need < unending) continue;
      return refuse("the rule '" + rules_[r].name.substr(0, 64) +
                    "' has no text: it never ends, or has an empty class");
    }
    refuse("its shortest text needs more than " + std::to_string(gbnf_automaton::depth_max) +
           " rules within each other");
  }

  // What can follow at a place.

  void make_closures() {
    for (const auto r : order_) close(r);  // rules before those that begin with them
    const std::size_t count = out_->positions_.size();
    for (std::uint32_t i = 0; i < count && !why_; ++i) {
      const position& p = out_->positions_[i];
      if (p.what == kind::bytes || (p.what == kind::call && !p.is_tail)) close(p.next);
    }
  }
  void close(std::uint32_t place) {
    if (why_ || out_->positions_[place].closure != gbnf_automaton::no_closure) return;
    closure c;
    std::vector<std::uint32_t> open{place};
    stamps_.resize(out_->positions_.size());
    ++stamp_;
    while (!open.empty()) {
      const auto at = open.back();
      open.pop_back();
      if (!spend(1)) return;
      if (std::exchange(stamps_[at], stamp_) == stamp_) continue;
      const position& p = out_->positions_[at];
      switch (p.what) {
        case kind::end:
          c.is_nullable = true;
          break;
        case kind::bytes:
          add_item(c, {.pushes = {}, .head = at});
          break;
        case kind::split:
          open.push_back(p.other);
          open.push_back(p.next);
          break;
        case kind::call: {
          const closure& called = out_->closures_[out_->positions_[p.other].closure];
          for (item one : called.items) {
            if (!p.is_tail) one.pushes.insert(one.pushes.begin(), p.next);
            add_item(c, std::move(one));
          }
          if (called.is_nullable) open.push_back(p.next);
          break;
        }
      }
      if (c.items.size() > gbnf_automaton::closure_items_max) return too_many();
    }
    items_count_ += c.items.size();
    if (items_count_ > gbnf_automaton::items_max) return refuse("its rules are too many or too ambiguous");
    out_->positions_[place].closure = static_cast<std::uint32_t>(out_->closures_.size());
    out_->closures_.push_back(std::move(c));
  }
  /// Places such as the inside of a string: every character of plain text is taken in one way, and leads back.
  void find_text_loops() {
    const std::size_t count = out_->positions_.size();
    for (std::uint32_t i = 0; i < count && !why_; ++i) {
      const position& p = out_->positions_[i];
      if (p.what == kind::split && p.closure != gbnf_automaton::no_closure && is_text_loop(i, i, 0)) mark_loop(i);
    }
  }
  bool is_text_loop(std::uint32_t loop, std::uint32_t place, std::size_t state) {
    const auto& table = gbnf_automaton::plain_text().next;
    const closure& c = out_->closures_[out_->positions_[place].closure];
    if (c.is_nullable || !spend(1 + c.items.size())) return false;
    std::array<std::uint32_t, 256> leads;
    leads.fill(UINT32_MAX);
    // A look at a letter first, which most places do not take.
    if (state == 0 && std::none_of(c.items.begin(), c.items.end(), [&](const item& one) { return takes(one, 'a'); }))
      return false;
    if (!spend(c.items.size() * 16)) return false;
    for (const item& one : c.items) {
      for (std::size_t b = 0; b < 256; ++b) {
        if (table[state][b] == free_text::outside || !takes(one, b)) continue;
        if (!one.pushes.empty() || leads[b] != UINT32_MAX) return false;
        leads[b] = out_->positions_[one.head].next;
      }
    }
    std::map<std::pair<std::uint32_t, std::size_t>, bool> known;
    for (std::size_t b = 0; b < 256; ++b) {
      const auto then = table[state][b];
      if (then == free_text::outside) continue;
      if (leads[b] == UINT32_MAX) return false;
      if (then == 0) {
        if (leads[b] != loop) return false;
        continue;
      }
      const auto [at, is_new] = known.try_emplace({leads[b], then}, false);
      if (is_new)
        at->second = out_->positions_[leads[b]].closure != gbnf_automaton::no_closure && leads[b] != loop &&
                     is_text_loop(loop, leads[b], then);
      if (!at->second) return false;
    }
    return true;
  }
  [[nodiscard]] bool takes(const item& one, std::size_t byte) const {
    return out_->sets_[out_->positions_[one.head].other][byte];
  }
  void mark_loop(std::uint32_t loop) {
    closure& c = out_->closures_[out_->positions_[loop].closure];
    const auto is_plain = [&](const item& one) {
      return (out_->sets_[out_->positions_[one.head].other] & gbnf_automaton::plain_first_bytes()).any();
    };
    const bool is_shared = std::any_of(c.items.begin(), c.items.end(), [&](const item& one) {
      return is_plain(one) && out_->positions_[one.head].text_loop != UINT32_MAX;
    });
    if (is_shared) return;
    for (const item& one : c.items) {
      if (!is_plain(one)) continue;
      out_->positions_[one.head].text_loop = loop;
      ++c.text_items;
    }
  }
  void too_many() {
    refuse("more than " + std::to_string(gbnf_automaton::closure_items_max) +
           " alternatives may follow at one place: give them common beginnings, or join single characters to a class");
  }
  void add_item(closure& c, item one) {
    if (!spend(1 + one.pushes.size() + c.items.size() / 4)) return;
    const auto& all = out_->positions_;
    one.need = static_cast<std::uint32_t>(one.pushes.size()) + all[one.head].need;
    for (std::uint32_t i = 0; i < one.pushes.size(); ++i) one.need = std::max(one.need, i + all[one.pushes[i]].need);
    if (one.need > gbnf_automaton::depth_max) return;
    if (std::find(c.items.begin(), c.items.end(), one) == c.items.end()) c.items.push_back(std::move(one));
  }

  std::vector<rule> rules_;
  std::uint32_t root_;
  std::string name_;
  std::shared_ptr<gbnf_automaton> out_{new gbnf_automaton};
  std::unordered_map<std::string, std::uint32_t> sets_;
  std::vector<bool> nullable_, seen_;
  std::vector<std::uint32_t> order_;   // of rules: those that one may begin with before it
  std::vector<std::uint32_t> stamps_;  // by place: the last closure that it was looked at for
  std::uint32_t stamp_ = 0;
  std::size_t items_count_ = 0;
  std::uint64_t steps_begin_ = steps_taken;
  std::optional<failure> why_;
};

result<std::shared_ptr<const gbnf_automaton>> gbnf_automaton::compile(std::string_view grammar) {
  gbnf_reader reader(grammar);
  REDLINE_TRY_ASSIGN(auto rules, reader.read());
  return gbnf_compiler(std::move(rules), reader.root()).run();
}

}  // namespace redline::grammar
