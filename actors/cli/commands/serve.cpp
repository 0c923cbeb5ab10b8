#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <future>
#include <iostream>
#include <thread>

#include "actors/cli/command.hpp"
#include "actors/cli/commands/key_files.hpp"
#include "actors/http/gateway.hpp"
#include "actors/http/http_gate.hpp"
#include "actors/serving/draft_model.hpp"
#include "runtime/base/hex.hpp"
#include "runtime/base/version.hpp"

namespace redline::actors::cli {
namespace {

struct flags {
  model_flags models;
  method_flags method;
  std::string listen = "127.0.0.1:8080";
  std::string port_file;
  std::vector<std::string> api_keys;
  std::string api_key_file;
  bool insecure = false;
  std::string alias;
  bool accept_any_model = false;
  std::string policy = "fifo";
  std::string prefix_sharing = "tenant";
  eviction_flags eviction;
  std::uint32_t running_max = 64;
  std::uint32_t waiting_max = 256;
  std::uint32_t rows_max = 512;
  std::uint32_t chunk_rows = 256;
  std::uint32_t step_ms = 200;
  double shutdown_timeout = 30;
  std::size_t live_max = edit_limits{}.sessions_max;
  std::int64_t live_idle_s = edit_limits{}.idle_seconds_max;
  std::string bridge;
  std::vector<std::string> remote;
  std::string keys_dir;
  bool insecure_plaintext = false;
};

struct host_port {
  std::string host;
  std::uint16_t port = 0;
};

result<host_port> parse_listen(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos)
    return failure{errc::invalid_argument, "wanted --listen HOST:PORT, found '" + text + "'"};
  host_port out{text.substr(0, colon), 0};
  const std::string port = text.substr(colon + 1);
  unsigned long n = 0;
  try {
    std::size_t used = 0;
    n = std::stoul(port, &used);
    if (used != port.size() || n > 65535) throw std::out_of_range(port);
  } catch (const std::exception&) {
    return failure{errc::invalid_argument, "wanted a port from 0 to 65535 in --listen, found '" + port + "'"};
  }
  out.port = static_cast<std::uint16_t>(n);
  if (out.host.empty()) out.host = "127.0.0.1";
  return out;
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host == "[::1]" || host.starts_with("127.");
}

std::string stem_of(const std::string& path) {
  const auto slash = path.rfind('/');
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (name.ends_with(".gguf")) name.resize(name.size() - 5);
  return name;
}

CLI::Option* add_prefix_sharing_flag(CLI::App& app, std::string& name) {
  return app
      .add_option(
          "--prefix-sharing", name,
          "Beginnings that prompts have in common are computed once: for nobody, for each tenant, or for all, who can "
          "then tell from the time to the first token what others asked")
      ->check(CLI::IsMember(prefix_sharing_names))
      ->capture_default_str();
}

prefix_sharing prefix_sharing_of(std::string_view name) {
  const auto at = std::find(prefix_sharing_names.begin(), prefix_sharing_names.end(), name);
  return static_cast<prefix_sharing>(at - prefix_sharing_names.begin());
}

result<std::shared_ptr<gateway_services>> services_of(const flags& f, const host_port& where, const engine& e,
                                                      std::function<void()> on_drained) {
  REDLINE_TRY_ASSIGN(auto prompts, prompt_builder::make(e.tokenizer()));
  REDLINE_TRY_ASSIGN(auto keys, api_keys::load(f.api_keys, f.api_key_file));
  if (keys.empty() && !is_loopback(where.host) && !f.insecure) {
    return failure{errc::invalid_argument, "wanted --api-key or --api-key-file to listen on " + where.host +
                                               ", which others can reach; --insecure serves everybody"};
  }
  REDLINE_TRY_ASSIGN(const auto defaults, draft_options_of(f.method, e.drafters().size() > 1));
  auto s = std::make_shared<gateway_services>();
  s->answers = std::make_shared<answer_factory>(answer_factory::parts{
      .tokenizer = e.tokenizer(),
      .token_trie = e.token_trie(),
      .context_max = e.context_max(),
      .partners_for = [&e](draft::method how, actor::address client) { return e.partners_for(how, client); }});
  s->prompts = std::make_shared<prompt_builder>(std::move(prompts));
  s->model_name = f.alias.empty() ? stem_of(f.models.model) : f.alias;
  s->accept_any_model = f.accept_any_model;
  s->fingerprint = "redline-" + version() + "-" + to_hex(e.tokenizer()->digest() ^ e.target_file_bytes()).substr(8);
  s->draft_defaults = defaults;
  s->eviction_defaults = eviction_options_of(f.eviction);
  s->scheduler = e.scheduler_ref();
  s->http = actor::make_address(topology::front_process, topology::http_worker, topology::http);
  s->keys = std::move(keys);
  s->sessions_max = f.running_max + f.waiting_max;
  s->editing.sessions_max = f.live_max;
  s->editing.tenant_sessions_max = s->keys.empty() ? f.live_max : std::max<std::size_t>(1, f.live_max / 4);
  s->editing.idle_seconds_max = f.live_idle_s;
  s->on_drained = std::move(on_drained);
  return s;
}

/// Waits for SIGTERM, SIGINT or a fatal failure; all threads started later inherit the blocked mask.
class signal_wait {
 public:
  signal_wait() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    signal(SIGPIPE, SIG_IGN);
  }
  /// The signal, or 0 after `at_most`.
  int wait(std::chrono::milliseconds at_most) {
    const timespec t{at_most.count() / 1000, at_most.count() % 1000 * 1'000'000};
    const int got = sigtimedwait(&set_, nullptr, &t);
    return got > 0 ? got : 0;
  }

