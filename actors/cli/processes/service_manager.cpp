#include "actors/cli/processes/service_manager.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace redline::actors::cli {
namespace {

constexpr auto between_progress = std::chrono::seconds(5);
constexpr auto more_time = std::chrono::microseconds(std::chrono::seconds(60));

std::string read_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::optional<long long> read_number(const char* name) {
  const std::string text = read_variable(name);
  long long number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number <= 0) return std::nullopt;
  return number;
}

}  // namespace

service_manager::service_manager(std::function<clock::time_point()> now)
    : now_(std::move(now)), path_(read_variable("NOTIFY_SOCKET")) {
  // A path, or an abstract socket name that begins with '@'.
  if (path_.size() < 2 || path_.size() >= sizeof(sockaddr_un::sun_path) || (path_[0] != '/' && path_[0] != '@')) {
    path_.clear();
    return;
  }
  socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  // The variables may be meant for another process.
  const auto pid = read_number("WATCHDOG_PID");
  if (pid && *pid != ::getpid()) return;
  if (const auto us = read_number("WATCHDOG_USEC")) watchdog_ = std::chrono::microseconds(*us);
}

service_manager::~service_manager() {
  if (socket_ >= 0) ::close(socket_);
}

void service_manager::tell(const std::string& words) const {
  if (path_.empty() || socket_ < 0) return;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, path_.data(), path_.size());
  if (path_[0] == '@') to.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path_.size());
  (void)!::sendto(socket_, words.data(), words.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to), size);
}

bool service_manager::is_due(clock::duration every) {
  const auto now = now_();
  if (told_ && now - *told_ < every) return false;
  told_ = now;
  return true;
}

void service_manager::note_progress() {
  if (is_due(between_progress)) tell("EXTEND_TIMEOUT_USEC=" + std::to_string(more_time.count()) + "\nSTATUS=loading");
}

void service_manager::note_ready() {
  told_.reset();
  tell("READY=1\nSTATUS=serving");
}

void service_manager::note_alive() {
  if (watchdog_ && is_due(*watchdog_ / 4)) tell("WATCHDOG=1");
}

void service_manager::note_stopping() { tell("STOPPING=1\nSTATUS=ending"); }

}  // namespace redline::actors::cli
