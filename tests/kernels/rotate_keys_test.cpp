#include "kernels/machine/memory.hpp"
#include "tests/kernels/kernel_fixture.hpp"

namespace redline::kernels {
namespace {

constexpr std::size_t pages = 3;

struct key_store {
  key_store(element_type the_type, std::size_t dimensions)
      : type(the_type), head_dim(dimensions), bytes(pages * kv_head_bytes(the_type, dimensions), std::byte{0xff}) {}
  [[nodiscard]] kv_view view() {
    return {bytes.data(), bytes.data() + round_up(kv_key_bytes(type, head_dim), 64), kv_head_bytes(type, head_dim),
            type};
  }
  /// Dimension d of the key in a slot, as stored, converted to float.
  [[nodiscard]] float at(std::size_t slot, std::size_t d) {
    std::vector<float> key(head_dim);
    read_key(view(), slot, head_dim, key.data());
    return key[d];
  }
  element_type type;
  std::size_t head_dim;
  std::vector<std::byte> bytes;
};

std::vector<float> angles_of(double turn, std::size_t rotary_dim) {
  std::vector<float> angles(rotary_dim);
  for (std::size_t i = 0; i < rotary_dim / 2; ++i) {
    const double angle = turn * std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(rotary_dim));
    angles[i] = static_cast<float>(std::cos(angle));
    angles[rotary_dim / 2 + i] = static_cast<float>(std::sin(angle));
  }
  return angles;
}

class rotate_keys : public kernel_test {
 protected:
  key_store filled(element_type type, std::size_t head_dim) {
    key_store store(type, head_dim);
    for (std::size_t slot = 0; slot < pages * kv_page_tokens; ++slot) {
      if (slot % 7 == 3) continue;  // never written: NaN
      const auto key = uniforms(head_dim);
      scalar().store_kv(store.view(), slot, head_dim, key.data(), key.data());
    }
    return store;
  }
};

TEST_P(rotate_keys, rotates_a_range_by_the_definition_and_leaves_the_rest) {
  for (const element_type type : all_element_types) {
    for (const auto& [head_dim, rotary_dim] : {std::pair<std::size_t, std::size_t>{64, 64}, {64, 32}, {20, 12}}) {
      for (const rope_pairs pairs : {rope_pairs::adjacent, rope_pairs::half_split}) {
        for (const auto& [first, count] :
             {std::pair<std::size_t, std::size_t>{0, 96}, {0, 16}, {5, 3}, {13, 40}, {95, 1}, {40, 0}}) {
          key_store before = filled(type, head_dim);
          const auto angles = angles_of(-37, rotary_dim);
          key_store after = before;
          table().rotate_keys(after.view(), first, count, pairs, angles.data(), rotary_dim, head_dim);
          key_store expected = before;
          scalar().rotate_keys(expected.view(), first, count, pairs, angles.data(), rotary_dim, head_dim);
          const bool own_bits = table().name == "avx512fp16" && type == element_type::f16;
          if (!own_bits) {
            ASSERT_EQ(after.bytes, expected.bytes) << "the bits of the scalar target";
          }
          // Integers: half a step of the largest number that a rotation can make from numbers below 1.
          const float unit = type == element_type::f32    ? 0x1p-23F
                             : type == element_type::f16  ? 0x1p-10F
                             : type == element_type::bf16 ? 0x1p-7F
                             : type == element_type::q8_0 ? 1.4143F / 127 / 2 * 1.01F
                                                          : 1.4143F / 8191 / 2 * 1.01F;
          // Numbers that share a block with rotated ones get the block's new scale.
          const std::size_t changed = holds_integers(type) ? round_up(rotary_dim, integer_key_block) : rotary_dim;
          for (std::size_t slot = 0; slot < pages * kv_page_tokens; ++slot) {
            const bool inside = slot >= first && slot < first + count;
            for (std::size_t d = 0; d < head_dim; ++d) {
              if (!inside || d >= changed) {
                const float x = before.at(slot, d), y = after.at(slot, d);
                ASSERT_TRUE(std::memcmp(&x, &y, sizeof(x)) == 0) << "slot " << slot << ", dimension " << d;
              } else if (slot % 7 == 3) {
                ASSERT_TRUE(std::isnan(after.at(slot, d)) || d >= rotary_dim);
              } else if (d >= rotary_dim) {
                ASSERT_NEAR(after.at(slot, d), before.at(slot, d), unit);
              } else {
                const bool split = pairs == rope_pairs::half_split;
                const std::size_t half = rotary_dim / 2;
                const std::size_t i = split ? d % half : d / 2;
                const float a = before.at(slot, split ? i : 2 * i), b = before.at(slot, split ? half + i : 2 * i + 1);
                const bool first_of_pair = split ? d < half : d % 2 == 0;
                const double exact = first_of_pair ? double{a} * angles[i] - double{b} * angles[half + i]
                                                   : double{a} * angles[half + i] + double{b} * angles[i];
                ASSERT_NEAR(after.at(slot, d), exact, unit * (own_bits ? 3 : 1))
                    << "slot " << slot << ", dimension " << d;
              }
            }
          }
        }
      }
    }
  }
}

TEST_P(rotate_keys, rotating_there_and_back_nearly_restores_the_key) {
  key_store before = filled(element_type::f32, 32);
  key_store store = before;
  const auto there = angles_of(64, 32), back = angles_of(-64, 32);
  table().rotate_keys(store.view(), 3, 70, rope_pairs::half_split, there.data(), 32, 32);
  EXPECT_NE(store.bytes, before.bytes);
  table().rotate_keys(store.view(), 3, 70, rope_pairs::half_split, back.data(), 32, 32);
  for (std::size_t slot = 3; slot < 73; ++slot) {
    if (slot % 7 == 3) continue;
    for (std::size_t d = 0; d < 32; ++d) ASSERT_NEAR(store.at(slot, d), before.at(slot, d), 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(targets, rotate_keys,
                         ::testing::ValuesIn(targets_of_build({"scalar", "neon", "avx2", "avx512", "avx512vnni",
                                                               "avx512fp16", "blas", "amx_emulated"})),
                         target_name);

}  // namespace
}  // namespace redline::kernels