 private:
  sigset_t set_{};
};

result<void> apply_roles(const flags& f, engine_options& options) {
  for (const auto& r : f.remote) {
    (r == "target" ? options.roles.target_is_remote : options.roles.draft_is_remote) = true;
  }
  options.roles.target = !options.roles.target_is_remote;
  options.roles.draft = !options.roles.draft_is_remote;
  if (f.remote.empty() != f.bridge.empty()) {
    return failure{errc::invalid_argument,
                   "--remote and --bridge belong together: who is elsewhere, and where they dial"};
  }
  options.bridge.listen = f.bridge;
  options.bridge.insecure_plaintext = f.insecure_plaintext;
  if (!f.keys_dir.empty()) REDLINE_TRY(load_server_keys(f.keys_dir, options.bridge));
  return {};
}

int run(const flags& f) {
  signal_wait signals;
  const auto where = parse_listen(f.listen);
  if (!where) return report(where.error());
  auto options = engine_options_of(f.models);
  if (!options) return report(options.error());
  if (auto applied = apply_roles(f, *options); !applied) return report(applied.error());
  progress_line line;
  options->progress = [&](const std::string& what, std::uint64_t done, std::uint64_t all) {
    show_loading(line, what, done, all);
  };
  options->scheduling = {.limits = {.running_max = f.running_max, .waiting_max = f.waiting_max},
                         .budget = {.rows_max = f.rows_max,
                                    .prompt_chunk_rows_max = f.chunk_rows,
                                    .time_max = microseconds{std::int64_t{f.step_ms} * 1000}},
                         .policy = f.policy,
                         .sharing = prefix_sharing_of(f.prefix_sharing)};
  std::atomic<bool> fatal{false};
  options->on_fatal = [&fatal](const std::string&) { fatal = true; };
  auto e = engine::create(std::move(*options));
  if (!e) return report(e.error());

  std::promise<void> drained;
  auto is_drained = drained.get_future();
  const auto services = services_of(f, *where, **e, [&drained] { drained.set_value(); });
  if (!services) return report(services.error());
  const auto front =
      (*e)->io().add<gateway>(topology::gateway, "gateway", {8192, 8192},
                              [s = *services](actor::actor_context& c) { return std::make_unique<gateway>(c, s); });
  // The port answers before the models are loaded, so that health checks see "loading" and not "refused".
  transport::http_front::options http;
  http.address = where->host;
  http.port = where->port;
  auto gate = http_gate::start((*e)->fabric(), topology::http_worker, topology::http, http, front);
  if (!gate) return report(gate.error());
  if (!f.port_file.empty()) std::ofstream(f.port_file) << (*gate)->port() << "\n";
  if (auto started = (*e)->start(); !started) return report(started.error());
  line.clear();
  if (!f.bridge.empty()) std::cerr << "redline: waiting for workers at " << (*e)->fabric().bound_endpoint() << "\n";
  std::cerr << "redline: serving " << (*services)->model_name << " on http://" << where->host << ":" << (*gate)->port()
            << "\n";

  while (!fatal && signals.wait(std::chrono::milliseconds(200)) == 0) {
  }
  if (!fatal) {
    std::cerr << "redline: draining (a second signal ends at once)\n";
    (*e)->send(front.where, drain_gateway{});
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(f.shutdown_timeout);
    bool impatient = false;
    while (!impatient && std::chrono::steady_clock::now() < until &&
           is_drained.wait_for(std::chrono::milliseconds(0)) != std::future_status::ready) {
      impatient = signals.wait(std::chrono::milliseconds(50)) != 0;
    }
    (*e)->send(front.where, cancel_everything{});
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the last answers leave
  }
  (*gate)->stop();
  (*e)->stop();
  return fatal ? exit_failed : 0;
}

}  // namespace

