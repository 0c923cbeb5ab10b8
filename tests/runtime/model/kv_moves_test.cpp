#include "runtime/model/kv_moves.hpp"

#include <gtest/gtest.h>

#include <random>

#include "kernels/dispatch.hpp"

namespace redline::model {
namespace {

using kernels::element_type;

constexpr std::size_t pages = 4;
constexpr std::size_t slots = pages * kernels::kv_page_tokens;

/// Keys and values of one head, all different.
struct head_store {
  head_store(element_type type, std::size_t dimensions)
      : head_dim(dimensions),
        bytes(pages * kernels::kv_head_bytes(type, dimensions)),
        kv{bytes.data(), bytes.data() + kernels::round_up(kernels::kv_key_bytes(type, dimensions), 64),
           kernels::kv_head_bytes(type, dimensions), type} {
    std::mt19937 random(9);
    std::normal_distribution<float> normal;
    const auto& table = *kernels::choose_table("scalar").table;
    for (std::size_t slot = 0; slot < slots; ++slot) {
      std::vector<float> key(head_dim), value(head_dim);
      for (float& x : key) x = normal(random);
      for (float& x : value) x = normal(random);
      table.store_kv(kv, slot, head_dim, key.data(), value.data());
    }
  }
  head_store(const head_store&) = delete;
  head_store& operator=(const head_store&) = delete;

  [[nodiscard]] std::vector<float> token(std::size_t slot) const {
    std::vector<float> both;
    append_key(kv, slot, head_dim, both);
    both.resize(2 * head_dim);
    kernels::read_value(kv, slot, head_dim, both.data() + head_dim);
    return both;
  }

  std::size_t head_dim;
  std::vector<std::byte> bytes;
  kernels::kv_view kv;
};

TEST(kv_moves, a_copied_token_is_the_same_to_the_bit_and_the_others_stay) {
  for (const element_type type : kernels::all_element_types) {
    for (const std::size_t head_dim : {18, 64}) {
      // To another page, within a tile, overlapping in both directions, and over several pages.
      for (const auto& [from, to, count] : {std::array<std::uint32_t, 3>{3, 70, 20},
                                            {5, 4, 9},
                                            {4, 5, 9},
                                            {2, 1, 30},
                                            {17, 18, 10},
                                            {40, 7, 60},
                                            {9, 9, 5},
                                            {33, 2, 1}}) {
        const head_store before(type, head_dim);
        head_store after(type, head_dim);
        copy_tokens(after.kv, {from, to, count, 0}, head_dim);
        for (std::uint32_t slot = 0; slot < slots; ++slot) {
          const bool is_copy = slot >= to && slot < to + count;
          ASSERT_EQ(after.token(slot), before.token(is_copy ? from + (slot - to) : slot))
              << name_of(type) << ", from " << from << " to " << to << ", slot " << slot;
        }
      }
    }
  }
}

}  // namespace
}  // namespace redline::model
