#include "runtime/grammar/gbnf_automaton.hpp"

#include "runtime/grammar/syntax/steps.hpp"

namespace redline::grammar {
namespace {

// Each further cell packs a position in the grammar, whether it takes the next byte, and the cell of the frame below.
constexpr std::uint32_t head_bit = 0x100;
std::uint32_t pack(std::uint32_t place, bool is_head, std::uint32_t below) {
  return place << 9 | (is_head ? head_bit : 0) | below;
}
std::uint32_t place_of(std::uint32_t cell) { return cell >> 9; }
bool is_head(std::uint32_t cell) { return (cell & head_bit) != 0; }
std::uint32_t below_of(std::uint32_t cell) { return cell & 0xff; }

// The limit of work for one byte, which bounds the cost of a mask. Beyond it the state is lost.
constexpr std::size_t work_max = 1024;

}  // namespace

std::uint32_t gbnf_automaton::frames_from(const automaton_state& s, std::uint32_t cell) {
  std::uint32_t count = 0;
  for (; cell != bottom; cell = below_of(s[cell])) ++count;
  return count;
}

/// The cell with this content, which is added if there is none. There must be space for it.
std::uint32_t gbnf_automaton::put(step& s, std::uint32_t below, std::uint32_t place, bool is_head) const {
  const std::uint32_t cell = pack(place, is_head, below);
  for (std::uint32_t i = 1; i < s.to.size(); ++i) {
    if (s.to[i] == cell) return i;
  }
  if (is_head) ++s.heads;
  s.to.push(cell);
  return static_cast<std::uint32_t>(s.to.size() - 1);
}

std::uint32_t gbnf_automaton::copy_frame(step& s, std::uint32_t cell) const {
  if (cell == bottom) return bottom;
  if (s.copies[cell] != 0) return s.copies[cell];
  const std::uint32_t below = copy_frame(s, below_of((*s.from)[cell]));
  const std::uint32_t made = put(s, below, place_of((*s.from)[cell]), false);
  s.copies[cell] = static_cast<std::uint8_t>(made);
  return made;
}

/// Adds the ways to continue from a position, with the frames of `from` below it.
void gbnf_automaton::reach(step& s, std::uint32_t place, std::uint32_t below) const {
  for (;;) {
    const closure& c = closures_[positions_[place].closure];
    const std::uint32_t depth = frames_from(*s.from, below);
    for (const item& one : c.items) {
      if (depth + one.need > depth_max) continue;
      std::size_t fresh = one.pushes.size() + 1;
      for (std::uint32_t f = below; f != bottom && s.copies[f] == 0; f = below_of((*s.from)[f])) ++fresh;
      s.is_lost =
          s.is_lost || ++s.work > work_max || s.heads == heads_max || s.to.size() + fresh > automaton_state::cells_max;
      if (s.is_lost) return;
      std::uint32_t top = copy_frame(s, below);
      for (const auto push : one.pushes) top = put(s, top, push, false);
      (void)put(s, top, one.head, true);
    }
    if (!c.is_nullable) return;
    if (below == bottom) {
      s.to[0] = may_end;
      return;
    }
    place = place_of((*s.from)[below]);
    below = below_of((*s.from)[below]);
  }
}

automaton_state gbnf_automaton::begin() const {
  const automaton_state none{};
  step s{.from = &none, .to = {}, .copies = {}};
  s.to.push(goes_on);
  reach(s, root_, bottom);
  return s.is_lost ? lost_state() : s.to;
}

automaton_state gbnf_automaton::lost_state() {
  automaton_state s;
  s.push(lost);
  return s;
}

bool gbnf_automaton::advance(automaton_state& s, std::uint8_t byte, step_count& steps) const {
  steps.add();
  if (is_lost(s)) return true;
  std::size_t i = 1;
  const auto takes = [&](std::uint32_t cell) { return is_head(cell) && sets_[positions_[place_of(cell)].other][byte]; };
  while (i < s.size() && !takes(s[i])) ++i;
  if (i == s.size()) return false;
  step next{.from = &s, .to = {}, .copies = {}};
  next.to.push(goes_on);
  for (; i < s.size() && !next.is_lost; ++i) {
    if (takes(s[i])) reach(next, positions_[place_of(s[i])].next, below_of(s[i]));
  }
  steps.add(next.work);
  s = next.is_lost ? lost_state() : next.to;
  return s.size() > 1 || s[0] != goes_on;
}

std::string_view gbnf_automaton::known_run(const automaton_state& s, step_count&) const {
  if (s[0] != goes_on) return {};
  std::uint32_t only = 0;
  for (std::uint32_t i = 1; i < s.size(); ++i) {
    if (!is_head(s[i])) continue;
    if (only != 0) return {};
    only = i;
  }
  if (only == 0) return {};
  const position& p = positions_[place_of(s[only])];
  return std::string_view(literals_).substr(p.run, p.run_count);
}

/// Characters that nearly every grammar accepts in text: no control characters, quotes or backslashes.
const free_text& gbnf_automaton::plain_text() {
  static const free_text table = free_text::characters(bytes_between(0x20, 0x7e).reset('"').reset('\\'));
  return table;
}

/// There is free text where every position that takes plain text comes back to the same one.
byte_automaton::free_text_rule gbnf_automaton::free_text_at(const automaton_state& s) const {
  std::uint32_t loop = UINT32_MAX, below = 0, count = 0;
  for (std::uint32_t i = 1; i < s.size(); ++i) {
    if (!is_head(s[i])) continue;
    const std::uint32_t mine = positions_[place_of(s[i])].text_loop;
    if (mine == UINT32_MAX) {
      const byte_set& takes = sets_[positions_[place_of(s[i])].other];
      if ((takes & plain_first_bytes()).any()) return {};
      continue;
    }
    if (count++ == 0) {
      loop = mine;
      below = below_of(s[i]);
    }
    if (mine != loop || below_of(s[i]) != below) return {};
  }
  if (count == 0 || count != closures_[positions_[loop].closure].text_items) return {};
  return {&plain_text()};
}

const byte_set& gbnf_automaton::plain_first_bytes() {
  static const byte_set bytes = [] {
    byte_set set;
    for (std::size_t b = 0; b < 256; ++b) set.set(b, plain_text().next[0][b] != free_text::outside);
    return set;
  }();
  return bytes;
}

bool gbnf_automaton::is_valid(const automaton_state& s) const {
  if (s.size() == 0 || s[0] > lost || (s.size() == 1 && s[0] == goes_on)) return false;
  if (is_lost(s)) return s.size() == 1;
  std::array<std::uint32_t, automaton_state::cells_max> depth{};
  std::size_t heads = 0;
  for (std::uint32_t i = 1; i < s.size(); ++i) {
    const std::uint32_t place = place_of(s[i]), below = below_of(s[i]);
    if (place >= positions_.size() || (below != bottom && (below == 0 || below >= i || is_head(s[below]))))
      return false;
    depth[i] = below == bottom ? 1 : depth[below] + 1;
    const position& p = positions_[place];
    if (is_head(s[i]) ? p.what != position::kind::bytes || positions_[p.next].closure == no_closure
                      : p.closure == no_closure)
      return false;
    if (depth[i] - 1 + p.need > depth_max || p.need > depth_max) return false;
    heads += is_head(s[i]) ? 1 : 0;
  }
  return heads <= heads_max && (heads > 0 || s.size() == 1);
}

}  // namespace redline::grammar
