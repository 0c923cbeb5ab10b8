#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "runtime/base/pause_point.hpp"
#include "runtime/base/utf8.hpp"
#include "runtime/grammar/rules_automaton.hpp"
#include "runtime/grammar/syntax/grammar_rules.hpp"
#include "runtime/grammar/syntax/steps.hpp"

namespace redline::grammar {
namespace {

constexpr std::pair<std::uint8_t, std::uint8_t> json_escapes[] = {{'"', '"'},  {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'},
                                                                  {'\n', 'n'}, {'\r', 'r'},  {'\t', 't'}};
constexpr std::size_t told_apart_max = 64;  // texts that begin like an excluded one for so long are left out too
constexpr std::uint32_t unrolled_max = 16;  // longer repetitions are counted where that is possible

}  // namespace

/// Builds the tables of an automaton: first the positions of each rule as a graph, then the places that a text can be
/// at with what follows there.
class rules_compiler {
 public:
  rules_compiler(grammar_rules grammar, step_count& steps)
      : subject_(std::move(grammar.subject)), rules_(std::move(grammar.rules)), root_(grammar.root), steps_(steps) {}

  result<rules_automaton> run() {
    // The beginnings of rules, filled in below.
    for (rule_ = 0; rule_ < rules_.size(); ++rule_) add({});
    for (rule_ = 0; rule_ < rules_.size() && !why_; ++rule_) {
      const auto end = add({.what = kind::end});
      const auto begin = add_part(rules_[rule_].right, end);
      if (!why_) positions_[rule_] = {.what = kind::split, .next = begin, .other = begin, .rule = rule_};
    }
    if (!why_) find_texts();
    if (!why_) make_places();
    if (!why_) make_beginnings();
    if (!why_) find_text_loops();
    if (why_) return *why_;
    for (const auto& one : rules_) out_.is_markup_.push_back(one.is_markup);
    return std::move(out_);
  }

 private:
  using head = rules_automaton::head;
  using call = rules_automaton::call;
  using ways = rules_automaton::ways;
  using place = rules_automaton::place;

  /// A position in a rule.
  enum class kind : std::uint8_t { bytes, split, both, call, text_end, end };
  struct position {
    kind what = kind::end;
    // bytes, call: the position after it; split: the first way; both: the only one; text_end: after the last text
    std::uint32_t next = 0;
    // bytes: the set; split: the second way; both: what must be possible too; call: the rule, whose number its
    // beginning has; text_end: the text
    std::uint32_t other = 0;
    std::uint32_t rule = 0;                         // that it is in
    std::uint32_t loop = rules_automaton::no_loop;  // of which it is in a text
    std::uint32_t run = 0;                          // as in rules_automaton::head
    std::uint32_t run_count = 0;
    std::uint32_t guard = rules_automaton::no_guard;
    bool adds_one = false;
  };

  void refuse(const std::string& what) {
    if (!why_) why_ = failure{errc::invalid_argument, subject_ + ": " + what};
  }
  /// Counts work. Returns false if compilation has failed or takes too long.
  bool spend(std::size_t steps) {
    pause_point();
    steps_.add(steps);
    if (steps_.is_over()) refuse("it takes too long to compile: write it with fewer rules and repetitions");
    return !why_;
  }
  std::uint32_t add(position p) {
    if (!spend(1)) return 0;
    if (positions_.size() >= rules_automaton::positions_max) {
      refuse("it takes more than " + std::to_string(rules_automaton::positions_max) + " places in the rule '" +
             rules_[rule_].name + "': repeat less");
      return 0;
    }
    p.rule = rule_;
    p.loop = loop_;
    positions_.push_back(p);
    return static_cast<std::uint32_t>(positions_.size() - 1);
  }
  std::uint32_t set_of(const byte_set& bytes) {
    const auto [at, is_new] = sets_.try_emplace(bytes, static_cast<std::uint32_t>(out_.sets_.size()));
    if (is_new) out_.sets_.push_back(bytes);
    return at->second;
  }

  /// Adds a part that continues at `next`, and returns where it begins.
  std::uint32_t add_part(const part& p, std::uint32_t next) {
    if (why_) return 0;
    switch (p.what) {
      case part::kind::literal:
        return add_literal(p.text, next);
      case part::kind::characters:
        return add_characters(p.ranges, next);
      case part::kind::expression:
        return add_expression(*p.expression, p.is_escaped, next);
      case part::kind::measured:
        return add_measured(p, next);
      case part::kind::rule:
        return add({.what = kind::call, .next = next, .other = p.rule});
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
      case part::kind::selection:
        return add_selection(p, next);
      case part::kind::other_text:
        return add_other_text(p, next);
    }
    return next;
  }

