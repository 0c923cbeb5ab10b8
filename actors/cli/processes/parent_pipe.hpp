#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/base/result.hpp"

namespace redline::actors::cli {

/// Reports a server's startup to the process that started it, one line each: its port, then "ready" or "failed ERRC
/// WHY". A pipe, unlike a file, cannot be written by another user. It is closed after the last line and when the
/// process ends.
class parent_pipe {
 public:
  /// descriptor: inherited; negative if no parent listens, and then nothing is reported.
  explicit parent_pipe(int descriptor) : descriptor_(descriptor) {}
  ~parent_pipe();
  parent_pipe(const parent_pipe&) = delete;
  parent_pipe& operator=(const parent_pipe&) = delete;

  void tell_port(std::uint16_t port);
  /// False if no parent listens.
  bool tell_failure(const failure& why);
  // "ready" is sent after both calls, which come from two threads. From then on the terminal belongs to the parent.
  /// Says that this process shows nothing more on the terminal.
  void note_started() { note_one(); }
  /// Says that requests are served.
  void note_ready() { note_one(); }

 private:
  void note_one();
  void close();

  int descriptor_;
  std::atomic<int> noted_{0};
};

}  // namespace redline::actors::cli
