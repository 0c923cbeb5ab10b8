#pragma once

#include <string_view>
#include <tuple>

#include "runtime/actor/protocol.hpp"

namespace redline::actors {

/// Asks for a report of how things stand; for health and metrics. Answered with the actor's own kind of report.
struct report_status {
  static constexpr actor::message_id id{0x0501};
  static constexpr std::string_view name = "report_status";
  static constexpr auto fields(auto&) { return std::tie(); }
};

/// The scheduler and the target model behind it. Counters run from the start of the actor.
struct scheduler_report {
  static constexpr actor::message_id id{0x0502};
  static constexpr std::string_view name = "scheduler_report";

  bool ready = false;         // the target model is up
  std::uint32_t context = 0;  // most tokens of one sequence
  std::uint32_t running_count = 0;
  std::uint32_t waiting_count = 0;
  std::uint32_t pages_count = 0;
  std::uint32_t pages_held = 0;
  std::uint64_t batches_total = 0;
  std::uint64_t rows_total = 0;
  std::uint64_t drafted_total = 0;
  std::uint64_t accepted_total = 0;
  std::uint64_t forward_us_total = 0;
  std::uint64_t preempted_total = 0;
  std::uint64_t cached_total = 0;  // tokens that new sequences did not have to compute
  std::uint64_t refused_total = 0;
  double cost_error_ratio = 0;  // running mean of |predicted - measured| / measured
  static constexpr auto fields(auto& self) {
    return std::tie(self.ready, self.context, self.running_count, self.waiting_count, self.pages_count, self.pages_held,
                    self.batches_total, self.rows_total, self.drafted_total, self.accepted_total, self.forward_us_total,
                    self.preempted_total, self.cached_total, self.refused_total, self.cost_error_ratio);
  }
};

/// A drafter.
struct draft_report {
  static constexpr actor::message_id id{0x0503};
  static constexpr std::string_view name = "draft_report";

  bool has_model = false;
  std::uint64_t passes_total = 0;
  std::uint64_t proposals_total = 0;
  std::uint64_t tokens_total = 0;
  static constexpr auto fields(auto& self) {
    return std::tie(self.has_model, self.passes_total, self.proposals_total, self.tokens_total);
  }
};

}  // namespace redline::actors
