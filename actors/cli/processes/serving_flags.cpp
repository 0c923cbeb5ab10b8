#include "actors/cli/processes/serving_flags.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "actors/cli/processes/key_files.hpp"
#include "actors/http/gateway.hpp"
#include "actors/http/studio/studio_files.hpp"
#include "actors/node/engine.hpp"
#include "runtime/base/tenant_share.hpp"
#include "scheduler/policy.hpp"
#include "transport/http_front.hpp"

namespace redline::actors::cli {
namespace {

std::string name_of(prefix_sharing who) { return std::string(prefix_sharing_names[static_cast<std::size_t>(who)]); }

prefix_sharing parse_prefix_sharing(std::string_view name) {
  const auto at = std::find(prefix_sharing_names.begin(), prefix_sharing_names.end(), name);
  return static_cast<prefix_sharing>(at - prefix_sharing_names.begin());
}

/// The default name of a model for clients: its file's name without folder and extension.
std::string stem(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  if (name.ends_with(".gguf")) name.resize(name.size() - 5);
  return name;
}

void add_bridge_flags(command c, bridge_flags& flags) {
  c.add("--keys", flags.keys_folder,
        "Folder made by 'redline keygen'; required for processes that communicate over TCP")
      .existing_folder()
      .group("Processes");
  c.add_flag("--insecure-plaintext", flags.insecure_plaintext,
             "Let processes communicate over TCP without keys: anyone on the network path can read and change messages")
      .group("Processes");
}

/// Collects options that differ from their defaults, to refuse them where they would have no effect.
class changed_options {
 public:
  template<class T>
  changed_options& compare(const char* name, const T& value, const T& usual) {
    if (value != usual) names_ += (names_.empty() ? "" : ", ") + std::string(name);
    return *this;
  }
  changed_options& compare(const scheduling_flags& f) {
    const scheduling_flags usual;
    return compare("--policy", f.policy, usual.policy)
        .compare("--prefix-sharing", f.prefix_sharing, usual.prefix_sharing)
        .compare("--rows-max", f.rows_max, usual.rows_max)
        .compare("--prompt-chunk-rows", f.prompt_chunk_rows, usual.prompt_chunk_rows)
        .compare("--step-ms", f.step_ms, usual.step_ms);
  }
  /// Fails if there are any. `where`: the circumstance and the remedy, after "no effect".
  [[nodiscard]] result<void> refuse(const std::string& where) const {
    if (names_.empty()) return {};
    return failure{errc::invalid_argument, names_ + ": has no effect " + where};
  }

