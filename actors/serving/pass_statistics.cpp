#include "actors/serving/pass_statistics.hpp"

#include <algorithm>
#include <cmath>

namespace redline::actors {

void pass_statistics::note_pass(const scheduler::batch_plan& plan, microseconds took, std::uint64_t experts) {
  const double miss = std::abs(static_cast<double>((plan.predicted - took).count())) /
                      std::max<double>(static_cast<double>(took.count()), 1.0);
  counts.cost_error_ratio += 0.05 * (miss - counts.cost_error_ratio);
  ++counts.batches_total;
  counts.rows_total += plan.size.rows;
  counts.forward_us_total += static_cast<std::uint64_t>(took.count());
  counts.experts_total += experts;
  if (passes_.size() == worker_status::batches_max) passes_.pop_front();
  batch_record& b = passes_.emplace_back();
  b.number = counts.batches_total;
  b.us = static_cast<std::uint64_t>(took.count());
  b.predicted_us = static_cast<std::uint64_t>(plan.predicted.count());
  b.sequences = static_cast<std::uint32_t>(plan.runs.size());
  for (const auto& run : plan.runs) {
    const bool is_step = run.wants_logits && run.log_count == 1;
    (is_step ? b.decode_rows : b.prompt_rows) += run.log_count;
    b.draft_rows += run.draft_count;
  }
}

std::uint32_t pass_statistics::retry_after_ms() const {
  if (counts.batches_total == 0) return 1000;
  const std::uint64_t pass_us = counts.forward_us_total / counts.batches_total;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(pass_us * 100 / 1000, 500, 30'000));
}

worker_status pass_statistics::as_worker(const scheduler_report& now, const scheduler::run_queue& queue,
                                         std::uint32_t process) const {
  worker_status out{.process = process,
                    .ready = now.ready,
                    .running_count = now.running_count,
                    .waiting_count = now.waiting_count,
                    .pages_count = now.pages_count,
                    .pages_held = now.pages_held,
                    .batches_total = now.batches_total,
                    .rows_total = now.rows_total,
                    .forward_us_total = now.forward_us_total,
                    .preempted_total = now.preempted_total,
                    .cost_error_ratio = now.cost_error_ratio,
                    .batches = {passes_.begin(), passes_.end()},
                    .batch_fill = now.batch_fill};
  for (std::uint32_t rows = 1; rows <= worker_status::cost_rows_max && !queue.cost().is_unmeasured(); rows *= 2) {
    const auto predicted = queue.cost().predict(cost::size_of_run(0, rows, 1));
    out.cost.push_back({rows, static_cast<std::uint64_t>(predicted.count())});
  }
  return out;
}

scheduler_report pass_statistics::report(const scheduler::run_queue& queue, std::uint32_t process, bool details) const {
  scheduler_report out = counts;
  out.running_count = queue.running_count();
  out.waiting_count = queue.waiting_count();
  out.pending_rows = queue.pending_rows();
  out.prompt_row_ns = static_cast<std::uint32_t>(std::min(queue.prompt_row_us() * 1000, 4e9));
  const auto& gathered = queue.gathered();
  out.batch_fill = gathered.fill;
  out.waits_total = gathered.waits;
  out.waited_us_total = static_cast<std::uint64_t>(gathered.waited.count());
  out.waits_missed_total = gathered.missed;
  if (details) out.workers.push_back(as_worker(out, queue, process));
  return out;
}

}  // namespace redline::actors
