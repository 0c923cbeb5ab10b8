#include "runtime/model/kv_moves.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/half_floats.hpp"

namespace redline::model {
namespace {

using kernels::kv_page_tokens;
using kernels::tile_tokens;

/// Dimension 0 of the slot's key; the next dimension is tile_tokens elements further.
std::byte* key_of(const kernels::kv_view& kv, std::size_t slot, std::size_t head_dim) {
  const std::size_t tile = slot % kv_page_tokens / tile_tokens;
  return kv.keys + slot / kv_page_tokens * kv.page_stride_bytes +
         (tile * head_dim * tile_tokens + slot % tile_tokens) * bytes_of(kv.type);
}

std::byte* value_of(const kernels::kv_view& kv, std::size_t slot, std::size_t head_dim) {
  return kv.values + slot / kv_page_tokens * kv.page_stride_bytes +
         slot % kv_page_tokens * kernels::round_up(head_dim, 16) * bytes_of(kv.type);
}

}  // namespace

void copy_tokens(const kernels::kv_view& kv, const kv::token_move& move, std::size_t head_dim) {
  if (move.from_slot == move.to_slot) return;
  const std::size_t element = bytes_of(kv.type);
  for (std::size_t done = 0; done < move.count;) {
    const std::size_t from = move.from_slot + done;
    const std::size_t to = move.to_slot + done;
    const std::size_t count =
        std::min({move.count - done, tile_tokens - from % tile_tokens, tile_tokens - to % tile_tokens});
    const std::byte* from_key = key_of(kv, from, head_dim);
    std::byte* to_key = key_of(kv, to, head_dim);
    for (std::size_t d = 0; d < head_dim; ++d) {
      std::memmove(to_key + d * tile_tokens * element, from_key + d * tile_tokens * element, count * element);
    }
    std::memmove(value_of(kv, to, head_dim), value_of(kv, from, head_dim),
                 count * kernels::round_up(head_dim, 16) * element);
    done += count;
  }
}

void append_key(const kernels::kv_view& kv, std::size_t slot, std::size_t head_dim, std::vector<float>& out) {
  const std::byte* key = key_of(kv, slot, head_dim);
  const std::size_t element = bytes_of(kv.type);
  for (std::size_t d = 0; d < head_dim; ++d, key += tile_tokens * element) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, key, element);
    switch (kv.type) {
      case kernels::element_type::f32:
        out.push_back(std::bit_cast<float>(bits));
        break;
      case kernels::element_type::f16:
        out.push_back(kernels::widen_f16(static_cast<std::uint16_t>(bits)));
        break;
      case kernels::element_type::bf16:
        out.push_back(std::bit_cast<float>(bits << 16));
        break;
    }
  }
}

}  // namespace redline::model