void add_serve(CLI::App& app, int& exit_code) {
  auto f = std::make_shared<flags>();
  auto* c = app.add_subcommand("serve", "Serve a model over an OpenAI-compatible HTTP interface");
  add_model_flags(*c, f->models);
  add_method_flags(*c, f->method);
  add_eviction_flags(*c, f->eviction);
  c->add_option("-l,--listen", f->listen, "HOST:PORT; port 0 takes a free one")->capture_default_str()->group("HTTP");
  c->add_option("--port-file", f->port_file, "Write the port that was bound to this file")->group("HTTP");
  c->add_option("--api-key", f->api_keys, "Accept this key (repeatable): KEY or TENANT:KEY")->group("HTTP");
  c->add_option("--api-key-file", f->api_key_file, "Keys, one per line")->check(CLI::ExistingFile)->group("HTTP");
  c->add_flag("--insecure", f->insecure, "Serve everybody who can reach the address, without keys")->group("HTTP");
  c->add_option("--alias", f->alias, "Name of the model for clients; default: the file's name")->group("HTTP");
  c->add_flag("--accept-any-model", f->accept_any_model, "Answer whatever model a request names")->group("HTTP");
  c->add_option("--shutdown-timeout", f->shutdown_timeout, "Seconds that requests in work get after SIGTERM")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str()
      ->group("HTTP");
  c->add_option("--live-sessions-max", f->live_max,
                "Live sessions at once; with API keys a quarter of them for one tenant")
      ->check(CLI::Range(0, 65536))
      ->capture_default_str()
      ->group("HTTP");
  c->add_option("--live-idle-seconds", f->live_idle_s, "A live session ends when it was left alone for so long")
      ->check(CLI::Range(1, 604800))
      ->capture_default_str()
      ->group("HTTP");
  c->add_option("--policy", f->policy, "Who goes first")
      ->check(CLI::IsMember({"fifo", "fair_share"}))
      ->capture_default_str()
      ->group("Scheduling");
  add_prefix_sharing_flag(*c, f->prefix_sharing)->group("Scheduling");
  c->add_option("--running-max", f->running_max, "Answers computed in turn")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str()
      ->group("Scheduling");
  c->add_option("--waiting-max", f->waiting_max, "Answers that wait for a place; beyond it: 429")
      ->check(CLI::Range(0, 65536))
      ->capture_default_str()
      ->group("Scheduling");
  c->add_option("--rows-max", f->rows_max, "Rows of one forward pass")
      ->check(CLI::Range(1, 8192))
      ->capture_default_str()
      ->group("Scheduling");
  c->add_option("--prompt-chunk-rows", f->chunk_rows, "Rows of one prompt in one pass")
      ->check(CLI::Range(1, 8192))
      ->capture_default_str()
      ->group("Scheduling");
  c->add_option("--step-ms", f->step_ms, "Predicted milliseconds of one pass at most")
      ->check(CLI::Range(1, 60000))
      ->capture_default_str()
      ->group("Scheduling");
  c->add_option("--remote", f->remote, "Models in processes of their own: target, draft or both")
      ->check(CLI::IsMember({"target", "draft"}))
      ->delimiter(',')
      ->group("Processes");
  c->add_option("--bridge", f->bridge, "Endpoint where their workers dial in: ipc://PATH or tcp://HOST:PORT")
      ->group("Processes");
  c->add_option("--keys", f->keys_dir, "Directory made by 'redline keygen', for tcp")
      ->check(CLI::ExistingDirectory)
      ->group("Processes");
  c->add_flag("--insecure-plaintext", f->insecure_plaintext, "Allow tcp without keys")->group("Processes");
  c->callback([f, &exit_code] { exit_code = run(*f); });
}

