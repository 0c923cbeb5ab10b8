#include "runtime/grammar/automata/rules_automaton.hpp"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <unordered_set>

#include "runtime/grammar/automata/rules_compiler.hpp"

namespace redline::grammar {
namespace {

// The cells of a state: marks and the predicted frame; the number of frames; each frame, oldest first, as the number of
// its entries and three cells for each (the awaited rule, and the spot where its caller goes on); then where the text
// is, sorted: two cells for a spot. Frame 0, which awaits the root rule, is not stored. A point is a place of a rule
// and the frame where the rule began. A spot is a point and the number of the place's loop, or 0.
constexpr std::uint32_t may_end = 1, lost = 2, predicts = 4;
constexpr unsigned predicted_shift = 3;
constexpr std::size_t header_cells = 2, entry_cells = 3;

constexpr unsigned frame_bits = 12;
constexpr std::uint32_t frames_max = 1U << frame_bits;
std::uint32_t point(std::uint32_t place, std::uint32_t frame) { return place << frame_bits | frame; }
std::uint32_t place_of(std::uint32_t point) { return point >> frame_bits; }
std::uint32_t frame_of(std::uint32_t point) { return point & (frames_max - 1); }

using spot = std::uint64_t;
spot spot_of(std::uint32_t point, std::uint32_t number) { return std::uint64_t{point} << 32 | number; }
std::uint32_t point_of(spot s) { return static_cast<std::uint32_t>(s >> 32); }
std::uint32_t number_of(spot s) { return static_cast<std::uint32_t>(s); }

template<class T>
using short_vector = boost::container::small_vector<T, 64>;

/// Values in the order in which they were first added.
class unique_list {
 public:
  /// Returns whether it is new.
  bool add(std::uint64_t value) {
    if (all_.size() < linear_max) {
      if (std::ranges::find(all_, value) != all_.end()) return false;
    } else {
      if (all_.size() == linear_max) known_.insert(all_.begin(), all_.end());
      if (!known_.insert(value).second) return false;
    }
    all_.push_back(value);
    return true;
  }
  [[nodiscard]] std::size_t size() const { return all_.size(); }
  std::uint64_t operator[](std::size_t i) const { return all_[i]; }

 private:
  static constexpr std::size_t linear_max = 32;
  boost::container::small_vector<std::uint64_t, linear_max> all_;
  std::unordered_set<std::uint64_t> known_;  // the same, once there are more than linear_max
};

}  // namespace

/// A state's frames.
class rules_automaton::reader {
 public:
  struct entry {
    std::uint32_t rule;
    spot then;
    auto operator<=>(const entry&) const = default;
  };

  reader(const rule_tables& tables, const automaton_state& s) : tables_(tables), cells_(s.cells()) {
    first_spot_ = header_cells;
    for (std::uint32_t i = 0; i < cells_[1]; ++i) {
      frames_.push_back(static_cast<std::uint32_t>(first_spot_));
      first_spot_ += 1 + entry_cells * cells_[first_spot_];
    }
  }
  /// Frames are numbered from 0, which is not stored.
  [[nodiscard]] std::uint32_t frames() const { return cells_[1] + 1; }
  [[nodiscard]] std::size_t entries(std::uint32_t frame) const { return frame == 0 ? 1 : cells_[frames_[frame - 1]]; }
  [[nodiscard]] entry at(std::uint32_t frame, std::size_t i) const {
    if (frame == 0) return {tables_.root, spot_of(point(tables_.accept, 0), 0)};
    const std::size_t cell = frames_[frame - 1] + 1 + entry_cells * i;
    return {cells_[cell], spot_of(cells_[cell + 1], cells_[cell + 2])};
  }
  [[nodiscard]] std::size_t spots() const { return (cells_.size() - first_spot_) / 2; }
  [[nodiscard]] spot spot_at(std::size_t i) const {
    return spot_of(cells_[first_spot_ + 2 * i], cells_[first_spot_ + 2 * i + 1]);
  }
  /// Calls `see` with the place of each spot.
  template<class See>
  void each_place(See see) const {
    for (std::size_t i = 0; i < spots(); ++i) see(tables_.places[place_of(point_of(spot_at(i)))]);
  }
  [[nodiscard]] bool predicts_frame() const { return (cells_[0] & predicts) != 0; }
  [[nodiscard]] std::uint32_t predicted() const { return cells_[0] >> predicted_shift; }

