// The spans that requests leave, and the traces that they belong to.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/actors/http/gateway_fixture.hpp"

namespace redline::actors {
namespace {

class gateway_traced : public gateway_alone {
 protected:
  void SetUp() override {
    gateway_alone::SetUp();
    services->tracer = spans;
  }
  std::vector<trace::span> ended() { return spans->take(100, std::chrono::milliseconds(0)); }
  /// Returns a text as it is, a number as text, or the joined texts of a list.
  static std::string attribute(const trace::span& of, std::string_view key) {
    for (const auto& [name, value] : of.attributes) {
      if (name != key) continue;
      if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
      if (const auto* text = std::get_if<std::string>(&value)) return *text;
      if (const auto* yes = std::get_if<bool>(&value)) return *yes ? "true" : "false";
      std::string all;
      if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
        for (const auto& one : *list) all += one;
      }
      return all;
    }
    return "absent";
  }
  std::optional<trace::span_context> span_of_round() const {
    for (const auto& f : sent) {
      if (f.head.id == verify_run::id) return f.head.span;
    }
    return std::nullopt;
  }
  std::shared_ptr<trace::tracer> spans = std::make_shared<trace::tracer>();
  static constexpr const char* parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
};

TEST_F(gateway_traced, a_request_is_a_part_of_its_clients_trace_and_its_answer_one_of_the_request) {
  more_headers = {{"Traceparent", parent}, {"User-Agent", "me"}};
  const auto id = ask_for_text();
  run();
  const auto session = session_in_progress();
  const auto round = span_of_round();
  ASSERT_TRUE(round);
  tell(session_text{.session = session, .text = "x", .tokens = {1}});
  tell(session_finished{.session = session,
                        .reason = finish_reason::length,
                        .stats = {.prompt_tokens = 5,
                                  .completion_tokens = 8,
                                  .rounds = 3,
                                  .target_passes = 4,
                                  .drafted = 6,
                                  .accepted = 5,
                                  .cached_tokens = 2}});
  run();
  EXPECT_EQ(status_of(id), 200U);
  const auto both = ended();
  ASSERT_EQ(both.size(), 2U);
  const auto &answer = both[0], &request = both[1];
  EXPECT_EQ(request.where.trace_id(), std::string(parent).substr(3, 32));
  EXPECT_EQ(request.parent, 0xb7ad6b7169203331U);
  EXPECT_EQ(request.name, "POST /chat/completions");
  EXPECT_EQ(request.kind, trace::span_kind::server);
  EXPECT_EQ(attribute(request, "http.response.status_code"), "200");
  EXPECT_EQ(attribute(request, "http.route"), "/chat/completions");
  EXPECT_EQ(attribute(request, "user_agent.original"), "me");
  EXPECT_FALSE(request.has_failed);
  EXPECT_EQ(answer.parent, request.where.span);
  EXPECT_EQ(answer.name, "chat tiny");
  EXPECT_EQ(answer.where, *round) << "requests to workers are part of the answer";
  EXPECT_EQ(attribute(answer, "gen_ai.operation.name"), "chat");
  EXPECT_EQ(attribute(answer, "gen_ai.request.model"), "tiny");
  EXPECT_EQ(attribute(answer, "gen_ai.request.max_tokens"), "8");
  EXPECT_EQ(attribute(answer, "gen_ai.response.finish_reasons"), "length");
  EXPECT_EQ(attribute(answer, "gen_ai.usage.input_tokens"), "5");
  EXPECT_EQ(attribute(answer, "gen_ai.usage.output_tokens"), "8");
  EXPECT_EQ(attribute(answer, "gen_ai.usage.cache_read.input_tokens"), "2");
  EXPECT_EQ(attribute(answer, "redline.passes"), "4");
  EXPECT_EQ(attribute(answer, "redline.drafted"), "6");
  EXPECT_EQ(attribute(answer, "redline.accepted"), "5");
}

TEST_F(gateway_traced, without_a_good_parent_a_request_begins_a_trace) {
  const std::vector<header_list> cases{
      {}, {{"traceparent", "00-0"}}, {{"traceparent", parent}, {"traceparent", parent}}};
  for (const auto& headers : cases) {
    more_headers = headers;
    call("GET", "/v1/models");
    const auto one = ended();
    ASSERT_EQ(one.size(), 1U);
    EXPECT_EQ(one[0].parent, 0U);
    EXPECT_NE(one[0].where.trace_id(), std::string(parent).substr(3, 32));
  }
}

TEST_F(gateway_traced, what_its_caller_does_not_sample_is_not_traced) {
  more_headers = {{"traceparent", std::string(parent).substr(0, 53) + "00"}};
  ask_for_text();
  run();
  EXPECT_FALSE(span_of_round());
  tell(session_finished{.session = session_in_progress()});
  run();
  EXPECT_TRUE(ended().empty());
}

TEST_F(gateway_traced, of_requests_without_a_parent_a_share_is_traced) {
  spans = services->tracer = std::make_shared<trace::tracer>(trace::tracer::queue_spans_max, 0.0);
  call("GET", "/v1/models");
  EXPECT_TRUE(ended().empty());
  more_headers = {{"traceparent", parent}};
  call("GET", "/v1/models");
  EXPECT_EQ(ended().size(), 1U) << "its caller samples it";
}

TEST_F(gateway_traced, monitors_leave_no_spans) {
  for (const char* path : {"/healthz", "/readyz", "/metrics"}) call("GET", path);
  EXPECT_TRUE(ended().empty());
}

TEST_F(gateway_traced, errors_are_seen) {
  call("GET", "/v1/nothing");
  auto spans_ended = ended();
  ASSERT_EQ(spans_ended.size(), 1U);
  EXPECT_EQ(spans_ended[0].name, "GET");
  EXPECT_EQ(attribute(spans_ended[0], "http.response.status_code"), "404");
  EXPECT_FALSE(spans_ended[0].has_failed) << "the client's fault";
  ask_for_text();
  run();
  tell(session_finished{.session = session_in_progress(),
                        .reason = finish_reason::failed,
                        .why_not = failure{errc::not_ready, "no worker"}});
  run();
  spans_ended = ended();
  ASSERT_EQ(spans_ended.size(), 2U);
  for (const auto& s : spans_ended) EXPECT_TRUE(s.has_failed) << s.name;
  EXPECT_EQ(attribute(spans_ended[1], "http.response.status_code"), "503");
}

TEST_F(gateway_traced, the_spans_of_a_client_that_leaves_end) {
  const auto id = ask_for_text();
  run();
  tell(http_closed{id});
  run();
  const auto both = ended();
  ASSERT_EQ(both.size(), 2U);
  for (const auto& s : both) EXPECT_TRUE(s.has_failed) << s.name;
}

TEST_F(gateway_traced, tells_what_became_of_spans) {
  spans->note_exported(3);
  spans->note_failed(2);
  EXPECT_EQ(metric("redline_trace_spans_total{result=\"exported\"}"), 3);
  EXPECT_EQ(metric("redline_trace_spans_total{result=\"failed\"}"), 2);
  EXPECT_EQ(metric("redline_trace_spans_total{result=\"dropped\"}"), 0);
}

}  // namespace
}  // namespace redline::actors
