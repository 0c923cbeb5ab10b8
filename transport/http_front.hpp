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

/// One request and its response. Never reused while the process lives.
using exchange_id = redline::strong_id<struct exchange_tag>;

/// An HTTP/1.1 server that knows nothing of what it serves. Everything, calls and callbacks alike, happens on the one
/// thread that runs the io_context, which must outlive the front.
///
/// An exchange begins with on_request and ends exactly once: by respond, end_stream, fail or close_all (nothing is
/// called back afterwards), or by on_closed, when the client is gone first or answer_timeout has passed. A client that
/// shuts down only its sending side counts as gone. Calls for an exchange that has ended are ignored. Requests sent
/// ahead on one connection are kept and served in order. What is wrong with HTTP itself is answered here, with an
/// OpenAI error object; such requests reach no handler.
class http_front {
 public:
  struct options {
    std::string address = "127.0.0.1";  // numeric, IPv4 or IPv6 (with or without brackets), or a host name
    std::uint16_t port = 8080;          // 0: any free port
    std::uint32_t header_bytes_max = sizes::http_header_bytes_max;
    std::uint64_t body_bytes_max = sizes::http_body_bytes_max;  // a larger one: 413, before it is read
    /// Received but not yet handed out, over all connections. Past it the connections with more than a fair share are
    /// refused, the one that began first before others; what holds less than `small_bytes` always passes.
    std::uint64_t received_bytes_max = 256 << 20;
    /// The same for answers that are not yet sent.
    std::uint64_t unsent_bytes_max = 256 << 20;
    std::uint64_t small_bytes = 256 << 10;
    /// When all are in use, one that waits for its client gives way to a new one: first the longest idle, then those
    /// with a request that is not complete. The rest is told 503.
    std::size_t connections_max = 1024;
    /// Of one remote address (of IPv6 the first 64 bits). Loopback has no bound: a proxy there speaks for all its
    /// clients. 0: no bound.
    std::size_t connections_per_address_max = 256;
    bool bounds_loopback = false;  // loopback has the bound, too
    /// A share of the requests under way, for those who send them (handlers::owner_of). Who has as many may have more
    /// while more than such a share is left for others; then: 429. 0: no bound.
    std::size_t requests_per_owner_max = 256;
    std::chrono::milliseconds first_byte_timeout{10'000};  // from a connection's start to its first request
    std::chrono::milliseconds idle_timeout{75'000};        // between requests on a kept connection
    std::chrono::milliseconds read_timeout{60'000};        // from a request's first byte to its last
    /// Without a byte or another sign of the answer (note_progress): the exchange fails with 504, or its stream with an
    /// error event, and on_closed is called. A client that reads slowly is not the handler's fault.
    std::chrono::milliseconds answer_timeout{1'800'000};
    /// For each 64 KiB piece of a response to enter the kernel: a slower reader is dropped.
    std::chrono::milliseconds write_timeout{30'000};
    /// A response with more unsent bytes than `high` is reported by on_flow(paused), and again when under `low`. Data
    /// already on its way may still be written; past `max` the client is dropped.
    std::uint64_t buffered_bytes_high = 256 << 10;
    std::uint64_t buffered_bytes_low = 64 << 10;
    std::uint64_t buffered_bytes_max = 16 << 20;
    /// The kernel's send buffer hides a slow reader, so it is bounded too. 0: the system's default.
    std::uint32_t socket_send_bytes = 256 << 10;
    /// A comment is sent on an event stream that was silent this long, and a blank line on an answer that is held open.
    /// 0: never.
    std::chrono::milliseconds ping_interval{15'000};
    /// An answer that is held open begins after so long, half of what proxies usually wait for one.
    std::chrono::milliseconds hold_after{30'000};
  };

  /// The value of a request's header; the first of several.
  using header_finder = std::function<std::optional<std::string_view>(std::string_view name)>;

  struct handlers {
    std::function<void(exchange_id, http_request)> on_request;
    std::function<void(exchange_id)> on_closed;             // over before the answer's end
    std::function<void(exchange_id, bool paused)> on_flow;  // the response's buffer passed a mark
    /// Who sends the request with these headers, before its body is read; 0, or no function: nobody that has a share.
    std::function<std::uint64_t(const header_finder&)> owner_of;
  };

  static result<std::unique_ptr<http_front>> listen(boost::asio::io_context& io, options what, handlers whom);
  /// Closes everything without callbacks. Not to be called from within one.
  ~http_front();

  [[nodiscard]] std::uint16_t port() const;

  /// The whole answer. Content-Length, Date and Connection are added here. HEAD, 204 and 304 send no body.
  void respond(exchange_id id, unsigned status, std::vector<http_header> headers, std::string body);

  /// Sends the head at once. When Content-Type is text/event-stream each write must hold whole events, since pings go
  /// between writes.
  void begin_stream(exchange_id id, unsigned status, std::vector<http_header> headers);
  void write(exchange_id id, std::string data);
  void end_stream(exchange_id id);

  /// The answer is being made: answer_timeout begins anew.
  void note_progress(exchange_id id);
  /// The answer will be a 200 with these headers, whose body may begin with blank lines (as JSON may), or an error.
  /// When it takes longer than hold_after, status and headers are sent with a blank line, and one more each
  /// ping_interval, so that nobody on the way gives up. What an error finds begun it breaks off: the client sees that
  /// there is no answer.
  void hold_open(exchange_id id, std::vector<http_header> headers);
  /// Ends the exchange with an error wherever it stands: with a whole answer; in an event stream with `error` as the
  /// last event; any other stream breaks off. error: JSON.
  void fail(exchange_id id, unsigned status, std::vector<http_header> headers, const std::string& error);
  /// The same for all exchanges, each of which is then reported by on_closed.
  void fail_all(unsigned status, const std::string& error);

  /// Each connection ends with its current or next exchange. New ones are taken as before, so that health checks are
  /// answered: what else to answer is the handler's business.
  void drain();
  /// Connections with an exchange that is not ended and fully sent, or whose client has not yet taken the end.
  [[nodiscard]] std::size_t busy_connections() const;
  /// Not ended, or ended and not yet fully sent.
  [[nodiscard]] std::size_t open_exchanges() const;
  void close_all();

 private:
  class connection;
  struct impl;
  explicit http_front(std::shared_ptr<impl> state);
  std::shared_ptr<impl> impl_;
};

}  // namespace redline::transport
