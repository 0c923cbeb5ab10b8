#include <algorithm>
#include <array>
#include <span>

#include "kernels/packed_weights.hpp"
#include "kernels/weight_blocks.hpp"
#include "kernels/worker_team.hpp"
#include "tests/kernels/kernel_fixture.hpp"
#include "tests/support/block_scales.hpp"

namespace redline::kernels {
namespace {

/// A random matrix in the file's layout, and its weights as floats.
struct matrix {
  std::vector<std::byte> bytes;
  std::vector<float> floats;  // [rows, columns]
};

class gemm : public kernel_test {
 protected:
  matrix random_matrix(weight_type type, std::size_t rows, std::size_t columns) {
    matrix m;
    m.bytes.resize(rows * row_bytes(type, columns));
    m.floats = uniforms(rows * columns);
    if (type == weight_type::f32) {
      std::ranges::copy(std::as_bytes(std::span(m.floats)), m.bytes.begin());
    } else if (block_columns(type) == 1) {
      const element_type element = type == weight_type::f16 ? element_type::f16 : element_type::bf16;
      scalar().narrow(element, m.floats.data(), m.floats.size(), m.bytes.data());
    } else {
      for (std::byte& b : m.bytes) b = static_cast<std::byte>(random_());
      for (std::size_t at = 0; at < m.bytes.size(); at += block_bytes(type)) {
        const float scale = uniform() / 100, minimum = uniform() / 100;
        test::put_scales(type, scale, minimum, m.bytes.data() + at);
      }
    }
    for (std::size_t r = 0; r < rows; ++r) {
      dequantize_row(type, m.bytes.data() + r * row_bytes(type, columns), columns, m.floats.data() + r * columns);
    }
    return m;
  }

  std::vector<float> run(const packed_weights& w, const std::vector<float>& x, std::size_t rows, const float* bias) {
    std::vector<float> y(rows * w.rows(), nan);
    table().gemm({.w = w.view(),
                  .panel_begin = 0,
                  .panel_end = panels_for(w.rows()),
                  .x = x.data(),
                  .x_stride = w.columns(),
                  .rows = rows,
                  .y = y.data(),
                  .y_stride = w.rows(),
                  .bias = bias});
    return y;
  }

  worker_team team_{1};
};

/// The definition: one chain of fused multiply-adds per output.
std::vector<float> chains(const matrix& m, std::size_t n, std::size_t k, const std::vector<float>& x, std::size_t rows,
                          const float* bias) {
  std::vector<float> y(rows * n);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t o = 0; o < n; ++o) {
      float sum = 0;
      for (std::size_t i = 0; i < k; ++i) sum = std::fma(x[r * k + i], m.floats[o * k + i], sum);
      y[r * n + o] = bias != nullptr ? sum + bias[o] : sum;
    }
  }
  return y;
}

std::vector<float> as_bf16(const std::vector<float>& numbers) {
  const kernel_table& table = *choose_table("scalar").table;
  std::vector<std::uint16_t> halves(numbers.size());
  std::vector<float> rounded(numbers.size());
  table.narrow(element_type::bf16, numbers.data(), numbers.size(), halves.data());
  table.widen(element_type::bf16, halves.data(), halves.size(), rounded.data());
  return rounded;
}

/// The definition of products by tiles: factors are rounded to bf16; per 32 columns there is one chain over the even
/// ones and one over the odd ones, and their sum is added to the sum so far.
std::vector<float> tile_sums(const matrix& m, std::size_t n, std::size_t k, const std::vector<float>& x,
                             std::size_t rows, const float* bias) {
  const auto narrow_x = as_bf16(x), narrow_w = as_bf16(m.floats);
  std::vector<float> y(rows * n);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t o = 0; o < n; ++o) {
      float sum = 0;
      for (std::size_t first = 0; first < k; first += 32) {
        float parts[2] = {};
        for (std::size_t i = first; i < std::min(first + 32, k); ++i) {
          parts[i % 2] = std::fma(narrow_x[r * k + i], narrow_w[o * k + i], parts[i % 2]);
        }
        sum += parts[0] + parts[1];
      }
      y[r * n + o] = bias != nullptr ? sum + bias[o] : sum;
    }
  }
  return y;
}

class exact_gemm : public gemm {
 protected:
  [[nodiscard]] auto definition() const { return table().one_chain ? chains : tile_sums; }
};

