#include <cstdio>
#include <iostream>

#include "actors/cli/child_server.hpp"
#include "actors/cli/command.hpp"
#include "actors/cli/commands/commands.hpp"
#include "actors/cli/commands/difference.hpp"
#include "actors/cli/edit_task.hpp"
#include "actors/cli/flags/command_line.hpp"
#include "actors/cli/flags/generation_flags.hpp"
#include "actors/cli/flags/model_flags.hpp"
#include "actors/cli/progress_line.hpp"

namespace redline::actors::cli {
namespace {

struct demo_flags {
  std::string model;
  std::string draft;
  std::string chat_template;
  std::string file;
  std::string instruction;
  std::uint32_t rounds = 3;
};

int run(const demo_flags& f) {
  const auto before = read_whole(f.file);
  if (!before) return report(before.error());
  const edit_task task{f.file, *before, f.instruction};
  child_server server;
  std::vector<std::string> serve = {"--model", f.model, "--draft", f.draft};
  if (!f.chat_template.empty()) serve.insert(serve.end(), {"--chat-template", f.chat_template});
  const auto at = server.start(serve);
  if (!at) return report(at.error());
  const auto door = model_door::of_server(at->url, at->api_key);
  if (!door) return report(door.error());
  std::cout << "server: " << at->url << "\nfile: " << f.file << " (" << before->size()
            << " bytes)\ninstruction: " << f.instruction << "\n\n";

  std::vector<edit_outcome> rows;
  for (const char* method : {"regular", "lookup", "assisted", "blazedit", "prediction", "auto"}) {
    method_flags how;
    how.method = method;
    std::optional<edit_outcome> best;
    for (std::uint32_t i = 0; i < f.rounds; ++i) {
      progress_line line;
      auto got = edit_file(*door, task, how, [&](const std::string& answer) {
        line.show(std::string(method) + ": " + std::to_string(answer.size()) + " bytes");
      });
      line.clear();
      if (!got) return report(got.error());
      if (best && best->answer != got->answer)
        return report({errc::internal, "the same request gave two different answers"});
      if (!best || got->seconds < best->seconds) best = *got;
    }
    rows.push_back(*best);
  }
  print_difference(f.file, *before, rows.front().after);
  std::cout << "\n";
  std::printf("%-10s %8s %9s %14s %13s %18s %10s %s\n", "method", "seconds", "tokens/s", "target passes",
              "draft passes", "accepted per pass", "speed-up", "identical to regular");
  bool all_same = true;
  for (const auto& r : rows) {
    const bool same = r.answer == rows.front().answer;
    all_same = all_same && same;
    std::printf("%-10s %8.3f %9.0f %14u %13u %18.1f %9.2fx %s\n", r.method.c_str(), r.seconds, r.tokens_per_second(),
                r.target_passes, r.draft_passes, r.accepted_per_pass(), rows.front().seconds / r.seconds,
                same ? "yes" : "NO");
  }
  std::printf(
      "\n%u tokens each, best of %u; times are measured by the client and include HTTP and the prompt;\n"
      "requests with the methods prediction and auto send the old file as their prediction\n",
      rows.front().completion_tokens, f.rounds);
  return all_same ? 0 : exit_failed;
}

}  // namespace

void add_demo(CLI::App& app, int& exit_code) {
  auto f = std::make_shared<demo_flags>();
  const command c(app, "demo", "Start a server, edit a file over HTTP with every method, and compare them");
  c.add("-m,--model", f->model, "Target model, a GGUF file").require().existing_file();
  c.add("-d,--draft", f->draft, "Draft model, a GGUF file").require().existing_file();
  add_chat_template_flag(c, f->chat_template);
  c.add("FILE", f->file, "The file to edit").require().existing_file();
  c.add("-i,--instruction", f->instruction, "What to change, in words").require();
  c.add("--rounds", f->rounds, "Number of runs of each method; the fastest run counts").range(1, 100);
  c.on_run(exit_code, [f] { return run(*f); });
}

}  // namespace redline::actors::cli
