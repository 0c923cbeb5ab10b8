#include "actors/http/routing/content_coding.hpp"

#include <gtest/gtest.h>

#include "runtime/base/size_limits.hpp"
#include "tests/support/packed_files.hpp"

namespace redline::actors {
namespace {

TEST(content_coding, leaves_a_plain_body_as_it_is) {
  for (const header_list& headers : {header_list{}, header_list{{"content-encoding", "identity"}}}) {
    const auto coding = content_coding::read(headers, "body");
    ASSERT_TRUE(coding);
    EXPECT_EQ(coding->bytes, 4U);
    EXPECT_EQ(*coding->unpack("body"), "body");
  }
}

TEST(content_coding, knows_the_work_before_it_is_done) {
  const std::string text(1'000'000, 'x');
  const auto file = test::make_gzip(text);
  const auto coding = content_coding::read({{"Content-Encoding", "GZip"}}, file);
  ASSERT_TRUE(coding);
  EXPECT_EQ(coding->bytes, text.size()) << "the job is queued by this size, not by the few received bytes";
  EXPECT_EQ(*coding->unpack(file), text);
}

TEST(content_coding, refuses_what_it_cannot_or_will_not_unpack) {
  EXPECT_EQ(content_coding::read({{"Content-Encoding", "zstd"}}, "x").error().status, 415U);
  EXPECT_EQ(content_coding::read({{"Content-Encoding", "gzip, gzip"}}, "x").error().status, 415U);
  EXPECT_EQ(content_coding::read({{"Content-Encoding", "gzip"}}, "{}").error().status, 400U);
  const auto bomb = test::make_gzip(std::string(sizes::http_body_bytes_max + 1, 'x'));
  EXPECT_EQ(content_coding::read({{"Content-Encoding", "gzip"}}, bomb).error().status, 413U);
  auto cut = test::make_gzip("some text");
  cut[cut.size() - 10] ^= 1;
  const auto coding = content_coding::read({{"Content-Encoding", "gzip"}}, cut);
  ASSERT_TRUE(coding);
  EXPECT_EQ(coding->unpack(cut).error().status, 400U);
}

TEST(content_coding, bounds_what_brotli_becomes) {
  const header_list headers{{"Content-Encoding", "br"}};
  const auto unpacked = [&](const std::string& packed) {
    const auto coding = content_coding::read(headers, packed);
    EXPECT_TRUE(coding);
    EXPECT_LE(coding->bytes, sizes::http_body_bytes_max);
    return coding->unpack(packed);
  };
  const auto text = unpacked(test::make_brotli("some text"));
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text, "some text");
  EXPECT_EQ(unpacked("x").error().status, 400U);
  const auto bomb = test::make_brotli(std::string(sizes::http_body_bytes_max, 'x'));
  ASSERT_LT(bomb.size(), 1000U);
  EXPECT_EQ(unpacked(bomb).error().status, 413U);
}

}  // namespace
}  // namespace redline::actors
