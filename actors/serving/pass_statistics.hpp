#pragma once

#include <cstdint>
#include <deque>

#include "actors/messages/status_messages.hpp"
#include "scheduler/run_queue.hpp"

namespace redline::actors {

/// What a cache manager reports about its passes and sequences, for metrics, placement, and users.
class pass_statistics {
 public:
  /// Counters; `report` fills in what is read for each report.
  scheduler_report counts;

  /// Counts a pass that took `took`.
  void note_pass(const scheduler::batch_plan& plan, microseconds took, std::uint64_t experts);
  /// Estimates when a full queue may take more: after a hundred rounds, each as long as an average pass.
  [[nodiscard]] std::uint32_t retry_after_ms() const;
  /// The counters, with the queue's present state. process: of this manager; details: adds the last passes.
  [[nodiscard]] scheduler_report report(const scheduler::run_queue& queue, std::uint32_t process, bool details) const;

 private:
  [[nodiscard]] worker_status as_worker(const scheduler_report& now, const scheduler::run_queue& queue,
                                        std::uint32_t process) const;
  std::deque<batch_record> passes_;  // the most recent ones
};

}  // namespace redline::actors
