#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/studies/common/names.hpp"
#include "bench/studies/load/load_plan.hpp"
#include "bench/studies/load/load_report.hpp"

namespace redline::studies {

/// The flags are in bench/studies/commands.cpp. Prints tables and returns the exit code. `json` is a file for the
/// figures; "-" means standard output, and empty means none.
struct load_options {
  std::string server;
  std::string api_key;
  std::string model;
  std::string chat_template;
  std::string draft;
  std::string edits;
  std::vector<std::string> methods = {"auto", "regular"};
  std::vector<std::uint32_t> clients;
  std::vector<double> rates;
  load_mix mix;
  std::string trace;  // a file for parse_trace, in place of levels
  double trace_speed = 1;
  std::string tenant_keys;  // a file with lines TENANT:KEY
  std::size_t edit_bytes_max = 0;
  bool replay = false;  // the server replays known answers but computes every pass
  std::size_t requests = 0;
  std::uint32_t repeats = 1;
  std::uint64_t seed = 1;
  latency_target target;
  std::vector<std::string> merge;
  std::uint32_t agents = 0;   // processes elsewhere that send the requests; 0 means this process does
  std::string agents_listen;  // the endpoint that agents dial
  bool insecure_plaintext = false;
  double warm_up = 0;     // seconds at the start of each level that do not count
  double knee_share = 0;  // finds the highest rate with this share within the target; 0 disables the search
  std::string json;
};
struct load_agent_options {
  std::string join;
  bool insecure_plaintext = false;
};
int run_load(const load_options& options);
int run_load_agent(const load_agent_options& options);

}  // namespace redline::studies
