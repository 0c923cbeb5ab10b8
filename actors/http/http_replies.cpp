#include "actors/http/http_replies.hpp"

#include <utility>

#include "runtime/base/size_limits.hpp"

namespace redline::actors {

void http_replies::respond(const caller& who, unsigned status, std::string body, header_list more,
                           std::string content_type) {
  using sizes::http_answer_part_bytes_max;
  if (body.size() > sizes::http_answer_bytes_max) {
    return refuse(who, {500,
                        "server_error",
                        "The answer has " + std::to_string(body.size()) + " bytes, more than the " +
                            std::to_string(sizes::http_answer_bytes_max) +
                            " that are sent as a whole. Ask for a stream, fewer choices or fewer logprobs.",
                        "",
                        "answer_too_large",
                        {}});
  }
  http_respond answer{.exchange = who.exchange, .status = status, .headers = std::move(more)};
  answer.headers.emplace_back("Content-Type", std::move(content_type));
  answer.headers.emplace_back("x-request-id", who.request_id);
  answer.more = body.size() > http_answer_part_bytes_max;
  if (!answer.more) {
    answer.body = std::move(body);
    return context_.send(http_, answer);
  }
  answer.whole_bytes = body.size();
  context_.send(http_, answer);
  unsent_[who.exchange] = {std::move(body)};
  on(answer_part_due{who.exchange});
}

void http_replies::on(const answer_part_due& m) {
  const auto at = unsent_.find(m.exchange);
  if (at == unsent_.end()) return;  // the client has left
  auto& [body, sent] = at->second;
  http_body part{.exchange = m.exchange, .data = body.substr(sent, sizes::http_answer_part_bytes_max)};
  sent += part.data.size();
  part.more = sent < body.size();
  context_.send(http_, part);
  if (!part.more) {
    unsent_.erase(at);
  } else {
    context_.after(microseconds{0}, m);  // a message to itself could be lost, a timer is not
  }
}

void http_replies::refuse(const caller& who, const api::api_error& why) {
  respond(who, why.status, api::error_body(why), api::error_headers(why));
}

void http_replies::fail(std::uint64_t exchange, const api::api_error& why) {
  unsent_.erase(exchange);
  context_.send(http_, http_fail{.exchange = exchange, .status = why.status, .error = api::error_body(why)});
}

void http_replies::note_progress(const caller& who) { context_.send(http_, http_progress{who.exchange}); }

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
