#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/grammar/syntax/grammar_rules.hpp"

namespace redline::grammar {

// Short forms of parts. A choice without ways has no text.

inline part literal(std::string text) { return {.what = part::kind::literal, .text = std::move(text)}; }
inline part characters(std::vector<code_range> ranges) {
  return {.what = part::kind::characters, .ranges = std::move(ranges)};
}
inline part sequence(std::vector<part> parts) { return {.what = part::kind::sequence, .parts = std::move(parts)}; }
/// The parts as a list, without copying those that are given away.
template<std::same_as<part>... Parts>
std::vector<part> parts_of(Parts... parts) {
  std::vector<part> out;
  out.reserve(sizeof...(parts));
  (out.push_back(std::move(parts)), ...);
  return out;
}
template<std::same_as<part>... Parts>
part sequence(Parts... parts) {
  return sequence(parts_of(std::move(parts)...));
}
inline part choice(std::vector<part> ways) {
  if (ways.empty()) return characters({});
  return {.what = part::kind::choice, .parts = std::move(ways)};
}
template<std::same_as<part>... Parts>
part choice(Parts... ways) {
  return choice(parts_of(std::move(ways)...));
}
inline part repeat(part one, std::uint32_t least, std::uint32_t most) {
  part p{.what = part::kind::repeat, .least = least, .most = most};
  p.parts.push_back(std::move(one));
  return p;
}
inline part optional_part(part one) { return repeat(std::move(one), 0, 1); }
inline part call(std::uint32_t rule) { return {.what = part::kind::rule, .rule = rule}; }
/// is_escaped: the text is written inside a JSON string.
inline part expression(std::shared_ptr<const regex_dfa> texts, bool is_escaped) {
  return {.what = part::kind::expression, .expression = std::move(texts), .is_escaped = is_escaped};
}
/// The same with a number of characters.
inline part measured(std::shared_ptr<const regex_dfa> texts, bool is_escaped, text_length length) {
  return {.what = part::kind::measured,
          .expression = std::move(texts),
          .is_escaped = is_escaped,
          .least = length.least,
          .most = length.most};
}

}  // namespace redline::grammar
