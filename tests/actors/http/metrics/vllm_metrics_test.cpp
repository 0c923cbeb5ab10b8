#include "actors/http/metrics/vllm_metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "actors/http/metrics/gateway_probe.hpp"
#include "tests/support/test_data.hpp"

namespace redline::actors {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using json = nlohmann::json;

struct family {
  std::string kind;
  std::set<std::string> labels;  // the labels of all its series except a histogram's bounds
};

std::map<std::string, family> read_families(const std::string& text) {
  std::map<std::string, family> found;
  std::istringstream lines(text);
  std::string name;
  const std::regex label(R"RX((\w+)=")RX");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) {
      name = line.substr(7, line.find(' ', 7) - 7);
      found[name].kind = line.substr(line.rfind(' ') + 1);
    } else if (!line.starts_with("#")) {
      for (auto at = std::sregex_iterator(line.begin(), line.end(), label); at != std::sregex_iterator(); ++at) {
        if ((*at)[1] != "le") found[name].labels.insert((*at)[1]);
      }
    }
  }
  return found;
}

/// Returns the value of a series.
std::string value(const std::string& text, const std::string& series) {
  const auto at = text.find("\n" + series + " ");
  if (at == std::string::npos) return "absent";
  const auto begin = at + series.size() + 2;
  return text.substr(begin, text.find('\n', begin) - begin);
}

scheduler_report some_report() {
  return {.ready = true,
          .running_count = 3,
          .waiting_count = 2,
          .pages_count = 400,
          .pages_held = 100,
          .preempted_total = 4,
          .cached_total = 50,
          .queried_total = 80};
}

TEST(vllm_metrics, are_those_that_routers_read) {
  gateway_probe probe;
  const auto report = some_report();
  const auto found = read_families(probe.text({.scheduler = &report, .as_vllm = vllm_facts{"m", 1700000000}}));
  std::set<std::string> names, wanted;
  for (const auto& [name, one] : found) {
    if (name.starts_with("vllm:")) names.insert(name);
  }
  const auto golden = json::parse(test::read_file(test::source_path("tests/golden/vllm.json")));
  for (const auto& [name, kind_and_labels] : golden["metrics"].items()) {
    wanted.insert(name);
    ASSERT_TRUE(found.contains(name)) << name;
    EXPECT_EQ(found.at(name).kind, kind_and_labels[0]) << name;
    EXPECT_EQ(found.at(name).labels, kind_and_labels[1].get<std::set<std::string>>()) << name;
  }
  EXPECT_EQ(names, wanted);
}

TEST(vllm_metrics, have_the_numbers_of_ours) {
  gateway_probe probe;
  probe.first_text(microseconds{2'000});
  probe.request_finished(request_end::stop, microseconds{3'000});
  probe.request_finished(request_end::error, microseconds{3'000});
  session_stats stats;
  stats.sources[0] = {.drafted = 5, .accepted = 4};
  stats.sources[1] = {.drafted = 2, .accepted = 1};
  probe.answer_finished(stats);
  const auto report = some_report();
  const auto text = probe.text({.scheduler = &report, .as_vllm = vllm_facts{"m", 1700000000}});
  const std::string of = R"({engine="0",model_name="m"})";
  EXPECT_EQ(value(text, "vllm:num_requests_running" + of), "3");
  EXPECT_EQ(value(text, "vllm:num_requests_waiting" + of), "2");
  EXPECT_EQ(value(text, "vllm:kv_cache_usage_perc" + of), "0.25");
  EXPECT_EQ(value(text, "vllm:gpu_cache_usage_perc" + of), "0.25");
  EXPECT_EQ(value(text, "vllm:prefix_cache_queries_total" + of), "80");
  EXPECT_EQ(value(text, "vllm:gpu_prefix_cache_hits_total" + of), "50");
  EXPECT_EQ(value(text, "vllm:num_preemptions_total" + of), "4");
  EXPECT_EQ(value(text, "vllm:spec_decode_num_draft_tokens_total" + of), "7") << "from all sources";
  EXPECT_EQ(value(text, "vllm:spec_decode_num_accepted_tokens_total" + of), "5");
  EXPECT_EQ(value(text, "vllm:time_to_first_token_seconds_count" + of), "1");
  EXPECT_EQ(value(text, "vllm:e2e_request_latency_seconds_count" + of), "2");
  EXPECT_EQ(value(text, R"(vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"})"), "1");
  EXPECT_THAT(text, Not(HasSubstr(R"(finished_reason="error")")));
  EXPECT_THAT(text, HasSubstr(R"(block_size="32",enable_prefix_caching="True",num_gpu_blocks="400"} 1)"));
  EXPECT_EQ(value(text, "redline_requests_running"), "3") << "Redline's own are there as well";
}

TEST(vllm_metrics, are_absent_unless_they_are_asked_for) {
  gateway_probe probe;
  EXPECT_THAT(probe.text({}), Not(HasSubstr("vllm:")));
}

TEST(vllm_metrics, are_there_before_the_model_is) {
  gateway_probe probe;
  const auto text = probe.text({.as_vllm = vllm_facts{}});
  EXPECT_EQ(value(text, R"(vllm:kv_cache_usage_perc{engine="0",model_name=""})"), "0");
}

}  // namespace
}  // namespace redline::actors
