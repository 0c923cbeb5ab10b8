#pragma once

#include <string>
#include <string_view>
#include <tuple>

#include "runtime/actor/protocol.hpp"

namespace redline::actors {

/// Asks the scheduler for a scheduler_report, for health and metrics.
struct report_status {
  static constexpr actor::message_id id{0x0501};
  static constexpr std::string_view name = "report_status";
  static constexpr auto fields(auto&) { return std::tie(); }
};

/// How the scheduler and its target model stand. Counters run from the start of the actor.
struct scheduler_report {
  static constexpr actor::message_id id{0x0502};
  static constexpr std::string_view name = "scheduler_report";

  bool ready = false;  // the target model is up
  std::uint32_t running_count = 0;
  std::uint32_t waiting_count = 0;
  std::uint32_t pages_count = 0;
  std::uint32_t pages_held = 0;
  std::uint64_t batches_total = 0;
  std::uint64_t rows_total = 0;
  std::uint64_t forward_us_total = 0;
  std::uint64_t preempted_total = 0;
  std::uint64_t cached_total = 0;  // tokens that new sequences did not have to compute
  std::uint64_t refused_total = 0;
  double cost_error_ratio = 0;         // running mean of |predicted - measured| / measured
  std::string why_not;                 // it is not ready, where more is known than that the model is not up
  std::uint64_t overflowed_total = 0;  // sequences that ended because the model's numbers overflowed
  std::uint32_t tokens_max = 0;        // of a sequence: the context, or what the KV pool holds
  std::uint64_t queried_total = 0;     // tokens of new sequences, of which cached_total were found
  std::uint32_t asking_count = 0;      // sequences that somebody has asked for in the last two seconds, or that run
  static constexpr auto fields(auto& self) {
    return std::tie(self.ready, self.running_count, self.waiting_count, self.pages_count, self.pages_held,
                    self.batches_total, self.rows_total, self.forward_us_total, self.preempted_total, self.cached_total,
                    self.refused_total, self.cost_error_ratio, self.why_not, self.overflowed_total, self.tokens_max,
                    self.queried_total, self.asking_count);
  }
};

}  // namespace redline::actors
