#include "scheduler/gathering.hpp"

#include <algorithm>

namespace redline::scheduler {

std::optional<std::size_t> choose_wait(const gathering& g, const cost::cost_model& cost) {
  if (cost.is_unmeasured() || g.expected.empty()) return std::nullopt;
  cost::work_size theirs;
  double counted = 0;
  return_times::chances come{};  // expected number of arrivals, by step
  return_times::chances all_come{};
  all_come.fill(1);
  for (const expected_round& e : g.expected) {
    if (e.comes_within.back() < counted_on_chance) continue;
    theirs = theirs + e.size;
    counted += 1;
    for (std::size_t i = 0; i < come.size(); ++i) {
      if (e.comes_within[i] >= counted_on_chance) come[i] += e.comes_within[i];
      all_come[i] *= e.comes_within[i];
    }
  }
  if (counted == 0) return std::nullopt;
  const auto us = [](microseconds t) { return static_cast<double>(t.count()); };
  const auto pass_us = [&](const cost::work_size& size) { return us(cost.predict(size) + g.around); };
  const double now_us = pass_us(g.size);
  const double theirs_us = pass_us(theirs);
  const double longest_us = std::max(now_us, us(g.time_max));
  // Work that no client waits for yields.
  const double all_us = g.rounds > 0 ? std::min(pass_us(g.size + theirs), longest_us) : theirs_us;
  const double base_us = g.rounds > 0 ? now_us : 0;
  std::optional<std::size_t> best;
  double best_rate = 0;
  double wait_us = 0;  // average: the wait ends when all have come
  for (std::size_t i = 0; i < come.size(); ++i) {
    const double longer_us = us(return_times::step(i)) - (i == 0 ? 0 : us(return_times::step(i - 1)));
    wait_us += longer_us * (i == 0 ? 1 : 1 - all_come[i - 1]);
    if (come[i] == 0) continue;
    const double part = come[i] / counted;
    const double together_us = base_us + part * (all_us - base_us);
    const double wait = (g.rounds + come[i]) / std::max(wait_us + together_us, 1.0);
    const double alternate = (g.rounds + come[i]) / std::max(now_us + part * theirs_us, 1.0);
    const double skip = (2 * g.rounds + come[i]) / std::max(now_us + us(g.comes_back) + together_us, 1.0);
    if (wait > std::max({best_rate, alternate, skip})) best_rate = wait, best = i;
  }
  return best;
}

}  // namespace redline::scheduler
