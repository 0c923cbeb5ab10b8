#include "bench/studies/cache/cached_log.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/tiny_model.hpp"

namespace redline::studies {
namespace {

class cached_logs : public ::testing::Test {
 protected:
  static std::vector<token> some(std::uint32_t count, token first) {
    std::vector<token> out(count);
    for (std::uint32_t i = 0; i < count; ++i) out[i] = static_cast<token>((first + i * 7) % 200);
    return out;
  }
  static std::vector<float> next(cached_log& log) {
    const auto row = log.read_last();
    return {row.begin(), row.end()};
  }
  static double cosine(const std::vector<float>& a, const std::vector<float>& b) {
    double dot = 0, aa = 0, bb = 0;
    for (std::size_t i = 0; i < a.size(); ++i) dot += a[i] * b[i], aa += a[i] * a[i], bb += b[i] * b[i];
    return dot / std::sqrt(aa * bb);
  }

  const kernels::kernel_table& table_ = *kernels::process_table().table;
  kernels::worker_team team_{1};
  kv::page_pool pool_{40};
  std::unique_ptr<model::transformer> model_ = std::move(
      *model::transformer::create(*model::load_weights(*test::make_tiny_model().file(), table_, team_), table_, team_,
                                  {.pages_count = 40, .kv = model::kv_type::f32, .rows_max = 64}));
};

TEST_F(cached_logs, say_the_same_however_they_came_about_while_all_is_exact) {
  const auto before = some(150, 3);
  auto after = before;
  after.insert(after.begin() + 40, {1, 2, 3});
  cached_log fresh(*model_, pool_);
  fresh.become({}, after);
  cached_log edited(*model_, pool_);
  edited.become({}, before);
  edited.prepare();
  const scheduler::log_splice exact{40, 0, {1, 2, 3}, kv::splice_policy::exact};
  edited.become({&exact, 1}, after);
  EXPECT_EQ(next(edited), next(fresh));
  const auto ahead = some(20, 9);
  const auto rows = edited.read_ahead(ahead);
  EXPECT_EQ(rows, fresh.read_ahead(ahead));
  EXPECT_EQ(edited.log(), after);
  EXPECT_EQ(std::vector<float>(rows.begin(), rows.begin() + model_->config().vocabulary), next(fresh));
  const auto said = fresh.say(5, [](token) { return false; });
  EXPECT_EQ(said[0], most_probable(next(fresh)));
  EXPECT_EQ(edited.say(5, [&](token t) { return t == said[1]; }).back(), said[1]);
}

// A key of the first layer depends only on its token and position.
TEST_F(cached_logs, have_their_first_layers_keys_right_where_they_moved_and_wrong_where_they_did_not) {
  const auto before = some(150, 3);
  auto after = before;
  after.erase(after.begin() + 20, after.begin() + 31);
  cached_log fresh(*model_, pool_);
  fresh.become({}, after);
  fresh.prepare();
  for (const auto policy : {kv::splice_policy::pie, kv::splice_policy::conflict}) {
    cached_log edited(*model_, pool_);
    edited.become({}, before);
    edited.prepare();
    const scheduler::log_splice gone{20, 11, {}, policy};
    edited.become({&gone, 1}, after);
    edited.prepare();
    EXPECT_EQ(edited.table().token_count(), after.size() - 1);
    EXPECT_EQ(edited.key_of(19, 1), fresh.key_of(19, 1));
    const double alike = cosine(edited.key_of(60, 0), fresh.key_of(60, 0));
    if (policy == kv::splice_policy::pie)
      EXPECT_GT(alike, 0.999999);
    else
      EXPECT_LT(alike, 0.99);
    EXPECT_LT(cosine(edited.key_of(60, 1), fresh.key_of(60, 1)), 0.999999) << "the second layer has seen the old text";
    EXPECT_NE(next(edited), next(fresh));
  }
}

}  // namespace
}  // namespace redline::studies
