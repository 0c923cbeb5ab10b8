#include "runtime/model/memory_layout.hpp"

#include <gtest/gtest.h>

#include "runtime/gguf/gguf_file.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::model {
namespace {

architecture::model_shape shape_of_tiny(const char* family) {
  return *architecture::read_shape(*test::make_tiny_model({.architecture = family}).file());
}

TEST(memory_layout, buffers_grow_by_what_a_row_takes) {
  const architecture::model_shape small{
      .width = 8, .heads = 2, .kv_heads = 1, .head_dim = 4, .feed_forward = 16, .vocabulary = 1000};
  const auto bytes = buffer_bytes(small, 10, 3);
  EXPECT_EQ(buffer_bytes(small, 10, 4) - bytes, 4000U) << "a row of logits";
  EXPECT_EQ(buffer_bytes(small, 10, 0), buffer_bytes(small, 10, 10));
  EXPECT_EQ(buffer_bytes(small, 11, 3) - bytes, 4 * (3 * 8 + 2 * 8 + 2 * 4 + 2 * 16U)) << "a row of activations";
}

TEST(memory_layout, a_page_has_the_keys_and_values_of_all_layers_one_after_the_other) {
  const auto shape = shape_of_tiny("qwen2");
  const auto layout = layout_of(shape, kv_type::f32, false);
  ASSERT_EQ(layout.size(), shape.layers);
  std::uint64_t end = 0;
  for (const layer_sizes& of : layout) {
    EXPECT_EQ(of.place, end);
    EXPECT_EQ(of.query_width, std::size_t{of.kv_heads} * of.group * of.head_dim);
    EXPECT_TRUE(of.keeps_tokens);
    end += of.kv_heads * of.stride;
  }
  EXPECT_EQ(page_bytes(shape, kv_type::f32), end);
  EXPECT_EQ(storage_bytes(shape, kv_type::f32, 3), 3 * end);
}

TEST(memory_layout, heads_do_not_fall_on_the_same_cache_sets) {
  architecture::model_shape shape = shape_of_tiny("qwen2");
  for (const std::uint32_t head_dim : {64U, 128U, 256U}) {
    shape.head_dim = head_dim;
    for (const kv_type type : {kv_type::f16, kv_type::f32})
      EXPECT_NE(layout_of(shape, type, false)[0].stride % 4096, 0U);
  }
}

TEST(memory_layout, layers_with_a_window_may_have_pages_of_their_own) {
  architecture::model_shape shape;
  shape.layers = 4;
  shape.heads = shape.kv_heads = 1;
  shape.head_dim = 64;
  shape.window = 512;
  using architecture::layer_kind;
  shape.layer_kinds = {layer_kind::window, layer_kind::full, layer_kind::window, layer_kind::full};
  const auto places = [&](bool has_window_pages) {
    std::vector<std::size_t> found;
    for (const layer_sizes& of : layout_of(shape, kv_type::f16, has_window_pages)) found.push_back(of.place);
    return found;
  };
  const std::size_t one = layout_of(shape, kv_type::f16, false)[0].stride;
  EXPECT_EQ(places(false), (std::vector<std::size_t>{0, one, 2 * one, 3 * one}));
  EXPECT_EQ(places(true), (std::vector<std::size_t>{0, 0, one, one}));
  EXPECT_EQ(window_page_bytes(shape, kv_type::f16), 2 * one);
  EXPECT_EQ(page_bytes(shape, kv_type::f16), 4 * one);
  EXPECT_EQ(window_of(shape), 512U);
  kv::pool_size size = 10;
  size.window_pages = 3;
  EXPECT_EQ(storage_bytes(shape, kv_type::f16, size), (10 + 3) * 2 * one);
}

TEST(memory_layout, recurrent_layers_are_counted_and_have_no_part_of_a_page) {
  const auto shape = shape_of_tiny("qwen35");
  const auto layout = layout_of(shape, kv_type::f16, false);
  std::size_t recurrent = 0;
  for (std::size_t layer = 0; layer < shape.layers; ++layer) {
    EXPECT_EQ(layout[layer].keeps_tokens, !shape.is_recurrent(layer));
    if (shape.is_recurrent(layer)) {
      EXPECT_EQ(layout[layer].place, recurrent++);
    }
  }
  EXPECT_GT(recurrent, 0U);
}

}  // namespace
}  // namespace redline::model
