#pragma once

#include <signal.h>

#include <chrono>

namespace redline::actors::cli {

/// Waits for SIGTERM or SIGINT. Made before threads are started: they inherit the blocked mask.
class signal_wait {
 public:
  signal_wait() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    signal(SIGPIPE, SIG_IGN);
  }
  /// The signal, or 0 after `limit`.
  int wait(std::chrono::milliseconds limit) {
    const timespec t{limit.count() / 1000, limit.count() % 1000 * 1'000'000};
    const int got = sigtimedwait(&set_, nullptr, &t);
    return got > 0 ? got : 0;
  }

 private:
  sigset_t set_{};
};

}  // namespace redline::actors::cli
