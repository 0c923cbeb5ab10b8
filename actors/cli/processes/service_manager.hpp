#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace redline::actors::cli {

/// Tells systemd how this process stands, by datagrams to the socket that $NOTIFY_SOCKET names (sd_notify(3)): for
/// units of `Type=notify`, with or without `WatchdogSec=`. Does nothing where nobody asks. From one thread, or before
/// others are started.
class service_manager {
 public:
  service_manager();
  ~service_manager();
  service_manager(const service_manager&) = delete;
  service_manager& operator=(const service_manager&) = delete;

  /// It starts and needs more time; as often as is convenient.
  void note_progress();
  void note_ready();
  /// It works; as often as is convenient. Not said for WatchdogSec, the manager ends the process and starts it anew.
  void note_alive();
  void note_stopping();

 private:
  using clock = std::chrono::steady_clock;
  void tell(const std::string& words) const;
  /// Whether so much time has gone by since the last time that it was true.
  bool is_due(clock::duration every);

  std::string path_;  // empty: nobody asks
  int socket_ = -1;
  std::optional<std::chrono::microseconds> watchdog_;
  std::optional<clock::time_point> told_;
};

/// A process whose actors do not answer for so long does not work: many times what their longest handler may take.
inline constexpr std::chrono::milliseconds answers_within{10'000};

}  // namespace redline::actors::cli
