// Compares the demonstration models with an independent implementation: bench/demo_models/vectors.json.

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/property_tree/json_parser.hpp>
#include <cmath>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/kv/page_pool.hpp"
#include "runtime/model/transformer.hpp"
#include "tests/support/rounds.hpp"
#include "tests/support/test_data.hpp"

namespace redline::model {
namespace {

using boost::property_tree::ptree;

struct vector_case {
  std::string name;
  std::vector<token> prompt;
  std::vector<token> continuation;
  bool stopped = false;
  struct top {
    token id;
    float logit;
    float logprob;
  };
  std::vector<top> top5;
  double min_gap = 0;
};

std::vector<token> tokens_of(const ptree& list) {
  std::vector<token> tokens;
  for (const auto& [key, item] : list) tokens.push_back(item.get_value<token>());
  return tokens;
}

std::vector<vector_case> read_cases(const std::string& model) {
  std::istringstream text(test::read_file(test::source_path("bench/demo_models/vectors.json")));
  ptree root;
  read_json(text, root);
  std::vector<vector_case> cases;
  for (const auto& [key, item] : root.get_child("cases")) {
    const ptree& answer = item.get_child(model);
    vector_case c;
    c.name = item.get<std::string>("name");
    c.prompt = tokens_of(item.get_child("ids"));
    c.continuation = tokens_of(answer.get_child("continuation"));
    c.stopped = answer.get<bool>("stopped");
    c.min_gap = answer.get<double>("min_gap");
    for (const auto& [top_key, entry] : answer.get_child("top5")) {
      auto field = entry.begin();
      const auto id = (field++)->second.get_value<token>();
      const auto logit = (field++)->second.get_value<float>();
      c.top5.push_back({id, logit, field->second.get_value<float>()});
    }
    cases.push_back(std::move(c));
  }
  return cases;
}

token best_of(std::span<const float> row) {
  return static_cast<token>(std::max_element(row.begin(), row.end()) - row.begin());
}

/// A test with one model on the best target of this machine.
class demo_model : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ASSERT_NE(kernels::process_table().table, nullptr) << kernels::process_table().problem;
    auto file = gguf::gguf_file::open(test::source_path("bench/demo_models/demo-" + GetParam() + ".gguf"));
    ASSERT_TRUE(file) << file.error().describe();
    file_ = *file;
    use(kv_type::f32);
    cases_ = read_cases(GetParam());
    ASSERT_EQ(cases_.size(), 20U);
    cases_.resize(test::rounds(20, 3));
  }

  /// Loads the weights for the kernel table that serves models with this cache.
  void use(kv_type type) {
    table_ = &kernels::table_for_cache(*kernels::process_table().table, type);
    auto loaded = load_weights(*file_, *table_, team_);
    ASSERT_TRUE(loaded) << loaded.error().describe();
    weights_ = *loaded;
  }

  std::unique_ptr<transformer> make(kv_type type) {
    use(type);
    auto t = transformer::create(weights_, *table_, team_, {.pages_count = 64, .kv = type, .rows_max = 2048});
    EXPECT_TRUE(t);
    return std::move(*t);
  }

  /// The logits of prompt and continuation in one run, from the last prompt position on.
  std::vector<float> teacher_forced(transformer& t, const vector_case& c) {
    std::vector<token> all = c.prompt;
    all.insert(all.end(), c.continuation.begin(), c.continuation.end());
    kv::page_pool pool(64);
    kv::page_table pages;
    EXPECT_TRUE(pages.append(pool, static_cast<std::uint32_t>(all.size())));
    const run r{all, 0, pages.pieces(), static_cast<std::uint32_t>(c.prompt.size() - 1)};
    const auto logits = t.forward({&r, 1});
    return {logits.begin(), logits.end()};
  }

