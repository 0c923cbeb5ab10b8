#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/kernel_table.hpp"
#include "runtime/architecture/shape_keys.hpp"
#include "runtime/kv/page_pool.hpp"

namespace redline::model {

using architecture::model_shape;

/// One of f32, f16 and bf16.
using kv_type = kernels::element_type;

/// The most drafts of an MTP layer after one pass, and the most tokens of each.
inline constexpr std::uint32_t mtp_drafts_max = 64, mtp_tokens_max = 8;

/// Bytes of one KV page of this model, including all layers in it.
[[nodiscard]] std::uint64_t page_bytes(const model_shape& config, kv_type type);
/// Bytes of one window page: the part of layers with a window.
[[nodiscard]] std::uint64_t window_page_bytes(const model_shape& config, kv_type type);
/// Pages for the rows of MTP drafts, after those of sequences.
[[nodiscard]] std::uint32_t draft_pages(const model_shape& config);
/// Bytes of the storage for this many pages and window pages.
[[nodiscard]] std::uint64_t storage_bytes(const model_shape& config, kv_type type, const kv::pool_size& size);
/// Bytes of the state of one sequence with this many records (state_run), in models with recurrent layers.
[[nodiscard]] std::uint64_t state_bytes(const model_shape& config, std::uint32_t records_max);
/// Tokens that a row of a layer with a window sees, including its own; 0 if no layer has one.
[[nodiscard]] std::uint32_t window_of(const model_shape& config);

/// Bytes of a transformer's own buffers for passes of this many rows: logits and activations, without scratch.
[[nodiscard]] std::uint64_t buffer_bytes(const model_shape& config, std::uint32_t rows_max,
                                         std::uint32_t logits_rows_max);

/// The sizes of a layer's attention, and where its keys and values are in a page.
struct layer_sizes {
  std::uint32_t kv_heads = 0;
  std::uint32_t group = 0;  // heads that read one KV head
  std::uint32_t head_dim = 0;
  std::uint32_t rotated = 0;
  std::size_t query_width = 0;
  std::size_t kv_width = 0;
  std::uint64_t stride = 0;   // bytes from one KV head to the next in a page
  std::size_t place = 0;      // bytes of the page before the layer's; for recurrent layers the number of earlier ones
  bool keeps_tokens = false;  // otherwise another layer has its keys and values
};

/// The sizes of all layers, the MTP layer included. has_window_pages: layers with a window have pages of their own.
[[nodiscard]] std::vector<layer_sizes> layout_of(const model_shape& config, kv_type type, bool has_window_pages);

/// The widest rows of queries and of keys, and so of values.
struct widest {
  std::size_t queries = 0, keys = 0;
};
[[nodiscard]] widest widest_of(const model_shape& config);

}  // namespace redline::model
