#include "runtime/grammar/rules_automaton.hpp"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <unordered_set>

namespace redline::grammar {
namespace {

// The cells of a state: marks and the predicted frame; the number of frames; each frame, oldest first, as the number of
// its entries and two cells for each (the awaited rule, and where its caller goes on); then where the text is, sorted.
// Frame 0, which awaits the root rule, is not stored. A point is a place of a rule and the frame where the rule began.
constexpr std::uint32_t may_end = 1, lost = 2, predicts = 4;
constexpr unsigned predicted_shift = 3;
constexpr std::size_t header_cells = 2;

constexpr unsigned frame_bits = 12;
constexpr std::uint32_t frames_max = 1U << frame_bits;
std::uint32_t point(std::uint32_t place, std::uint32_t frame) { return place << frame_bits | frame; }
std::uint32_t place_of(std::uint32_t point) { return point >> frame_bits; }
std::uint32_t frame_of(std::uint32_t point) { return point & (frames_max - 1); }

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
    first_point_ = header_cells;
    for (std::uint32_t i = 0; i < cells_[1]; ++i) {
      frames_.push_back(static_cast<std::uint32_t>(first_point_));
      first_point_ += 1 + 2 * std::size_t{cells_[first_point_]};
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
  [[nodiscard]] std::span<const std::uint32_t> points() const { return cells_.subspan(first_point_); }
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
  std::size_t first_point_;
};

/// Takes one byte from a state.
class rules_automaton::step {
 public:
  step(const rules_automaton& grammar, const automaton_state& from) : grammar_(grammar), from_(grammar, from) {}

  /// Returns whether the byte is allowed.
  bool take(std::uint8_t byte) {
    for (const auto at : from_.points()) take_at(grammar_.places_[place_of(at)], frame_of(at), byte);
    if (from_.predicts_frame()) {
      from_.each_beginning(from_.predicted(), [&](const ways& from) { take_at(from, from_.predicted(), byte); });
    }
    for (std::size_t i = 0; i < reached_.size() && work_ <= work_max; ++i)
      follow(static_cast<std::uint32_t>(reached_[i]));
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
    for (const auto p : points_) numbers[frame_of(p)] = 1;
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
    if (to.size() + 1 + 2 * calls_.size() + points_.size() > automaton_state::cells_max) return lost_state();
    if (adds_frame) {
      to.push(static_cast<std::uint32_t>(calls_.size()));
      for (const auto& e : calls_) put(e);
    }
    std::sort(points_.begin(), points_.end());
    for (const auto p : points_) to.push(moved(p));
    return to;
  }

 private:
  void take_at(const ways& at, std::uint32_t frame, std::uint8_t byte) {
    ++work_;
    if (!at.takes[byte]) return;
    work_ += at.heads;
    for (const head& h : grammar_.heads(at)) {
      if (grammar_.sets_[h.set][byte]) reached_.add(point(h.next, frame));
    }
  }
  /// Adds what follows at a point before the next byte.
  void follow(std::uint32_t at) {
    if (at == point(grammar_.accept_, 0)) {
      ends_ = true;
      return;
    }
    const place& p = grammar_.places_[place_of(at)];
    const auto frame = frame_of(at);
    work_ += 1 + p.calls;
    if (p.heads > 0) points_.push_back(at);
    for (const call& c : grammar_.calls(p)) {
      if (grammar_.places_[c.then].is_only_end())
        hand_over(p.rule, frame, c.rule);
      else
        calls_.push_back({c.rule, point(c.then, frame)});
    }
    if (p.may_end) work_ += from_.each_awaiting(p.rule, frame, [this](std::uint32_t then) { reached_.add(then); });
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
  unique_list reached_;  // points after the byte, and after the rules that end with it
  unique_list handed_;
  short_vector<std::uint32_t> points_;  // those that take a byte
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
  for (const auto at : here.points()) bytes |= places_[place_of(at)].takes;
  if (here.predicts_frame()) here.each_beginning(here.predicted(), [&](const ways& from) { bytes |= from.takes; });
  return bytes;
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
  for (const auto at : here.points()) see(places_[place_of(at)]);
  if (here.predicts_frame()) here.each_beginning(here.predicted(), see);
  return count == 1 ? std::string_view(literals_).substr(only->run, only->run_count) : std::string_view{};
}

/// Characters that nearly every grammar accepts in text: no control characters, quotes or backslashes.
const free_text& rules_automaton::plain_text() {
  static const free_text table = free_text::characters(bytes_between(0x20, 0x7e).reset('"').reset('\\'));
  return table;
}

const byte_set& rules_automaton::plain_first_bytes() {
  static const byte_set bytes = [] {
    byte_set set;
    for (std::size_t b = 0; b < 256; ++b) set.set(b, plain_text().next[0][b] != free_text::outside);
    return set;
  }();
  return bytes;
}

/// There is free text where one point takes all plain text and comes back to itself, and nothing else takes any.
byte_automaton::free_text_rule rules_automaton::free_text_at(const automaton_state& s) const {
  if (is_lost(s)) return {};
  const reader here(*this, s);
  std::size_t loops = 0;
  bool is_free = true;
  for (const auto at : here.points()) {
    const place& p = places_[place_of(at)];
    if (p.is_text_loop)
      ++loops;
    else
      is_free = is_free && !p.takes_plain;
  }
  if (!is_free || loops != 1) return {};
  if (here.predicts_frame())
    here.each_beginning(here.predicted(), [&](const ways& from) { is_free = is_free && !from.takes_plain; });
  return is_free ? free_text_rule{&plain_text()} : free_text_rule{};
}

bool rules_automaton::is_valid(const automaton_state& s) const {
  if (s.size() == 1) return is_lost(s);
  if (s.size() < header_cells || (s[0] & lost) != 0 || s[1] + std::size_t{1} >= frames_max) return false;
  std::size_t at = header_cells;
  for (std::uint32_t i = 0; i < s[1]; ++i) {
    if (at >= s.size() || s[at] == 0 || s[at] > (s.size() - at - 1) / 2) return false;
    at += 1 + 2 * std::size_t{s[at]};
  }
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
  const auto points = here.points();
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i > 0 && points[i - 1] >= points[i]) return false;
    if (points[i] == point(accept_, 0) || !is_awaited(points[i], here.frames())) return false;
    if (places_[place_of(points[i])].heads == 0) return false;
  }
  return has_prediction || !points.empty() || is_accepting(s);
}

}  // namespace redline::grammar
