#include "runtime/grammar/automata/rule_tables.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace redline::grammar {

bool rule_tables::loop::may_exit(std::uint32_t number) const {
  if (what == kind::counted || what == kind::measured) return number >= least;
  if (what == kind::ordered) return limits[number] == texts;
  return static_cast<std::uint32_t>(std::popcount(number)) >= least && (number & required) == required;
}
bool rule_tables::loop::is_valid(std::uint32_t number) const {
  if (what == kind::counted) return number <= (most == UINT32_MAX ? least : most - 1);
  if (what == kind::measured) return number <= (most == UINT32_MAX ? least : most);
  if (what == kind::ordered) return number <= texts;
  return (number & ~static_cast<std::uint32_t>((std::uint64_t{1} << texts) - 1)) == 0 &&
         static_cast<std::uint32_t>(std::popcount(number)) <= most;
}
std::uint32_t rule_tables::loop::next(std::uint32_t number, std::uint32_t chosen) const {
  if (what == kind::counted || what == kind::measured) return std::min(number + 1, most == UINT32_MAX ? least : most);
  if (what == kind::ordered) return std::min(chosen + 1, texts);
  return chosen < texts ? number | std::uint32_t{1} << chosen : number;
}
bool rule_tables::may_take(std::uint32_t guard, std::uint32_t number) const {
  if (guard == no_guard) return true;
  const auto& texts = guards[guard].texts;
  const loop& l = loops[guards[guard].loop];
  if (l.what == loop::kind::measured) return (std::ranges::upper_bound(texts, number) - texts.begin()) % 2 != 0;
  if (l.what == loop::kind::ordered) {
    const auto next = std::ranges::lower_bound(texts, number);
    return next != texts.end() && *next <= l.limits[number];
  }
  return static_cast<std::uint32_t>(std::popcount(number)) < l.most &&
         std::ranges::any_of(texts, [&](std::uint32_t t) { return t >= l.texts || (number >> t & 1) == 0; });
}

bool rule_tables::leads_on(const place& p, std::uint32_t number) const {
  if (p.ends_text && loops[p.loop].may_exit(number)) return true;
  return std::ranges::any_of(heads_of(p), [&](const head& h) { return may_take(h.guard, number); });
}

std::size_t rule_tables::size_bytes() const {
  const auto bytes_of = [](const auto& all) { return all.capacity() * sizeof(all[0]); };
  return bytes_of(places) + bytes_of(beginnings) + bytes_of(heads) + bytes_of(calls) + bytes_of(sets) +
         bytes_of(loops) + literals.capacity() +
         std::accumulate(guards.begin(), guards.end(), std::size_t{0},
                         [](std::size_t sum, const guard& g) { return sum + g.bytes(); });
}

}  // namespace redline::grammar
