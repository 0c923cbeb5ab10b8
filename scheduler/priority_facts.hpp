#pragma once

#include "runtime/base/environment.hpp"
#include "runtime/base/ids.hpp"

namespace redline::scheduler {

/// A sequence without a round for this long (its client reads slowly, its drafter is down) may lose its slot or its
/// pages. In a healthy system a session between two rounds returns much sooner.
inline constexpr microseconds idle_before_yield{250'000};

/// Decides whose turn it is and what yields; read by admission and preemption.
struct priority_facts {
  instant arrival;            // when the sequence arrived
  instant idle_since;         // when its last round was closed
  bool open = false;          // its round was submitted and is not answered
  bool prefill_only = false;  // the current or last round only computes KV, and no client waits for it
  bool in_flight = false;     // a run of it is with the target model
  tenant_id tenant;
  bool operator==(const priority_facts&) const = default;

  [[nodiscard]] bool is_idle(instant now) const { return !open && now - idle_since >= idle_before_yield; }
};

}  // namespace redline::scheduler
