#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/http/openai/api_error.hpp"
#include "actors/messages/gateway_messages.hpp"
#include "actors/messages/http_messages.hpp"
#include "runtime/actor/actor.hpp"
#include "runtime/base/ids.hpp"

namespace redline::actors {

/// Who sent a request, when, and where the answer goes.
struct caller {
  std::uint64_t exchange = 0;
  std::string request_id;
  tenant_id tenant;
  instant arrived;
};

/// A request on its way through a route.
struct route_context {
  http_arrived& request;              // whose body the route may take
  std::vector<std::string> captures;  // what stands in the path for each {} of the route
  caller who;
};

/// Sends answers to the HTTP server. Of a long one a part at a time, so that others come in between.
class http_replies {
 public:
  http_replies(actor::actor_context& context, actor::address http) : context_(context), http_(http) {}

  void respond(const caller& who, unsigned status, std::string body, header_list more = {},
               std::string content_type = "application/json");
  void on(const answer_part_due& m);
  /// False when nothing of the exchange's answer is left to be sent.
  bool client_left(std::uint64_t exchange) { return unsent_.erase(exchange) > 0; }
  [[nodiscard]] bool idle() const { return unsent_.empty(); }

  void refuse(const caller& who, const api::api_error& why);
  /// Ends the exchange wherever its answer stands.
  void fail(std::uint64_t exchange, const api::api_error& why);
  /// For answers that take long and are sent whole: the exchange's deadline begins anew.
  void note_progress(const caller& who);

  /// An event stream: begun once, then whole events.
  void begin_stream(const caller& who);
  void stream(const caller& who, std::string events, bool end = false);

 private:
  actor::actor_context& context_;
  actor::address http_;
  struct unsent {
    std::string body;
    std::size_t sent = 0;  // bytes of it
  };
  std::unordered_map<std::uint64_t, unsent> unsent_;  // by exchange
};

}  // namespace redline::actors
