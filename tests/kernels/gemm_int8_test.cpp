#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/grid_blocks.hpp"
#include "kernels/half_floats.hpp"
#include "kernels/int8_tables.hpp"
#include "kernels/packed_weights.hpp"
#include "kernels/prepared_rows.hpp"
#include "kernels/weight_blocks.hpp"
#include "kernels/worker_team.hpp"
#include "tests/kernels/kernel_fixture.hpp"
#include "tests/support/block_scales.hpp"

namespace redline::kernels {
namespace {

using test::has_minimum;

constexpr float infinity = std::numeric_limits<float>::infinity();

std::vector<weight_type> block_types() {
  std::vector<weight_type> types;
  for (const weight_type type : all_weight_types) {
    if (block_columns(type) > 1) types.push_back(type);
  }
  return types;
}

// ---- the definition, as in kernels/README.md ------------------------------------------------------------------------

/// Columns that share a scale: w = scale * q + minimum.
struct group {
  float scale = 0;
  float minimum = 0;
  std::vector<int> q;
};

int byte_at(const std::byte* p) { return std::to_integer<int>(*p); }
float half_at(const std::byte* p) {
  std::uint16_t bits;
  std::memcpy(&bits, p, sizeof(bits));
  return widen_f16(bits);
}

void append_small(weight_type type, const std::byte* block, std::vector<group>& out) {
  group g{.scale = half_at(block), .q = std::vector<int>(32)};
  const std::byte* at = block + 2;
  if (type == weight_type::q8_0) {
    for (int i = 0; i < 32; ++i) g.q[i] = static_cast<std::int8_t>(at[i]);
    out.push_back(g);
    return;
  }
  const bool minimum = type == weight_type::q4_1 || type == weight_type::q5_1;
  const bool fifth = type == weight_type::q5_0 || type == weight_type::q5_1;
  if (minimum) {
    g.minimum = half_at(at);
    at += 2;
  }
  std::uint32_t bits = 0;
  if (fifth) {
    std::memcpy(&bits, at, sizeof(bits));
    at += 4;
  }
  const int offset = minimum ? 0 : fifth ? 16 : 8;
  for (int i = 0; i < 32; ++i) {
    const int nibble = i < 16 ? byte_at(at + i) & 15 : byte_at(at + i - 16) >> 4;
    g.q[i] = (nibble | static_cast<int>(bits >> i & 1) << 4) - offset;
  }
  out.push_back(g);
}

void append_q45_k(weight_type type, const std::byte* block, std::vector<group>& out) {
  const bool fifth = type == weight_type::q5_k;
  const std::byte* scales = block + 4;
  const std::byte* high = block + 16;
  const std::byte* low = fifth ? high + 32 : high;
  for (int i = 0; i < 8; ++i) {
    const int s = i < 4 ? byte_at(scales + i) & 63 : (byte_at(scales + i + 4) & 15) | byte_at(scales + i - 4) >> 6 << 4;
    const int m = i < 4 ? byte_at(scales + i + 4) & 63 : byte_at(scales + i + 4) >> 4 | byte_at(scales + i) >> 6 << 4;
    group g{.scale = half_at(block) * static_cast<float>(s),
            .minimum = -half_at(block + 2) * static_cast<float>(m),
            .q = std::vector<int>(32)};
    for (int j = 0; j < 32; ++j) {
      const int two = byte_at(low + i / 2 * 32 + j);
      g.q[j] = (i % 2 == 0 ? two & 15 : two >> 4) | (fifth ? (byte_at(high + j) >> i & 1) << 4 : 0);
    }
    out.push_back(g);
  }
}

void append_q6_k(const std::byte* block, std::vector<group>& out) {
  for (int i = 0; i < 256; i += 16) {
    group g{.scale = half_at(block + 208) * static_cast<float>(static_cast<std::int8_t>(block[192 + i / 16])),
            .q = std::vector<int>(16)};
    for (int j = 0; j < 16; ++j) {
      const int column = i + j, half = column / 128, quarter = column % 128 / 32;
      const int low = byte_at(block + half * 64 + column % 64) >> (quarter < 2 ? 0 : 4) & 15;
      g.q[j] = (low | (byte_at(block + 128 + half * 32 + column % 32) >> 2 * quarter & 3) << 4) - 32;
    }
    out.push_back(g);
  }
}

int pair_at(const std::byte* pairs, int column) {
  return byte_at(pairs + column / 128 * 32 + column % 32) >> column % 128 / 32 * 2 & 3;
}

void append_q2_k(const std::byte* block, std::vector<group>& out) {
  for (int i = 0; i < 16; ++i) {
    group g{.scale = half_at(block + 80) * static_cast<float>(byte_at(block + i) & 15),
            .minimum = -half_at(block + 82) * static_cast<float>(byte_at(block + i) >> 4),
            .q = std::vector<int>(16)};
    for (int j = 0; j < 16; ++j) g.q[j] = pair_at(block + 16, i * 16 + j);
    out.push_back(g);
  }
}

void append_q3_k(const std::byte* block, std::vector<group>& out) {
  const std::byte* scales = block + 96;
  for (int i = 0; i < 16; ++i) {
    const int low = i < 8 ? byte_at(scales + i) & 15 : byte_at(scales + i - 8) >> 4;
    const int s = (low | (byte_at(scales + 8 + i % 4) >> 2 * (i / 4) & 3) << 4) - 32;
    group g{.scale = half_at(block + 108) * static_cast<float>(s), .q = std::vector<int>(16)};
    for (int j = 0; j < 16; ++j) {
      const int column = i * 16 + j;
      g.q[j] = pair_at(block + 32, column) - ((byte_at(block + column % 32) >> column / 32 & 1) != 0 ? 0 : 4);
    }
    out.push_back(g);
  }
}

group table_group(float scale, const std::int8_t* values, const std::byte* nibbles) {
  group g{.scale = scale, .q = std::vector<int>(32)};
  for (int i = 0; i < 32; ++i) g.q[i] = values[i < 16 ? byte_at(nibbles + i) & 15 : byte_at(nibbles + i - 16) >> 4];
  return g;
}

void append_iq4_xs(const std::byte* block, std::vector<group>& out) {
  for (int i = 0; i < 8; ++i) {
    const int low = byte_at(block + 4 + i / 2) >> i % 2 * 4 & 15, high = byte_at(block + 2 + i / 4) >> i % 4 * 2 & 3;
    const float scale = half_at(block) * static_cast<float>((low | high << 4) - 32);
    out.push_back(table_group(scale, iq4_values, block + 8 + i * 16));
  }
}

/// iq2, iq3 and iq1: the integers are the weights at a scale of 1, without the small scales (weight_blocks_test.cpp
/// checks those weights against another source).
void append_grid(weight_type type, const std::byte* block, std::vector<group>& out) {
  const float by = type == weight_type::iq3_s ? 1 : type == weight_type::iq3_xxs ? 0.25F : 0.125F;
  const bool sixteen = type == weight_type::iq2_xs || type == weight_type::iq2_s || type == weight_type::iq1_m;
  std::vector<std::byte> plain(block, block + block_bytes(type));
  put_grid_scale(type, 1, plain.data());
  std::vector<float> weights(256);
  dequantize_row(type, plain.data(), weights.size(), weights.data());
  float d = half_at(block);
  if (type == weight_type::iq1_m) {
    unsigned bits = 0;
    for (int i = 0; i < 4; ++i) bits |= static_cast<unsigned>(byte_at(block + 49 + 2 * i)) >> 4 << 4 * i;
    d = widen_f16(static_cast<std::uint16_t>(bits));
  }
  for (int i = 0; i < 256; i += sixteen ? 16 : 32) {
    const int g = i / 32, half = i / 16 % 2;
    int s = 0;
    switch (type) {
      case weight_type::iq2_xxs:
        s = byte_at(block + 2 + 8 * g + 7) >> 4;
        break;
      case weight_type::iq3_xxs:
        s = byte_at(block + 66 + 4 * g + 3) >> 4;
        break;
      case weight_type::iq3_s:
        s = byte_at(block + 106 + g / 2) >> g % 2 * 4 & 15;
        break;
      case weight_type::iq1_s:
        s = byte_at(block + 34 + 2 * g + 1) >> 4 & 7;
        break;
      case weight_type::iq1_m:
        s = (byte_at(block + 48 + g / 2 * 2) | byte_at(block + 49 + g / 2 * 2) << 8) >> (g % 2 * 6 + half * 3) & 7;
        break;
      default:
        s = byte_at(block + (type == weight_type::iq2_xs ? 66 : 74) + g) >> half * 4 & 15;
    }
    const float scale = static_cast<float>(2 * s + 1);
    group wanted{.scale = d * by * scale};
    for (int j = i; j < i + (sixteen ? 16 : 32); ++j) wanted.q.push_back(static_cast<int>(weights[j] / by / scale));
    out.push_back(wanted);
  }
}

std::vector<group> groups_of(weight_type type, const std::byte* row, std::size_t columns) {
  std::vector<group> out;
  for (std::size_t k = 0; k < columns; k += block_columns(type), row += block_bytes(type)) {
    if (!is_written(type)) {
      append_grid(type, row, out);
    } else if (type == weight_type::q6_k) {
      append_q6_k(row, out);
    } else if (type == weight_type::q2_k) {
      append_q2_k(row, out);
    } else if (type == weight_type::q3_k) {
      append_q3_k(row, out);
    } else if (type == weight_type::iq4_nl) {
      out.push_back(table_group(half_at(row), iq4_values, row + 2));
    } else if (type == weight_type::iq4_xs) {
      append_iq4_xs(row, out);
    } else if (type == weight_type::mxfp4) {
      const int e = byte_at(row);
      out.push_back(table_group(e == 255 ? nan : std::ldexp(1.0F, e - 128), mxfp4_values, row + 1));
    } else if (block_columns(type) == 256) {
      append_q45_k(type, row, out);
    } else {
      append_small(type, row, out);
    }
  }
  return out;
}

/// A row of x as bytes, and a scale for each 32 of them.
struct byte_row {
  std::vector<float> d;
  std::vector<int> q;
};
byte_row bytes_of(const float* x, std::size_t columns) {
  byte_row row{.d = std::vector<float>(columns / 32), .q = std::vector<int>(columns)};
  for (std::size_t b = 0; b < columns / 32; ++b) {
    float most = 0;
    bool is_finite = true;
    for (std::size_t i = b * 32; i < b * 32 + 32; ++i) {
      most = std::max(most, std::fabs(x[i]));
      is_finite = is_finite && std::isfinite(x[i]);
    }
    if (!is_finite) row.d[b] = nan;
    if (!is_finite || most < 0x1p-100F) continue;
    row.d[b] = most / 127;
    for (std::size_t i = b * 32; i < b * 32 + 32; ++i) {
      row.q[i] = static_cast<int>(std::nearbyint(x[i] * (127 / most)));
    }
  }
  return row;
}

float defined_output(const std::vector<group>& groups, bool has_minimum, const byte_row& x, const float* bias) {
  float sum = 0;
  std::size_t k = 0;
  for (const group& g : groups) {
    std::int64_t products = 0, bytes = 0;
    for (std::size_t i = 0; i < g.q.size(); ++i) {
      products += g.q[i] * x.q[k + i];
      bytes += x.q[k + i];
    }
    const float d = x.d[k / 32];
    sum = std::fma(g.scale * d, static_cast<float>(products), sum);
    if (has_minimum) sum = std::fma(g.minimum, d * static_cast<float>(bytes), sum);
    k += g.q.size();
  }
  if (bias != nullptr) sum += *bias;
  return std::isnan(sum) ? nan : sum;
}

std::vector<float> defined(weight_type type, const std::vector<std::byte>& matrix, std::size_t n, std::size_t k,
                           const std::vector<float>& x, std::size_t rows, const float* bias) {
  std::vector<byte_row> bytes;
  for (std::size_t r = 0; r < rows; ++r) bytes.push_back(bytes_of(x.data() + r * k, k));
  std::vector<float> y(rows * n);
  for (std::size_t o = 0; o < n; ++o) {
    const auto groups = groups_of(type, matrix.data() + o * row_bytes(type, k), k);
    for (std::size_t r = 0; r < rows; ++r) {
      y[r * n + o] = defined_output(groups, has_minimum(type), bytes[r], bias == nullptr ? nullptr : bias + o);
    }
  }
  return y;
}

// ---- the tests -----------------------------------------------------------------------------------------------------

class gemm_int8 : public kernel_test {
 protected:
  void SetUp() override {
    choice_ = test::choose_int8_table_or_emulate(GetParam());
    if (choice_.table == nullptr) GTEST_SKIP() << choice_.problem;
  }
  [[nodiscard]] const kernel_table& table() const { return *choice_.table; }
  /// Emulation takes microseconds per instruction.
  [[nodiscard]] bool is_emulated() const { return choose_table(GetParam()).table == nullptr; }
  [[nodiscard]] std::size_t products_max() const { return is_emulated() ? 40000 : 300000; }

