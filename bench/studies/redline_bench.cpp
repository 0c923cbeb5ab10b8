// The redline-bench command: one subcommand per study (bench/README.md).

#include "actors/cli/application.hpp"
#include "bench/studies/commands.hpp"

int main(int argc, char** argv) {
  using namespace redline::studies;
  constexpr add_command commands[] = {add_bench_forward,  add_bench_accuracy, add_bench_copy,   add_bench_edit,
                                      add_bench_drafts,   add_bench_formats,  add_bench_evict,  add_bench_load,
                                      add_bench_pie,      add_bench_prefix,   add_bench_broker, add_bench_load_agent,
                                      add_bench_simulate, add_bench_plan};
  return run_application(argc, argv, "redline-bench", "Measures Redline and its techniques on this machine.", commands);
}
