#pragma once

#include <functional>
#include <memory>

#include "runtime/actor/address.hpp"

namespace redline::actor {

/// A fiber for every actor of one worker (Boost.Fiber, which stays inside fiber_runner.cpp). All calls come from the
/// worker's thread; fibers never move to another one.
class fiber_runner {
 public:
  /// handle_one(who): handles one message, false when none waits. alive(who): the actor still exists.
  fiber_runner(std::function<bool(address)> handle_one, std::function<bool(address)> alive);
  ~fiber_runner();

  /// Starts a fiber that serves `who` until it is gone.
  void adopt(address who);
  /// Tells `who`'s fiber that mail has come.
  void wake(address who);
  /// From inside a handler: lets the other fibers run.
  void yield();
  /// Runs fibers until all of them wait; false when none was ready. Called by the worker's own loop.
  bool run_until_blocked();
  /// Ends all fibers; each finishes the message it is in.
  void end_all();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace redline::actor
