#include "kernels/kv_layout.hpp"

#include "tests/kernels/kernel_fixture.hpp"

namespace redline::kernels {
namespace {

class kv_layout : public kernel_test {
 protected:
  static constexpr std::size_t pages = 2;
  static constexpr float infinity = std::numeric_limits<float>::infinity();

  kv_view make(element_type type, std::size_t head_dim) {
    bytes_.assign(pages * kv_head_bytes(type, head_dim), std::byte{0x55});
    return {bytes_.data(), bytes_.data() + round_up(kv_key_bytes(type, head_dim), 64), kv_head_bytes(type, head_dim),
            type};
  }
  struct token_kv {
    std::vector<float> key, value;
  };
  static token_kv read(const kv_view& kv, std::size_t slot, std::size_t head_dim) {
    token_kv t{std::vector<float>(head_dim), std::vector<float>(head_dim)};
    read_key(kv, slot, head_dim, t.key.data());
    read_value(kv, slot, head_dim, t.value.data());
    return t;
  }
  /// Stores a key or value with these numbers and reads it back.
  std::vector<float> stored(element_type type, std::vector<float> numbers, bool as_key) {
    const kv_view kv = make(type, numbers.size());
    table().store_kv(kv, 5, numbers.size(), numbers.data(), numbers.data());
    const token_kv t = read(kv, 5, numbers.size());
    return as_key ? t.key : t.value;
  }

  std::vector<std::byte> bytes_;
};

TEST_P(kv_layout, gives_back_what_was_stored_in_any_slot_and_order) {
  for (const element_type type : all_element_types) {
    for (const std::size_t head_dim : {2, 18, 32, 64, 100, 256, 1024}) {
      const kv_view kv = make(type, head_dim);
      std::vector<std::size_t> order;
      for (std::size_t slot = 0; slot < pages * kv_page_tokens; ++slot) order.push_back(slot);
      std::shuffle(order.begin(), order.end(), random_);
      std::vector<token_kv> all(order.size());
      for (const std::size_t slot : order) {
        all[slot] = {uniforms(head_dim), uniforms(head_dim)};
        table().store_kv(kv, slot, head_dim, all[slot].key.data(), all[slot].value.data());
      }
      // Half a unit of numbers below 1; a step is the largest of them / 127, or / 4095 for values in i16.
      const float error = type == element_type::f32    ? 0
                          : type == element_type::f16  ? 0x1p-12F
                          : type == element_type::bf16 ? 0x1p-9F
                          : type == element_type::q8_0 ? 0.51F / 127
                                                       : 0.51F / 4095;
      for (const std::size_t slot : order) {
        const token_kv found = read(kv, slot, head_dim);
        for (std::size_t d = 0; d < head_dim; ++d) {
          ASSERT_NEAR(found.key[d], all[slot].key[d], error) << name_of(type) << ' ' << slot << ", " << d;
          ASSERT_NEAR(found.value[d], all[slot].value[d], error) << name_of(type) << ' ' << slot << ", " << d;
        }
      }
    }
  }
}

TEST_P(kv_layout, stores_the_bytes_that_the_scalar_target_stores) {
  for (const element_type type : all_element_types) {
    for (const std::size_t head_dim : {2, 18, 64, 256, 1024}) {
      const kv_view kv = make(type, head_dim);
      const auto before = bytes_;
      std::vector<std::byte> expected;
      for (const kernel_table* with : {&scalar(), &table()}) {
        bytes_ = before;
        random_.seed(7);
        for (std::size_t slot = 0; slot < kv_page_tokens; slot += 1 + below(3)) {
          auto key = uniforms(head_dim), value = uniforms(head_dim);
          for (float& x : key) x = below(30) == 0 ? x * 1e5F : x;
          if (slot % 5 == 0) key[below(head_dim)] = slot % 2 == 0 ? nan : -nan;
          if (slot % 7 == 0) value[below(head_dim)] = slot % 2 == 0 ? nan : infinity;
          with->store_kv(kv, slot, head_dim, key.data(), value.data());
        }
        if (expected.empty()) expected = bytes_;
      }
      ASSERT_EQ(bytes_, expected) << name_of(type) << ", head " << head_dim;
    }
  }
}

TEST_P(kv_layout, halves_the_bytes_of_half_floats_with_one_byte_numbers) {
  for (const std::size_t head_dim : {64, 128}) {
    const auto halves = static_cast<double>(kv_head_bytes(element_type::f16, head_dim));
    EXPECT_LT(static_cast<double>(kv_head_bytes(element_type::q8_0, head_dim)), 0.53 * halves);
  }
}

TEST_P(kv_layout, takes_no_more_than_a_thirtieth_beside_half_floats_with_two_byte_numbers) {
  for (const std::size_t head_dim : {64, 128}) {
    const auto halves = static_cast<double>(kv_head_bytes(element_type::f16, head_dim));
    EXPECT_LT(static_cast<double>(kv_head_bytes(element_type::i16, head_dim)), 1.033 * halves);
  }
}

TEST_P(kv_layout, ends_at_the_largest_half_float_and_keeps_small_and_zero_blocks) {
  for (const element_type type : {element_type::q8_0, element_type::i16}) {
    for (const bool as_key : {true, false}) {
      // Largest and small numbers may differ by the rounding of a bf16 scale, or by half a step.
      const float unit = type == element_type::q8_0 ? 1.0F / 218 : 1.0F / 8190;
      auto large = stored(type, {1, -infinity, infinity, 70000}, as_key);
      EXPECT_NEAR(large[1], -65504, 65504 * unit);
      EXPECT_NEAR(large[2], 65504, 65504 * unit);
      EXPECT_NEAR(large[3], 65504, 65504 * unit);
      for (const float x : stored(type, {0, -0.0F, 0, 0}, as_key)) EXPECT_EQ(x, 0);
      for (const float x : stored(type, {1e-38F, -1e-44F, 0, 1e-41F}, as_key)) EXPECT_LT(std::fabs(x), 1e-30F);
      const auto small = stored(type, {3e-20F, -1e-20F, 0, 0}, as_key);
      EXPECT_NEAR(small[0], 3e-20F, 3e-22F);
      EXPECT_NEAR(small[1], -1e-20F, 3e-22F);
    }
  }
}

// Two dimensions share a scale when they are in one block of a key, or in one value.
TEST_P(kv_layout, a_number_that_is_none_makes_none_of_the_numbers_that_share_its_scale) {
  for (const element_type type : {element_type::q8_0, element_type::i16}) {
    std::vector<float> numbers(64, 0.5F);
    numbers[3] = nan;
    const auto key = stored(type, numbers, true);
    const auto value = stored(type, numbers, false);
    for (std::size_t d = 0; d < 64; ++d) {
      EXPECT_EQ(std::isnan(key[d]), d < integer_key_block) << d;
      EXPECT_TRUE(std::isnan(value[d])) << d;
    }
  }
}

TEST_P(kv_layout, a_large_dimension_costs_the_other_blocks_of_a_key_nothing) {
  for (const element_type type : {element_type::q8_0, element_type::i16}) {
    auto numbers = uniforms(64);
    const auto before = stored(type, numbers, true);
    numbers[40] = 500;
    const auto after = stored(type, numbers, true);
    for (std::size_t d = 0; d < integer_key_block; ++d) EXPECT_EQ(before[d], after[d]) << d;
  }
}

INSTANTIATE_TEST_SUITE_P(targets, kv_layout,
                         ::testing::ValuesIn(targets_of_build({"scalar", "neon", "avx2", "avx512", "avx512vnni"})),
                         target_name);

}  // namespace
}  // namespace redline::kernels
