#include "transport/otlp_exporter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>

#include "runtime/base/log.hpp"
#include "tests/transport/http_server_fixture.hpp"

namespace redline::transport {
namespace {

using namespace std::chrono_literals;

class otlp_exporter_test : public testing::Test {
 protected:
  otlp_exporter_test() { configure_log(log_level::off, log_format::text); }
  ~otlp_exporter_test() override { configure_log(log_level::info, log_format::text); }

  static otlp_options options(std::uint16_t port) {
    return {.url = {"127.0.0.1", port, "/v1/traces"},
            .headers = {{"Authorization", "Bearer k"}},
            .resource = {{"service.name", "me"}},
            .batch_patience = 1ms,
            .retry_first = 1ms};
  }
  void push(std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) from->push({.where = {1, 2, i + 1}, .name = "span"});
  }
  /// The number of spans in all bodies.
  static std::size_t count_spans(const std::vector<http_request>& requests) {
    std::size_t count = 0;
    for (const auto& one : requests) {
      const auto body = nlohmann::json::parse(one.body);
      count += body.at("resourceSpans").at(0).at("scopeSpans").at(0).at("spans").size();
    }
    return count;
  }
  std::shared_ptr<trace::tracer> from = std::make_shared<trace::tracer>();
};

TEST_F(otlp_exporter_test, posts_all_spans_and_the_last_ones_at_its_end) {
  http_server_fixture collector(
      [](http_front& front, exchange_id id, http_request) { front.respond(id, 200, {}, "{}"); });
  {
    const otlp_exporter e(from, options(collector.port()));
    push(1300);
  }
  const auto requests = collector.requests();
  EXPECT_EQ(count_spans(requests), 1300U);
  EXPECT_EQ(from->counts().exported, 1300U);
  EXPECT_GE(requests.size(), 3U);  // with at most 512 spans each
  const auto& first = requests.front();
  EXPECT_EQ(first.method + " " + first.path, "POST /v1/traces");
  ASSERT_NE(first.header("content-type"), nullptr);
  EXPECT_EQ(*first.header("content-type"), "application/json");
  EXPECT_EQ(*first.header("authorization"), "Bearer k");
}

TEST_F(otlp_exporter_test, tries_again_what_may_pass_later) {
  std::atomic<int> calls = 0;
  http_server_fixture collector(
      [&](http_front& front, exchange_id id, http_request) { front.respond(id, ++calls < 3 ? 503 : 200, {}, ""); });
  const otlp_exporter e(from, options(collector.port()));
  push(1);
  while (from->counts().exported == 0) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(from->counts().failed, 0U);
}

TEST_F(otlp_exporter_test, gives_up_what_is_refused_for_good) {
  http_server_fixture collector(
      [&](http_front& front, exchange_id id, http_request) { front.respond(id, 400, {}, "not like this"); });
  const otlp_exporter e(from, options(collector.port()));
  push(2);
  while (from->counts().failed < 2) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(from->counts().exported, 0U);
  EXPECT_EQ(count_spans(collector.requests()), 2U);  // each arrived once
}

TEST_F(otlp_exporter_test, counts_what_a_collector_refused_of_a_batch) {
  http_server_fixture collector([&](http_front& front, exchange_id id, http_request) {
    front.respond(id, 200, {}, R"({"partialSuccess":{"rejectedSpans":"1"}})");
  });
  {
    const otlp_exporter e(from, options(collector.port()));
    push(3);
  }
  const auto requests = collector.requests();
  EXPECT_EQ(from->counts().failed, requests.size());
  EXPECT_EQ(from->counts().exported, 3 - requests.size());
}

TEST_F(otlp_exporter_test, a_collector_that_is_not_there_costs_spans_only) {
  std::uint16_t port = 0;
  {
    http_server_fixture gone([](http_front&, exchange_id, http_request) {});
    port = gone.port();
  }
  const otlp_exporter e(from, options(port));
  push(1);
  while (from->counts().failed < 1) std::this_thread::sleep_for(1ms);
  push(1);
  while (from->counts().failed < 2) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(from->counts().failed, 2U);
  EXPECT_EQ(from->counts().exported, 0U);
  EXPECT_EQ(from->counts().dropped, 0U);
}

TEST_F(otlp_exporter_test, a_collector_that_never_answers_does_not_keep_the_process) {
  http_server_fixture collector([](http_front&, exchange_id, http_request) {});
  auto how = options(collector.port());
  how.last_timeout = 50ms;
  {
    const otlp_exporter e(from, how);
    push(1);
    EXPECT_TRUE(collector.wait_for_requests(1));
    push(trace::tracer::queue_spans_max + 10);
    EXPECT_EQ(from->counts().dropped, 10U);
  }
  EXPECT_EQ(from->counts().exported, 0U);
}

}  // namespace
}  // namespace redline::transport
