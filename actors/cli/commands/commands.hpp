#pragma once

namespace CLI {
class App;
}

namespace redline::actors::cli {

/// Each function adds one subcommand (see add_command in application.hpp). Commands that serve have their own folder.
void add_edit(CLI::App& app, int& exit_code);
void add_session(CLI::App& app, int& exit_code);
void add_generate(CLI::App& app, int& exit_code);
void add_tokenize(CLI::App& app, int& exit_code);
void add_inspect(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code);
void add_demo(CLI::App& app, int& exit_code);
void add_synth(CLI::App& app, int& exit_code);
void add_quantize(CLI::App& app, int& exit_code);
void add_convert(CLI::App& app, int& exit_code);
void add_copy(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_top(CLI::App& app, int& exit_code);
void add_lsp(CLI::App& app, int& exit_code);
void add_plan(CLI::App& app, int& exit_code);
void add_completions(CLI::App& app, int& exit_code);
void add_man(CLI::App& app, int& exit_code);

}  // namespace redline::actors::cli
