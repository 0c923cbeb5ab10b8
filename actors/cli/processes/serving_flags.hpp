#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/cli/flags/generation_flags.hpp"
#include "actors/cli/flags/model_flags.hpp"
#include "actors/cli/processes/tracing_flags.hpp"
#include "transport/zmq/zmq_broker.hpp"

namespace redline::actors {
struct gateway_services;
struct scheduler_options;
}  // namespace redline::actors

namespace redline::actors::cli {

/// How requests share the target model. Flags of `serve`, and of `worker` for the process that runs the target. The
/// defaults are those of scheduler_options.
struct scheduling_flags {
  scheduling_flags();

  std::string policy;
  std::string prefix_sharing;
  std::uint32_t running_max, waiting_max, rows_max, prompt_chunk_rows, step_ms;
};
void add_scheduling_flags(command c, scheduling_flags& flags);
scheduler_options to_scheduler_options(const scheduling_flags& flags);

/// How processes of one deployment authenticate to each other.
struct bridge_flags {
  std::string keys_folder;
  bool insecure_plaintext = false;
};

struct serve_flags {
  serve_flags();

  model_flags models;
  method_flags method;
  eviction_flags eviction;
  scheduling_flags scheduling;
  std::string listen = "127.0.0.1:8080";
  std::string port_file;
  int port_descriptor = -1;  // inherited, see parent_pipe; -1 if there is none
  std::vector<std::string> api_keys;
  std::string api_key_file;
  bool insecure = false;
  std::vector<std::string> allowed_hosts;
  std::vector<std::string> cors_origins;
  bool metrics_open = false;
  bool no_ui = false;
  std::vector<std::string> aliases;  // lists show the first one
  bool accept_any_model = false;
  std::string compat;            // "vllm" or empty
  double shutdown_timeout = 30;  // seconds
  std::int64_t answer_timeout;   // seconds
  std::size_t connections_max;
  std::size_t connections_per_address = 0;  // 0: a quarter of connections_max
  std::uint64_t live_sessions_max;
  std::uint64_t requests_mib;
  std::uint64_t live_mib;
  std::int64_t live_idle_seconds;
  std::string script;     // predefined answers, for tests and measurements
  std::string kv_events;  // endpoints of publisher_options; empty disables events
  std::string kv_events_replay;
  std::string kv_events_topic;
  std::vector<std::string> remote;  // "target", "draft"
  std::string bridge;
  std::vector<std::string> joins;    // of a gateway: the brokers
  std::uint32_t answers_max = 1024;  // of a gateway: answers in progress at once
  double pool_patience = 20;         // seconds
  bridge_flags peers;
  tracing_flags tracing;
};
void add_serve_flags(command c, serve_flags& flags);
/// Adds the flags that concern clients, and those for joining brokers.
void add_gateway_flags(command c, serve_flags& flags);
/// Refuses options that would have no effect, and reads the key files.
result<engine_options> to_engine_options(const serve_flags& flags);
result<engine_options> to_gateway_options(const serve_flags& flags);
/// The gateway's limits.
void set_gateway_limits(const serve_flags& flags, gateway_services& services);

struct worker_flags {
  model_flags models;
  scheduling_flags scheduling;
  std::string role;                  // "target", "draft" or "node", which is both
  std::string label;                 // empty means host and process id
  std::vector<std::string> aliases;  // lists show the first one
  std::vector<std::string> joins;
  double shutdown_timeout = 30;  // seconds
  bridge_flags peers;
  tracing_flags tracing;
};
void add_worker_flags(command c, worker_flags& flags);
/// As for serve_flags.
result<engine_options> to_engine_options(const worker_flags& flags);

struct broker_flags {
  std::vector<std::string> listens;
  bridge_flags peers;
};
void add_broker_flags(command c, broker_flags& flags);
/// Reads the key files.
result<transport::broker_options> to_broker_options(const broker_flags& flags);

struct listen_address {
  std::string host;
  std::uint16_t port = 0;
};
/// "HOST:PORT". An empty host means loopback.
result<listen_address> parse_listen_address(const std::string& text);

}  // namespace redline::actors::cli
