#include "actors/node/memory_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace redline::actors {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::uint64_t gib = 1ULL << 30;

TEST(memory_plan, lets_pass_what_fits) {
  EXPECT_TRUE((memory_plan{4 * gib, 2 * gib, gib, 8 * gib}.check("m.gguf")));
  EXPECT_TRUE((memory_plan{4 * gib, 2 * gib, gib, 0}.check("m.gguf"))) << "the limit is unknown";
  EXPECT_EQ((memory_plan{gib / 2, 2 * gib, gib / 4, 8 * gib}.describe()),
            "weights 0.50 GiB, keys and values 2.00 GiB, buffers 0.25 GiB, of 8.00 GiB");
}

TEST(memory_plan, says_what_would_fit) {
  const auto kv = memory_plan{6 * gib, 2 * gib, 0, 8 * gib}.check("m.gguf");
  ASSERT_FALSE(kv);
  EXPECT_THAT(kv.error().context, AllOf(HasSubstr("m.gguf: expected a model that fits into the 8.00 GiB"),
                                        HasSubstr("limit keys and values to 1984 MiB (--kv-mib)")));
  const auto weights = memory_plan{15 * gib, 2 * gib, 0, 8 * gib}.check("m.gguf");
  ASSERT_FALSE(weights);
  EXPECT_THAT(weights.error().context, HasSubstr("fewer bits per weight or a smaller model"));
}

TEST(memory_plan, counts_logits_and_activations_by_their_size) {
  // A plan that fits without these buffers does not fit with them, and the advice leaves space for them.
  EXPECT_TRUE((memory_plan{5 * gib, 2 * gib, 0, 7 * gib + gib / 8}.check("m.gguf")));
  const auto buffers = memory_plan{5 * gib, 2 * gib, gib / 4, 7 * gib + gib / 8}.check("m.gguf");
  ASSERT_FALSE(buffers);
  EXPECT_THAT(buffers.error().context,
              AllOf(HasSubstr("buffers of 0.25 GiB"), HasSubstr("keys and values to 1856 MiB")));
}

architecture::model_shape gemma_like(std::uint32_t windowed, std::uint32_t full) {
  architecture::model_shape c;
  c.layers = windowed + full;
  c.kv_heads = 1;
  c.head_dim = 256;
  c.context = 32'768;
  c.window = 512;
  c.layer_kinds.assign(windowed, architecture::layer_kind::window);
  c.layer_kinds.resize(c.layers, architecture::layer_kind::full);
  return c;
}

TEST(choose_pool, has_pages_for_every_sequence_and_window_pages_for_what_each_sees) {
  const auto config = gemma_like(22, 4);
  const auto size = choose_pool(config, model::kv_type::f16, {64 * gib, 8, 32'768, 256});
  EXPECT_EQ(size.pages, 8 * 1024U);
  EXPECT_EQ(size.window, 512U);
  EXPECT_EQ(size.window_pages, 8 * (800 / 32 + 2U));
  EXPECT_LT(5 * model::storage_bytes(config, model::kv_type::f16, size),
            model::storage_bytes(config, model::kv_type::f16, 8 * 1024));
  auto plain = config;
  plain.layer_kinds.clear();
  EXPECT_EQ(choose_pool(plain, model::kv_type::f16, {64 * gib, 8, 32'768, 256}).window_pages, 0U);
  EXPECT_EQ(choose_pool(config, model::kv_type::f16, {64 * gib, 8, 700, 256}).window_pages, 0U)
      << "there is nothing to gain";
}

TEST(choose_pool, stays_within_its_bytes_and_serves_one_sequence_of_full_length_first) {
  for (const auto& config : {gemma_like(22, 4), gemma_like(26, 0), gemma_like(1, 25)}) {
    for (std::uint64_t bytes = gib / 64; bytes <= 8 * gib; bytes += bytes / 3) {
      const pool_request request{bytes, 64, 32'768, 256};
      const auto size = choose_pool(config, model::kv_type::f16, request);
      EXPECT_LE(model::storage_bytes(config, model::kv_type::f16, size), bytes);
      EXPECT_GE(size.pages, choose_pool(
                                [&] {
                                  auto plain = config;
                                  plain.layer_kinds.clear();
                                  return plain;
                                }(),
                                model::kv_type::f16, request)
                                .pages)
          << "never fewer than without window pages";
    }
  }
}

TEST(choose_pool, gives_recurrent_layers_a_state_for_each_sequence_and_some_for_prefixes) {
  architecture::model_shape c = gemma_like(0, 24);
  c.context = 32'768;
  for (std::size_t i = 0; i < 18; ++i) c.layer_kinds[i] = architecture::layer_kind::recurrent;
  c.delta = {.taps = 4, .key_heads = 16, .value_heads = 16, .head_dim = 128};
  const auto size = choose_pool(c, model::kv_type::f16, {64 * gib, 8, 32'768, 256});
  EXPECT_EQ(size.state_slots, 8U);
  EXPECT_EQ(size.state_copies, 32U);
  EXPECT_EQ(size.state_records, 33U);
  EXPECT_EQ(size.pages, 8 * 1024U);
  EXPECT_EQ(model::state_bytes(c, 0), 18 * 4 * (16 * 128 * 128 + 3 * 6144U)) << "19.3 MiB";
  for (std::uint64_t bytes = gib / 4; bytes <= 8 * gib; bytes += bytes / 3) {
    const auto small = choose_pool(c, model::kv_type::f16, {bytes, 64, 32'768, 256});
    EXPECT_LE(model::storage_bytes(c, model::kv_type::f16, small), bytes);
    const std::uint64_t slots = small.state_slots * model::state_bytes(c, small.state_records);
    EXPECT_LE(slots + small.state_copies * model::state_bytes(c, 0), bytes / 2);
    EXPECT_GE(small.state_slots, 1U);
    EXPECT_GE(small.state_copies, 1U);
  }
}

}  // namespace
}  // namespace redline::actors
