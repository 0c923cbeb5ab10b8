#include "transport/http_client.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <cstdlib>
#include <random>

#include "tests/support/temporary_folder.hpp"
#include "tests/transport/http_server_fixture.hpp"

namespace redline::transport {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

http_url url_of(const http_server_fixture& server, std::string target = "/") {
  return {"127.0.0.1", server.port(), std::move(target)};
}

/// A server for one connection that sends `bytes` for any request and closes.
class canned_server {
 public:
  explicit canned_server(std::string bytes, bool closes = true) : acceptor_(io_, {boost::asio::ip::tcp::v4(), 0}) {
    thread_ = std::thread([this, said = std::move(bytes), closes] {
      boost::asio::ip::tcp::socket socket(io_);
      boost::system::error_code ec;
      acceptor_.accept(socket, ec);
      char chunk[4096];
      socket.read_some(boost::asio::buffer(chunk), ec);
      boost::asio::write(socket, boost::asio::buffer(said), ec);
      if (closes) socket.shutdown(boost::asio::ip::tcp::socket::shutdown_send, ec);
      while (!ec) socket.read_some(boost::asio::buffer(chunk), ec);
    });
  }
  ~canned_server() { thread_.join(); }
  http_url url() const { return {"127.0.0.1", acceptor_.local_endpoint().port(), "/"}; }

 private:
  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::thread thread_;
};

TEST(http_url, is_parsed_into_parts) {
  EXPECT_EQ(*parse_http_url("http://localhost:8080/v1/models?x=1#f"), (http_url{"localhost", 8080, "/v1/models?x=1"}));
  EXPECT_EQ(*parse_http_url("HTTP://a"), (http_url{"a", 80, "/"}));
  EXPECT_EQ(*parse_http_url("http://a?q"), (http_url{"a", 80, "/?q"}));
  EXPECT_EQ(*parse_http_url("http://[::1]:9/x"), (http_url{"::1", 9, "/x"}));
  EXPECT_EQ(*parse_http_url("http://[::1]"), (http_url{"::1", 80, "/"}));
  EXPECT_EQ(*parse_http_url("https://a/v1"), (http_url{"a", 443, "/v1", true}));
  EXPECT_EQ(*parse_http_url("https://a:8443"), (http_url{"a", 8443, "/", true}));
}

TEST(http_url, names_what_is_wrong) {
  for (const char* bad :
       {"", "a", "localhost:80", "ftp://a", "http://", "http://:80", "http://a:0", "http://a:65536", "http://a:8x",
        "http://[::1", "http://[::1]x", "http://u:p@a/", "http://a /", "http://a/\n"}) {
    const auto url = parse_http_url(bad);
    ASSERT_FALSE(url) << bad;
    EXPECT_EQ(url.error().code, errc::invalid_argument) << bad;
  }
}

TEST(http_client, gets_and_posts) {
  http_server_fixture server([](http_front& front, exchange_id id, http_request request) {
    const auto* key = request.header("authorization");
    front.respond(id, request.path == "/missing" ? 404 : 200, {{"X-Answer", "yes"}},
                  request.method + " " + request.body + (key ? *key : ""));
  });
  const auto got = http_get(url_of(server), {{"Authorization", "Bearer k"}});
  ASSERT_TRUE(got) << got.error().describe();
  EXPECT_EQ(got->status, 200u);
  EXPECT_EQ(got->body, "GET Bearer k");
  ASSERT_NE(got->header("x-answer"), nullptr);

  const std::string large(5 << 20, 'x');
  EXPECT_EQ(http_post(url_of(server), {}, large)->body, "POST " + large);
  EXPECT_EQ(http_get(url_of(server, "/missing"))->status, 404u);
  const auto head = http_call("HEAD", url_of(server), {}, "");
  ASSERT_TRUE(head) << head.error().describe();
  EXPECT_EQ(head->body, "");
}

TEST(http_client, follows_an_event_stream) {
  http_server_fixture server([](http_front& front, exchange_id id, http_request) {
    front.begin_stream(id, 200, {{"Content-Type", "text/event-stream"}});
    front.write(id, "data: {\"a\":1}\n\n: ping\n\n");
    front.write(id, "event: note\nid: 7\ndata: one\ndata: two\n\n");
    front.write(id, "data: [DONE]\n\n");
    front.end_stream(id);
  });
  std::vector<std::string> seen;
  const auto end = http_post_stream(url_of(server), {}, "{}", [&](const sse_event& event) {
    seen.push_back(event.type + "|" + event.data);
    return true;
  });
  ASSERT_TRUE(end) << end.error().describe();
  EXPECT_EQ(end->status, 200u);
  EXPECT_THAT(seen, ElementsAre("message|{\"a\":1}", "note|one\ntwo", "message|[DONE]"));
}

TEST(http_client, can_leave_a_stream) {
  http_server_fixture server([](http_front& front, exchange_id id, http_request) {
    front.begin_stream(id, 200, {{"Content-Type", "text/event-stream"}});
    front.write(id, "data: 1\n\ndata: 2\n\n");
  });
  int seen_count = 0;
  const auto end = http_post_stream(url_of(server), {}, "{}", [&](const sse_event&) { return ++seen_count < 1; });
  EXPECT_TRUE(end);
  EXPECT_EQ(seen_count, 1);
  EXPECT_TRUE(server.wait_for_closed(1));
}

TEST(http_client, collects_an_error_instead_of_a_stream) {
  http_server_fixture server([](http_front& front, exchange_id id, http_request) {
    front.respond(id, 429, {{"Content-Type", "application/json"}}, "{\"error\":{}}");
  });
  const auto end = http_post_stream(url_of(server), {}, "{}", [](const sse_event&) { return true; });
  ASSERT_TRUE(end);
  EXPECT_EQ(end->status, 429u);
  EXPECT_EQ(end->body, "{\"error\":{}}");
}

TEST(http_client, says_when_nobody_listens) {
  std::uint16_t port = 0;
  {
    http_server_fixture server(nullptr);
    port = server.port();
  }
  const auto refused = http_get({"127.0.0.1", port, "/"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::unreachable);
  EXPECT_THAT(refused.error().context, HasSubstr("127.0.0.1:" + std::to_string(port)));
  EXPECT_THAT(refused.error().context, HasSubstr("refused"));
}

TEST(http_client, gives_up_on_a_silent_server) {
  http_server_fixture server([](http_front&, exchange_id, http_request) {});
  http_client_options options;
  options.silence_timeout = milliseconds(50);
  const auto late = http_get(url_of(server), {}, options);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, errc::timed_out);
}

TEST(http_client, gives_up_when_it_is_told_to) {
  std::atomic<bool> given_up = false;
  http_server_fixture server([&](http_front&, exchange_id, http_request) { given_up = true; });
  const auto got = http_post(url_of(server), {}, "x", {.given_up = &given_up});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::cancelled);
  EXPECT_FALSE(http_get(url_of(server), {}, {.given_up = &given_up}));
}

