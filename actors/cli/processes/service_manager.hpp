#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace redline::actors::cli {

/// Notifies systemd of this process's state by datagrams to $NOTIFY_SOCKET (sd_notify(3)), for units of `Type=notify`,
/// with or without `WatchdogSec=`. Does nothing without that variable. Call it from one thread, or before others start.
class service_manager {
 public:
  using clock = std::chrono::steady_clock;
  /// now: what time it is.
  explicit service_manager(std::function<clock::time_point()> now = clock::now);
  ~service_manager();
  service_manager(const service_manager&) = delete;
  service_manager& operator=(const service_manager&) = delete;

  /// The process is starting and needs more time. May be called as often as is convenient.
  void note_progress();
  void note_ready();
  /// The process works. May be called as often as is convenient. If it stays silent for WatchdogSec, systemd restarts
  /// it.
  void note_alive();
  void note_stopping();

 private:
  void tell(const std::string& words) const;
  /// True if so much time has passed since it last returned true.
  bool is_due(clock::duration every);

  std::function<clock::time_point()> now_;
  std::string path_;  // empty if nothing is to be notified
  int socket_ = -1;
  std::optional<std::chrono::microseconds> watchdog_;
  std::optional<clock::time_point> told_;
};

/// A process whose actors do not answer for so long has failed: it is many times their longest handler's duration.
inline constexpr std::chrono::milliseconds answers_within{10'000};

}  // namespace redline::actors::cli
