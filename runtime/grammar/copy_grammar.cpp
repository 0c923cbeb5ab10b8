#include "runtime/grammar/copy_grammar.hpp"

#include "runtime/base/assert.hpp"

namespace redline::grammar {
namespace {

enum cell : std::size_t { at, matched, file, of, first, last, number, span_tokens, cells_count };

bool is_at(const automaton_state& s, copy::program_state::step step) {
  return s[at] == static_cast<std::uint32_t>(step);
}

}  // namespace

automaton_state copy_grammar::pack(const copy::program_state& p, std::uint32_t tokens) {
  automaton_state s;
  for (const auto c :
       {static_cast<std::uint32_t>(p.at), static_cast<std::uint32_t>(p.matched), p.op.file,
        static_cast<std::uint32_t>(p.op.of), p.op.first, p.op.last, static_cast<std::uint32_t>(p.number), tokens}) {
    s.push(c);
  }
  return s;
}

copy::program_state copy_grammar::unpack(const automaton_state& s) const {
  return {.at = static_cast<copy::program_state::step>(s[at]),
          .matched = static_cast<std::uint8_t>(s[matched]),
          .op = {s[file], static_cast<copy::unit>(s[of]), s[first], s[last]},
          .number = s[number]};
}

bool copy_grammar::advance(automaton_state& s, std::uint8_t byte, step_count& steps) const {
  steps.add();
  auto p = unpack(s);
  if (!programs_.advance(p, static_cast<char>(byte))) return false;
  s = pack(p, 0);
  return true;
}

bool copy_grammar::is_terminated(const automaton_state& s) const { return is_at(s, copy::program_state::step::done); }

std::string_view copy_grammar::known_run(const automaton_state& s, step_count&) const {
  return programs_.word_left(unpack(s));
}

byte_automaton::free_text_rule copy_grammar::free_text_at(const automaton_state& s) const {
  static const free_text all_but_less_than(~byte_set().set('<'));
  static const free_text anchor_bytes([] {
    byte_set set;
    for (unsigned byte = 0; byte < 256; ++byte) set.set(byte, copy::is_anchor_byte(static_cast<char>(byte)));
    return set;
  }());
  if (is_at(s, copy::program_state::step::first_anchor) || is_at(s, copy::program_state::step::last_anchor))
    return {&anchor_bytes};
  if (!is_at(s, copy::program_state::step::gen_body)) return {};
  return {.table = &all_but_less_than, .exit_byte = static_cast<std::uint8_t>(copy::gen_end[s[matched]])};
}

std::uint32_t copy_grammar::unconstrained_tokens(const automaton_state& s) const {
  return is_at(s, copy::program_state::step::span) ? s[span_tokens] : 0;
}

void copy_grammar::skip_unconstrained_token(automaton_state& s) const {
  if (--s[span_tokens] == 0) s = begin();
}

bool copy_grammar::awaits_span(const automaton_state& s) const {
  return is_at(s, copy::program_state::step::span) && s[span_tokens] == 0;
}

void copy_grammar::resume(automaton_state& s, std::uint32_t tokens_count) const {
  REDLINE_ASSERT(is_at(s, copy::program_state::step::span), "only a complete copy is followed by its span");
  if (tokens_count == 0)
    s = begin();
  else
    s[span_tokens] = tokens_count;
}

bool copy_grammar::is_valid(const automaton_state& s) const {
  if (s.size() != cells_count || s[at] > 0xff || s[matched] > 0xff || s[of] > 0xff) return false;
  if (s[span_tokens] > 0 && !is_at(s, copy::program_state::step::span)) return false;
  return programs_.is_valid(unpack(s));
}

}  // namespace redline::grammar
