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
/// that launched it.
class child_server {
 public:
  child_server() = default;
  ~child_server();
  child_server(const child_server&) = delete;
  child_server& operator=(const child_server&) = delete;

  /// serve's flags besides where to listen. The URL, once the models are loaded. For comparisons: prompts share
  /// nothing.
  result<std::string> start(const std::vector<std::string>& serve_flags);

  // The same in two steps, the second perhaps on another thread.
  enum class prompts : std::uint8_t { apart, shared };
  result<void> launch(const std::vector<std::string>& serve_flags, prompts sharing);
  /// given_up: once true it fails soon. Null: nobody gives up.
  result<std::string> wait_until_ready(std::chrono::seconds patience, const std::atomic<bool>* given_up = nullptr);

 private:
  pid_t pid_ = 0;
  std::string port_file_;
};

}  // namespace redline::actors::cli
