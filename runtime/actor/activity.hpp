#pragma once

#include <functional>
#include <string_view>

#include "runtime/base/environment.hpp"

namespace redline::actor {

/// A time in which an actor occupied the thread of its worker: it handled a message, worked because its worker was
/// idle, or a message to it was decoded. The texts are valid during the call only.
struct activity {
  std::string_view actor;    // its name
  std::string_view message;  // the message's name; empty for idle work and for decoding
  instant begin;
  instant end;
};

/// Called on the worker's thread.
using activity_listener = std::function<void(const activity&)>;

}  // namespace redline::actor
