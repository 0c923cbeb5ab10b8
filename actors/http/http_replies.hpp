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

/// Of a client's word in a line of the log.
inline constexpr std::size_t request_fact_bytes_max = 200;

/// What a request says beside its body, and how it is to be answered.
struct request_facts {
  std::string method, path, agent;  // as sent; the log escapes them
  std::string_view route = "none";  // the route's path
  bool is_looked_at_often = false;  // by monitors: no line of the log for each
  header_list more_headers;         // of every answer
  std::string tenant_name;          // as the keys have it; empty: there is none
  std::string (*error_body)(const api::api_error&) = api::error_body;
  std::shared_ptr<trace::open_span> span;  // until the request is over; null: it is not traced
};

/// Who sent a request, when, and where the answer goes.
struct caller {
  std::uint64_t exchange = 0;
  std::string request_id;
  tenant_id tenant;
  instant arrived;
  std::shared_ptr<const request_facts> facts = nobodys_facts();

  static const std::shared_ptr<const request_facts>& nobodys_facts();
  [[nodiscard]] trace::span_context span() const {
    return facts->span ? facts->span->context() : trace::span_context{};
  }
};

/// A request on its way through a route.
struct route_context {
  http_arrived& request;              // whose body the route may take
  std::vector<std::string> captures;  // what stands in the path for each {} of the route
  caller who;
};

/// An answer of at least so many bytes cannot be sent as a whole.
api::api_error answer_too_large(std::uint64_t bytes, std::uint64_t bytes_max);

/// Sends answers to the HTTP server, counts them, and writes a line of the log for each. Of a long one a part at a
/// time, so that others come in between.
class http_replies {
 public:
  http_replies(actor::actor_context& context, actor::address http, std::shared_ptr<gateway_probe> probe)
      : context_(context), http_(http), probe_(std::move(probe)) {}

  void respond(const caller& who, unsigned status, std::string body, header_list more = {},
               std::string content_type = "application/json");
  /// The same, with more in the line of the log.
  void respond_noting(const caller& who, unsigned status, std::string body, header_list more,
                      std::vector<log_field> cost);
  void on(const answer_part_due& m);
  /// False when nothing of the exchange's answer is left to be sent.
  bool client_left(std::uint64_t exchange) { return unsent_.erase(exchange) > 0; }
  [[nodiscard]] bool idle() const { return unsent_.empty(); }

  void refuse(const caller& who, const api::api_error& why);
  /// Counts and logs what a stream's client is told in its last event.
  void note_refusal(const caller& who, const api::api_error& why);
  /// The line of a request whose stream is over. cost: more for it.
  void note_served(const caller& who, unsigned status, std::vector<log_field> cost = {});
  /// Ends the exchange wherever its answer stands.
  void fail(std::uint64_t exchange, const api::api_error& why);
  /// For answers that take long and are sent whole: the exchange's deadline begins anew.
  void note_progress(const caller& who);
  /// The same, and the answer will be a 200 of JSON unless the connection breaks off: where it is long in coming, blank
  /// lines keep proxies and clients from giving up.
  void hold_open(const caller& who);

  /// A stream of events, or of other pieces that make sense alone: begun once, then whole ones.
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
    std::size_t sent = 0;  // bytes of it
  };
  std::unordered_map<std::uint64_t, unsent> unsent_;  // by exchange
};

}  // namespace redline::actors
