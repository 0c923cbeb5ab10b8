#include "actors/http/metrics/gateway_probe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "runtime/base/version.hpp"

namespace redline::actors {
namespace {

using ::testing::HasSubstr;

/// The name and kind of each family.
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

// Dashboards and alerts use these names, so changing a line breaks them.
TEST(gateway_probe, has_the_series_it_always_had_from_the_start) {
  gateway_probe probe;
  const std::string text = probe.text({});
  const std::map<std::string, std::string> expected = {
      {"redline_answers_running", "gauge"},
      {"redline_model_name_conflicts", "gauge"},
      {"redline_bridge_refused_total", "counter"},
      {"redline_cached_prompt_tokens_total", "counter"},
      {"redline_copied_forced_total", "counter"},
      {"redline_batch_fill", "gauge"},
      {"redline_cost_model_error_ratio", "gauge"},
      {"redline_experts_touched_total", "counter"},
      {"redline_generation_tokens_total", "counter"},
      {"process_cpu_seconds_total", "counter"},
      {"process_max_fds", "gauge"},
      {"process_open_fds", "gauge"},
      {"process_resident_memory_bytes", "gauge"},
      {"process_start_time_seconds", "gauge"},
      {"process_virtual_memory_bytes", "gauge"},
      {"redline_build_info", "gauge"},
      {"redline_inter_token_seconds", "histogram"},
      {"redline_pass_waits_total", "counter"},
      {"redline_pass_wait_seconds_total", "counter"},
      {"redline_pass_waits_missed_total", "counter"},
      {"redline_kv_pages", "gauge"},
      {"redline_kv_pages_held", "gauge"},
      {"redline_kv_usage_ratio", "gauge"},
      {"redline_states", "gauge"},
      {"redline_states_held", "gauge"},
      {"redline_state_copies", "gauge"},
      {"redline_state_copies_max", "gauge"},
      {"redline_mtp_seconds_total", "counter"},
      {"redline_queue_refusals_total", "counter"},
      {"redline_queue_seconds", "histogram"},
      {"redline_request_generation_tokens", "histogram"},
      {"redline_request_prompt_tokens", "histogram"},
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
      {"redline_request_bytes", "gauge"},
      {"redline_request_bytes_refused_total", "counter"},
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
      {"redline_trace_spans_total", "counter"},
      {"redline_undelivered_messages_total", "counter"},
  };
  EXPECT_EQ(families(text), expected);
  EXPECT_THAT(text, HasSubstr("redline_requests_total{reason=\"stop\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("redline_live_calls_total{verb=\"patch_file\"} 0\n"));
  for (const std::string source : {"lookup", "draft", "prediction", "program", "copy"}) {
    EXPECT_THAT(text, HasSubstr("redline_spec_drafted_total{source=\"" + source + "\"} 0\n"));
  }
}

TEST(gateway_probe, has_a_series_for_each_route_and_refusal_before_it_happens) {
  gateway_probe probe;
  probe.add_route("/models");
  EXPECT_THAT(probe.text({}), HasSubstr("redline_http_responses_total{path=\"/models\",status=\"5xx\"} 0\n"));
  EXPECT_THAT(probe.text({}), HasSubstr("redline_refused_total{code=\"queue_full\",status=\"429\"} 0\n"));
  probe.answered("/models", 204);
  probe.answered("/not/a/route", 200);
  probe.answered("/models", 0);
  transport::refusal_counts front{};
  front[0] = 2;  // the count of malformed requests
  const std::string text = probe.text({.refused_by_front = front});
  EXPECT_THAT(text, HasSubstr("redline_http_responses_total{path=\"/models\",status=\"2xx\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("redline_refused_total{code=\"\",status=\"400\"} 2\n"));
  EXPECT_EQ(probe.text({.refused_by_front = front}).find("redline_refused_total{code=\"\",status=\"400\"} 4\n"),
            std::string::npos)
      << "counted once";
}

TEST(gateway_probe, says_what_its_process_uses) {
  gateway_probe probe;
  const std::string text = probe.text({});
  const auto value = [&](const std::string& name) {
    const auto at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1.0 : std::stod(text.substr(at + name.size() + 2));
  };
  EXPECT_GT(value("process_resident_memory_bytes"), 1e6);
  EXPECT_GE(value("process_virtual_memory_bytes"), value("process_resident_memory_bytes"));
  EXPECT_GT(value("process_start_time_seconds"), 1.6e9);
  EXPECT_GT(value("process_open_fds"), 2);
  EXPECT_GE(value("process_max_fds"), value("process_open_fds"));
  EXPECT_GE(value("process_cpu_seconds_total"), 0);
  EXPECT_THAT(text,
              HasSubstr("redline_build_info{build=\"" + build_version() + "\",version=\"" + version() + "\"} 1\n"));
}

// Checks what promtool checks, for machines without it.
TEST(gateway_probe, names_its_series_as_prometheus_asks_for) {
  gateway_probe probe;
  probe.add_route("/models");
  std::istringstream lines(probe.text({}));
  std::map<std::string, std::string> kinds;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("# TYPE ")) continue;
    const auto end = line.find(' ', 7);
    const auto name = line.substr(7, end - 7);
    const auto kind = line.substr(end + 1);
    EXPECT_EQ(name.ends_with("_total"), kind == "counter") << line;
    EXPECT_TRUE(kinds.emplace(name, kind).second) << line;
  }
  EXPECT_GT(kinds.size(), 30U);
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
  scheduler_report report{.pages_held = 3,
                          .batches_total = 5,
                          .experts_total = 70,
                          .batch_fill = 0.75,
                          .waits_total = 8,
                          .waited_us_total = 2'500'000,
                          .waits_missed_total = 3,
                          .states_count = 6,
                          .states_held = 2,
                          .state_copies_max = 32,
                          .state_copies = 5,
                          .mtp_us_total = 1'500'000};
  EXPECT_THAT(probe.text({.ready = true, .scheduler = &report}), HasSubstr("redline_steps_total 5\n"));
  EXPECT_THAT(probe.text({.ready = true, .scheduler = &report}), HasSubstr("redline_experts_touched_total 70\n"));
  EXPECT_THAT(probe.text({.ready = true, .scheduler = &report}),
              AllOf(HasSubstr("redline_batch_fill 0.75\n"), HasSubstr("redline_pass_waits_total 8\n"),
                    HasSubstr("redline_pass_wait_seconds_total 2.5\n"),
                    HasSubstr("redline_pass_waits_missed_total 3\n"), HasSubstr("redline_states 6\n"),
                    HasSubstr("redline_states_held 2\n"), HasSubstr("redline_state_copies_max 32\n"),
                    HasSubstr("redline_state_copies 5\n"), HasSubstr("redline_mtp_seconds_total 1.5\n")));
  report.batches_total = 2;  // the scheduler restarted
  const std::string text = probe.text({.ready = true, .scheduler = &report});
  EXPECT_THAT(text, HasSubstr("redline_steps_total 5\n"));
  EXPECT_THAT(text, HasSubstr("redline_kv_pages_held 3\n"));
  EXPECT_THAT(probe.text({.undelivered = {.mailbox_full = 2}}),
              HasSubstr("redline_undelivered_messages_total{reason=\"mailbox_full\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("redline_ready 1\n"));
}

}  // namespace
}  // namespace redline::actors
