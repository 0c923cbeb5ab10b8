#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/base/result.hpp"

namespace redline::actors::cli {

/// What a server tells the process that started it, one thing in a line: its port, then "ready" or "failed ERRC WHY".
/// A parent that reads the other end of a pipe believes no file that others could have written. The pipe is closed
/// after the last word, and when the process ends.
class parent_pipe {
 public:
  /// descriptor: inherited; negative: there is no listener, and nothing is told.
  explicit parent_pipe(int descriptor) : descriptor_(descriptor) {}
  ~parent_pipe();
  parent_pipe(const parent_pipe&) = delete;
  parent_pipe& operator=(const parent_pipe&) = delete;

  void tell_port(std::uint16_t port);
  /// False where there is no listener.
  bool tell_failure(const failure& why);
  // "ready" is told after both, which come from two threads: the terminal is the parent's from then on.
  /// Nothing is shown on the terminal any more.
  void note_started() { note_one(); }
  /// Requests are served.
  void note_ready() { note_one(); }

 private:
  void note_one();
  void close();

  int descriptor_;
  std::atomic<int> noted_{0};
};

}  // namespace redline::actors::cli
