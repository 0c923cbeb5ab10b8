#include "actors/cli/child_server.hpp"

#include <signal.h>
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

child_server::~child_server() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGTERM);
  int status = 0;
  ::waitpid(pid_, &status, 0);
}

result<std::string> child_server::start(const std::vector<std::string>& serve_flags) {
  const auto port_file = std::filesystem::temp_directory_path() / ("redline-port-" + std::to_string(::getpid()));
  const std::string path = sibling_executable("redline");
  std::vector<std::string> words = {path, "serve"};
  words.insert(words.end(), serve_flags.begin(), serve_flags.end());
  words.insert(words.end(), {"--listen", "127.0.0.1:0", "--port-file", port_file.string(), "--log-level", "warning",
                             // Who asks the same again and again, to compare, wants each answer with its prompt.
                             "--prefix-sharing", "off"});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) return failure{errc::io_error, "cannot start a process"};
  if (pid_ == 0) {
    ::execv(path.c_str(), arguments.data());
    std::_Exit(127);
  }
  for (int tries = 0; tries < 600; ++tries) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = 0;
      return failure{errc::not_ready, "the server ended while starting"};
    }
    const auto port = read_whole(port_file.string());
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

}  // namespace redline::actors::cli
