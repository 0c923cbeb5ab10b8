#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.hpp"

namespace redline::actors::cli {

/// `redline serve` as a child process on a free loopback port. It ends with this object and with the thread that
/// launched it. It serves only this process: it reports its port through a pipe, and accepts only a random key from its
/// environment, which other users cannot read. It also reports startup failures through the pipe, so that they become
/// this process's own.
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

  /// serve_flags: the flags other than the listening address. Returns the URL and key once the models are loaded.
  /// Prompts share no KV, as comparisons need.
  result<door> start(const std::vector<std::string>& serve_flags);

  // The same in two steps, the second possibly on another thread. After its end the server may be launched again, by a
  // thread that lives as long as this object. It then gets another port and another key.
  enum class prompts : std::uint8_t { apart, shared };
  result<void> launch(const std::vector<std::string>& serve_flags, prompts sharing);
  /// given_up: ends the wait soon after it becomes true. May be null.
  result<door> wait_until_ready(std::chrono::seconds patience, const std::atomic<bool>* given_up = nullptr);
  /// Waits until the child has ended or given_up is true.
  void wait_for_end(const std::atomic<bool>& given_up);

  /// True if the child has ended or ends within the limit.
  bool ends_within(std::chrono::milliseconds limit);
  /// Describes how an ended child ended.
  [[nodiscard]] std::string describe_end() const;

 private:
  [[nodiscard]] bool has_ended();
  /// Reads the pipe for at most 100 ms. False once the child has closed it.
  bool hear();

  pid_t pid_ = 0;
  int status_ = 0;    // exit status of a child that has ended
  int pipe_ = -1;     // reading end
  std::string told_;  // the child's reports so far
  std::string api_key_;
};

}  // namespace redline::actors::cli