 private:
  std::string names_;
};

result<void> refuse_idle_options(const serve_flags& f, const engine_roles& roles) {
  const model_flags usual;
  if (!roles.target) {
    REDLINE_TRY(changed_options()
                    .compare(f.scheduling)
                    .compare("--draft-length", f.models.draft_length, usual.draft_length)
                    .refuse("with --remote target, because the remote process schedules; give it to 'redline worker "
                            "--role target'"));
  }
  if (!roles.draft) {
    REDLINE_TRY(changed_options()
                    .compare("--draft", f.models.draft, usual.draft)
                    .compare("--draft-context", f.models.draft_context, usual.draft_context)
                    .refuse("with --remote draft, because the remote process runs the draft model; give it to "
                            "'redline worker --role draft'"));
  }
  if (!roles.target && (!roles.draft || f.models.draft.empty())) {
    REDLINE_TRY(changed_options()
                    .compare("--numerics", f.models.numerics, usual.numerics)
                    .compare("--kv", f.models.kv, usual.kv)
                    .compare("--kv-mib", f.models.kv_mib, usual.kv_mib)
                    .refuse("in a process that runs no model; give it to the workers"));
  }
  if (f.bridge.empty()) {
    REDLINE_TRY(changed_options()
                    .compare("--keys", f.peers.keys_folder, std::string())
                    .compare("--insecure-plaintext", f.peers.insecure_plaintext && f.kv_events.empty(), false)
                    .compare("--pool-patience", f.pool_patience, serve_flags().pool_patience)
                    .refuse("without --bridge, the endpoint to which workers connect"));
  }
  return {};
}

result<void> refuse_idle_options(const worker_flags& f) {
  const model_flags usual;
  if (f.role == "node") {
    if (!f.models.draft.empty()) return {};
    return failure{errc::invalid_argument, "--role node requires --draft; use --role target to run no draft model"};
  }
  REDLINE_TRY(changed_options()
                  .compare("--draft", f.models.draft, usual.draft)
                  .refuse("with --role " + f.role + "; use --role node to run both models"));
  if (f.role == "target") {
    return changed_options()
        .compare("--draft-context", f.models.draft_context, usual.draft_context)
        .refuse("with --role target; give it to 'redline worker --role draft'");
  }
  return changed_options()
      .compare(f.scheduling)
      .compare("--waiting-max", f.scheduling.waiting_max, scheduling_flags().waiting_max)
      .compare("--draft-length", f.models.draft_length, usual.draft_length)
      .compare("--context", f.models.context, usual.context)
      .compare("--chat-template", f.models.chat_template, usual.chat_template)
      .refuse("with --role draft; give it to 'redline worker --role target'");
}

}  // namespace

scheduling_flags::scheduling_flags() {
  const scheduler_options usual;
  policy = usual.policy;
  prefix_sharing = name_of(usual.sharing);
  running_max = usual.limits.running_max;
  waiting_max = usual.limits.waiting_max;
  rows_max = usual.budget.rows_max;
  prompt_chunk_rows = usual.budget.prompt_chunk_rows_max;
  step_ms = static_cast<std::uint32_t>(usual.budget.time_max.count() / 1000);
}

void add_scheduling_flags(command c, scheduling_flags& flags) {
  std::string order = "Order in which requests are computed: ";
  for (const auto& p : scheduler::policies()) {
    order +=
        (p.name == scheduler::policies().front().name ? "" : "; ") + std::string(p.name) + ": " + std::string(p.says);
  }
  c.add("--policy", flags.policy, order).one_of(scheduler::policy_names()).group("Scheduling");
  c.add("--prefix-sharing", flags.prefix_sharing,
        "Share the KV of common prompt prefixes: off, within a tenant, or among all tenants, which can then infer from "
        "the time to the first token what others asked")
      .one_of({prefix_sharing_names.begin(), prefix_sharing_names.end()})
      .group("Scheduling");
  c.add("--running-max", flags.running_max, "Maximum number of answers computed at once")
      .range(1, 4096)
      .group("Scheduling");
  c.add("--waiting-max", flags.waiting_max,
        "Maximum number of answers waiting to be computed; further requests get 429")
      .range(0, 65536)
      .group("Scheduling");
  c.add("--rows-max", flags.rows_max, "Maximum number of tokens computed in one pass of the model")
      .range(1, 8192)
      .group("Scheduling");
  c.add("--prompt-chunk-rows", flags.prompt_chunk_rows, "Maximum number of tokens of one prompt computed in one pass")
      .range(1, 8192)
      .group("Scheduling");
  c.add("--step-ms", flags.step_ms, "Maximum predicted duration of one pass, in milliseconds")
      .range(1, 60000)
      .group("Scheduling");
}

scheduler_options to_scheduler_options(const scheduling_flags& flags) {
  scheduler_options options;
  options.policy = flags.policy;
  options.sharing = parse_prefix_sharing(flags.prefix_sharing);
  options.limits.running_max = flags.running_max;
  options.limits.waiting_max = flags.waiting_max;
  options.budget.rows_max = flags.rows_max;
  options.budget.prompt_chunk_rows_max = flags.prompt_chunk_rows;
  options.budget.time_max = microseconds{std::int64_t{flags.step_ms} * 1000};
  return options;
}

serve_flags::serve_flags()
    : answer_timeout(
          std::chrono::duration_cast<std::chrono::seconds>(transport::http_front::options{}.answer_timeout).count()),
      connections_max(transport::http_front::options{}.connections_max),
      live_sessions_max(edit_limits{}.sessions_max),
      requests_mib(sizes::request_memory_bytes_max >> 20),
      live_mib(edit_limits{}.bytes_max >> 20),
      live_idle_seconds(edit_limits{}.idle_seconds_max) {}

namespace {

/// Adds the flags that `serve` and `gateway` share.
void add_http_flags(command c, serve_flags& flags) {
  add_method_flags(c, flags.method);
  add_eviction_flags(c, flags.eviction);
  c.add("-l,--listen", flags.listen, "Listen on HOST:PORT; port 0 chooses a free one").group("HTTP");
  c.add("--port-file", flags.port_file, "Write the number of the bound port to this file").any_file().group("HTTP");
  c.add("--api-key", flags.api_keys, "Accept this key (repeatable): KEY or TENANT:KEY").group("HTTP");
  c.add("--api-key-file", flags.api_key_file, "Accept the keys in this file, one per line")
      .existing_file()
      .group("HTTP");
  c.add_flag("--insecure", flags.insecure, "Without keys, serve every client that can reach the address").group("HTTP");
  c.add(
       "--allowed-hosts", flags.allowed_hosts,
       "Without keys, host names in addition to localhost that requests may use, and from which browser pages may send "
       "requests")
      .separator(',')
      .group("HTTP");
  c.add("--cors-origin", flags.cors_origins,
        "Origins, such as https://example.org, whose pages may use the server from a browser; with API keys, * allows "
        "all")
      .separator(',')
      .group("HTTP");
  c.add_flag("--metrics-open", flags.metrics_open, "With keys, serve /metrics without one").group("HTTP");
  c.add_flag("--no-ui", flags.no_ui, "Do not serve the studio, the web page at /").group("HTTP");
  c.add_flag("--accept-any-model", flags.accept_any_model, "Answer requests whatever model they name").group("HTTP");
  c.add("--compat", flags.compat, "Also support routers made for another server; vllm adds its metrics and endpoints")
      .one_of({"vllm"})
      .group("HTTP");
  c.add("--shutdown-timeout", flags.shutdown_timeout, "Seconds that running requests have to finish after SIGTERM")
      .range(0.0, 86400.0)
      .group("HTTP");
  c.add("--answer-timeout", flags.answer_timeout,
        "Seconds without progress of an answer after which its request fails with 504")
      .range(1, 604800)
      .group("HTTP");
  c.add("--connections-max", flags.connections_max,
        "Maximum number of connections; when all are in use, a new one replaces the one idle longest")
      .range(1, 1000000)
      .group("HTTP");
  c.add("--connections-per-address", flags.connections_per_address,
        "Maximum number of connections of one remote address; 0 means a quarter of all; loopback is not limited")
      .range(0, 1000000)
      .group("HTTP");
  c.add("--requests-mib", flags.requests_mib,
        "Maximum total MiB of the bodies, prompts and answers of requests in progress; with API keys, a tenant may use "
        "a "
        "quarter; further requests get 429 or 503")
      .range(256, 1 << 20)
      .group("HTTP");
  c.add("--live-sessions-max", flags.live_sessions_max,
        "Maximum number of edit sessions; with API keys, a tenant may have a quarter")
      .range(0, 65536)
      .group("HTTP");
  c.add(
       "--live-mib", flags.live_mib,
       "Maximum total MiB of the files of edit sessions, their tokens and their waiting calls; with API keys, a tenant "
       "may use a quarter; further calls get 429")
      .range(1, 1 << 20)
      .group("HTTP");
  c.add("--live-idle-seconds", flags.live_idle_seconds, "Seconds without a call after which an edit session ends")
      .range(1, 604800)
      .group("HTTP");
  c.add("--pool-patience", flags.pool_patience,
        "Seconds that an answer waits for a worker if none is available; then its request fails with 503")
      .range(0.0, 86400.0)
      .group("Processes");
  add_bridge_flags(c, flags.peers);
  add_tracing_flags(c, flags.tracing);
  add_sampling_flag(c, flags.tracing);
}

/// Sets the destination and the share of traces, for a process where traces begin.
result<void> set_traces(const tracing_flags& flags, const std::string& service, engine_options& out) {
  REDLINE_TRY_ASSIGN(out.traces, to_otlp_options(flags, service, environment_variable));
  out.trace_ratio = flags.ratio;
  return {};
}

microseconds to_microseconds(double seconds) { return microseconds{static_cast<std::int64_t>(seconds * 1e6)}; }

constexpr const char* alias_help =
    "Another name of the model in addition to the file's, with sampling settings for requests that use the name and "
    "do not set them: NAME or NAME:temperature=0,top_p=0.9 (repeatable; lists show the first)";

/// Lists show the first given name; if it has settings, it is also an alias with them. The file's name always finds the
/// model.
result<void> set_names(const std::vector<std::string>& given, const std::string& of_file, engine_options& out) {
  out.model_name = of_file;
  for (const auto& text : given) {
    const auto named = sampling::parse_named_sampling(text);
    if (!named) return failure{errc::invalid_argument, "--alias: " + named.error().context};
    if (&text == &given.front()) out.model_name = named->name;
    if (text != out.model_name) out.aliases.push_back(text);
  }
  if (out.model_name != of_file) out.aliases.push_back(of_file);
  return {};
}

void add_event_flags(command c, serve_flags& flags) {
  c.add("--kv-events", flags.kv_events,
        "Endpoint where routers made for vLLM subscribe to the contents of the prefix cache: ipc://PATH, or with "
        "--insecure-plaintext tcp://HOST:PORT. Every client that connects can read the prompts")
      .group("HTTP");
  c.add("--kv-events-replay", flags.kv_events_replay, "Endpoint where routers request events that they missed")
      .group("HTTP");
  c.add("--kv-events-topic", flags.kv_events_topic,
        "Topic of the events; default: kv@LISTEN@MODEL, from --listen and the model's name")
      .group("HTTP");
}

result<std::optional<transport::publisher_options>> to_publisher_options(const serve_flags& flags,
                                                                         const engine_roles& roles,
                                                                         const std::string& model_name) {
  if (flags.kv_events.empty()) {
    if (flags.kv_events_replay.empty() && flags.kv_events_topic.empty()) return {std::nullopt};
    return failure{errc::invalid_argument, "--kv-events-replay and --kv-events-topic require --kv-events"};
  }
  if (!roles.target) {
    return failure{errc::invalid_argument,
                   "--kv-events has no effect with --remote target, because the prefix cache is in the process of the "
                   "target model"};
  }
  for (const auto& endpoint : {flags.kv_events, flags.kv_events_replay}) {
    if (!endpoint.starts_with("tcp://") || flags.peers.insecure_plaintext) continue;
    return failure{errc::invalid_argument, endpoint +
                                               ": events contain the tokens of prompts and cannot be encrypted: "
                                               "expected ipc://PATH or --insecure-plaintext"};
  }
  return {transport::publisher_options{
      .endpoint = flags.kv_events,
      .replay_endpoint = flags.kv_events_replay,
      .topic = flags.kv_events_topic.empty() ? "kv@" + flags.listen + "@" + model_name : flags.kv_events_topic,
      .insecure_plaintext = flags.peers.insecure_plaintext}};
}

}  // namespace

void add_serve_flags(command c, serve_flags& flags) {
  add_model_flags(c, flags.models);
  add_chat_template_flag(c, flags.models.chat_template);
  add_http_flags(c, flags);
  c.add("--alias", flags.aliases, alias_help).group("HTTP");
  add_scheduling_flags(c, flags.scheduling);
  c.add("--remote", flags.remote, "Models that other processes run: target, draft or both; requires --bridge")
      .one_of({"target", "draft"})
      .separator(',')
      .group("Processes");
  c.add("--script", flags.script, "For tests: answers to give instead of the model's own; see tests/server")
      .existing_file()
      .group("");
  c.add("--port-descriptor", flags.port_descriptor,
        "For parent processes: write the bound port to this inherited descriptor, then whether requests are served or "
        "why "
        "not, and close it")
      .range(3, 1 << 20)
      .group("");
  add_event_flags(c, flags);
  c.add("--bridge", flags.bridge, "Endpoint to which workers connect to share the work: ipc://PATH or tcp://HOST:PORT")
      .group("Processes");
}

void add_gateway_flags(command c, serve_flags& flags) {
  c.add("--join", flags.joins, "A broker's endpoint (repeatable; all of them are joined)").require().group("Processes");
  add_http_flags(c, flags);
  c.add("--answers-max", flags.answers_max, "Maximum number of answers in progress; further requests get 429")
      .range(1, 1 << 20)
      .group("HTTP");
}

result<engine_options> to_gateway_options(const serve_flags& flags) {
  engine_options options;
  options.roles = {.front = true, .target = false, .draft = false};
  options.bridge.joins = flags.joins;
  options.bridge.insecure_plaintext = flags.peers.insecure_plaintext;
  options.pool_patience = to_microseconds(flags.pool_patience);
  REDLINE_TRY(set_traces(flags.tracing, "redline-gateway", options));
  if (!flags.peers.keys_folder.empty()) {
    REDLINE_TRY(load_peer_keys(flags.peers.keys_folder, process_role::gateway, options.bridge));
  }
  return options;
}

result<engine_options> to_engine_options(const serve_flags& flags) {
  REDLINE_TRY_ASSIGN(engine_options options, to_engine_options(flags.models));
  options.scheduling = to_scheduler_options(flags.scheduling);
  for (const auto& role : flags.remote) (role == "target" ? options.roles.target : options.roles.draft) = false;
  if (!flags.remote.empty() && flags.bridge.empty()) {
    return failure{errc::invalid_argument, "--remote requires --bridge, the endpoint to which its workers connect"};
  }
  REDLINE_TRY(refuse_idle_options(flags, options.roles));
  REDLINE_TRY(set_names(flags.aliases, stem(flags.models.model), options));
  REDLINE_TRY(set_traces(flags.tracing, "redline", options));
  REDLINE_TRY_ASSIGN(options.cache_events, to_publisher_options(flags, options.roles, options.model_name));
  options.pool_patience = to_microseconds(flags.pool_patience);
  if (!flags.bridge.empty()) {
    REDLINE_TRY_ASSIGN(options.broker, to_broker_options({.listens = {flags.bridge}, .peers = flags.peers}));
  }
  return options;
}

void set_gateway_limits(const serve_flags& flags, gateway_services& services) {
  services.accept_any_model = flags.accept_any_model;
  services.metrics_are_open = flags.metrics_open;
  services.shows_studio = !flags.no_ui && find_studio_file("index.html");
  services.speaks_vllm = flags.compat == "vllm";
  services.eviction_defaults = to_eviction_options(flags.eviction);
  services.sessions_max =
      flags.joins.empty() ? flags.scheduling.running_max + flags.scheduling.waiting_max : flags.answers_max;
  services.running_max = flags.joins.empty() ? flags.scheduling.running_max : flags.answers_max;
  // Without keys, all clients are one tenant.
  const auto of_one = [&](std::size_t total) { return services.wants_key() ? part_of_one(total) : total; };
  services.request_limits.bytes_max = flags.requests_mib << 20;
  services.request_limits.tenant_bytes_max = of_one(services.request_limits.bytes_max);
  services.editing.sessions_max = flags.live_sessions_max;
  services.editing.tenant_sessions_max = of_one(services.editing.sessions_max);
  services.editing.bytes_max = flags.live_mib << 20;
  services.editing.tenant_bytes_max = of_one(services.editing.bytes_max);
  services.editing.idle_seconds_max = flags.live_idle_seconds;
}

void add_worker_flags(command c, worker_flags& flags) {
  add_model_file_flag(c, flags.models);
  add_memory_flags(c, flags.models);
  add_draft_file_flag(c, flags.models);
  c.add("--role", flags.role, "What this worker runs: the target model, the draft model, or both as a node")
      .require()
      .one_of({"target", "draft", "node"})
      .group("Processes");
  c.add("--name", flags.label,
        "Name of this worker in the status, 'redline top' and the logs of gateways: up to 64 letters, digits and '.', "
        "'_', '-', ':'; default: HOST:PID")
      .group("Processes");
  c.add("--join", flags.joins,
        "The endpoint of a broker or of 'redline serve --bridge' (repeatable; all of them are joined)")
      .require()
      .group("Processes");
  c.add("--alias", flags.aliases, alias_help).group("Processes");
  c.add("--shutdown-timeout", flags.shutdown_timeout,
        "Seconds that gateways have after SIGTERM to move their answers to other workers")
      .range(0.0, 86400.0)
      .group("Processes");
  add_bridge_flags(c, flags.peers);
  add_tracing_flags(c, flags.tracing);
  add_draft_context_flag(c, flags.models);
  add_draft_length_flag(c, flags.models);
  add_chat_template_flag(c, flags.models.chat_template);
  add_scheduling_flags(c, flags.scheduling);
}

result<engine_options> to_engine_options(const worker_flags& flags) {
  REDLINE_TRY(refuse_idle_options(flags));
  REDLINE_TRY_ASSIGN(engine_options options, to_engine_options(flags.models));
  options.roles = {.front = false, .target = flags.role != "draft", .draft = flags.role != "target"};
  if (!flags.label.empty() && shown_label(flags.label) != flags.label) {
    return failure{errc::invalid_argument,
                   "--name: expected up to 64 letters, digits and '.', '_', '-', ':', found '" + flags.label + "'"};
  }
  options.label = flags.label;
  if (flags.role == "draft") options.draft_path = std::exchange(options.target_path, {});
  REDLINE_TRY(set_names(flags.aliases, stem(flags.models.model), options));
  options.scheduling = to_scheduler_options(flags.scheduling);
  REDLINE_TRY_ASSIGN(options.traces, to_otlp_options(flags.tracing, "redline-worker", environment_variable));
  options.bridge.joins = flags.joins;
  options.bridge.insecure_plaintext = flags.peers.insecure_plaintext;
  if (!flags.peers.keys_folder.empty()) {
    REDLINE_TRY(load_peer_keys(flags.peers.keys_folder, process_role::worker, options.bridge));
  }
  return options;
}

void add_broker_flags(command c, broker_flags& flags) {
  c.add("--listen", flags.listens,
        "Endpoint to which gateways and workers connect: tcp://HOST:PORT or ipc://PATH (repeatable)")
      .require()
      .group("Processes");
  add_bridge_flags(c, flags.peers);
}

result<transport::broker_options> to_broker_options(const broker_flags& flags) {
  transport::broker_options options{.listens = flags.listens, .insecure_plaintext = flags.peers.insecure_plaintext};
  if (!flags.peers.keys_folder.empty()) REDLINE_TRY(load_broker_keys(flags.peers.keys_folder, options));
  return options;
}

result<listen_address> parse_listen_address(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos) {
    return failure{errc::invalid_argument, "--listen: expected HOST:PORT, found '" + text + "'"};
  }
  listen_address out{text.substr(0, colon), 0};
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data() + colon + 1, end, out.port);
  if (error != std::errc() || stopped != end) {
    return failure{errc::invalid_argument,
                   "--listen: expected a port from 0 to 65535, found '" + text.substr(colon + 1) + "'"};
  }
  if (out.host.empty()) out.host = "127.0.0.1";
  return out;
}

}  // namespace redline::actors::cli
