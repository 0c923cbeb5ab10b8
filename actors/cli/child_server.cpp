#include "actors/cli/child_server.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "actors/cli/application.hpp"
#include "actors/cli/command.hpp"
#include "runtime/base/hex.hpp"
#include "transport/http_client.hpp"

extern char** environ;

namespace redline::actors::cli {
namespace {

constexpr std::chrono::seconds usual_patience{60};
constexpr int step_ms = 100;
constexpr int port_descriptor = 3;          // of the child
constexpr std::size_t port_bytes_max = 16;  // "65535\n", generously

result<std::string> random_key() {
  std::array<std::uint64_t, 4> bits{};
  if (::getrandom(bits.data(), sizeof bits, 0) != static_cast<ssize_t>(sizeof bits)) {
    return failure{errc::io_error, std::string("no random key for the server: ") + std::strerror(errno)};
  }
  std::string key;
  for (const std::uint64_t part : bits) key += to_hex(part);
  return key;
}

/// This process's environment, but for what says who may use a server; in its place the key. A command line could be
/// read by every user.
std::vector<std::string> environment_with(const std::string& key) {
  std::vector<std::string> out{"REDLINE_API_KEY=" + key};
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view text = *one;
    if (!text.starts_with("REDLINE_API_KEY=") && !text.starts_with("REDLINE_API_KEY_FILE=")) out.emplace_back(text);
  }
  return out;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

child_server::~child_server() {
  if (port_pipe_ >= 0) ::close(port_pipe_);
  if (pid_ <= 0) return;
  ::kill(pid_, SIGTERM);
  int status = 0;
  ::waitpid(pid_, &status, 0);
}

result<child_server::door> child_server::start(const std::vector<std::string>& serve_flags) {
  REDLINE_TRY(launch(serve_flags, prompts::apart));
  return wait_until_ready(usual_patience);
}

result<void> child_server::launch(const std::vector<std::string>& serve_flags, prompts sharing) {
  REDLINE_TRY_ASSIGN(api_key_, random_key());
  const std::string path = sibling_executable("redline");
  std::vector<std::string> words = {path, "serve"};
  words.insert(words.end(), serve_flags.begin(), serve_flags.end());
  words.insert(words.end(), {"--listen", "127.0.0.1:0", "--port-descriptor", std::to_string(port_descriptor),
                             "--log-level", "warning"});
  // Who asks the same again and again, to compare, wants each answer with its prompt.
  if (sharing == prompts::apart) words.insert(words.end(), {"--prefix-sharing", "off"});
  const auto arguments = pointers_to(words);
  auto variables = environment_with(api_key_);
  const auto environment = pointers_to(variables);
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return failure{errc::io_error, std::string("pipe: ") + std::strerror(errno)};
  pid_ = ::fork();
  if (pid_ < 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    return failure{errc::io_error, "cannot start a process"};
  }
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    // Standard input and output may be a protocol's.
    const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    // A descriptor that is copied onto itself would be closed by exec.
    if (ends[1] == port_descriptor)
      ::fcntl(ends[1], F_SETFD, 0);
    else
      ::dup2(ends[1], port_descriptor);
    ::execve(path.c_str(), arguments.data(), environment.data());
    std::_Exit(127);
  }
  ::close(ends[1]);
  if (port_pipe_ >= 0) ::close(port_pipe_);  // of the one before
  port_pipe_ = ends[0];
  port_.clear();
  return {};
}

bool child_server::has_ended() {
  int status = 0;
  if (pid_ > 0 && ::waitpid(pid_, &status, WNOHANG) == pid_) pid_ = 0;
  return pid_ <= 0;
}

void child_server::wait_for_end(const std::atomic<bool>& given_up) {
  const int end = pid_ > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)) : -1;
  pollfd ended{end, POLLIN, 0};
  while (!given_up && !has_ended()) ::poll(&ended, 1, step_ms);
  if (end >= 0) ::close(end);
}

bool child_server::hear_port() {
  if (port_.ends_with('\n')) {
    ::poll(nullptr, 0, step_ms);
    return true;
  }
  pollfd pipe{port_pipe_, POLLIN, 0};
  if (::poll(&pipe, 1, step_ms) <= 0) return false;
  std::array<char, port_bytes_max> part;
  const ssize_t count = ::read(port_pipe_, part.data(), part.size());
  if (count > 0) port_.append(part.data(), static_cast<std::size_t>(count));
  if (count == 0) ::poll(nullptr, 0, step_ms);  // it ends, or was told to write elsewhere
  return port_.ends_with('\n');
}

result<child_server::door> child_server::wait_until_ready(std::chrono::seconds patience,
                                                          const std::atomic<bool>* given_up) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < deadline) {
    if (given_up != nullptr && given_up->load()) return failure{errc::cancelled, "nobody waits for the server"};
    if (has_ended()) return failure{errc::not_ready, "the server ended while starting"};
    if (!hear_port()) continue;
    const door at{"http://127.0.0.1:" + port_.substr(0, port_.size() - 1), api_key_};
    const auto health = transport::http_get(*transport::parse_http_url(at.url + "/health"));
    if (health && health->status == 200) return at;
  }
  return failure{errc::timed_out,
                 "the server did not become ready within " + std::to_string(patience.count()) + " seconds"};
}

}  // namespace redline::actors::cli
