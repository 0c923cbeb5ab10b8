#include "runtime/convert/convert.hpp"

#include <cstdio>

#include "actors/cli/command.hpp"
#include "actors/cli/commands/commands.hpp"
#include "actors/cli/flags/command_line.hpp"
#include "actors/cli/flags/model_flags.hpp"
#include "actors/cli/progress_line.hpp"

namespace redline::actors::cli {
namespace {

struct convert_flags {
  std::string folder;
  std::string out;
  std::string type = "q8_0";
  std::uint32_t threads = 0;
};

result<void> run(const convert_flags& f) {
  REDLINE_TRY_ASSIGN(const convert::output_type type, convert::output_type::parse(f.type));
  kernels::worker_team team(f.threads);
  progress_line line;
  REDLINE_TRY_ASSIGN(const std::size_t left_out,
                     convert::convert_folder(f.folder, type, f.out, team, [&](std::uint64_t done, std::uint64_t all) {
                       show_progress(line, "writing " + f.out, done, all);
                     }));
  line.clear();
  if (left_out > 0) {
    std::printf(
        "%s: left out %zu tensors that Redline does not use: those that read images, and layers that predict "
        "additional tokens\n",
        f.out.c_str(), left_out);
  }
  return {};
}

}  // namespace

void add_convert(CLI::App& app, int& exit_code) {
  auto f = std::make_shared<convert_flags>();
  const command c(app, "convert", "Write the model in a Hugging Face folder as a GGUF file");
  c.add("DIR", f->folder, "The folder with config.json, tokenizer.json and *.safetensors").require().existing_folder();
  c.add("OUT", f->out, "The GGUF file to write").require().any_file();
  c.add("--type", f->type, "One of " + convert::output_type_names());
  add_threads_flag(c, f->threads);
  c.on_run(exit_code, [f] { return report(run(*f)); });
}

}  // namespace redline::actors::cli
