#include "transport/http_client.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

namespace redline::transport {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t head_bytes_max = 64 << 10;

template<auto Free>
struct freed_by {
  template<class T>
  void operator()(T* held) const {
    Free(held);
  }
};
using curl_easy = std::unique_ptr<CURL, freed_by<curl_easy_cleanup>>;
using curl_multi = std::unique_ptr<CURLM, freed_by<curl_multi_cleanup>>;
using curl_list = std::unique_ptr<curl_slist, freed_by<curl_slist_free_all>>;
using curl_parts = std::unique_ptr<CURLU, freed_by<curl_url_cleanup>>;

failure url_failure(std::string_view text, const std::string& why) {
  return {errc::invalid_argument, "URL \"" + std::string(text.substr(0, 200)) + "\": " + why};
}

std::string authority(const http_url& url) {
  const bool is_v6 = url.host.find(':') != std::string::npos;
  return (is_v6 ? "[" + url.host + "]" : url.host) + ":" + std::to_string(url.port);
}

bool is_loopback(const std::string& host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

bool is_event_stream(const http_response& head) {
  const auto* type = head.header("content-type");
  return head.status / 100 == 2 && type && equal_ignoring_case(type->substr(0, 17), "text/event-stream");
}

/// One request and its response by libcurl. The time limits are ours, because libcurl's count in seconds.
class exchange {
 public:
  exchange(const http_url& url, const http_client_options& options, const sse_handler* on_event)
      : peer_(authority(url)), options_(options), on_event_(on_event), events_(options.body_bytes_max) {
    static const bool ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    if (ready) easy_.reset(curl_easy_init());
    multi_.reset(curl_multi_init());
    error_[0] = '\0';
  }

  result<http_response> run(std::string_view method, const http_url& url, const std::vector<http_header>& headers,
                            std::string_view body) {
    if (!easy_ || !multi_) return failure{errc::internal, "cannot initialize libcurl"};
    // Sends neither a default type nor an Expect header before a large body.
    REDLINE_TRY(add_header("Expect:"));
    if (find_header(headers, "content-type") == nullptr) REDLINE_TRY(add_header("Content-Type:"));
    for (const auto& h : headers) {
      if (has_control(h.name) || has_control(h.value)) {
        return failure{errc::invalid_argument, "HTTP header \"" + h.name + "\" contains a control character"};
      }
      REDLINE_TRY(add_header(h.name + ": " + h.value));
    }
    describe(std::string(method), url, body);
    curl_multi_add_handle(multi_.get(), easy_.get());
    const auto done = wait();
    curl_multi_remove_handle(multi_.get(), easy_.get());
    REDLINE_TRY(done);
    return std::move(response_);
  }

 private:
  result<void> add_header(const std::string& line) {
    curl_slist* longer = curl_slist_append(headers_.get(), line.c_str());
    if (longer == nullptr) return failure{errc::internal, "out of memory"};
    (void)headers_.release();
    headers_.reset(longer);
    return {};
  }

  void describe(const std::string& method, const http_url& url, std::string_view body) {
    CURL* c = easy_.get();
    const std::string address = (url.secure ? "https://" : "http://") + peer_ + url.target;
    curl_easy_setopt(c, CURLOPT_URL, address.c_str());
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options_.connect_timeout.count()));
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, error_);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers_.get());
    // Proxies come from the environment (http_proxy, https_proxy, no_proxy), but loopback never uses one.
    if (is_loopback(url.host)) curl_easy_setopt(c, CURLOPT_PROXY, "");
    if (const char* file = std::getenv("SSL_CERT_FILE")) curl_easy_setopt(c, CURLOPT_CAINFO, file);
    if (method == "HEAD") {
      curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
    } else if (method == "POST" || !body.empty()) {
      curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
      curl_easy_setopt(c, CURLOPT_POSTFIELDS, body.empty() ? "" : body.data());
    }
    if (method != "HEAD") curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, method.c_str());
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, &exchange::on_head);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, this);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, &exchange::on_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, this);
  }

  result<void> wait() {
    auto heard = clock::now();
    curl_off_t sent = 0;
    std::uint64_t received = 0;
    for (int running = 1;;) {
      if (options_.given_up != nullptr && options_.given_up->load()) {
        return failure{errc::cancelled, peer_ + ": the request was canceled"};
      }
      curl_multi_perform(multi_.get(), &running);
      if (running == 0) break;
      curl_off_t connected_us = 0, now_sent = 0;
      curl_easy_getinfo(easy_.get(), CURLINFO_PRETRANSFER_TIME_T, &connected_us);
      curl_easy_getinfo(easy_.get(), CURLINFO_SIZE_UPLOAD_T, &now_sent);
      if (connected_us == 0 || now_sent != sent || received_ != received) heard = clock::now();
      sent = now_sent;
      received = received_;
      const auto left = std::chrono::ceil<milliseconds>(heard + options_.silence_timeout - clock::now());
      if (left.count() <= 0) {
        return failure{errc::timed_out,
                       peer_ + ": no progress within " + std::to_string(options_.silence_timeout.count()) + " ms"};
      }
      const milliseconds nap(options_.given_up != nullptr ? 50 : 1000);
      curl_multi_poll(multi_.get(), nullptr, 0, static_cast<int>(std::min(left, nap).count()), nullptr);
    }
    int more = 0;
    const CURLMsg* last = curl_multi_info_read(multi_.get(), &more);
    return last == nullptr ? failure{errc::internal, peer_ + ": libcurl lost the request"} : judge(last->data.result);
  }

  result<void> judge(CURLcode code) {
    if (problem_) return *problem_;
    if (left_) return {};
    if (code == CURLE_OK && head_complete_) return {};
    std::string why = error_[0] != '\0' ? error_ : curl_easy_strerror(code);
    switch (code) {
      case CURLE_OK:
      case CURLE_GOT_NOTHING:
      case CURLE_PARTIAL_FILE:
        return failure{errc::io_error, peer_ + ": the connection was closed before the end of the response"};
      case CURLE_COULDNT_RESOLVE_HOST:
      case CURLE_COULDNT_RESOLVE_PROXY:
      case CURLE_COULDNT_CONNECT: {
        long number = 0;
        curl_easy_getinfo(easy_.get(), CURLINFO_OS_ERRNO, &number);
        if (number != 0) why += std::string(": ") + std::strerror(static_cast<int>(number));
        return failure{errc::unreachable, peer_ + ": " + why};
      }
      case CURLE_PEER_FAILED_VERIFICATION:
      case CURLE_SSL_CONNECT_ERROR:
        return failure{errc::unreachable, peer_ + ": cannot establish a trusted TLS connection: " + why};
      case CURLE_OPERATION_TIMEDOUT:
        return failure{errc::timed_out, peer_ + ": " + why};
      case CURLE_UNSUPPORTED_PROTOCOL:
      case CURLE_WEIRD_SERVER_REPLY:
      case CURLE_BAD_CONTENT_ENCODING:
        return failure{errc::malformed_message, peer_ + ": the response is not valid HTTP: " + why};
      default:
        return failure{errc::io_error, peer_ + ": " + why};
    }
  }

  /// Takes one line of a head with its line feed. After "100 Continue" a second status line begins another head.
  static std::size_t on_head(const char* bytes, std::size_t, std::size_t count, void* self) {
    return static_cast<exchange*>(self)->take_head({bytes, count}) ? count : 0;
  }
  bool take_head(std::string_view line) {
    received_ += line.size();
    head_bytes_ += line.size();
    if (head_bytes_ > head_bytes_max) {
      problem_ = failure{errc::malformed_message,
                         peer_ + ": the response's head has more than " + std::to_string(head_bytes_max) + " bytes"};
      return false;
    }
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
    if (line.starts_with("HTTP/")) {
      response_.headers.clear();
      head_complete_ = false;
    } else if (line.empty()) {
      long status = 0;
      curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
      response_.status = static_cast<unsigned>(status);
      head_complete_ = status / 100 != 1;
    } else if (const auto colon = line.find(':'); colon != std::string_view::npos) {
      std::string_view value = line.substr(colon + 1);
      while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
      response_.headers.push_back({std::string(line.substr(0, colon)), std::string(value)});
    }
    return true;
  }

  static std::size_t on_body(const char* bytes, std::size_t, std::size_t count, void* self) {
    return static_cast<exchange*>(self)->take_body({bytes, count}) ? count : 0;
  }
  bool take_body(std::string_view bytes) {
    received_ += bytes.size();
    if (on_event_ != nullptr && is_event_stream(response_)) {
      const auto wants_more = events_.feed(bytes, *on_event_);
      if (!wants_more) problem_ = wants_more.error();
      left_ = wants_more && !*wants_more;
      return wants_more && *wants_more;
    }
    if (response_.body.size() + bytes.size() > options_.body_bytes_max) {
      problem_ = failure{errc::malformed_message,
                         peer_ + ": the response has more than " + std::to_string(options_.body_bytes_max) + " bytes"};
      return false;
    }
    response_.body.append(bytes);
    return true;
  }

  std::string peer_;
  http_client_options options_;
  const sse_handler* on_event_;
  sse_parser events_;
  curl_list headers_;
  curl_easy easy_;
  curl_multi multi_;
  char error_[CURL_ERROR_SIZE];
  http_response response_;
  std::size_t head_bytes_ = 0;
  std::uint64_t received_ = 0;
  bool head_complete_ = false;
  bool left_ = false;  // the handler ended the call
  std::optional<failure> problem_;
};