TEST_P(exact_gemm, every_output_is_its_definition_whatever_the_shape) {
  for (const weight_type type : all_weight_types) {
    const std::size_t unit = block_columns(type);
    for (const std::size_t n : {1, 15, 16, 17, 63, 130}) {
      for (const std::size_t wanted_k : {0, 1, 15, 16, 17, 255, 256, 257, 600}) {
        const std::size_t k = round_up(wanted_k, unit);
        const matrix m = random_matrix(type, n, k);
        const packed_weights w(table(), team_, type, n, k, m.bytes.data());
        const auto bias = uniforms(n);
        for (const std::size_t rows : {0, 1, 2, 3, 5, 6, 7, 12, 13, 33}) {
          if (rows * n * k > 600000) continue;
          const auto x = uniforms(rows * k);
          const float* b = (rows + n) % 2 == 0 ? bias.data() : nullptr;
          ASSERT_TRUE(same_bits(definition()(m, n, k, x, rows, b), run(w, x, rows, b)))
              << name_of(type) << ", " << rows << " x " << n << " x " << k;
        }
      }
    }
  }
}

TEST_P(exact_gemm, unpacks_the_floats_it_multiplies_with) {
  for (const weight_type type : all_weight_types) {
    const std::size_t k = round_up(96, block_columns(type)) * 2;
    const matrix m = random_matrix(type, 35, k);
    const packed_weights w(table(), team_, type, 35, k, m.bytes.data());
    for (std::size_t row = 0; row < 35; ++row) {
      std::vector<float> found(k, nan);
      table().unpack_row(w.view(), row, found.data());
      const auto first = m.floats.begin() + static_cast<long>(row * k);
      ASSERT_TRUE(same_bits({first, first + static_cast<long>(k)}, found)) << name_of(type) << ", row " << row;
    }
  }
}

// Many rows and long spans take other code paths; the definition is too slow for all formats.
TEST_P(exact_gemm, large_products_are_their_definition_too) {
  for (const auto& [rows, n, k] : {std::array<std::size_t, 3>{530, 40, 32},
                                   {70, 70, 1024},
                                   {100, 33, 500},
                                   {50, 20, 9000},
                                   {80, 20, 5000},
                                   {300, 17, 1600}}) {
    const matrix m = random_matrix(weight_type::f16, n, k);
    const packed_weights w(table(), team_, weight_type::f16, n, k, m.bytes.data());
    const auto x = uniforms(rows * k);
    const auto bias = uniforms(n);
    ASSERT_TRUE(same_bits(definition()(m, n, k, x, rows, bias.data()), run(w, x, rows, bias.data())))
        << rows << " x " << n << " x " << k;
  }
}

INSTANTIATE_TEST_SUITE_P(
    targets, exact_gemm,
    ::testing::ValuesIn(targets_of_build({"scalar", "neon", "avx2", "avx512", "amx", "amx_emulated"})), target_name);

TEST_P(gemm, writes_its_panels_and_nothing_else) {
  const std::size_t n = 200;
  const std::size_t rows = 7;
  for (const weight_type type : all_weight_types) {
    const std::size_t k = round_up(64, block_columns(type));
    const matrix m = random_matrix(type, n, k);
    const packed_weights w(table(), team_, type, n, k, m.bytes.data());
    const auto x = uniforms(rows * (k + 5));
    const std::size_t stride = n + 9;
    const std::size_t step = table().panels_step;
    std::vector<float> whole(rows * stride, nan);
    gemm_args args{.w = w.view(),
                   .panel_begin = 0,
                   .panel_end = panels_for(n),
                   .x = x.data(),
                   .x_stride = k + 5,
                   .rows = rows,
                   .y = whole.data(),
                   .y_stride = stride};
    table().gemm(args);
    for (std::size_t begin = 0; begin < panels_for(n); begin += step) {
      std::vector<float> part(rows * stride, nan);
      args.y = part.data();
      args.panel_begin = begin;
      args.panel_end = std::min(panels_for(n), begin + step * (1 + below(3)));
      table().gemm(args);
      for (std::size_t i = 0; i < part.size(); ++i) {
        const std::size_t column = i % stride;
        const bool inside = column < n && column >= begin * 16 && column < args.panel_end * 16;
        ASSERT_EQ(std::isnan(part[i]), !inside) << i;
        if (inside) {
          ASSERT_EQ(part[i], whole[i]);
        }
      }
    }
  }
}

