#pragma once

#include <cstdint>
#include <string>

#include "bench/studies/common/names.hpp"

namespace redline::studies {

struct broker_study_options {
  std::uint32_t gateways = 2;
  std::uint32_t workers = 2;
  std::uint32_t bytes = 600;     // of a message's body: a round of a verify_run with its answer is about twice that
  std::uint32_t in_flight = 64;  // questions of a gateway that wait for their answers
  double seconds = 3;
  std::string json;
};

/// Messages through a broker in a process of its own: how many a second and what each takes of its processor, and what
/// a question and its answer take with nothing else on the way. Returns an exit code.
int run_broker_study(const broker_study_options& options);

}  // namespace redline::studies
