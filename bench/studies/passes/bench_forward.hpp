#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/studies/common/names.hpp"

namespace redline::studies {

/// The flags are in bench/studies/commands.cpp. Prints tables and returns the exit code. `json` is a file for the
/// figures; "-" means standard output, and empty means none.
struct forward_options {
  std::string model;
  std::vector<std::uint32_t> rows = {1, 2, 4, 8, 16, 32, 64, 128, 512};
  std::vector<std::uint32_t> contexts = {0};
  std::uint32_t threads = 0;
  std::string numerics = "auto";
  std::string kv = "f16";
  std::uint32_t samples = 5;
  double seconds = 1.0;
  bool last_only = false;
  std::uint32_t distinct_tokens = 0;
  bool profile = false;
  std::string json;
};
int run_forward(const forward_options& options);

}  // namespace redline::studies
