// The redline command: parses the command line and hands over to one of the commands.

#include "actors/cli/application.hpp"
#include "actors/cli/commands/commands.hpp"

int main(int argc, char** argv) {
  using namespace redline::actors::cli;
  constexpr add_command commands[] = {add_serve,   add_edit,     add_session, add_generate, add_tokenize,
                                      add_inspect, add_doctor,   add_worker,  add_keygen,   add_demo,
                                      add_synth,   add_quantize, add_convert, add_copy,     add_bench};
  return run_application(argc, argv, "redline", "Serves code-edit models to many users at once, on CPUs.", commands);
}
