#include "kernels/weight_blocks.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/targets/tables.hpp"

namespace redline::kernels {
namespace {

using std::byte;

float load_half(const byte* at) {
  float x = 0;
  scalar_table().widen(element_type::f16, at, 1, &x);
  return x;
}
/// Stores x as a half and returns what was stored.
float store_half(float x, byte* at) {
  scalar_table().narrow(element_type::f16, &x, 1, at);
  return load_half(at);
}
int number(byte b) { return std::to_integer<int>(b); }
std::uint32_t load_word(const byte* at) {
  std::uint32_t word = 0;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

/// round(x) inside [least, most]; NaN becomes least.
int nearest(float x, int least, int most) {
  if (!(x > static_cast<float>(least))) return least;
  if (x >= static_cast<float>(most)) return most;
  return static_cast<int>(std::lrint(x));
}

float inverse(float x) { return x == 0 || !std::isfinite(x) ? 0.0F : 1 / x; }

// ---- blocks of 32 -------------------------------------------------------------------------------------------------

/// Where the fields of q4_0, q4_1, q5_0 and q5_1 lie.
struct q45_fields {
  bool minimum;
  bool fifth;
  [[nodiscard]] std::size_t fifth_at() const { return minimum ? 4 : 2; }
  [[nodiscard]] std::size_t nibbles_at() const { return fifth_at() + (fifth ? 4 : 0); }
  [[nodiscard]] int levels() const { return fifth ? 32 : 16; }
};

q45_fields fields_of(weight_type type) {
  return {type == weight_type::q4_1 || type == weight_type::q5_1, type == weight_type::q5_0 || type == weight_type::q5_1};
}

void decode_q45(q45_fields f, const byte* block, float* out) {
  const float d = load_half(block);
  const float m = f.minimum ? load_half(block + 2) : 0;
  const std::uint32_t fifth = f.fifth ? load_word(block + f.fifth_at()) : 0;
  const byte* nibbles = block + f.nibbles_at();
  for (int i = 0; i < 32; ++i) {
    const int low = i < 16 ? number(nibbles[i]) & 15 : number(nibbles[i - 16]) >> 4;
    const int q = low | static_cast<int>(fifth >> i & 1) << 4;
    out[i] = f.minimum ? d * static_cast<float>(q) + m : d * static_cast<float>(q - f.levels() / 2);
  }
}

void encode_q45(q45_fields f, const float* x, byte* block) {
  float d = 0;
  float zero = 0;  // what level 0 stands for
  if (f.minimum) {
    const auto [least, most] = std::minmax_element(x, x + 32);
    d = store_half((*most - *least) / static_cast<float>(f.levels() - 1), block);
    zero = store_half(*least, block + 2);
  } else {
    const float extreme = *std::max_element(x, x + 32, [](float a, float b) { return std::abs(a) < std::abs(b); });
    d = store_half(extreme / static_cast<float>(-f.levels() / 2), block);
    zero = -d * static_cast<float>(f.levels()) / 2;
  }
  const float per = inverse(d);
  byte* nibbles = block + f.nibbles_at();
  std::memset(nibbles, 0, 16);
  std::uint32_t fifth = 0;
  for (int i = 0; i < 32; ++i) {
    const int q = nearest((x[i] - zero) * per, 0, f.levels() - 1);
    fifth |= static_cast<std::uint32_t>(q >> 4) << i;
    nibbles[i % 16] |= static_cast<byte>((q & 15) << (i < 16 ? 0 : 4));
  }
  if (f.fifth) std::memcpy(block + f.fifth_at(), &fifth, 4);
}

void decode_q8_0(const byte* block, float* out) {
  const float d = load_half(block);
  for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(static_cast<std::int8_t>(block[2 + i])) * d;
}

void encode_q8_0(const float* x, byte* block) {
  float most = 0;
  for (int i = 0; i < 32; ++i) most = std::max(most, std::abs(x[i]));
  const float per = inverse(store_half(most / 127, block));
  for (int i = 0; i < 32; ++i) block[2 + i] = static_cast<byte>(nearest(x[i] * per, -127, 127));
}

// ---- blocks of 256: q4_k, q5_k ------------------------------------------------------------------------------------

struct scale_pair {
  int scale;
  int minimum;
};

/// Group g's two 6-bit numbers in the 12 bytes: the first four groups lie plainly, the others as a nibble and two bits
/// that the first four leave free.
scale_pair unpack_scales(const byte* packed, std::size_t g) {
  if (g < 4) return {number(packed[g]) & 63, number(packed[g + 4]) & 63};
  return {(number(packed[g + 4]) & 15) | number(packed[g - 4]) >> 6 << 4,
          number(packed[g + 4]) >> 4 | number(packed[g]) >> 6 << 4};
}

void pack_scales(const std::array<scale_pair, 8>& pairs, byte* packed) {
  for (std::size_t g = 0; g < 4; ++g) {
    packed[g] = static_cast<byte>(pairs[g].scale | pairs[g + 4].scale >> 4 << 6);
    packed[g + 4] = static_cast<byte>(pairs[g].minimum | pairs[g + 4].minimum >> 4 << 6);
    packed[g + 8] = static_cast<byte>((pairs[g + 4].scale & 15) | (pairs[g + 4].minimum & 15) << 4);
  }
}

void decode_q45_k(bool fifth, const byte* block, float* out) {
  const float d = load_half(block);
  const float dmin = load_half(block + 2);
  const byte* high = block + 16;
  const byte* low = fifth ? block + 48 : block + 16;
  for (std::size_t g = 0; g < 8; ++g) {
    const scale_pair pair = unpack_scales(block + 4, g);
    const float scale = d * static_cast<float>(pair.scale);
    const float minimum = dmin * static_cast<float>(pair.minimum);
    for (std::size_t i = 0; i < 32; ++i) {
      const int two = number(low[g / 2 * 32 + i]);
      int q = g % 2 == 0 ? two & 15 : two >> 4;
      if (fifth) q |= (number(high[i]) >> g & 1) << 4;
      out[g * 32 + i] = scale * static_cast<float>(q) - minimum;
    }
  }
}

/// x ~ scale q - minimum, q in [0, levels).
struct affine {
  float scale = 0;
  float minimum = 0;
};

/// Tries steps a little smaller and larger than the span asks for; for each the rounded levels give the least-squares
/// scale and minimum, and the best of all wins. The minimum never turns negative: the format cannot say it.
affine fit_group(const float* x, int count, int levels) {
  float least = 0;
  float most = 0;
  for (int i = 0; i < count; ++i) {
    least = std::min(least, x[i]);
    most = std::max(most, x[i]);
  }
  affine best{(most - least) / static_cast<float>(levels - 1), -least};
  if (!(most > least)) return {0, -least};
  float best_error = std::numeric_limits<float>::infinity();
  for (int step = -4; step <= 10; ++step) {
    const float per = (static_cast<float>(levels - 1) + 0.1F * static_cast<float>(step)) / (most - least);
    double q1 = 0;
    double q2 = 0;
    double x1 = 0;
    double xq = 0;
    for (int i = 0; i < count; ++i) {
      const double q = nearest((x[i] - least) * per, 0, levels - 1);
      q1 += q;
      q2 += q * q;
      x1 += x[i];
      xq += q * x[i];
    }
    const double determinant = count * q2 - q1 * q1;
    if (!(determinant > 0)) continue;
    auto scale = static_cast<float>((count * xq - q1 * x1) / determinant);
    auto minimum = static_cast<float>((q1 * xq - q2 * x1) / determinant);
    if (minimum < 0) {
      minimum = 0;
      scale = static_cast<float>(xq / q2);
    }
    float error = 0;
    const float inverse_scale = inverse(scale);
    for (int i = 0; i < count; ++i) {
      const int q = nearest((x[i] + minimum) * inverse_scale, 0, levels - 1);
      const float e = scale * static_cast<float>(q) - minimum - x[i];
      error += e * e;
    }
    if (error < best_error) {
      best_error = error;
      best = {scale, minimum};
    }
  }
  return best;
}

void encode_q45_k(bool fifth, const float* x, byte* block) {
  const int levels = fifth ? 32 : 16;
  std::array<affine, 8> groups;
  float largest_scale = 0;
  float largest_minimum = 0;
  for (std::size_t g = 0; g < 8; ++g) {
    groups[g] = fit_group(x + g * 32, 32, levels);
    largest_scale = std::max(largest_scale, groups[g].scale);
    largest_minimum = std::max(largest_minimum, groups[g].minimum);
  }
  const float d = store_half(largest_scale / 63, block);
  const float dmin = store_half(largest_minimum / 63, block + 2);
  std::array<scale_pair, 8> pairs;
  for (std::size_t g = 0; g < 8; ++g) {
    pairs[g] = {nearest(groups[g].scale * inverse(d), 0, 63), nearest(groups[g].minimum * inverse(dmin), 0, 63)};
  }
  pack_scales(pairs, block + 4);
  byte* high = block + 16;
  byte* low = fifth ? block + 48 : block + 16;
  std::memset(block + 16, 0, fifth ? 160 : 128);
  for (std::size_t g = 0; g < 8; ++g) {
    const float per = inverse(d * static_cast<float>(pairs[g].scale));
    const float minimum = dmin * static_cast<float>(pairs[g].minimum);
    for (std::size_t i = 0; i < 32; ++i) {
      const int q = nearest((x[g * 32 + i] + minimum) * per, 0, levels - 1);
      low[g / 2 * 32 + i] |= static_cast<byte>((q & 15) << (g % 2 == 0 ? 0 : 4));
      if (fifth) high[i] |= static_cast<byte>(q >> 4 << g);
    }
  }
}

// ---- blocks of 256: q6_k ------------------------------------------------------------------------------------------

void decode_q6_k(const byte* block, float* out) {
  const float d = load_half(block + 208);
  for (std::size_t i = 0; i < 256; ++i) {
    const std::size_t half = i / 128;
    const std::size_t quarter = i % 128 / 32;
    const int two = number(block[half * 64 + i % 64]);
    const int low = quarter < 2 ? two & 15 : two >> 4;
    const int q = low | (number(block[128 + half * 32 + i % 32]) >> 2 * quarter & 3) << 4;
    const auto scale = static_cast<float>(static_cast<std::int8_t>(block[192 + i / 16]));
    out[i] = d * scale * static_cast<float>(q - 32);
  }
}

/// The scale s that makes s q nearest to x, q in [-32, 31], by the same search.
float fit_signed(const float* x) {
  const float extreme = *std::max_element(x, x + 16, [](float a, float b) { return std::abs(a) < std::abs(b); });
  if (extreme == 0 || !std::isfinite(extreme)) return 0;
  float best = extreme / -32;
  float best_error = std::numeric_limits<float>::infinity();
  for (int step = -9; step <= 9; ++step) {
    const float per = (-32 + 0.1F * static_cast<float>(step)) / extreme;
    double q2 = 0;
    double xq = 0;
    for (int i = 0; i < 16; ++i) {
      const double q = nearest(x[i] * per, -32, 31);
      q2 += q * q;
      xq += q * x[i];
    }
    if (!(q2 > 0)) continue;
    const auto scale = static_cast<float>(xq / q2);
    float error = 0;
    for (int i = 0; i < 16; ++i) {
      const float e = scale * static_cast<float>(nearest(x[i] * per, -32, 31)) - x[i];
      error += e * e;
    }
    if (error < best_error) {
      best_error = error;
      best = scale;
    }
  }
  return best;
}

void encode_q6_k(const float* x, byte* block) {
  std::array<float, 16> scales;
  for (std::size_t g = 0; g < 16; ++g) scales[g] = fit_signed(x + g * 16);
  const float extreme =
      *std::max_element(scales.begin(), scales.end(), [](float a, float b) { return std::abs(a) < std::abs(b); });
  std::memset(block, 0, block_bytes(weight_type::q6_k));
  const float d = store_half(extreme / -128, block + 208);
  for (std::size_t g = 0; g < 16; ++g) {
    const int scale = nearest(scales[g] * inverse(d), -128, 127);
    block[192 + g] = static_cast<byte>(scale);
    const float per = inverse(d * static_cast<float>(scale));
    for (std::size_t i = g * 16; i < g * 16 + 16; ++i) {
      const int q = nearest(x[i] * per, -32, 31) + 32;
      const std::size_t half = i / 128;
      const std::size_t quarter = i % 128 / 32;
      block[half * 64 + i % 64] |= static_cast<byte>((q & 15) << (quarter < 2 ? 0 : 4));
      block[128 + half * 32 + i % 32] |= static_cast<byte>(q >> 4 << 2 * quarter);
    }
  }
}

element_type plain_element(weight_type type) {
  return type == weight_type::f32   ? element_type::f32
         : type == weight_type::f16 ? element_type::f16
                                    : element_type::bf16;
}

}  // namespace

void dequantize_row(weight_type type, const std::byte* row, std::size_t columns, float* out) {
  if (block_columns(type) == 1) return scalar_table().widen(plain_element(type), row, columns, out);
  for (std::size_t k = 0; k < columns; k += block_columns(type), row += block_bytes(type)) {
    if (type == weight_type::q8_0) {
      decode_q8_0(row, out + k);
    } else if (type == weight_type::q6_k) {
      decode_q6_k(row, out + k);
    } else if (type == weight_type::q4_k || type == weight_type::q5_k) {
      decode_q45_k(type == weight_type::q5_k, row, out + k);
    } else {
      decode_q45(fields_of(type), row, out + k);
    }
  }
}

void quantize_row(weight_type type, const float* x, std::size_t columns, std::byte* row) {
  if (block_columns(type) == 1) return scalar_table().narrow(plain_element(type), x, columns, row);
  for (std::size_t k = 0; k < columns; k += block_columns(type), row += block_bytes(type)) {
    if (type == weight_type::q8_0) {
      encode_q8_0(x + k, row);
    } else if (type == weight_type::q6_k) {
      encode_q6_k(x + k, row);
    } else if (type == weight_type::q4_k || type == weight_type::q5_k) {
      encode_q45_k(type == weight_type::q5_k, x + k, row);
    } else {
      encode_q45(fields_of(type), x + k, row);
    }
  }
}

}  // namespace redline::kernels
