#pragma once

#include "runtime/base/environment.hpp"
#include "runtime/base/ids.hpp"

namespace redline::scheduler {

/// A sequence that has asked for nothing for this long (its client reads slowly, its drafter is down) may lose its
/// place or its pages; a session between two rounds of a healthy system is back much sooner.
inline constexpr microseconds idle_before_yield{250'000};

/// What decides whose turn it is and who yields: read by admission and preemption.
struct standing {
  instant arrival;            // of the sequence
  instant idle_since;         // when its last round was closed
  bool open = false;          // its round has been asked for and not answered
  bool prefill_only = false;  // the round (the last one, if none is open) computes KV alone, and no client waits for it
  bool in_flight = false;     // a run of it is with the target model
  tenant_id tenant;
  bool operator==(const standing&) const = default;

  [[nodiscard]] bool is_idle(instant now) const { return !open && now - idle_since >= idle_before_yield; }
};

}  // namespace redline::scheduler
