// Any bytes on a connection give the same requests and the same answers wherever they are cut: whole, in two at a
// position that depends on the bytes, and, for one input in sixteen, byte by byte.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "runtime/base/log.hpp"
#include "tests/fuzz/driver.hpp"
#include "transport/http_front.hpp"

using namespace redline;
using namespace redline::transport;

namespace {

constexpr std::size_t input_bytes_max = 1024;
constexpr std::size_t body_bytes_max = 64;

/// A server on the test's thread, which runs it when there is something to do.
class server {
 public:
  server() {
    http_front::options what{.port = 0, .header_bytes_max = 512, .body_bytes_max = body_bytes_max};
    http_front::handlers whom;
    whom.on_request = [this](exchange_id id, http_request request) {
      if (request.body.size() > body_bytes_max || request.path.empty()) std::abort();
      seen_ += request.method + " " + request.path + "?" + request.query + "\n";
      for (const auto& h : request.headers) seen_ += h.name + ": " + h.value + "\n";
      seen_ += "\n" + request.body + "\n";
      front_->respond(id, 200, {}, std::to_string(request.body.size()));
    };
    auto made = http_front::listen(io_, what, std::move(whom));
    if (!made) std::abort();
    front_ = std::move(*made);
  }

  /// Returns what the server received and answered. The pieces arrive in order, and then the client stops sending.
  std::string serve(const std::vector<std::string_view>& pieces) {
    seen_.clear();
    const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(front_->port());
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(client, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) std::abort();
    // Closing resets the connection, so that a long run does not exhaust the ports.
    const linger at_once{1, 0};
    ::setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    const int now = 1;
    ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &now, sizeof now);
    for (const auto piece : pieces) {
      if (::send(client, piece.data(), piece.size(), MSG_NOSIGNAL) < 0) break;
      io_.poll();
    }
    ::shutdown(client, SHUT_WR);
    const std::string said = read_all(client);
    ::close(client);
    io_.poll();
    return seen_ + "---\n" + to_answers(said);
  }

 private:
  /// Reads until the server closes.
  std::string read_all(int from) {
    std::string all;
    for (;;) {
      char bytes[4096];
      const auto count = ::recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
      if (count > 0) {
        all.append(bytes, static_cast<std::size_t>(count));
      } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
        return all;
      } else {
        io_.poll();
      }
    }
  }
  /// Returns the answers without what may differ: the date; "100 Continue", which is only sent when a body is not there
  /// yet; and whether and how the parser rejects a request before or after it is complete, as it is not served either
  /// way.
  static std::string to_answers(std::string text) {
    for (const std::string refused : {"HTTP/1.1 4", "HTTP/1.1 5"})
      text.resize(std::min(text.size(), text.find(refused)));
    const std::string go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    for (std::size_t at = 0; (at = text.find(go_on, at)) != std::string::npos;) text.erase(at, go_on.size());
    for (std::size_t at = 0; (at = text.find("\r\nDate: ", at)) != std::string::npos;) {
      text.erase(at, text.find("\r\n", at + 2) - at);
    }
    return text;
  }

  boost::asio::io_context io_{1};
  std::unique_ptr<http_front> front_;
  std::string seen_;
};

void check(const std::string& cut, const std::string& whole) {
  if (cut == whole) return;
  std::fprintf(stderr, "whole:\n%s\nin pieces:\n%s\n", whole.c_str(), cut.c_str());
  std::abort();
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  const std::string post = "POST /v1/x?a=b HTTP/1.1\r\nHost: h\r\n";
  const std::string chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
  return {
      "GET /a%20b HTTP/1.1\r\nHost: h\r\nX-Request-Id: 1\r\n\r\n",
      "HEAD / HTTP/1.1\r\nHost: h\r\n\r\nOPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET http://h:80/p HTTP/1.0\r\n\r\n",
      post + "Content-Length: 10\r\n\r\n0123456789",
      post + "Content-Length: 5\r\nConnection: close\r\n\r\nhello",
      post + "Content-Length: 65\r\n\r\n" + std::string(65, 'x'),
      post + "Content-Length: 2\r\nExpect: 100-continue\r\n\r\nok\r\n" + post + "Content-Length: 1\r\n\r\nx",
      post + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      post + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
      post + "Transfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
      chunked + "5\r\nhello\r\n6;x=\"y\"\r\n world\r\n0\r\n\r\n",
      chunked + "1\r\nx\r\n0\r\nTrailer: v\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
      chunked + "41\r\n" + std::string(65, 'x') + "\r\n0\r\n\r\n",
      chunked + "20\r\n" + std::string(32, 'x') + "\r\n20\r\n" + std::string(32, 'y') + "\r\n1\r\nz\r\n0\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(600, 'x') + "\r\n\r\n",
  };
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool is_quiet = (configure_log(log_level::off, log_format::text), true);
  if (!is_quiet) std::abort();
  static server s;
  const std::string_view bytes(reinterpret_cast<const char*>(data), std::min(size, input_bytes_max));
  if (bytes.empty()) return 0;
  const std::string whole = s.serve({bytes});
  std::uint32_t sum = 0;
  for (const char c : bytes) sum = sum * 31 + static_cast<unsigned char>(c);
  const std::size_t cut = sum % bytes.size();
  check(s.serve({bytes.substr(0, cut), bytes.substr(cut)}), whole);
  // Sending byte by byte takes as long as a hundred other inputs, so only some are sent that way.
  if (bytes.size() > 64 && (sum >> 16) % 16 != 0) return 0;
  std::vector<std::string_view> singles;
  for (std::size_t i = 0; i < bytes.size(); ++i) singles.push_back(bytes.substr(i, 1));
  check(s.serve(singles), whole);
  return 0;
}
