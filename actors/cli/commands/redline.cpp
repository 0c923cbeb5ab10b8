// The redline command: parses the command line and hands over to one of the commands.

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "actors/cli/application.hpp"
#include "actors/cli/commands/commands.hpp"
#include "actors/cli/commands/commit.hpp"
#include "actors/cli/processes/process_commands.hpp"
#include "runtime/base/version.hpp"

int main(int argc, char** argv) {
  using namespace redline::actors::cli;
  redline::name_commit(built_commit);
  constexpr add_command commands[] = {
      add_serve,  add_edit,    add_session, add_generate, add_tokenize,    add_inspect,  add_doctor,  add_worker,
      add_broker, add_gateway, add_keygen,  add_demo,     add_synth,       add_quantize, add_convert, add_copy,
      add_bench,  add_plan,    add_top,     add_lsp,      add_completions, add_man};
  const int code =
      run_application(argc, argv, "redline", "Serves code-edit models to many users at once, on CPUs.", commands);
  if (code == 0) return 0;
  // Where memory ran out, a library's thread may still try to allocate some, and its exit handler would wait for it.
  std::cout.flush();
  std::fflush(nullptr);
  std::_Exit(code);
}
