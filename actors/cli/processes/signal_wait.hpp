#pragma once

#include <chrono>

namespace redline::actors::cli {

/// SIGTERM and SIGINT, in this order of arrival: while the process starts, the first one ends it, for nothing would be
/// lost; later the first two are told by `wait`; a third ends it at once, whatever it does. Made once, before threads
/// are started: those inherit a mask under which their system calls are not interrupted. Threads of libraries that
/// were started before may run the handler, too.
class signal_wait {
 public:
  signal_wait();
  /// From now on `wait` tells of signals.
  void note_started();
  /// The signal, or 0 after `limit`.
  int wait(std::chrono::milliseconds limit);
};

}  // namespace redline::actors::cli
