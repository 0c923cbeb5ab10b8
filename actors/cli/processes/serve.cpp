#include <atomic>
#include <future>
#include <iostream>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "actors/cli/command.hpp"
#include "actors/cli/processes/client_keys.hpp"
#include "actors/cli/processes/parent_pipe.hpp"
#include "actors/cli/processes/process_commands.hpp"
#include "actors/cli/processes/run_again.hpp"
#include "actors/cli/processes/service_manager.hpp"
#include "actors/cli/processes/serving_flags.hpp"
#include "actors/cli/processes/signal_wait.hpp"
#include "actors/cli/progress_line.hpp"
#include "actors/http/gateway.hpp"
#include "actors/http/http_gate.hpp"
#include "actors/node/answer_script.hpp"
#include "actors/node/descriptor_plan.hpp"
#include "actors/node/engine.hpp"
#include "actors/pool/model_fetcher.hpp"
#include "actors/prompts/known_phrases.hpp"
#include "actors/serving/draft_model.hpp"
#include "runtime/architecture/shape_keys.hpp"
#include "runtime/base/replacement_file.hpp"
#include "runtime/base/tenant_share.hpp"

namespace redline::actors::cli {
namespace {

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host == "[::1]" || host.starts_with("127.");
}

/// The services of a gateway process: `serve` serves its own model, a gateway the models of its pool.
result<std::shared_ptr<gateway_services>> make_services(const serve_flags& f, const listen_address& where, engine& e,
                                                        const std::shared_ptr<answer_script>& script,
                                                        std::function<void()> on_drained) {
  REDLINE_TRY_ASSIGN(auto keys, load_client_keys(f.api_keys, f.api_key_file));
  if (keys.empty() && !is_loopback(where.host) && !f.insecure) {
    return failure{errc::invalid_argument, "--listen " + where.host +
                                               ": this address can be reached from other machines; give --api-key or "
                                               "--api-key-file, or --insecure to serve every client"};
  }
  const auto process = e.fabric().process();
  const bool has_drafts = e.drafter_ref() || e.placer_ref();
  REDLINE_TRY_ASSIGN(const auto defaults, to_draft_options(f.method, has_drafts));
  auto s = std::make_shared<gateway_services>();
  if (e.tokenizer()) {
    REDLINE_TRY_ASSIGN(auto prompts, prompt_builder::make(e.tokenizer(), e.options().chat_template));
    auto model = std::make_shared<served_model>();
    model->name = e.options().model_name;
    model->add_names(e.options().aliases);
    model->digest = e.model_digest();
    model->fingerprint = make_fingerprint(model->digest, numerics_id(e.numerics()));
    model->computed_by = {e.numerics()};
    if (!e.placer_ref()) model->numerics = numerics_id(e.numerics());
    answer_factory::parts parts{
        .tokenizer = e.tokenizer(),
        .token_trie = e.token_trie(),
        .automata = e.automata(),
        .context_max = e.context_max(),
        .partners_for = [&e](draft::method how, actor::address client) { return e.partners_for(how, client); }};
    if (script) {
      parts.on_answer = [script, &e](session_id session, std::span<const token> prompt, const output_rules* rules) {
        return script->begin(session, prompt, rules, *e.tokenizer());
      };
    }
    model->answers = std::make_shared<answer_factory>(std::move(parts));
    model->prompts = std::make_shared<prompt_builder>(std::move(prompts));
    model->draft_defaults = defaults;
    if (e.target_file()) {
      model->known_phrases = known_phrases(*e.target_file());
      model->has_mtp = architecture::has_mtp(*e.target_file());
      model->keeps_states = architecture::keeps_states(*e.target_file());
    }
    s->models->publish(std::move(model));
  } else {
    const model_fetcher_options options{.shelf = s->models,
                                        .pool = e.pool(),
                                        .partners_for = [&e](const process_card& card, draft::method how,
                                                             actor::address client) -> result<session_partners> {
                                          return e.partners_in_pool(how, client, card.model);
                                        },
                                        .draft_defaults = defaults};
    (void)e.io().add<model_fetcher>(topology::models, "model fetcher", {8192, 8192},
                                    [options, &fabric = e.fabric()](actor::actor_context& c) {
                                      fabric.tell_peers_again();  // a restarted fetcher knows no models
                                      return std::make_unique<model_fetcher>(c, options);
                                    });
  }
  s->pool = e.pool();
  s->manager = {e.status_source()};
  s->placer = e.placer_ref();
  s->tracer = e.tracer();
  s->http = actor::make_address(process, topology::http_worker, topology::http);
  s->keys->replace(std::move(keys));
  s->guard = {.checks_host = is_loopback(where.host), .hosts = f.allowed_hosts};
  REDLINE_TRY_ASSIGN(s->pages, cross_origin::make(f.cors_origins));
  if (!s->wants_key() && s->pages.allows_all()) {
    return failure{
        errc::invalid_argument,
        "--cors-origin *: without API keys, any page opened in a browser on this machine could use the server; name "
        "the origins, or give --api-key"};
  }
  set_gateway_limits(f, *s);
  s->on_drained = std::move(on_drained);
  return s;
}

/// Limits connections to the remaining descriptors.
result<void> limit_connections(const serve_flags& f, transport::http_front::options& http) {
  REDLINE_TRY_ASSIGN(http.connections_max,
                     plan_connections(f.connections_max, raise_descriptor_limit(), count_open_descriptors()));
  if (http.connections_max < f.connections_max) {
    log_line(log_level::warning, "serve",
             "at most " + std::to_string(http.connections_max) + " connections instead of " +
                 std::to_string(f.connections_max) + ": the limit on open files is low (ulimit -n)");
  }
  const std::size_t share = part_of_one(http.connections_max);
  http.connections_per_address_max = f.connections_per_address != 0 ? f.connections_per_address : share;
  http.requests_per_owner_max = share;
  http.answer_timeout = std::chrono::seconds(f.answer_timeout);
  return {};
}

/// Prints what is served, where, and which keys clients need.
void say_access(engine& e, const gateway_services& s, const std::string& url, const std::string& what) {
  if (const auto* broker = e.fabric().broker()) {
    std::cerr << "redline: waiting for workers at " << broker->bound_endpoints().front() << "\n";
  }
  std::cerr << "redline: serving " << what << " on " << url << "\n";
  const auto keys = s.keys->snapshot();
  std::string text = "redline: clients' base URL " + url + "/v1";
  if (s.shows_studio) text += ", studio " + url + "/";
  text += keys->empty() ? std::string(", no API keys: open to every client that can reach it\n")
                        : ", API keys: " + std::to_string(keys->size()) + " of " +
                              std::to_string(keys->tenants_count()) + " tenants\n";
  std::cerr << text;
}

int run(const serve_flags& f) {
  signal_wait signals(f.port_descriptor < 0);
  service_manager manager;
  const auto parent = std::make_shared<parent_pipe>(f.port_descriptor);
  const auto fail = [&parent](const failure& why) { return parent->tell_failure(why) ? exit_failed : report(why); };
  const auto where = parse_listen_address(f.listen);
  if (!where) return fail(where.error());
  const bool is_gateway = !f.joins.empty();
  auto options = is_gateway ? to_gateway_options(f) : to_engine_options(f);
  if (!options) return fail(options.error());
  progress_line line;
  options->progress = [&](const std::string& what, std::uint64_t done, std::uint64_t all) {
    show_loading(line, what, done, all);
    manager.note_progress();
  };
  std::shared_ptr<answer_script> script;
  if (!f.script.empty()) {
    auto loaded = answer_script::load(f.script);
    if (!loaded) return fail(loaded.error());
    script = std::move(*loaded);
    options->target_chooser = script;
    log_line(log_level::warning, "serve", "answers that are listed in --script do not come from the model");
  }
  std::atomic<bool> fatal{false}, is_twin{false};
  options->on_fatal = [&fatal](const std::string&) { fatal = true; };
  options->bridge.on_number_taken = [&is_twin] { is_twin = true; };
  auto e = engine::create(std::move(*options));
  if (!e) return fail(e.error());

  std::promise<void> drained;
  auto is_drained = drained.get_future();
  std::once_flag once;  // a restarted gateway may be drained again
  const auto services =
      make_services(f, *where, **e, script, [&] { std::call_once(once, [&] { drained.set_value(); }); });
  if (!services) return fail(services.error());
  (*services)->on_ready = [parent] { parent->note_ready(); };
  const auto front =
      (*e)->io().add<gateway>(topology::gateway, "gateway", {8192, 8192},
                              [s = *services](actor::actor_context& c) { return std::make_unique<gateway>(c, s); });
  // The port answers before the models are loaded, so that health checks see "loading" instead of "refused".
  transport::http_front::options http;
  http.address = where->host;
  http.port = where->port;
  const auto limited = limit_connections(f, http);
  if (!limited) return fail(limited.error());
  auto gate = http_gate::start((*e)->fabric(), topology::http_worker, topology::http, http, front,
                               actor::make_address((*e)->fabric().process(), topology::io_worker, topology::supervisor),
                               (*services)->wants_key() ? (*services)->keys : nullptr);
  if (!gate) return fail(gate.error());
  if (!f.port_file.empty()) {
    const auto told = replace_file(f.port_file, std::to_string((*gate)->port()) + "\n");
    if (!told) return fail(failure{told.error().code, "--port-file " + told.error().context});
  }
  parent->tell_port((*gate)->port());
  if (auto started = (*e)->start(); !started) return fail(started.error());
  signals.on_hang_up([&f, keys = (*services)->keys] { reload_client_keys(*keys, f.api_keys, f.api_key_file); });
  signals.note_started();
  manager.note_ready();
  line.clear();
  parent->note_started();
  if (f.port_descriptor < 0) {
    const std::string url = "http://" + where->host + ":" + std::to_string((*gate)->port());
    say_access(**e, **services, url, is_gateway ? "the models of its pool" : (*e)->options().model_name);
  }

  while (!fatal && !is_twin && signals.wait(std::chrono::milliseconds(200)) == 0) {
    if ((*e)->is_responsive(answers_within)) manager.note_alive();
  }
  // A parent that ends its server already has all answers that it wants.
  if (!fatal && !is_twin && f.port_descriptor < 0) {
    manager.note_stopping();
    std::cerr << "redline: draining (a second signal ends the process at once)\n";
    (*e)->send(front.where, drain_gateway{});
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(f.shutdown_timeout);
    bool impatient = false;
    bool whole = false;  // every answer is complete and sent
    while (!impatient && !whole && std::chrono::steady_clock::now() < until) {
      impatient = signals.wait(std::chrono::milliseconds(50)) != 0;
      manager.note_alive();
      whole = is_drained.wait_for(std::chrono::milliseconds(0)) == std::future_status::ready && (*gate)->is_sent();
    }
    if (!whole) {
      (*e)->send(front.where, cancel_everything{});
      std::this_thread::sleep_for(std::chrono::milliseconds(100));  // lets the final errors go out
    }
  }
  (*gate)->stop();
  (*e)->stop();
  if (is_twin) return run_again();
  return fatal ? exit_failed : 0;
}

}  // namespace

void add_serve(CLI::App& app, int& exit_code) {
  auto f = std::make_shared<serve_flags>();
  const command c(app, "serve", "Serve a model over an OpenAI-compatible HTTP interface");
  add_serve_flags(c, *f);
  c.on_run(exit_code, [f] { return run(*f); });
}

void add_gateway(CLI::App& app, int& exit_code) {
  auto f = std::make_shared<serve_flags>();
  const command c(app, "gateway", "Serve the models of a pool over an OpenAI-compatible HTTP interface");
  add_gateway_flags(c, *f);
  c.on_run(exit_code, [f] { return run(*f); });
}

}  // namespace redline::actors::cli