TEST(http_client, tells_broken_responses_from_complete_ones) {
  const std::string stream_head =
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(http_get(canned_server("").url()).error().code, errc::io_error);
  EXPECT_EQ(http_get(canned_server("HTTP/1.1 200 OK\r\nContent-Le").url()).error().code, errc::io_error);
  EXPECT_EQ(http_get(canned_server("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc").url()).error().code,
            errc::io_error);
  EXPECT_EQ(http_get(canned_server("SSH-2.0-x\r\n\r\n").url()).error().code, errc::malformed_message);
  EXPECT_EQ(http_get(canned_server("HTTP/1.1 200 OK\r\n\r\nuntil the end").url())->body, "until the end");
  EXPECT_EQ(
      http_get(canned_server("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok").url())
          ->body,
      "ok");
  int seen_count = 0;
  const auto cut = http_post_stream(canned_server(stream_head + "9\r\ndata: 1\n\n\r\n").url(), {}, "",
                                    [&](const sse_event&) { return ++seen_count > 0; });
  EXPECT_EQ(seen_count, 1);
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, errc::io_error);
}

TEST(http_client, bounds_what_it_takes) {
  http_client_options options;
  options.body_bytes_max = 100;
  const std::string large(101, 'x');
  EXPECT_EQ(
      http_get(canned_server("HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n" + large).url(), {}, options).error().code,
      errc::malformed_message);
  EXPECT_EQ(http_get(canned_server("HTTP/1.1 200 OK\r\n\r\n" + large).url(), {}, options).error().code,
            errc::malformed_message);
}

