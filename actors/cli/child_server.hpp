#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "runtime/base/result.hpp"

namespace redline::actors::cli {

/// `redline serve` in a process of its own, on a free port of this machine; ended with this object. For comparisons:
/// prompts share nothing.
class child_server {
 public:
  child_server() = default;
  ~child_server();
  child_server(const child_server&) = delete;
  child_server& operator=(const child_server&) = delete;

  /// serve's flags besides where to listen. The URL, once the models are loaded.
  result<std::string> start(const std::vector<std::string>& serve_flags);

 private:
  pid_t pid_ = 0;
};

}  // namespace redline::actors::cli
