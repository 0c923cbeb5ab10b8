// The redline command: parses the command line and runs one of the commands.

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "actors/cli/application.hpp"
#include "actors/cli/command.hpp"
#include "actors/cli/commands/commands.hpp"
#include "actors/cli/commands/commit.hpp"
#include "actors/cli/processes/process_commands.hpp"
#include "runtime/base/version.hpp"

namespace {

/// Opens closed standard descriptors. Otherwise the next opened file would take the number, and printed text would go
/// into it. Writing to those opened here fails, as it does for closed ones.
void reserve_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    static_cast<void>(::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY));
  }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace redline::actors::cli;
  redline::name_commit(built_commit);
  constexpr add_command commands[] = {
      add_serve,  add_edit,    add_session, add_generate, add_tokenize,    add_inspect,  add_doctor,  add_worker,
      add_broker, add_gateway, add_keygen,  add_demo,     add_synth,       add_quantize, add_convert, add_copy,
      add_bench,  add_plan,    add_top,     add_lsp,      add_completions, add_man};
  reserve_standard_descriptors();
  const int code = finish_output(
      run_application(argc, argv, "redline", "Serves code-edit models to many users at once, on CPUs.", commands));
  if (code == 0) return 0;
  // After memory ran out, a library's thread may still be allocating, and its exit handler would wait for that thread.
  std::fflush(nullptr);
  std::_Exit(code);
}
