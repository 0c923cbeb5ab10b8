#pragma once

#include <cstdint>

#include "runtime/base/result.hpp"

namespace redline::actor {

/// How many messages of this process reached no actor, by reason. Counted by all threads since the process started.
struct undelivered_counts {
  std::uint64_t unreachable = 0;   // no such actor, worker or process: normal if it has just ended
  std::uint64_t mailbox_full = 0;  // or the queue to it is full
  std::uint64_t malformed = 0;     // over a limit, or not the message that it claims to be
  std::uint64_t unknown = 0;       // its receiver does not accept such a message
};

void count_undelivered(errc why);
undelivered_counts read_undelivered_counts();

}  // namespace redline::actor
