#include "transport/zmq/bridge_counts.hpp"

#include <atomic>
#include <chrono>

#include "runtime/base/log.hpp"

namespace redline::transport {
namespace {

std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(bridge_refusal::last_)> counts{};
std::atomic<std::int64_t> quiet_until_ms{0};

}  // namespace

void count_refusal(bridge_refusal why) { ++counts[static_cast<std::size_t>(why)]; }

void note_refusal(bridge_refusal why, const std::string& what) {
  count_refusal(why);
  const std::int64_t now_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count();
  std::int64_t until = quiet_until_ms;
  if (now_ms < until || !quiet_until_ms.compare_exchange_strong(until, now_ms + 1000)) return;
  log_line(log_level::warning, "bridge", "refused " + what);
}

bridge_counts read_bridge_counts() {
  bridge_counts now{};
  for (std::size_t i = 0; i < now.size(); ++i) now[i] = counts[i];
  return now;
}

}  // namespace redline::transport
