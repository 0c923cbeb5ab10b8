#include "kernels/weight_blocks.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "kernels/grid_blocks.hpp"
#include "kernels/half_floats.hpp"

namespace redline::kernels {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied into blocks as they lie in memory");

template<class Number>
Number get(const std::byte* from) {
  Number n;
  std::memcpy(&n, from, sizeof n);
  return n;
}
template<class Number>
void put(std::byte* to, Number n) {
  std::memcpy(to, &n, sizeof n);
}
unsigned bits_of(std::byte b) { return std::to_integer<unsigned>(b); }

float get_half(const std::byte* from) { return widen_f16(get<std::uint16_t>(from)); }
/// Stores the nearest half float and returns it: weights are rounded with the scale that a reader will see.
float put_half(std::byte* to, float x) {
  const std::uint16_t half = narrow_f16(x + 0.0F);  // avoids minus zero
  put(to, half);
  return widen_f16(half);
}

constexpr float half_max = 65504;

/// The nearest integer, ties to even, for |x| < 2^22; only by addition, which every compiler vectorizes.
float nearest(float x) { return (x + 0x1.8p23F) - 0x1.8p23F; }
float clamp(float x, float low, float high) { return std::min(std::max(x, low), high); }
/// 1 / x, or 0 if that is not usable: then every quotient is 0.
float inverse(float x) { return std::fabs(x) < 0x1p-100F ? 0 : 1 / x; }

/// Replaces NaN by 0, and clamps the rest to the range of a half float.
void tame(const float* x, std::size_t count, float* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = x[i] == x[i] ? clamp(x[i], -half_max, half_max) : 0;
}

/// The number with the largest magnitude, including its sign; the first on a tie.
float extreme(const float* x, int count) {
  float most = 0, least = 0;
  for (int i = 0; i < count; ++i) {
    most = std::max(most, x[i]);
    least = std::min(least, x[i]);
  }
  return -least > most ? least : most;
}

// ---- 32 weights per block

constexpr int small_block = 32;

/// Weight j is in the low half of byte j, weight j + 16 in the high half.
void unpack_nibbles(const std::byte* from, std::uint8_t* q) {
  for (int j = 0; j < 16; ++j) {
    q[j] = static_cast<std::uint8_t>(bits_of(from[j]) & 15);
    q[j + 16] = static_cast<std::uint8_t>(bits_of(from[j]) >> 4);
  }
}
void pack_nibbles(const std::uint8_t* q, std::byte* to) {
  for (int j = 0; j < 16; ++j) to[j] = static_cast<std::byte>((q[j] & 15) | (q[j + 16] & 15) << 4);
}
void unpack_fives(const std::byte* fifths, const std::byte* nibbles, std::uint8_t* q) {
  unpack_nibbles(nibbles, q);
  const auto high = get<std::uint32_t>(fifths);
  for (int j = 0; j < small_block; ++j) q[j] |= static_cast<std::uint8_t>((high >> j & 1) << 4);
}
void pack_fives(const std::uint8_t* q, std::byte* fifths, std::byte* nibbles) {
  pack_nibbles(q, nibbles);
  std::uint32_t high = 0;
  for (int j = 0; j < small_block; ++j) high |= std::uint32_t{q[j]} >> 4 << j;
  put(fifths, high);
}

void decode_q8_0(const std::byte* block, float* out) {
  const float d = get_half(block);
  for (int j = 0; j < small_block; ++j) out[j] = d * static_cast<float>(get<std::int8_t>(block + 2 + j));
}
void encode_q8_0(const float* x, std::byte* block) {
  const float scale = put_half(block, std::fabs(extreme(x, small_block)) / 127);
  const float by = inverse(scale);
  std::int8_t q[small_block];
  for (int j = 0; j < small_block; ++j) q[j] = static_cast<std::int8_t>(nearest(clamp(x[j] * by, -127, 127)));
  std::memcpy(block + 2, q, sizeof q);
}

/// The extreme number gets the end of the range that has one more step.
template<int Middle>
void encode_centred(const float* x, std::byte* scale_at, std::uint8_t* q) {
  const float by = inverse(put_half(scale_at, extreme(x, small_block) / -Middle));
  for (int j = 0; j < small_block; ++j) {
    q[j] = static_cast<std::uint8_t>(static_cast<int>(nearest(clamp(x[j] * by, -Middle, Middle - 1))) + Middle);
  }
}
template<int Middle>
void decode_centred(float d, const std::uint8_t* q, float* out) {
  for (int j = 0; j < small_block; ++j) out[j] = d * static_cast<float>(q[j] - Middle);
}
template<int Most>
void encode_from_least(const float* x, std::byte* block, std::uint8_t* q) {
  float least = x[0], most = x[0];
  for (int j = 1; j < small_block; ++j) {
    least = std::min(least, x[j]);
    most = std::max(most, x[j]);
  }
  const float by = inverse(put_half(block, (most - least) / Most));
  const float m = put_half(block + 2, least);
  for (int j = 0; j < small_block; ++j) {
    q[j] = static_cast<std::uint8_t>(nearest(clamp((x[j] - m) * by, 0, Most)));
  }
}
void decode_from_least(const std::byte* block, const std::uint8_t* q, float* out) {
  const float d = get_half(block), m = get_half(block + 2);
  for (int j = 0; j < small_block; ++j) out[j] = d * static_cast<float>(q[j]) + m;
}

void decode_q4_0(const std::byte* block, float* out) {
  std::uint8_t q[small_block];
  unpack_nibbles(block + 2, q);
  decode_centred<8>(get_half(block), q, out);
}
void encode_q4_0(const float* x, std::byte* block) {
  std::uint8_t q[small_block];
  encode_centred<8>(x, block, q);
  pack_nibbles(q, block + 2);
}
void decode_q5_0(const std::byte* block, float* out) {
  std::uint8_t q[small_block];
  unpack_fives(block + 2, block + 6, q);
  decode_centred<16>(get_half(block), q, out);
}
void encode_q5_0(const float* x, std::byte* block) {
  std::uint8_t q[small_block];
  encode_centred<16>(x, block, q);
  pack_fives(q, block + 2, block + 6);
}
void decode_q4_1(const std::byte* block, float* out) {
  std::uint8_t q[small_block];
  unpack_nibbles(block + 4, q);
  decode_from_least(block, q, out);
}
void encode_q4_1(const float* x, std::byte* block) {
  std::uint8_t q[small_block];
  encode_from_least<15>(x, block, q);
  pack_nibbles(q, block + 4);
}
void decode_q5_1(const std::byte* block, float* out) {
  std::uint8_t q[small_block];
  unpack_fives(block + 4, block + 8, q);
  decode_from_least(block, q, out);
}
void encode_q5_1(const float* x, std::byte* block) {
  std::uint8_t q[small_block];
  encode_from_least<31>(x, block, q);
  pack_fives(q, block + 4, block + 8);
}

// ---- 256 weights per block

constexpr int big_block = 256;
constexpr int groups = 8;  // groups of 32 weights, in q4_k and q5_k

/// Eight 6-bit scales and minima in 12 bytes: the first four of each in the low bits of bytes 0-3 and 4-7; of the
/// others, the low four bits in bytes 8-11 and the high two bits above those of bytes 0-3 and 4-7.
void unpack_scales(const std::byte* from, std::uint8_t* scales, std::uint8_t* minima) {
  for (int g = 0; g < 4; ++g) {
    const unsigned s = bits_of(from[g]), m = bits_of(from[g + 4]), rest = bits_of(from[g + 8]);
    scales[g] = static_cast<std::uint8_t>(s & 63);
    minima[g] = static_cast<std::uint8_t>(m & 63);
    scales[g + 4] = static_cast<std::uint8_t>((rest & 15) | s >> 6 << 4);
    minima[g + 4] = static_cast<std::uint8_t>(rest >> 4 | m >> 6 << 4);
  }
}
void pack_scales(const std::uint8_t* scales, const std::uint8_t* minima, std::byte* to) {
  for (int g = 0; g < 4; ++g) {
    to[g] = static_cast<std::byte>(scales[g] | scales[g + 4] >> 4 << 6);
    to[g + 4] = static_cast<std::byte>(minima[g] | minima[g + 4] >> 4 << 6);
    to[g + 8] = static_cast<std::byte>((scales[g + 4] & 15) | (minima[g + 4] & 15) << 4);
  }
}

/// q4_k and q5_k: 32 bytes of nibbles contain group 2c in their low and group 2c + 1 in their high halves. Bit g of
/// fifth-bit byte l belongs to weight l of group g.
void decode_minimum_groups(const std::byte* block, const std::byte* fifths, const std::byte* nibbles, float* out) {
  const float d = get_half(block), dmin = get_half(block + 2);
  std::uint8_t scales[groups], minima[groups];
  unpack_scales(block + 4, scales, minima);
  for (int g = 0; g < groups; ++g) {
    const float scale = d * static_cast<float>(scales[g]), minimum = dmin * static_cast<float>(minima[g]);
    for (int l = 0; l < 32; ++l) {
      unsigned q = bits_of(nibbles[g / 2 * 32 + l]) >> (g % 2 * 4) & 15;
      if (fifths != nullptr) q |= (bits_of(fifths[l]) >> g & 1) << 4;
      out[g * 32 + l] = scale * static_cast<float>(q) - minimum;
    }
  }
}

struct scale_and_minimum {
  float scale = 0;
  float minimum = 0;  // w = scale q - minimum, minimum >= 0
};

/// Sums over one group with its steps q, which determine the best scale and minimum and their error.
struct fit_sums {
  float q = 0, qq = 0, qx = 0;
};

template<int Count>
fit_sums sums_of(const float* x, float by, float minimum, float most) {
  float q_lanes[8] = {}, qq_lanes[8] = {}, qx_lanes[8] = {};
  for (int l = 0; l < Count; l += 8) {
    for (int i = 0; i < 8; ++i) {
      const float q = nearest(clamp((x[l + i] + minimum) * by, 0, most));
      q_lanes[i] += q;
      qq_lanes[i] += q * q;
      qx_lanes[i] += q * x[l + i];
    }
  }
  fit_sums s;
  for (int i = 0; i < 8; ++i) {
    s.q += q_lanes[i];
    s.qq += qq_lanes[i];
    s.qx += qx_lanes[i];
  }
  return s;
}

/// Least squares for x = scale q - minimum, once for each of several step widths; the best one wins.
template<int Count>
scale_and_minimum fit_minimum_group(const float* x, float most) {
  float least = 0, largest = 0, sum = 0;
  for (int l = 0; l < Count; ++l) {
    least = std::min(least, x[l]);
    largest = std::max(largest, x[l]);
    sum += x[l];
  }
  const float range = largest - least;
  if (range < 0x1p-60F) return {};  // below any half float; the steps would overflow
  scale_and_minimum best{range / most, -least};
  double best_gain = -1;  // how much of the sum of squares is explained
  for (int step = -2; step <= 5; ++step) {
    const fit_sums s = sums_of<Count>(x, (most + 0.2F * static_cast<float>(step)) / range, -least, most);
    const double determinant = double{Count} * s.qq - double{s.q} * s.q;
    if (determinant <= 0) continue;
    double scale = (double{Count} * s.qx - double{s.q} * sum) / determinant;
    double minimum = (double{s.q} * s.qx - double{s.qq} * sum) / determinant;
    if (minimum < 0) {
      minimum = 0;
      scale = s.qx / s.qq;
    }
    if (scale <= 0) continue;
    // sum of x^2 minus the error: 2 x.w - w.w
    const double xw = scale * s.qx - minimum * sum;
    const double ww = scale * scale * s.qq - 2 * scale * minimum * s.q + Count * minimum * minimum;
    if (const double gain = 2 * xw - ww; gain > best_gain) {
      best_gain = gain;
      best = {static_cast<float>(scale), static_cast<float>(minimum)};
    }
  }
  return best;
}

/// Computes the scales of a block and the steps of its weights, for q4_k (most = 15) and q5_k (31).
void encode_minimum_groups(const float* x, float most, std::byte* block, std::uint8_t* q) {
  scale_and_minimum fit[groups];
  float scale_max = 0, minimum_max = 0;
  for (int g = 0; g < groups; ++g) {
    fit[g] = fit_minimum_group<32>(x + g * 32, most);
    scale_max = std::max(scale_max, fit[g].scale);
    minimum_max = std::max(minimum_max, fit[g].minimum);
  }
  const float d = put_half(block, scale_max / 63), dmin = put_half(block + 2, minimum_max / 63);
  const float by_d = inverse(d), by_dmin = inverse(dmin);
  std::uint8_t scales[groups], minima[groups];
  for (int g = 0; g < groups; ++g) {
    scales[g] = static_cast<std::uint8_t>(nearest(clamp(fit[g].scale * by_d, 0, 63)));
    minima[g] = static_cast<std::uint8_t>(nearest(clamp(fit[g].minimum * by_dmin, 0, 63)));
    const float by = inverse(d * static_cast<float>(scales[g])), minimum = dmin * static_cast<float>(minima[g]);
    for (int l = 0; l < 32; ++l) {
      q[g * 32 + l] = static_cast<std::uint8_t>(nearest(clamp((x[g * 32 + l] + minimum) * by, 0, most)));
    }
  }
  pack_scales(scales, minima, block + 4);
}

void pack_group_nibbles(const std::uint8_t* q, std::byte* nibbles) {
  for (int c = 0; c < groups / 2; ++c) {
    for (int l = 0; l < 32; ++l) {
      nibbles[c * 32 + l] = static_cast<std::byte>((q[c * 64 + l] & 15) | (q[c * 64 + 32 + l] & 15) << 4);
    }
  }
}

void decode_q4_k(const std::byte* block, float* out) { decode_minimum_groups(block, nullptr, block + 16, out); }
void encode_q4_k(const float* x, std::byte* block) {
  std::uint8_t q[big_block];
  encode_minimum_groups(x, 15, block, q);
  pack_group_nibbles(q, block + 16);
}
void decode_q5_k(const std::byte* block, float* out) { decode_minimum_groups(block, block + 16, block + 48, out); }
void encode_q5_k(const float* x, std::byte* block) {
  std::uint8_t q[big_block];
  encode_minimum_groups(x, 31, block, q);
  for (int l = 0; l < 32; ++l) {
    unsigned fifths = 0;
    for (int g = 0; g < groups; ++g) fifths |= unsigned{q[g * 32 + l]} >> 4 << g;
    block[16 + l] = static_cast<std::byte>(fifths);
  }
  pack_group_nibbles(q, block + 48);
}

/// Where q6_k stores weight i: a nibble of one byte and two bits of another.
struct q6_place {
  int low, low_shift, high, high_shift;
};
q6_place place_of(int i) {
  const int half = i / 128, quarter = i % 128 / 32, l = i % 32;
  return {half * 64 + quarter % 2 * 32 + l, quarter / 2 * 4, half * 32 + l, quarter * 2};
}

constexpr int q6_high_at = 128, q6_scales_at = 192, q6_d_at = 208;

void decode_q6_k(const std::byte* block, float* out) {
  const float d = get_half(block + q6_d_at);
  for (int i = 0; i < big_block; ++i) {
    const q6_place p = place_of(i);
    const unsigned low = bits_of(block[p.low]) >> p.low_shift & 15;
    const unsigned high = bits_of(block[q6_high_at + p.high]) >> p.high_shift & 3;
    const float scale = d * static_cast<float>(get<std::int8_t>(block + q6_scales_at + i / 16));
    out[i] = scale * static_cast<float>(static_cast<int>(low | high << 4) - 32);
  }
}

/// Least squares for x = scale q over sixteen numbers, q in [-Middle, Middle), for several step widths.
template<int Middle>
float fit_centred_group(const float* x) {
  const float widest = extreme(x, 16);
  if (std::fabs(widest) < 0x1p-60F) return 0;
  float best = widest / -Middle;
  double best_gain = -1;
  for (int step = -4; step <= 4; ++step) {
    const float by = (-Middle - 0.25F * static_cast<float>(step)) / widest;
    float qq_lanes[4] = {}, qx_lanes[4] = {};
    for (int l = 0; l < 16; l += 4) {
      for (int i = 0; i < 4; ++i) {
        const float q = nearest(clamp(x[l + i] * by, -Middle, Middle - 1));
        qq_lanes[i] += q * q;
        qx_lanes[i] += q * x[l + i];
      }
    }
    const float qq = (qq_lanes[0] + qq_lanes[1]) + (qq_lanes[2] + qq_lanes[3]);
    const float qx = (qx_lanes[0] + qx_lanes[1]) + (qx_lanes[2] + qx_lanes[3]);
    if (qq <= 0) continue;
    if (const double gain = double{qx} * qx / qq; gain > best_gain) {
      best_gain = gain;
      best = qx / qq;
    }
  }
  return best;
}

void encode_q6_k(const float* x, std::byte* block) {
  float fit[16];
  for (int g = 0; g < 16; ++g) fit[g] = fit_centred_group<32>(x + g * 16);
  const float d = put_half(block + q6_d_at, extreme(fit, 16) / -128);
  const float by_d = inverse(d);
  std::memset(block, 0, q6_scales_at);
  for (int g = 0; g < 16; ++g) {
    const auto scale = static_cast<std::int8_t>(nearest(clamp(fit[g] * by_d, -128, 127)));
    put(block + q6_scales_at + g, scale);
    const float by = inverse(d * static_cast<float>(scale));
    for (int i = g * 16; i < g * 16 + 16; ++i) {
      const auto q = static_cast<unsigned>(static_cast<int>(nearest(clamp(x[i] * by, -32, 31))) + 32);
      const q6_place p = place_of(i);
      block[p.low] |= static_cast<std::byte>((q & 15) << p.low_shift);
      block[q6_high_at + p.high] |= static_cast<std::byte>(q >> 4 << p.high_shift);
    }
  }
}

/// q2_k and q3_k store the two bits of weight i in one byte of 64.
struct pair_place {
  int byte, shift;
};
pair_place pair_of(int i) { return {i / 128 * 32 + i % 32, i % 128 / 32 * 2}; }

constexpr int q2_pairs_at = 16, q2_d_at = 80;

void decode_q2_k(const std::byte* block, float* out) {
  const float d = get_half(block + q2_d_at), dmin = get_half(block + q2_d_at + 2);
  for (int i = 0; i < big_block; ++i) {
    const pair_place p = pair_of(i);
    const unsigned both = bits_of(block[i / 16]);
    const float scale = d * static_cast<float>(both & 15), minimum = dmin * static_cast<float>(both >> 4);
    out[i] = scale * static_cast<float>(bits_of(block[q2_pairs_at + p.byte]) >> p.shift & 3) - minimum;
  }
}
void encode_q2_k(const float* x, std::byte* block) {
  scale_and_minimum fit[16];
  float scale_max = 0, minimum_max = 0;
  for (int g = 0; g < 16; ++g) {
    fit[g] = fit_minimum_group<16>(x + g * 16, 3);
    scale_max = std::max(scale_max, fit[g].scale);
    minimum_max = std::max(minimum_max, fit[g].minimum);
  }
  const float d = put_half(block + q2_d_at, scale_max / 15), dmin = put_half(block + q2_d_at + 2, minimum_max / 15);
  const float by_d = inverse(d), by_dmin = inverse(dmin);
  std::memset(block, 0, q2_d_at);
  for (int g = 0; g < 16; ++g) {
    const auto s = static_cast<unsigned>(nearest(clamp(fit[g].scale * by_d, 0, 15)));
    const auto m = static_cast<unsigned>(nearest(clamp(fit[g].minimum * by_dmin, 0, 15)));
    block[g] = static_cast<std::byte>(s | m << 4);
    const float by = inverse(d * static_cast<float>(s)), minimum = dmin * static_cast<float>(m);
    for (int i = g * 16; i < g * 16 + 16; ++i) {
      const pair_place p = pair_of(i);
      const auto q = static_cast<unsigned>(nearest(clamp((x[i] + minimum) * by, 0, 3)));
      block[q2_pairs_at + p.byte] |= static_cast<std::byte>(q << p.shift);
    }
  }
}

constexpr int q3_pairs_at = 32, q3_scales_at = 96, q3_d_at = 108;

/// Sixteen 6-bit scales in 12 bytes: the low nibbles of groups 0 to 7 and 8 to 15 in the halves of the first eight
/// bytes, the high two bits of group g in byte 8 + g % 4.
int q3_scale(const std::byte* packed, int g) {
  const unsigned low = bits_of(packed[g % 8]) >> g / 8 * 4 & 15, high = bits_of(packed[8 + g % 4]) >> g / 4 * 2 & 3;
  return static_cast<int>(low | high << 4) - 32;
}
void decode_q3_k(const std::byte* block, float* out) {
  const float d = get_half(block + q3_d_at);
  for (int i = 0; i < big_block; ++i) {
    const pair_place p = pair_of(i);
    const unsigned third = bits_of(block[i % 32]) >> i / 32 & 1;
    const unsigned q = (bits_of(block[q3_pairs_at + p.byte]) >> p.shift & 3) | third << 2;
    const float scale = d * static_cast<float>(q3_scale(block + q3_scales_at, i / 16));
    out[i] = scale * static_cast<float>(static_cast<int>(q) - 4);
  }
}
void encode_q3_k(const float* x, std::byte* block) {
  float fit[16];
  for (int g = 0; g < 16; ++g) fit[g] = fit_centred_group<4>(x + g * 16);
  const float d = put_half(block + q3_d_at, extreme(fit, 16) / -32);
  const float by_d = inverse(d);
  std::memset(block, 0, q3_d_at);
  for (int g = 0; g < 16; ++g) {
    const float scale = nearest(clamp(fit[g] * by_d, -32, 31));
    const auto s = static_cast<unsigned>(static_cast<int>(scale) + 32);
    block[q3_scales_at + g % 8] |= static_cast<std::byte>((s & 15) << g / 8 * 4);
    block[q3_scales_at + 8 + g % 4] |= static_cast<std::byte>(s >> 4 << g / 4 * 2);
    const float by = inverse(d * scale);
    for (int i = g * 16; i < g * 16 + 16; ++i) {
      const pair_place p = pair_of(i);
      const auto q = static_cast<unsigned>(static_cast<int>(nearest(clamp(x[i] * by, -4, 3))) + 4);
      block[q3_pairs_at + p.byte] |= static_cast<std::byte>((q & 3) << p.shift);
      block[i % 32] |= static_cast<std::byte>(q >> 2 << i / 32);
    }
  }
}

// ---- nibbles that select numbers of a table

void decode_by_table(float scale, const std::int8_t* values, const std::byte* nibbles, float* out) {
  std::uint8_t q[small_block];
  unpack_nibbles(nibbles, q);
  for (int j = 0; j < small_block; ++j) out[j] = scale * static_cast<float>(values[q[j]]);
}
/// The index of the nearest number in iq4_values, the lower one on a tie; NaN gives the lowest.
std::uint8_t nearest_iq4(float x) {
  std::uint8_t q = 0;
  for (int i = 0; i < 15; ++i) q += x > static_cast<float>(iq4_values[i] + iq4_values[i + 1]) / 2 ? 1 : 0;
  return q;
}
/// Least squares for x = scale iq4_values[q] over 32 numbers, for several step widths.
float fit_iq4_group(const float* x) {
  const float widest = extreme(x, small_block);
  if (std::fabs(widest) < 0x1p-60F) return 0;
  float best = widest / -127;
  double best_gain = -1;
  for (int step = -7; step <= 7; ++step) {
    const float by = (-127 - 3 * static_cast<float>(step)) / widest;
    float qq = 0, qx = 0;
    for (int l = 0; l < small_block; ++l) {
      const auto value = static_cast<float>(iq4_values[nearest_iq4(x[l] * by)]);
      qq += value * value;
      qx += value * x[l];
    }
    if (const double gain = double{qx} * qx / qq; gain > best_gain) {
      best_gain = gain;
      best = qx / qq;
    }
  }
  return best;
}
void encode_iq4_group(const float* x, float scale, std::byte* nibbles) {
  const float by = inverse(scale);
  std::uint8_t q[small_block];
  for (int j = 0; j < small_block; ++j) q[j] = nearest_iq4(x[j] * by);
  pack_nibbles(q, nibbles);
}

void decode_iq4_nl(const std::byte* block, float* out) { decode_by_table(get_half(block), iq4_values, block + 2, out); }
void encode_iq4_nl(const float* x, std::byte* block) {
  encode_iq4_group(x, put_half(block, fit_iq4_group(x)), block + 2);
}

/// Eight 6-bit scales: two low nibbles per byte; the high two bits of group g from bit 2 g of a 16-bit number on.
int iq4_xs_scale(const std::byte* block, int g) {
  const unsigned low = bits_of(block[4 + g / 2]) >> g % 2 * 4 & 15;
  const unsigned high = static_cast<unsigned>(get<std::uint16_t>(block + 2)) >> 2 * g & 3;
  return static_cast<int>(low | high << 4) - 32;
}
void decode_iq4_xs(const std::byte* block, float* out) {
  const float d = get_half(block);
  for (int g = 0; g < groups; ++g) {
    const float scale = d * static_cast<float>(iq4_xs_scale(block, g));
    decode_by_table(scale, iq4_values, block + 8 + g * 16, out + g * small_block);
  }
}
void encode_iq4_xs(const float* x, std::byte* block) {
  float fit[groups];
  for (int g = 0; g < groups; ++g) fit[g] = fit_iq4_group(x + g * small_block);
  const float d = put_half(block, extreme(fit, groups) / -32);
  const float by_d = inverse(d);
  unsigned high = 0;
  std::memset(block + 4, 0, 4);
  for (int g = 0; g < groups; ++g) {
    const float scale = nearest(clamp(fit[g] * by_d, -32, 31));
    const auto s = static_cast<unsigned>(static_cast<int>(scale) + 32);
    block[4 + g / 2] |= static_cast<std::byte>((s & 15) << g % 2 * 4);
    high |= s >> 4 << 2 * g;
    encode_iq4_group(x + g * small_block, d * scale, block + 8 + g * 16);
  }
  put(block + 2, static_cast<std::uint16_t>(high));
}

float mxfp4_scale(unsigned e) {
  return e == 255 ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0F, static_cast<int>(e) - 128);
}
void decode_mxfp4(const std::byte* block, float* out) {
  decode_by_table(mxfp4_scale(bits_of(block[0])), mxfp4_values, block + 1, out);
}
/// Computes the steps with this exponent; returns the sum of squared errors.
double try_mxfp4(const float* x, int e, std::uint8_t* q) {
  const float scale = mxfp4_scale(static_cast<unsigned>(e));
  double error = 0;
  for (int j = 0; j < small_block; ++j) {
    const float size = std::fabs(x[j]) / scale;
    unsigned step = 0;
    for (int i = 0; i < 7; ++i) step += size > static_cast<float>(mxfp4_values[i] + mxfp4_values[i + 1]) / 2 ? 1 : 0;
    q[j] = static_cast<std::uint8_t>(x[j] < 0 && step > 0 ? step + 8 : step);
    const double off = double{x[j]} - double{scale} * mxfp4_values[q[j]];
    error += off * off;
  }
  return error;
}
/// The largest number determines the exponent, or the next one, which clips nothing.
void encode_mxfp4(const float* x, std::byte* block) {
  const float widest = std::fabs(extreme(x, small_block));
  const int least = widest < 0x1p-120F ? 0 : std::ilogb(widest) - 2 + 127;
  std::uint8_t q[small_block], next[small_block];
  const bool is_next = try_mxfp4(x, least + 1, next) < try_mxfp4(x, least, q);
  block[0] = static_cast<std::byte>(is_next ? least + 1 : least);
  pack_nibbles(is_next ? next : q, block + 1);
}

