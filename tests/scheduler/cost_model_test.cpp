#include "scheduler/cost_model.hpp"

#include <gtest/gtest.h>

#include <random>

namespace redline::scheduler {
namespace {

double law(const work_size& s, double scale) {
  return scale * (3000 + 250.0 * static_cast<double>(s.rows) + 0.02 * static_cast<double>(s.pairs));
}

work_size random_size(std::mt19937_64& chance) {
  const std::uint64_t rows = 1 + chance() % 300;
  return {rows, rows * (1 + chance() % 4000)};
}

void teach(cost_model& m, std::mt19937_64& chance, double scale, int passes) {
  for (int i = 0; i < passes; ++i) {
    const work_size s = random_size(chance);
    const double noise = 1 + 0.04 * (static_cast<double>(chance() % 1000) / 500.0 - 1);
    m.observe(s, microseconds{static_cast<std::int64_t>(law(s, scale) * noise)});
  }
}

void expect_close(const cost_model& m, std::mt19937_64& chance, double scale) {
  for (int i = 0; i < 100; ++i) {
    const work_size s = random_size(chance);
    const double wanted = law(s, scale);
    EXPECT_NEAR(static_cast<double>(m.predict(s).count()), wanted, 0.05 * wanted) << s.rows << " rows, " << s.pairs;
  }
}

TEST(cost_model, is_blank_and_low_before_it_saw_anything) {
  const cost_model m;
  EXPECT_TRUE(m.is_blank());
  EXPECT_EQ(m.predict({100, 100000}).count(), 0);
}

TEST(cost_model, learns_a_linear_law_within_five_percent) {
  std::mt19937_64 chance(1);
  cost_model m;
  teach(m, chance, 1, 400);
  EXPECT_FALSE(m.is_blank());
  expect_close(m, chance, 1);
}

TEST(cost_model, follows_a_machine_that_became_slower) {
  std::mt19937_64 chance(2);
  cost_model m;
  teach(m, chance, 1, 300);
  teach(m, chance, 2, 400);
  expect_close(m, chance, 2);
}

TEST(cost_model, is_not_misled_by_one_disturbed_pass) {
  std::mt19937_64 chance(3);
  cost_model m;
  teach(m, chance, 1, 300);
  m.observe({10, 1000}, microseconds{60'000'000});
  expect_close(m, chance, 1);
}

TEST(cost_model, never_predicts_less_than_nothing) {
  std::mt19937_64 chance(4);
  cost_model m;
  for (int i = 0; i < 2000; ++i) {
    m.observe(random_size(chance), microseconds{static_cast<std::int64_t>(chance() % 100'000)});
    EXPECT_GE(m.predict(random_size(chance)).count(), 0);
  }
}

}  // namespace
}  // namespace redline::scheduler
