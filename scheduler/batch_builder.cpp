#include "scheduler/batch_builder.hpp"

#include <algorithm>

namespace redline::scheduler {
namespace {

work_size size_of(const work_item& item, std::uint32_t rows) {
  const std::uint64_t first = item.computed_count;
  const std::uint64_t n = rows;
  return {n, n * first + n * (n + 1) / 2};
}

work_size operator+(const work_size& a, const work_size& b) { return {a.rows + b.rows, a.pairs + b.pairs}; }

/// Rows of `item` whose pages are free, beside the room left in its last page.
std::uint32_t rows_with_pages(const work_item& item, std::uint32_t pages_free, std::uint32_t page_tokens) {
  const std::uint64_t held = pages_for(item.computed_count, page_tokens);
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>((held + pages_free) * page_tokens - item.computed_count, 0xffffffffu));
}

/// The most rows that keep the pass within its time, by bisection: cost grows with rows.
std::uint32_t rows_in_time(const work_item& item, std::uint32_t wanted, const work_size& so_far, const cost_model& cost,
                           microseconds time_max) {
  std::uint32_t fits = 0;
  std::uint32_t high = wanted;
  if (cost.predict(so_far + size_of(item, wanted)) <= time_max) return wanted;
  while (fits + 1 < high) {
    const std::uint32_t middle = fits + (high - fits) / 2;
    (cost.predict(so_far + size_of(item, middle)) <= time_max ? fits : high) = middle;
  }
  return fits;
}

}  // namespace

batch_plan build_batch(std::span<const work_item> items, std::span<const item_index> best_first, const budget& limits,
                       const cost_model& cost) {
  batch_plan plan;
  std::uint32_t rows_left = limits.rows_max;
  std::uint32_t pages_left = limits.pages_free;
  for (const item_index index : best_first) {
    const work_item& item = items[index];
    const bool whole_log = item.pending_count <= limits.prompt_chunk_rows_max;
    const std::uint32_t offered = whole_log ? item.pending_count + item.draft_count : limits.prompt_chunk_rows_max;
    std::uint32_t rows = std::min(offered, rows_left);
    if (rows == 0) {
      plan.left.push_back({item.sequence, limit::rows});
      continue;
    }
    rows = std::min(rows, rows_with_pages(item, pages_left, limits.page_tokens));
    if (rows == 0) {
      plan.left.push_back({item.sequence, limit::pages});
      continue;
    }
    const std::uint32_t timely = rows_in_time(item, rows, plan.size, cost, limits.time_max);
    const auto taken = static_cast<std::uint32_t>(plan.size.rows);
    const std::uint32_t untimed = limits.rows_min > taken ? limits.rows_min - taken : 0;
    rows = std::min(rows, std::max(timely, untimed));
    if (rows == 0) {
      plan.left.push_back({item.sequence, limit::time});
      continue;
    }
    planned_run run{.sequence = item.sequence, .tenant = item.tenant, .first = item.computed_count};
    run.log_count = std::min(rows, item.pending_count);
    run.draft_count = rows - run.log_count;
    run.wants_logits = run.log_count == item.pending_count;
    plan.size = plan.size + size_of(item, rows);
    rows_left -= rows;
    pages_left -= pages_for(item.computed_count + rows, limits.page_tokens) -
                  pages_for(item.computed_count, limits.page_tokens);
    plan.runs.push_back(run);
  }
  plan.predicted = cost.predict(plan.size);
  return plan;
}

}  // namespace redline::scheduler
