#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.hpp"

namespace redline::actors::cli {

/// `redline serve` in a process of its own, on a free port of this machine; ended with this object, and with the thread
/// that launched it. It serves only this process: it tells its port through a pipe, and takes no key but a random one
/// that it has from its environment, which other users cannot read. What it fails of while starting it tells through
/// the pipe as well, so that the failure is this process's own.
class child_server {
 public:
  child_server() = default;
  ~child_server();
  child_server(const child_server&) = delete;
  child_server& operator=(const child_server&) = delete;

  struct door {
    std::string url;
    std::string api_key;
  };

  /// serve's flags besides where to listen. Its door, once the models are loaded. For comparisons: prompts share
  /// nothing.
  result<door> start(const std::vector<std::string>& serve_flags);

  // The same in two steps, the second perhaps on another thread. After its end it may be launched again, by a thread
  // that lives as long as this: it gets another port and another key.
  enum class prompts : std::uint8_t { apart, shared };
  result<void> launch(const std::vector<std::string>& serve_flags, prompts sharing);
  /// given_up: once true it fails soon. Null: nobody gives up.
  result<door> wait_until_ready(std::chrono::seconds patience, const std::atomic<bool>* given_up = nullptr);
  /// Until the child has ended or given_up is true.
  void wait_for_end(const std::atomic<bool>& given_up);

  /// Whether it ends in this time or has ended.
  bool ends_within(std::chrono::milliseconds limit);
  /// How a child that has ended did so.
  [[nodiscard]] std::string describe_end() const;

 private:
  [[nodiscard]] bool has_ended();
  /// Reads what the child says on the pipe, for 100 ms at most; false once it says no more.
  bool hear();

  pid_t pid_ = 0;
  int status_ = 0;    // of one that has ended
  int pipe_ = -1;     // its reading end
  std::string told_;  // through it, so far
  std::string api_key_;
};

}  // namespace redline::actors::cli
