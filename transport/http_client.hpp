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

  /// The first header called `name`, whatever its case; null when there is none.
  [[nodiscard]] const std::string* header(std::string_view name) const { return find_header(headers, name); }
};

struct http_client_options {
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds silence_timeout{600'000};  // between two pieces sent or received
  std::uint64_t body_bytes_max = 64 << 20;             // not for event streams, where it bounds one event
  // Once true the call ends with errc::cancelled within 50 ms, whatever it waits for. Null: nobody gives up.
  const std::atomic<bool>* given_up = nullptr;
};

/// One request on a connection of its own; blocks until the whole response is there. Redirects are not followed. A
/// server's certificate is checked against the system's authorities, or those in $SSL_CERT_FILE. Proxies are those that
/// http_proxy, https_proxy and no_proxy name, but none for this machine.
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

/// Called per event; false ends the call and closes the connection.
using sse_handler = std::function<bool(const sse_event&)>;

/// Splits a byte stream into server-sent events. Comments (pings) and unknown fields are skipped.
class sse_parser {
 public:
  explicit sse_parser(std::size_t event_bytes_max) : event_bytes_max_(event_bytes_max) {}

  /// False when the handler wants no more. Fails when an event is larger than allowed.
  result<bool> feed(std::string_view bytes, const sse_handler& on_event);

 private:
  bool take_line(std::string_view line, const sse_handler& on_event);

  std::size_t event_bytes_max_;
  std::string line_;
  sse_event event_;
  bool has_data_ = false;
  bool after_cr_ = false;  // a line feed after this carriage return belongs to it
};

/// Posts and calls back per event of the answer. An answer that is no 2xx event stream is collected into `body`
/// instead, and no event is seen. The result is there when the stream ends or the handler returned false.
result<http_response> http_post_stream(const http_url& url, const std::vector<http_header>& headers,
                                       std::string_view body, const sse_handler& on_event,
                                       const http_client_options& options = {});
/// The same for a stream that is read with GET.
result<http_response> http_get_stream(const http_url& url, const std::vector<http_header>& headers,
                                      const sse_handler& on_event, const http_client_options& options = {});

}  // namespace redline::transport
