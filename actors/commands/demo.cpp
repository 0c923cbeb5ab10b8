#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <thread>

#include "actors/commands/edit_task.hpp"
#include "runtime/text/line_diff.hpp"
#include "transport/http_client.hpp"

namespace redline::actors::commands {
namespace {

struct flags {
  std::string model;
  std::string draft;
  std::string file;
  std::string instruction;
  std::uint32_t rounds = 3;
};

/// `redline serve` in a process of its own, on a free port; ended with this object.
class child_server {
 public:
  ~child_server() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGTERM);
    int status = 0;
    ::waitpid(pid_, &status, 0);
  }

  result<std::string> start(const flags& f) {
    const auto port_file = std::filesystem::temp_directory_path() / ("redline-demo-" + std::to_string(::getpid()));
    const std::string path = port_file.string();
    pid_ = ::fork();
    if (pid_ < 0) return failure{errc::io_error, "cannot start a process"};
    if (pid_ == 0) {
      ::execl("/proc/self/exe", "redline", "serve", "--model", f.model.c_str(), "--draft", f.draft.c_str(), "--listen",
              "127.0.0.1:0", "--port-file", path.c_str(), "--log-level", "warning", static_cast<char*>(nullptr));
      std::_Exit(127);
    }
    for (int tries = 0; tries < 600; ++tries) {
      int status = 0;
      if (::waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = 0;
        return failure{errc::not_ready, "the server ended while starting"};
      }
      const auto port = read_whole(path);
      if (port && port->ends_with('\n')) {
        const std::string url = "http://127.0.0.1:" + port->substr(0, port->size() - 1);
        const auto health = transport::http_get(*transport::parse_http_url(url + "/health"));
        if (health && health->status == 200) {
          std::filesystem::remove(port_file);
          return url;
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return failure{errc::timed_out, "the server did not become ready within a minute"};
  }

 private:
  pid_t pid_ = 0;
};

int run(const flags& f) {
  const auto before = read_whole(f.file);
  if (!before) return report(before.error());
  const edit_task task{f.file, *before, f.instruction};
  child_server server;
  const auto url = server.start(f);
  if (!url) return report(url.error());
  std::cout << "server: " << *url << "\nfile: " << f.file << " (" << before->size() << " bytes)\ninstruction: " << f.instruction << "\n\n";

  std::vector<edit_outcome> rows;
  for (const char* method : {"regular", "lookup", "assisted", "blazedit", "prediction", "auto"}) {
    method_flags how;
    how.method = method;
    std::optional<edit_outcome> best;
    for (std::uint32_t i = 0; i < f.rounds; ++i) {
      progress_line line;
      auto got = edit_on_server(*url, {}, task, how, [&](const std::string& answer) {
        line.show(std::string(method) + ": " + std::to_string(answer.size()) + " bytes");
      });
      line.clear();
      if (!got) return report(got.error());
      if (best && best->answer != got->answer) return report({errc::internal, "the same request gave two answers"});
      if (!best || got->seconds < best->seconds) best = *got;
    }
    rows.push_back(*best);
  }
  const std::string diff = text::unified_diff(*before, rows.front().after, f.file, isatty(STDOUT_FILENO) != 0);
  std::cout << (diff.empty() ? "no change\n" : diff) << "\n";
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
      "\n%u tokens each, best of %u; times as the client saw them, HTTP and prompt included;\n"
      "the requests of prediction and auto hold the old file as their prediction\n",
      rows.front().completion_tokens, f.rounds);
  return all_same ? 0 : exit_failed;
}

}  // namespace

void add_demo(CLI::App& app, int& exit_code) {
  auto f = std::make_shared<flags>();
  auto* c = app.add_subcommand("demo", "Start a server, edit a file over HTTP with every method, and compare them");
  c->add_option("-m,--model", f->model, "Target model, a GGUF file")->required()->check(CLI::ExistingFile);
  c->add_option("-d,--draft", f->draft, "Draft model, a GGUF file")->required()->check(CLI::ExistingFile);
  c->add_option("FILE", f->file, "The file to edit")->required()->check(CLI::ExistingFile);
  c->add_option("-i,--instruction", f->instruction, "What to change")->required();
  c->add_option("--rounds", f->rounds, "Runs of each method; the fastest counts")->check(CLI::Range(1, 100))->capture_default_str();
  c->callback([f, &exit_code] { exit_code = run(*f); });
}

}  // namespace redline::actors::commands
