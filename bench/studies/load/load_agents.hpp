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

/// A level run by a method, for all agents together.
struct load_job {
  std::string server;
  std::string api_key;
  std::string edits;  // JSONL
  std::uint64_t edit_bytes_max = 0;
  std::string tenant_keys;          // lines TENANT:KEY
  std::string trace;                // JSONL, with a level that is a trace
  std::size_t part = 0, parts = 1;  // which part of the trace's sessions to send
  load_level level;
  load_mix mix;
  std::string method;
  std::uint64_t count = 0;  // number of requests
  std::uint64_t seed = 1;
};

/// The part of a job for the i-th of `agents` agents: its share of the clients or of the rate, and of the requests,
/// with its own seed. A job without clients or requests gives an empty share.
[[nodiscard]] load_job share_of(const load_job& job, std::size_t i, std::size_t agents);

/// Processes elsewhere that each send a share of a level's requests, starting at the same moment. They dial in.
class load_agents {
 public:
  struct options {
    transport::broker_options listen;
    std::uint32_t count = 1;
    double patience_seconds = 60;  // how long to wait for all of them
  };
  static result<std::unique_ptr<load_agents>> gather(const options& how);
  ~load_agents();

  /// Returns the recordings of all agents by this machine's clock and under the whole level's name. Fails, naming the
  /// agent, when one cannot do its share or is lost.
  result<load_record> run(const load_job& job);
  [[nodiscard]] std::vector<std::string> endpoints() const;

 private:
  struct state;
  explicit load_agents(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

/// Joins a coordinator and follows its instructions until it is gone. Returns an exit code.
int run_load_agent(const transport::bridge_options& join);

}  // namespace redline::studies
