#include "actors/http/http_replies.hpp"

#include <iterator>
#include <utility>

#include "runtime/base/size_limits.hpp"

namespace redline::actors {
namespace {
constexpr std::string_view log_name = "gateway";
}  // namespace

const std::shared_ptr<const request_facts>& caller::no_facts() {
  static const auto facts = std::make_shared<const request_facts>();
  return facts;
}

api::api_error answer_too_large(std::uint64_t bytes, std::uint64_t bytes_max) {
  return {500,
          "server_error",
          "The answer has at least " + std::to_string(bytes) + " bytes, more than the " + std::to_string(bytes_max) +
              " that can be sent without streaming. Ask for a stream, fewer choices or fewer logprobs.",
          "",
          "answer_too_large",
          {}};
}

void http_replies::respond(const caller& who, unsigned status, std::string body, header_list more,
                           std::string content_type) {
  if (try_respond(who, status, std::move(body), std::move(more), std::move(content_type))) note_served(who, status);
}

void http_replies::respond_noting(const caller& who, unsigned status, std::string body, header_list more,
                                  std::vector<log_field> cost) {
  if (try_respond(who, status, std::move(body), std::move(more), "application/json")) {
    note_served(who, status, std::move(cost));
  }
}

bool http_replies::try_respond(const caller& who, unsigned status, std::string body, header_list more,
                               std::string content_type) {
  if (body.size() > sizes::http_answer_bytes_max) {
    refuse(who, answer_too_large(body.size(), sizes::http_answer_bytes_max));
    return false;
  }
  probe_->answered(who.facts->route, status);
  send_whole(who, status, std::move(body), std::move(more), std::move(content_type));
  return true;
}

void http_replies::send_whole(const caller& who, unsigned status, std::string body, header_list more,
                              std::string content_type) {
  using sizes::http_answer_part_bytes_max;
  http_respond answer{.exchange = who.exchange, .status = status, .headers = std::move(more)};
  if (status != 204) answer.headers.emplace_back("Content-Type", std::move(content_type));
  answer.headers.emplace_back("x-request-id", who.request_id);
  answer.headers.insert(answer.headers.end(), who.facts->more_headers.begin(), who.facts->more_headers.end());
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

std::vector<log_field> http_replies::describe(const caller& who, unsigned status) const {
  const auto& name = who.facts->tenant_name;
  const log_field tenant = name.empty() ? log_field{"tenant", who.tenant.value} : log_field{"tenant", name};
  std::vector<log_field> out{{"request", who.request_id},
                             tenant,
                             {"method", who.facts->method},
                             {"path", who.facts->path},
                             {"status", status},
                             {"ms", (context_.now() - who.arrived).count() / 1000},
                             {"agent", who.facts->agent}};
  if (const auto span = who.span()) out.emplace_back("trace", span.trace_id());
  return out;
}

void http_replies::note_served(const caller& who, unsigned status, std::vector<log_field> cost) {
  const auto level = who.facts->is_looked_at_often ? log_level::debug : log_level::info;
  if (log_enabled(level)) {
    auto fields = describe(who, status);
    fields.insert(fields.end(), std::make_move_iterator(cost.begin()), std::make_move_iterator(cost.end()));
    log_line(level, log_name, "request served", fields);
  }
  end_span(who, status);
}

void http_replies::note_refusal(const caller& who, const api::api_error& why) {
  probe_->refused(why.status, why.code);
  auto fields = describe(who, why.status);
  if (!why.code.empty()) fields.emplace_back("code", why.code);
  if (!why.param.empty()) fields.emplace_back("param", why.param.substr(0, request_fact_bytes_max));
  const auto level = who.facts->is_looked_at_often ? log_level::debug : log_level::info;
  log_line(level, log_name, "request refused: " + why.message.substr(0, request_fact_bytes_max), fields);
  if (auto* span = who.facts->span.get(); span != nullptr && *span) {
    span->set("error.type", why.code.empty() ? std::to_string(why.status) : why.code);
    if (why.status >= 500) span->fail(why.message.substr(0, request_fact_bytes_max));
  }
  end_span(who, why.status);
}

void http_replies::end_span(const caller& who, unsigned status) {
  if (!who.facts->span) return;
  who.facts->span->set("http.response.status_code", std::int64_t{status});
  who.facts->span->end();
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
    context_.after(microseconds{0}, m);  // a message to itself could be lost; a timer is not
  }
}

void http_replies::refuse(const caller& who, const api::api_error& why) {
  note_refusal(who, why);
  probe_->answered(who.facts->route, why.status);
  send_whole(who, why.status, who.facts->error_body(why), api::error_headers(why), "application/json");
}

void http_replies::fail(std::uint64_t exchange, const api::api_error& why) {
  unsent_.erase(exchange);
  context_.send(http_, http_fail{.exchange = exchange, .status = why.status, .error = api::error_body(why)});
}

void http_replies::note_progress(const caller& who) { context_.send(http_, http_progress{who.exchange}); }

void http_replies::hold_open(const caller& who) {
  http_hold held{.exchange = who.exchange};
  held.headers = {{"Content-Type", "application/json"}, {"x-request-id", who.request_id}};
  held.headers.insert(held.headers.end(), who.facts->more_headers.begin(), who.facts->more_headers.end());
  context_.send(http_, held);
}

void http_replies::begin_stream(const caller& who, std::string_view content_type) {
  http_stream head{.exchange = who.exchange, .begin = true};
  head.headers = {{"Content-Type", std::string(content_type)},
                  {"Cache-Control", "no-cache"},
                  {"X-Accel-Buffering", "no"},
                  {"x-request-id", who.request_id}};
  head.headers.insert(head.headers.end(), who.facts->more_headers.begin(), who.facts->more_headers.end());
  probe_->answered(who.facts->route, 200);
  context_.send(http_, head);
}

void http_replies::stream(const caller& who, std::string events, bool end) {
  context_.send(http_, http_stream{.exchange = who.exchange, .data = std::move(events), .end = end});
}

}  // namespace redline::actors
