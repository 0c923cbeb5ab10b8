#include "kernels/machine/memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>

namespace redline::kernels {
namespace {

constexpr std::size_t two_mib = std::size_t{2} << 20;

TEST(memory, is_zeroed_and_from_two_mib_on_begins_where_a_huge_page_does) {
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{5000}, two_mib - 1, two_mib, two_mib + 1, 7 * two_mib + 12345}) {
    const memory_block block(bytes);
    EXPECT_EQ(block.size(), bytes);
    EXPECT_TRUE(std::all_of(block.data(), block.data() + bytes, [](std::byte b) { return b == std::byte{0}; }));
    std::fill_n(block.data(), bytes, std::byte{1});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data()) % (bytes < two_mib ? 4096 : two_mib), 0U) << bytes;
  }
}

TEST(memory, of_no_bytes_is_none_and_moves_leave_none_behind) {
  memory_block none(0);
  EXPECT_EQ(none.data(), nullptr);
  memory_block some(3 * two_mib);
  std::byte* at = some.data();
  none = std::move(some);
  EXPECT_EQ(none.data(), at);
  const memory_block last(std::move(none));
  EXPECT_EQ(last.data(), at);
  EXPECT_EQ(none.data(), nullptr);
}

TEST(memory, that_no_machine_has_is_refused) {
  for (const std::size_t bytes :
       {std::numeric_limits<std::size_t>::max(), std::numeric_limits<std::size_t>::max() / 2}) {
    EXPECT_THROW(memory_block{bytes}, std::bad_alloc);
  }
}

}  // namespace
}  // namespace redline::kernels
