#pragma once

#include <chrono>
#include <functional>
#include <utility>

namespace redline::actors::cli {

/// Handles SIGTERM, SIGINT and SIGHUP. During startup, the first SIGTERM or SIGINT ends the process, because nothing
/// would be lost. Later, `wait` reports the first two in order of arrival, and a third ends the process at once. SIGHUP
/// ends nothing: `wait` runs on_hang_up, after startup if it came earlier. Construct it once, before other threads
/// start: they inherit a mask under which system calls are not interrupted. Library threads that started earlier may
/// run the handler too.
class signal_wait {
 public:
  /// is_told: whether to print a line if a signal ends the process during startup.
  explicit signal_wait(bool is_told = true);
  /// From now on `wait` reports signals.
  void note_started();
  /// Sets what `wait` calls on SIGHUP. Without it, a log line says that SIGHUP changes nothing.
  void on_hang_up(std::function<void()> what) { on_hang_up_ = std::move(what); }
  /// Returns the signal that ends the process, or 0 after `limit` or a SIGHUP.
  int wait(std::chrono::milliseconds limit);

 private:
  std::function<void()> on_hang_up_;
};

}  // namespace redline::actors::cli
