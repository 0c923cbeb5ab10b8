#include "kernels/packed_weights.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <random>
#include <vector>

#include "kernels/dispatch.hpp"
#include "kernels/panel_layout.hpp"
#include "kernels/weight_blocks.hpp"

namespace redline::kernels {
namespace {

// The threads share the panels of all matrices, including a last panel that is not full and memory of the caller.
TEST(packed_weights, several_at_once_are_what_each_is_alone) {
  const kernel_table& table = *process_table().table;
  worker_team team(3);
  const std::size_t columns = 256;
  const std::size_t rows[] = {5, 16, 0, 40};
  std::mt19937 chance(1);
  for (const weight_type type : all_weight_types) {
    std::vector<std::byte> source(64 * row_bytes(type, columns));
    for (std::byte& b : source) b = static_cast<std::byte>(chance());
    memory_block place(panels_for(40) * table.panel_bytes(type, columns));
    std::vector<packed_weights::request> requests;
    for (const std::size_t count : rows) {
      requests.push_back(
          {count, source.data() + requests.size() * row_bytes(type, columns), count == 40 ? place.data() : nullptr});
    }
    const auto together = packed_weights::pack_all(table, team, type, columns, requests);
    ASSERT_EQ(together.size(), std::size(rows));
    EXPECT_EQ(together.back().view().panels, place.data());
    for (std::size_t i = 0; i < together.size(); ++i) {
      const packed_weights alone(table, team, type, rows[i], columns, requests[i].source);
      ASSERT_EQ(together[i].size_bytes(), alone.size_bytes());
      EXPECT_EQ(together[i].rows(), rows[i]);
      EXPECT_TRUE(std::equal(alone.view().panels, alone.view().panels + alone.size_bytes(), together[i].view().panels))
          << name_of(type) << ", " << rows[i] << " rows";
    }
  }
  EXPECT_TRUE(packed_weights::pack_all(table, team, weight_type::q8_0, columns, {}).empty());
}

/// The integer of `bits` bits that the layout stores for a column of a row.
unsigned integer_at(const std::byte* words, std::size_t column, std::size_t lane, unsigned bits) {
  std::uint32_t word;
  std::memcpy(&word, words + column * bits / 32 * layout::words_bytes + lane * 4, 4);
  return word >> layout::bit_of_column(column, bits) & ((1U << bits) - 1);
}

// Words are assembled four columns at a time. This test reads column by column, for formats with simple blocks; the
// tests of the products cover the others.
TEST(packed_weights, integers_lie_where_the_layout_says) {
  const std::size_t rows = 16, columns = 256;
  std::mt19937 chance(2);
  const auto packed = [&](weight_type type, std::vector<std::byte>& source) {
    source.resize(rows * row_bytes(type, columns));
    for (std::byte& b : source) b = static_cast<std::byte>(chance());
    std::vector<std::byte> out(interleaved_panel_bytes(type, columns));
    interleave_panels(type, source.data(), rows, columns, 0, 1, out.data());
    return out;
  };
  std::vector<std::byte> source;
  const auto byte_of = [&](weight_type type, std::size_t row, std::size_t at) {
    return std::to_integer<unsigned>(source[row * row_bytes(type, columns) + at]);
  };
  const auto of_q5_0 = packed(weight_type::q5_0, source);
  for (std::size_t i = 0; i < columns; ++i) {
    const std::size_t block = i / 32 * 22, in = i % 32, unit = i / 32 * layout::unit_bytes(weight_type::q5_0);
    for (std::size_t row = 0; row < rows; ++row) {
      const unsigned fifth = byte_of(weight_type::q5_0, row, block + 2 + in / 8) >> in % 8 & 1;
      const unsigned both = byte_of(weight_type::q5_0, row, block + 6 + in % 16);
      ASSERT_EQ(integer_at(of_q5_0.data() + unit + 32, in, row, 1), fifth) << i << ", row " << row;
      ASSERT_EQ(integer_at(of_q5_0.data() + unit + 96, in, row, 4), in < 16 ? both & 15 : both >> 4) << i;
    }
  }
  const auto of_q6_k = packed(weight_type::q6_k, source);
  for (std::size_t i = 0; i < columns; ++i) {
    for (std::size_t row = 0; row < rows; ++row) {
      const unsigned low = byte_of(weight_type::q6_k, row, i / 128 * 64 + i % 64) >> (i % 128 < 64 ? 0 : 4) & 15;
      const unsigned high = byte_of(weight_type::q6_k, row, 128 + i / 128 * 32 + i % 32) >> i % 128 / 32 * 2 & 3;
      ASSERT_EQ(integer_at(of_q6_k.data() + 64 + 256, i, row, 4), low) << i << ", row " << row;
      ASSERT_EQ(integer_at(of_q6_k.data() + 64 + 256 + 32 * layout::words_bytes, i, row, 2), high) << i;
    }
  }
}

}  // namespace
}  // namespace redline::kernels