template<int Columns, auto Decode>
void decode_blocks(weight_type type, const std::byte* row, std::size_t columns, float* out) {
  for (std::size_t i = 0; i < columns; i += Columns, row += block_bytes(type)) Decode(row, out + i);
}
template<int Columns, auto Encode>
void encode_blocks(weight_type type, const float* x, std::size_t columns, std::byte* row) {
  float tamed[Columns];
  for (std::size_t i = 0; i < columns; i += Columns, row += block_bytes(type)) {
    tame(x + i, Columns, tamed);
    Encode(tamed, row);
  }
}

}  // namespace

void dequantize_row(weight_type type, const std::byte* row, std::size_t columns, float* out) {
  switch (type) {
    case weight_type::f32:
      if (columns > 0) std::memcpy(out, row, columns * sizeof(float));
      return;
    case weight_type::f16:
      for (std::size_t i = 0; i < columns; ++i) out[i] = get_half(row + 2 * i);
      return;
    case weight_type::bf16:
      for (std::size_t i = 0; i < columns; ++i) {
        out[i] = std::bit_cast<float>(std::uint32_t{get<std::uint16_t>(row + 2 * i)} << 16);
      }
      return;
    case weight_type::q8_0:
      return decode_blocks<small_block, decode_q8_0>(type, row, columns, out);
    case weight_type::q4_0:
      return decode_blocks<small_block, decode_q4_0>(type, row, columns, out);
    case weight_type::q4_1:
      return decode_blocks<small_block, decode_q4_1>(type, row, columns, out);
    case weight_type::q5_0:
      return decode_blocks<small_block, decode_q5_0>(type, row, columns, out);
    case weight_type::q5_1:
      return decode_blocks<small_block, decode_q5_1>(type, row, columns, out);
    case weight_type::q4_k:
      return decode_blocks<big_block, decode_q4_k>(type, row, columns, out);
    case weight_type::q5_k:
      return decode_blocks<big_block, decode_q5_k>(type, row, columns, out);
    case weight_type::q6_k:
      return decode_blocks<big_block, decode_q6_k>(type, row, columns, out);
    case weight_type::q2_k:
      return decode_blocks<big_block, decode_q2_k>(type, row, columns, out);
    case weight_type::q3_k:
      return decode_blocks<big_block, decode_q3_k>(type, row, columns, out);
    case weight_type::iq4_nl:
      return decode_blocks<small_block, decode_iq4_nl>(type, row, columns, out);
    case weight_type::iq4_xs:
      return decode_blocks<big_block, decode_iq4_xs>(type, row, columns, out);
    case weight_type::mxfp4:
      return decode_blocks<small_block, decode_mxfp4>(type, row, columns, out);
    case weight_type::iq2_xxs:
    case weight_type::iq2_xs:
    case weight_type::iq2_s:
    case weight_type::iq3_xxs:
    case weight_type::iq3_s:
    case weight_type::iq1_s:
    case weight_type::iq1_m:
      for (std::size_t i = 0; i < columns; i += big_block, row += block_bytes(type)) {
        dequantize_grid_block(type, row, out + i);
      }
      return;
  }
}

