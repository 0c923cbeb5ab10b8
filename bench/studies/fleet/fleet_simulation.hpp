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

/// A pool, its users, and what befalls it.
struct fleet_options {
  std::uint32_t workers = 16;
  std::uint32_t gateways = 2;
  std::uint32_t sessions = 1000;  // users, each with a conversation: ask, read the answer, think, ask again
  std::uint32_t tenants = 8;      // of unequal size: the n-th has 1/n of the first one's users
  double minutes = 2;             // of virtual time; the first quarter warms up and is not measured
  double think_seconds = 30;      // mean time between an answer and the next question
  double loss_per_minute = 0;     // share of the workers that are killed each minute
  double restart_seconds = 20;    // until a killed worker is back, with nothing in its caches
  std::uint32_t detect_ms = 250;  // until a broker notices a killed worker
  bool lose_one_for_good = false;
  double diurnal = 0;  // 0 to 1: how much the load swings around its mean, over the whole time
  std::string placement = "redline";
  std::uint64_t seed = 1;
  std::uint32_t hop_us = 100;    // of a message between a process and the broker
  std::uint32_t draft_us = 300;  // to make a draft
  worker_limits limits;
};

/// Of many values: milliseconds where they are times.
struct value_spread {
  std::uint64_t count = 0;
  double mean = 0, p50 = 0, p95 = 0, p99 = 0, max = 0;
  /// percent: 50, 95 or 99.
  [[nodiscard]] double at(std::uint32_t percent) const { return percent == 99 ? p99 : percent == 95 ? p95 : p50; }
};

struct fleet_result {
  double measured_seconds = 0;
  std::uint64_t answers = 0, unfinished = 0, tokens = 0, rounds = 0, failed = 0, refused = 0, placements = 0;
  // Of answers that are not finished at the end, what they took so far counts.
  value_spread first_token_ms;      // from the question to the first token at the gateway
  value_spread time_per_token_ms;   // of an answer, without the first
  value_spread longest_pause_ms;    // of an answer, between two of its tokens
  double busy_share = 0;            // of the workers' time
  std::uint64_t rows = 0;           // that the workers computed
  std::uint64_t cached_tokens = 0;  // of prompts, that were not computed again
  std::uint64_t preempted = 0;
  // Work that was done twice:
  std::uint64_t losses = 0;          // workers killed
  std::uint64_t moved_answers = 0;   // that went on at another worker
  std::uint64_t rows_lost = 0;       // of moved answers, computed again
  std::uint64_t rows_forgotten = 0;  // of earlier turns, known only to a worker that was lost
  std::uint64_t rows_elsewhere = 0;  // of earlier turns, known to another worker than the one that was chosen
  std::uint64_t rows_evicted = 0;    // of earlier turns, for which the worker's pages did not last
  value_spread stall_ms;             // from a worker's end to the answer's next token
  traffic carried_by_broker;
  double messages_per_second_max = 0, bytes_per_second_max = 0;  // of the busiest second
  // Fairness: Jain's index (1: all alike) over tenants that ask for the same kind of thing; the kind with the least.
  double fairness = 1;
  double first_token_ratio = 1;  // of their mean times to the first token, the longest by the shortest
  // Head of line: answers with little to compute, by whether a long prompt was in work when they came.
  value_spread short_alone_ms, short_after_long_ms;
  // Herds: answers that one worker was given within 100 ms.
  std::uint32_t herd_max = 0;
  double herd_mean = 0;  // of workers that were given some
};

/// Runs the pool in virtual time: Redline's placement, run_queue, batch builder and cost model as they are, and
/// sessions that do what actors/serving/session does in rounds of propose, verify and commit. The same options and
/// curve give the same result.
result<fleet_result> simulate_fleet(const fleet_options& options, const pass_curve& curve);

}  // namespace redline::studies
