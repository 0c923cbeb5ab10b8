#include "runtime/grammar/copy_grammar.hpp"

#include "runtime/base/assert.hpp"

namespace redline::grammar {
namespace {

enum cell : std::size_t { at, matched, file, of, first, last, number, free_count, cells_count };

bool is_at(const state& s, copy::program_state::step step) { return s[at] == static_cast<std::uint32_t>(step); }

}  // namespace

state copy_grammar::pack(const copy::program_state& p, std::uint32_t free) {
  state s;
  for (const auto c :
       {static_cast<std::uint32_t>(p.at), static_cast<std::uint32_t>(p.matched), p.op.file,
        static_cast<std::uint32_t>(p.op.of), p.op.first, p.op.last, static_cast<std::uint32_t>(p.number), free}) {
    s.push(c);
  }
  return s;
}

copy::program_state copy_grammar::position(const state& s) const {
  return {.at = static_cast<copy::program_state::step>(s[at]),
          .matched = static_cast<std::uint8_t>(s[matched]),
          .op = {s[file], static_cast<copy::unit>(s[of]), s[first], s[last]},
          .number = s[number]};
}

bool copy_grammar::advance(state& s, std::uint8_t byte) const {
  auto p = position(s);
  if (!programs_.advance(p, static_cast<char>(byte))) return false;
  s = pack(p, 0);
  return true;
}

bool copy_grammar::is_over(const state& s) const { return is_at(s, copy::program_state::step::done); }

std::optional<std::uint8_t> copy_grammar::known_byte(const state& s) const {
  const auto word = programs_.word_left(position(s));
  return word.empty() ? std::nullopt : std::optional(static_cast<std::uint8_t>(word.front()));
}

machine::plain_place copy_grammar::plain(const state& s) const {
  static const plain_text all_but_lt(~byte_set().set('<'));
  static const plain_text of_anchors([] {
    byte_set set;
    for (unsigned byte = 0; byte < 256; ++byte) set.set(byte, copy::is_anchor_byte(static_cast<char>(byte)));
    return set;
  }());
  if (is_at(s, copy::program_state::step::first_anchor) || is_at(s, copy::program_state::step::last_anchor))
    return {&of_anchors};
  if (!is_at(s, copy::program_state::step::gen_body)) return {};
  return {&all_but_lt, UINT32_MAX, static_cast<std::uint8_t>(copy::gen_end[s[matched]])};
}

std::uint32_t copy_grammar::free_tokens(const state& s) const {
  return is_at(s, copy::program_state::step::span) ? s[free_count] : 0;
}

void copy_grammar::pass_free_token(state& s) const {
  if (--s[free_count] == 0) s = begin();
}

bool copy_grammar::stands(const state& s) const {
  return is_at(s, copy::program_state::step::span) && s[free_count] == 0;
}

void copy_grammar::resume(state& s, std::uint32_t free) const {
  REDLINE_ASSERT(is_at(s, copy::program_state::step::span), "only a complete copy is followed by its span");
  if (free == 0)
    s = begin();
  else
    s[free_count] = free;
}

bool copy_grammar::is_possible(const state& s) const {
  if (s.size() != cells_count || s[at] > 0xff || s[matched] > 0xff || s[of] > 0xff) return false;
  if (s[free_count] > 0 && !is_at(s, copy::program_state::step::span)) return false;
  return programs_.is_possible(position(s));
}

}  // namespace redline::grammar
