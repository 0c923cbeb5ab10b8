#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/http/http_replies.hpp"
#include "actors/messages/status_messages.hpp"
#include "runtime/base/tenant_share.hpp"

namespace redline::actors {

/// The clients of GET /v1/redline/status, each with a stream of events. A client that does not read misses events, and
/// its stream ends after slow_max.
class status_watch {
 public:
  static constexpr std::size_t watchers_max = 16;
  static constexpr std::size_t watchers_of_tenant_max = part_of_one(watchers_max, 2);
  static constexpr std::size_t workers_shown_max = 64;
  static constexpr microseconds slow_max{30'000'000};
  /// After so long without a scheduler report, the clients are notified that there is none.
  static constexpr microseconds silence_max{2'000'000};

  explicit status_watch(http_replies& replies) : replies_(replies) {}

  /// What the gateway itself knows; the rest comes from the scheduler's report.
  struct server_state {
    std::vector<std::string> models;
    std::vector<std::string> conflicts{};  // conflicting names; see model_catalog
    std::uint64_t uptime_seconds = 0;
    std::size_t answers_running = 0;
    std::size_t edit_sessions = 0;
    gateway_probe::totals totals;
    bool ready = false;
  };

  /// Begins a stream, or refuses if there are too many.
  void begin(const caller& who);
  /// Sends an event to every client whose connection keeps up.
  void tell(const server_state& server, const scheduler_report& report, instant now);
  /// True if no event was sent for too long.
  [[nodiscard]] bool is_silent(instant now) const { return !watchers_.empty() && now >= told_ + silence_max; }
  /// Ends the streams whose clients have not read for too long.
  void drop_slow(instant now);
  void on(const http_flow& m, instant now);
  /// False if the exchange is not a watcher's.
  bool client_left(std::uint64_t exchange) { return watchers_.erase(exchange) > 0; }
  void end_all();
  [[nodiscard]] bool empty() const { return watchers_.empty(); }

 private:
  struct watcher {
    caller who;
    std::optional<instant> paused;  // since when the connection has not kept up
  };
  http_replies& replies_;
  std::map<std::uint64_t, watcher> watchers_;            // keyed by exchange
  std::map<std::uint32_t, std::uint64_t> batches_told_;  // by process: the last batch number reported
  instant told_;
};

}  // namespace redline::actors
