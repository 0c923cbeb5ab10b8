#pragma once

#include <optional>

#include "runtime/actor/frame.hpp"
#include "runtime/base/environment.hpp"

namespace redline::actor {

/// How a worker's frames leave and arrive. Owned and used by one thread. Keeps the order of frames between two workers.
class link {
 public:
  virtual ~link() = default;
  /// Passes the frame on without waiting. The failure says why it cannot be sent (no route, queue full, too long).
  virtual result<void> send(const frame& f) = 0;
  /// Returns the next frame that has arrived, without waiting. Malformed frames are counted and dropped.
  virtual std::optional<frame> receive() = 0;
  /// Waits until `receive` may return something, or for `at_most`.
  virtual void wait(microseconds at_most) = 0;
};

}  // namespace redline::actor
