#include "runtime/actor/restart_policy.hpp"

#include <algorithm>

namespace redline::actor {

restart_policy::restart_policy(restart_strategy strategy, restart_limit limit, std::vector<address> children)
    : strategy_(strategy), limit_(limit), children_(std::move(children)) {}

bool restart_policy::has(address child) const {
  return std::find(children_.begin(), children_.end(), child) != children_.end();
}

std::vector<address> restart_policy::on_down(address child, instant now) {
  const auto first = std::find(children_.begin(), children_.end(), child);
  if (first == children_.end()) return {};
  while (!restarts_.empty() && now - restarts_.front() > limit_.within) restarts_.pop_front();
  if (restarts_.size() >= limit_.count_max) return {};
  restarts_.push_back(now);
  if (strategy_ == restart_strategy::one_for_one) return {child};
  return {first, children_.end()};
}

}  // namespace redline::actor
