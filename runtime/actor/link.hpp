#pragma once

#include <optional>

#include "runtime/actor/frame.hpp"
#include "runtime/base/environment.hpp"

namespace redline::actor {

/// How a worker's frames leave and arrive. Owned and used by one thread. Frames between two workers keep their order.
class link {
 public:
  virtual ~link() = default;
  /// Hands the frame over without waiting. The failure says why it cannot travel (no route, queue full, too long).
  virtual result<void> send(const frame& f) = 0;
  /// The next frame that has arrived, without waiting. Malformed ones are counted and dropped inside.
  virtual std::optional<frame> receive() = 0;
  /// Waits until `receive` may have something, or for `at_most`.
  virtual void wait(microseconds at_most) = 0;
};

}  // namespace redline::actor