  /// Calls `see` with the beginnings of each rule that a frame awaits. Returns their number.
  template<class See>
  std::size_t each_beginning(std::uint32_t frame, See see) const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < entries(frame); ++count) {
      const auto rule = at(frame, i).rule;
      see(tables_.beginnings[rule]);
      i = first_of(frame, rule + 1, i + 1);
    }
    return count;
  }
  /// Calls `see` with the spots that go on when `rule`, which began at a frame, ends. Returns the work.
  template<class See>
  std::size_t each_awaiting(std::uint32_t rule, std::uint32_t frame, See see) const {
    std::size_t work = 0;
    for (std::size_t i = first_of(frame, rule, 0); i < entries(frame) && at(frame, i).rule == rule; ++i, ++work)
      see(at(frame, i).then);
    work += each_beginning(frame, [&](const ways& from) {
      const auto calls = tables_.calls_of(from);
      for (auto c = std::ranges::lower_bound(calls, call{rule, 0}); c != calls.end() && c->rule == rule; ++c, ++work)
        see(spot_of(point(c->then, frame), 0));
    });
    return work;
  }

 private:
  /// The first entry from `i` on that awaits `rule` or a later one. Most frames have one entry or two.
  [[nodiscard]] std::size_t first_of(std::uint32_t frame, std::uint32_t rule, std::size_t i) const {
    std::size_t end = entries(frame);
    while (i < end) {
      const auto middle = i + (end - i) / 2;
      if (at(frame, middle).rule < rule)
        i = middle + 1;
      else
        end = middle;
    }
    return i;
  }

  const rule_tables& tables_;
  std::span<const std::uint32_t> cells_;
  short_vector<std::uint32_t> frames_;  // where each begins
  std::size_t first_spot_;
};

/// Takes one byte from a state.
class rules_automaton::step {
 public:
  step(const rule_tables& tables, const automaton_state& from) : tables_(tables), from_(tables, from) {}

  /// Returns whether the byte is allowed.
  bool take(std::uint8_t byte) {
    for (std::size_t i = 0; i < from_.spots() && work_ <= work_max; ++i) {
      const spot at = from_.spot_at(i);
      take_at(tables_.places[place_of(point_of(at))], frame_of(point_of(at)), number_of(at), byte);
    }
    if (from_.predicts_frame()) {
      (void)from_.each_beginning(from_.predicted(), [&](const ways& from) {
        if (work_ <= work_max) take_at(from, from_.predicted(), 0, byte);
      });
    }
    for (std::size_t i = 0; i < reached_.size() && work_ <= work_max; ++i) follow(reached_[i]);
    return reached_.size() > 0;
  }
  [[nodiscard]] std::size_t work() const { return work_; }

  [[nodiscard]] automaton_state finish() {
    if (work_ > work_max) return lost_state();
    std::sort(calls_.begin(), calls_.end());
    calls_.erase(std::unique(calls_.begin(), calls_.end()), calls_.end());
    const auto known = find_frame();
    // Frames that nothing leads to any more are left out; the others keep their order.
    short_vector<std::uint32_t> numbers(from_.frames(), 0);
    for (const auto s : spots_) numbers[frame_of(point_of(s))] = 1;
    for (const auto& e : calls_) numbers[frame_of(point_of(e.then))] = 1;
    if (known < from_.frames()) numbers[known] = 1;
    for (auto frame = from_.frames(); frame-- > 1;) {
      if (numbers[frame] == 0) continue;
      for (std::size_t i = 0; i < from_.entries(frame); ++i) numbers[frame_of(point_of(from_.at(frame, i).then))] = 1;
    }
    std::uint32_t count = 0;
    numbers[0] = 0;
    for (std::uint32_t frame = 1; frame < from_.frames(); ++frame) {
      if (numbers[frame] != 0) numbers[frame] = ++count;
    }
    const bool adds_frame = !calls_.empty() && known == from_.frames();
    if (count + 2 > frames_max) return lost_state();

    automaton_state to;
    const auto predicted = known < from_.frames() ? numbers[known] : count + 1;
    to.push((ends_ ? may_end : 0) | (calls_.empty() ? 0 : predicts | predicted << predicted_shift));
    to.push(count + (adds_frame ? 1 : 0));
    const auto moved = [&](std::uint32_t p) { return point(place_of(p), numbers[frame_of(p)]); };
    const auto put = [&](const reader::entry& e) {
      to.push(e.rule);
      to.push(moved(point_of(e.then)));
      to.push(number_of(e.then));
    };
    for (std::uint32_t frame = 1; frame < from_.frames(); ++frame) {
      if (numbers[frame] == 0) continue;
      const std::size_t entries = from_.entries(frame);
      if (to.size() + 1 + entry_cells * entries > automaton_state::cells_max) return lost_state();
      to.push(static_cast<std::uint32_t>(entries));
      for (std::size_t i = 0; i < entries; ++i) put(from_.at(frame, i));
    }
    if (to.size() + 1 + entry_cells * calls_.size() + 2 * spots_.size() > automaton_state::cells_max)
      return lost_state();
    if (adds_frame) {
      to.push(static_cast<std::uint32_t>(calls_.size()));
      for (const auto& e : calls_) put(e);
    }
    std::sort(spots_.begin(), spots_.end());
    for (const auto s : spots_) {
      to.push(moved(point_of(s)));
      to.push(number_of(s));
    }
    return to;
  }

