#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace redline::test {

/// A TCP client that sends exact bytes, for tests of servers. Every wait ends after ten seconds.
class raw_client {
 public:
  /// receive_bytes: size of the kernel's receive buffer, to imitate a slow reader; 0 means the default.
  explicit raw_client(std::uint16_t port, int receive_bytes = 0, const char* address = "127.0.0.1") {
    const bool is_v6 = std::string_view(address).find(':') != std::string_view::npos;
    socket_ = ::socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_bytes > 0) setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    int failed = -1;
    if (is_v6) {
      sockaddr_in6 to{};
      to.sin6_family = AF_INET6;
      to.sin6_port = htons(port);
      inet_pton(AF_INET6, address, &to.sin6_addr);
      failed = ::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to);
    } else {
      sockaddr_in to{};
      to.sin_family = AF_INET;
      to.sin_port = htons(port);
      inet_pton(AF_INET, address, &to.sin_addr);
      failed = ::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to);
    }
    if (failed != 0) close();
  }
  raw_client(const raw_client&) = delete;
  raw_client& operator=(const raw_client&) = delete;
  ~raw_client() { close(); }

  [[nodiscard]] bool is_connected() const { return socket_ >= 0; }
  [[nodiscard]] int descriptor() const { return socket_; }

  /// Returns false if the server closed before everything was sent.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  /// Reads everything up to and including `mark`, or all received bytes if it does not arrive.
  std::string read_until(std::string_view mark) {
    for (;;) {
      const auto at = received_.find(mark);
      if (at != std::string::npos) return take(at + mark.size());
      if (!receive()) return take(received_.size());
    }
  }

  std::string read_exactly(std::size_t count) {
    while (received_.size() < count && receive()) {
    }
    return take(std::min(count, received_.size()));
  }

  /// Reads a response with Content-Length: head and body.
  std::pair<std::string, std::string> read_response() {
    const std::string head = read_until("\r\n\r\n");
    const auto at = head.find("Content-Length: ");
    if (at == std::string::npos) return {head, ""};
    return {head, read_exactly(std::stoul(head.substr(at + 16)))};
  }

  /// Reads until the server closes.
  std::string read_all() {
    while (receive()) {
    }
    return take(received_.size());
  }

  /// Whether the server closed, gracefully or not, with nothing left to read.
  bool is_closed_by_server() { return received_.empty() && !receive() && ended_; }

  void shut_down_sending() { ::shutdown(socket_, SHUT_WR); }
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }

 private:
  bool receive() {
    if (socket_ < 0) return false;
    pollfd wait{socket_, POLLIN, 0};
    if (::poll(&wait, 1, 10'000) != 1) return false;
    char bytes[16 << 10];
    const auto count = ::recv(socket_, bytes, sizeof bytes, 0);
    ended_ = count <= 0;
    if (ended_) return false;
    received_.append(bytes, static_cast<std::size_t>(count));
    return true;
  }
  std::string take(std::size_t count) {
    std::string taken = received_.substr(0, count);
    received_.erase(0, count);
    return taken;
  }

  int socket_ = -1;
  bool ended_ = false;
  std::string received_;
};

}  // namespace redline::test
