#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "runtime/actor/protocol.hpp"

namespace redline::actors {

/// Asks the scheduler for a scheduler_report, for health and metrics.
struct report_status {
  static constexpr actor::message_id id{0x0501};
  static constexpr std::string_view name = "report_status";

  bool with_details = false;  // a user is looking at the server
  static constexpr auto fields(auto& self) { return std::tie(self.with_details); }
};

/// A forward pass that has run, with its rows of prompts, of decode steps, and of drafts to verify.
struct batch_record {
  std::uint64_t number = 0;  // counted by the scheduler
  std::uint64_t us = 0;
  std::uint64_t predicted_us = 0;
  std::uint32_t sequences = 0;
  std::uint32_t prompt_rows = 0;
  std::uint32_t decode_rows = 0;
  std::uint32_t draft_rows = 0;
  static constexpr auto fields(auto& self) {
    return std::tie(self.number, self.us, self.predicted_us, self.sequences, self.prompt_rows, self.decode_rows,
                    self.draft_rows);
  }
};

/// The predicted time of a pass of so many rows, without context.
struct predicted_cost {
  std::uint32_t rows = 0;
  std::uint64_t us = 0;
  static constexpr auto fields(auto& self) { return std::tie(self.rows, self.us); }
};

/// One scheduler and its target model, for users who look at the server.
struct worker_status {
  static constexpr std::size_t batches_max = 32;
  static constexpr std::uint32_t cost_rows_max = 512;
  std::uint32_t process = 0;
  bool ready = false;
  std::uint32_t running_count = 0;
  std::uint32_t waiting_count = 0;
  std::uint32_t pages_count = 0;
  std::uint32_t pages_held = 0;
  std::uint64_t batches_total = 0;
  std::uint64_t rows_total = 0;
  std::uint64_t forward_us_total = 0;
  std::uint64_t preempted_total = 0;
  double cost_error_ratio = 0;
  std::vector<batch_record> batches;  // the most recent, at most batches_max
  std::vector<predicted_cost> cost;   // predictions for passes without context
  double batch_fill = 1;              // as in scheduler_report
  std::string label;                  // name that people know the process by; see process_card
  static constexpr auto fields(auto& self) {
    return std::tie(self.process, self.ready, self.running_count, self.waiting_count, self.pages_count, self.pages_held,
                    self.batches_total, self.rows_total, self.forward_us_total, self.preempted_total,
                    self.cost_error_ratio, self.batches, self.cost, self.batch_fill, self.label);
  }
};

/// The state of the scheduler and its target model. Counters start with the actor.
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
  std::string why_not;                 // why it is not ready, where there is more to say than that the model is not up
  std::uint64_t overflowed_total = 0;  // sequences that ended because the model's numbers overflowed
  std::uint32_t tokens_max = 0;        // limit of a sequence: the context, or the size of the KV pool
  std::uint64_t queried_total = 0;     // tokens of new sequences, of which cached_total were found
  std::uint32_t asking_count = 0;      // sequences that a session asked for in the last two seconds, or that run
  std::uint64_t pending_rows = 0;      // rows that sequences must compute before they get tokens
  std::uint32_t prompt_row_ns = 0;     // time per row of a prompt; 0 if unknown
  std::vector<worker_status> workers;  // when asked for: this worker, or in a pool all that have answered
  std::uint64_t experts_total = 0;     // distinct experts that passes touched, over all layers
  double batch_fill = 1;  // running mean: decoding sequences in a pass, out of those ready or asking while it ran
  std::uint64_t waits_total = 0;         // passes that waited for sequences between rounds
  std::uint64_t waited_us_total = 0;     // total time of those waits
  std::uint64_t waits_missed_total = 0;  // sequences that did not come within the wait for them
  // In models with recurrent layers: slots for states of sequences, and copies of states that cached prefixes have.
  std::uint32_t states_count = 0;
  std::uint32_t states_held = 0;
  std::uint32_t state_copies_max = 0;
  std::uint32_t state_copies = 0;
  std::uint64_t mtp_us_total = 0;  // time of MTP layers' drafts after passes
  static constexpr auto fields(auto& self) {
    return std::tie(self.ready, self.running_count, self.waiting_count, self.pages_count, self.pages_held,
                    self.batches_total, self.rows_total, self.forward_us_total, self.preempted_total, self.cached_total,
                    self.refused_total, self.cost_error_ratio, self.why_not, self.overflowed_total, self.tokens_max,
                    self.queried_total, self.asking_count, self.pending_rows, self.prompt_row_ns, self.workers,
                    self.experts_total, self.batch_fill, self.waits_total, self.waited_us_total,
                    self.waits_missed_total, self.states_count, self.states_held, self.state_copies_max,
                    self.state_copies, self.mtp_us_total);
  }
};

}  // namespace redline::actors
