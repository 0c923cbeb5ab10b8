#include "actors/http/studio/page_answer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/http/routing/headers.hpp"

namespace redline::actors {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr studio_file page{"text/html", "<p>a page</p>", "packed", "d1"};

std::string header(const page_answer& answer, std::string_view name) {
  const auto* found = find_header(answer.headers, name);
  return found != nullptr ? *found : "none";
}

TEST(page_answer, allows_nothing_but_the_pages_own_files) {
  const auto policy = header(answer_with(page, {}), "Content-Security-Policy");
  EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
  EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
  EXPECT_EQ(header(answer_with(page, {}), "X-Content-Type-Options"), "nosniff");
}

TEST(page_answer, is_packed_for_who_takes_that) {
  for (const std::string takes : {"gzip", "br, gzip, deflate", "gzip;q=0.5"}) {
    const auto packed = answer_with(page, {{"Accept-Encoding", takes}});
    EXPECT_EQ(header(packed, "content-encoding"), "gzip") << takes;
    EXPECT_EQ(packed.body, page.gzip) << takes;
  }
  for (const std::string takes : {"", "br", "gzip;q=0", "br, gzip;q=0.0", "gzip; q=0"}) {
    const auto plain = answer_with(page, {{"Accept-Encoding", takes}});
    EXPECT_EQ(header(plain, "content-encoding"), "none") << takes;
    EXPECT_EQ(plain.body, page.bytes) << takes;
  }
}

TEST(page_answer, is_not_sent_twice) {
  const auto tag = header(answer_with(page, {}), "ETag");
  const auto again = answer_with(page, {{"If-None-Match", "\"other\", " + tag}});
  EXPECT_EQ(again.status, 304U);
  EXPECT_TRUE(again.body.empty());
  const studio_file newer{"text/html", "<p>a new page</p>", "packed", "d2"};
  EXPECT_EQ(answer_with(newer, {{"If-None-Match", tag}}).status, 200U);
}

TEST(page_answer, reads_no_byte_of_the_file_to_say_that_a_browser_has_it) {
  const studio_file only_known_by_digest{"text/html", {}, {}, "d1"};
  EXPECT_EQ(header(answer_with(only_known_by_digest, {}), "ETag"), header(answer_with(page, {}), "ETag"));
}

TEST(studio_files, are_all_there_or_none) {
  const bool has_page = find_studio_file("index.html").has_value();
  for (const auto name : {"index.html", "studio.js", "studio.css", "favicon.svg"}) {
    const auto file = find_studio_file(name);
    ASSERT_EQ(file.has_value(), has_page) << name;
    if (!file) continue;
    EXPECT_FALSE(file->bytes.empty() || file->gzip.empty()) << name;
    EXPECT_EQ(file->digest.size(), 16U) << name;
  }
  EXPECT_FALSE(find_studio_file("nothing.js"));
  EXPECT_FALSE(find_studio_file(""));
  if (!has_page) return;
  const auto html = find_studio_file("index.html")->bytes;
  EXPECT_THAT(std::string(html), HasSubstr("studio/studio.js"));
  EXPECT_THAT(std::string(html), Not(HasSubstr("http"))) << "nothing from elsewhere";
  EXPECT_THAT(std::string(html), Not(testing::ContainsRegex("<script[^>]*>[^<]"))) << "no script inside";
}

}  // namespace
}  // namespace redline::actors