 private:
  void take_at(const ways& at, std::uint32_t frame, std::uint32_t number, std::uint8_t byte) {
    ++work_;
    if (!at.takes[byte]) return;
    work_ += at.heads;
    for (const head& h : tables_.heads_of(at)) {
      if (!tables_.sets[h.set][byte] || !tables_.may_take(h.guard, number)) continue;
      const auto loop = tables_.places[h.next].loop;
      const auto now = loop == no_loop ? 0 : h.adds_one ? tables_.loops[loop].next(number, 0) : number;
      reached_.add(spot_of(point(h.next, frame), now));
    }
  }
  /// Adds what follows at a spot before the next byte.
  void follow(spot at) {
    if (at == spot_of(point(tables_.accept, 0), 0)) {
      ends_ = true;
      return;
    }
    const place& p = tables_.places[place_of(point_of(at))];
    const auto frame = frame_of(point_of(at));
    const auto number = number_of(at);
    work_ += 1 + p.calls;
    if (p.is_between) {
      const loop& l = tables_.loops[p.loop];
      if (l.what == loop::kind::counted ? number < l.most : tables_.may_take(l.any_text, number)) {
        if (p.heads > 0) spots_.push_back(at);
        for (const call& c : tables_.calls_of(p)) calls_.push_back({c.rule, spot_of(point(c.then, frame), number)});
      }
      if (l.may_exit(number)) reached_.add(spot_of(point(l.exit, frame), 0));
      return;
    }
    if (p.ends_text) {
      const loop& l = tables_.loops[p.loop];
      const bool was_chosen = l.what == loop::kind::distinct && p.chosen < l.texts && (number >> p.chosen & 1) != 0;
      const auto now = l.what == loop::kind::measured ? number : l.next(number, p.chosen);
      if (!was_chosen) reached_.add(spot_of(point(l.between, frame), now));
    }
    if (p.heads > 0) spots_.push_back(at);
    for (const call& c : tables_.calls_of(p)) {
      const place& then = tables_.places[c.then];
      if (then.is_only_end())
        hand_over(p.rule, frame, c.rule);
      else
        calls_.push_back({c.rule, spot_of(point(c.then, frame), then.loop != no_loop ? number : 0)});
    }
    if (p.may_end) work_ += from_.each_awaiting(p.rule, frame, [this](spot then) { reached_.add(then); });
  }
  /// Calls a rule at the end of another one: what awaits that one from now on awaits the called rule.
  void hand_over(std::uint32_t rule, std::uint32_t frame, std::uint32_t called) {
    if (work_ > work_max || !handed_.add(std::uint64_t{rule} << 32 | point(called, frame))) return;
    work_ += from_.each_awaiting(rule, frame, [&](spot then) {
      const place& p = tables_.places[place_of(point_of(then))];
      if (p.is_only_end() && place_of(point_of(then)) != tables_.accept)
        hand_over(p.rule, frame_of(point_of(then)), called);
      else
        calls_.push_back({called, then});
    });
  }
  /// The frame with the entries of calls_; from_.frames() if there is none.
  [[nodiscard]] std::uint32_t find_frame() const {
    for (std::uint32_t frame = 0; frame < from_.frames(); ++frame) {
      std::size_t i = from_.entries(frame) == calls_.size() ? 0 : SIZE_MAX;
      while (i < calls_.size() && from_.at(frame, i) == calls_[i]) ++i;
      if (i == calls_.size()) return frame;
    }
    return from_.frames();
  }

  const rule_tables& tables_;
  const reader from_;
  unique_list reached_;  // spots after the byte, and after the rules that end with it
  unique_list handed_;
  short_vector<spot> spots_;  // those that take a byte
  boost::container::small_vector<reader::entry, 16> calls_;
  bool ends_ = false;
  std::size_t work_ = 0;
};

automaton_state rules_automaton::begin() const {
  automaton_state s;
  s.push((tables_.root_may_be_empty ? may_end : 0) | (tables_.beginnings[tables_.root].takes.any() ? predicts : 0));
  s.push(0);
  return s;
}