void add_worker(CLI::App& app, int& exit_code) {
  struct worker_flags {
    model_flags models;
    std::string role;
    std::string join;
    std::string keys_dir;
    bool insecure_plaintext = false;
    std::uint32_t running_max = 64;
    std::uint32_t waiting_max = 256;
    std::uint32_t rows_max = 512;
    std::string policy = "fifo";
    std::string prefix_sharing = "tenant";
  };
  auto f = std::make_shared<worker_flags>();
  auto* c = app.add_subcommand("worker", "Run the target or the draft model for a 'redline serve' in another process");
  add_model_flags(*c, f->models);
  c->add_option("--role", f->role, "Which model this is")->required()->check(CLI::IsMember({"target", "draft"}));
  c->add_option("--join", f->join, "The server's --bridge endpoint")->required();
  c->add_option("--keys", f->keys_dir, "Directory made by 'redline keygen', for tcp")->check(CLI::ExistingDirectory);
  c->add_flag("--insecure-plaintext", f->insecure_plaintext, "Allow tcp without keys");
  c->add_option("--policy", f->policy, "target: who goes first")
      ->check(CLI::IsMember({"fifo", "fair_share"}))
      ->capture_default_str();
  add_prefix_sharing_flag(*c, f->prefix_sharing);
  c->add_option("--running-max", f->running_max, "target: answers computed in turn")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  c->add_option("--waiting-max", f->waiting_max, "target: answers that wait for a place")
      ->check(CLI::Range(0, 65536))
      ->capture_default_str();
  c->add_option("--rows-max", f->rows_max, "target: rows of one forward pass")
      ->check(CLI::Range(1, 8192))
      ->capture_default_str();
  c->callback([f, &exit_code] {
    signal_wait signals;
    auto options = engine_options_of(f->models);
    if (!options) {
      exit_code = report(options.error());
      return;
    }
    options->roles = {.front = false, .target = f->role == "target", .draft = f->role == "draft"};
    if (f->role == "draft") options->draft_path = std::exchange(options->target_path, {});
    options->scheduling = {.limits = {.running_max = f->running_max, .waiting_max = f->waiting_max},
                           .budget = {.rows_max = f->rows_max},
                           .policy = f->policy,
                           .sharing = prefix_sharing_of(f->prefix_sharing)};
    options->bridge.join = f->join;
    options->bridge.insecure_plaintext = f->insecure_plaintext;
    if (!f->keys_dir.empty()) {
      if (auto loaded = load_client_keys(f->keys_dir, options->bridge); !loaded) {
        exit_code = report(loaded.error());
        return;
      }
    }
    progress_line line;
    options->progress = [&](const std::string& what, std::uint64_t done, std::uint64_t all) {
      show_loading(line, what, done, all);
    };
    std::atomic<bool> fatal{false};
    options->on_fatal = [&fatal](const std::string&) { fatal = true; };
    auto e = engine::create(std::move(*options));
    auto started = e ? (*e)->start() : result<void>(e.error());
    if (!started) {
      exit_code = report(started.error());
      return;
    }
    line.clear();
    std::cerr << "redline: " << f->role << " worker, dialling " << f->join << "\n";
    while (!fatal && signals.wait(std::chrono::milliseconds(200)) == 0) {
    }
    (*e)->stop();
    exit_code = fatal ? exit_failed : 0;
  });
}

}  // namespace redline::actors::cli
