#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/size_limits.hpp"
#include "transport/http_message.hpp"

namespace boost::asio {
class io_context;
}

namespace redline::transport {

/// One request and its response. Ids are never reused in a process.
using exchange_id = redline::strong_id<struct exchange_tag>;

/// An HTTP/1.1 server that is independent of what it serves. All calls and callbacks happen on the one thread that runs
/// the io_context, which must outlive the server.
///
/// An exchange begins with on_request and ends exactly once: by respond, end_stream, fail or close_all, after which
/// nothing is called back; or by on_closed, if the client is gone first or answer_timeout has passed. A client that
/// shuts down only its sending side counts as gone. Calls for an exchange that has ended are ignored. Requests sent
/// ahead on one connection are queued and served in order. HTTP errors are answered here with an OpenAI error object
/// and never reach a handler.
class http_front {
 public:
  struct options {
    std::string address = "127.0.0.1";  // numeric, IPv4 or IPv6 (with or without brackets), or a host name
    std::uint16_t port = 8080;          // 0 means any free port
    std::uint32_t header_bytes_max = sizes::http_header_bytes_max;
    std::uint64_t body_bytes_max =
        sizes::http_body_bytes_max;  // larger bodies are refused with 413 before they are read
    /// Limit of bytes received but not yet passed on, over all connections. Above it, connections with more than a fair
    /// share are refused, the oldest first; a connection with less than `small_bytes` always passes.
    std::uint64_t received_bytes_max = 256 << 20;
    /// The same limit for unsent answers.
    std::uint64_t unsent_bytes_max = 256 << 20;
    std::uint64_t small_bytes = 256 << 10;
    /// If all connections are in use, one that waits for its client is closed for a new one: the longest idle first,
    /// then those with an incomplete request. If there is none, the new one gets 503.
    std::size_t connections_max = 1024;
    /// Limit per remote address (for IPv6 the first 64 bits). Loopback is unlimited, because a proxy there serves all
    /// its clients. 0 means no limit.
    std::size_t connections_per_address_max = 256;
    bool bounds_loopback = false;  // the limit applies to loopback, too
    /// The share of concurrent requests per owner (handlers::owner_of). An owner that has used it up may have more
    /// while more than one such share remains for others; after that it gets 429. 0 means no limit.
    std::size_t requests_per_owner_max = 256;
    std::chrono::milliseconds first_byte_timeout{10'000};  // from a connection's start to its first request
    std::chrono::milliseconds idle_timeout{75'000};        // between requests on a kept connection
    std::chrono::milliseconds read_timeout{60'000};        // from a request's first byte to its last
    /// Time without a byte or another sign of progress (note_progress). After it the exchange fails with 504, or its
    /// stream with an error event, and on_closed is called. Time that a slow reader takes does not count.
    std::chrono::milliseconds answer_timeout{1'800'000};
    /// Time for each 64 KiB piece of a response to enter the kernel. A slower reader is dropped.
    std::chrono::milliseconds write_timeout{30'000};
    /// on_flow reports when a response has more unsent bytes than `high`, and again when it is below `low`. Data
    /// already on its way may still be written; above `max` the client is dropped.
    std::uint64_t buffered_bytes_high = 256 << 10;
    std::uint64_t buffered_bytes_low = 64 << 10;
    std::uint64_t buffered_bytes_max = 16 << 20;
    /// The kernel's send buffer hides a slow reader, so it is bounded, too. 0 means the system's default.
    std::uint32_t socket_send_bytes = 256 << 10;
    /// After this long without output, an event stream gets a comment, and a response that is held open a blank line. 0
    /// means never.
    std::chrono::milliseconds ping_interval{15'000};
    /// A response that is held open begins after this time, half of what proxies usually wait.
    std::chrono::milliseconds hold_after{30'000};
    /// The clock of all these times; how often they are looked at follows the real one.
    std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  };

  /// Returns the value of a request header, the first one if there are several.
  using header_finder = std::function<std::optional<std::string_view>(std::string_view name)>;

  struct handlers {
    std::function<void(exchange_id, http_request)> on_request;
    std::function<void(exchange_id)> on_closed;             // the exchange ended before its answer did
    std::function<void(exchange_id, bool paused)> on_flow;  // the response's buffer crossed a mark
    /// The owner of a request with these headers, asked before the body is read. 0, or no function, means that the
    /// request has no share.
    std::function<std::uint64_t(const header_finder&)> owner_of;
  };

  static result<std::unique_ptr<http_front>> listen(boost::asio::io_context& io, options what, handlers whom);
  /// Closes everything without callbacks. Must not be called from within one.
  ~http_front();

  [[nodiscard]] std::uint16_t port() const;

  /// Sends the whole answer. Content-Length, Date and Connection are added here. HEAD, 204 and 304 send no body.
  void respond(exchange_id id, unsigned status, std::vector<http_header> headers, std::string body);

  /// Sends the head at once. If Content-Type is text/event-stream, each write must contain whole events, because pings
  /// go between writes.
  void begin_stream(exchange_id id, unsigned status, std::vector<http_header> headers);
  void write(exchange_id id, std::string data);
  void end_stream(exchange_id id);

  /// Reports progress on the answer: answer_timeout starts again.
  void note_progress(exchange_id id);
  /// Announces that the answer will be a 200 with these headers, whose body may begin with blank lines (as JSON may),
  /// or an error. If it takes longer than hold_after, status and headers are sent with a blank line, and one more each
  /// ping_interval, so that no client or proxy times out. An error after that breaks the response off: the client sees
  /// that there is no answer.
  void hold_open(exchange_id id, std::vector<http_header> headers);
  /// Ends the exchange with an error in any state: with a whole answer, or in an event stream with `error` as the last
  /// event. Any other stream is broken off. `error` is JSON.
  void fail(exchange_id id, unsigned status, std::vector<http_header> headers, const std::string& error);
  /// Fails all exchanges, and calls on_closed for each.
  void fail_all(unsigned status, const std::string& error);

  /// Ends each connection with its current or next exchange. New connections are still accepted, so that health checks
  /// are answered; the handler decides what else to answer.
  void drain();
  /// The number of connections with an exchange that has not ended or is not fully sent, or whose client has not yet
  /// read the end.
  [[nodiscard]] std::size_t busy_connections() const;
  /// The number of exchanges that have not ended or are not fully sent.
  [[nodiscard]] std::size_t open_exchanges() const;
  void close_all();

 private:
  class connection;
  struct impl;
  explicit http_front(std::shared_ptr<impl> state);
  std::shared_ptr<impl> impl_;
};

}  // namespace redline::transport
