#pragma once

#include <CLI/CLI.hpp>

namespace redline::actors::commands {

/// Adds `redline bench copy`.
void add_bench_copy(CLI::App& bench, int& exit_code);

}  // namespace redline::actors::commands
