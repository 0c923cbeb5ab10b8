#include "actors/http/routing/browser_guard.hpp"

#include <gtest/gtest.h>

namespace redline::actors {
namespace {

unsigned status(const browser_guard& guard, const header_list& headers, const std::string& method = "POST") {
  const auto why = guard.check({.method = method, .path = "/v1/chat/completions", .headers = headers});
  return why ? why->status : 200;
}

TEST(browser_guard, serves_addresses_and_localhost_but_no_other_name) {
  const browser_guard guard{.hosts = {"box.lan"}};
  for (const char* host : {"127.0.0.1:8080", "localhost:8080", "LocalHost", "[::1]:8080", "[::1]", "10.0.0.7:80", "",
                           "app.localhost:1", "box.lan:8080", "BOX.lan"}) {
    EXPECT_EQ(status(guard, {{"Host", host}}), 200U) << host;
  }
  for (const char* host : {"evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example",
                           "notlocalhost", "[evil]", "1.2.3", "evil:80:80"}) {
    EXPECT_EQ(status(guard, {{"host", host}}), 403U) << host;
    EXPECT_EQ(status(guard, {{"Host", host}}, "GET"), 403U) << host << ": /metrics and edit sessions can be read";
    EXPECT_EQ(status({.checks_host = false}, {{"Host", host}}), 200U) << host;
  }
  EXPECT_EQ(status(guard, {}), 200U) << "HTTP/1.0";
}

TEST(browser_guard, refuses_pages_from_elsewhere) {
  const browser_guard guard{.hosts = {"ui.lan"}};
  const auto from = [&](const std::string& origin, const std::string& host = "127.0.0.1:8080") {
    return status(guard, {{"Host", host}, {"Origin", origin}, {"Content-Type", "application/json"}});
  };
  for (const char* own : {"http://127.0.0.1:8080", "http://localhost:3000", "http://[::1]:1", "https://ui.lan"})
    EXPECT_EQ(from(own), 200U) << own;
  EXPECT_EQ(from("http://192.168.0.2:8080", "192.168.0.2:8080"), 200U) << "its own page";
  for (const char* foreign : {"https://evil.example", "null", "", "http://192.168.0.2", "file://",
                              "http://127.evil.example", "https://localhost.evil.example"})
    EXPECT_EQ(from(foreign), 403U) << foreign;
  EXPECT_EQ(status({.checks_host = false}, {{"Origin", "https://evil.example"}}), 403U);
}

TEST(browser_guard, takes_only_json_from_a_page_and_anything_from_other_clients) {
  const browser_guard guard;
  const auto of_page = [&](const std::string& type, const std::string& method = "POST") {
    return status(guard, {{"Origin", "http://localhost:3000"}, {"Content-Type", type}}, method);
  };
  EXPECT_EQ(of_page("application/json"), 200U);
  EXPECT_EQ(of_page("Application/JSON; charset=utf-8"), 200U);
  EXPECT_EQ(of_page("text/plain"), 415U);
  EXPECT_EQ(of_page("text/plain", "PATCH"), 415U);
  EXPECT_EQ(of_page("text/plain", "GET"), 200U);
  EXPECT_EQ(status(guard, {{"Origin", "http://localhost:3000"}}), 415U);
  for (const char* type : {"application/x-www-form-urlencoded", "text/plain"})  // curl -d sends the first one
    EXPECT_EQ(status(guard, {{"Host", "localhost"}, {"Content-Type", type}}), 200U) << type;
  EXPECT_EQ(status(guard, {}), 200U);
}

}  // namespace
}  // namespace redline::actors
