#include "actors/http/gateway_probe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

namespace redline::actors {
namespace {

using ::testing::HasSubstr;

/// Name and kind of each family.
std::map<std::string, std::string> families(const std::string& text) {
  std::map<std::string, std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("# TYPE ")) continue;
    const auto end = line.find(' ', 7);
    found[line.substr(7, end - 7)] = line.substr(end + 1);
  }
  return found;
}

// Dashboards and alerts name these: a changed line breaks them.
TEST(gateway_probe, has_the_series_it_always_had_from_the_start) {
  gateway_probe probe;
  const std::string text = probe.text({});
  const std::map<std::string, std::string> expected = {
      {"redline_answers_running", "gauge"},
      {"redline_bridge_refused_total", "counter"},
      {"redline_cached_prompt_tokens_total", "counter"},
      {"redline_copied_forced_total", "counter"},
      {"redline_cost_model_error_ratio", "gauge"},
      {"redline_generation_tokens_total", "counter"},
      {"redline_kv_pages_held", "gauge"},
      {"redline_kv_pages_total", "gauge"},
      {"redline_live_bytes", "gauge"},
      {"redline_live_bytes_refused_total", "counter"},
      {"redline_live_calls_total", "counter"},
      {"redline_live_sessions", "gauge"},
      {"redline_live_sessions_opened_total", "counter"},
      {"redline_preempted_total", "counter"},
      {"redline_prompt_tokens_total", "counter"},
      {"redline_queried_prompt_tokens_total", "counter"},
      {"redline_ready", "gauge"},
      {"redline_refused_total", "counter"},
      {"redline_overflowed_total", "counter"},
      {"redline_request_seconds", "histogram"},
      {"redline_requests_running", "gauge"},
      {"redline_requests_total", "counter"},
      {"redline_requests_waiting", "gauge"},
      {"redline_rows_total", "counter"},
      {"redline_spec_accepted_total", "counter"},
      {"redline_spec_drafted_total", "counter"},
      {"redline_step_seconds_total", "counter"},
      {"redline_steps_total", "counter"},
      {"redline_streams_resumed_total", "counter"},
      {"redline_time_to_first_token_seconds", "histogram"},
      {"redline_undelivered_messages_total", "counter"},
  };
  EXPECT_EQ(families(text), expected);
  EXPECT_THAT(text, HasSubstr("redline_requests_total{reason=\"stop\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("redline_live_calls_total{verb=\"patch_file\"} 0\n"));
  for (const std::string source : {"lookup", "draft", "prediction", "program", "copy"}) {
    EXPECT_THAT(text, HasSubstr("redline_spec_drafted_total{source=\"" + source + "\"} 0\n"));
  }
}

TEST(gateway_probe, puts_times_into_cumulative_buckets) {
  gateway_probe probe;
  probe.first_text(microseconds{2'500});
  probe.first_text(microseconds{1'000'000'000});
  const std::string text = probe.text({});
  EXPECT_THAT(text, HasSubstr("redline_time_to_first_token_seconds_bucket{le=\"0.001\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("redline_time_to_first_token_seconds_bucket{le=\"0.0025\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("redline_time_to_first_token_seconds_bucket{le=\"600\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("redline_time_to_first_token_seconds_bucket{le=\"+Inf\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("redline_time_to_first_token_seconds_count 2\n"));
}

TEST(gateway_probe, repeats_what_the_scheduler_counted_and_never_goes_back) {
  gateway_probe probe;
  scheduler_report report{.pages_held = 3, .batches_total = 5};
  EXPECT_THAT(probe.text({.ready = true, .scheduler = &report}), HasSubstr("redline_steps_total 5\n"));
  report.batches_total = 2;  // the scheduler was restarted
  const std::string text = probe.text({.ready = true, .scheduler = &report});
  EXPECT_THAT(text, HasSubstr("redline_steps_total 5\n"));
  EXPECT_THAT(text, HasSubstr("redline_kv_pages_held 3\n"));
  EXPECT_THAT(probe.text({.undelivered = {.mailbox_full = 2}}),
              HasSubstr("redline_undelivered_messages_total{reason=\"mailbox_full\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("redline_ready 1\n"));
}

}  // namespace
}  // namespace redline::actors
