#include "transport/zmq/bridge_counts.hpp"

#include <atomic>

#include "runtime/base/log.hpp"

namespace redline::transport {
namespace {

std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(bridge_refusal::last_)> counts{};

}  // namespace

void count_refusal(bridge_refusal why) { ++counts[static_cast<std::size_t>(why)]; }

bool refusal_rate::allows(const std::string& what, clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(said_, [now](const auto& one) { return now >= one.second; });
  return said_.size() < lines_max && said_.try_emplace(what, now + std::chrono::minutes(1)).second;
}

void note_refusal(bridge_refusal why, const std::string& what) {
  count_refusal(why);
  static refusal_rate rate;
  if (rate.allows(what, refusal_rate::clock::now())) log_line(log_level::warning, "bridge", "refused " + what);
}

bridge_counts read_bridge_counts() {
  bridge_counts now{};
  for (std::size_t i = 0; i < now.size(); ++i) now[i] = counts[i];
  return now;
}

}  // namespace redline::transport
