#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace redline::sampling {

/// Random words for the tokens 4 * block to 4 * block + 3, which depend on these numbers only. The last counter word
/// separates sampling from other uses.
std::array<std::uint32_t, 4> noise_words(std::uint64_t seed, std::uint64_t index, std::uint32_t block);

/// The words of so many blocks of four tokens, at once.
inline constexpr std::size_t blocks_together = 16;
inline constexpr std::size_t tokens_together = 4 * blocks_together;

/// That of token t of these: of[t % 4][t / 4].
struct many_noise_words {
  std::uint32_t of[4][blocks_together];
  [[nodiscard]] std::array<std::uint32_t, 4> block(std::size_t b) const {
    return {of[0][b], of[1][b], of[2][b], of[3][b]};
  }
};

/// Those of noise_words(seed, index, first_block) and the following ones, by whichever vectors this CPU has. Returns
/// the greatest.
std::uint32_t draw_noise_words(std::uint64_t seed, std::uint64_t index, std::uint32_t first_block,
                               many_noise_words& out);

}  // namespace redline::sampling
