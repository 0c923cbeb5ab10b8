// The redline command: parses the command line and hands over to one of the commands.

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

/// A descriptor that is closed would be the next file's that is opened, and what is printed go into it. Writing to the
/// ones that are opened here fails, as it does to closed ones.
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
  // Where memory ran out, a library's thread may still try to allocate some, and its exit handler would wait for it.
  std::fflush(nullptr);
  std::_Exit(code);
}
