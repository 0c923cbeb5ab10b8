#include "runtime/kv/kept_list.hpp"

#include <algorithm>
#include <map>

namespace redline::kv {
namespace {

// Listeners poll once a second.
constexpr std::size_t steps_max = 16;

}  // namespace

void kept_list::update(const std::vector<std::uint64_t>& keys) {
  std::unordered_set<std::uint64_t> now(keys.begin(), keys.end());
  step change;
  for (const auto key : now) {
    if (!keys_.contains(key)) change.added.push_back(key);
  }
  for (const auto key : keys_) {
    if (!now.contains(key)) change.dropped.push_back(key);
  }
  if (change.added.empty() && change.dropped.empty()) return;
  keys_ = std::move(now);
  steps_.push_back(std::move(change));
  if (steps_.size() > steps_max) steps_.pop_front();
  ++revision_;
}

kept_news kept_list::since(std::uint64_t revision) const {
  kept_news news{.revision = revision_};
  const std::uint64_t missed = revision_ - revision;
  if (missed > steps_.size()) {
    news.is_all = true;
    news.added.assign(keys_.begin(), keys_.end());
    std::ranges::sort(news.added);
    return news;
  }
  std::map<std::uint64_t, bool> is_kept;  // final state of the changed keys
  for (auto at = steps_.end() - static_cast<std::ptrdiff_t>(missed); at != steps_.end(); ++at) {
    for (const auto key : at->added) is_kept[key] = true;
    for (const auto key : at->dropped) is_kept[key] = false;
  }
  for (const auto& [key, kept] : is_kept) (kept ? news.added : news.dropped).push_back(key);
  return news;
}

}  // namespace redline::kv