  void set_begins(std::uint32_t node, std::vector<std::uint32_t> begins) {
    if (begins.empty()) begins.push_back(add({.what = kind::bytes, .next = node, .other = set_of({})}));
    std::uint32_t rest = begins.back();
    for (auto i = begins.size(); i-- > 2 && !why_;)
      rest = add({.what = kind::split, .next = begins[i - 1], .other = rest});
    if (why_) return;
    positions_[node].next = begins.front();
    positions_[node].other = rest;
  }
  /// Adds the expression's states, each with its ways. guard_to: of a measured text, the guard of the ways to a state,
  /// given whether they begin a character. begins_of: receives the ways of the first state, without its end.
  template<class GuardTo>
  std::uint32_t add_states(const regex_dfa& texts, bool is_escaped, std::uint32_t next, GuardTo guard_to,
                           std::vector<std::uint32_t>* begins_of) {
    constexpr bool is_measured = !std::is_same_v<GuardTo, std::nullptr_t>;
    static const byte_set inside = bytes_between(0x80, 0xbf);  // of characters
    std::vector<std::uint32_t> nodes;
    std::vector<std::pair<std::uint32_t, std::uint16_t>> open;  // positions, and the states that they lead to
    for (std::uint32_t i = 0; i < texts.states_count() && !why_; ++i) {
      if (!spend(16)) return 0;
      nodes.push_back(add({.what = kind::split}));
      std::map<std::uint16_t, byte_set> bytes_to;
      for (unsigned byte = 0; byte < 256; ++byte) {
        const auto then = texts.next(i, static_cast<std::uint8_t>(byte));
        if (then != regex_dfa::dead) bytes_to[then].set(byte);
      }
      std::vector<std::uint32_t> begins;
      for (auto& [then, bytes] : bytes_to) {
        const auto lead_on = [&, to = then](const byte_set& to_take) {
          const auto at = add({.what = kind::bytes, .next = next, .other = set_of(to_take)});
          if (texts.goes_on(to) || is_measured) open.emplace_back(at, to);
          return at;
        };
        const auto begin_with = [&, to = then](std::uint32_t at) {
          if constexpr (is_measured) {
            if (why_) return;
            positions_[at].adds_one = (out_.sets_[positions_[at].other] & inside).none();
            positions_[at].guard = guard_to(to, positions_[at].adds_one);
          }
          begins.push_back(at);
        };
        if (is_escaped) {
          byte_set escapes;
          for (const auto& [byte, letter] : json_escapes) {
            escapes.set(letter, bytes[byte]);
            bytes.reset(byte);
          }
          if (escapes.any())
            begin_with(add({.what = kind::bytes, .next = lead_on(escapes), .other = set_of(byte_set().set('\\'))}));
        }
        if (bytes.any()) begin_with(lead_on(bytes));
      }
      if (i == 0 && begins_of != nullptr) *begins_of = begins;
      if (texts.accepts(i)) begins.push_back(next);
      set_begins(nodes.back(), std::move(begins));
    }
    if (why_) return 0;
    for (const auto& [place, then] : open) positions_[place].next = nodes[then];
    return nodes.front();
  }
  std::uint32_t add_expression(const regex_dfa& texts, bool is_escaped, std::uint32_t next) {
    return add_states(texts, is_escaped, next, nullptr, nullptr);
  }
  /// Adds an expression whose characters are counted: each way is guarded by the counts from which the text can be
  /// completed.
  std::uint32_t add_measured(const part& p, std::uint32_t next) {
    if (loop_ != rules_automaton::no_loop) {
      refuse("a measured text inside of a repetition");
      return 0;
    }
    const regex_dfa& texts = *p.expression;
    const text_length length{p.least, p.most};
    const auto counts = texts.completable(length, steps_);
    if (steps_.is_over() || counts.empty()) {
      (void)spend(0);
      return add({.what = kind::bytes, .next = next, .other = set_of({})});
    }
    loop_ = static_cast<std::uint32_t>(out_.loops_.size());
    auto& made = out_.loops_.emplace_back();
    made.what = rules_automaton::loop::kind::measured;
    made.least = length.least;
    made.most = length.most;
    std::map<std::vector<std::uint32_t>, std::uint32_t> known;
    const auto guard_to = [&](std::uint16_t to, bool adds_one) {
      auto bounds = counts[to];
      if (adds_one) {
        for (auto& one : bounds) one = one == 0 ? 0 : one - 1;
        if (bounds.size() > 1 && bounds[1] == 0) bounds.erase(bounds.begin(), bounds.begin() + 2);
      }
      const auto [at, is_new] = known.try_emplace(bounds, 0);
      if (is_new) at->second = add_guard(loop_, std::move(bounds));
      return at->second;
    };
    const auto end = add({.what = kind::text_end, .next = next});
    std::vector<std::uint32_t> begins;
    (void)add_states(texts, p.is_escaped, end, guard_to, &begins);
    loops_.emplace_back(end, next);
    loop_ = rules_automaton::no_loop;
    if (texts.accepts(texts.begin()) && length.least == 0) begins.push_back(next);
    const auto begin = add({.what = kind::split});
    set_begins(begin, std::move(begins));
    return begin;
  }

  // Alternatives that begin with the same text share it, so a list of many texts is at one position at a time.

  struct alternative {
    std::vector<const part*> rest;  // consecutive parts
    std::size_t taken = 0;          // bytes of the first part, a literal, that are used up
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
    std::vector<std::vector<alternative>> groups;  // by first byte, in order; others are alone
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
    std::vector<std::uint32_t> begins;
    for (auto& group : groups) {
      if (group.size() == 1) {
        begins.push_back(add_alternative(group.front(), next));
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
      begins.push_back(add_literal(std::string_view(first).substr(0, same), add_alternatives(group, next)));
    }
    if (why_) return 0;
    std::uint32_t joined = begins.back();
    for (auto i = begins.size() - 1; i-- > 0;) joined = add({.what = kind::split, .next = begins[i], .other = joined});
    return joined;
  }

