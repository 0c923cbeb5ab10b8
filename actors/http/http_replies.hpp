#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/http/fields/api_error.hpp"
#include "actors/http/metrics/gateway_probe.hpp"
#include "actors/messages/gateway_messages.hpp"
#include "actors/messages/http_messages.hpp"
#include "runtime/actor/actor.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/log.hpp"
#include "runtime/trace/tracer.hpp"

namespace redline::actors {

/// Limit of one client-supplied value in a log line.
inline constexpr std::size_t request_fact_bytes_max = 200;

/// What a request says outside its body, and how to answer it.
struct request_facts {
  std::string method, path, agent;  // as sent; the log escapes them
  std::string_view route = "none";  // the route's path
  bool is_looked_at_often = false;  // polled by monitors: not logged per request
  header_list more_headers;         // sent with every answer
  std::string tenant_name;          // as in the keys; empty if there is none
  std::string (*error_body)(const api::api_error&) = api::error_body;
  std::shared_ptr<trace::open_span> span;  // open until the request is over; null if it is not traced
};

/// The sender of a request, its arrival time, and the exchange that the answer goes to.
struct caller {
  std::uint64_t exchange = 0;
  std::string request_id;
  tenant_id tenant;
  instant arrived;
  std::shared_ptr<const request_facts> facts = no_facts();

  static const std::shared_ptr<const request_facts>& no_facts();
  [[nodiscard]] trace::span_context span() const {
    return facts->span ? facts->span->context() : trace::span_context{};
  }
};

/// A request on its way through a route.
struct route_context {
  http_arrived& request;              // the route may move its body out
  std::vector<std::string> captures;  // the path's text for each {} of the route
  caller who;
};

/// The error for an answer of at least so many bytes, which cannot be sent whole.
api::api_error answer_too_large(std::uint64_t bytes, std::uint64_t bytes_max);

/// Sends answers to the HTTP server, counts them, and writes one log line for each. A long answer goes out in parts, so
/// that others can be sent in between.
class http_replies {
 public:
  http_replies(actor::actor_context& context, actor::address http, std::shared_ptr<gateway_probe> probe)
      : context_(context), http_(http), probe_(std::move(probe)) {}

  void respond(const caller& who, unsigned status, std::string body, header_list more = {},
               std::string content_type = "application/json");
  /// As `respond`, with additional fields in the log line.
  void respond_noting(const caller& who, unsigned status, std::string body, header_list more,
                      std::vector<log_field> cost);
  void on(const answer_part_due& m);
  /// False if no part of the exchange's answer is left to send.
  bool client_left(std::uint64_t exchange) { return unsent_.erase(exchange) > 0; }
  [[nodiscard]] bool idle() const { return unsent_.empty(); }

  void refuse(const caller& who, const api::api_error& why);
  /// Counts and logs an error that a stream's last event reports.
  void note_refusal(const caller& who, const api::api_error& why);
  /// Logs a request whose stream is over. cost: additional log fields.
  void note_served(const caller& who, unsigned status, std::vector<log_field> cost = {});
  /// Ends the exchange, however much of its answer was sent.
  void fail(std::uint64_t exchange, const api::api_error& why);
  /// Restarts the exchange's deadline, for answers that take long and are sent whole.
  void note_progress(const caller& who);
  /// As `note_progress`, and the answer will be a 200 with JSON unless the connection breaks off. Until it comes, blank
  /// lines keep proxies and clients from giving up.
  void hold_open(const caller& who);

  /// A stream of events or of other self-contained pieces: begun once, then whole pieces only.
  void begin_stream(const caller& who, std::string_view content_type);
  void stream(const caller& who, std::string events, bool end = false);

 private:
  [[nodiscard]] bool try_respond(const caller& who, unsigned status, std::string body, header_list more,
                                 std::string content_type);
  void send_whole(const caller& who, unsigned status, std::string body, header_list more, std::string content_type);
  static void end_span(const caller& who, unsigned status);
  [[nodiscard]] std::vector<log_field> describe(const caller& who, unsigned status) const;

  actor::actor_context& context_;
  actor::address http_;
  std::shared_ptr<gateway_probe> probe_;
  struct unsent {
    std::string body;
    std::size_t sent = 0;  // bytes of the body sent so far
  };
  std::unordered_map<std::uint64_t, unsent> unsent_;  // keyed by exchange
};

}  // namespace redline::actors
