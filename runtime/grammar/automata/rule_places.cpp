#include "runtime/grammar/automata/rule_places.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <tuple>
#include <unordered_set>
#include <utility>

namespace redline::grammar {
namespace {

class places_builder {
 public:
  places_builder(rules_compilation& work, const rule_positions& positions) : work_(work), positions_(positions) {}

  void run() {
    find_texts();
    if (!work_.why) make_places();
    if (!work_.why) make_beginnings();
    if (!work_.why) find_text_loops();
  }

 private:
  using kind = rule_positions::kind;
  using position = rule_positions::position;
  using head = rule_tables::head;
  using call = rule_tables::call;
  using ways = rule_tables::ways;
  using place = rule_tables::place;

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
    first_user_.assign(positions_.all.size() + 1, 0);
    for (const auto& p : positions_.all) each_next(p, [this](std::uint32_t to) { ++first_user_[to + 1]; });
    for (std::size_t i = 0; i + 1 < first_user_.size(); ++i) first_user_[i + 1] += first_user_[i];
    users_.resize(first_user_.back());
    auto at = first_user_;
    for (std::uint32_t i = 0; i < positions_.all.size(); ++i)
      each_next(positions_.all[i], [&](std::uint32_t to) { users_[at[to]++] = i; });
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
             (p.what == kind::bytes && work_.tables.sets[p.other].any() && ends_[p.next]);
    });
    find(has_bytes_, [&](const position& p) {
      return (p.what == kind::split && (has_bytes_[p.next] || has_bytes_[p.other])) ||
             (p.what == kind::both && ends_[p.other] && has_bytes_[p.next]) ||
             (p.what == kind::call && ends_[p.other] && ends_[p.next] && (has_bytes_[p.other] || has_bytes_[p.next])) ||
             (p.what == kind::bytes && work_.tables.sets[p.other].any() && ends_[p.next]);
    });
    // What can have no text is not begun.
    for (auto& g : work_.tables.guards) {
      if (work_.tables.loops[g.loop].what == rule_tables::loop::kind::measured) continue;
      std::erase_if(g.texts, [&](std::uint32_t t) { return !ends_[positions_.begins[g.loop][t]]; });
    }
    if (work_.why || ends_[work_.root]) return;
    auto r = static_cast<std::uint32_t>(work_.rules.size() - 1);  // rules that others need usually come last
    while (ends_[r]) --r;
    const auto name = work_.rules[r].name.substr(0, 64);
    work_.refuse(work_.subject == "schema"
                     ? "no value matches all that stands at '" + name + "'"
                     : "the rule '" + name + "' has no text: it never ends, or has an empty class");
  }
  /// `is` must say of a position whether it has a property, from what is known so far.
  template<class Is>
  void find(std::vector<bool>& known, Is is) {
    known.assign(positions_.all.size(), false);
    if (!work_.spend(positions_.all.size() + users_.size())) return;
    std::vector<std::uint32_t> open;
    const auto look = [&](std::uint32_t i) {
      if (known[i] || !is(positions_.all[i])) return;
      known[i] = true;
      open.push_back(i);
    };
    for (std::uint32_t i = 0; i < positions_.all.size(); ++i) look(i);
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
    reach out{.rule = positions_.all[begin].rule,
              .loop = positions_.all[begin].loop,
              .first = static_cast<std::uint32_t>(reached_.size()),
              .is_between = is_between};
    open_.assign(1, begin);
    reached_calls_.clear();
    ++stamp_;
    while (!open_.empty() && work_.spend(1)) {
      const auto at = open_.back();
      open_.pop_back();
      if (std::exchange(stamps_[at], stamp_) == stamp_ || !ends_[at]) continue;
      const position& p = positions_.all[at];
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
    place_of_.assign(positions_.all.size(), UINT32_MAX);
    stamps_.resize(positions_.all.size());
    std::vector<reach> all;  // by place
    const auto hash = [&](std::uint32_t i) { return hash_of(all[i]); };
    const auto same = [&](std::uint32_t a, std::uint32_t b) { return are_same(all[a], all[b]); };
    std::unordered_set<std::uint32_t, decltype(hash), decltype(same)> known(0, hash, same);
    std::vector<std::uint32_t> alone(positions_.all.size(),
                                     UINT32_MAX);  // places that only this position is reached from
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
      if (!work_.why && ends_[at] && place_of_[at] == UINT32_MAX) place_of_[at] = make(at, false);
    };
    for (std::uint32_t i = 0; i < work_.rules.size(); ++i) visit(i);
    for (const auto& p : positions_.all) {
      if (p.what == kind::bytes || p.what == kind::call) visit(p.next);
    }
    for (std::size_t i = 0; i < positions_.loops.size() && !work_.why; ++i) {
      const auto [begin, next] = positions_.loops[i];
      if (!ends_[begin]) continue;
      visit(next);
      work_.tables.loops[i].between = make(begin, true);
      work_.tables.loops[i].exit = place_of_[next];
    }
    work_.tables.places.reserve(all.size() + 1);
    for (const reach& one : all) {
      if (work_.why) return;
      place& made = work_.tables.places.emplace_back();
      made.rule = one.rule;
      made.loop = one.loop;
      made.is_between = one.is_between;
      made.ends_text = one.ends_text;
      made.chosen = one.chosen;
      made.may_end = one.may_end;
      heads_.clear();
      calls_.clear();
      for (const auto at : all_of(one).first(one.bytes)) {
        heads_.push_back(head_at(positions_.all[at]));
        if (made.is_between && work_.tables.loops[made.loop].any_text != rule_tables::no_guard)
          heads_.back().guard = work_.tables.loops[made.loop].any_text;
      }
      for (const auto at : all_of(one).last(one.calls))
        calls_.push_back({positions_.all[at].other, place_of_[positions_.all[at].next]});
      put_ways(made);
    }
    work_.tables.root = work_.root;
    work_.tables.root_may_be_empty = may_end_[work_.root];
    work_.tables.accept = static_cast<std::uint32_t>(work_.tables.places.size());
    work_.tables.places.emplace_back();
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
    if (ways_count_ > rules_compilation::ways_max)
      work_.refuse("too many rules or alternatives may follow at its places");
    return work_.spend(count);
  }
  /// Gives the ways what is in heads_ and calls_.
  void put_ways(ways& to) {
    // Ways that lead to one place are one way.
    std::stable_sort(heads_.begin(), heads_.end(), [](const head& a, const head& b) { return a.next < b.next; });
    to.first_head = static_cast<std::uint32_t>(work_.tables.heads.size());
    for (const auto& one : heads_) {
      to.takes |= work_.tables.sets[one.set];
      if (work_.tables.heads.size() > to.first_head && work_.tables.heads.back().next == one.next &&
          work_.tables.heads.back().guard == one.guard && work_.tables.heads.back().adds_one == one.adds_one) {
        head& same = work_.tables.heads.back();
        if (same.set == one.set) continue;
        same = {.set = work_.set_of(work_.tables.sets[same.set] | work_.tables.sets[one.set]),
                .next = one.next,
                .guard = one.guard,
                .adds_one = one.adds_one};
      } else {
        work_.tables.heads.push_back(one);
      }
    }
    to.heads = static_cast<std::uint32_t>(work_.tables.heads.size()) - to.first_head;
    if (to.heads > rules_compilation::heads_max)
      work_.refuse(
          "more than " + std::to_string(rules_compilation::heads_max) +
          " alternatives may follow at one place: give them common beginnings, or join single characters to a class");
    std::sort(calls_.begin(), calls_.end());
    calls_.erase(std::unique(calls_.begin(), calls_.end()), calls_.end());
    to.first_call = static_cast<std::uint32_t>(work_.tables.calls.size());
    to.calls = static_cast<std::uint32_t>(calls_.size());
    work_.tables.calls.insert(work_.tables.calls.end(), calls_.begin(), calls_.end());
  }
  /// Joins the ways of each rule with those of all rules that it calls before its first byte.
  void make_beginnings() {
    std::vector<std::uint32_t> seen(work_.rules.size(), UINT32_MAX);
    work_.tables.beginnings.resize(work_.rules.size());
    for (std::uint32_t i = 0; i < work_.rules.size() && !work_.why; ++i) {
      if (!has_bytes_[i]) continue;
      heads_.clear();
      calls_.clear();
      open_.assign(1, i);
      seen[i] = i;
      while (!open_.empty() && !work_.why) {
        const place& from = work_.tables.places[place_of_[open_.back()]];
        open_.pop_back();
        if (!count_ways(1 + from.heads + from.calls)) return;
        for (const auto& one : work_.tables.heads_of(from)) heads_.push_back(one);
        for (const auto& one : work_.tables.calls_of(from)) {
          calls_.push_back(one);
          if (std::exchange(seen[one.rule], i) != i) open_.push_back(one.rule);
        }
      }
      put_ways(work_.tables.beginnings[i]);
    }
  }

  /// Finds places, such as the inside of a string, where all plain text, or all bytes but one, are taken in one way and
  /// lead back, and those that lead to such a place.
  void find_text_loops() {
    for (std::uint32_t i = 0; i < work_.tables.accept && !work_.why; ++i) {
      place& p = work_.tables.places[i];
      const auto* letter = letter_of(p);
      if (letter == nullptr || !leads_back(letter->next, i)) continue;
      const byte_set left = ~work_.tables.sets[letter->set];
      if (is_text_loop(i, i, 0))
        p.text = &plain_text();
      else if (left.count() == 1 && is_only_way(p, *letter))
        p.text = bytes_but(first_of(left));
      if (p.text != nullptr) p.text_loop = i;
    }
    for (std::uint32_t i = 0; i < work_.tables.accept; ++i) join_text(work_.tables.places[i]);
    for (auto& one : work_.tables.beginnings) join_text(one);
  }
  static std::uint8_t first_of(const byte_set& set) {
    std::uint8_t byte = 0;
    while (!set[byte]) ++byte;
    return byte;
  }
  /// Whether no other way takes one of its bytes.
  [[nodiscard]] bool is_only_way(const ways& w, const head& h) const {
    return std::ranges::none_of(work_.tables.heads_of(w), [&](const head& other) {
      return &other != &h && (work_.tables.sets[other.set] & work_.tables.sets[h.set]).any();
    });
  }
  void join_text(ways& w) {
    if (w.text_loop == rule_tables::no_loop) join_text_loop(w);
    if (w.text_loop == rule_tables::no_loop) join_bytes(w);
  }
  /// Finds a text of all bytes but one, also where one more byte leads elsewhere.
  void join_bytes(ways& w) {
    for (const head& h : work_.tables.heads_of(w)) {
      const place& loop = work_.tables.places[h.next];
      if (loop.text_loop != h.next || loop.text == &plain_text()) continue;
      const byte_set left = loop.text->begins & ~work_.tables.sets[h.set];
      if (left.count() > 1 || !is_only_way(w, h)) continue;
      w.text = loop.text;
      w.text_loop = h.next;
      if (left.any()) w.exit_byte = first_of(left);
      return;
    }
  }
  /// The first way to take a letter, which most places do not take.
  [[nodiscard]] const head* letter_of(const ways& w) const {
    const auto heads = work_.tables.heads_of(w);
    const auto at = std::ranges::find_if(heads, [&](const head& h) { return work_.tables.sets[h.set]['a']; });
    return at == heads.end() || at->adds_one ? nullptr : &*at;
  }
  void join_text_loop(ways& w) {
    const auto* letter = letter_of(w);
    if (letter == nullptr) return;
    const place& after = work_.tables.places[letter->next];
    const auto loop = after.ends_text ? work_.tables.loops[after.loop].between : letter->next;
    const place& inside = work_.tables.places[loop];
    if (inside.text_loop != loop || !std::ranges::equal(work_.tables.heads_of(w), work_.tables.heads_of(inside)))
      return;
    w.text_loop = loop;
    w.text = inside.text;
  }
  bool is_text_loop(std::uint32_t loop, std::uint32_t at, std::size_t state) {
    const auto& table = plain_text().next;
    const place& p = work_.tables.places[at];
    // Within a character nothing but its rest may follow.
    const bool has_more = p.may_end || p.calls > 0 || p.ends_text;
    if (!work_.spend(1 + std::size_t{16} * p.heads) || (state != 0 && has_more)) return false;
    std::array<std::uint32_t, 256> leads;
    leads.fill(UINT32_MAX);
    byte_set inside;
    for (std::size_t b = 0; b < 256; ++b) inside[b] = table[state][b] != free_text::outside;
    if ((inside & ~p.takes).any()) return false;
    for (const head& one : work_.tables.heads_of(p)) {
      const byte_set taken = inside & work_.tables.sets[one.set];
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
    const place& to = work_.tables.places[loop];
    const place& p = work_.tables.places[at];
    return to.is_between ? p.ends_text && p.loop == to.loop && p.heads == 0 : at == loop && !p.ends_text;
  }

  rules_compilation& work_;
  const rule_positions& positions_;
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
};

}  // namespace

void make_places(rules_compilation& work, const rule_positions& positions) { places_builder(work, positions).run(); }

}  // namespace redline::grammar
