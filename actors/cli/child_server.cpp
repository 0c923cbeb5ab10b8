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
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "actors/cli/application.hpp"
#include "actors/cli/command.hpp"
#include "runtime/base/hex.hpp"
#include "runtime/base/log.hpp"

extern char** environ;

namespace redline::actors::cli {
namespace {

constexpr std::chrono::seconds usual_patience{60};
constexpr int step_ms = 100;
constexpr int port_descriptor = 3;               // in the child
constexpr std::size_t told_bytes_max = 1 << 16;  // a port and a word, or the reason for a failure
constexpr std::string_view ready_word = "ready\n", failed_word = "failed ";
/// Variables that apply to every command that computes. The others configure servers for other users: their keys, their
/// peers.
constexpr std::string_view kept_variables[] = {"TARGET",  "CACHE_DIR", "LOG_FORMAT", "THREADS",
                                               "CONTEXT", "KV",        "KV_MIB",     "NUMERICS"};

result<std::string> random_key() {
  std::array<std::uint64_t, 4> bits{};
  if (::getrandom(bits.data(), sizeof bits, 0) != static_cast<ssize_t>(sizeof bits)) {
    return failure{errc::io_error, std::string("no random key for the server: ") + std::strerror(errno)};
  }
  std::string key;
  for (const std::uint64_t part : bits) key += to_hex(part);
  return key;
}

bool is_kept(std::string_view variable) {
  constexpr std::string_view ours = "REDLINE_";
  if (!variable.starts_with(ours)) return true;
  const auto name = variable.substr(ours.size(), variable.find('=') - ours.size());
  return std::ranges::find(kept_variables, name) != std::end(kept_variables);
}

/// This process's environment, with the key in place of other servers' options. Every user could read a command line.
std::vector<std::string> environment_with(const std::string& key) {
  std::vector<std::string> out{"REDLINE_API_KEY=" + key};
  for (char** one = environ; *one != nullptr; ++one) {
    if (is_kept(*one)) out.emplace_back(*one);
  }
  return out;
}

/// The child logs at this process's level, except for messages that only servers need.
std::string child_log_level() {
  if (log_enabled(log_level::debug)) return "debug";
  return log_enabled(log_level::warning) ? "warning" : "error";
}

/// Parses the report of a child that could not serve: "failed 3 the file ...
/// ".
failure failure_told(std::string_view told) {
  std::string_view rest = told.substr(failed_word.size());
  if (rest.ends_with('\n')) rest.remove_suffix(1);
  int code = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), code);
  const auto kind = static_cast<errc>(code);
  if (error != std::errc() || end == rest.data() + rest.size() || code < 0 || !is_known(kind))
    return {errc::internal, "the server failed without giving a reason"};
  return {kind, std::string(rest.substr(static_cast<std::size_t>(end - rest.data()) + 1))};
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

child_server::~child_server() {
  if (pipe_ >= 0) ::close(pipe_);
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
  const std::string path = server_executable();
  std::vector<std::string> words = {"redline", "serve"};
  words.insert(words.end(), serve_flags.begin(), serve_flags.end());
  words.insert(words.end(), {"--listen", "127.0.0.1:0", "--port-descriptor", std::to_string(port_descriptor),
                             "--log-level", child_log_level()});
  // A caller that repeats a request to compare wants each prompt computed.
  if (sharing == prompts::apart) words.insert(words.end(), {"--prefix-sharing", "off"});
  const auto arguments = pointers_to(words);
  auto variables = environment_with(api_key_);
  const auto environment = pointers_to(variables);
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return failure{errc::io_error, std::string("pipe: ") + std::strerror(errno)};
  const std::string not_run = std::string(failed_word) + std::to_string(static_cast<int>(errc::io_error)) +
                              " cannot run '" + path + "': expected an executable redline binary\n";
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    return failure{errc::io_error, "cannot start a process"};
  }
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) std::_Exit(127);  // the parent has already ended
    // Standard input and output may carry a protocol.
    const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    // exec would close a descriptor that is duplicated onto itself.
    if (ends[1] == port_descriptor)
      ::fcntl(ends[1], F_SETFD, 0);
    else
      ::dup2(ends[1], port_descriptor);
    ::execve(path.c_str(), arguments.data(), environment.data());
    (void)!::write(port_descriptor, not_run.data(), not_run.size());
    std::_Exit(127);
  }
  ::close(ends[1]);
  if (pipe_ >= 0) ::close(pipe_);  // the previous child's pipe
  pipe_ = ends[0];
  told_.clear();
  return {};
}

bool child_server::has_ended() {
  if (pid_ > 0 && ::waitpid(pid_, &status_, WNOHANG) == pid_) pid_ = 0;
  return pid_ <= 0;
}

void child_server::wait_for_end(const std::atomic<bool>& given_up) {
  while (!given_up && !ends_within(std::chrono::milliseconds(step_ms))) {
  }
}

bool child_server::ends_within(std::chrono::milliseconds limit) {
  const int end = pid_ > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)) : -1;
  pollfd ended{end, POLLIN, 0};
  if (!has_ended()) ::poll(&ended, 1, static_cast<int>(limit.count()));
  if (end >= 0) ::close(end);
  return has_ended();
}

std::string child_server::describe_end() const {
  if (WIFSIGNALED(status_)) return std::string("was ended by a signal: ") + ::strsignal(WTERMSIG(status_));
  return "ended with exit code " + std::to_string(WEXITSTATUS(status_));
}

bool child_server::hear() {
  pollfd pipe{pipe_, POLLIN, 0};
  if (::poll(&pipe, 1, step_ms) <= 0) return true;
  std::array<char, 4096> part;
  const ssize_t count = ::read(pipe_, part.data(), part.size());
  if (count > 0) told_.append(part.data(), static_cast<std::size_t>(count));
  return count > 0 && told_.size() < told_bytes_max;
}

result<child_server::door> child_server::wait_until_ready(std::chrono::seconds patience,
                                                          const std::atomic<bool>* given_up) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  bool is_open = true;
  while (std::chrono::steady_clock::now() < deadline) {
    if (given_up != nullptr && given_up->load())
      return failure{errc::cancelled, "the wait for the server was canceled"};
    const auto rest = told_.substr(std::min(told_.size(), told_.find('\n') + 1));  // after the port
    if (rest == ready_word) return door{"http://127.0.0.1:" + told_.substr(0, told_.find('\n')), api_key_};
    if (!is_open && told_.starts_with(failed_word)) return failure_told(told_);
    if (!is_open && rest.starts_with(failed_word)) return failure_told(rest);
    if (is_open)
      is_open = hear();
    else if (ends_within(std::chrono::milliseconds(step_ms)))
      return failure{errc::not_ready, "the server did not start: it " + describe_end()};
  }
  return failure{errc::timed_out,
                 "the server did not become ready within " + std::to_string(patience.count()) + " seconds"};
}

}  // namespace redline::actors::cli
