#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/cli/flags/model_flags.hpp"
#include "actors/cli/stopwatch.hpp"
#include "bench/studies/common/names.hpp"

namespace redline::studies {

/// The flags are in bench/studies/commands.cpp. Prints tables and returns the exit code. `json` is a file for the
/// figures; "-" means standard output, and empty means none.
struct copy_study_options {
  model_flags models;
  std::vector<std::string> edits;
  std::uint32_t context_tokens = 1024;
  std::vector<std::uint32_t> runs{1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
  std::vector<std::uint32_t> spans_min{2, 4, 8, 16, 32};
  std::vector<std::uint32_t> users{1, 8};
  std::uint32_t executed = 4;
  std::uint32_t answer_tokens_max = 700;
  std::uint32_t repeats = 1;
  std::uint32_t perturbed = 20;
  std::uint32_t trials = 5;
  std::uint32_t self_written = 0;
  double seconds = 0.3;
  clock_kind clock = clock_kind::wall;
  std::string json;
};
int run_copy(copy_study_options options);

}  // namespace redline::studies