automaton_state rules_automaton::lost_state() {
  automaton_state s;
  s.push(lost);
  return s;
}

bool rules_automaton::is_lost(const automaton_state& s) const { return s[0] == lost; }
bool rules_automaton::is_accepting(const automaton_state& s) const { return (s[0] & may_end) != 0; }
bool rules_automaton::is_terminated(const automaton_state& s) const {
  return s[0] == may_end && s.size() == header_cells;
}

bool rules_automaton::advance(automaton_state& s, std::uint8_t byte, step_count& steps) const {
  steps.add();
  if (is_lost(s)) return true;
  step next(tables_, s);
  const bool is_taken = next.take(byte);
  steps.add(next.work());
  if (is_taken) s = next.finish();
  return is_taken;
}

byte_set rules_automaton::possible_bytes(const automaton_state& s) const {
  byte_set bytes;
  if (is_lost(s)) return bytes.set();
  const reader here(tables_, s);
  const auto see = [&](const ways& w) { bytes |= w.takes; };
  here.each_place(see);
  if (here.predicts_frame()) (void)here.each_beginning(here.predicted(), see);
  return bytes;
}

/// Bytes are alike if each way to take one takes the other. The sets of the ways split the bytes into kinds, one set
/// after another (partition refinement; Paige and Tarjan, 1987).
byte_automaton::byte_kinds rules_automaton::kinds_of_bytes(const automaton_state& s) const {
  byte_kinds kinds{};
  if (is_lost(s)) return kinds;
  std::array<std::uint16_t, 256> sizes{256}, taken{};
  std::array<std::uint8_t, 256> inside{};
  auto& [of, count] = kinds;
  const auto see = [&](const ways& w) {
    for (const head& h : tables_.heads_of(w)) {
      const byte_set& set = tables_.sets[h.set];
      std::array<std::uint8_t, 256> touched;
      std::size_t touched_count = 0;
      each_byte(set, [&](std::size_t b) {
        if (taken[of[b]]++ == 0) touched[touched_count++] = of[b];
      });
      for (std::size_t i = 0; i < touched_count; ++i) {
        const auto kind = touched[i];
        inside[kind] = kind;
        if (taken[kind] < sizes[kind]) {
          inside[kind] = static_cast<std::uint8_t>(count);
          sizes[kind] -= taken[kind];
          sizes[count++] = taken[kind];
        }
        taken[kind] = 0;
      }
      each_byte(set, [&](std::size_t b) { of[b] = inside[of[b]]; });
    }
  };
  const reader here(tables_, s);
  here.each_place(see);
  if (here.predicts_frame()) (void)here.each_beginning(here.predicted(), see);
  return kinds;
}

template<class See>
void rules_automaton::each_head(const reader& here, See see) const {
  const auto look = [&](const ways& w, std::uint32_t number) {
    for (const head& h : tables_.heads_of(w)) {
      if (tables_.may_take(h.guard, number)) see(h);
    }
  };
  for (std::size_t i = 0; i < here.spots(); ++i)
    look(tables_.places[place_of(point_of(here.spot_at(i)))], number_of(here.spot_at(i)));
  if (here.predicts_frame()) (void)here.each_beginning(here.predicted(), [&](const ways& w) { look(w, 0); });
}

std::string_view rules_automaton::known_run(const automaton_state& s, step_count& steps) const {
  if (is_lost(s) || is_accepting(s)) return {};
  const head* only = nullptr;
  std::size_t count = 0;
  each_head(reader(tables_, s), [&](const head& h) {
    ++count;
    only = &h;
  });
  steps.add(count);
  return count == 1 ? std::string_view(tables_.literals).substr(only->run, only->run_count) : std::string_view{};
}

/// There is free text where all of it is taken in one way only, and that leads to a loop of its own.
byte_automaton::free_text_rule rules_automaton::free_text_at(const automaton_state& s) const {
  if (is_lost(s)) return {};
  const reader here(tables_, s);
  const ways* text = nullptr;
  std::uint32_t count = 0;
  byte_set others;
  const auto see = [&](const ways& w, std::uint32_t number) {
    if (w.text != nullptr && text == nullptr) {
      text = &w;
      count = number;
    } else {
      others |= w.takes;
    }
  };
  if (here.predicts_frame()) (void)here.each_beginning(here.predicted(), [&](const ways& w) { see(w, 0); });
  for (std::size_t i = 0; i < here.spots(); ++i)
    see(tables_.places[place_of(point_of(here.spot_at(i)))], number_of(here.spot_at(i)));
  if (text == nullptr) return {};
  others &= text->text->begins;
  if (text->exit_byte) others.reset(*text->exit_byte);
  if (others.any()) return {};
  free_text_rule found{.table = text->text, .exit_byte = text->exit_byte};
  if (const place& inside = tables_.places[text->text_loop]; inside.is_between) {
    const loop& l = tables_.loops[inside.loop];
    found.characters_min = l.least - std::min(l.least, count);
    if (l.most != UINT32_MAX) found.characters_max = l.most - count;
  }
  return found;
}