  /// Any bits form valid blocks; the halves of tame ones are ordinary numbers of either sign.
  std::vector<std::byte> random_blocks(weight_type type, std::size_t rows, std::size_t columns, bool tame) {
    std::vector<std::byte> bytes(rows * row_bytes(type, columns));
    for (std::byte& b : bytes) b = static_cast<std::byte>(random_());
    if (!tame) return bytes;
    for (std::size_t at = 0; at < bytes.size(); at += block_bytes(type)) {
      const float scale = uniform() / 100, minimum = uniform() / 100;
      test::put_scales(type, scale, minimum, bytes.data() + at);
    }
    return bytes;
  }

  std::vector<float> run(const packed_weights& w, const std::vector<float>& x, std::size_t rows, const float* bias,
                         std::size_t begin = 0, std::size_t end = std::numeric_limits<std::size_t>::max()) {
    std::vector<float> y(rows * w.rows(), 42.0F);
    const prepared_rows prepared(table(), x.data(), w.columns(), rows, w.columns());
    table().gemm({.w = w.view(),
                  .panel_begin = begin,
                  .panel_end = std::min(end, panels_for(w.rows())),
                  .x = x.data(),
                  .x_stride = w.columns(),
                  .rows = rows,
                  .y = y.data(),
                  .y_stride = w.rows(),
                  .bias = bias,
                  .prepared = prepared.data()});
    return y;
  }

