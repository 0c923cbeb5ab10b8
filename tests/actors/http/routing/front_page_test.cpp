#include "actors/http/routing/front_page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace redline::actors {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(front_page, tells_what_is_served_and_how_to_ask) {
  const front_page page{.version = "1.2",
                        .state = "ready",
                        .base_url = "http://h:1",
                        .models = {{"coder", 4096}},
                        .paths = {{"POST", "/chat/completions"}}};
  const auto html = page.html();
  EXPECT_THAT(html, HasSubstr("Version 1.2, ready"));
  EXPECT_THAT(html, HasSubstr("<code>coder</code>"));
  EXPECT_THAT(html, HasSubstr("4096 tokens"));
  EXPECT_THAT(html, HasSubstr("curl -s http://h:1/v1/chat/completions"));
  EXPECT_THAT(html, Not(HasSubstr("Bearer")));
}

TEST(front_page, escapes_names_and_hides_them_behind_a_key) {
  front_page page{.base_url = "http://h", .models = {{"<script>\"&", 1}}};
  EXPECT_THAT(page.html(), HasSubstr("&lt;script&gt;&quot;&amp;"));
  EXPECT_THAT(page.html(), Not(HasSubstr("<script>")));
  page.needs_key = true;
  EXPECT_THAT(page.html(), Not(HasSubstr("script")));
  EXPECT_THAT(page.html(), HasSubstr("Authorization: Bearer KEY"));
}

}  // namespace
}  // namespace redline::actors