  std::uint32_t add_repeat(const part& p, std::uint32_t next) {
    const part& body = p.parts.front();
    std::uint32_t at = next;
    const bool is_counted = p.most == UINT32_MAX ? p.least > 1 : p.most > unrolled_max;
    const bool is_simple = !has_rule(body) || !may_be_empty(body);
    if (is_counted && is_simple && loop_ == rules_automaton::no_loop) return add_counted(p, next);
    if (p.most == UINT32_MAX) {
      const auto loop = add({.what = kind::split, .next = 0, .other = next});
      const auto begin = add_part(body, loop);
      if (why_) return 0;
      positions_[loop].next = begin;
      if (p.least == 0) return loop;
      at = begin;  // the last required one
      for (std::uint32_t i = 1; i < p.least && !why_; ++i) at = add_part(body, at);
      return at;
    }
    for (std::uint32_t i = p.least; i < p.most && !why_; ++i) {
      at = add({.what = kind::split, .next = add_part(body, at), .other = next});
    }
    for (std::uint32_t i = 0; i < p.least && !why_; ++i) at = add_part(body, at);
    return at;
  }
  static bool has_rule(const part& p) {
    return p.what == part::kind::rule || p.what == part::kind::selection || p.what == part::kind::other_text ||
           p.what == part::kind::measured || std::any_of(p.parts.begin(), p.parts.end(), has_rule);
  }
  /// Rules are taken for ones that may.
  static bool may_be_empty(const part& p) {
    switch (p.what) {
      case part::kind::literal:
        return p.text.empty();
      case part::kind::characters:
        return false;
      case part::kind::rule:
      case part::kind::selection:
      case part::kind::other_text:
        return true;
      case part::kind::expression:
      case part::kind::measured:
        return p.expression->accepts(p.expression->begin());
      case part::kind::sequence:
        return std::all_of(p.parts.begin(), p.parts.end(), may_be_empty);
      case part::kind::choice:
        return std::any_of(p.parts.begin(), p.parts.end(), may_be_empty);
      case part::kind::repeat:
        return p.least == 0 || may_be_empty(p.parts.front());
    }
    return false;
  }

  // Texts but some: a tree of the excluded ones, which other characters leave.

  struct ways_out {
    std::uint32_t any_text = 0;   // behind a character that leaves the tree
    std::uint32_t odd_first = 0;  // before one that is beyond ASCII or escaped
  };
  using texts_iterator = std::vector<std::string>::const_iterator;
  std::uint32_t add_other_text(const part& p, std::uint32_t next) {
    ways_out to;
    to.any_text = add_part(p.parts[0], next);
    const auto wide = add_part(p.parts[1], to.any_text);
    to.odd_first = add({.what = kind::split, .next = wide, .other = add_escape(escape_letters(), to.any_text)});
    return add_texts_but(p.but->begin(), p.but->end(), 0, to, next);
  }
  static byte_set escape_letters() {
    byte_set letters;
    for (const auto& [byte, letter] : json_escapes) letters.set(letter);
    return letters;
  }
  std::uint32_t add_escape(const byte_set& letters, std::uint32_t next) {
    return add({.what = kind::bytes,
                .next = add({.what = kind::bytes, .next = next, .other = set_of(letters)}),
                .other = set_of(byte_set().set('\\'))});
  }
  /// The rest of the texts behind the first `at` bytes of all these.
  std::uint32_t add_texts_but(texts_iterator begin, texts_iterator end, std::size_t at, const ways_out& to,
                              std::uint32_t next) {
    if (begin == end) return to.any_text;
    if (at >= told_apart_max || why_) return add({.what = kind::bytes, .next = next, .other = set_of({})});
    const bool may_end = begin->size() > at;
    if (!may_end) ++begin;
    byte_set letters = escape_letters(), plain = bytes_between(0x20, 0x7f).reset('"').reset('\\');
    std::vector<code_range> wide;
    std::vector<std::uint32_t> ways;
    while (begin != end) {
      // The next character, or escape, and the texts that have it.
      const std::string_view rest = std::string_view(*begin).substr(at);
      const auto first = static_cast<std::uint8_t>(rest.front());
      std::size_t size = 1;
      if (first == '\\') {
        size = rest[1] == 'u' ? 6 : 2;
        if (size == 2) letters.reset(static_cast<std::uint8_t>(rest[1]));
      } else if (first < 0x80) {
        plain.reset(first);
      } else {
        const auto code = utf8::decode(rest, 0);
        size = code.size_bytes;
        wide.push_back({code.value, code.value});
      }
      auto same = begin;
      while (same != end && same->compare(at, size, rest, 0, size) == 0) ++same;
      ways.push_back(add_literal(rest.substr(0, size), add_texts_but(begin, same, at + size, to, next)));
      begin = same;
    }
    if (why_) return 0;
    ways.push_back(add({.what = kind::bytes, .next = to.any_text, .other = set_of(plain)}));
    if (wide.empty() && letters == escape_letters()) {
      ways.push_back(to.odd_first);
    } else {
      wide.push_back({0, 0x7f});
      ways.push_back(add_characters(tidy(std::move(wide), true), to.any_text));
      if (letters.any()) ways.push_back(add_escape(letters, to.any_text));
    }
    std::uint32_t joined = may_end ? next : ways.back();
    for (auto i = ways.size() - (may_end ? 0U : 1U); i-- > 0;)
      joined = add({.what = kind::split, .next = ways[i], .other = joined});
    return joined;
  }

