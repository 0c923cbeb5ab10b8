#include "actors/http/metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

namespace redline::actors {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(metrics_registry, writes_counters_and_gauges) {
  metrics_registry registry;
  registry.counter_of("requests_total", "Requests.", {{"code", "200"}}).add(3);
  registry.counter_of("requests_total", "Requests.", {{"code", "400"}}).add();
  registry.gauge_of("queue_depth", "Waiting requests.").set(-1.5);
  EXPECT_EQ(registry.text(),
            "# HELP redline_requests_total Requests.\n"
            "# TYPE redline_requests_total counter\n"
            "redline_requests_total{code=\"200\"} 3\n"
            "redline_requests_total{code=\"400\"} 1\n"
            "# HELP redline_queue_depth Waiting requests.\n"
            "# TYPE redline_queue_depth gauge\n"
            "redline_queue_depth -1.5\n");
}

TEST(metrics_registry, writes_histograms_with_cumulative_buckets) {
  metrics_registry registry;
  const double bounds[] = {0.1, 1, 10};
  auto& latency = registry.histogram_of("latency_seconds", "Time.", bounds, {{"model_name", "m"}});
  for (const double value : {0.1, 0.5, 0.5, 100.0}) latency.observe(value);
  EXPECT_EQ(registry.text(),
            "# HELP redline_latency_seconds Time.\n"
            "# TYPE redline_latency_seconds histogram\n"
            "redline_latency_seconds_bucket{model_name=\"m\",le=\"0.1\"} 1\n"
            "redline_latency_seconds_bucket{model_name=\"m\",le=\"1\"} 3\n"
            "redline_latency_seconds_bucket{model_name=\"m\",le=\"10\"} 3\n"
            "redline_latency_seconds_bucket{model_name=\"m\",le=\"+Inf\"} 4\n"
            "redline_latency_seconds_sum{model_name=\"m\"} 101.1\n"
            "redline_latency_seconds_count{model_name=\"m\"} 4\n");
}

TEST(metrics_registry, gives_the_same_metric_for_the_same_name_and_labels) {
  metrics_registry registry;
  auto& a = registry.gauge_of("depth", "h", {{"actor", "a"}});
  EXPECT_EQ(&a, &registry.gauge_of("depth", "h", {{"actor", "a"}}));
  EXPECT_NE(&a, &registry.gauge_of("depth", "h", {{"actor", "b"}}));
}

TEST(metrics_registry, escapes_what_would_break_a_line) {
  metrics_registry registry;
  registry.gauge_of("g", "back\\slash\nline \"quote\"", {{"l", "a\\b\"c\nd"}}).set(1);
  EXPECT_EQ(registry.text(),
            "# HELP redline_g back\\\\slash\\nline \"quote\"\n"
            "# TYPE redline_g gauge\n"
            "redline_g{l=\"a\\\\b\\\"c\\nd\"} 1\n");
}

TEST(metrics_registry, writes_values_that_are_no_finite_number) {
  metrics_registry registry;
  auto& g = registry.gauge_of("g", "h");
  g.set(std::numeric_limits<double>::infinity());
  EXPECT_THAT(registry.text(), HasSubstr("redline_g +Inf\n"));
  g.set(-std::numeric_limits<double>::infinity());
  EXPECT_THAT(registry.text(), HasSubstr("redline_g -Inf\n"));
  g.set(std::nan(""));
  EXPECT_THAT(registry.text(), HasSubstr("redline_g NaN\n"));
}

TEST(metrics_registry, lets_label_values_past_the_limit_share_one_series) {
  metrics_registry registry(3);
  registry.counter_of("c_total", "h", {{"m", "a"}}).add();
  registry.counter_of("c_total", "h", {{"m", "b"}}).add();
  registry.counter_of("c_total", "h", {{"m", "c"}}).add();
  registry.counter_of("c_total", "h", {{"m", "d"}}).add();
  registry.counter_of("c_total", "h", {{"m", "a"}}).add();
  const std::string text = registry.text();
  EXPECT_THAT(text, HasSubstr("{m=\"a\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("{m=\"b\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("{m=\"other\"} 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("{m=\"c\"}")));
}

TEST(counter, only_grows) {
  counter c;
  c.add(2);
  c.add(-5);
  c.add(std::nan(""));
  EXPECT_EQ(c.value(), 2);
}

TEST(histogram, puts_a_bound_into_its_own_bucket) {
  const double bounds[] = {1, 2};
  histogram h(bounds);
  for (const double value : {-1.0, 1.0, 1.5, 2.0, 2.5}) h.observe(value);
  h.observe(std::nan(""));
  EXPECT_THAT(h.counts(), ElementsAre(2, 2, 1));
  EXPECT_EQ(h.sum(), 6);
}

TEST(histogram, has_usable_default_buckets) {
  for (const auto* bounds : {&latency_buckets_seconds, &step_buckets_seconds, &count_buckets}) {
    histogram h(*bounds);  // ends the process unless they ascend
    h.observe(1e9);
    EXPECT_EQ(h.counts().back(), 1u);
  }
}

TEST(metrics_registry, loses_nothing_under_many_threads) {
  metrics_registry registry;
  const double bounds[] = {0.5};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      auto& c = registry.counter_of("c_total", "h");
      auto& g = registry.gauge_of("g", "h");
      auto& h = registry.histogram_of("h", "h", bounds);
      for (int n = 0; n < 5000; ++n) {
        c.add();
        g.add(2);
        g.subtract();
        h.observe(n % 2);
        if (n % 1000 == 0) {
          EXPECT_FALSE(registry.text().empty());
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(registry.counter_of("c_total", "h").value(), 20000);
  EXPECT_EQ(registry.gauge_of("g", "h").value(), 20000);
  EXPECT_THAT(registry.histogram_of("h", "h", bounds).counts(), ElementsAre(10000, 10000));
}

TEST(metrics_registry_death, stops_at_names_that_are_our_own_mistake) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  metrics_registry registry;
  registry.gauge_of("g", "h", {{"a", "x"}});
  EXPECT_DEATH(registry.counter_of("requests", "h"), "_total");
  EXPECT_DEATH(registry.gauge_of("bad-name", "h"), "metric name");
  EXPECT_DEATH(registry.gauge_of("g2", "h", {{"le", "x"}}), "label name");
  EXPECT_DEATH(registry.gauge_of("g", "h", {{"b", "x"}}), "two sets");
  EXPECT_DEATH(registry.histogram_of("g", "h", {}, {{"a", "x"}}), "two kinds");
}

}  // namespace
}  // namespace redline::actors
