#include "runtime/model/memory_layout.hpp"

#include <algorithm>
#include <array>

#include "runtime/model/feed_forward.hpp"
#include "runtime/model/layer_inputs.hpp"
#include "runtime/model/mtp_inputs.hpp"
#include "runtime/model/recurrent_layers.hpp"

namespace redline::model {
namespace {

/// The distance from one head's keys and values in a page to the next one's. It is not a multiple of 4 KiB, so that
/// page sizes are not either. Otherwise a head's keys and values would map to a few sets of a cache, and the prefetched
/// block would evict the current one.
std::uint64_t head_stride(std::uint32_t head_dim, kv_type type) {
  const std::uint64_t bytes = kernels::kv_head_bytes(type, head_dim);
  return bytes % 4096 == 0 ? bytes + 64 : bytes;
}

layer_sizes sizes_of(const model_shape& config, std::size_t layer, kv_type type) {
  const model_shape one = config.of_layer(layer);
  return {.kv_heads = one.kv_heads,
          .group = one.heads / one.kv_heads,
          .head_dim = one.head_dim,
          .rotated = one.rotated(),
          .query_width = std::size_t{one.heads} * one.head_dim,
          .kv_width = std::size_t{one.kv_heads} * one.head_dim,
          .stride = head_stride(one.head_dim, type),
          .keeps_tokens = config.keeps_tokens(layer)};
}

/// Bytes of a page, of the layers with a window or of all.
std::uint64_t bytes_of_layers(const model_shape& config, kv_type type, bool only_windows) {
  std::uint64_t bytes = 0;
  for (std::size_t layer = 0; layer < config.read_layers(); ++layer) {
    if (!config.keeps_tokens(layer)) continue;
    if (only_windows && config.kind_of(layer) != architecture::layer_kind::window) continue;
    const layer_sizes of = sizes_of(config, layer, type);
    bytes += of.kv_heads * of.stride;
  }
  return bytes;
}

}  // namespace

std::vector<layer_sizes> layout_of(const model_shape& config, kv_type type, bool has_window_pages) {
  std::vector<layer_sizes> sizes;
  std::array<std::size_t, 2> bytes_before = {};
  std::size_t recurrent_before = 0;
  for (std::size_t layer = 0; layer < config.read_layers(); ++layer) {
    layer_sizes& of = sizes.emplace_back(sizes_of(config, layer, type));
    std::size_t& before = bytes_before[has_window_pages && config.window_of(layer) != 0 ? 1 : 0];
    if (config.is_recurrent(layer)) {
      of.place = recurrent_before++;
    } else if (of.keeps_tokens) {
      of.place = before;
      before += of.kv_heads * of.stride;
    } else {
      of.place = sizes[config.kv_layer_of(layer)].place;
    }
  }
  return sizes;
}

widest widest_of(const model_shape& config) {
  widest most{std::size_t{config.heads} * config.head_dim, std::size_t{config.kv_heads} * config.head_dim};
  for (std::size_t layer = 0; layer < config.layers; ++layer) {
    const layer_sizes of = sizes_of(config, layer, kv_type::f32);
    most.queries = std::max(most.queries, of.query_width);
    most.keys = std::max(most.keys, of.kv_width);
  }
  return most;
}

std::uint64_t page_bytes(const model_shape& config, kv_type type) { return bytes_of_layers(config, type, false); }

std::uint64_t window_page_bytes(const model_shape& config, kv_type type) { return bytes_of_layers(config, type, true); }

std::uint32_t draft_pages(const model_shape& config) {
  return config.has_mtp() ? mtp_drafts_max * mtp_tokens_max / kv::page_tokens : 0;
}

std::uint64_t storage_bytes(const model_shape& config, kv_type type, const kv::pool_size& size) {
  const std::uint64_t windows = window_page_bytes(config, type);
  return (std::uint64_t{size.pages} + draft_pages(config)) *
             (page_bytes(config, type) - (size.window_pages == 0 ? 0 : windows)) +
         size.window_pages * windows + size.state_slots * state_bytes(config, size.state_records) +
         size.state_copies * state_bytes(config, 0);
}

std::uint64_t state_bytes(const model_shape& config, std::uint32_t records_max) {
  return (config.has_states() ? recurrent_layers::slot_bytes(config, records_max) : 0) +
         (config.has_mtp() ? mtp_inputs::slot_bytes(config, records_max) : 0);
}

std::uint32_t window_of(const model_shape& config) {
  const bool has_windows =
      std::ranges::find(config.layer_kinds, architecture::layer_kind::window) != config.layer_kinds.end();
  return has_windows ? config.window : 0;
}

std::uint64_t buffer_bytes(const model_shape& config, std::uint32_t rows_max, std::uint32_t logits_rows_max) {
  // The buffers made by the constructors of transformer::state and of its parts.
  const widest most = widest_of(config);
  const architecture::latent_shape latent = config.latent.value_or(architecture::latent_shape());
  const std::uint64_t of_latents = !config.latent
                                       ? 0
                                       : latent.query_rank + latent.rank + config.rotated() + config.attended_width() +
                                             std::uint64_t{config.heads} * (latent.plain_dim + config.rotated());
  const bool has_gates = config.kind != nullptr && config.kind->gates_attention;
  const bool adds_mixture = config.kind != nullptr && config.kind->adds_mixture() && config.experts != 0;
  const std::uint64_t floats =
      (3ULL + (adds_mixture ? 2 : 0)) * config.width + (has_gates ? 3 : 2) * most.queries + 2 * most.keys + of_latents;
  std::uint64_t bytes = floats * sizeof(float) + feed_forward::row_bytes(config);
  if (config.has_states()) bytes += recurrent_layers::row_bytes(config);
  if (config.has_mtp()) bytes += mtp_inputs::row_bytes(config);
  if (config.varied && config.varied->layer_input != 0) bytes += layer_inputs::row_bytes(config);
  const std::uint64_t logits = std::uint64_t{logits_rows_max == 0 ? rows_max : logits_rows_max} * config.vocabulary;
  return rows_max * bytes + logits * sizeof(float);
}

}  // namespace redline::model
