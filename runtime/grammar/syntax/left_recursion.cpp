#include "runtime/grammar/syntax/left_recursion.hpp"

#include <algorithm>
#include <optional>

#include "runtime/grammar/syntax/steps.hpp"

namespace redline::grammar {
namespace {

using kind = part::kind;

part sequence_of(std::vector<part> parts) { return {.what = kind::sequence, .parts = std::move(parts)}; }

class remover {
 public:
  remover(grammar_rules& grammar, step_count& steps) : rules_(grammar.rules), steps_(steps) {}

  result<void> run() {
    find_nullable();
    find_firsts();
    if (!why_) find_components();
    for (const auto& members : components_) {
      if (!why_) rewrite(members);
    }
    if (why_) return *why_;
    return {};
  }

 private:
  /// A rule of the component that a part begins with, and what comes after it.
  struct corner {
    std::uint32_t rule = 0;
    part rest{};
  };
  /// The texts of a part: those that begin with a rule of the component, and all others.
  struct corners {
    std::vector<corner> own;
    std::vector<part> others;
  };

  void refuse(const std::string& what) {
    if (!why_) why_ = failure{errc::invalid_argument, "grammar: " + what};
  }
  bool spend(std::size_t steps = 1) {
    steps_.add(steps);
    if (steps_.is_over()) refuse("it takes too long to compile: write it with fewer rules and repetitions");
    return !why_;
  }
  part copy(const part& p) {
    count(p);
    return why_ ? part{} : p;
  }
  void count(const part& p) {
    bytes_ +=
        sizeof(part) + p.text.size() + p.ranges.size() * sizeof(code_range) + p.edges.size() * sizeof(p.edges.front());
    if (bytes_ > left_recursion_bytes_max) {
      refuse("the rule '" + rules_[rule_].name.substr(0, 64) +
             "' begins with itself by way of too many others: write fewer rules that begin with each other");
    }
    if (!spend(1 + p.text.size() / 16 + p.ranges.size())) return;
    for (const auto& one : p.parts) count(one);
  }

  // ---- properties of rules ----

  bool is_nullable(const part& p) {
    if (!spend()) return false;
    const auto one_is = [this](const part& one) { return is_nullable(one); };
    switch (p.what) {
      case kind::literal:
        return p.text.empty();
      case kind::characters:
        return false;
      case kind::expression:
        return p.expression->accepts(p.expression->begin());
      case kind::rule:
        return nullable_[p.rule];
      case kind::choice:
        return std::any_of(p.parts.begin(), p.parts.end(), one_is);
      case kind::repeat:
        return p.least == 0 || is_nullable(p.parts.front());
      case kind::sequence:
      case kind::graph:
        return std::all_of(p.parts.begin(), p.parts.end(), one_is);
    }
    return false;
  }
  void find_nullable() {
    nullable_.assign(rules_.size(), false);
    for (bool changed = true; changed && !why_;) {
      changed = false;
      for (std::size_t i = rules_.size(); i-- > 0;) {
        if (nullable_[i] || !is_nullable(rules_[i].right)) continue;
        nullable_[i] = changed = true;
      }
    }
  }
  void add_firsts(const part& p, std::vector<std::uint32_t>& out) {
    if (!spend()) return;
    if (p.what == kind::rule) out.push_back(p.rule);
    for (const auto& one : p.parts) {
      add_firsts(one, out);
      if (p.what == kind::sequence && !is_nullable(one)) return;
    }
  }
  void find_firsts() {
    firsts_.resize(rules_.size());
    for (std::size_t i = 0; i < rules_.size() && !why_; ++i) {
      auto& mine = firsts_[i];
      add_firsts(rules_[i].right, mine);
      std::sort(mine.begin(), mine.end());
      mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
    }
  }
  /// Finds rules that begin with each other (Tarjan, "Depth-First Search and Linear Graph Algorithms", 1972).
  void find_components() {
    struct frame {
      std::uint32_t rule;
      std::size_t next;
    };
    constexpr std::uint32_t fresh = UINT32_MAX;
    std::vector<std::uint32_t> number(rules_.size(), fresh), low(rules_.size()), stack;
    std::vector<bool> on_stack(rules_.size());
    std::uint32_t count = 0;
    for (std::uint32_t first = 0; first < rules_.size(); ++first) {
      if (number[first] != fresh) continue;
      std::vector<frame> open{{first, 0}};
      while (!open.empty()) {
        const auto r = open.back().rule;
        if (open.back().next == 0 && number[r] == fresh) {
          number[r] = low[r] = count++;
          stack.push_back(r);
          on_stack[r] = true;
        }
        if (open.back().next < firsts_[r].size()) {
          const auto other = firsts_[r][open.back().next++];
          if (number[other] == fresh) {
            open.push_back({other, 0});
          } else if (on_stack[other]) {
            low[r] = std::min(low[r], number[other]);
          }
          continue;
        }
        open.pop_back();
        if (!open.empty()) low[open.back().rule] = std::min(low[open.back().rule], low[r]);
        if (low[r] != number[r]) continue;
        std::vector<std::uint32_t> members;
        do {
          members.push_back(stack.back());
          on_stack[stack.back()] = false;
          stack.pop_back();
        } while (members.back() != r);
        const bool is_recursive = members.size() > 1 || std::binary_search(firsts_[r].begin(), firsts_[r].end(), r);
        if (is_recursive) components_.push_back(std::move(members));
      }
    }
  }

  // ---- one component ----

