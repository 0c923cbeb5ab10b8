#include "runtime/sampling/noise_words.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "runtime/base/philox.hpp"

namespace redline::sampling {
namespace {

TEST(noise_words, of_many_blocks_at_once_are_those_of_each) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t seed = random(), index = random() >> random() % 60;
    const auto first = static_cast<std::uint32_t>(random() >> 34);
    many_noise_words found;
    const std::uint32_t greatest = draw_noise_words(seed, index, first, found);
    std::uint32_t expected_greatest = 0;
    for (std::uint32_t b = 0; b < blocks_together; ++b) {
      const auto expected = noise_words(seed, index, first + b);
      ASSERT_EQ(found.block(b), expected);
      expected_greatest = std::max(expected_greatest, *std::ranges::max_element(expected));
    }
    ASSERT_EQ(greatest, expected_greatest);
  }
}

TEST(noise_words, are_those_of_philox_with_the_index_and_a_word_of_their_own_as_counter) {
  const auto found = noise_words(0x123456789abcdef0U, 0x1111222233334444U, 77);
  EXPECT_EQ(found, philox4x32({77, 0x33334444U, 0x11112222U, 0x5265646cU}, {0x9abcdef0U, 0x12345678U}));
}

}  // namespace
}  // namespace redline::sampling
