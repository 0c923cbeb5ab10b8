#include "transport/http_client.hpp"

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <charconv>
#include <limits>
#include <optional>

namespace redline::transport {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;

constexpr std::uint32_t header_bytes_max = 64 << 10;

failure url_failure(std::string_view text, const std::string& why) {
  return {errc::invalid_argument, "URL \"" + std::string(text.substr(0, 200)) + "\": " + why};
}

std::string name_of_host(const http_url& url) {
  const bool is_v6 = url.host.find(':') != std::string::npos;
  return (is_v6 ? "[" + url.host + "]" : url.host) + ":" + std::to_string(url.port);
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

result<std::string> request_text(std::string_view method, const http_url& url, const std::vector<http_header>& headers,
                                 std::string_view body) {
  std::string text;
  text.append(method).append(" ").append(url.target).append(" HTTP/1.1\r\nHost: ").append(name_of_host(url));
  text.append("\r\nConnection: close\r\n");
  for (const auto& header : headers) {
    if (has_control(header.name) || has_control(header.value)) {
      return failure{errc::invalid_argument, "HTTP header \"" + header.name + "\" holds a control character"};
    }
    text.append(header.name).append(": ").append(header.value).append("\r\n");
  }
  if (!body.empty() || method == "POST") text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return text.append("\r\n").append(body);
}

/// A connection whose every step has a time limit: the step runs asynchronously on a private io_context, which is run
/// for so long and no longer.
class timed_socket {
 public:
  timed_socket(const http_url& url, const http_client_options& options)
      : options_(options), name_(name_of_host(url)), socket_(io_) {}

  result<void> connect(const http_url& url) {
    error_code ec;
    tcp::resolver resolver(io_);
    const auto found = resolver.resolve(url.host, std::to_string(url.port), tcp::resolver::numeric_service, ec);
    if (ec) return failure{errc::unreachable, name_ + ": cannot resolve the host: " + ec.message()};
    asio::async_connect(socket_, found, [&ec](error_code e, const tcp::endpoint&) { ec = e; });
    if (!run_for(options_.connect_timeout)) return late("connecting", options_.connect_timeout);
    if (ec) return failure{errc::unreachable, name_ + ": cannot connect: " + ec.message()};
    socket_.set_option(tcp::no_delay(true), ec);
    return {};
  }

  /// A server may answer and close before it has read everything, so a failed write is not the last word.
  result<void> write(std::string_view bytes) {
    for (std::size_t at = 0; at < bytes.size();) {
      error_code ec;
      std::size_t count = 0;
      socket_.async_write_some(asio::buffer(bytes.data() + at, bytes.size() - at), [&](error_code e, std::size_t n) {
        ec = e;
        count = n;
      });
      if (!run_for(options_.silence_timeout)) return late("sending the request", options_.silence_timeout);
      if (ec) return {};
      at += count;
    }
    return {};
  }

  /// The received bytes, valid until the next call; empty at the end of the stream.
  result<std::string_view> read() {
    error_code ec;
    std::size_t count = 0;
    socket_.async_read_some(asio::buffer(chunk_), [&](error_code e, std::size_t n) {
      ec = e;
      count = n;
    });
    if (!run_for(options_.silence_timeout)) return late("waiting for the response", options_.silence_timeout);
    if (ec == asio::error::eof) return std::string_view();
    if (ec) return failure{errc::io_error, name_ + ": the connection broke: " + ec.message()};
    return std::string_view(chunk_, count);
  }

  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  /// False when time ran out; the operation is cancelled and its handler has run in any case.
  bool run_for(std::chrono::milliseconds limit) {
    io_.restart();
    io_.run_for(limit);
    if (io_.stopped()) return true;
    error_code ignored;
    socket_.close(ignored);
    io_.run();
    return false;
  }

  failure late(const char* doing, std::chrono::milliseconds limit) const {
    return {errc::timed_out, name_ + ": no progress within " + std::to_string(limit.count()) + " ms while " + doing};
  }

  http_client_options options_;
  std::string name_;
  asio::io_context io_;
  tcp::socket socket_;
  char chunk_[16 << 10];
};

/// Feeds a response parser and hands out body pieces as they come.
class response_reader {
 public:
  response_reader(std::string_view method, std::uint64_t body_bytes_max, std::string peer) : peer_(std::move(peer)) {
    is_head_ = method == "HEAD";
    limit_ = body_bytes_max;
    reset();
  }

  /// Parses what can be parsed.
  result<void> feed(std::string_view bytes) {
    inbox_.append(bytes);
    while (!parser_->is_done() && !inbox_.empty()) {
      // See http_front: Beast 1.74 asserts on less.
      if (inbox_.size() < 5 && parser_->is_header_done() && parser_->chunked()) break;
      parser_->eager(parser_->is_header_done());  // see http_front
      error_code ec;
      const std::size_t used = parser_->put(asio::buffer(inbox_), ec);
      inbox_.erase(0, used);
      const bool wants_more = ec == http::error::need_more;
      if (ec && !wants_more) return malformed(ec.message());
      if (wants_more && inbox_.size() > header_bytes_max) return malformed("a header or chunk header is too long");
      if (parser_->is_done() && parser_->get().result_int() / 100 == 1) {
        reset();
        continue;
      }
      if (wants_more || used == 0) break;
    }
    return {};
  }

  result<void> end() {
    if (parser_->is_done()) return {};
    error_code ec = http::error::partial_message;
    if (parser_->is_header_done()) parser_->put_eof(ec);
    if (ec) return failure{errc::io_error, peer_ + ": the connection was closed before the end of the response"};
    return {};
  }

  void expect_stream() { parser_->body_limit(std::numeric_limits<std::uint64_t>::max()); }
  [[nodiscard]] bool has_head() const { return parser_->is_header_done(); }
  [[nodiscard]] bool is_done() const { return parser_->is_done(); }
  [[nodiscard]] std::string& body() { return parser_->get().body(); }

  [[nodiscard]] http_response head() const {
    http_response response;
    response.status = parser_->get().result_int();
    for (const auto& field : parser_->get()) {
      response.headers.push_back({std::string(field.name_string().data(), field.name_string().size()),
                                  std::string(field.value().data(), field.value().size())});
    }
    return response;
  }

 private:
  void reset() {
    parser_.emplace();
    parser_->header_limit(header_bytes_max);
    parser_->body_limit(limit_);
    parser_->skip(is_head_);
  }
  failure malformed(const std::string& why) const {
    return {errc::malformed_message, peer_ + ": the response is not valid HTTP: " + why};
  }

  std::optional<http::response_parser<http::string_body>> parser_;
  std::string peer_;
  std::string inbox_;
  std::uint64_t limit_ = 0;
  bool is_head_ = false;
};

bool is_event_stream(const http_response& head) {
  const auto* type = head.header("content-type");
  return head.status / 100 == 2 && type && equal_ignoring_case(type->substr(0, 17), "text/event-stream");
}

/// The one exchange behind every public call. on_event may be null.
result<http_response> exchange(std::string_view method, const http_url& url, const std::vector<http_header>& headers,
                               std::string_view body, const sse_handler* on_event, const http_client_options& options) {
  REDLINE_TRY_ASSIGN(const std::string request, request_text(method, url, headers, body));
  timed_socket socket(url, options);
  REDLINE_TRY(socket.connect(url));
  REDLINE_TRY(socket.write(request));

  response_reader reader(method, options.body_bytes_max, socket.name());
  sse_parser events(options.body_bytes_max);
  std::optional<http_response> head;
  bool streams = false;
  while (!reader.is_done()) {
    REDLINE_TRY_ASSIGN(const std::string_view bytes, socket.read());
    if (bytes.empty()) {
      REDLINE_TRY(reader.end());
    } else {
      REDLINE_TRY(reader.feed(bytes));
    }
    if (!head && reader.has_head()) {
      head = reader.head();
      streams = on_event && is_event_stream(*head);
      if (streams) reader.expect_stream();
    }
    if (streams) {
      REDLINE_TRY_ASSIGN(const bool wants_more, events.feed(reader.body(), *on_event));
      reader.body().clear();
      if (!wants_more) return *head;
    }
    if (bytes.empty()) break;
  }
  if (!head) return failure{errc::io_error, socket.name() + ": the connection was closed before a response"};
  if (!streams) head->body = std::move(reader.body());
  return *head;
}

}  // namespace

result<http_url> parse_http_url(std::string_view text) {
  std::string_view rest = text;
  const auto scheme_end = rest.find("://");
  if (scheme_end == std::string_view::npos) return url_failure(text, "wanted http://host[:port][/path]");
  const auto scheme = rest.substr(0, scheme_end);
  if (equal_ignoring_case(scheme, "https")) {
    return failure{errc::unsupported_format, "URL \"" + std::string(text.substr(0, 200)) +
                                                 "\": https is unsupported; use http, or a local TLS proxy"};
  }
  if (!equal_ignoring_case(scheme, "http")) return url_failure(text, "the scheme must be http");
  rest.remove_prefix(scheme_end + 3);
  if (has_control(text) || text.find(' ') != std::string_view::npos) return url_failure(text, "holds a blank");
  rest = rest.substr(0, rest.find('#'));

  http_url url;
  const auto authority_end = std::min(rest.find_first_of("/?"), rest.size());
  std::string_view authority = rest.substr(0, authority_end);
  if (authority_end < rest.size()) url.target = rest.substr(authority_end);
  if (url.target.front() == '?') url.target.insert(0, "/");
  if (authority.find('@') != std::string_view::npos) return url_failure(text, "user names are unsupported");

  std::string_view port;
  if (authority.starts_with('[')) {
    const auto close = authority.find(']');
    if (close == std::string_view::npos) return url_failure(text, "the closing bracket is missing");
    url.host = authority.substr(1, close - 1);
    port = authority.substr(close + 1);
  } else {
    const auto colon = std::min(authority.find(':'), authority.size());
    url.host = authority.substr(0, colon);
    port = authority.substr(colon);
  }
  if (url.host.empty()) return url_failure(text, "the host is missing");
  if (port.empty() || port == ":") return url;
  const auto [end, ec] = std::from_chars(port.data() + 1, port.data() + port.size(), url.port);
  if (port.front() != ':' || ec != std::errc() || end != port.data() + port.size() || url.port == 0) {
    return url_failure(text, "the port must be a number from 1 to 65535");
  }
  return url;
}

result<http_response> http_call(std::string_view method, const http_url& url, const std::vector<http_header>& headers,
                                std::string_view body, const http_client_options& options) {
  return exchange(method, url, headers, body, nullptr, options);
}

result<http_response> http_get(const http_url& url, const std::vector<http_header>& headers,
                               const http_client_options& options) {
  return exchange("GET", url, headers, {}, nullptr, options);
}

result<http_response> http_post(const http_url& url, const std::vector<http_header>& headers, std::string_view body,
                                const http_client_options& options) {
  return exchange("POST", url, headers, body, nullptr, options);
}

result<http_response> http_post_stream(const http_url& url, const std::vector<http_header>& headers,
                                       std::string_view body, const sse_handler& on_event,
                                       const http_client_options& options) {
  return exchange("POST", url, headers, body, &on_event, options);
}

result<bool> sse_parser::feed(std::string_view bytes, const sse_handler& on_event) {
  for (const char c : bytes) {
    const bool is_second_half = after_cr_ && c == '\n';
    after_cr_ = c == '\r';
    if (is_second_half) continue;
    if (c != '\r' && c != '\n') {
      line_.push_back(c);
      if (line_.size() + event_.data.size() > event_bytes_max_) {
        return failure{errc::malformed_message,
                       "event stream: an event has more than " + std::to_string(event_bytes_max_) + " bytes"};
      }
      continue;
    }
    const bool wants_more = take_line(line_, on_event);
    line_.clear();
    if (!wants_more) return false;
  }
  return true;
}

bool sse_parser::take_line(std::string_view line, const sse_handler& on_event) {
  if (line.empty()) {
    const bool complete = has_data_;
    has_data_ = false;
    sse_event event = std::move(event_);
    event_ = {};
    event_.id = event.id;
    return complete ? on_event(event) : true;
  }
  const auto colon = std::min(line.find(':'), line.size());
  const auto name = line.substr(0, colon);
  auto value = line.substr(std::min(colon + 1, line.size()));
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (name == "data") {
    if (has_data_) event_.data.push_back('\n');
    event_.data.append(value);
    has_data_ = true;
  } else if (name == "event") {
    event_.type = value;
  } else if (name == "id") {
    event_.id = value;
  }
  return true;
}

}  // namespace redline::transport
