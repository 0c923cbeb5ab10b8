#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/cli/flags/model_flags.hpp"
#include "bench/studies/common/names.hpp"

namespace redline::studies {

/// The flags are in bench/studies/commands.cpp. Prints tables and returns the exit code. `json` is a file for the
/// figures; "-" means standard output, and empty means none.
struct evict_options {
  model_flags models;
  std::string text;
  std::uint32_t text_tokens = 8192;
  std::uint32_t window = 1024;
  std::uint32_t n_keep = 4;
  std::uint32_t tokens = 256;
  std::vector<std::uint32_t> n_discard{1, 16, 64};
  std::uint32_t reevaluations_max = 4;
  std::string json;
};
int run_evict(const evict_options& options);

}  // namespace redline::studies
