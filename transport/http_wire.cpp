#include "transport/http_wire.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <optional>
#include <utility>

#include "runtime/base/hex.hpp"
#include "runtime/base/log.hpp"

namespace redline::transport {
namespace {

std::array<std::atomic<std::uint64_t>, refusals::all.size()> counts{};
std::atomic<std::int64_t> quiet_until_ms{0};

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos || (c >= '0' && c <= '9') ||
           (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

}  // namespace

void note_refusal(const refusal& why, std::string_view peer) {
  const auto at = std::find_if(refusals::all.begin(), refusals::all.end(), [&](const refusal& one) {
    return one.status == why.status && one.message == why.message;
  });
  if (at != refusals::all.end()) ++counts[static_cast<std::size_t>(at - refusals::all.begin())];
  const std::int64_t now_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count();
  std::int64_t until = quiet_until_ms;
  if (now_ms < until || !quiet_until_ms.compare_exchange_strong(until, now_ms + 1000)) return;
  const log_field fields[] = {{"status", why.status}, {"peer", std::string(peer)}, {"why", std::string(why.message)}};
  log_line(log_level::info, "http", "request refused", fields);
}

refusal_counts read_refusal_counts() {
  refusal_counts now{};
  for (std::size_t i = 0; i < now.size(); ++i) now[i] = counts[i];
  return now;
}

std::string to_body(const refusal& why, std::uint64_t bytes_max) {
  std::string body = "{\"error\":{\"message\":\"";
  body.append(why.message);
  if (bytes_max != 0) body.append(": at most ").append(std::to_string(bytes_max)).append(" bytes are allowed.");
  body.append("\",\"type\":\"").append(why.type).append("\",\"param\":null,\"code\":");
  if (why.code.empty()) return body.append("null}}");
  return body.append("\"").append(why.code).append("\"}}");
}

std::string date_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[40];
  return {text, std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc)};
}

void append_header(std::string& head, std::string_view name, std::string_view value) {
  if (!is_token(name)) return;
  head.append(name).append(": ");
  for (const char c : value) {
    if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) head.push_back(c);
  }
  head.append("\r\n");
}

bool is_written_by_front(std::string_view name) {
  for (const auto ours : {"content-length", "transfer-encoding", "connection", "date", "keep-alive"}) {
    if (equal_ignoring_case(name, ours)) return true;
  }
  return false;
}

bool split_target(std::string_view target, http_request& request) {
  if (target.starts_with("http://")) {
    const auto slash = target.find_first_of("/?", 7);
    target = slash == std::string_view::npos ? std::string_view("/") : target.substr(slash);
  }
  const auto fragment = target.find('#');
  if (fragment != std::string_view::npos) target = target.substr(0, fragment);
  const auto mark = target.find('?');
  if (mark != std::string_view::npos) request.query = target.substr(mark + 1);
  auto path = percent_decoded(target.substr(0, mark));
  if (!path) return false;
  if (path->empty()) path = "/";
  if (path->front() != '/' && *path != "*") return false;
  request.path = std::move(*path);
  return true;
}

}  // namespace redline::transport
