#pragma once

namespace CLI {
class App;
}

namespace redline::actors::cli {

/// Commands that run until they are ended. Each function adds one subcommand (see add_command in application.hpp).
void add_serve(CLI::App& app, int& exit_code);
void add_gateway(CLI::App& app, int& exit_code);
void add_worker(CLI::App& app, int& exit_code);
void add_broker(CLI::App& app, int& exit_code);
void add_keygen(CLI::App& app, int& exit_code);

}  // namespace redline::actors::cli
