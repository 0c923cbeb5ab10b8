#include "runtime/model/kv_moves.hpp"

#include <algorithm>
#include <cstring>

namespace redline::model {
namespace {

using kernels::tile_tokens;

/// Moves `count` tokens of a tile from one lane to another: in each row of the tile, which has 16 elements.
void copy_lanes(std::byte* to, std::size_t to_lane, const std::byte* from, std::size_t from_lane, std::size_t count,
                std::size_t rows, std::size_t element) {
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t at = row * tile_tokens;
    std::memmove(to + (at + to_lane) * element, from + (at + from_lane) * element, count * element);
  }
}

void copy_keys(const kernels::kv_view& kv, std::size_t from, std::size_t to, std::size_t count, std::size_t head_dim) {
  const std::byte* from_tile = key_tile(kv, from, head_dim);
  std::byte* to_tile = key_tile(kv, to, head_dim);
  const auto copy = [&](std::size_t offset, std::size_t rows, std::size_t element) {
    copy_lanes(to_tile + offset, to % tile_tokens, from_tile + offset, from % tile_tokens, count, rows, element);
  };
  if (!kernels::holds_integers(kv.type)) return copy(0, head_dim, bytes_of(kv.type));
  copy(0, kernels::integer_words(kv.type, head_dim), 4);
  copy(kernels::tile_integer_bytes(kv.type, head_dim), kernels::integer_key_blocks(head_dim), sizeof(std::uint16_t));
}

void copy_values(const kernels::kv_view& kv, std::size_t from, std::size_t to, std::size_t count,
                 std::size_t head_dim) {
  if (!kernels::holds_integers(kv.type)) {
    std::memmove(value_row(kv, to, head_dim), value_row(kv, from, head_dim),
                 count * value_row_bytes(kv.type, head_dim));
    return;
  }
  std::memmove(value_scale(kv, to, head_dim), value_scale(kv, from, head_dim), count * sizeof(std::uint16_t));
  const std::size_t together = kernels::integers_per_word(kv.type);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t token = to > from ? count - 1 - i : i;  // the ranges may overlap
    const auto words = [&](std::size_t slot) {
      return value_words(kv, slot, head_dim) + kernels::place_in_word(kv.type, slot % together);
    };
    const std::byte* from_words = words(from + token);
    std::byte* to_words = words(to + token);
    for (std::size_t d = 0; d < head_dim; ++d) std::memcpy(to_words + d * 4, from_words + d * 4, bytes_of(kv.type));
  }
}

}  // namespace

void copy_tokens(const kernels::kv_view& kv, const kv::token_move& move, std::size_t head_dim) {
  if (move.from_slot == move.to_slot) return;
  for (std::size_t done = 0; done < move.count;) {
    const std::size_t from = move.from_slot + done;
    const std::size_t to = move.to_slot + done;
    const std::size_t count =
        std::min({move.count - done, tile_tokens - from % tile_tokens, tile_tokens - to % tile_tokens});
    copy_keys(kv, from, to, count, head_dim);
    copy_values(kv, from, to, count, head_dim);
    done += count;
  }
}

void append_key(const kernels::kv_view& kv, std::size_t slot, std::size_t head_dim, std::vector<float>& out) {
  out.resize(out.size() + head_dim);
  kernels::read_key(kv, slot, head_dim, out.data() + out.size() - head_dim);
}

}  // namespace redline::model
