#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "runtime/base/utf8.hpp"
#include "runtime/grammar/gbnf_automaton.hpp"
#include "runtime/grammar/syntax/grammar_rules.hpp"
#include "runtime/grammar/syntax/steps.hpp"

namespace redline::grammar {
namespace {

constexpr std::uint32_t unending = 1U << 20;  // frames needed by a rule that never ends
constexpr std::size_t rounds_max = 512;       // rounds of an iteration over all positions

}  // namespace

/// Builds the positions of an automaton and the ways to continue from each.
class gbnf_compiler {
 public:
  gbnf_compiler(grammar_rules grammar, step_count& steps)
      : rules_(std::move(grammar.rules)), root_(grammar.root), steps_(steps) {}

  result<std::shared_ptr<const gbnf_automaton>> run() {
    for (std::size_t i = 0; i < rules_.size(); ++i) add({});  // the beginnings of rules, filled in below
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
    if (out_->is_lost(out_->begin())) {
      refuse("a text can begin in more ways than are followed at the same time: write it with fewer alternatives");
      return *why_;
    }
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
  /// Counts work. Returns false if compilation has failed or takes too long.
  bool spend(std::size_t steps) {
    steps_.add(steps);
    if (steps_.is_over()) refuse("it takes too long to compile: write it with fewer rules and repetitions");
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

  /// Adds a part that continues at `next`, and returns where it begins.
  std::uint32_t add_part(const part& p, std::uint32_t next) {
    if (why_) return 0;
    switch (p.what) {
      case part::kind::literal:
        return add_literal(p.text, next);
      case part::kind::characters:
        return add_characters(p.ranges, next);
      case part::kind::expression:
        return add_expression(*p.expression, next);
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
      case part::kind::graph:
        return add_graph(p, next);
    }
    return next;
  }

  void set_ways(std::uint32_t node, std::vector<std::uint32_t> ways) {
    if (ways.empty()) ways.push_back(add({.what = kind::bytes, .next = node, .other = set_of({})}));
    std::uint32_t rest = ways.back();
    for (auto i = ways.size(); i-- > 2 && !why_;) rest = add({.what = kind::split, .next = ways[i - 1], .other = rest});
    if (why_) return;
    out_->positions_[node].next = ways.front();
    out_->positions_[node].other = rest;
  }
  std::uint32_t add_graph(const part& p, std::uint32_t next) {
    std::vector<std::uint32_t> nodes;
    for (std::uint32_t i = 0; i < p.nodes && !why_; ++i) nodes.push_back(add({.what = kind::split}));
    std::vector<std::vector<std::uint32_t>> ways(p.nodes);
    for (std::size_t i = 0; i < p.edges.size() && !why_; ++i)
      ways[p.edges[i].first].push_back(add_part(p.parts[i], nodes[p.edges[i].second]));
    if (why_) return 0;
    ways.back().push_back(next);
    for (std::uint32_t i = 0; i < p.nodes && !why_; ++i) set_ways(nodes[i], ways[i]);
    return why_ ? 0 : nodes.front();
  }
  /// Adds the expression's states in order, each with its ways. An iteration over all positions from last to first then
  /// passes its results along a chain of states in one round.
  std::uint32_t add_expression(const regex_dfa& texts, std::uint32_t next) {
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
      std::vector<std::uint32_t> ways;
      for (const auto& [then, bytes] : bytes_to) {
        ways.push_back(add({.what = kind::bytes, .next = next, .other = set_of(bytes)}));
        if (texts.goes_on(then)) open.emplace_back(ways.back(), then);
      }
      if (texts.accepts(i)) ways.push_back(next);
      set_ways(nodes.back(), std::move(ways));
    }
    if (why_) return 0;
    for (const auto& [place, then] : open) out_->positions_[place].next = nodes[then];
    return nodes.front();
  }

  // Alternatives that begin with the same text or rule share it. So a list of many texts is at one position at a time,
  // and a rule's text is followed once instead of once for each alternative.

  struct alternative {
    std::vector<const part*> rest;  // consecutive parts
    std::size_t taken = 0;          // bytes of the first part, a literal, that are used up
    [[nodiscard]] std::string_view text() const {
      if (rest.empty() || rest.front()->what != part::kind::literal) return {};
      return std::string_view(rest.front()->text).substr(taken);
    }
    /// The rule that it begins with; null if there is none.
    [[nodiscard]] const part* call() const {
      return rest.empty() || rest.front()->what != part::kind::rule ? nullptr : rest.front();
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
    std::vector<std::vector<alternative>> groups;  // by first byte or rule, in order; others are alone
    std::array<std::size_t, 256> group_of{};
    std::unordered_map<std::uint32_t, std::size_t> group_of_rule;
    for (const auto& one : all) {
      if (!spend(1)) return 0;
      const auto text = one.text();
      std::size_t* known = !text.empty()           ? &group_of[static_cast<std::uint8_t>(text.front())]
                           : one.call() != nullptr ? &group_of_rule[one.call()->rule]
                                                   : nullptr;
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
      if (const part* call = group.front().call()) {
        for (auto& one : group) one.rest.erase(one.rest.begin());
        ways.push_back(add_part(*call, add_alternatives(group, next)));
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

  // Characters as UTF-8: ranges of code points are split until their encodings are a range in each byte.

  std::uint32_t add_characters(const std::vector<code_range>& ranges, std::uint32_t next) {
    // The bytes that may come first, by the position after them.
    std::map<std::uint32_t, byte_set> firsts;
    std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> shared;
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

  // Properties of whole rules.

  /// `look` updates what is known of a position and returns whether it has changed.
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

  /// Finds the frames that it takes to end a rule from each position; `unending` if it never ends.
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
    for (auto r = static_cast<std::uint32_t>(rules_.size()); r-- > 0;) {  // rules that others need usually come last
      if (all[r].need < unending) continue;
      return refuse("the rule '" + rules_[r].name.substr(0, 64) +
                    "' has no text: it never ends, or has an empty class");
    }
    refuse("its shortest text needs more than " + std::to_string(gbnf_automaton::depth_max) +
           " rules within each other");
  }

  // Ways to continue from a position.

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
  /// Finds positions, such as the inside of a string, where all plain text is taken in one way and leads back.
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
    // Tries a letter first, which most positions do not take.
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
  std::vector<std::uint32_t> order_;   // rules, each after those that it may begin with
  std::vector<std::uint32_t> stamps_;  // by position: the last closure that visited it
  std::uint32_t stamp_ = 0;
  std::size_t items_count_ = 0;
  step_count& steps_;
  std::optional<failure> why_;
};

result<std::shared_ptr<const gbnf_automaton>> gbnf_automaton::compile(std::string_view grammar, step_count& steps) {
  REDLINE_TRY_ASSIGN(auto rules, read_grammar(grammar, steps));
  return gbnf_compiler(std::move(rules), steps).run();
}

}  // namespace redline::grammar
