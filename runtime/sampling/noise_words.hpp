#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace redline::sampling {

/// Random words for the tokens 4 * block to 4 * block + 3, which depend only on these numbers. The last counter word
/// separates sampling from other uses.
std::array<std::uint32_t, 4> noise_words(std::uint64_t seed, std::uint64_t index, std::uint32_t block);

/// The number of blocks of four tokens whose words are drawn together.
inline constexpr std::size_t blocks_together = 16;
inline constexpr std::size_t tokens_together = 4 * blocks_together;

/// The word of token t is of[t % 4][t / 4].
struct many_noise_words {
  std::uint32_t of[4][blocks_together];
  [[nodiscard]] std::array<std::uint32_t, 4> block(std::size_t b) const {
    return {of[0][b], of[1][b], of[2][b], of[3][b]};
  }
};

/// Draws the words of noise_words(seed, index, first_block) and of the following blocks, with this CPU's vectors.
/// Returns the greatest.
std::uint32_t draw_noise_words(std::uint64_t seed, std::uint64_t index, std::uint32_t first_block,
                               many_noise_words& out);

}  // namespace redline::sampling
