#include "actors/http/http_replies.hpp"

#include <utility>

namespace redline::actors {

void http_replies::respond(const caller& who, unsigned status, std::string body, header_list more,
                           std::string content_type) {
  http_respond answer{.exchange = who.exchange, .status = status, .headers = std::move(more), .body = std::move(body)};
  answer.headers.emplace_back("Content-Type", std::move(content_type));
  answer.headers.emplace_back("x-request-id", who.request_id);
  context_.send(http_, answer);
}

void http_replies::refuse(const caller& who, const api::api_error& why) {
  respond(who, why.status, api::error_body(why), api::error_headers(why));
}

void http_replies::begin_stream(const caller& who) {
  http_stream head{.exchange = who.exchange, .begin = true};
  head.headers = {{"Content-Type", "text/event-stream; charset=utf-8"},
                  {"Cache-Control", "no-cache"},
                  {"X-Accel-Buffering", "no"},
                  {"x-request-id", who.request_id}};
  context_.send(http_, head);
}

void http_replies::stream(const caller& who, std::string events, bool end) {
  context_.send(http_, http_stream{.exchange = who.exchange, .data = std::move(events), .end = end});
}

}  // namespace redline::actors
