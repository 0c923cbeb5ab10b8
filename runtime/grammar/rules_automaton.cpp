#include "runtime/grammar/rules_automaton.hpp"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <unordered_set>

namespace redline::grammar {
namespace {

// The cells of a state: marks and the predicted frame; the number of frames; each frame, oldest first, as the number of
// its entries and two cells for each (the awaited rule, and where its caller goes on); then where the text is, sorted:
// two cells for a spot. Frame 0, which awaits the root rule, is not stored. A point is a place of a rule and the frame
// where the rule began. A spot is a point and a count of texts.
constexpr std::uint32_t may_end = 1, lost = 2, predicts = 4;
constexpr unsigned predicted_shift = 3;
constexpr std::size_t header_cells = 2;

constexpr unsigned frame_bits = 12;
constexpr std::uint32_t frames_max = 1U << frame_bits;
std::uint32_t point(std::uint32_t place, std::uint32_t frame) { return place << frame_bits | frame; }
std::uint32_t place_of(std::uint32_t point) { return point >> frame_bits; }
std::uint32_t frame_of(std::uint32_t point) { return point & (frames_max - 1); }

using spot = std::uint64_t;
spot at_count(std::uint32_t point, std::uint32_t count) { return std::uint64_t{point} << 32 | count; }
std::uint32_t point_of(spot s) { return static_cast<std::uint32_t>(s >> 32); }
std::uint32_t count_of(spot s) { return static_cast<std::uint32_t>(s); }

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
    std::uint32_t rule, then;  // `then` is a point
    auto operator<=>(const entry&) const = default;
  };

  reader(const rules_automaton& grammar, const automaton_state& s) : grammar_(grammar), cells_(s.cells()) {
    first_spot_ = header_cells;
    for (std::uint32_t i = 0; i < cells_[1]; ++i) {
      frames_.push_back(static_cast<std::uint32_t>(first_spot_));
      first_spot_ += 1 + 2 * std::size_t{cells_[first_spot_]};
    }
  }
  /// Frames are numbered from 0, which is not stored.
  [[nodiscard]] std::uint32_t frames() const { return cells_[1] + 1; }
  [[nodiscard]] std::size_t entries(std::uint32_t frame) const { return frame == 0 ? 1 : cells_[frames_[frame - 1]]; }
  [[nodiscard]] entry at(std::uint32_t frame, std::size_t i) const {
    if (frame == 0) return {grammar_.root_, point(grammar_.accept_, 0)};
    const std::size_t cell = frames_[frame - 1] + 1 + 2 * i;
    return {cells_[cell], cells_[cell + 1]};
  }
  [[nodiscard]] std::size_t spots() const { return (cells_.size() - first_spot_) / 2; }
  [[nodiscard]] spot spot_at(std::size_t i) const {
    return at_count(cells_[first_spot_ + 2 * i], cells_[first_spot_ + 2 * i + 1]);
  }
  /// Calls `see` with the place of each spot.
  template<class See>
  void each_place(See see) const {
    for (std::size_t i = 0; i < spots(); ++i) see(grammar_.places_[place_of(point_of(spot_at(i)))]);
  }
  [[nodiscard]] bool predicts_frame() const { return (cells_[0] & predicts) != 0; }
  [[nodiscard]] std::uint32_t predicted() const { return cells_[0] >> predicted_shift; }

