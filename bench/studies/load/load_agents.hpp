#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/studies/load/load_plan.hpp"
#include "bench/studies/load/load_report.hpp"
#include "transport/zmq/zmq_bridge.hpp"
#include "transport/zmq/zmq_broker.hpp"

namespace redline::studies {

/// A level by a method, as all agents together run it.
struct load_job {
  std::string server;
  std::string api_key;
  std::string edits;  // JSONL
  std::uint64_t edit_bytes_max = 0;
  std::string tenant_keys;          // lines TENANT:KEY
  std::string trace;                // JSONL, with a level that is a trace
  std::size_t part = 0, parts = 1;  // which of its sessions
  load_level level;
  load_mix mix;
  std::string method;
  std::uint64_t count = 0;  // requests
  std::uint64_t seed = 1;
};

/// The part of a job that the i-th of so many agents runs: its share of the clients or of the rate, and of the
/// requests, with a seed of its own. Without clients or requests: nothing.
[[nodiscard]] load_job share_of(const load_job& job, std::size_t i, std::size_t agents);

/// Processes elsewhere that send a level's requests, each a share, begun at the same moment. They dial in.
class load_agents {
 public:
  struct options {
    transport::broker_options listen;
    std::uint32_t count = 1;
    double patience_seconds = 60;  // until all have come
  };
  static result<std::unique_ptr<load_agents>> gather(const options& how);
  ~load_agents();

  /// What all of them recorded, by this machine's clock and under the whole level's name. Fails, by name, when an agent
  /// cannot do its share or is lost.
  result<load_record> run(const load_job& job);
  [[nodiscard]] std::vector<std::string> endpoints() const;

 private:
  struct state;
  explicit load_agents(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

/// Joins a coordinator and does what it says until it is gone. Returns an exit code.
int run_load_agent(const transport::bridge_options& join);

}  // namespace redline::studies
