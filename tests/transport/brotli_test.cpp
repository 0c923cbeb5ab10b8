#include "transport/brotli.hpp"

#include <gtest/gtest.h>

#include "tests/support/packed_files.hpp"

namespace redline::transport {
namespace {

TEST(brotli, gives_back_what_was_packed) {
  for (const std::string& contents : {std::string(), std::string("x"), std::string(3'000'000, 'a')}) {
    const auto back = read_brotli(test::make_brotli(contents), 3'000'000);
    ASSERT_TRUE(back) << back.error().describe();
    EXPECT_EQ(*back, contents);
  }
}

TEST(brotli, refuses_what_is_none_and_never_gives_more_than_is_allowed) {
  const std::string contents = "some contents that are packed, some contents that are packed again";
  const auto good = test::make_brotli(contents);
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(read_brotli(good.substr(0, length), 1000)) << length;
  }
  EXPECT_FALSE(read_brotli(good + "x", 1000));
  EXPECT_EQ(read_brotli(good, contents.size()).value(), contents);
  EXPECT_EQ(read_brotli(good, contents.size() - 1).error().code, errc::unsupported_format);
  const auto bomb = test::make_brotli(std::string(10'000'000, 'a'));
  EXPECT_EQ(read_brotli(bomb, 100'000).error().code, errc::unsupported_format);
}

}  // namespace
}  // namespace redline::transport
