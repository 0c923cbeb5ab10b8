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

// What moving a window costs in quality. Pure measurements, driven without actors.

namespace redline::studies {

/// Root mean square errors of keys that moved by `shifts` positions, relative to turning the stored key once, exactly.
struct key_drift {
  std::uint32_t shifts = 0;
  double eager = 0;  // turned in place by one position at a time, rounded each time
  double lazy = 0;   // left alone; the query turns by all of them at once
};
/// Keys of 64 dimensions at base 10000, seeded. shifts: rising.
std::vector<key_drift> measure_drift(const kernels::kernel_table& table, kernels::element_type type,
                                     std::span<const std::uint32_t> shifts);

/// A window over a longer text.
struct window_shape {
  kv::eviction_policy policy = kv::eviction_policy::lazy;
  std::uint32_t n_ctx = 512;
  std::uint32_t n_keep = 4;
  std::uint32_t n_discard = 64;
};
/// How well a model knows the tokens of a text past the first n_ctx, each from the window before it.
struct stream_quality {
  std::uint64_t tokens = 0;
  std::uint64_t right = 0;  // it would have chosen the text's token
  double nats = 0;          // sum of -log of the token's probability
  std::uint64_t evictions = 0;
  std::uint64_t rows = 0;  // computed past the first n_ctx

  [[nodiscard]] double perplexity() const;
};
/// The model's pages are used from the first on; it needs those of n_ctx tokens and half as many again.
stream_quality read_through_window(model::transformer& model, std::span<const token> text, const window_shape& shape);

}  // namespace redline::studies
