// The gate between a real socket and the gateway, whose messages the test writes by hand.

#include "actors/http/http_gate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <set>

#include "actors/http/gateway.hpp"
#include "runtime/base/log.hpp"
#include "tests/support/hand_link.hpp"
#include "tests/support/raw_client.hpp"

namespace redline::actors {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr auto gateway_where = actor::make_address(1, 1, 2);
constexpr std::uint16_t http_worker = 2;
constexpr std::uint32_t http_number = 8;
constexpr auto http_where = actor::make_address(1, http_worker, http_number);
const std::string request = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n";

class http_gate_test : public testing::Test {
 protected:
  void SetUp() override { configure_log(log_level::off, log_format::text); }

  void start(transport::http_front::options options = {}, const std::vector<std::string>& keys = {}) {
    options.port = 0;
    auto made = http_gate::start(fabric, http_worker, http_number, options, actor::actor_ref<gateway>{gateway_where},
                                 {}, std::make_shared<key_ring>(*api_keys::load(keys)));
    ASSERT_TRUE(made) << made.error().describe();
    gate = std::move(*made);
  }
  /// Returns the next message to the gateway, which must be an M.
  template<actor::message M>
  std::optional<M> hear() {
    for (int n = 0; n < 1000; ++n) {
      if (auto f = link->receive()) {
        EXPECT_EQ(f->head.id, M::id) << "found message " << f->head.id.value;
        auto m = actor::decode<M>(f->body);
        return m ? std::optional(std::move(*m)) : std::nullopt;
      }
      link->wait(microseconds{10'000});
    }
    return std::nullopt;
  }
  template<actor::message M>
  void tell(const M& m) {
    ASSERT_TRUE(link->send(test::frame_of(http_where, gateway_where, m)));
  }

  transport::zmq_fabric fabric{1};
  std::unique_ptr<actor::link> link = fabric.make_link(1);
  std::unique_ptr<http_gate> gate;
};

TEST_F(http_gate_test, answers_when_a_request_does_not_reach_the_gateway) {
  start();
  const std::pair<errc, std::string> table[] = {
      {errc::malformed_message, " 413 "}, {errc::mailbox_full, " 503 "}, {errc::unreachable, " 503 "}};
  for (const auto& [why, status] : table) {
    test::raw_client client(gate->port());
    client.send(request);
    const auto arrived = hear<http_arrived>();
    ASSERT_TRUE(arrived);
    tell(actor::undeliverable{gateway_where, http_arrived::id, {why, "as asked"}, arrived->exchange});
    const auto [head, body] = client.read_response();
    EXPECT_THAT(head, HasSubstr(status));
    EXPECT_THAT(body, StartsWith("{\"error\":{\"message\":"));
    if (status == " 503 ") {
      EXPECT_THAT(head, HasSubstr("Retry-After: 1\r\n"));
    }
  }
}

TEST_F(http_gate_test, ends_open_exchanges_when_its_actor_is_restarted_and_serves_the_next_ones) {
  start();
  test::raw_client client(gate->port());
  client.send(request);
  ASSERT_TRUE(hear<http_arrived>());
  const auto host = actor::make_address(1, http_worker, 0);
  ASSERT_TRUE(link->send(test::frame_of(host, {}, actor::restart_actor{http_where})));
  EXPECT_THAT(client.read_response().first, HasSubstr(" 503 "));
  ASSERT_TRUE(hear<http_closed>());
  test::raw_client next(gate->port());
  next.send(request);
  const auto arrived = hear<http_arrived>();
  ASSERT_TRUE(arrived);
  tell(http_respond{.exchange = arrived->exchange, .body = "well"});
  EXPECT_EQ(next.read_response().second, "well");
}

TEST_F(http_gate_test, leaves_room_for_the_requests_of_other_tenants) {
  transport::http_front::options few;
  few.connections_max = 5;
  few.requests_per_owner_max = 2;
  const auto request_by = [](const std::string& header) {
    return "GET /x HTTP/1.1\r\nHost: h\r\n" + header + "\r\n\r\n";
  };
  const auto first = request_by("Authorization: Bearer key-of-one-1"), second = request_by("X-API-Key: key-of-one-2");
  start(few, {"one:key-of-one-1", "one:key-of-one-2", "other:key-of-other"});
  std::deque<test::raw_client> clients;
  for (int n = 0; n < 5; ++n) clients.emplace_back(gate->port());
  for (int n = 0; n < 3; ++n) {
    clients[static_cast<std::size_t>(n)].send(n == 1 ? second : first);
    ASSERT_TRUE(hear<http_arrived>());
  }
  clients[3].send(second);
  EXPECT_THAT(clients[3].read_response().first, StartsWith("HTTP/1.1 429 "));
  clients[4].send(request_by("api-key: key-of-other"));
  EXPECT_TRUE(hear<http_arrived>());
}

TEST_F(http_gate_test, does_not_keep_room_where_there_is_one_tenant) {
  transport::http_front::options few;
  few.connections_max = 4;
  few.requests_per_owner_max = 1;
  start(few, {"one:key-of-one-1", "one:key-of-one-2"});
  std::deque<test::raw_client> clients;
  for (int n = 0; n < 4; ++n) {
    auto& client = clients.emplace_back(gate->port());
    client.send("GET /x HTTP/1.1\r\nHost: h\r\nX-API-Key: key-of-one-1\r\n\r\n");
    ASSERT_TRUE(hear<http_arrived>());
  }
}

TEST_F(http_gate_test, names_the_exchange_in_what_it_sends) {
  start();
  test::raw_client client(gate->port());
  client.send(request);
  std::optional<actor::frame> f;
  for (int n = 0; n < 1000 && !f; ++n) {
    link->wait(microseconds{10'000});
    f = link->receive();
  }
  ASSERT_TRUE(f);
  EXPECT_EQ(f->head.subject, actor::decode<http_arrived>(f->body)->exchange);
}

TEST_F(http_gate_test, puts_the_parts_of_an_answer_together) {
  start();
  test::raw_client client(gate->port());
  client.send(request);
  const auto id = hear<http_arrived>()->exchange;
  tell(http_respond{.exchange = id, .status = 200, .headers = {{"X-A", "b"}}, .more = true});
  tell(http_body{.exchange = id, .data = "one ", .more = true});
  tell(http_body{.exchange = id, .data = "two"});
  const auto [head, body] = client.read_response();
  EXPECT_THAT(head, HasSubstr("X-A: b\r\n"));
  EXPECT_EQ(body, "one two");
}

TEST_F(http_gate_test, sends_an_answer_of_megabytes_as_it_is) {
  start();
  test::raw_client client(gate->port());
  for (const std::size_t bytes : {std::size_t{64} << 10, (std::size_t{64} << 10) + 1, std::size_t{5} << 20}) {
    client.send(request);
    const auto id = hear<http_arrived>()->exchange;
    tell(http_respond{.exchange = id, .status = 200, .more = true, .whole_bytes = bytes});
    std::string whole;
    while (whole.size() < bytes) whole += std::to_string(whole.size()) + ",";
    whole.resize(bytes);
    for (std::size_t at = 0; at < bytes; at += 1U << 20)
      tell(http_body{.exchange = id, .data = whole.substr(at, 1U << 20), .more = bytes - at > 1U << 20});
    const auto [head, body] = client.read_response();
    EXPECT_THAT(head, HasSubstr("Content-Length: " + std::to_string(bytes) + "\r\n"));
    EXPECT_TRUE(body == whole);
  }
}

TEST_F(http_gate_test, ends_an_answer_of_which_a_part_was_lost) {
  start();
  test::raw_client client(gate->port());
  client.send(request);
  const auto id = hear<http_arrived>()->exchange;
  tell(http_respond{.exchange = id, .status = 200, .more = true});
  tell(http_fail{.exchange = id, .status = 500, .error = "{}"});
  tell(http_body{.exchange = id, .data = "late"});
  const auto [head, body] = client.read_response();
  EXPECT_THAT(head, HasSubstr(" 500 "));
  EXPECT_EQ(body, "{}");
}

TEST_F(http_gate_test, gives_up_on_a_gateway_that_says_nothing) {
  start({.answer_timeout = std::chrono::milliseconds(60)});
  test::raw_client client(gate->port());
  client.send(request);
  const auto arrived = hear<http_arrived>();
  ASSERT_TRUE(arrived);
  const auto [head, body] = client.read_response();
  EXPECT_THAT(head, HasSubstr(" 504 "));
  EXPECT_THAT(body, HasSubstr("deadline_exceeded"));
  const auto closed = hear<http_closed>();
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->exchange, arrived->exchange);
}

TEST_F(http_gate_test, ends_all_exchanges_of_a_gateway_that_was_made_anew) {
  start();
  test::raw_client waiting(gate->port()), streaming(gate->port());
  waiting.send(request);
  const auto first = hear<http_arrived>()->exchange;
  streaming.send(request);
  const auto second = hear<http_arrived>()->exchange;
  tell(http_stream{
      .exchange = second, .begin = true, .headers = {{"Content-Type", "text/event-stream"}}, .data = "data: 1\n\n"});
  streaming.read_until("data: 1\n\n");
  tell(http_forget{});
  EXPECT_THAT(waiting.read_response().first, HasSubstr(" 503 "));
  EXPECT_THAT(streaming.read_until("0\r\n\r\n"), HasSubstr("data: {\"error\":"));
  std::set<std::uint64_t> closed{hear<http_closed>()->exchange, hear<http_closed>()->exchange};
  EXPECT_EQ(closed, (std::set<std::uint64_t>{first, second}));
}

}  // namespace
}  // namespace redline::actors
