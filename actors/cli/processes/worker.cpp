#include <atomic>
#include <iostream>

#include "actors/cli/command.hpp"
#include "actors/cli/processes/process_commands.hpp"
#include "actors/cli/processes/run_again.hpp"
#include "actors/cli/processes/service_manager.hpp"
#include "actors/cli/processes/serving_flags.hpp"
#include "actors/cli/processes/signal_wait.hpp"
#include "actors/cli/progress_line.hpp"
#include "actors/node/engine.hpp"

namespace redline::actors::cli {
namespace {

int run(const worker_flags& f) {
  signal_wait signals;
  service_manager manager;
  auto options = to_engine_options(f);
  if (!options) return report(options.error());
  progress_line line;
  options->progress = [&](const std::string& what, std::uint64_t done, std::uint64_t all) {
    show_loading(line, what, done, all);
    manager.note_progress();
  };
  std::atomic<bool> fatal{false}, is_twin{false};
  options->on_fatal = [&fatal](const std::string&) { fatal = true; };
  options->bridge.on_number_taken = [&is_twin] { is_twin = true; };
  auto e = engine::create(std::move(*options));
  if (!e) return report(e.error());
  if (const auto started = (*e)->start(); !started) return report(started);
  signals.note_started();
  manager.note_ready();
  line.clear();
  std::cerr << "redline: " << f.role << " worker of";
  for (const auto& endpoint : f.joins) std::cerr << " " << endpoint;
  std::cerr << "\n";
  while (!fatal && !is_twin && signals.wait(std::chrono::milliseconds(200)) == 0) {
    if ((*e)->is_responsive(answers_within)) manager.note_alive();
  }
  if (!fatal && !is_twin) {
    manager.note_stopping();
    std::cerr << "redline: handing over to other workers (a second signal ends the process at once)\n";
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(f.shutdown_timeout);
    (*e)->begin_hand_over();
    while (!(*e)->is_handed_over() && std::chrono::steady_clock::now() < until) {
      if (signals.wait(std::chrono::milliseconds(50)) != 0) break;
      manager.note_alive();
    }
  }
  (*e)->stop();
  if (is_twin) return run_again();
  return fatal ? exit_failed : 0;
}

}  // namespace

void add_worker(CLI::App& app, int& exit_code) {
  auto f = std::make_shared<worker_flags>();
  const command c(app, "worker", "Run models for the gateways of a pool");
  add_worker_flags(c, *f);
  c.on_run(exit_code, [f] { return run(*f); });
}

}  // namespace redline::actors::cli