void quantize_row(weight_type type, const float* x, std::size_t columns, std::byte* row) {
  switch (type) {
    case weight_type::f32:
      if (columns > 0) std::memcpy(row, x, columns * sizeof(float));
      return;
    case weight_type::f16:
      for (std::size_t i = 0; i < columns; ++i) put(row + 2 * i, narrow_f16(x[i]));
      return;
    case weight_type::bf16:
      for (std::size_t i = 0; i < columns; ++i) put(row + 2 * i, narrow_bf16(x[i]));
      return;
    case weight_type::q8_0:
      return encode_blocks<small_block, encode_q8_0>(type, x, columns, row);
    case weight_type::q4_0:
      return encode_blocks<small_block, encode_q4_0>(type, x, columns, row);
    case weight_type::q4_1:
      return encode_blocks<small_block, encode_q4_1>(type, x, columns, row);
    case weight_type::q5_0:
      return encode_blocks<small_block, encode_q5_0>(type, x, columns, row);
    case weight_type::q5_1:
      return encode_blocks<small_block, encode_q5_1>(type, x, columns, row);
    case weight_type::q4_k:
      return encode_blocks<big_block, encode_q4_k>(type, x, columns, row);
    case weight_type::q5_k:
      return encode_blocks<big_block, encode_q5_k>(type, x, columns, row);
    case weight_type::q6_k:
      return encode_blocks<big_block, encode_q6_k>(type, x, columns, row);
    case weight_type::q2_k:
      return encode_blocks<big_block, encode_q2_k>(type, x, columns, row);
    case weight_type::q3_k:
      return encode_blocks<big_block, encode_q3_k>(type, x, columns, row);
    case weight_type::iq4_nl:
      return encode_blocks<small_block, encode_iq4_nl>(type, x, columns, row);
    case weight_type::iq4_xs:
      return encode_blocks<big_block, encode_iq4_xs>(type, x, columns, row);
    case weight_type::mxfp4:
      return encode_blocks<small_block, encode_mxfp4>(type, x, columns, row);
    case weight_type::iq2_xxs:
    case weight_type::iq2_xs:
    case weight_type::iq2_s:
    case weight_type::iq3_xxs:
    case weight_type::iq3_s:
    case weight_type::iq1_s:
    case weight_type::iq1_m:
      std::abort();  // not is_written
  }
}

}  // namespace redline::kernels