  worker_team team_{1};

 private:
  table_choice choice_;
};

TEST_P(gemm_int8, every_output_is_its_definition_whatever_the_shape) {
  for (const weight_type type : block_types()) {
    for (const std::size_t n : {1, 15, 16, 17, 33, 63, 130}) {
      for (const std::size_t wanted_k : {0, 32, 64, 224, 256, 512, 2080}) {
        const std::size_t k = round_up(wanted_k, block_columns(type));
        const auto matrix = random_blocks(type, n, k, true);
        const packed_weights w(table(), team_, type, n, k, matrix.data());
        const auto bias = uniforms(n);
        for (const std::size_t rows : {0, 1, 2, 3, 4, 5, 6, 7, 8, 13, 17, 18, 19, 33}) {
          if (rows * n * k > products_max()) continue;
          const auto x = uniforms(rows * k);
          const float* b = (rows + n) % 2 == 0 ? bias.data() : nullptr;
          ASSERT_TRUE(same_bits(defined(type, matrix, n, k, x, rows, b), run(w, x, rows, b)))
              << name_of(type) << ", " << rows << " x " << n << " x " << k;
        }
      }
    }
  }
}

TEST_P(gemm_int8, long_rows_in_several_stretches_are_their_definition) {
  for (const weight_type type : block_types()) {
    const std::size_t n = 40, k = 4864;
    const auto matrix = random_blocks(type, n, k, true);
    const packed_weights w(table(), team_, type, n, k, matrix.data());
    const auto bias = uniforms(n);
    for (const std::size_t rows : {1, 6, 40}) {
      if (rows > 6 && (is_emulated() || GetParam() == std::string("scalar"))) continue;
      const auto x = uniforms(rows * k);
      ASSERT_TRUE(same_bits(defined(type, matrix, n, k, x, rows, bias.data()), run(w, x, rows, bias.data())))
          << name_of(type) << ", " << rows << " rows";
    }
  }
}

// Covers scales that are NaN or infinite, and every integer, including -128.
TEST_P(gemm_int8, hostile_blocks_have_the_defined_outcome) {
  for (const weight_type type : block_types()) {
    const std::size_t n = 48, k = 512;
    for (int trial = 0; trial < 8; ++trial) {
      auto matrix = random_blocks(type, n, k, trial % 2 != 0);
      if (trial == 1) {  // the least integers with the largest x
        for (std::size_t at = 0; at < matrix.size(); at += block_bytes(type)) {
          const std::byte fill = type == weight_type::q8_0 ? std::byte{0x80} : std::byte{0xff};
          for (std::size_t i = 0; i < block_bytes(type); ++i) {
            const bool is_scale = i >= test::scale_at(type) && i < test::scale_at(type) + test::scale_bytes(type);
            if (!is_scale) matrix[at + i] = fill;
          }
        }
      }
      const packed_weights w(table(), team_, type, n, k, matrix.data());
      auto x = uniforms(9 * k);
      if (trial == 1) {
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = i / k % 2 == 0 ? 1.0F : -1.0F;
      }
      for (const std::size_t rows : {1, 9}) {
        ASSERT_TRUE(same_bits(defined(type, matrix, n, k, x, rows, nullptr), run(w, x, rows, nullptr)))
            << name_of(type) << ", trial " << trial << ", " << rows << " rows";
      }
    }
  }
}

TEST_P(gemm_int8, zeros_infinities_and_extreme_numbers_in_x_have_the_defined_outcome) {
  const float values[] = {0.0F,      -0.0F,       infinity, -infinity, nan,  1e-45F, -1e-38F,
                          0x1p-100F, 0x1.fp-101F, 3.4e38F,  -3.4e38F,  1.0F, 127.5F, 0x1p-99F};
  for (const weight_type type : block_types()) {
    const std::size_t n = 17, k = 512, rows = 40;
    const auto matrix = random_blocks(type, n, k, true);
    const packed_weights w(table(), team_, type, n, k, matrix.data());
    auto x = uniforms(rows * k);
    for (std::size_t r = 1; r < rows; ++r) {
      for (std::size_t i = 0; i < 1 + r % 3; ++i) x[r * k + below(k)] = values[r % std::size(values)];
      if (r % 4 == 0) std::fill_n(x.begin() + static_cast<long>(r * k + 32), 64, values[r / 4 % std::size(values)]);
    }
    const auto expected = defined(type, matrix, n, k, x, rows, nullptr);
    ASSERT_TRUE(std::ranges::any_of(expected, [](float y) { return std::isnan(y); }));
    ASSERT_TRUE(same_bits(expected, run(w, x, rows, nullptr))) << name_of(type);
    for (std::size_t r = 0; r < rows; ++r) {
      const auto first = x.begin() + static_cast<long>(r * k);
      const std::vector<float> alone(first, first + static_cast<long>(k));
      const auto wanted = expected.begin() + static_cast<long>(r * n);
      ASSERT_TRUE(same_bits({wanted, wanted + static_cast<long>(n)}, run(w, alone, 1, nullptr))) << name_of(type);
    }
  }
}

TEST_P(gemm_int8, rounding_of_x_to_bytes_is_to_nearest_even_at_every_half) {
  const std::size_t n = 3, k = 256;
  const auto matrix = random_blocks(weight_type::q8_0, n, k, true);
  const packed_weights w(table(), team_, weight_type::q8_0, n, k, matrix.data());
  std::vector<float> x(k);
  for (std::size_t i = 0; i < k; ++i) x[i] = i % 32 == 0 ? 127.0F : static_cast<float>(i) - 127.5F;
  for (std::size_t i = 0; i < k; ++i) x[i] = std::clamp(x[i], -126.5F, 127.0F);
  ASSERT_TRUE(same_bits(defined(weight_type::q8_0, matrix, n, k, x, 1, nullptr), run(w, x, 1, nullptr)));
}

TEST_P(gemm_int8, a_row_has_the_same_bits_alone_and_in_batches) {
  for (const weight_type type : block_types()) {
    const std::size_t n = is_emulated() ? 20 : 90, k = 1024;
    const auto matrix = random_blocks(type, n, k, true);
    const packed_weights w(table(), team_, type, n, k, matrix.data());
    const std::size_t most = is_emulated() || GetParam() == std::string("scalar") ? 17 : 70;
    const auto x = uniforms(most * k);
    const auto all = run(w, x, most, nullptr);
    for (const std::size_t rows : {1, 2, 3, 7, 8, 15, 16, 17, 48}) {
      if (rows > most) continue;
      const std::size_t first = below(most - rows + 1);
      const auto begin = x.begin() + static_cast<long>(first * k);
      const auto y = run(w, {begin, begin + static_cast<long>(rows * k)}, rows, nullptr);
      ASSERT_EQ(std::memcmp(y.data(), all.data() + first * n, y.size() * sizeof(float)), 0)
          << name_of(type) << ", rows " << first << " to " << first + rows;
    }
  }
}

TEST_P(gemm_int8, writes_its_panels_and_nothing_else) {
  const std::size_t n = 200, rows = 7, k = 256;
  for (const weight_type type : block_types()) {
    const auto matrix = random_blocks(type, n, k, true);
    const packed_weights w(table(), team_, type, n, k, matrix.data());
    const auto x = uniforms(rows * k);
    const auto whole = run(w, x, rows, nullptr);
    const std::size_t step = table().panels_step;
    for (std::size_t begin = 0; begin < panels_for(n); begin += step) {
      const std::size_t end = std::min(panels_for(n), begin + step * (1 + below(3)));
      const auto part = run(w, x, rows, nullptr, begin, end);
      for (std::size_t i = 0; i < part.size(); ++i) {
        const bool inside = i % n >= begin * 16 && i % n < end * 16;
        ASSERT_EQ(part[i], inside ? whole[i] : 42.0F) << i;
      }
    }
  }
}

TEST_P(gemm_int8, weights_that_are_no_blocks_are_multiplied_as_floats) {
  const std::size_t n = 35, k = 100, rows = 7;
  const kernel_table& floats = scalar();
  for (const weight_type type : {weight_type::f32, weight_type::f16, weight_type::bf16}) {
    const auto numbers = uniforms(n * k);
    std::vector<std::byte> matrix(n * row_bytes(type, k));
    quantize_row(type, numbers.data(), n * k, matrix.data());
    const auto x = uniforms(rows * k);
    const packed_weights w(table(), team_, type, n, k, matrix.data()), wanted(floats, team_, type, n, k, matrix.data());
    std::vector<float> expected(rows * n);
    floats.gemm({.w = wanted.view(),
                 .panel_begin = 0,
                 .panel_end = panels_for(n),
                 .x = x.data(),
                 .x_stride = k,
                 .rows = rows,
                 .y = expected.data(),
                 .y_stride = n});
    EXPECT_EQ(table().prepared_bytes(rows, k), 0U);
    EXPECT_TRUE(same_bits(expected, run(w, x, rows, nullptr))) << name_of(type);
  }
}

TEST_P(gemm_int8, loses_no_more_than_rounding_x_to_bytes_does) {
  const std::size_t n = 64, k = 1024, rows = 3;
  for (const weight_type type : block_types()) {
    const auto matrix = random_blocks(type, n, k, true);
    const packed_weights w(table(), team_, type, n, k, matrix.data());
    const auto x = uniforms(rows * k);
    const auto y = run(w, x, rows, nullptr);
    std::vector<float> weights(k);
    for (std::size_t o = 0; o < n; ++o) {
      dequantize_row(type, matrix.data() + o * row_bytes(type, k), k, weights.data());
      for (std::size_t r = 0; r < rows; ++r) {
        double exact = 0, most = 0;
        for (std::size_t i = 0; i < k; ++i) {
          exact += static_cast<double>(x[r * k + i]) * weights[i];
          most += std::fabs(weights[i]) / 2 / 127;  // half a step of a block whose largest number is 1
        }
        ASSERT_NEAR(y[r * n + o], exact, most * 1.01) << name_of(type);
      }
    }
  }
}

/// Some are not separate targets: `avx2` becomes `avxvnni` where the CPU has it, and `neon` becomes `neon_dotprod` or
/// `neon_i8mm`.
std::vector<const char*> int8_targets() {
  auto names = targets_of_build({"scalar", "neon", "avx2", "avx512", "avx512vnni", "amx", "amx_emulated"});
#if defined(__x86_64__)
  names.push_back("avxvnni");
#else
  names.insert(names.end(), {"neon_dotprod", "neon_i8mm"});
#endif
  return names;
}

INSTANTIATE_TEST_SUITE_P(targets, gemm_int8, ::testing::ValuesIn(int8_targets()), target_name);

}  // namespace
}  // namespace redline::kernels
