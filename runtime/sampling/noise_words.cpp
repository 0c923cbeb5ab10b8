#include "runtime/sampling/noise_words.hpp"

#include <algorithm>

#include "kernels/machine/cpu_features.hpp"
#include "runtime/base/philox.hpp"

namespace redline::sampling {
namespace {

constexpr std::uint32_t of_sampling = 0x5265646cu;

std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

/// philox4x32 in lanes; compilers vectorize the loops for the target of the function into which this is inlined.
[[gnu::always_inline]] inline std::uint32_t draw(std::uint64_t seed, std::uint64_t index, std::uint32_t first_block,
                                                 many_noise_words& out) {
  constexpr std::size_t n = blocks_together;
  std::uint32_t a[n], b[n], c[n], d[n];
  for (std::size_t i = 0; i < n; ++i) {
    a[i] = first_block + static_cast<std::uint32_t>(i);
    b[i] = low(index);
    c[i] = high(index);
    d[i] = of_sampling;
  }
  std::uint32_t key[] = {low(seed), high(seed)};
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t x = std::uint64_t{0xD2511F53u} * a[i];
      const std::uint64_t y = std::uint64_t{0xCD9E8D57u} * c[i];
      a[i] = static_cast<std::uint32_t>(y >> 32) ^ b[i] ^ key[0];
      c[i] = static_cast<std::uint32_t>(x >> 32) ^ d[i] ^ key[1];
      b[i] = static_cast<std::uint32_t>(y);
      d[i] = static_cast<std::uint32_t>(x);
    }
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  std::uint32_t most[n];
  for (std::size_t i = 0; i < n; ++i) {
    out.of[0][i] = a[i];
    out.of[1][i] = b[i];
    out.of[2][i] = c[i];
    out.of[3][i] = d[i];
    most[i] = std::max(std::max(a[i], b[i]), std::max(c[i], d[i]));
  }
  std::uint32_t greatest = 0;
  for (std::size_t i = 0; i < n; ++i) greatest = std::max(greatest, most[i]);
  return greatest;
}

using draw_function = std::uint32_t (*)(std::uint64_t, std::uint64_t, std::uint32_t, many_noise_words&);

std::uint32_t draw_anywhere(std::uint64_t seed, std::uint64_t index, std::uint32_t block, many_noise_words& out) {
  return draw(seed, index, block, out);
}
#if defined(__x86_64__)
[[gnu::target("avx2")]] std::uint32_t draw_by_avx2(std::uint64_t seed, std::uint64_t index, std::uint32_t block,
                                                   many_noise_words& out) {
  return draw(seed, index, block, out);
}
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")]] std::uint32_t draw_by_avx512(
    std::uint64_t seed, std::uint64_t index, std::uint32_t block, many_noise_words& out) {
  return draw(seed, index, block, out);
}
#endif

draw_function best_draw() {
#if defined(__x86_64__)
  if (kernels::this_cpu().avx512) return draw_by_avx512;
  if (kernels::this_cpu().avx2) return draw_by_avx2;
#endif
  return draw_anywhere;
}

}  // namespace

std::array<std::uint32_t, 4> noise_words(std::uint64_t seed, std::uint64_t index, std::uint32_t block) {
  return philox4x32({block, low(index), high(index), of_sampling}, {low(seed), high(seed)});
}

std::uint32_t draw_noise_words(std::uint64_t seed, std::uint64_t index, std::uint32_t first_block,
                               many_noise_words& out) {
  static const draw_function best = best_draw();
  return best(seed, index, first_block, out);
}

}  // namespace redline::sampling
