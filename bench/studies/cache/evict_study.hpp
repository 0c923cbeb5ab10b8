#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/studies/common/names.hpp"
#include "kernels/dispatch.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"
#include "runtime/kv/eviction.hpp"
#include "runtime/model/transformer.hpp"

// What moving a window costs in quality. These are pure measurements, run without actors.

namespace redline::studies {

/// Root mean square errors of keys that moved by `shifts` positions, relative to rotating the stored key once, exactly.
struct key_drift {
  std::uint32_t shifts = 0;
  double eager = 0;  // keys rotated in place by one position at a time, rounded each time
  double lazy = 0;   // keys left alone; the query is rotated by all positions at once
};
/// Measures seeded keys of 64 dimensions at base 10000. `shifts` is ascending.
std::vector<key_drift> measure_drift(const kernels::kernel_table& table, kernels::element_type type,
                                     std::span<const std::uint32_t> shifts);

/// A window that moves over a longer text.
struct window_shape {
  kv::eviction_policy policy = kv::eviction_policy::lazy;
  std::uint32_t n_ctx = 512;
  std::uint32_t n_keep = 4;
  std::uint32_t n_discard = 64;
};
/// How well a model predicts the tokens of a text past the first n_ctx, each from the window before it.
struct stream_quality {
  std::uint64_t tokens = 0;
  std::uint64_t right = 0;  // tokens that the model would have chosen itself
  double nats = 0;          // sum of -log of each token's probability
  std::uint64_t evictions = 0;
  std::uint64_t rows = 0;  // rows computed past the first n_ctx

  [[nodiscard]] double perplexity() const;
};
/// Uses the model's pages from the first on, and needs those of 1.5 * n_ctx tokens.
stream_quality read_through_window(model::transformer& model, std::span<const token> text, const window_shape& shape);

}  // namespace redline::studies
