#pragma once

#include <chrono>
#include <functional>
#include <utility>

namespace redline::actors::cli {

/// SIGTERM and SIGINT, in their order of arrival: while the process starts, the first one ends it, for nothing would be
/// lost; later the first two are told by `wait`; a third ends it at once, whatever it does. SIGHUP ends
/// nothing: `wait` does what on_hang_up says; one that comes while the process starts waits for that. Made once, before
/// threads are started: those inherit a mask under which their system calls are not interrupted. Threads of libraries
/// that were started before may run the handler, too.
class signal_wait {
 public:
  /// is_told: a line of standard error says that the process was ended while it started.
  explicit signal_wait(bool is_told = true);
  /// From now on `wait` tells of signals.
  void note_started();
  /// What SIGHUP asks for, to be called by `wait`. Without it a line of the log says that it changes nothing.
  void on_hang_up(std::function<void()> what) { on_hang_up_ = std::move(what); }
  /// The signal that ends the process, or 0 after `limit` or a SIGHUP.
  int wait(std::chrono::milliseconds limit);

 private:
  std::function<void()> on_hang_up_;
};

}  // namespace redline::actors::cli
