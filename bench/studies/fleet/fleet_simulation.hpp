#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/studies/common/names.hpp"
#include "bench/studies/fleet/fleet_worker.hpp"
#include "bench/studies/fleet/message_sizes.hpp"
#include "bench/studies/fleet/pass_curve.hpp"
#include "runtime/base/result.hpp"

namespace redline::studies {

/// A pool, its users, and the losses that it suffers.
struct fleet_options {
  std::uint32_t workers = 16;
  std::uint32_t gateways = 2;
  std::uint32_t sessions = 1000;  // users, each with a conversation: ask, read the answer, think, ask again
  std::uint32_t tenants = 8;      // tenants differ in size: the n-th has 1/n of the first one's users
  double minutes = 2;             // virtual time; the first quarter warms up and is not measured
  double think_seconds = 30;      // mean time between an answer and the next question
  double loss_per_minute = 0;     // share of the workers killed each minute
  double restart_seconds = 20;    // until a killed worker is back, with empty caches
  std::uint32_t detect_ms = 250;  // until a broker notices a killed worker
  bool lose_one_for_good = false;
  double diurnal = 0;  // 0 to 1: how far the load swings around its mean over the whole time
  std::string placement = "redline";
  std::uint64_t seed = 1;
  std::uint32_t hop_us = 100;    // time of a message between a process and the broker
  std::uint32_t draft_us = 300;  // time to make a draft
  worker_limits limits;
};

/// Statistics of many values. Times are in milliseconds.
struct value_spread {
  std::uint64_t count = 0;
  double mean = 0, p50 = 0, p95 = 0, p99 = 0, max = 0;
  /// percent: 50, 95 or 99.
  [[nodiscard]] double at(std::uint32_t percent) const { return percent == 99 ? p99 : percent == 95 ? p95 : p50; }
};

struct fleet_result {
  double measured_seconds = 0;
  std::uint64_t answers = 0, unfinished = 0, tokens = 0, rounds = 0, failed = 0, refused = 0, placements = 0;
  // An answer that is not finished at the end counts with what it took so far.
  value_spread first_token_ms;      // from the question to the first token at the gateway
  value_spread time_per_token_ms;   // for each answer, without the first token
  value_spread longest_pause_ms;    // for each answer, between two of its tokens
  double busy_share = 0;            // share of the workers' time
  std::uint64_t rows = 0;           // rows that the workers computed
  std::uint64_t cached_tokens = 0;  // prompt tokens that were not computed again
  std::uint64_t preempted = 0;
  // Work that was done twice:
  std::uint64_t losses = 0;          // workers killed
  std::uint64_t moved_answers = 0;   // answers that moved to another worker
  std::uint64_t rows_lost = 0;       // rows of moved answers, computed again
  std::uint64_t rows_forgotten = 0;  // rows of earlier turns that only a lost worker had
  std::uint64_t rows_elsewhere = 0;  // rows of earlier turns that a worker other than the chosen one had
  std::uint64_t rows_evicted = 0;    // rows of earlier turns for which the worker's pages did not suffice
  value_spread stall_ms;             // from a worker's end to the answer's next token
  traffic carried_by_broker;
  double messages_per_second_max = 0, bytes_per_second_max = 0;  // in the busiest second
  // Fairness: Jain's index (1 means all alike) over tenants with the same kind of use; the lowest value of all kinds.
  double fairness = 1;
  double first_token_ratio = 1;  // longest mean time to the first token divided by the shortest
  // Head of line: answers with little to compute, by whether a long prompt was being computed when they came.
  value_spread short_alone_ms, short_after_long_ms;
  // Herds: answers that one worker received within 100 ms.
  std::uint32_t herd_max = 0;
  double herd_mean = 0;  // mean over the workers that received any
};

/// Runs the pool in virtual time. It uses Redline's own placement, run_queue, batch builder and cost model, and
/// sessions that act like actors/serving/session in rounds of propose, verify and commit. The same options and curve
/// give the same result.
result<fleet_result> simulate_fleet(const fleet_options& options, const pass_curve& curve);

}  // namespace redline::studies