  /// Calls `see` with the beginnings of each rule that a frame awaits. Returns their number.
  template<class See>
  std::size_t each_beginning(std::uint32_t frame, See see) const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < entries(frame); ++count) {
      const auto rule = at(frame, i).rule;
      see(grammar_.beginnings_[rule]);
      i = first_of(frame, rule + 1, i + 1);
    }
    return count;
  }
  /// Calls `see` with the points that go on when `rule`, which began at a frame, ends. Returns the work.
  template<class See>
  std::size_t each_awaiting(std::uint32_t rule, std::uint32_t frame, See see) const {
    std::size_t work = 0;
    for (std::size_t i = first_of(frame, rule, 0); i < entries(frame) && at(frame, i).rule == rule; ++i, ++work)
      see(at(frame, i).then);
    work += each_beginning(frame, [&](const ways& from) {
      const auto calls = grammar_.calls(from);
      for (auto c = std::ranges::lower_bound(calls, call{rule, 0}); c != calls.end() && c->rule == rule; ++c, ++work)
        see(point(c->then, frame));
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

  const rules_automaton& grammar_;
  std::span<const std::uint32_t> cells_;
  short_vector<std::uint32_t> frames_;  // where each begins
  std::size_t first_spot_;
};

/// Takes one byte from a state.
class rules_automaton::step {
 public:
  step(const rules_automaton& grammar, const automaton_state& from) : grammar_(grammar), from_(grammar, from) {}

  /// Returns whether the byte is allowed.
  bool take(std::uint8_t byte) {
    for (std::size_t i = 0; i < from_.spots() && work_ <= work_max; ++i) {
      const spot at = from_.spot_at(i);
      take_at(grammar_.places_[place_of(point_of(at))], frame_of(point_of(at)), count_of(at), byte);
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
    for (const auto& e : calls_) numbers[frame_of(e.then)] = 1;
    if (known < from_.frames()) numbers[known] = 1;
    for (auto frame = from_.frames(); frame-- > 1;) {
      if (numbers[frame] == 0) continue;
      for (std::size_t i = 0; i < from_.entries(frame); ++i) numbers[frame_of(from_.at(frame, i).then)] = 1;
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
      to.push(moved(e.then));
    };
    for (std::uint32_t frame = 1; frame < from_.frames(); ++frame) {
      if (numbers[frame] == 0) continue;
      const std::size_t entries = from_.entries(frame);
      if (to.size() + 1 + 2 * entries > automaton_state::cells_max) return lost_state();
      to.push(static_cast<std::uint32_t>(entries));
      for (std::size_t i = 0; i < entries; ++i) put(from_.at(frame, i));
    }
    if (to.size() + 1 + 2 * calls_.size() + 2 * spots_.size() > automaton_state::cells_max) return lost_state();
    if (adds_frame) {
      to.push(static_cast<std::uint32_t>(calls_.size()));
      for (const auto& e : calls_) put(e);
    }
    std::sort(spots_.begin(), spots_.end());
    for (const auto s : spots_) {
      to.push(moved(point_of(s)));
      to.push(count_of(s));
    }
    return to;
  }

 private:
  void take_at(const ways& at, std::uint32_t frame, std::uint32_t count, std::uint8_t byte) {
    ++work_;
    if (!at.takes[byte]) return;
    work_ += at.heads;
    for (const head& h : grammar_.heads(at)) {
      if (!grammar_.sets_[h.set][byte]) continue;
      const bool is_counted = grammar_.places_[h.next].loop != no_loop;
      reached_.add(at_count(point(h.next, frame), is_counted ? count : 0));
    }
  }
  /// Adds what follows at a spot before the next byte.
  void follow(spot at) {
    if (at == at_count(point(grammar_.accept_, 0), 0)) {
      ends_ = true;
      return;
    }
    const place& p = grammar_.places_[place_of(point_of(at))];
    const auto frame = frame_of(point_of(at));
    work_ += 1 + p.calls;
    if (p.is_between) {
      const counted& loop = grammar_.loops_[p.loop];
      if (count_of(at) < loop.most) spots_.push_back(at);
      if (count_of(at) >= loop.least) reached_.add(at_count(point(loop.exit, frame), 0));
      return;
    }
    if (p.ends_text) {
      const counted& loop = grammar_.loops_[p.loop];
      reached_.add(at_count(point(loop.between, frame), std::min(count_of(at) + 1, loop.counted_max())));
    }
    if (p.heads > 0) spots_.push_back(at);
    for (const call& c : grammar_.calls(p)) {
      if (grammar_.places_[c.then].is_only_end())
        hand_over(p.rule, frame, c.rule);
      else
        calls_.push_back({c.rule, point(c.then, frame)});
    }
    if (p.may_end)
      work_ += from_.each_awaiting(p.rule, frame, [this](std::uint32_t then) { reached_.add(at_count(then, 0)); });
  }
  /// Calls a rule at the end of another one: what awaits that one from now on awaits the called rule.
  void hand_over(std::uint32_t rule, std::uint32_t frame, std::uint32_t called) {
    if (work_ > work_max || !handed_.add(std::uint64_t{rule} << 32 | point(called, frame))) return;
    work_ += from_.each_awaiting(rule, frame, [&](std::uint32_t then) {
      const place& p = grammar_.places_[place_of(then)];
      if (p.is_only_end() && place_of(then) != grammar_.accept_)
        hand_over(p.rule, frame, called);
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

  const rules_automaton& grammar_;
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
  s.push((root_may_be_empty_ ? may_end : 0) | (beginnings_[root_].takes.any() ? predicts : 0));
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
  step next(*this, s);
  const bool is_taken = next.take(byte);
  steps.add(next.work());
  if (is_taken) s = next.finish();
  return is_taken;
}

byte_set rules_automaton::possible_bytes(const automaton_state& s) const {
  byte_set bytes;
  if (is_lost(s)) return bytes.set();
  const reader here(*this, s);
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
    for (const head& h : heads(w)) {
      const byte_set& set = sets_[h.set];
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
  const reader here(*this, s);
  here.each_place(see);
  if (here.predicts_frame()) (void)here.each_beginning(here.predicted(), see);
  return kinds;
}

std::string_view rules_automaton::known_run(const automaton_state& s, step_count&) const {
  if (is_lost(s) || is_accepting(s)) return {};
  const reader here(*this, s);
  const head* only = nullptr;
  std::size_t count = 0;
  const auto see = [&](const ways& w) {
    count += w.heads;
    if (w.heads > 0) only = &heads_[w.first_head];
  };
  here.each_place(see);
  if (here.predicts_frame()) (void)here.each_beginning(here.predicted(), see);
  return count == 1 ? std::string_view(literals_).substr(only->run, only->run_count) : std::string_view{};
}

const byte_set& rules_automaton::plain_first_bytes() {
  static const byte_set bytes = [] {
    byte_set set;
    for (std::size_t b = 0; b < 256; ++b) set.set(b, plain_text().next[0][b] != free_text::outside);
    return set;
  }();
  return bytes;
}

/// There is free text where all plain text is taken in one way only, and that leads to a loop of its own.
byte_automaton::free_text_rule rules_automaton::free_text_at(const automaton_state& s) const {
  if (is_lost(s)) return {};
  const reader here(*this, s);
  std::size_t taking = 0;  // ways that take plain text
  free_text_rule found;
  const auto see = [&](const ways& w, std::uint32_t count) {
    taking += w.takes_plain ? 1 : 0;
    if (w.text_loop == no_loop) return;
    found = {&plain_text()};
    const place& loop = places_[w.text_loop];
    if (!loop.is_between) return;
    found.characters_min = loops_[loop.loop].least - std::min(loops_[loop.loop].least, count);
    if (loops_[loop.loop].most != UINT32_MAX) found.characters_max = loops_[loop.loop].most - count;
  };
  if (here.predicts_frame()) (void)here.each_beginning(here.predicted(), [&](const ways& w) { see(w, 0); });
  for (std::size_t i = 0; i < here.spots(); ++i)
    see(places_[place_of(point_of(here.spot_at(i)))], count_of(here.spot_at(i)));
  return taking == 1 ? found : free_text_rule{};
}

std::size_t rules_automaton::size_bytes() const {
  const auto bytes_of = [](const auto& all) { return all.capacity() * sizeof(all[0]); };
  return bytes_of(places_) + bytes_of(beginnings_) + bytes_of(heads_) + bytes_of(calls_) + bytes_of(sets_) +
         literals_.capacity();
}

bool rules_automaton::is_valid(const automaton_state& s) const {
  if (s.size() == 1) return is_lost(s);
  if (s.size() < header_cells || (s[0] & lost) != 0 || s[1] + std::size_t{1} >= frames_max) return false;
  std::size_t at = header_cells;
  for (std::uint32_t i = 0; i < s[1]; ++i) {
    if (at >= s.size() || s[at] == 0 || s[at] > (s.size() - at - 1) / 2) return false;
    at += 1 + 2 * std::size_t{s[at]};
  }
  if ((s.size() - at) % 2 != 0) return false;
  const reader here(*this, s);
  const bool has_prediction = here.predicts_frame();
  if (has_prediction ? here.predicted() >= here.frames() : here.predicted() != 0) return false;
  // Whether the end of the point's rule is awaited at its frame, one of those before `frames`, as it is in a text.
  const auto is_awaited = [&](std::uint32_t p, std::uint32_t frames) {
    if (p == point(accept_, 0)) return true;
    if (place_of(p) >= accept_ || frame_of(p) >= frames) return false;
    bool is_found = false;
    (void)here.each_awaiting(places_[place_of(p)].rule, frame_of(p), [&](std::uint32_t) { is_found = true; });
    return is_found;
  };
  for (std::uint32_t frame = 1; frame < here.frames(); ++frame) {
    for (std::size_t i = 0; i < here.entries(frame); ++i) {
      const auto e = here.at(frame, i);
      if (i > 0 && here.at(frame, i - 1) >= e) return false;
      if (e.rule >= beginnings_.size() || beginnings_[e.rule].takes.none() || !is_awaited(e.then, frame)) return false;
    }
  }
  for (std::size_t i = 0; i < here.spots(); ++i) {
    const spot one = here.spot_at(i);
    if (i > 0 && here.spot_at(i - 1) >= one) return false;
    if (point_of(one) == point(accept_, 0) || !is_awaited(point_of(one), here.frames())) return false;
    const place& p = places_[place_of(point_of(one))];
    if (p.heads == 0 || count_of(one) > (p.loop == no_loop ? 0 : loops_[p.loop].open_max())) return false;
  }
  return has_prediction || here.spots() > 0 || is_accepting(s);
}

}  // namespace redline::grammar
