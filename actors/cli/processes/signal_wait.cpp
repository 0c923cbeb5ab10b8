#include "actors/cli/processes/signal_wait.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <thread>

#include "runtime/base/log.hpp"

namespace redline::actors::cli {
namespace {

// State of the signal handler, which may use only lock-free atomics and few functions other than write.
int pipe_ends[2] = {-1, -1};
std::atomic<bool> is_starting{true};
std::atomic<bool> tells_end{true};
std::atomic<int> signals_count{0};
std::atomic<bool> is_hung_up{false};  // and `wait` has not handled it yet
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void take_signal(int number) {
  const int before = errno;
  // Sends SIGHUP only once, so that the pipe always has space for the signals that end the process.
  if (number == SIGHUP && is_hung_up.exchange(true)) return;
  const int count = number == SIGHUP ? 0 : ++signals_count;
  if (is_starting && number != SIGHUP) {
    constexpr std::string_view text = "\nredline: ended by a signal while starting\n";
    if (tells_end) (void)!::write(STDERR_FILENO, text.data(), text.size());
    ::_exit(0);
  }
  if (count > 2) ::_exit(128 + number);
  const auto byte = static_cast<unsigned char>(number);
  (void)!::write(pipe_ends[1], &byte, 1);
  errno = before;
}

}  // namespace

signal_wait::signal_wait(bool is_told) {
  tells_end = is_told;
  if (::pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) != 0) throw std::system_error(errno, std::system_category(), "pipe2");
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, SIGTERM);
  sigaddset(&ours, SIGINT);
  sigaddset(&ours, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &ours, nullptr);
  struct sigaction action {};
  action.sa_handler = take_signal;
  action.sa_flags = SA_RESTART;
  action.sa_mask = ours;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGHUP, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
  // All other threads of the process block these signals, so this thread takes them at any time.
  std::thread([ours] {
    pthread_sigmask(SIG_UNBLOCK, &ours, nullptr);
    for (;;) ::pause();
  }).detach();
}

void signal_wait::note_started() { is_starting = false; }

int signal_wait::wait(std::chrono::milliseconds limit) {
  pollfd readable{pipe_ends[0], POLLIN, 0};
  if (::poll(&readable, 1, static_cast<int>(limit.count())) <= 0) return 0;
  unsigned char number = 0;
  if (::read(pipe_ends[0], &number, 1) != 1) return 0;
  if (number != SIGHUP) return number;
  is_hung_up = false;
  if (on_hang_up_)
    on_hang_up_();
  else
    log_line(log_level::info, "signals", "SIGHUP: this process has nothing to reload and continues");
  return 0;
}

}  // namespace redline::actors::cli
