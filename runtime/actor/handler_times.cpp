#include "runtime/actor/handler_times.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>

namespace redline::actor {
namespace {

struct kinds {
  std::mutex mutex;
  std::map<std::string, handler_times, std::less<>> all;
};

kinds& known() {
  static kinds k;
  return k;
}

std::int64_t minute_of(instant now) {
  return std::chrono::duration_cast<std::chrono::minutes>(now.time_since_epoch()).count();
}

}  // namespace

handler_times& handler_times::of(std::string_view kind) {
  kinds& k = known();
  const std::lock_guard lock(k.mutex);
  const auto at = k.all.find(kind);
  return at != k.all.end() ? at->second : k.all.try_emplace(std::string(kind)).first->second;
}

// If two threads begin a minute at once, one of the two values may be lost, which a gauge tolerates.
void handler_times::note(microseconds took, instant now) {
  const std::int64_t minute = minute_of(now);
  if (const std::int64_t before = minute_.exchange(minute); before != minute) {
    last_us_ = before + 1 == minute ? present_us_.load() : 0;
    present_us_ = 0;
  }
  if (took.count() > present_us_.load(std::memory_order_relaxed)) present_us_ = took.count();
}

microseconds handler_times::longest(instant now) const {
  const std::int64_t old = minute_of(now) - minute_.load();
  if (old > 1) return microseconds{0};
  return microseconds{old == 1 ? present_us_.load() : std::max(present_us_.load(), last_us_.load())};
}

std::vector<handler_times::reading> handler_times::read_all(instant now) {
  kinds& k = known();
  const std::lock_guard lock(k.mutex);
  std::vector<reading> out;
  for (const auto& [kind, times] : k.all) out.push_back({kind, times.longest(now)});
  return out;
}

}  // namespace redline::actor
