#include "scheduler/policy.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace redline::scheduler {

// in files of their own, like fair_share.cpp
std::unique_ptr<policy> make_fair_share();

namespace {

class fifo final : public policy {
 public:
  [[nodiscard]] std::uint64_t key(const work_item&) const override { return 0; }
};

constexpr known_policy known[] = {
    {"fifo", "by arrival", [] { return std::unique_ptr<policy>(std::make_unique<fifo>()); }},
    {"fair_share", "first those of the tenant that has used least", make_fair_share},
};

/// Decodes that do not fit take turns; among prompts, the first ends soonest if the others wait.
auto as_they_come(const work_item& item) {
  const bool decodes = item.decodes();
  return std::tuple(!decodes, decodes ? ~item.missed_count : 0, item.arrival, item.sequence);
}

}  // namespace

void rank(policy& by, std::span<const work_item> items, instant now, std::vector<item_index>& best_first) {
  by.see(items, now);
  std::vector<std::uint64_t> keys(items.size());
  std::ranges::transform(items, keys.begin(), [&](const work_item& item) { return by.key(item); });
  best_first.resize(items.size());
  std::iota(best_first.begin(), best_first.end(), item_index{0});
  std::ranges::sort(best_first, {}, [&](item_index i) {
    return std::tuple_cat(std::tuple(items[i].background, keys[i]), as_they_come(items[i]));
  });
}

std::span<const known_policy> policies() { return known; }

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const auto& p : known) names.emplace_back(p.name);
  return names;
}

result<std::unique_ptr<policy>> make_policy(std::string_view name) {
  std::string names;
  for (const auto& p : known) {
    if (p.name == name) return p.make();
    names += (names.empty() ? "" : " or ") + std::string(p.name);
  }
  return failure{errc::invalid_argument, "expected a policy " + names + ", found '" + std::string(name) + "'"};
}

}  // namespace redline::scheduler