TEST_P(gemm, a_row_has_the_same_bits_alone_and_in_batches) {
  for (const weight_type type : all_weight_types) {
    for (const std::size_t wanted_k : {32, 608, 2048}) {
      const std::size_t k = round_up(wanted_k, block_columns(type));
      const std::size_t n = 90;
      const matrix m = random_matrix(type, n, k);
      const packed_weights w(table(), team_, type, n, k, m.bytes.data());
      const std::size_t most = GetParam() == std::string("scalar") ? 17 : 64;
      const auto x = uniforms(most * k);
      const auto all = run(w, x, most, nullptr);
      for (const std::size_t rows : {1, 2, 3, 7, 8, 15, 16, 17, 48}) {
        if (rows > most) continue;
        const std::size_t first = below(most - rows + 1);
        const std::vector<float> some(x.begin() + static_cast<long>(first * k),
                                      x.begin() + static_cast<long>((first + rows) * k));
        const auto y = run(w, some, rows, nullptr);
        ASSERT_EQ(std::memcmp(y.data(), all.data() + first * n, y.size() * sizeof(float)), 0)
            << name_of(type) << ", k " << k << ", rows " << first << " to " << first + rows;
      }
    }
  }
}

TEST_P(gemm, rows_that_were_prepared_give_the_same_bits) {
  for (const auto& [rows, k] : {std::array<std::size_t, 2>{1, 20000}, {20, 1000}, {64, 512}, {75, 3000}, {300, 1600}}) {
    if (GetParam() == std::string("scalar") && rows > 20) continue;
    const std::size_t n = 40;
    const matrix m = random_matrix(weight_type::bf16, n, k);
    const packed_weights w(table(), team_, weight_type::bf16, n, k, m.bytes.data());
    const auto x = uniforms(rows * (k + 3));
    std::vector<float> plain(rows * n, nan), prepared(rows * n, nan);
    gemm_args args{.w = w.view(),
                   .panel_begin = 0,
                   .panel_end = panels_for(n),
                   .x = x.data(),
                   .x_stride = k + 3,
                   .rows = rows,
                   .y = plain.data(),
                   .y_stride = n};
    table().gemm(args);
    const memory_block out(table().prepared_bytes(rows, k));
    if (out.size() == 0) continue;              // this target takes floats
    std::memset(out.data(), 0xff, out.size());  // missing rows may contain anything
    const std::size_t middle = below(rows + 1);
    table().prepare_rows(x.data(), k + 3, middle, rows, k, out.data());
    table().prepare_rows(x.data(), k + 3, 0, middle, k, out.data());
    args.prepared = out.data();
    args.x = nullptr;
    args.y = prepared.data();
    table().gemm(args);
    ASSERT_TRUE(same_bits(plain, prepared)) << rows << " x " << k;
  }
}

TEST_P(gemm, agrees_with_sums_in_double_within_rounding) {
  const std::size_t n = 77;
  const std::size_t rows = 11;
  for (const weight_type type : all_weight_types) {
    const std::size_t k = round_up(480, block_columns(type));
    const matrix m = random_matrix(type, n, k);
    const packed_weights w(table(), team_, type, n, k, m.bytes.data());
    const auto x = uniforms(rows * k);
    const auto found = run(w, x, rows, nullptr);
    float largest = 0;
    for (const float f : m.floats) largest = std::max(largest, std::abs(f));
    for (std::size_t i = 0; i < found.size(); ++i) {
      double expected = 0;
      for (std::size_t j = 0; j < k; ++j) {
        expected += static_cast<double>(x[i / n * k + j]) * static_cast<double>(m.floats[i % n * k + j]);
      }
      // A sum of k products loses at most k roundings of the largest partial sum, plus the loss of its products.
      const float loss = std::numeric_limits<float>::epsilon() * 4 + table().product_error;
      ASSERT_NEAR(found[i], expected, largest * static_cast<float>(k) * loss) << name_of(type);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(targets, gemm,
                         ::testing::ValuesIn(targets_of_build({"scalar", "neon", "avx2", "avx512", "blas", "amx",
                                                               "amx_emulated"})),
                         target_name);

}  // namespace
}  // namespace redline::kernels
