#include "runtime/grammar/syntax/grammar_rules.hpp"

#include <algorithm>

#include "runtime/grammar/syntax/gbnf_reader.hpp"
#include "runtime/grammar/syntax/lark_reader.hpp"

namespace redline::grammar {

std::vector<code_range> tidy(std::vector<code_range> ranges, bool negated) {
  constexpr char32_t last_code = 0x10ffff;
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<code_range> joined;
  for (const auto& r : ranges) {
    if (!joined.empty() && r.first <= joined.back().last + 1)
      joined.back().last = std::max(joined.back().last, r.last);
    else
      joined.push_back(r);
  }
  if (negated) {
    std::vector<code_range> rest;
    char32_t from = 0;
    for (const auto& r : joined) {
      if (r.first > from) rest.push_back({from, r.first - 1});
      from = r.last + 1;
    }
    if (from <= last_code) rest.push_back({from, last_code});
    joined = std::move(rest);
  }
  std::vector<code_range> out;
  for (const auto& r : joined) {
    if (r.first < 0xd800) out.push_back({r.first, std::min<char32_t>(r.last, 0xd7ff)});
    if (r.last > 0xdfff) out.push_back({std::max<char32_t>(r.first, 0xe000), r.last});
  }
  return out;
}

result<grammar_rules> read_grammar(std::string_view text, step_count& steps) {
  return looks_like_lark(text) ? read_lark(text, steps) : read_gbnf(text);
}

}  // namespace redline::grammar
