#pragma once

#include <cstdint>
#include <string>

#include "actors/cli/flags/model_flags.hpp"
#include "bench/studies/common/names.hpp"

namespace redline::studies {

/// The flags are in bench/studies/commands.cpp. Prints tables and returns the exit code. `json` is a file for the
/// figures; "-" means standard output, and empty means none.
struct prefix_options {
  model_flags models;
  std::uint32_t prefix_tokens = 2048;
  std::uint32_t own_tokens = 32;
  std::uint32_t answer_tokens = 8;
  std::uint32_t repeat = 5;
  std::string json;
};
int run_prefix(const prefix_options& options);

}  // namespace redline::studies
