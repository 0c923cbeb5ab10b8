#pragma once

#include <cstdint>
#include <string>

#include "bench/studies/common/names.hpp"

namespace redline::studies {

struct broker_study_options {
  std::uint32_t gateways = 2;
  std::uint32_t workers = 2;
  std::uint32_t bytes = 600;  // size of a message's body; a round of a verify_run with its answer is about twice that
  std::uint32_t in_flight = 64;  // unanswered questions of each gateway
  double seconds = 3;
  std::string json;
};

/// Sends messages through a broker in a separate process. Measures how many pass per second, the broker's processor
/// time for each, and the round trip of a question and its answer with nothing else in flight. Returns an exit code.
int run_broker_study(const broker_study_options& options);

}  // namespace redline::studies
