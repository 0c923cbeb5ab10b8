// Rotating the keys of a cache in place (one KV head, 128 dimensions), for every KV type and target, together with the
// memory bandwidth: the cost of an eager shift.

#include <cmath>

#include "bench/kernels/kernel_bench.hpp"
#include "kernels/machine/memory.hpp"

namespace redline::bench {
namespace {

using namespace kernels;

constexpr std::size_t head_dim = 128;

void rotate(benchmark::State& state, const kernel_table& table, element_type type, std::size_t tokens) {
  const std::size_t pages = tokens / kv_page_tokens;
  const std::size_t page_bytes = kv_head_bytes(type, head_dim);
  const memory_block storage(pages * page_bytes);
  const kv_view kv{storage.data(), storage.data() + round_up(kv_key_bytes(type, head_dim), 64), page_bytes, type};
  const std::vector<float> vector(head_dim, 0.25F);
  for (std::size_t slot = 0; slot < tokens; ++slot) table.store_kv(kv, slot, head_dim, vector.data(), vector.data());
  std::vector<float> angles(head_dim);
  for (std::size_t i = 0; i < head_dim / 2; ++i) {
    const double angle = -std::pow(10000.0, -2.0 * static_cast<double>(i) / head_dim);
    angles[i] = static_cast<float>(std::cos(angle));
    angles[head_dim / 2 + i] = static_cast<float>(std::sin(angle));
  }
  for (auto _ : state) {
    table.rotate_keys(kv, 0, tokens, rope_pairs::half_split, angles.data(), head_dim, head_dim);
    benchmark::ClobberMemory();
  }
  // Every byte is read and written.
  count(state, table, 3.0 * static_cast<double>(tokens * head_dim),
        2.0 * static_cast<double>(pages * kv_key_bytes(type, head_dim)));
}

}  // namespace

void register_rotate() {
  for (const kernel_table* table : usable_tables()) {
    if (table->name == "scalar" || table->name == "blas") continue;
    for (const element_type type : all_element_types) {
      for (const std::size_t tokens : {std::size_t{1024}, std::size_t{1} << 17}) {
        const std::string name =
            "rotate/" + std::string(table->name) + "/" + std::string(name_of(type)) + "/" + std::to_string(tokens);
        benchmark::RegisterBenchmark(
            name.c_str(), [table, type, tokens](benchmark::State& state) { rotate(state, *table, type, tokens); });
      }
    }
  }
}

}  // namespace redline::bench
