#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/studies/common/names.hpp"
#include "bench/studies/load/load_plan.hpp"
#include "bench/studies/load/load_report.hpp"

namespace redline::studies {

/// The flags are in bench/studies/commands.cpp. Prints tables and returns the exit code. json: a file for the figures,
/// "-" for standard output, empty for none.
struct load_options {
  std::string server;
  std::string api_key;
  std::string model;
  std::string draft;
  std::string edits;
  std::vector<std::string> methods = {"auto", "regular"};
  std::vector<std::uint32_t> clients;
  std::vector<double> rates;
  load_mix mix;
  std::size_t edit_bytes_max = 0;
  std::size_t requests = 0;
  std::uint32_t repeats = 1;
  std::uint64_t seed = 1;
  latency_target target;
  std::vector<std::string> merge;
  std::string json;
};
int run_load(const load_options& options);

}  // namespace redline::studies