  void rewrite(const std::vector<std::uint32_t>& members) {
    node_.assign(rules_.size(), 0);
    for (std::uint32_t i = 0; i < members.size(); ++i) node_[members[i]] = i + 1;
    // Node 0 is the beginning. Each other node means that a text of its rule is complete.
    part all{.what = kind::graph};
    all.nodes = static_cast<std::uint32_t>(members.size() + 1);
    for (const auto r : members) {
      rule_ = r;
      corners found;
      take_apart(rules_[r].right, found);
      if (why_) return;
      for (auto& other : found.others) {
        all.parts.push_back(std::move(other));
        all.edges.emplace_back(0, node_[r]);
      }
      for (auto& one : found.own) {
        all.parts.push_back(std::move(one.rest));
        all.edges.emplace_back(node_[one.rule], node_[r]);
      }
    }
    for (const auto r : members) {
      rule_ = r;
      part mine = copy(all);
      if (why_) return;
      // A graph ends at its last node, so the rule's own node becomes the last one.
      const auto last = all.nodes - 1;
      const auto renumbered = [&](std::uint32_t n) { return n == last ? node_[r] : n == node_[r] ? last : n; };
      for (auto& [from, to] : mine.edges) from = renumbered(from), to = renumbered(to);
      rules_[r].right = std::move(mine);
    }
  }

  bool begins_with_member(const part& p) {
    if (!spend()) return false;
    if (p.what == kind::rule) return node_[p.rule] != 0;
    if (p.what == kind::graph) return false;
    for (const auto& one : p.parts) {
      if (begins_with_member(one)) return true;
      if (p.what == kind::sequence && !is_nullable(one)) return false;
    }
    return false;
  }

  void take_apart(const part& p, corners& out) {
    if (!spend()) return;
    if (!begins_with_member(p)) {
      out.others.push_back(copy(p));
      return;
    }
    switch (p.what) {
      case kind::rule:
        out.own.push_back({p.rule, part{}});
        break;
      case kind::choice:
        for (const auto& one : p.parts) take_apart(one, out);
        break;
      case kind::sequence:
        take_apart_sequence(p, out);
        break;
      case kind::repeat: {
        const part& body = p.parts.front();
        if (is_nullable(body)) return refuse_hidden();
        if (p.least == 0) out.others.push_back({});
        if (p.most == 0) return;
        part more = copy(p);
        more.least -= more.least > 0 ? 1 : 0;
        more.most -= more.most == UINT32_MAX ? 0 : 1;
        take_apart(sequence_of({copy(body), std::move(more)}), out);
        break;
      }
      default:
        break;
    }
  }
  void take_apart_sequence(const part& p, corners& out) {
    const part rest = copy(sequence_of({p.parts.begin() + 1, p.parts.end()}));
    const auto then = [&](part first) {
      part whole = sequence_of({std::move(first)});
      const part more = copy(rest);
      whole.parts.insert(whole.parts.end(), more.parts.begin(), more.parts.end());
      return whole;
    };
    corners first;
    take_apart(p.parts.front(), first);
    for (auto& one : first.own) out.own.push_back({one.rule, then(std::move(one.rest))});
    const bool may_hide = begins_with_member(rest);
    bool is_hidden = false;
    for (auto& one : first.others) {
      if (!may_hide || !is_nullable(one)) {
        out.others.push_back(then(std::move(one)));
        continue;
      }
      is_hidden = true;
      if (auto some = without_empty(one)) out.others.push_back(then(std::move(*some)));
    }
    if (is_hidden && !why_) take_apart(rest, out);
  }
  /// The part's texts except for the empty one; nothing if there are no others.
  std::optional<part> without_empty(const part& p) {
    if (!is_nullable(p)) return copy(p);
    switch (p.what) {
      case kind::literal:
        return std::nullopt;
      case kind::choice: {
        part out{.what = kind::choice};
        for (const auto& one : p.parts) {
          if (auto some = without_empty(one)) out.parts.push_back(std::move(*some));
        }
        if (out.parts.empty()) return std::nullopt;
        return out;
      }
      case kind::repeat: {
        if (is_nullable(p.parts.front())) break;
        if (p.most == 0) return std::nullopt;
        part out = copy(p);
        out.least = 1;
        return out;
      }
      case kind::sequence:
        if (p.parts.empty()) return std::nullopt;
        if (p.parts.size() == 1) return without_empty(p.parts.front());
        break;
      default:
        break;
    }
    refuse_hidden();
    return std::nullopt;
  }
  void refuse_hidden() {
    refuse(
        "the rule '" + rules_[rule_].name.substr(0, 64) +
        "' begins with what may be empty and then with itself (hidden left recursion): write it with * or +, or with "
        "the recursion last");
  }

  std::vector<rule>& rules_;
  step_count& steps_;
  std::vector<bool> nullable_;                      // by rule
  std::vector<std::vector<std::uint32_t>> firsts_;  // by rule: those that it may begin with, ascending
  std::vector<std::vector<std::uint32_t>> components_;
  std::vector<std::uint32_t> node_;  // by rule: its node in the component's graph; 0 if it is in another one
  std::uint32_t rule_ = 0;           // the one that is being taken apart or rewritten
  std::size_t bytes_ = 0;            // of all copies
  std::optional<failure> why_;
};

}  // namespace

result<void> remove_left_recursion(grammar_rules& grammar, step_count& steps) { return remover(grammar, steps).run(); }

}  // namespace redline::grammar
