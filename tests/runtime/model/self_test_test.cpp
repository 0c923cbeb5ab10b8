#include "runtime/model/self_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "kernels/dispatch.hpp"
#include "kernels/int8_tables.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::model {
namespace {

using kernels::gemm_args;
using kernels::kernel_table;
using ::testing::Each;
using ::testing::HasSubstr;

const kernel_table& portable_table() { return *kernels::choose_table("scalar").table; }

/// A fast table, copies of which the tests break.
const kernel_table& best() {
  const kernel_table& chosen = *kernels::choose_table(std::nullopt).table;
  return chosen.one_chain ? chosen : portable_table();
}

std::vector<self_check> test_of(std::span<const kernel_table* const> tables, const kernel_table& reference) {
  const auto model = test::make_tiny_model({.matrices = gguf::tensor_type::q8_0}).file();
  auto found = self_test({.tables = tables, .reference = reference, .model = *model, .threads = 3});
  if (!found) throw std::runtime_error(found.error().describe());
  return std::move(*found);
}

/// The claims that a table failed.
std::vector<self_check> failures_of(const kernel_table& table) {
  const kernel_table* only[] = {&table};
  auto checks = test_of(only, best());
  std::erase_if(checks, [](const self_check& c) { return c.holds(); });
  return checks;
}

TEST(self_test, passes_on_every_target_of_this_machine) {
  std::vector<const kernel_table*> tables;
  for (const auto& t : kernels::list_targets()) {
    if (t.table != nullptr) tables.push_back(t.table);
  }
  std::set<std::pair<std::string, std::string>> claims;
  for (const self_check& c : test_of(tables, portable_table())) {
    EXPECT_TRUE(c.holds()) << c.target << ": " << c.claim << ": " << c.problem;
    EXPECT_TRUE(claims.emplace(c.target, c.claim).second) << c.claim << " twice";
  }
  for (const kernel_table* t : tables) {
    const auto own = std::count_if(claims.begin(), claims.end(), [&](const auto& c) { return c.first == t->name; });
    // 23 formats, two claims for each of five caches, and a third for tables that must match another's bits.
    const int as_floats = t->one_chain && t != &portable_table() ? 38 : 33;
    // Twenty of the formats are blocks of integers.
    const bool has_integers = kernels::int8_table_of(*t) != nullptr;
    const int as_integers = !has_integers ? 0 : t != &portable_table() ? 35 : 30;
    EXPECT_EQ(own, as_floats + as_integers) << t->name;
  }
}

/// Increments the last output of every row by one step if there are several rows.
void gemm_that_sees_company(const gemm_args& a) {
  best().gemm(a);
  if (a.rows < 2 || a.panel_end < kernels::panels_for(a.w.rows)) return;
  for (std::size_t r = 0; r < a.rows; ++r) {
    float& y = a.y[r * a.y_stride + a.w.rows - 1];
    y = std::nextafter(y, INFINITY);
  }
}

TEST(self_test, finds_a_product_that_depends_on_the_other_rows) {
  kernel_table broken = best();
  broken.name = "broken";
  broken.gemm = gemm_that_sees_company;
  const auto failures = failures_of(broken);
  ASSERT_GE(failures.size(), std::size(kernels::all_weight_types));
  EXPECT_THAT(failures, Each(::testing::Field(&self_check::target, "broken")));
  EXPECT_EQ(failures.front().claim, "products with F32 weights");
  EXPECT_THAT(failures.front().problem,
              HasSubstr("a row in a batch of 2 with one thread differs from the same row alone at row "
                        "0, output 164: expected "));
  EXPECT_THAT(failures, ::testing::Contains(::testing::Field(&self_check::claim, HasSubstr("a prompt in chunks"))));
}

void gemm_without_bias(const gemm_args& a) {
  gemm_args less = a;
  less.bias = nullptr;
  best().gemm(less);
}

TEST(self_test, finds_a_dropped_bias_also_where_rounding_is_free) {
  for (const bool one_chain : {true, false}) {
    kernel_table broken = best();
    broken.one_chain = one_chain;
    broken.gemm = gemm_without_bias;
    const auto failures = failures_of(broken);
    ASSERT_EQ(failures.size(), std::size(kernels::all_weight_types)) << "the model has no biases";
    for (const self_check& c : failures) {
      EXPECT_THAT(c.claim, HasSubstr("products with "));
      EXPECT_THAT(c.problem, HasSubstr("a single row differs from the definition at row 0, output 0: expected "));
    }
  }
}

/// Doubles the scores where the keys are in more tiles than those of the prompt in order.
void attention_that_sees_pages(const kernels::attention_args& a) {
  kernels::attention_args other = a;
  if (a.tile_count > 5) other.scale *= 2;
  best().attention(other);
}

TEST(self_test, finds_attention_that_depends_on_where_keys_lie) {
  kernel_table broken = best();
  broken.attention = attention_that_sees_pages;
  const auto failures = failures_of(broken);
  ASSERT_FALSE(failures.empty());
  EXPECT_EQ(failures.front().claim, "attention over scattered pages with f32 keys and values");
  EXPECT_THAT(failures.front().problem, HasSubstr("logits differ at row "));
}

void add_one_step_too_much(float* x, float scale, const float* y, std::size_t n) {
  best().add_scaled(x, scale, y, n);
  x[0] = std::nextafter(x[0], INFINITY);
}

TEST(self_test, finds_bits_that_are_consistent_but_differ_from_the_reference) {
  kernel_table broken = best();
  broken.add_scaled = add_one_step_too_much;
  const auto failures = failures_of(broken);
  ASSERT_EQ(failures.size(), 5U);
  EXPECT_EQ(failures[1].claim,
            "a model as the " + std::string(best().name) + " target computes it with f16 keys and values");
}

TEST(self_test, says_when_the_model_cannot_be_loaded) {
  test::tiny_model model = test::make_tiny_model();
  model.tensors.pop_back();
  const kernel_table* tables[] = {&best()};
  const auto file = model.file();
  const auto found = self_test({.tables = tables, .reference = best(), .model = *file});
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().describe(), HasSubstr("ffn_down.weight' is missing"));
}

}  // namespace
}  // namespace redline::model