TEST(http_client, asks_the_proxy_for_other_machines_and_no_proxy_for_this_one) {
  const canned_server proxy("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nproxy");
  ::setenv("http_proxy", ("http://127.0.0.1:" + std::to_string(proxy.url().port)).c_str(), 1);
  const auto direct = http_get(canned_server("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\ndirect").url());
  const auto other = http_get({"redline.invalid", 80, "/"});
  ::unsetenv("http_proxy");
  ASSERT_TRUE(direct) << direct.error().describe();
  EXPECT_EQ(direct->body, "direct");
  ASSERT_TRUE(other) << other.error().describe();
  EXPECT_EQ(other->body, "proxy");
}

/// `openssl s_server -www` with a self-made certificate; the port is 0 without openssl.
class tls_server {
 public:
  tls_server() {
    const std::string make =
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext "
        "subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout " +
        (folder_ / "key.pem") + " -out " + certificate() + " 2>/dev/null";
    if (std::system(make.c_str()) != 0) return;
    int out[2] = {};
    if (::pipe(out) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(out[1], 1);
      ::dup2(::open("/dev/null", O_RDWR), 2);
      ::execlp("openssl", "openssl", "s_server", "-www", "-accept", "127.0.0.1:0", "-key",
               (folder_ / "key.pem").c_str(), "-cert", certificate().c_str(), nullptr);
      std::_Exit(127);
    }
    ::close(out[1]);
    // Its output is "ACCEPT 127.0.0.1:PORT".
    std::string said;
    char c = 0;
    while (::read(out[0], &c, 1) == 1) {
      said += c;
      const auto at = said.find("ACCEPT 127.0.0.1:");
      if (c != '\n' || at == std::string::npos) continue;
      port_ = static_cast<std::uint16_t>(std::stoi(said.substr(at + 17)));
      break;
    }
    ::close(out[0]);
  }
  ~tls_server() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::string certificate() const { return folder_ / "certificate.pem"; }

 private:
  test::temporary_folder folder_;
  pid_t pid_ = 0;
  std::uint16_t port_ = 0;
};

TEST(http_client, trusts_a_server_only_with_a_known_certificate) {
  const tls_server server;
  if (server.port() == 0) GTEST_SKIP() << "no openssl program";
  const http_url url{"127.0.0.1", server.port(), "/", true};
  const auto unknown = http_get(url);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, errc::unreachable);
  EXPECT_THAT(unknown.error().context, HasSubstr("certificate"));
  ::setenv("SSL_CERT_FILE", server.certificate().c_str(), 1);
  const auto known = http_get(url);
  const auto other_name = http_get({"127.0.0.2", server.port(), "/", true});
  ::unsetenv("SSL_CERT_FILE");
  ASSERT_TRUE(known) << known.error().describe();
  EXPECT_EQ(known->status, 200U);
  EXPECT_FALSE(other_name);
}

TEST(http_client, refuses_headers_that_break_lines) {
  EXPECT_EQ(http_get({"127.0.0.1", 1, "/"}, {{"X", "a\r\nB: c"}}).error().code, errc::invalid_argument);
}

TEST(sse_parser, gives_the_same_events_however_the_stream_is_cut) {
  const std::string stream =
      "data: a\n\n: comment\ndata:b\rdata: c\r\n\r\nid: 1\nevent: e\ndata\n\nretry: 5\n\ndata: x: y\n\nunfinished";
  const auto events_of = [&](const std::vector<std::size_t>& cuts) {
    std::vector<std::string> seen;
    sse_parser parser(1000);
    std::size_t at = 0;
    const auto note = [&](const sse_event& e) {
      seen.push_back(e.type + "|" + e.id + "|" + e.data);
      return true;
    };
    for (const auto cut : cuts) {
      EXPECT_TRUE(parser.feed(std::string_view(stream).substr(at, cut - at), note));
      at = cut;
    }
    EXPECT_TRUE(parser.feed(std::string_view(stream).substr(at), note));
    return seen;
  };
  const auto whole = events_of({});
  EXPECT_THAT(whole, ElementsAre("message||a", "message||b\nc", "e|1|", "message|1|x: y"));
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::size_t> cuts;
    for (std::size_t at = random() % 5; at < stream.size(); at += 1 + random() % 9) cuts.push_back(at);
    ASSERT_EQ(events_of(cuts), whole);
  }
}

TEST(sse_parser, bounds_an_event) {
  sse_parser parser(10);
  const auto ignore = [](const sse_event&) { return true; };
  EXPECT_TRUE(parser.feed("data: 1\n\ndata: 2\n\n", ignore));
  EXPECT_EQ(parser.feed("data: 0123456789", ignore).error().code, errc::malformed_message);
}

}  // namespace
}  // namespace redline::transport
