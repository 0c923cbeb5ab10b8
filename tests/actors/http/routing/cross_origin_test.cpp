#include "actors/http/routing/cross_origin.hpp"

#include <gtest/gtest.h>

#include "actors/http/routing/headers.hpp"

namespace redline::actors {
namespace {

TEST(cross_origin, lets_nobody_in_unless_told) {
  const cross_origin none;
  EXPECT_FALSE(none.allows("https://a.example"));
  EXPECT_TRUE(none.headers_for("https://a.example").empty());
}

TEST(cross_origin, compares_whole_origins) {
  const auto some = *cross_origin::make({"https://a.example", "http://localhost:3000/"});
  EXPECT_TRUE(some.allows("https://a.example"));
  EXPECT_TRUE(some.allows("HTTPS://A.example"));
  EXPECT_TRUE(some.allows("http://localhost:3000")) << "a trailing slash is accepted in the configuration";
  for (const auto* other : {"http://a.example", "https://a.example:8443", "https://a.example.evil",
                            "https://b.a.example", "null", "", "https://"}) {
    EXPECT_FALSE(some.allows(other)) << other;
  }
  EXPECT_FALSE(some.allows_all());
  const auto all = *cross_origin::make({"*"});
  EXPECT_TRUE(all.allows_all());
  const auto headers = all.headers_for("https://x.example");
  ASSERT_NE(find_header(headers, "Access-Control-Allow-Origin"), nullptr);
  EXPECT_EQ(find_header(headers, "Access-Control-Allow-Credentials"), nullptr);
}

TEST(cross_origin, refuses_what_is_no_origin) {
  for (const auto* wrong :
       {"a.example", "https://", "://a", "https://a.example/page", "https://*.example", ""}) {
    EXPECT_FALSE(cross_origin::make({wrong})) << wrong;
  }
}

TEST(cross_origin, answers_a_browsers_question) {
  header_list headers;
  cross_origin::add_preflight(
      {{"Access-Control-Request-Headers", "authorization"}, {"Access-Control-Request-Private-Network", "true"}}, "POST",
      headers);
  EXPECT_EQ(*find_header(headers, "Access-Control-Allow-Headers"), "authorization");
  EXPECT_EQ(*find_header(headers, "Access-Control-Allow-Private-Network"), "true");
  headers.clear();
  cross_origin::add_preflight({{"Access-Control-Request-Headers", std::string(5000, 'x')}}, "POST", headers);
  EXPECT_EQ(find_header(headers, "Access-Control-Allow-Headers"), nullptr) << "more than any client requests";
}

}  // namespace
}  // namespace redline::actors
