#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"
#include "transport/http_message.hpp"

namespace redline::transport {

struct http_url {
  std::string host;  // without brackets
  std::uint16_t port = 80;
  std::string target = "/";  // path and query
  bool secure = false;       // https
  bool operator==(const http_url&) const = default;
};

/// "http://host[:port][/path][?query]", or https.
result<http_url> parse_http_url(std::string_view text);

struct http_response {
  unsigned status = 0;
  std::vector<http_header> headers;
  std::string body;

  /// The first header called `name`, ignoring case; null if there is none.
  [[nodiscard]] const std::string* header(std::string_view name) const { return find_header(headers, name); }
};

struct http_client_options {
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds silence_timeout{600'000};  // between two pieces sent or received
  std::uint64_t body_bytes_max = 64 << 20;             // does not apply to event streams, where it bounds one event
  // Once true, the call ends with errc::cancelled within 50 ms, whatever it waits for. May be null.
  const std::atomic<bool>* given_up = nullptr;
};

/// Sends one request on its own connection and blocks until the whole response has arrived. Redirects are not followed.
/// A server's certificate is checked against the system's authorities, or those in $SSL_CERT_FILE. Proxies come from
/// http_proxy, https_proxy and no_proxy; loopback never uses one.
result<http_response> http_call(std::string_view method, const http_url& url, const std::vector<http_header>& headers,
                                std::string_view body, const http_client_options& options = {});
result<http_response> http_get(const http_url& url, const std::vector<http_header>& headers = {},
                               const http_client_options& options = {});
result<http_response> http_post(const http_url& url, const std::vector<http_header>& headers, std::string_view body,
                                const http_client_options& options = {});

struct sse_event {
  std::string type = "message";
  std::string data;  // lines joined by "\n"
  std::string id;
};

/// Called per event; returning false ends the call and closes the connection.
using sse_handler = std::function<bool(const sse_event&)>;

/// Splits a byte stream into server-sent events. Comments (pings) and unknown fields are skipped.
class sse_parser {
 public:
  explicit sse_parser(std::size_t event_bytes_max) : event_bytes_max_(event_bytes_max) {}

  /// Returns false if the handler ended the call. Fails if an event is larger than allowed.
  result<bool> feed(std::string_view bytes, const sse_handler& on_event);

 private:
  bool take_line(std::string_view line, const sse_handler& on_event);

  std::size_t event_bytes_max_;
  std::string line_;
  sse_event event_;
  bool has_data_ = false;
  bool after_cr_ = false;  // a line feed after this carriage return belongs to it
};

/// Posts a request and calls the handler per event of the answer. If the answer is not a 2xx event stream, it is
/// collected into `body` and the handler is not called. Returns when the stream ends or the handler returned false.
result<http_response> http_post_stream(const http_url& url, const std::vector<http_header>& headers,
                                       std::string_view body, const sse_handler& on_event,
                                       const http_client_options& options = {});
/// Reads the stream with GET instead.
result<http_response> http_get_stream(const http_url& url, const std::vector<http_header>& headers,
                                      const sse_handler& on_event, const http_client_options& options = {});

}  // namespace redline::transport
