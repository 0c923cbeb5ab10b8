#include "kernels/blas.hpp"

#include <cblas.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <vector>

#include "kernels/targets/tables.hpp"
#include "kernels/weight_blocks.hpp"

namespace redline::kernels {
namespace {

// OpenBLAS chooses its code path by shape (small-matrix kernels, gemv for one row), and paths sum in different orders.
// So every call has the same shape for a given matrix: row_block() x slice_rows x columns, padded with zeros.
constexpr std::size_t row_block_max = 16;
constexpr std::size_t slice_panels = 4;
constexpr std::size_t slice_rows = slice_panels * panel_rows;

void multiply(std::size_t rows, std::size_t columns, const float* x, const float* weights, float* y) {
  const int k = static_cast<int>(columns);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<int>(rows), slice_rows, k, 1.0F, x, k, weights, k,
              0.0F, y, slice_rows);
}

/// Whether a row's products have the same bits at each position in a block of `rows`.
bool places_are_alike(std::size_t rows, std::size_t columns) {
  std::vector<float> weights(slice_rows * columns);
  std::vector<float> x(rows * columns);
  std::vector<float> y(rows * slice_rows);
  std::uint32_t state = 1;
  const auto next = [&] {
    state = state * 1664525 + 1013904223;
    return static_cast<float>(state >> 8) * 0x1p-23F - 1.0F;
  };
  std::generate(weights.begin(), weights.end(), next);
  std::generate_n(x.begin(), columns, next);
  for (std::size_t r = 1; r < rows; ++r) std::copy_n(x.begin(), columns, x.data() + r * columns);
  multiply(rows, columns, x.data(), weights.data(), y.data());
  for (std::size_t r = 1; r < rows; ++r) {
    if (std::memcmp(y.data(), y.data() + r * slice_rows, slice_rows * sizeof(float)) != 0) return false;
  }
  return true;
}

/// Rows of one call. The kernels of some CPUs sum a block's last rows in another order than its first. There a block is
/// narrow enough that a row's position makes no difference, at worst a single row.
std::size_t row_block() {
  static const std::size_t rows = [] {
    constexpr std::size_t lengths[] = {31, 32, 100, 256, 896, 1000, 4864};
    for (std::size_t r = row_block_max; r > 1; r /= 2) {
      if (std::all_of(std::begin(lengths), std::end(lengths), [&](std::size_t k) { return places_are_alike(r, k); })) {
        return r;
      }
    }
    return std::size_t{1};
  }();
  return rows;
}

/// A panel stores its 16 rows as in the file.
std::size_t panel_bytes(weight_type type, std::size_t columns) { return panel_rows * row_bytes(type, columns); }

void pack(weight_type type, const std::byte* source, std::size_t rows, std::size_t columns, std::size_t begin,
          std::size_t end, std::byte* out) {
  const std::size_t bytes = row_bytes(type, columns);
  const std::size_t first = begin * panel_rows;
  const std::size_t last = std::min(end * panel_rows, rows);
  std::copy_n(source + first * bytes, (last - first) * bytes, out + first * bytes);
  std::memset(out + last * bytes, 0, (end * panel_rows - last) * bytes);
}

void unpack_row(const packed_view& w, std::size_t row, float* out) {
  dequantize_row(w.type, w.panels + row * row_bytes(w.type, w.columns), w.columns, out);
}

/// One thread's scratch, grown to its largest matrix so far.
struct scratch {
  std::vector<float> weights;  // [slice_rows, columns]
  std::vector<float> x;        // [row_block(), columns]
  std::vector<float> y;        // [row_block(), slice_rows]
};

void gemm_slice(const gemm_args& a, std::size_t first_row, std::size_t row_count, scratch& s) {
  const std::size_t columns = a.w.columns;
  std::fill(s.weights.begin(), s.weights.end(), 0.0F);
  for (std::size_t r = 0; r < row_count; ++r) unpack_row(a.w, first_row + r, s.weights.data() + r * columns);
  const std::size_t block = row_block();
  for (std::size_t m = 0; m < a.rows; m += block) {
    const std::size_t rows = std::min(block, a.rows - m);
    std::fill(s.x.begin(), s.x.end(), 0.0F);
    for (std::size_t r = 0; r < rows; ++r) {
      std::copy_n(a.x + (m + r) * a.x_stride, columns, s.x.data() + r * columns);
    }
    multiply(block, columns, s.x.data(), s.weights.data(), s.y.data());
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t n = 0; n < row_count; ++n) {
        const float bias = a.bias != nullptr ? a.bias[first_row + n] : 0.0F;
        a.y[(m + r) * a.y_stride + first_row + n] = s.y[r * slice_rows + n] + bias;
      }
    }
  }
}

void gemm(const gemm_args& a) {
  if (a.rows == 0) return;
  thread_local scratch s;
  s.weights.resize(slice_rows * a.w.columns);
  s.x.resize(row_block() * a.w.columns);
  s.y.resize(row_block() * slice_rows);
  for (std::size_t panel = a.panel_begin; panel < a.panel_end; panel += slice_panels) {
    const std::size_t end = std::min({(panel + slice_panels) * panel_rows, a.panel_end * panel_rows, a.w.rows});
    gemm_slice(a, panel * panel_rows, end - panel * panel_rows, s);
  }
}

}  // namespace

const kernel_table& blas_table() {
  static const kernel_table table = [] {
    openblas_set_num_threads(1);  // the worker team is the only source of parallelism
    kernel_table t = scalar_table();
    t.name = "blas";
    t.one_chain = false;
    t.panels_step = slice_panels;
    t.panel_bytes = panel_bytes;
    t.pack = pack;
    t.unpack_row = unpack_row;
    t.gemm = gemm;
    return t;
  }();
  return table;
}

}  // namespace redline::kernels
