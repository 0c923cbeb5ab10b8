#pragma once

#include "bench/studies/common/names.hpp"

namespace CLI {
class App;
}

namespace redline::studies {

/// The subcommands of redline-bench. Each function adds one, whose callback sets the exit code.
void add_bench_forward(CLI::App& bench, int& exit_code);
void add_bench_accuracy(CLI::App& bench, int& exit_code);
void add_bench_broker(CLI::App& bench, int& exit_code);
void add_bench_copy(CLI::App& bench, int& exit_code);
void add_bench_drafts(CLI::App& bench, int& exit_code);
void add_bench_edit(CLI::App& bench, int& exit_code);
void add_bench_evict(CLI::App& bench, int& exit_code);
void add_bench_formats(CLI::App& bench, int& exit_code);
void add_bench_load(CLI::App& bench, int& exit_code);
void add_bench_load_agent(CLI::App& bench, int& exit_code);
void add_bench_pie(CLI::App& bench, int& exit_code);
void add_bench_prefix(CLI::App& bench, int& exit_code);
void add_bench_simulate(CLI::App& bench, int& exit_code);
void add_bench_plan(CLI::App& bench, int& exit_code);

}  // namespace redline::studies