  /// The number of positions where the argmax is not the expected next token.
  int count_misses(std::span<const float> logits, const vector_case& c) {
    const std::size_t vocabulary = shape_of(*weights_).vocabulary;
    int misses = 0;
    for (std::size_t i = 0; i < c.continuation.size(); ++i) {
      misses += best_of(logits.subspan(i * vocabulary, vocabulary)) == c.continuation[i] ? 0 : 1;
    }
    if (c.stopped) {
      const token end = best_of(logits.subspan(c.continuation.size() * vocabulary, vocabulary));
      misses += end == 4092 || end == 4090 ? 0 : 1;
    }
    return misses;
  }

  kernels::worker_team team_{2};
  std::shared_ptr<const gguf::gguf_file> file_;
  const kernels::kernel_table* table_ = nullptr;
  std::shared_ptr<const weights> weights_;
  std::vector<vector_case> cases_;
};

TEST_P(demo_model, greedy_tokens_equal_the_reference_with_an_f32_cache) {
  auto t = make(kv_type::f32);
  for (const vector_case& c : cases_) {
    EXPECT_EQ(count_misses(teacher_forced(*t, c), c), 0) << c.name << ", smallest gap " << c.min_gap;
  }
}

TEST_P(demo_model, top_logits_equal_the_reference_within_rounding) {
  auto t = make(kv_type::f32);
  for (const vector_case& c : cases_) {
    const std::vector<float> logits = teacher_forced(*t, c);
    const std::span<const float> first(logits.data(), shape_of(*weights_).vocabulary);
    double total = 0;
    for (const float x : first) total += std::exp(static_cast<double>(x) - first[best_of(first)]);
    const double log_total = std::log(total) + first[best_of(first)];
    for (const auto& top : c.top5) {
      EXPECT_NEAR(first[top.id], top.logit, 2e-3) << c.name << ", token " << top.id;
      EXPECT_NEAR(first[top.id] - log_total, top.logprob, 1e-3) << c.name << ", token " << top.id;
    }
  }
}

TEST_P(demo_model, greedy_tokens_survive_a_narrower_cache_where_the_gap_is_wide) {
  for (const kv_type type : {kv_type::f16, kv_type::bf16}) {
    auto t = make(type);
    // Keys or products in bf16 change logits by a tenth or more.
    const double needed = type == kv_type::bf16 ? 1.0 : table_->product_error > 0 ? 0.25 : 0.05;
    int checked = 0;
    for (const vector_case& c : cases_) {
      if (c.min_gap < needed) continue;
      ++checked;
      EXPECT_EQ(count_misses(teacher_forced(*t, c), c), 0) << c.name << ", smallest gap " << c.min_gap;
    }
    EXPECT_GT(checked, 0);
  }
}

TEST_P(demo_model, step_by_step_decoding_gives_the_reference_and_the_bits_of_one_long_run) {
  auto t = make(kv_type::f32);
  const std::size_t vocabulary = shape_of(*weights_).vocabulary;
  int decoded = 0;
  for (const vector_case& c : cases_) {
    if (c.continuation.size() > 60) continue;
    const std::vector<float> whole = teacher_forced(*t, c);
    kv::page_pool pool(64);
    kv::page_table pages;
    ASSERT_TRUE(pages.append(pool, static_cast<std::uint32_t>(c.prompt.size())));
    run r{c.prompt, 0, pages.pieces(), static_cast<std::uint32_t>(c.prompt.size() - 1)};
    for (std::size_t i = 0; i < c.continuation.size(); ++i) {
      const auto logits = t->forward({&r, 1});
      ASSERT_EQ(best_of(logits), c.continuation[i]) << c.name << ", token " << i;
      ASSERT_TRUE(std::equal(logits.begin(), logits.end(), whole.begin() + static_cast<std::ptrdiff_t>(i * vocabulary)))
          << c.name << ", token " << i;
      ASSERT_TRUE(pages.append(pool, 1));
      r = {{&c.continuation[i], 1}, static_cast<position>(c.prompt.size() + i), pages.pieces(), 0};
    }
    if (++decoded == 3) break;
  }
  EXPECT_EQ(decoded, 3);
}

INSTANTIATE_TEST_SUITE_P(both, demo_model, ::testing::Values("target", "draft"),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace redline::model