bool rules_automaton::is_markup(const automaton_state& s) const {
  if (is_lost(s)) return false;
  const reader here(tables_, s);
  bool is_found = false;
  here.each_place([&](const place& p) { is_found = is_found || tables_.is_markup[p.rule]; });
  for (std::size_t i = 0; here.predicts_frame() && i < here.entries(here.predicted()); ++i)
    is_found = is_found || tables_.is_markup[here.at(here.predicted(), i).rule];
  return is_found;
}
bool rules_automaton::is_free(const automaton_state& s) const {
  return is_markup(s) && free_text_at(s).table != nullptr;
}

std::size_t rules_automaton::size_bytes() const { return tables_.size_bytes(); }

bool rules_automaton::is_valid(const automaton_state& s) const {
  if (s.size() == 1) return is_lost(s);
  if (s.size() < header_cells || (s[0] & lost) != 0 || s[1] + std::size_t{1} >= frames_max) return false;
  std::size_t at = header_cells;
  for (std::uint32_t i = 0; i < s[1]; ++i) {
    if (at >= s.size() || s[at] == 0 || s[at] > (s.size() - at - 1) / entry_cells) return false;
    at += 1 + entry_cells * s[at];
  }
  if ((s.size() - at) % 2 != 0) return false;
  const reader here(tables_, s);
  const bool has_prediction = here.predicts_frame();
  if (has_prediction ? here.predicted() >= here.frames() : here.predicted() != 0) return false;
  // Whether the number fits the place, and the end of its rule is awaited at its frame, one of those before `frames`,
  // as it is in a text.
  const auto is_awaited = [&](spot one, std::uint32_t frames) {
    const auto p = point_of(one);
    if (p == point(tables_.accept, 0)) return number_of(one) == 0;
    if (place_of(p) >= tables_.accept || frame_of(p) >= frames) return false;
    const place& at_place = tables_.places[place_of(p)];
    bool fits = number_of(one) == 0;
    if (at_place.loop != no_loop) {
      const loop& l = tables_.loops[at_place.loop];
      fits =
          l.is_valid(number_of(one)) && (l.what != loop::kind::measured || tables_.leads_on(at_place, number_of(one)));
    }
    bool is_found = false;
    if (fits) (void)here.each_awaiting(at_place.rule, frame_of(p), [&](spot) { is_found = true; });
    return is_found;
  };
  for (std::uint32_t frame = 1; frame < here.frames(); ++frame) {
    for (std::size_t i = 0; i < here.entries(frame); ++i) {
      const auto e = here.at(frame, i);
      if (i > 0 && here.at(frame, i - 1) >= e) return false;
      if (e.rule >= tables_.beginnings.size() || tables_.beginnings[e.rule].takes.none() || !is_awaited(e.then, frame))
        return false;
    }
  }
  for (std::size_t i = 0; i < here.spots(); ++i) {
    const spot one = here.spot_at(i);
    if (i > 0 && here.spot_at(i - 1) >= one) return false;
    if (point_of(one) == point(tables_.accept, 0) || !is_awaited(one, here.frames())) return false;
    if (tables_.places[place_of(point_of(one))].heads == 0) return false;
  }
  return has_prediction || here.spots() > 0 || is_accepting(s);
}

result<std::shared_ptr<const rules_automaton>> rules_automaton::compile(std::string_view grammar, step_count& steps) {
  REDLINE_TRY_ASSIGN(auto rules, read_grammar(grammar, steps));
  return compile(std::move(rules), steps);
}
result<std::shared_ptr<const rules_automaton>> rules_automaton::compile(grammar_rules grammar, step_count& steps) {
  REDLINE_TRY_ASSIGN(auto made, make(std::move(grammar), steps));
  return std::make_shared<const rules_automaton>(std::move(made));
}
result<rules_automaton> rules_automaton::make(grammar_rules grammar, step_count& steps) {
  REDLINE_TRY_ASSIGN(auto tables, compile_rules(std::move(grammar), steps));
  return rules_automaton(std::move(tables));
}

}  // namespace redline::grammar
