#include "runtime/grammar/automata/rule_positions.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <type_traits>

#include "runtime/base/utf8.hpp"

namespace redline::grammar {
namespace {

constexpr std::pair<std::uint8_t, std::uint8_t> json_escapes[] = {{'"', '"'},  {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'},
                                                                  {'\n', 'n'}, {'\r', 'r'},  {'\t', 't'}};
constexpr std::size_t told_apart_max = 64;  // texts that begin like an excluded one for so long are left out too
constexpr std::uint32_t unrolled_max = 16;  // longer repetitions are counted where that is possible

class positions_builder {
 public:
  explicit positions_builder(rules_compilation& work) : work_(work) {}

  rule_positions run() {
    // The beginnings of rules, filled in below.
    for (rule_ = 0; rule_ < work_.rules.size(); ++rule_) add({});
    for (rule_ = 0; rule_ < work_.rules.size() && !work_.why; ++rule_) {
      const auto end = add({.what = kind::end});
      const auto begin = add_part(work_.rules[rule_].right, end);
      if (!work_.why) positions_[rule_] = {.what = kind::split, .next = begin, .other = begin, .rule = rule_};
    }
    return {std::move(positions_), std::move(loops_), std::move(begins_)};
  }

 private:
  using kind = rule_positions::kind;
  using position = rule_positions::position;

  std::uint32_t add(position p) {
    if (!work_.spend(1)) return 0;
    if (positions_.size() >= rules_compilation::positions_max) {
      work_.refuse("it takes more than " + std::to_string(rules_compilation::positions_max) + " places in the rule '" +
                   work_.rules[rule_].name + "': repeat less");
      return 0;
    }
    p.rule = rule_;
    p.loop = loop_;
    positions_.push_back(p);
    return static_cast<std::uint32_t>(positions_.size() - 1);
  }
  /// Adds a part that continues at `next`, and returns where it begins.
  std::uint32_t add_part(const part& p, std::uint32_t next) {
    if (work_.why) return 0;
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
    if (begins.empty()) begins.push_back(add({.what = kind::bytes, .next = node, .other = work_.set_of({})}));
    std::uint32_t rest = begins.back();
    for (auto i = begins.size(); i-- > 2 && !work_.why;)
      rest = add({.what = kind::split, .next = begins[i - 1], .other = rest});
    if (work_.why) return;
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
    for (std::uint32_t i = 0; i < texts.states_count() && !work_.why; ++i) {
      if (!work_.spend(16)) return 0;
      nodes.push_back(add({.what = kind::split}));
      std::map<std::uint16_t, byte_set> bytes_to;
      for (unsigned byte = 0; byte < 256; ++byte) {
        const auto then = texts.next(i, static_cast<std::uint8_t>(byte));
        if (then != regex_dfa::dead) bytes_to[then].set(byte);
      }
      std::vector<std::uint32_t> begins;
      for (auto& [then, bytes] : bytes_to) {
        const auto lead_on = [&, to = then](const byte_set& to_take) {
          const auto at = add({.what = kind::bytes, .next = next, .other = work_.set_of(to_take)});
          if (texts.goes_on(to) || is_measured) open.emplace_back(at, to);
          return at;
        };
        const auto begin_with = [&, to = then](std::uint32_t at) {
          if constexpr (is_measured) {
            if (work_.why) return;
            positions_[at].adds_one = (work_.tables.sets[positions_[at].other] & inside).none();
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
            begin_with(
                add({.what = kind::bytes, .next = lead_on(escapes), .other = work_.set_of(byte_set().set('\\'))}));
        }
        if (bytes.any()) begin_with(lead_on(bytes));
      }
      if (i == 0 && begins_of != nullptr) *begins_of = begins;
      if (texts.accepts(i)) begins.push_back(next);
      set_begins(nodes.back(), std::move(begins));
    }
    if (work_.why) return 0;
    for (const auto& [place, then] : open) positions_[place].next = nodes[then];
    return nodes.front();
  }
  std::uint32_t add_expression(const regex_dfa& texts, bool is_escaped, std::uint32_t next) {
    return add_states(texts, is_escaped, next, nullptr, nullptr);
  }
  /// Adds an expression whose characters are counted: each way is guarded by the counts from which the text can be
  /// completed.
  std::uint32_t add_measured(const part& p, std::uint32_t next) {
    if (loop_ != rule_tables::no_loop) {
      work_.refuse("a measured text inside of a repetition");
      return 0;
    }
    const regex_dfa& texts = *p.expression;
    const text_length length{p.least, p.most};
    const auto counts = texts.completable(length, work_.steps);
    if (work_.steps.is_over() || counts.empty()) {
      (void)work_.spend(0);
      return add({.what = kind::bytes, .next = next, .other = work_.set_of({})});
    }
    loop_ = static_cast<std::uint32_t>(work_.tables.loops.size());
    auto& made = work_.tables.loops.emplace_back();
    made.what = rule_tables::loop::kind::measured;
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
    loop_ = rule_tables::no_loop;
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
      if (!work_.spend(1)) return 0;
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
      if (!work_.spend(same * group.size() / 8)) return 0;
      for (auto& one : group) one.take(same);
      begins.push_back(add_literal(std::string_view(first).substr(0, same), add_alternatives(group, next)));
    }
    if (work_.why) return 0;
    std::uint32_t joined = begins.back();
    for (auto i = begins.size() - 1; i-- > 0;) joined = add({.what = kind::split, .next = begins[i], .other = joined});
    return joined;
  }

  std::uint32_t add_repeat(const part& p, std::uint32_t next) {
    const part& body = p.parts.front();
    std::uint32_t at = next;
    const bool is_counted = p.most == UINT32_MAX ? p.least > 1 : p.most > unrolled_max;
    const bool is_simple = !has_rule(body) || !may_be_empty(body);
    if (is_counted && is_simple && loop_ == rule_tables::no_loop) return add_counted(p, next);
    if (p.most == UINT32_MAX) {
      const auto loop = add({.what = kind::split, .next = 0, .other = next});
      const auto begin = add_part(body, loop);
      if (work_.why) return 0;
      positions_[loop].next = begin;
      if (p.least == 0) return loop;
      at = begin;  // the last required one
      for (std::uint32_t i = 1; i < p.least && !work_.why; ++i) at = add_part(body, at);
      return at;
    }
    for (std::uint32_t i = p.least; i < p.most && !work_.why; ++i) {
      at = add({.what = kind::split, .next = add_part(body, at), .other = next});
    }
    for (std::uint32_t i = 0; i < p.least && !work_.why; ++i) at = add_part(body, at);
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
                .next = add({.what = kind::bytes, .next = next, .other = work_.set_of(letters)}),
                .other = work_.set_of(byte_set().set('\\'))});
  }
  /// The rest of the texts behind the first `at` bytes of all these.
  std::uint32_t add_texts_but(texts_iterator begin, texts_iterator end, std::size_t at, const ways_out& to,
                              std::uint32_t next) {
    if (begin == end) return to.any_text;
    if (at >= told_apart_max || work_.why) return add({.what = kind::bytes, .next = next, .other = work_.set_of({})});
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
    if (work_.why) return 0;
    ways.push_back(add({.what = kind::bytes, .next = to.any_text, .other = work_.set_of(plain)}));
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
    if (loop_ != rule_tables::no_loop) {
      work_.refuse("a choice of different texts inside of another");
      return 0;
    }
    const auto number = static_cast<std::uint32_t>(work_.tables.loops.size());
    const auto count = static_cast<std::uint32_t>(rule.keys.size());
    using loop = rule_tables::loop;
    loop& made = work_.tables.loops.emplace_back();
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
      if (!work_.why && positions_[others].what != kind::bytes)
        work_.refuse("other texts that begin in different ways");
      if (work_.why) return 0;
      positions_[others].guard = add_guard(number, {count});
      begins.push_back(others);
      begin = count > 0 ? add({.what = kind::split, .next = begin, .other = others}) : others;
    }
    const auto between = add_part(p.parts.front(), begin);
    loops_.emplace_back(between, next);
    loop_ = rule_tables::no_loop;
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
    (void)work_.spend(texts.size());
    work_.tables.guards.push_back({loop, std::move(texts)});
    return static_cast<std::uint32_t>(work_.tables.guards.size() - 1);
  }
  /// Adds the keys, which are all different.
  std::uint32_t add_keys(std::vector<key_of_text> keys) {
    std::sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.rest < b.rest; });
    std::optional<std::uint32_t> joined;
    for (auto from = keys.begin(); from != keys.end() && work_.spend(1);) {
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
        if (work_.why) return 0;
        positions_[begin].guard = add_guard(loop_, std::move(texts));
      }
      joined = joined ? add({.what = kind::split, .next = *joined, .other = begin}) : begin;
      from = to;
    }
    return joined.value_or(0);
  }
  std::uint32_t add_counted(const part& p, std::uint32_t next) {
    const std::uint32_t least = may_be_empty(p.parts.front()) ? 0 : p.least;
    loop_ = static_cast<std::uint32_t>(work_.tables.loops.size());
    auto& made = work_.tables.loops.emplace_back();
    made.least = least;
    made.most = p.most;
    const auto end = add({.what = kind::text_end, .next = next});
    const auto begin = add_part(p.parts.front(), end);
    loops_.emplace_back(begin, next);
    loop_ = rule_tables::no_loop;
    return least > 0 ? begin : add({.what = kind::split, .next = begin, .other = next});
  }
  std::uint32_t add_literal(std::string_view text, std::uint32_t next) {
    const auto begin = static_cast<std::uint32_t>(work_.tables.literals.size());
    work_.tables.literals += text;
    for (std::size_t i = text.size(); i-- > 0 && !work_.why;) {
      position p{
          .what = kind::bytes, .next = next, .other = work_.set_of(byte_set().set(static_cast<std::uint8_t>(text[i])))};
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
      return add({.what = kind::bytes, .next = next, .other = work_.set_of(bytes)});
    }
    // The bytes that may come first, by the position after them.
    std::map<std::uint32_t, byte_set> firsts;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> shared;  // by the next position and the set
    for (const auto& r : ranges) split(r.first, r.last, next, firsts, shared);
    if (firsts.empty()) return add({.what = kind::bytes, .next = next, .other = work_.set_of({})});  // the set is empty
    std::optional<std::uint32_t> all;
    for (auto at = firsts.rbegin(); at != firsts.rend(); ++at) {
      const auto one = add({.what = kind::bytes, .next = at->first, .other = work_.set_of(at->second)});
      all = all ? add({.what = kind::split, .next = one, .other = *all}) : one;
    }
    return *all;
  }
  void split(char32_t first, char32_t last, std::uint32_t next, std::map<std::uint32_t, byte_set>& firsts,
             std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>& shared) {
    if (work_.why) return;
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
      const auto [at, is_new] = shared.try_emplace({next, work_.set_of(bytes)}, 0U);
      if (is_new) at->second = add({.what = kind::bytes, .next = next, .other = at->first.second});
      next = at->second;
    }
  }

  rules_compilation& work_;
  std::uint32_t rule_ = 0;                     // the one that is being added
  std::uint32_t loop_ = rule_tables::no_loop;  // the one that is being added
  std::vector<position> positions_;
  // As in rule_positions.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> loops_;
  std::vector<std::vector<std::uint32_t>> begins_;
};

}  // namespace

rule_positions make_positions(rules_compilation& work) { return positions_builder(work).run(); }

}  // namespace redline::grammar
