#include "runtime/convert/quantize.hpp"

#include "actors/cli/command.hpp"
#include "actors/cli/commands/commands.hpp"
#include "actors/cli/flags/command_line.hpp"
#include "actors/cli/flags/model_flags.hpp"
#include "actors/cli/progress_line.hpp"

namespace redline::actors::cli {
namespace {

struct quantize_flags {
  std::string in;
  std::string out;
  std::string type;
  std::uint32_t threads = 0;
};

result<void> run(const quantize_flags& f) {
  REDLINE_TRY_ASSIGN(const convert::output_type type, convert::output_type::parse(f.type));
  REDLINE_TRY_ASSIGN(const auto from, gguf::gguf_file::open(f.in));
  kernels::worker_team team(f.threads);
  progress_line line;
  return convert::quantize(*from, type, f.out, team, [&](std::uint64_t done, std::uint64_t all) {
    show_progress(line, "writing " + f.out, done, all);
  });
}

}  // namespace

void add_quantize(CLI::App& app, int& exit_code) {
  auto f = std::make_shared<quantize_flags>();
  const command c(app, "quantize", "Rewrite a GGUF file with weights of another type");
  c.add("IN", f->in, "The GGUF file to read").require().existing_file();
  c.add("OUT", f->out, "The GGUF file to write").require().any_file();
  c.add("--type", f->type, "One of " + convert::output_type_names()).require();
  add_threads_flag(c, f->threads);
  c.on_run(exit_code, [f] { return report(run(*f)); });
}

}  // namespace redline::actors::cli
