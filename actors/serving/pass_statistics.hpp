#pragma once

#include <cstdint>
#include <deque>

#include "actors/messages/status_messages.hpp"
#include "scheduler/run_queue.hpp"

namespace redline::actors {

/// What a cache manager tells of its passes and sequences: for metrics, placement, and people.
class pass_statistics {
 public:
  /// Counters; what is read anew for each report is filled in by `report`.
  scheduler_report counts;

  /// A pass that took `took`.
  void note_pass(const scheduler::batch_plan& plan, microseconds took, std::uint64_t experts);
  /// A guess of when a full queue may take more: a hundred rounds, each as long as a pass takes on average.
  [[nodiscard]] std::uint32_t retry_after_ms() const;
  /// With what the queue holds now. process: of this manager; details: with the last passes.
  [[nodiscard]] scheduler_report report(const scheduler::run_queue& queue, std::uint32_t process, bool details) const;

 private:
  [[nodiscard]] worker_status as_worker(const scheduler_report& now, const scheduler::run_queue& queue,
                                        std::uint32_t process) const;
  std::deque<batch_record> passes_;  // the last ones
};

}  // namespace redline::actors
