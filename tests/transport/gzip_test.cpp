#include "transport/gzip.hpp"

#include <gtest/gtest.h>

#include "tests/support/packed_files.hpp"

namespace redline::transport {
namespace {

TEST(gzip, gives_back_what_was_packed) {
  for (const std::string& contents : {std::string(), std::string("x"), std::string(3'000'000, 'a')}) {
    const auto file = test::make_gzip(contents);
    EXPECT_EQ(read_gzip_size(file), contents.size());
    const auto back = gunzip(file);
    ASSERT_TRUE(back) << back.error().describe();
    EXPECT_EQ(*back, contents);
  }
}

TEST(gzip, refuses_what_is_none_and_never_gives_more_than_it_says) {
  const auto good = test::make_gzip("some contents that are packed");
  for (std::size_t length = 0; length < good.size(); ++length) EXPECT_FALSE(gunzip(good.substr(0, length))) << length;
  EXPECT_FALSE(gunzip(good + good)) << "two members";
  EXPECT_FALSE(gunzip("{\"messages\": []}, which is longer than a header"));
  for (std::size_t at = 0; at < good.size(); ++at) {
    auto broken = good;
    broken[at] = static_cast<char>(broken[at] ^ 0x10);
    const auto back = gunzip(broken);
    if (back) {
      EXPECT_EQ(*back, "some contents that are packed") << "a byte of the header without meaning: " << at;
    }
  }
  auto larger = test::make_gzip(std::string(1'000'000, 'a'));
  larger.replace(larger.size() - 4, 4, std::string("\x10\0\0\0", 4));  // the trailer claims 16 bytes
  EXPECT_FALSE(gunzip(larger));
}

}  // namespace
}  // namespace redline::transport
