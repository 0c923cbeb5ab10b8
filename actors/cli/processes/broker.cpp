#include "transport/zmq/zmq_broker.hpp"

#include <iostream>

#include "actors/cli/command.hpp"
#include "actors/cli/processes/process_commands.hpp"
#include "actors/cli/processes/service_manager.hpp"
#include "actors/cli/processes/serving_flags.hpp"
#include "actors/cli/processes/signal_wait.hpp"
#include "actors/node/pool_rules.hpp"

namespace redline::actors::cli {
namespace {

int run(const broker_flags& f) {
  signal_wait signals;
  service_manager manager;
  auto options = to_broker_options(f);
  if (!options) return report(options.error());
  options->rules = make_pool_rules();
  transport::zmq_broker broker;
  if (const auto started = broker.start(*options); !started) return report(started);
  signals.note_started();
  manager.note_ready();
  std::cerr << "redline: broker at";
  for (const auto& endpoint : broker.bound_endpoints()) std::cerr << " " << endpoint;
  std::cerr << "\n";
  while (signals.wait(std::chrono::milliseconds(200)) == 0) manager.note_alive();
  manager.note_stopping();
  const auto done = broker.counts();
  broker.stop();
  std::cerr << "redline: carried " << done.frames << " messages, " << done.bytes << " bytes; could not deliver "
            << done.undelivered << " messages\n";
  return 0;
}

}  // namespace

void add_broker(CLI::App& app, int& exit_code) {
  auto f = std::make_shared<broker_flags>();
  const command c(app, "broker", "Join gateways and workers into a pool");
  add_broker_flags(c, *f);
  c.on_run(exit_code, [f] { return run(*f); });
}

}  // namespace redline::actors::cli