  // Texts that may be chosen once. All keys are one tree, whose branches are guarded by the keys in them.

  struct key_of_text {
    std::string_view rest;
    std::uint32_t text = 0;
  };
  std::uint32_t add_selection(const part& p, std::uint32_t next) {
    const selection_rule& rule = *p.selection;
    if (loop_ != rules_automaton::no_loop) {
      refuse("a choice of different texts inside of another");
      return 0;
    }
    const auto number = static_cast<std::uint32_t>(out_.loops_.size());
    const auto count = static_cast<std::uint32_t>(rule.keys.size());
    using loop = rules_automaton::loop;
    loop& made = out_.loops_.emplace_back();
    made = {.what = rule.in_order ? loop::kind::ordered : loop::kind::distinct,
            .least = rule.least,
            .most = rule.most,
            .texts = count};
    const auto is_required = [&rule](std::uint32_t i) { return i < rule.required.size() && rule.required[i]; };
    if (rule.in_order) made.limits.assign(count + std::size_t{1}, count);
    for (auto i = count; i-- > 0;) {
      if (rule.in_order)
        made.limits[i] = is_required(i) ? i : made.limits[i + 1];
      else if (is_required(i))
        made.required |= std::uint32_t{1} << i;
    }
    std::vector<std::uint32_t> all(count + (rule.has_others ? 1U : 0U));
    std::iota(all.begin(), all.end(), 0U);
    made.any_text = add_guard(number, all);
    loop_ = number;
    begins_.resize(number + std::size_t{1});
    auto& begins = begins_[number];
    std::vector<key_of_text> keys;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto end = add({.what = kind::text_end, .next = next, .other = i});
      begins.push_back(rule.has_parts ? add_part(p.parts[i + 1], end) : end);
      keys.push_back({rule.keys[i], i});
    }
    auto begin = count > 0 ? add_keys(std::move(keys)) : 0;
    if (rule.has_others) {
      const auto end = add({.what = kind::text_end, .next = next, .other = count});
      const auto others = add_part(p.parts.back(), end);
      if (!why_ && positions_[others].what != kind::bytes) refuse("other texts that begin in different ways");
      if (why_) return 0;
      positions_[others].guard = add_guard(number, {count});
      begins.push_back(others);
      begin = count > 0 ? add({.what = kind::split, .next = begin, .other = others}) : others;
    }
    const auto between = add_part(p.parts.front(), begin);
    loops_.emplace_back(between, next);
    loop_ = rules_automaton::no_loop;
    bool is_complete = rule.least == 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!is_required(i)) continue;
      begin = add({.what = kind::both, .next = begin, .other = begins[i]});
      is_complete = false;
    }
    if (count == 0 && !rule.has_others) return next;
    return is_complete ? add({.what = kind::split, .next = begin, .other = next}) : begin;
  }
  std::uint32_t add_guard(std::uint32_t loop, std::vector<std::uint32_t> texts) {
    (void)spend(texts.size());
    out_.guards_.push_back({loop, std::move(texts)});
    return static_cast<std::uint32_t>(out_.guards_.size() - 1);
  }
  /// Adds the keys, which are all different.
  std::uint32_t add_keys(std::vector<key_of_text> keys) {
    std::sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.rest < b.rest; });
    std::optional<std::uint32_t> joined;
    for (auto from = keys.begin(); from != keys.end() && spend(1);) {
      std::uint32_t begin = 0;
      auto to = from + 1;
      if (from->rest.empty()) {
        begin = begins_[loop_][from->text];
      } else {
        while (to != keys.end() && to->rest.front() == from->rest.front()) ++to;
        // They are sorted, so what the first and the last have in common all have.
        const auto first = from->rest, last = (to - 1)->rest;
        const auto same = static_cast<std::size_t>(
            std::mismatch(first.begin(), first.end(), last.begin(), last.end()).first - first.begin());
        std::vector<std::uint32_t> texts;
        for (auto one = from; one != to; ++one) {
          texts.push_back(one->text);
          one->rest.remove_prefix(same);
        }
        std::sort(texts.begin(), texts.end());
        const bool is_one = to == from + 1;
        begin = add_literal(first.substr(0, same), is_one ? begins_[loop_][from->text] : add_keys({from, to}));
        if (why_) return 0;
        positions_[begin].guard = add_guard(loop_, std::move(texts));
      }
      joined = joined ? add({.what = kind::split, .next = *joined, .other = begin}) : begin;
      from = to;
    }
    return joined.value_or(0);
  }
  std::uint32_t add_counted(const part& p, std::uint32_t next) {
    const std::uint32_t least = may_be_empty(p.parts.front()) ? 0 : p.least;
    loop_ = static_cast<std::uint32_t>(out_.loops_.size());
    auto& made = out_.loops_.emplace_back();
    made.least = least;
    made.most = p.most;
    const auto end = add({.what = kind::text_end, .next = next});
    const auto begin = add_part(p.parts.front(), end);
    loops_.emplace_back(begin, next);
    loop_ = rules_automaton::no_loop;
    return least > 0 ? begin : add({.what = kind::split, .next = begin, .other = next});
  }
  std::uint32_t add_literal(std::string_view text, std::uint32_t next) {
    const auto begin = static_cast<std::uint32_t>(out_.literals_.size());
    out_.literals_ += text;
    for (std::size_t i = text.size(); i-- > 0 && !why_;) {
      position p{
          .what = kind::bytes, .next = next, .other = set_of(byte_set().set(static_cast<std::uint8_t>(text[i])))};
      p.run = begin + static_cast<std::uint32_t>(i);
      p.run_count = static_cast<std::uint32_t>(text.size() - i);
      next = add(p);
    }
    return next;
  }

  // Characters as UTF-8: ranges of code points are split until their encodings are a range in each byte.

  std::uint32_t add_characters(const std::vector<code_range>& ranges, std::uint32_t next) {
    if (!ranges.empty() && ranges.back().last < 0x80) {
      byte_set bytes;
      for (const auto& r : ranges) bytes |= bytes_between(r.first, r.last);
      return add({.what = kind::bytes, .next = next, .other = set_of(bytes)});
    }
    // The bytes that may come first, by the position after them.
    std::map<std::uint32_t, byte_set> firsts;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> shared;  // by the next position and the set
    for (const auto& r : ranges) split(r.first, r.last, next, firsts, shared);
    if (firsts.empty()) return add({.what = kind::bytes, .next = next, .other = set_of({})});  // the set is empty
    std::optional<std::uint32_t> all;
    for (auto at = firsts.rbegin(); at != firsts.rend(); ++at) {
      const auto one = add({.what = kind::bytes, .next = at->first, .other = set_of(at->second)});
      all = all ? add({.what = kind::split, .next = one, .other = *all}) : one;
    }
    return *all;
  }
  void split(char32_t first, char32_t last, std::uint32_t next, std::map<std::uint32_t, byte_set>& firsts,
             std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>& shared) {
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
      const auto [at, is_new] = shared.try_emplace({next, set_of(bytes)}, 0U);
      if (is_new) at->second = add({.what = kind::bytes, .next = next, .other = at->first.second});
      next = at->second;
    }
  }

  // Properties of whole rules.

  /// The positions that a position leads to, which decide what is known of it.
  template<class See>
  static void each_next(const position& p, See see) {
    if (p.what == kind::end) return;
    see(p.next);
    if (p.what == kind::split || p.what == kind::both || p.what == kind::call) see(p.other);
  }
  /// Lists by position those that lead to it.
  void find_users() {
    first_user_.assign(positions_.size() + 1, 0);
    for (const auto& p : positions_) each_next(p, [this](std::uint32_t to) { ++first_user_[to + 1]; });
    for (std::size_t i = 0; i + 1 < first_user_.size(); ++i) first_user_[i + 1] += first_user_[i];
    users_.resize(first_user_.back());
    auto at = first_user_;
    for (std::uint32_t i = 0; i < positions_.size(); ++i)
      each_next(positions_[i], [&](std::uint32_t to) { users_[at[to]++] = i; });
  }

  /// Finds which positions lead to the end of their rule, which do so without a byte and which with one.
  void find_texts() {
    find_users();
    find(may_end_, [&](const position& p) {
      return p.what == kind::end || (p.what == kind::split && (may_end_[p.next] || may_end_[p.other])) ||
             (p.what == kind::call && may_end_[p.other] && may_end_[p.next]);
    });
    find(ends_, [&](const position& p) {
      return p.what == kind::end || (p.what == kind::split && (ends_[p.next] || ends_[p.other])) ||
             ((p.what == kind::call || p.what == kind::both) && ends_[p.other] && ends_[p.next]) ||
             (p.what == kind::text_end && ends_[p.next]) ||
             (p.what == kind::bytes && out_.sets_[p.other].any() && ends_[p.next]);
    });
    find(has_bytes_, [&](const position& p) {
      return (p.what == kind::split && (has_bytes_[p.next] || has_bytes_[p.other])) ||
             (p.what == kind::both && ends_[p.other] && has_bytes_[p.next]) ||
             (p.what == kind::call && ends_[p.other] && ends_[p.next] && (has_bytes_[p.other] || has_bytes_[p.next])) ||
             (p.what == kind::bytes && out_.sets_[p.other].any() && ends_[p.next]);
    });
    // What can have no text is not begun.
    for (auto& g : out_.guards_) {
      if (out_.loops_[g.loop].what == rules_automaton::loop::kind::measured) continue;
      std::erase_if(g.texts, [&](std::uint32_t t) { return !ends_[begins_[g.loop][t]]; });
    }
    if (why_ || ends_[root_]) return;
    auto r = static_cast<std::uint32_t>(rules_.size() - 1);  // rules that others need usually come last
    while (ends_[r]) --r;
    const auto name = rules_[r].name.substr(0, 64);
    refuse(subject_ == "schema" ? "no value matches all that stands at '" + name + "'"
                                : "the rule '" + name + "' has no text: it never ends, or has an empty class");
  }
  /// `is` must say of a position whether it has a property, from what is known so far.
  template<class Is>
  void find(std::vector<bool>& known, Is is) {
    known.assign(positions_.size(), false);
    if (!spend(positions_.size() + users_.size())) return;
    std::vector<std::uint32_t> open;
    const auto look = [&](std::uint32_t i) {
      if (known[i] || !is(positions_[i])) return;
      known[i] = true;
      open.push_back(i);
    };
    for (std::uint32_t i = 0; i < positions_.size(); ++i) look(i);
    while (!open.empty()) {
      const auto from = open.back();
      open.pop_back();
      for (auto u = first_user_[from]; u < first_user_[from + 1]; ++u) look(users_[u]);
    }
  }

  // What follows at each place.

  /// What can be reached from a position without a byte. The positions are in reached_: those that take a byte, then
  /// the calls, each ascending.
  struct reach {
    std::uint32_t rule = 0, loop = 0;
    std::uint32_t first = 0, bytes = 0, calls = 0;
    bool is_between = false, may_end = false, ends_text = false;
    std::uint32_t chosen = 0;
    [[nodiscard]] auto facts() const {
      return std::tie(rule, loop, bytes, calls, is_between, may_end, ends_text, chosen);
    }
  };
  [[nodiscard]] std::span<const std::uint32_t> all_of(const reach& r) const {
    return {reached_.data() + r.first, r.bytes + r.calls};
  }
  [[nodiscard]] bool are_same(const reach& a, const reach& b) const {
    return a.facts() == b.facts() && std::ranges::equal(all_of(a), all_of(b));
  }
  [[nodiscard]] std::size_t hash_of(const reach& r) const {
    std::uint64_t sum = r.rule * std::uint64_t{31} + r.loop + (r.is_between ? 1 : 0);
    for (const auto at : all_of(r)) sum = (sum ^ at) * 0x9e3779b97f4a7c15;
    return sum ^ sum >> 32;
  }
  reach reach_from(std::uint32_t begin, bool is_between) {
    reach out{.rule = positions_[begin].rule,
              .loop = positions_[begin].loop,
              .first = static_cast<std::uint32_t>(reached_.size()),
              .is_between = is_between};
    open_.assign(1, begin);
    reached_calls_.clear();
    ++stamp_;
    while (!open_.empty() && spend(1)) {
      const auto at = open_.back();
      open_.pop_back();
      if (std::exchange(stamps_[at], stamp_) == stamp_ || !ends_[at]) continue;
      const position& p = positions_[at];
      switch (p.what) {
        case kind::end:
          out.may_end = true;
          break;
        case kind::text_end:
          out.ends_text = !is_between;  // between two texts an empty one changes nothing
          out.chosen = p.other;
          break;
        case kind::bytes:
          reached_.push_back(at);
          break;
        case kind::split:
          open_.push_back(p.other);
          open_.push_back(p.next);
          break;
        case kind::both:
          open_.push_back(p.next);
          break;
        case kind::call:
          if (has_bytes_[p.other]) reached_calls_.push_back(at);
          if (may_end_[p.other]) open_.push_back(p.next);
          break;
      }
    }
    const auto bytes = reached_.begin() + out.first;
    std::sort(bytes, reached_.end());
    std::sort(reached_calls_.begin(), reached_calls_.end());
    out.bytes = static_cast<std::uint32_t>(reached_.end() - bytes);
    out.calls = static_cast<std::uint32_t>(reached_calls_.size());
    reached_.insert(reached_.end(), reached_calls_.begin(), reached_calls_.end());
    return out;
  }
  void make_places() {
    place_of_.assign(positions_.size(), UINT32_MAX);
    stamps_.resize(positions_.size());
    std::vector<reach> all;  // by place
    const auto hash = [&](std::uint32_t i) { return hash_of(all[i]); };
    const auto same = [&](std::uint32_t a, std::uint32_t b) { return are_same(all[a], all[b]); };
    std::unordered_set<std::uint32_t, decltype(hash), decltype(same)> known(0, hash, same);
    std::vector<std::uint32_t> alone(positions_.size(), UINT32_MAX);  // places that only this position is reached from
    const auto make = [&](std::uint32_t at, bool is_between) {
      const auto fresh = static_cast<std::uint32_t>(all.size());
      const reach& one = all.emplace_back(reach_from(at, is_between));
      if (!count_ways(one.bytes + one.calls)) return 0U;
      const bool is_alone = one.bytes == 1 && one.calls == 0 && !is_between && !one.may_end && !one.ends_text;
      std::uint32_t* const place = is_alone ? &alone[reached_.back()] : nullptr;
      if (place != nullptr && *place == UINT32_MAX) return *place = fresh;
      const auto found = place != nullptr ? *place : *known.insert(fresh).first;
      if (found != fresh) {
        reached_.resize(one.first);
        all.pop_back();
      }
      return found;
    };
    const auto visit = [&](std::uint32_t at) {
      if (!why_ && ends_[at] && place_of_[at] == UINT32_MAX) place_of_[at] = make(at, false);
    };
    for (std::uint32_t i = 0; i < rules_.size(); ++i) visit(i);
    for (const auto& p : positions_) {
      if (p.what == kind::bytes || p.what == kind::call) visit(p.next);
    }
    for (std::size_t i = 0; i < loops_.size() && !why_; ++i) {
      const auto [begin, next] = loops_[i];
      if (!ends_[begin]) continue;
      visit(next);
      out_.loops_[i].between = make(begin, true);
      out_.loops_[i].exit = place_of_[next];
    }
    out_.places_.reserve(all.size() + 1);
    for (const reach& one : all) {
      if (why_) return;
      place& made = out_.places_.emplace_back();
      made.rule = one.rule;
      made.loop = one.loop;
      made.is_between = one.is_between;
      made.ends_text = one.ends_text;
      made.chosen = one.chosen;
      made.may_end = one.may_end;
      heads_.clear();
      calls_.clear();
      for (const auto at : all_of(one).first(one.bytes)) {
        heads_.push_back(head_at(positions_[at]));
        if (made.is_between && out_.loops_[made.loop].any_text != rules_automaton::no_guard)
          heads_.back().guard = out_.loops_[made.loop].any_text;
      }
      for (const auto at : all_of(one).last(one.calls))
        calls_.push_back({positions_[at].other, place_of_[positions_[at].next]});
      put_ways(made);
    }
    out_.root_ = root_;
    out_.root_may_be_empty_ = may_end_[root_];
    out_.accept_ = static_cast<std::uint32_t>(out_.places_.size());
    out_.places_.emplace_back();
  }
  [[nodiscard]] head head_at(const position& p) const {
    return {.set = p.other,
            .next = place_of_[p.next],
            .run = p.run,
            .run_count = p.run_count,
            .guard = p.guard,
            .adds_one = p.adds_one};
  }
  bool count_ways(std::size_t count) {
    ways_count_ += count;
    if (ways_count_ > rules_automaton::ways_max) refuse("too many rules or alternatives may follow at its places");
    return spend(count);
  }
  /// Gives the ways what is in heads_ and calls_.
  void put_ways(ways& to) {
    // Ways that lead to one place are one way.
    std::stable_sort(heads_.begin(), heads_.end(), [](const head& a, const head& b) { return a.next < b.next; });
    to.first_head = static_cast<std::uint32_t>(out_.heads_.size());
    for (const auto& one : heads_) {
      to.takes |= out_.sets_[one.set];
      if (out_.heads_.size() > to.first_head && out_.heads_.back().next == one.next &&
          out_.heads_.back().guard == one.guard && out_.heads_.back().adds_one == one.adds_one) {
        head& same = out_.heads_.back();
        if (same.set == one.set) continue;
        same = {.set = set_of(out_.sets_[same.set] | out_.sets_[one.set]),
                .next = one.next,
                .guard = one.guard,
                .adds_one = one.adds_one};
      } else {
        out_.heads_.push_back(one);
      }
    }
    to.heads = static_cast<std::uint32_t>(out_.heads_.size()) - to.first_head;
    if (to.heads > rules_automaton::heads_max)
      refuse(
          "more than " + std::to_string(rules_automaton::heads_max) +
          " alternatives may follow at one place: give them common beginnings, or join single characters to a class");
    std::sort(calls_.begin(), calls_.end());
    calls_.erase(std::unique(calls_.begin(), calls_.end()), calls_.end());
    to.first_call = static_cast<std::uint32_t>(out_.calls_.size());
    to.calls = static_cast<std::uint32_t>(calls_.size());
    out_.calls_.insert(out_.calls_.end(), calls_.begin(), calls_.end());
  }
  /// Joins the ways of each rule with those of all rules that it calls before its first byte.
  void make_beginnings() {
    std::vector<std::uint32_t> seen(rules_.size(), UINT32_MAX);
    out_.beginnings_.resize(rules_.size());
    for (std::uint32_t i = 0; i < rules_.size() && !why_; ++i) {
      if (!has_bytes_[i]) continue;
      heads_.clear();
      calls_.clear();
      open_.assign(1, i);
      seen[i] = i;
      while (!open_.empty() && !why_) {
        const place& from = out_.places_[place_of_[open_.back()]];
        open_.pop_back();
        if (!count_ways(1 + from.heads + from.calls)) return;
        for (const auto& one : out_.heads(from)) heads_.push_back(one);
        for (const auto& one : out_.calls(from)) {
          calls_.push_back(one);
          if (std::exchange(seen[one.rule], i) != i) open_.push_back(one.rule);
        }
      }
      put_ways(out_.beginnings_[i]);
    }
  }

  /// Finds places, such as the inside of a string, where all plain text, or all bytes but one, are taken in one way and
  /// lead back, and those that lead to such a place.
  void find_text_loops() {
    for (std::uint32_t i = 0; i < out_.accept_ && !why_; ++i) {
      place& p = out_.places_[i];
      const auto* letter = letter_of(p);
      if (letter == nullptr || !leads_back(letter->next, i)) continue;
      const byte_set left = ~out_.sets_[letter->set];
      if (is_text_loop(i, i, 0))
        p.text = &plain_text();
      else if (left.count() == 1 && is_only_way(p, *letter))
        p.text = bytes_but(first_of(left));
      if (p.text != nullptr) p.text_loop = i;
    }
    for (std::uint32_t i = 0; i < out_.accept_; ++i) join_text(out_.places_[i]);
    for (auto& one : out_.beginnings_) join_text(one);
  }
  static std::uint8_t first_of(const byte_set& set) {
    std::uint8_t byte = 0;
    while (!set[byte]) ++byte;
    return byte;
  }
  /// Whether no other way takes one of its bytes.
  [[nodiscard]] bool is_only_way(const ways& w, const head& h) const {
    return std::ranges::none_of(out_.heads(w), [&](const head& other) {
      return &other != &h && (out_.sets_[other.set] & out_.sets_[h.set]).any();
    });
  }
  void join_text(ways& w) {
    if (w.text_loop == rules_automaton::no_loop) join_text_loop(w);
    if (w.text_loop == rules_automaton::no_loop) join_bytes(w);
  }
  /// Finds a text of all bytes but one, also where one more byte leads elsewhere.
  void join_bytes(ways& w) {
    for (const head& h : out_.heads(w)) {
      const place& loop = out_.places_[h.next];
      if (loop.text_loop != h.next || loop.text == &plain_text()) continue;
      const byte_set left = loop.text->begins & ~out_.sets_[h.set];
      if (left.count() > 1 || !is_only_way(w, h)) continue;
      w.text = loop.text;
      w.text_loop = h.next;
      if (left.any()) w.exit_byte = first_of(left);
      return;
    }
  }
  /// The first way to take a letter, which most places do not take.
  [[nodiscard]] const head* letter_of(const ways& w) const {
    const auto heads = out_.heads(w);
    const auto at = std::ranges::find_if(heads, [&](const head& h) { return out_.sets_[h.set]['a']; });
    return at == heads.end() || at->adds_one ? nullptr : &*at;
  }
  void join_text_loop(ways& w) {
    const auto* letter = letter_of(w);
    if (letter == nullptr) return;
    const place& after = out_.places_[letter->next];
    const auto loop = after.ends_text ? out_.loops_[after.loop].between : letter->next;
    const place& inside = out_.places_[loop];
    if (inside.text_loop != loop || !std::ranges::equal(out_.heads(w), out_.heads(inside))) return;
    w.text_loop = loop;
    w.text = inside.text;
  }
  bool is_text_loop(std::uint32_t loop, std::uint32_t at, std::size_t state) {
    const auto& table = plain_text().next;
    const place& p = out_.places_[at];
    // Within a character nothing but its rest may follow.
    const bool has_more = p.may_end || p.calls > 0 || p.ends_text;
    if (!spend(1 + std::size_t{16} * p.heads) || (state != 0 && has_more)) return false;
    std::array<std::uint32_t, 256> leads;
    leads.fill(UINT32_MAX);
    byte_set inside;
    for (std::size_t b = 0; b < 256; ++b) inside[b] = table[state][b] != free_text::outside;
    if ((inside & ~p.takes).any()) return false;
    for (const head& one : out_.heads(p)) {
      const byte_set taken = inside & out_.sets_[one.set];
      bool is_new = true;
      each_byte(taken, [&](std::size_t b) { is_new = is_new && std::exchange(leads[b], one.next) == UINT32_MAX; });
      if (!is_new) return false;
    }
    std::map<std::pair<std::uint32_t, std::size_t>, bool> known;
    for (std::size_t b = 0; b < 256; ++b) {
      const auto then = table[state][b];
      if (then == free_text::outside) continue;
      if (leads[b] == UINT32_MAX || (then == 0) != leads_back(leads[b], loop)) return false;
      if (then == 0) continue;
      const auto [one, is_new] = known.try_emplace({leads[b], then}, false);
      if (is_new) one->second = is_text_loop(loop, leads[b], then);
      if (!one->second) return false;
    }
    return true;
  }
  /// Whether a text that gets to a place is at the place `loop` again.
  [[nodiscard]] bool leads_back(std::uint32_t at, std::uint32_t loop) const {
    const place& to = out_.places_[loop];
    const place& p = out_.places_[at];
    return to.is_between ? p.ends_text && p.loop == to.loop && p.heads == 0 : at == loop && !p.ends_text;
  }

  std::string subject_;
  std::vector<rule> rules_;
  std::uint32_t root_;
  std::uint32_t rule_ = 0;                         // the one that is being added
  std::uint32_t loop_ = rules_automaton::no_loop;  // the one that is being added
  // By loop: where its texts begin, or the separator; and the position after the last.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> loops_;
  std::vector<std::vector<std::uint32_t>> begins_;  // by loop and text: the position after its key
  std::vector<position> positions_;
  rules_automaton out_;
  std::unordered_map<byte_set, std::uint32_t> sets_;
  std::vector<std::uint32_t> first_user_, users_;  // by position: see find_users
  std::vector<bool> may_end_, ends_, has_bytes_;   // by position: see find_texts
  std::vector<std::uint32_t> place_of_;            // by position
  std::vector<std::uint32_t> stamps_;              // by position: the last reach that visited it
  std::uint32_t stamp_ = 0;
  std::vector<std::uint32_t> reached_;  // see reach
  // Used again to save allocations.
  std::vector<std::uint32_t> reached_calls_, open_;
  std::vector<head> heads_;
  std::vector<call> calls_;
  std::size_t ways_count_ = 0;
  step_count& steps_;
  std::optional<failure> why_;
};

result<std::shared_ptr<const rules_automaton>> rules_automaton::compile(std::string_view grammar, step_count& steps) {
  REDLINE_TRY_ASSIGN(auto rules, read_grammar(grammar, steps));
  return compile(std::move(rules), steps);
}
result<std::shared_ptr<const rules_automaton>> rules_automaton::compile(grammar_rules grammar, step_count& steps) {
  REDLINE_TRY_ASSIGN(auto made, make(std::move(grammar), steps));
  return std::make_shared<const rules_automaton>(std::move(made));
}
result<rules_automaton> rules_automaton::make(grammar_rules grammar, step_count& steps) {
  return rules_compiler(std::move(grammar), steps).run();
}

}  // namespace redline::grammar
