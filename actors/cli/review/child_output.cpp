#include "actors/cli/review/child_output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

extern char** environ;

namespace redline::actors::cli {
namespace {

constexpr std::size_t output_bytes_max = 64 << 20;
constexpr int no_program = 127;

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  return out;
}

/// The environment, with these variables replacing those of the same names.
std::vector<char*> environment_with(const std::vector<std::string>& variables) {
  auto out = pointers_to(variables);
  for (char** own = environ; *own != nullptr; ++own) {
    const std::string_view text = *own;
    const std::string_view name = text.substr(0, text.find('=') + 1);
    const bool is_replaced = std::any_of(variables.begin(), variables.end(),
                                         [&](const std::string& other) { return other.starts_with(name); });
    if (!is_replaced) out.push_back(*own);
  }
  out.push_back(nullptr);
  return out;
}

result<pid_t> start(const std::vector<std::string>& words, const std::vector<std::string>& variables,
                    const posix_spawn_file_actions_t* actions) {
  auto arguments = pointers_to(words);
  arguments.push_back(nullptr);
  const auto environment = environment_with(variables);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, arguments[0], actions, nullptr, arguments.data(), environment.data());
  if (error != 0) return failure{errc::io_error, "cannot run " + words[0] + ": " + std::strerror(error)};
  return child;
}

int exit_code_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// A pipe that closes its ends when destroyed.
struct pipe_ends {
  std::array<int, 2> ends{-1, -1};
  pipe_ends() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) ends = {-1, -1};
  }
  ~pipe_ends() {
    for (const int end : ends) {
      if (end >= 0) ::close(end);
    }
  }
  pipe_ends(const pipe_ends&) = delete;
  pipe_ends& operator=(const pipe_ends&) = delete;
  void close_writer() {
    ::close(ends[1]);
    ends[1] = -1;
  }
};

/// Reads both pipes to their ends. False if the output exceeds the limit.
bool read_both(const pipe_ends& out, const pipe_ends& error, child_outcome& into) {
  std::array<pollfd, 2> open{{{out.ends[0], POLLIN, 0}, {error.ends[0], POLLIN, 0}}};
  const std::array<std::string*, 2> texts{&into.out, &into.error};
  std::array<char, 65536> part;
  while (open[0].fd >= 0 || open[1].fd >= 0) {
    if (::poll(open.data(), open.size(), -1) < 0 && errno != EINTR) return true;
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (open[i].fd < 0 || open[i].revents == 0) continue;
      const ssize_t n = ::read(open[i].fd, part.data(), part.size());
      if (n > 0)
        texts[i]->append(part.data(), static_cast<std::size_t>(n));
      else if (n == 0 || errno != EINTR)
        open[i].fd = -1;  // poll ignores it
    }
    if (into.out.size() + into.error.size() > output_bytes_max) return false;
  }
  return true;
}

}  // namespace

result<child_outcome> run_for_output(const std::vector<std::string>& words, const std::vector<std::string>& variables) {
  pipe_ends out;
  pipe_ends error;
  if (out.ends[0] < 0 || error.ends[0] < 0)
    return failure{errc::io_error, std::string("pipe: ") + std::strerror(errno)};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out.ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, error.ends[1], STDERR_FILENO);
  const auto child = start(words, variables, &actions);
  ::posix_spawn_file_actions_destroy(&actions);
  child_outcome outcome;
  if (!child) {
    outcome.exit_code = no_program;
    outcome.error = child.error().context;
    return outcome;
  }
  out.close_writer();
  error.close_writer();
  const bool all = read_both(out, error, outcome);
  if (!all) ::kill(*child, SIGKILL);
  outcome.exit_code = exit_code_of(*child);
  if (!all) {
    return failure{errc::io_error, words[0] + " wrote more than " + std::to_string(output_bytes_max >> 20) + " MiB"};
  }
  return outcome;
}

result<int> run_on_terminal(const std::vector<std::string>& words) {
  REDLINE_TRY_ASSIGN(const pid_t child, start(words, {}, nullptr));
  return exit_code_of(child);
}

}  // namespace redline::actors::cli
