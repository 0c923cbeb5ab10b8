// Attention of a few rows of one KV head (7 query heads, 64 dimensions) over a context, for every KV type and target.

#include <cmath>

#include "bench/kernels/kernel_bench.hpp"
#include "kernels/machine/memory.hpp"

namespace redline::bench {
namespace {

using namespace kernels;

constexpr std::size_t group = 7;
constexpr std::size_t head_dim = 64;

void attention(benchmark::State& state, const kernel_table& table, element_type type, std::size_t rows,
               std::size_t context) {
  const std::size_t tokens = context + rows;
  const std::size_t pages = (tokens + kv_page_tokens - 1) / kv_page_tokens;
  const std::size_t page_bytes = kv_head_bytes(type, head_dim);
  const memory_block storage(pages * page_bytes);
  const kv_view kv{storage.data(), storage.data() + round_up(kv_key_bytes(type, head_dim), 64), page_bytes, type};
  const std::vector<float> vector(head_dim, 0.25F);
  for (std::size_t slot = 0; slot < tokens; ++slot) table.store_kv(kv, slot, head_dim, vector.data(), vector.data());
  std::vector<attention_tile> tiles;
  for (std::size_t t = 0; t < tokens; t += tile_tokens) {
    tiles.push_back({static_cast<std::uint32_t>(t), static_cast<std::uint32_t>(t),
                     static_cast<std::uint16_t>(std::min(tile_tokens, tokens - t)), 0});
  }
  std::vector<float> turn(head_dim, 0.0F);
  std::fill_n(turn.begin(), head_dim / 2, 1.0F);
  const std::vector<rope_angles> angles(rows, turn.data());
  std::vector<float> q(rows * group * head_dim, 0.1F);
  std::vector<float> out(q.size());
  const std::size_t height = std::max<std::size_t>(1, table.attention_vectors / group);
  const memory_block scratch(attention_scratch_floats(std::min(rows, height), group, head_dim, 1) * sizeof(float));
  for (auto _ : state) {
    for (std::size_t row = 0; row < rows; row += height) {
      table.attention({.q = q.data() + row * group * head_dim,
                       .q_stride = group * head_dim,
                       .out = out.data() + row * group * head_dim,
                       .out_stride = group * head_dim,
                       .rows = std::min(height, rows - row),
                       .group = group,
                       .head_dim = head_dim,
                       .rotary_dim = head_dim,
                       .pairs = rope_pairs::half_split,
                       .scale = 0.125F,
                       .visible = context + row + 1,
                       .tiles = tiles.data(),
                       .tile_count = tiles.size(),
                       .angles = angles.data() + row,
                       .angles_stride = rows,
                       .offset_count = 1,
                       .kv = kv,
                       .scratch = reinterpret_cast<float*>(scratch.data())});
    }
    benchmark::ClobberMemory();
  }
  const double seen = static_cast<double>(rows * context + rows * (rows + 1) / 2);
  count(state, table, 4 * seen * group * head_dim, static_cast<double>(pages * page_bytes));
}

}  // namespace

void register_attention() {
  constexpr std::string_view names[] = {"f32", "f16", "bf16"};
  for (const kernel_table* table : usable_tables()) {
    if (table->name == "scalar" || table->name == "blas") continue;
    for (const element_type type : {element_type::f32, element_type::f16, element_type::bf16}) {
      for (const std::size_t context : {1024, 4096}) {
        for (const std::size_t rows : {1, 8, 64}) {
          const std::string name = "attention/" + std::string(table->name) + "/" +
                                   std::string(names[static_cast<std::size_t>(type)]) + "/" + std::to_string(rows) +
                                   "@" + std::to_string(context);
          benchmark::RegisterBenchmark(name.c_str(), [table, type, rows, context](benchmark::State& state) {
            attention(state, *table, type, rows, context);
          });
        }
      }
    }
  }
}

}  // namespace redline::bench
