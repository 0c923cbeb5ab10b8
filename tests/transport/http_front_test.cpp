#include "transport/http_front.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>

#include "tests/support/raw_client.hpp"
#include "tests/transport/http_server_fixture.hpp"

namespace redline::transport {
namespace {

using std::chrono::milliseconds;
using test::raw_client;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::vector<http_header> event_stream{{"Content-Type", "text/event-stream; charset=utf-8"}};

void echo(http_front& front, exchange_id id, http_request request) {
  front.respond(id, 200, {{"Content-Type", "text/plain"}}, request.method + " " + request.path + " " + request.body);
}
void keep_waiting(http_front&, exchange_id, http_request) {}
void stream_two_events(http_front& front, exchange_id id, http_request) {
  front.begin_stream(id, 200, event_stream);
  front.write(id, "data: 1\n\n");
  front.write(id, "data: 2\n\n");
  front.end_stream(id);
}

std::string get(std::string_view path, std::string_view more_headers = "") {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: h\r\n" + std::string(more_headers) + "\r\n";
}
std::string post(std::string_view path, std::string_view body) {
  return "POST " + std::string(path) + " HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + std::string(body);
}

/// A front's clock, which the test advances.
class hand_clock {
 public:
  std::chrono::steady_clock::time_point look() {
    ++looks_;
    return std::chrono::steady_clock::time_point(milliseconds(now_));
  }
  void advance(milliseconds by) { now_ += by.count(); }
  /// The front has done what it does at the time as it is now: the second look shows that the first one is over.
  bool wait_until_seen() const {
    const int enough = looks_ + 2;
    for (int n = 0; n < 10'000 && looks_ < enough; ++n) std::this_thread::sleep_for(milliseconds(1));
    return looks_ >= enough;
  }

 private:
  std::atomic<std::int64_t> now_ = 1'000'000;
  std::atomic<int> looks_ = 0;
};

TEST(http_front, answers_a_request_and_keeps_the_connection) {
  http_server_fixture server(echo);
  raw_client client(server.port());
  for (int n = 0; n < 3; ++n) {
    ASSERT_TRUE(client.send(post("/v1/x", "body " + std::to_string(n))));
    const auto [head, body] = client.read_response();
    EXPECT_THAT(head, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(head, HasSubstr("Connection: keep-alive\r\n"));
    EXPECT_THAT(head, HasSubstr("Date: "));
    EXPECT_EQ(body, "POST /v1/x body " + std::to_string(n));
  }
  EXPECT_TRUE(server.wait_for_open_exchanges(0));
  EXPECT_TRUE(server.closed().empty());
}

TEST(http_front, hands_over_everything_a_request_says) {
  http_server_fixture server(echo);
  raw_client client(server.port());
  client.send(
      "GET /v1/models/a%2Fb%20c?x=1&y=%20 HTTP/1.1\r\nHost: h\r\nX-Request-ID: r 1\r\nX-Twice: a\r\n"
      "X-Twice: b\r\n\r\n");
  client.read_response();
  const auto request = server.requests().at(0);
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.path, "/v1/models/a/b c");
  EXPECT_EQ(request.query, "x=1&y=%20");
  EXPECT_EQ(request.peer, "127.0.0.1");
  ASSERT_NE(request.header("x-request-id"), nullptr);
  EXPECT_EQ(*request.header("x-request-id"), "r 1");
  EXPECT_EQ(*request.header("X-TWICE"), "a");
  EXPECT_EQ(request.header("absent"), nullptr);
  EXPECT_EQ(std::count_if(request.headers.begin(), request.headers.end(),
                          [](const http_header& h) { return h.name == "X-Twice"; }),
            2);
}

TEST(http_front, accepts_a_full_url_and_a_star_as_target) {
  http_server_fixture server(echo);
  raw_client client(server.port());
  client.send("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(client.read_response().second, "OPTIONS * ");
  client.send("GET http://h:80/p?q HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(client.read_response().second, "GET /p ");
}

TEST(http_front, reads_bodies_however_they_are_cut) {
  http_server_fixture server(echo);
  const std::string chunked =
      "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n";
  for (const auto& whole : {chunked, post("/c", "hello world")}) {
    for (std::size_t cut = 1; cut < whole.size(); ++cut) {
      raw_client client(server.port());
      client.send(whole.substr(0, cut));
      std::this_thread::sleep_for(std::chrono::microseconds(300));
      client.send(whole.substr(cut));
      ASSERT_EQ(client.read_response().second, "POST /c hello world") << "cut at " << cut;
    }
  }
}

TEST(http_front, streams_in_chunks_and_keeps_the_connection) {
  http_server_fixture server(stream_two_events);
  raw_client client(server.port());
  for (int n = 0; n < 2; ++n) {
    client.send(get("/"));
    const std::string head = client.read_until("\r\n\r\n");
    EXPECT_THAT(head, HasSubstr("Transfer-Encoding: chunked\r\n"));
    EXPECT_THAT(head, HasSubstr("Content-Type: text/event-stream; charset=utf-8\r\n"));
    EXPECT_EQ(client.read_until("0\r\n\r\n"), "9\r\ndata: 1\n\n\r\n9\r\ndata: 2\n\n\r\n0\r\n\r\n");
  }
}

TEST(http_front, ends_a_stream_that_sent_nothing) {
  http_server_fixture server([](http_front& front, exchange_id id, http_request) {
    front.begin_stream(id, 200, {});
    front.write(id, "");  // an empty chunk would end the body
    front.end_stream(id);
  });
  raw_client client(server.port());
  client.send(get("/") + get("/"));
  EXPECT_EQ(client.read_until("0\r\n\r\n").substr(0, 8), "HTTP/1.1");
  EXPECT_EQ(client.read_until("0\r\n\r\n").substr(0, 8), "HTTP/1.1");
}

TEST(http_front, streams_to_old_clients_without_chunks) {
  http_server_fixture server(stream_two_events);
  raw_client client(server.port());
  client.send("GET / HTTP/1.0\r\n\r\n");
  const std::string all = client.read_all();
  EXPECT_THAT(all, Not(HasSubstr("chunked")));
  EXPECT_THAT(all, HasSubstr("\r\n\r\ndata: 1\n\ndata: 2\n\n"));
}

TEST(http_front, sends_no_body_for_head_requests) {
  http_server_fixture server(echo);
  raw_client client(server.port());
  client.send("HEAD /h HTTP/1.1\r\nHost: h\r\n\r\n" + get("/next"));
  EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("Content-Length: 8\r\n"));
  EXPECT_EQ(client.read_response().second, "GET /next ");
}

TEST(http_front, closes_when_the_client_asks_for_it) {
  http_server_fixture server(echo);
  raw_client client(server.port());
  client.send(get("/", "Connection: close\r\n"));
  EXPECT_THAT(client.read_response().first, HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(client.is_closed_by_server());
}

TEST(http_front, serves_pipelined_requests_in_order) {
  std::vector<exchange_id> waiting;  // used only on the server thread
  http_server_fixture server([&](http_front&, exchange_id id, http_request) { waiting.push_back(id); });
  raw_client client(server.port());
  client.send(get("/1") + post("/2", "two") + "\r\n" + get("/3"));
  for (int n = 1; n <= 3; ++n) {
    ASSERT_TRUE(server.wait_for_requests(n));
    EXPECT_EQ(server.open_exchanges(), 1u) << "one at a time";
    server.on_server([&](http_front& front) { front.respond(waiting.back(), 200, {}, std::to_string(n)); });
    EXPECT_EQ(client.read_response().second, std::to_string(n));
  }
  EXPECT_EQ(server.requests().at(1).body, "two");
}

TEST(http_front, sends_continue_before_a_body_only) {
  http_server_fixture server(echo);
  raw_client client(server.port());
  client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ok");
  EXPECT_EQ(client.read_response().second, "POST / ok");
}

TEST(http_front, notices_a_client_that_leaves_during_the_work) {
  http_server_fixture server(keep_waiting);
  raw_client client(server.port());
  client.send(get("/"));
  ASSERT_TRUE(server.wait_for_requests(1));
  client.close();
  ASSERT_TRUE(server.wait_for_closed(1));
  EXPECT_EQ(server.closed(), server.ids());
  EXPECT_EQ(server.open_exchanges(), 0u);
  server.on_server([&](http_front& front) { front.respond(exchange_id{1}, 200, {}, "too late"); });
}

TEST(http_front, takes_a_half_close_for_leaving) {
  http_server_fixture server(keep_waiting);
  raw_client client(server.port());
  client.send(get("/"));
  ASSERT_TRUE(server.wait_for_requests(1));
  client.shut_down_sending();
  EXPECT_TRUE(server.wait_for_closed(1));
  EXPECT_TRUE(client.is_closed_by_server());
}

TEST(http_front, notices_a_client_that_leaves_during_a_stream) {
  http_server_fixture server([](http_front& front, exchange_id id, http_request) {
    front.begin_stream(id, 200, event_stream);
    front.write(id, "data: 1\n\n");
  });
  raw_client client(server.port());
  client.send(get("/"));
  client.read_until("data: 1\n\n");
  client.close();
  ASSERT_TRUE(server.wait_for_closed(1));
  server.on_server([](http_front& front) {
    front.write(exchange_id{1}, "data: 2\n\n");
    front.end_stream(exchange_id{1});
  });
  EXPECT_EQ(server.closed().size(), 1u);
}

TEST(http_front, reports_a_slow_reader_and_its_recovery) {
  auto what = http_server_fixture::quick_options();
  what.buffered_bytes_high = 64 << 10;
  what.buffered_bytes_low = 16 << 10;
  what.socket_send_bytes = 16 << 10;
  constexpr std::size_t pieces = 200, piece_bytes = 8 << 10;
  std::size_t written = 0;  // used only on the server thread
  http_server_fixture server(
      [&](http_front& front, exchange_id id, http_request) {
        front.begin_stream(id, 200, {});
        while (written < pieces / 2) {
          front.write(id, std::string(piece_bytes, 'x'));
          ++written;
        }
      },
      what);
  server.on_flow = [&](http_front& front, exchange_id id, bool paused) {
    if (paused) return;
    while (written < pieces) {
      front.write(id, std::string(piece_bytes, 'x'));
      ++written;
    }
    front.end_stream(id);
  };
  raw_client client(server.port(), 16 << 10);
  client.send(get("/"));
  ASSERT_TRUE(server.wait_for_flow(1));
  EXPECT_THAT(server.flow(), ElementsAre(true));
  client.read_until("\r\n\r\n");
  const std::string body = client.read_until("\r\n0\r\n\r\n");
  EXPECT_EQ(std::count(body.begin(), body.end(), 'x'), static_cast<std::ptrdiff_t>(pieces * piece_bytes));
  EXPECT_FALSE(server.flow().at(1));
}

TEST(http_front, drops_a_reader_that_takes_nothing) {
  auto what = http_server_fixture::quick_options();
  what.write_timeout = milliseconds(100);
  what.socket_send_bytes = 16 << 10;
  http_server_fixture server(
      [](http_front& front, exchange_id id, http_request) {
        front.begin_stream(id, 200, {});
        front.write(id, std::string(8 << 20, 'x'));
      },
      what);
  raw_client client(server.port(), 16 << 10);
  client.send(get("/"));
  EXPECT_TRUE(server.wait_for_closed(1));
}

TEST(http_front, drops_a_reader_whose_buffer_is_full) {
  auto what = http_server_fixture::quick_options();
  what.buffered_bytes_max = 1 << 20;
  what.socket_send_bytes = 16 << 10;
  http_server_fixture server(
      [](http_front& front, exchange_id id, http_request) {
        front.begin_stream(id, 200, {});
        for (int n = 0; n < 8; ++n) front.write(id, std::string(1 << 20, 'x'));
      },
      what);
  raw_client client(server.port(), 16 << 10);
  client.send(get("/"));
  EXPECT_TRUE(server.wait_for_closed(1));
}

TEST(http_front, holds_a_whole_answer_open_with_blank_lines) {
  auto what = http_server_fixture::quick_options();
  what.ping_interval = what.hold_after = milliseconds(20);
  const auto hold = [](http_front& front, exchange_id id, http_request) {
    front.hold_open(id, {{"Content-Type", "application/json"}, {"x-request-id", "r"}});
  };
  http_server_fixture server(hold, what);
  raw_client client(server.port());
  client.send(post("/x", "{}"));
  EXPECT_THAT(client.read_until("\r\n\r\n"),
              testing::AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("x-request-id")));
  EXPECT_EQ(client.read_exactly(12), "1\r\n\n\r\n1\r\n\n\r\n");
  server.on_server([&](http_front& front) { front.respond({1}, 200, {}, "{\"a\": 1}"); });
  EXPECT_THAT(client.read_until("0\r\n\r\n"), HasSubstr("8\r\n{\"a\": 1}\r\n"));
  client.send(post("/x", "{}"));  // the connection stays open
  EXPECT_THAT(client.read_until("\n\r\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
  client.read_until("1\r\n\n\r\n");
  server.on_server([&](http_front& front) { front.respond({2}, 500, {}, "{}"); });
  EXPECT_THAT(client.read_until("{}"), Not(HasSubstr("0\r\n\r\n"))) << "the client sees that it was broken off";
}

TEST(http_front, sends_a_held_answer_that_comes_in_time_as_any_other) {
  http_server_fixture server([](http_front& front, exchange_id id, http_request) {
    front.hold_open(id, {{"Content-Type", "application/json"}});
    front.respond(id, 429, {{"Retry-After", "1"}}, "{}");
  });
  raw_client client(server.port());
  client.send(post("/x", "{}"));
  EXPECT_THAT(client.read_response().first, StartsWith("HTTP/1.1 429 "));
}

TEST(http_front, pings_a_silent_event_stream_only) {
  auto what = http_server_fixture::quick_options();
  what.ping_interval = milliseconds(20);
  http_server_fixture server(
      [](http_front& front, exchange_id id, http_request request) {
        front.begin_stream(id, 200, request.path == "/sse" ? event_stream : std::vector<http_header>{});
        front.write(id, "data: 1\n\n");
      },
      what);
  raw_client plain(server.port());
  plain.send(get("/plain"));
  raw_client client(server.port());
  client.send(get("/sse"));
  client.read_until("data: 1\n\n\r\n");
  EXPECT_EQ(client.read_exactly(26), "8\r\n: ping\n\n\r\n8\r\n: ping\n\n\r\n");
  server.on_server([](http_front& front) { front.end_stream(exchange_id{1}); });
  EXPECT_THAT(plain.read_until("0\r\n\r\n"), Not(HasSubstr("ping")));
}

struct bad_request {
  std::string name, bytes;
  unsigned status;
};

TEST(http_front, refuses_bad_requests_with_an_error_object) {
  auto what = http_server_fixture::quick_options();
  what.header_bytes_max = 4 << 10;
  what.body_bytes_max = 1000;
  http_server_fixture server(echo, what);
  const std::string chunked = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  const bad_request table[] = {
      {"garbage", "hello there\r\n\r\n", 400},
      {"no method", " / HTTP/1.1\r\n\r\n", 400},
      {"binary", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11), 400},
      {"bare line feed in the header", "GET / HTTP/1.1\r\nHost: h\nX: y\r\n\r\n", 400},
      {"blank before the colon", "GET / HTTP/1.1\r\nHost : h\r\n\r\n", 400},
      {"no host", "GET / HTTP/1.1\r\n\r\n", 400},
      {"two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"target without a slash", "GET foo HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"bad escape in the target", "GET /%4 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"zero byte in the target", "GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"length is no number", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n", 400},
      {"negative length", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", 400},
      {"two lengths", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400},
      {"length and chunks", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
       400},
      {"unknown coding", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n", 501},
      {"a coding before chunked",
       "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", 501},
      {"a coding in a header of its own",
       "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501},
      {"a coding with a body that never ends", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
       501},
      {"chunked for an old client", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501},
      {"unknown expectation of a whole request",
       "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nExpect: tea\r\n\r\nx", 417},
      {"unknown expectation", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nExpect: tea\r\n\r\n", 417},
      {"body too large", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n", 413},
      {"body too large and sent anyway", post("/", std::string(1001, 'x')), 413},
      {"length beyond reason", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 18446744073709551615\r\n\r\n", 413},
      {"chunk too large", chunked + "3E9\r\n", 413},
      {"chunks too large together", chunked + "3E8\r\n" + std::string(1000, 'x') + "\r\n1\r\nx\r\n", 413},
      {"chunk size is no number", chunked + "zz\r\n\r\n", 400},
      {"chunk size overflows", chunked + "fffffffffffffffff\r\n\r\n", 400},
      {"chunk extension without end", chunked + "1;" + std::string(9000, 'x'), 431},
      {"trailers without end", chunked + "0\r\nA: " + std::string(9000, 'x'), 431},
      {"one long header", "GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(9000, 'x') + "\r\n\r\n", 431},
      {"one long target", "GET /" + std::string(9000, 'x') + " HTTP/1.1\r\nHost: h\r\n\r\n", 431},
  };
  for (const auto& bad : table) {
    raw_client client(server.port());
    client.send(bad.bytes);
    const auto [head, body] = client.read_response();
    EXPECT_THAT(head, StartsWith("HTTP/1.1 " + std::to_string(bad.status) + " ")) << bad.name;
    EXPECT_THAT(head, HasSubstr("Connection: close\r\n")) << bad.name;
    EXPECT_THAT(body, StartsWith("{\"error\":{\"message\":\"")) << bad.name;
    client.shut_down_sending();
    EXPECT_TRUE(client.is_closed_by_server()) << bad.name;
  }
  EXPECT_TRUE(server.requests().empty());
}

TEST(http_front, refuses_many_small_headers_that_are_too_much_together) {
  auto what = http_server_fixture::quick_options();
  what.header_bytes_max = 4 << 10;
  http_server_fixture server(echo, what);
  raw_client client(server.port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n");
  for (int n = 0; n < 2000 && client.send("X-" + std::to_string(n) + ": y\r\n"); ++n) {
  }
  EXPECT_THAT(client.read_until("\r\n"), HasSubstr(" 431 "));
}

TEST(http_front, refuses_long_headers_however_they_are_cut) {
  auto what = http_server_fixture::quick_options();
  what.header_bytes_max = 512;
  http_server_fixture server(echo, what);
  const std::string whole = get("/", "A: " + std::string(300, 'x') + "\r\nB: " + std::string(200, 'x') + "\r\n");
  for (std::size_t cut = 300; cut < whole.size(); cut += 7) {
    raw_client client(server.port());
    client.send(whole.substr(0, cut));
    std::this_thread::sleep_for(milliseconds(2));
    client.send(whole.substr(cut));
    EXPECT_THAT(client.read_until("\r\n"), HasSubstr(" 431 ")) << "cut at " << cut;
  }
}

TEST(http_front, accepts_a_body_of_exactly_the_limit) {
  auto what = http_server_fixture::quick_options();
  what.body_bytes_max = 1 << 20;
  http_server_fixture server(
      [](http_front& front, exchange_id id, http_request request) {
        front.respond(id, 200, {}, std::to_string(request.body.size()));
      },
      what);
  raw_client client(server.port());
  client.send(post("/", std::string(1 << 20, 'x')));
  EXPECT_EQ(client.read_response().second, "1048576");
}

TEST(http_front, refuses_a_larger_body_before_it_is_read_and_names_the_limit) {
  http_server_fixture server(echo);
  raw_client client(server.port());
  client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(sizes::http_body_bytes_max + 1) +
              "\r\n\r\n");
  const auto [head, body] = client.read_response();
  EXPECT_THAT(head, HasSubstr(" 413 "));
  EXPECT_THAT(body, HasSubstr("at most 8388608 bytes"));
  EXPECT_THAT(body, HasSubstr("\"code\":\"request_too_large\""));
}

TEST(http_front, bounds_what_all_clients_send_together) {
  auto what = http_server_fixture::quick_options();
  what.received_bytes_max = 1 << 20;
  http_server_fixture server(echo, what);
  raw_client first(server.port()), second(server.port());
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\n\r\n";
  first.send(head + std::string(600 << 10, 'x'));
  second.send(head + std::string(600 << 10, 'x'));
  // Which of the two sees the limit depends on which is read first.
  std::string seen = "neither";
  pollfd wait[2] = {{first.descriptor(), POLLIN, 0}, {second.descriptor(), POLLIN, 0}};
  ASSERT_GE(::poll(wait, 2, 10'000), 1);
  seen = (wait[0].revents != 0 ? first : second).read_until("\r\n");
  EXPECT_THAT(seen, HasSubstr(" 503 "));
}

TEST(http_front, drops_requests_that_arrive_too_slowly) {
  auto what = http_server_fixture::quick_options();
  what.read_timeout = milliseconds(60);
  http_server_fixture server(echo, what);
  raw_client client(server.port());
  client.send("GET / HT");
  EXPECT_THAT(client.read_until("\r\n"), HasSubstr(" 408 "));
}

TEST(http_front, closes_idle_connections_silently) {
  auto what = http_server_fixture::quick_options();
  what.idle_timeout = milliseconds(60);
  http_server_fixture server(echo, what);
  raw_client client(server.port());
  client.send(get("/"));
  client.read_response();
  EXPECT_TRUE(client.is_closed_by_server());
}

TEST(http_front, answers_504_when_the_answer_does_not_come) {
  auto what = http_server_fixture::quick_options();
  what.answer_timeout = milliseconds(60);
  http_server_fixture server(keep_waiting, what);
  raw_client client(server.port());
  client.send(get("/"));
  const auto [head, body] = client.read_response();
  EXPECT_THAT(head, HasSubstr(" 504 "));
  EXPECT_THAT(body, HasSubstr("deadline_exceeded"));
  EXPECT_TRUE(server.wait_for_closed(1)) << "the handler need not continue";
}

TEST(http_front, ends_a_stream_that_falls_silent_with_an_error_event) {
  auto what = http_server_fixture::quick_options();
  what.answer_timeout = milliseconds(60);
  what.ping_interval = milliseconds(10);  // a ping does not count as progress of the answer
  http_server_fixture server(
      [](http_front& front, exchange_id id, http_request request) {
        front.begin_stream(id, 200, request.path == "/sse" ? event_stream : std::vector<http_header>{});
        front.write(id, "data: 1\n\n");
      },
      what);
  raw_client events(server.port()), plain(server.port());
  events.send(get("/sse"));
  plain.send(get("/plain"));
  EXPECT_THAT(events.read_until("0\r\n\r\n"), HasSubstr("data: {\"error\":{\"message\":"));
  EXPECT_THAT(plain.read_all(), Not(HasSubstr("\r\n0\r\n\r\n"))) << "the client must see that the end is missing";
  EXPECT_TRUE(server.wait_for_closed(2));
}

TEST(http_front, waits_on_while_the_handler_reports_progress) {
  hand_clock time;
  auto what = http_server_fixture::quick_options();
  what.answer_timeout = milliseconds(600);
  what.ping_interval = milliseconds(20);  // so that it looks at the clock often
  what.now = [&] { return time.look(); };
  http_server_fixture server(keep_waiting, what);
  raw_client client(server.port());
  client.send(get("/"));
  ASSERT_TRUE(server.wait_for_requests(1));
  for (int n = 0; n < 10; ++n) {
    time.advance(milliseconds(500));
    ASSERT_TRUE(time.wait_until_seen());
    server.on_server([](http_front& front) { front.note_progress(exchange_id{1}); });
  }
  server.on_server([](http_front& front) { front.respond(exchange_id{1}, 200, {}, "made it"); });
  EXPECT_EQ(client.read_response().second, "made it");
}

TEST(http_front, waits_less_for_a_first_request_than_for_the_next_one) {
  auto what = http_server_fixture::quick_options();
  what.first_byte_timeout = milliseconds(300);
  http_server_fixture server(echo, what);
  raw_client used(server.port()), silent(server.port());
  used.send(get("/1"));
  used.read_response();
  EXPECT_TRUE(silent.is_closed_by_server());
  used.send(get("/2"));
  EXPECT_EQ(used.read_response().second, "GET /2 ");
}

TEST(http_front, closes_the_longest_idle_connection_for_a_new_one) {
  auto what = http_server_fixture::quick_options();
  what.connections_max = 3;
  http_server_fixture server(
      [](http_front& front, exchange_id id, http_request request) {
        if (request.path != "/wait") front.respond(id, 200, {}, "ok");
      },
      what);
  raw_client busy(server.port());
  busy.send(get("/wait"));
  ASSERT_TRUE(server.wait_for_requests(1));
  raw_client older(server.port()), newer(server.port());
  for (auto* one : {&older, &newer}) {
    one->send(get("/"));
    one->read_response();
  }
  raw_client guest(server.port());
  guest.send(get("/"));
  EXPECT_EQ(guest.read_response().second, "ok");
  EXPECT_TRUE(older.is_closed_by_server());
  newer.send(get("/"));
  EXPECT_EQ(newer.read_response().second, "ok");
  server.on_server([](http_front& front) { front.respond(exchange_id{1}, 200, {}, "late"); });
  EXPECT_EQ(busy.read_response().second, "late");
}

TEST(http_front, closes_requests_that_do_not_come_to_an_end_for_a_new_connection) {
  auto what = http_server_fixture::quick_options();
  what.connections_max = 2;
  hand_clock time;
  what.now = [&] { return time.look(); };
  http_server_fixture server(echo, what);
  raw_client first(server.port()), second(server.port());
  first.send("GET / HTTP");
  second.send("GET / HTTP");
  for (int n = 0; n < 100; ++n) server.on_server([](http_front&) {});  // between which it reads what came
  time.advance(milliseconds(1'000));                                   // arriving_min
  raw_client guest(server.port());
  guest.send(get("/"));
  EXPECT_EQ(guest.read_response().second, "GET / ");
}

TEST(http_front, leaves_room_for_other_addresses) {
  auto what = http_server_fixture::quick_options();
  what.connections_per_address_max = 2;
  what.bounds_loopback = true;
  http_server_fixture server(keep_waiting, what);
  raw_client first(server.port()), second(server.port());
  first.send(get("/"));
  ASSERT_TRUE(server.wait_for_requests(1));  // the first one must have number 1
  second.send(get("/"));
  ASSERT_TRUE(server.wait_for_requests(2));
  EXPECT_THAT(raw_client(server.port()).read_response().first, HasSubstr(" 503 "));
  server.on_server([](http_front& front) { front.respond(exchange_id{1}, 200, {}, "done"); });
  first.read_response();
  second.close();
  ASSERT_TRUE(server.wait_for_closed(1));
  raw_client later(server.port());
  later.send(get("/"));
  EXPECT_TRUE(server.wait_for_requests(3)) << "there is space again";
}

TEST(http_front, does_not_bound_what_a_proxy_on_this_machine_opens) {
  auto what = http_server_fixture::quick_options();
  what.connections_per_address_max = 1;
  http_server_fixture server(keep_waiting, what);
  raw_client first(server.port()), second(server.port());
  for (auto* one : {&first, &second}) one->send(get("/"));
  EXPECT_TRUE(server.wait_for_requests(2));
}

TEST(http_front, leaves_room_for_the_requests_of_other_owners) {
  auto what = http_server_fixture::quick_options();
  what.connections_max = 8;
  what.requests_per_owner_max = 2;
  http_server_fixture server(keep_waiting, what);
  std::vector<std::unique_ptr<raw_client>> open;
  const auto ask = [&](const std::string& text) -> raw_client& {
    open.push_back(std::make_unique<raw_client>(server.port()));
    open.back()->send(text);
    return *open.back();
  };
  for (std::size_t n = 1; n <= 6; ++n) {
    ask(get("/", "X-Owner: 1\r\n"));
    ASSERT_TRUE(server.wait_for_requests(n)) << "beyond its share while there is space for several others";
  }
  const auto [head, body] =
      ask("POST / HTTP/1.1\r\nHost: h\r\nX-Owner: 1\r\nContent-Length: 900\r\n\r\n").read_response();
  EXPECT_THAT(head, StartsWith("HTTP/1.1 429 ")) << "before the body has come";
  EXPECT_THAT(head, HasSubstr("Retry-After: 1\r\n"));
  EXPECT_THAT(body, HasSubstr("too_many_requests"));
  ask(get("/", "X-Owner: 2\r\n"));
  ASSERT_TRUE(server.wait_for_requests(7)) << "another owner";
  server.on_server([](http_front& front) {
    for (std::uint64_t id = 1; id <= 2; ++id) front.respond(exchange_id{id}, 200, {}, "done");
  });
  for (std::size_t n = 0; n < 2; ++n) open[n]->read_response();
  open[0]->send(get("/", "X-Owner: 1\r\n"));
  EXPECT_TRUE(server.wait_for_requests(8)) << "there is space again";
  open.clear();
  ASSERT_TRUE(server.wait_for_closed(6));
  for (std::size_t n = 9; n <= 14; ++n) {
    ask(get("/", "X-Owner: 1\r\n"));
    ASSERT_TRUE(server.wait_for_requests(n)) << "clients that left use no memory";
  }
}

TEST(http_front, does_not_bound_requests_without_an_owner) {
  auto what = http_server_fixture::quick_options();
  what.connections_max = 8;
  what.requests_per_owner_max = 1;
  http_server_fixture server(keep_waiting, what);
  std::vector<std::unique_ptr<raw_client>> open;
  for (std::size_t n = 1; n <= 8; ++n) {
    open.push_back(std::make_unique<raw_client>(server.port()));
    open.back()->send(get("/"));
    ASSERT_TRUE(server.wait_for_requests(n));
  }
}

TEST(http_front, serves_small_requests_while_large_ones_fill_what_there_is) {
  auto what = http_server_fixture::quick_options();
  what.received_bytes_max = 2 << 20;
  what.small_bytes = 32 << 10;
  http_server_fixture server(
      [](http_front& front, exchange_id id, http_request request) {
        front.respond(id, 200, {}, std::to_string(request.body.size()));
      },
      what);
  raw_client kept(server.port());
  kept.send(get("/"));
  kept.read_response();
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: ";
  std::vector<std::unique_ptr<raw_client>> slow;
  for (int n = 0; n < 8; ++n) {
    slow.push_back(std::make_unique<raw_client>(server.port()));
    slow.back()->send(head + "1000000\r\n\r\n" + std::string(400 << 10, 'x'));
  }
  // A small body in two pieces, another client's next request, and a body larger than small.
  raw_client small(server.port());
  small.send(head + "20000\r\n\r\n" + std::string(10'000, 'x'));
  kept.send(get("/"));
  EXPECT_EQ(kept.read_response().second, "0");
  std::this_thread::sleep_for(milliseconds(20));
  small.send(std::string(10'000, 'x'));
  EXPECT_EQ(small.read_response().second, "20000");
  raw_client large(server.port());
  large.send(head + "250000\r\n\r\n" + std::string(250'000, 'x'));
  EXPECT_EQ(large.read_response().second, "250000") << "it has less than a fair share";
  EXPECT_THAT(slow.front()->read_response().first, HasSubstr(" 503 ")) << "the slowest one was dropped";
}

TEST(http_front, tells_a_client_that_sends_on_that_its_body_is_too_large) {
  http_server_fixture server([](http_front& front, exchange_id id, http_request) { front.respond(id, 200, {}, "no"); });
  raw_client client(server.port());
  const std::size_t bytes = sizes::http_body_bytes_max + (1U << 20);
  client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n");
  EXPECT_TRUE(client.send(std::string(bytes, 'x'))) << "it reads nothing before it has sent everything";
  EXPECT_THAT(client.read_response().first, HasSubstr(" 413 "));
}

TEST(http_front, bounds_what_slow_readers_leave_unread_together) {
  auto what = http_server_fixture::quick_options();
  what.unsent_bytes_max = 4 << 20;
  what.small_bytes = 64 << 10;
  what.socket_send_bytes = 16 << 10;
  http_server_fixture server(
      [](http_front& front, exchange_id id, http_request request) {
        front.respond(id, 200, {}, std::string(request.path == "/large" ? 3 << 20 : 1000, 'x'));
      },
      what);
  raw_client first(server.port(), 16 << 10), second(server.port(), 16 << 10);
  first.send(get("/large"));
  ASSERT_TRUE(server.wait_for_requests(1));
  second.send(get("/large"));
  EXPECT_LT(first.read_all().size(), 3u << 20) << "the first one was cut off";
  raw_client small(server.port());
  small.send(get("/small"));
  EXPECT_EQ(small.read_response().second.size(), 1000u);
  EXPECT_EQ(second.read_response().second.size(), 3u << 20);
}

TEST(http_front, tells_clients_past_the_connection_limit) {
  auto what = http_server_fixture::quick_options();
  what.connections_max = 1;
  http_server_fixture server(keep_waiting, what);
  raw_client first(server.port());
  first.send(get("/"));
  ASSERT_TRUE(server.wait_for_requests(1));
  {
    raw_client second(server.port());
    const auto [head, body] = second.read_response();
    EXPECT_THAT(head, HasSubstr(" 503 "));
    EXPECT_THAT(head, HasSubstr("Retry-After: "));
    EXPECT_THAT(body, HasSubstr("overloaded"));
  }
  server.on_server([](http_front& front) { front.respond(exchange_id{1}, 200, {}, "done"); });
  EXPECT_EQ(first.read_response().second, "done");
}

TEST(http_front, goes_on_answering_while_it_drains_and_ends_each_connection) {
  http_server_fixture server([](http_front& front, exchange_id id, http_request request) {
    if (request.path != "/wait") front.respond(id, 503, {}, request.path);
  });
  raw_client idle(server.port()), busy(server.port());
  idle.send(get("/"));
  idle.read_response();
  busy.send(get("/wait"));
  ASSERT_TRUE(server.wait_for_requests(2));
  server.on_server([](http_front& front) { front.drain(); });
  raw_client probe(server.port());
  for (auto* one : {&idle, &probe}) {
    one->send(get("/readyz"));
    const auto [head, body] = one->read_response();
    EXPECT_EQ(body, "/readyz");
    EXPECT_THAT(head, HasSubstr("Connection: close\r\n"));
    EXPECT_TRUE(one->is_closed_by_server());
    one->close();
  }
  server.on_server([](http_front& front) { front.respond(exchange_id{2}, 200, {}, "done"); });
  const auto [head, body] = busy.read_response();
  EXPECT_EQ(body, "done");
  EXPECT_THAT(head, HasSubstr("Connection: close\r\n"));
}

TEST(http_front, is_busy_until_the_last_byte_of_an_answer_is_sent) {
  auto what = http_server_fixture::quick_options();
  what.socket_send_bytes = 16 << 10;
  http_server_fixture server(
      [](http_front& front, exchange_id id, http_request) { front.respond(id, 200, {}, std::string(4 << 20, 'x')); },
      what);
  const auto busy = [&] {
    std::size_t count = 0;
    server.on_server([&](http_front& front) { count = front.busy_connections(); });
    return count;
  };
  raw_client client(server.port(), 16 << 10);
  client.send(get("/"));
  ASSERT_TRUE(server.wait_for_requests(1));
  server.on_server([](http_front& front) { front.drain(); });
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(busy(), 1u) << "the client has read nothing";
  EXPECT_EQ(client.read_response().second.size(), 4u << 20);
  client.close();
  for (int n = 0; n < 1000 && busy() > 0; ++n) std::this_thread::sleep_for(milliseconds(5));
  EXPECT_EQ(busy(), 0u);
}

TEST(http_front, keeps_header_values_on_one_line) {
  http_server_fixture server([](http_front& front, exchange_id id, http_request) {
    front.respond(id, 200, {{"x-request-id", "a\r\nSet-Cookie: b"}, {"bad name", "x"}, {"Content-Length", "9"}}, "ok");
  });
  raw_client client(server.port());
  client.send(get("/"));
  const auto [head, body] = client.read_response();
  EXPECT_THAT(head, HasSubstr("x-request-id: aSet-Cookie: b\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("bad name")));
  EXPECT_EQ(body, "ok");
}

TEST(http_front, answers_500_when_a_handler_throws) {
  http_server_fixture server(
      [](http_front&, exchange_id, http_request) { throw std::runtime_error("a secret of the handler"); });
  raw_client client(server.port());
  client.send(get("/"));
  const auto [head, body] = client.read_response();
  EXPECT_THAT(head, HasSubstr(" 500 "));
  EXPECT_THAT(body, Not(HasSubstr("secret")));
}

TEST(http_front, ignores_calls_out_of_turn) {
  http_server_fixture server([](http_front& front, exchange_id id, http_request) {
    front.write(id, "before begin");
    front.end_stream(id);
    front.respond(id, 200, {}, "first");
    front.respond(id, 200, {}, "second");
    front.begin_stream(id, 200, {});
    front.respond(exchange_id{999}, 200, {}, "nobody");
  });
  raw_client client(server.port());
  client.send(get("/") + get("/"));
  EXPECT_EQ(client.read_response().second, "first");
  EXPECT_EQ(client.read_response().second, "first");
}

TEST(http_front, listens_on_ipv6) {
  auto what = http_server_fixture::quick_options();
  what.address = "[::1]";
  boost::asio::io_context io;
  if (!http_front::listen(io, what, {})) GTEST_SKIP() << "there is no IPv6 here";
  http_server_fixture server(echo, what);
  raw_client client(server.port(), 0, "::1");
  client.send(get("/six"));
  EXPECT_EQ(client.read_response().second, "GET /six ");
  EXPECT_EQ(server.requests().at(0).peer, "::1");
}

TEST(http_front, says_why_it_cannot_listen) {
  http_server_fixture server(echo);
  boost::asio::io_context io;
  auto what = http_server_fixture::quick_options();
  what.port = server.port();
  const auto taken = http_front::listen(io, what, {});
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, errc::io_error);
  EXPECT_THAT(taken.error().context, HasSubstr("port " + std::to_string(server.port()) + ": cannot bind"));
  what.buffered_bytes_low = what.buffered_bytes_high + 1;
  EXPECT_EQ(http_front::listen(io, what, {}).error().code, errc::invalid_argument);
}

TEST(http_front, can_be_destroyed_with_exchanges_open) {
  boost::asio::io_context io;
  int closed_count = 0;
  http_front::handlers whom;
  whom.on_closed = [&](exchange_id) { ++closed_count; };
  auto made = http_front::listen(io, http_server_fixture::quick_options(), std::move(whom));
  ASSERT_TRUE(made);
  auto front = std::move(*made);
  raw_client client(front->port());
  client.send(get("/"));
  while (front->open_exchanges() == 0) io.run_one();
  front.reset();
  io.run();  // returns because nothing is left to wait for
  EXPECT_EQ(closed_count, 0);
  EXPECT_TRUE(client.is_closed_by_server());
}

TEST(http_front, survives_mutated_requests) {
  auto what = http_server_fixture::quick_options();
  what.header_bytes_max = 2 << 10;
  what.body_bytes_max = 200;
  http_server_fixture server(echo, what);
  const std::string seeds[] = {
      post("/v1/x", "0123456789"), get("/a?b", "Expect: 100-continue\r\nConnection: keep-alive, upgrade\r\n"),
      "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3;x=\"y\"\r\nabc\r\n0\r\nT: v\r\n"
      "\r\n"};
  std::mt19937 random(7);
  for (int round = 0; round < 600; ++round) {
    std::string bytes = seeds[random() % 3] + (random() % 4 == 0 ? seeds[random() % 3] : "");
    for (unsigned n = random() % 4; n > 0; --n) {
      const std::size_t at = random() % bytes.size();
      static constexpr char spice[] = "\r\n :;0\x00\xff;aF%,";
      switch (random() % 4) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.erase(at, 1 + random() % 3);
          break;
        case 2:
          bytes.insert(at, 1, spice[random() % sizeof spice]);
          break;
        default:
          bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 20));
          break;
      }
      if (bytes.empty()) bytes = "x";
    }
    raw_client client(server.port());
    ASSERT_TRUE(client.is_connected());
    const std::size_t cut = random() % (bytes.size() + 1);
    client.send(bytes.substr(0, cut));
    if (random() % 2 == 0) std::this_thread::yield();
    client.send(bytes.substr(cut));
    client.shut_down_sending();
    const std::string answer = client.read_all();
    ASSERT_TRUE(answer.empty() || answer.starts_with("HTTP/1.1 ")) << round << ": " << answer;
  }
  raw_client client(server.port());
  client.send(get("/alive"));
  EXPECT_EQ(client.read_response().second, "GET /alive ");
}

}  // namespace
}  // namespace redline::transport
