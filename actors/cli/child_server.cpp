#include "actors/cli/child_server.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "actors/cli/application.hpp"
#include "actors/cli/command.hpp"
#include "transport/http_client.hpp"

namespace redline::actors::cli {
namespace {

constexpr std::chrono::seconds usual_patience{60};

}  // namespace

child_server::~child_server() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGTERM);
  int status = 0;
  ::waitpid(pid_, &status, 0);
}

result<std::string> child_server::start(const std::vector<std::string>& serve_flags) {
  REDLINE_TRY(launch(serve_flags, prompts::apart));
  return wait_until_ready(usual_patience);
}

result<void> child_server::launch(const std::vector<std::string>& serve_flags, prompts sharing) {
  port_file_ = (std::filesystem::temp_directory_path() / ("redline-port-" + std::to_string(::getpid()))).string();
  const std::string path = sibling_executable("redline");
  std::vector<std::string> words = {path, "serve"};
  words.insert(words.end(), serve_flags.begin(), serve_flags.end());
  words.insert(words.end(), {"--listen", "127.0.0.1:0", "--port-file", port_file_, "--log-level", "warning"});
  // Who asks the same again and again, to compare, wants each answer with its prompt.
  if (sharing == prompts::apart) words.insert(words.end(), {"--prefix-sharing", "off"});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) return failure{errc::io_error, "cannot start a process"};
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    // Standard input and output may be a protocol's.
    const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    ::execv(path.c_str(), arguments.data());
    std::_Exit(127);
  }
  return {};
}

result<std::string> child_server::wait_until_ready(std::chrono::seconds patience, const std::atomic<bool>* given_up) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < deadline) {
    if (given_up != nullptr && given_up->load()) return failure{errc::cancelled, "nobody waits for the server"};
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = 0;
      return failure{errc::not_ready, "the server ended while starting"};
    }
    const auto port = read_whole(port_file_);
    if (port && port->ends_with('\n')) {
      const std::string url = "http://127.0.0.1:" + port->substr(0, port->size() - 1);
      const auto health = transport::http_get(*transport::parse_http_url(url + "/health"));
      if (health && health->status == 200) {
        std::filesystem::remove(port_file_);
        return url;
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return failure{errc::timed_out,
                 "the server did not become ready within " + std::to_string(patience.count()) + " seconds"};
}

}  // namespace redline::actors::cli
