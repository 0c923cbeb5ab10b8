#include "actors/serving/answer_factory.hpp"

#include <gtest/gtest.h>

#include "tests/support/tiny_model.hpp"

namespace redline::actors {
namespace {

/// The biases of an answer by a model that never says these tokens.
std::vector<std::pair<token, float>> biases_with(std::vector<std::int32_t> suppressed,
                                                 std::vector<std::pair<token, float>> asked) {
  test::tiny_model m = test::make_tiny_model();
  if (!suppressed.empty()) m.metadata["tokenizer.ggml.suppress_tokens"] = std::move(suppressed);
  const answer_factory factory({.tokenizer = *text::tokenizer::from_file(*m.file()), .context_max = 100});
  answer_terms terms;
  terms.tokens_max = 5;
  terms.sampling.logit_bias = std::move(asked);
  auto made = factory.make(terms, {1, 2, 3}, nullptr, std::nullopt, "prompt");
  EXPECT_TRUE(made);
  return made->spec().sampling.logit_bias;
}

TEST(answer_factory, keeps_tokens_that_answers_never_have_out_of_them) {
  EXPECT_TRUE(biases_with({}, {}).empty());
  const auto found = biases_with({40, 41}, {{40, 100.0F}});
  ASSERT_EQ(found.size(), 3U);
  float of_40 = 0;
  for (const auto& [t, bias] : found) of_40 += t == 40 ? bias : 0;
  EXPECT_LT(of_40, -1e20F) << "a request cannot ask for it";
}

}  // namespace
}  // namespace redline::actors
