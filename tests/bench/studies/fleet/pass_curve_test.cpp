#include "bench/studies/fleet/pass_curve.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/test_data.hpp"

namespace redline::studies {
namespace {

using ::testing::HasSubstr;

TEST(pass_curve, what_a_server_keeps_and_what_bench_forward_writes_say_the_same) {
  const auto kept = parse_pass_curve(
      R"({"key": "a machine", "passes": [{"rows": 4, "logits": 4, "context": 10, "us": 1500}]})", "a.json");
  const auto written = parse_pass_curve(
      R"({"model": "a machine", "logits": "all", "cells": [{"rows": 4, "context": 10, "ms": 1.5}]})", "b.json");
  ASSERT_TRUE(kept) << kept.error().describe();
  ASSERT_TRUE(written) << written.error().describe();
  EXPECT_EQ(kept->name, "a machine");
  EXPECT_EQ(written->name, "a machine");
  for (const auto& curve : {*kept, *written}) {
    ASSERT_EQ(curve.samples.size(), 1U);
    EXPECT_EQ(curve.samples[0].size.rows, 4U);
    EXPECT_EQ(curve.samples[0].size.context, 14U);
    EXPECT_EQ(curve.samples[0].size.logits, 4U);
    EXPECT_EQ(curve.samples[0].took, microseconds{1500});
  }
}

TEST(pass_curve, logits_of_the_last_row_are_one_row) {
  const auto curve = parse_pass_curve(R"({"logits": "last", "cells": [{"rows": 4, "context": 0, "ms": 1}]})", "c.json");
  ASSERT_TRUE(curve) << curve.error().describe();
  EXPECT_EQ(curve->name, "c.json");
  EXPECT_EQ(curve->samples[0].size.logits, 1U);
}

TEST(pass_curve, of_a_mixture_has_the_experts_that_passes_touched) {
  const std::string mixture = R"("mixture": {"layers": 2, "experts": 128, "used": 8}, )";
  for (const std::string& text :
       {"{" + mixture + R"("passes": [{"rows": 4, "logits": 4, "context": 0, "us": 9, "experts": 55}]})",
        "{" + mixture + R"("cells": [{"rows": 4, "context": 0, "ms": 0.009, "experts": 55.25}]})"}) {
    const auto curve = parse_pass_curve(text, "m.json");
    ASSERT_TRUE(curve) << curve.error().describe();
    EXPECT_EQ(curve->mixture, (cost::mixture_shape{.layers = 2, .experts = 128, .used = 8}));
    EXPECT_EQ(curve->samples.at(0).experts, 55U);
    EXPECT_GT(fit_pass_curve(*curve).predict_experts(curve->samples[0].size), 50);
  }
}

TEST(pass_curve, files_that_are_none_are_refused_with_the_place) {
  for (const auto& [text, word] : std::vector<std::pair<std::string, std::string>>{
           {"nonsense", "c.json"},
           {"[]", "expected 'passes'"},
           {"{}", "expected 'passes'"},
           {R"({"passes": []})", "expected 'passes'"},
           {R"({"passes": [1]})", "passes[0]"},
           {R"({"passes": [{"rows": 0, "logits": 0, "context": 0, "us": 1}]})", "passes[0]"},
           {R"({"passes": [{"rows": 1, "logits": 2, "context": 0, "us": 1}]})", "passes[0]"},
           {R"({"passes": [{"rows": 1, "logits": 1, "context": -1, "us": 1}]})", "passes[0]"},
           {R"({"passes": [{"rows": 1, "logits": 1, "context": 0, "us": 1e300}]})", "passes[0]"},
           {R"({"passes": [{"rows": "1", "logits": 1, "context": 0, "us": 1}]})", "passes[0]"},
           {R"({"passes": [{"rows": 1, "logits": 1, "context": 0, "us": 1, "experts": 8}]})", "'mixture'"},
           {R"({"mixture": {"layers": 2, "experts": 4, "used": 5}, "passes": [{}]})", "mixture:"},
           {R"({"mixture": 7, "passes": [{}]})", "mixture:"},
           {R"({"cells": [{"rows": 1, "context": 0}]})", "cells[0]"}}) {
    const auto curve = parse_pass_curve(text, "c.json");
    ASSERT_FALSE(curve) << text;
    EXPECT_THAT(curve.error().context, HasSubstr("c.json")) << text;
    EXPECT_THAT(curve.error().context, HasSubstr(word)) << text;
  }
  EXPECT_FALSE(read_pass_curve("/nowhere.json"));
}

TEST(pass_curve, recorded_curves_are_fitted_to_a_third_of_each_pass) {
  for (const char* file : {"curve-demo-1-thread.json", "curve-qwen2-0.5b-2-threads.json"}) {
    const auto curve = read_pass_curve(test::source_path(std::string("bench/results/data/") + file));
    ASSERT_TRUE(curve) << curve.error().describe();
    const auto fitted = fit_pass_curve(*curve);
    for (const auto& s : curve->samples) {
      const auto took = static_cast<double>(s.took.count());
      EXPECT_NEAR(static_cast<double>(fitted.predict(s.size).count()), took, took / 3)
          << file << ", " << s.size.rows << " rows, " << s.size.context << " tokens";
    }
  }
}

}  // namespace
}  // namespace redline::studies
