#include "actors/http/routing/headers.hpp"

#include <gtest/gtest.h>

namespace redline::actors {
namespace {

TEST(headers, are_found_whatever_their_case) {
  const header_list list{{"X-One", "1"}, {"x-one", "2"}};
  ASSERT_NE(find_header(list, "x-oNE"), nullptr);
  EXPECT_EQ(*find_header(list, "x-oNE"), "1") << "the first";
  EXPECT_EQ(find_header(list, "x-on"), nullptr);
}

}  // namespace
}  // namespace redline::actors
