#include "bench/studies/cache/evict_study.hpp"

#include <gtest/gtest.h>

#include "tests/support/test_data.hpp"

namespace redline::studies {
namespace {

TEST(evict_study, keys_that_are_turned_often_drift_and_keys_that_are_not_do_not) {
  const auto& table = *kernels::process_table().table;
  constexpr std::uint32_t shifts[] = {1, 100, 3000};
  for (const auto type : kernels::all_element_types) {
    const auto drifts = measure_drift(table, type, shifts);
    ASSERT_EQ(drifts.size(), 3u);
    EXPECT_LT(drifts[0].eager, drifts[1].eager);
    EXPECT_LT(drifts[1].eager, drifts[2].eager);
    for (const auto& d : drifts) EXPECT_LT(d.lazy, 1e-6);
  }
  EXPECT_LT(measure_drift(table, kernels::element_type::f16, shifts)[0].eager, 0x1p-11);
}

class window_study : public ::testing::Test {
 protected:
  void SetUp() override {
    // A table that does not round products: rotated and moved keys must be equivalent almost to the bit.
    const auto& table = kernels::table_for_cache(*kernels::process_table().table, model::kv_type::f32);
    const auto file = gguf::gguf_file::open(test::source_path("bench/demo_models/demo-draft.gguf"));
    ASSERT_TRUE(file);
    auto weights = model::load_weights(**file, table, team_);
    ASSERT_TRUE(weights);
    model_ = *model::transformer::create(*weights, table, team_,
                                         {.pages_count = 20, .kv = model::kv_type::f32, .rows_max = 32});
    for (int i = 0; i < 300; ++i) text_.push_back(static_cast<token>(40 + i * i % 200));
  }
  stream_quality read(kv::eviction_policy policy, std::uint32_t n_discard) {
    return read_through_window(*model_, text_, {.policy = policy, .n_ctx = 128, .n_keep = 4, .n_discard = n_discard});
  }
  kernels::worker_team team_{2};
  std::unique_ptr<model::transformer> model_;
  std::vector<token> text_;
};

TEST_F(window_study, judges_each_token_behind_the_first_window_once) {
  const auto lazy = read(kv::eviction_policy::lazy, 16);
  EXPECT_EQ(lazy.tokens, 300u - 128 - 1);
  EXPECT_EQ(lazy.rows, 300u - 128);
  EXPECT_EQ(lazy.evictions, (300u - 128 + 15) / 16);
  const auto again = read(kv::eviction_policy::reevaluate, 16);
  EXPECT_EQ(again.tokens, lazy.tokens);
  EXPECT_EQ(again.rows, lazy.rows + again.evictions * (128 - 4 - 16));
}

TEST_F(window_study, turned_and_moved_keys_mean_the_same) {
  for (const std::uint32_t n_discard : {1u, 40u}) {
    const auto lazy = read(kv::eviction_policy::lazy, n_discard);
    const auto shift = read(kv::eviction_policy::shift, n_discard);
    EXPECT_GT(lazy.nats, 0);
    EXPECT_NEAR(lazy.nats / shift.nats, 1, 1e-4);
    EXPECT_NE(lazy.nats, read(kv::eviction_policy::reevaluate, n_discard).nats);
  }
}

}  // namespace
}  // namespace redline::studies