/// A part of a parsed URL, or an empty string if it has none.
std::string part(CURLU* parts, CURLUPart which) {
  char* text = nullptr;
  if (curl_url_get(parts, which, &text, 0) != CURLUE_OK) return "";
  std::string out = text;
  curl_free(text);
  return out;
}

}  // namespace

result<http_url> parse_http_url(std::string_view text) {
  const curl_parts parts(curl_url());
  if (!parts) return url_failure(text, "out of memory");
  const std::string whole(text);
  if (has_control(text) || whole.find(' ') != std::string::npos) {
    return url_failure(text, "expected no space and no control character, found one");
  }
  if (whole.find("://") == std::string::npos) return url_failure(text, "expected http://host[:port][/path]");
  if (const auto error = curl_url_set(parts.get(), CURLUPART_URL, whole.c_str(), CURLU_PATH_AS_IS)) {
    return url_failure(text, curl_url_strerror(error));
  }
  http_url url;
  const std::string scheme = part(parts.get(), CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") return url_failure(text, "expected http or https, found " + scheme);
  url.secure = scheme == "https";
  if (!part(parts.get(), CURLUPART_USER).empty()) return url_failure(text, "expected no user name, found one");
  url.host = part(parts.get(), CURLUPART_HOST);
  if (url.host.starts_with('[')) url.host = url.host.substr(1, url.host.size() - 2);
  url.port = url.secure ? 443 : 80;
  if (const std::string port = part(parts.get(), CURLUPART_PORT); !port.empty()) {
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), url.port);
    if (error != std::errc() || end != port.data() + port.size() || url.port == 0) {
      return url_failure(text, "expected a port from 1 to 65535");
    }
  }
  url.target = part(parts.get(), CURLUPART_PATH);
  if (const std::string query = part(parts.get(), CURLUPART_QUERY); !query.empty()) url.target += "?" + query;
  return url;
}

result<http_response> http_call(std::string_view method, const http_url& url, const std::vector<http_header>& headers,
                                std::string_view body, const http_client_options& options) {
  return exchange(url, options, nullptr).run(method, url, headers, body);
}

result<http_response> http_get(const http_url& url, const std::vector<http_header>& headers,
                               const http_client_options& options) {
  return http_call("GET", url, headers, {}, options);
}

result<http_response> http_post(const http_url& url, const std::vector<http_header>& headers, std::string_view body,
                                const http_client_options& options) {
  return http_call("POST", url, headers, body, options);
}

result<http_response> http_post_stream(const http_url& url, const std::vector<http_header>& headers,
                                       std::string_view body, const sse_handler& on_event,
                                       const http_client_options& options) {
  return exchange(url, options, &on_event).run("POST", url, headers, body);
}

result<http_response> http_get_stream(const http_url& url, const std::vector<http_header>& headers,
                                      const sse_handler& on_event, const http_client_options& options) {
  return exchange(url, options, &on_event).run("GET", url, headers, {});
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
