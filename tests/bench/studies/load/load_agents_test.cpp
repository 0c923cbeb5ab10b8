#include "bench/studies/load/load_agents.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include "bench/studies/common/edit_corpus.hpp"
#include "runtime/base/log.hpp"

namespace redline::studies {
namespace {

TEST(load_agents, share_a_job_without_losing_or_doubling_any_of_it) {
  for (const std::size_t agents : {1U, 3U, 7U}) {
    load_job closed{.level = {false, 16}, .count = 100, .seed = 5};
    load_job open{.level = {true, 10}, .count = 101, .seed = 5};
    std::uint64_t clients = 0, requests = 0, arrivals = 0;
    double rate = 0;
    std::set<std::uint64_t> seeds;
    for (std::size_t i = 0; i < agents; ++i) {
      const auto a = share_of(closed, i, agents), b = share_of(open, i, agents);
      clients += static_cast<std::uint64_t>(a.level.amount);
      requests += a.count;
      arrivals += b.count;
      rate += b.level.amount;
      seeds.insert(a.seed);
    }
    EXPECT_EQ(clients, 16U);
    EXPECT_EQ(requests, 100U);
    EXPECT_EQ(arrivals, 101U);
    EXPECT_NEAR(rate, 10, 1e-9);
    EXPECT_EQ(seeds.size(), agents);
  }
  EXPECT_EQ(share_of({.level = {false, 2}, .count = 10}, 2, 3).count, 0U) << "no client, no requests";
}

struct two_agents : testing::Test {
  void SetUp() override {
    configure_log(log_level::off, log_format::text);
    std::string name = (std::filesystem::temp_directory_path() / "redline-agents-XXXXXX").string();
    folder = ::mkdtemp(name.data());
    endpoint = "ipc://" + folder + "/load";
  }
  void start_agents(int count) {
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([this] { EXPECT_EQ(run_load_agent({.joins = {endpoint}}), 0); });
    }
  }
  void TearDown() override {
    for (auto& t : threads) t.join();
    std::filesystem::remove_all(folder);
    configure_log(log_level::info, log_format::text);
  }
  std::string folder, endpoint;
  std::vector<std::thread> threads;
};

constexpr const char* edits = R"({"id":"a","instruction":"x","before":"one\n","after":"two\n"})";

TEST_F(two_agents, record_one_level_together) {
  start_agents(2);
  const auto agents = load_agents::gather({.listen = {.listens = {endpoint}}, .count = 2});
  ASSERT_TRUE(agents) << agents.error().describe();
  // No server listens there; only the origin of the rows matters here.
  const auto record = (*agents)->run(
      {.server = "http://127.0.0.1:1", .edits = edits, .level = {false, 4}, .method = "auto", .count = 12});
  ASSERT_TRUE(record) << record.error().describe();
  EXPECT_EQ(record->windows.size(), 2U);
  ASSERT_EQ(record->rows.size(), 12U);
  for (const auto& row : record->rows) {
    EXPECT_EQ(row.level, "4 clients");
    EXPECT_FALSE(row.error.empty());
    EXPECT_GT(row.sent, 1.7e9) << "by this machine's clock";
  }
}

TEST_F(two_agents, send_a_trace_by_whole_sessions) {
  start_agents(2);
  const auto agents = load_agents::gather({.listen = {.listens = {endpoint}}, .count = 2});
  ASSERT_TRUE(agents) << agents.error().describe();
  std::string trace;
  for (int i = 0; i < 12; ++i) {
    trace += R"({"at": 0, "prompt": "x)" + std::to_string(i) + R"(", "max_tokens": 1, "tenant": "t", "session": ")" +
             std::to_string(i % 6) + "\"}\n";
  }
  const auto record = (*agents)->run(
      {.server = "http://127.0.0.1:1", .edits = edits, .trace = trace, .level = {true, 1, true}, .method = "auto"});
  ASSERT_TRUE(record) << record.error().describe();
  ASSERT_EQ(record->rows.size(), 12U);
  std::map<std::string, int> kinds;
  for (const auto& row : record->rows) {
    EXPECT_EQ(row.level, "trace");
    EXPECT_EQ(row.tenant, "t");
    ++kinds[row.error_kind];
  }
  EXPECT_EQ(kinds["no connection"], 6) << "the first of each session";
  EXPECT_EQ(kinds["not sent"], 6);
}

TEST_F(two_agents, say_what_is_wrong_with_a_job) {
  start_agents(2);
  const auto agents = load_agents::gather({.listen = {.listens = {endpoint}}, .count = 2});
  ASSERT_TRUE(agents);
  const auto record = (*agents)->run(
      {.server = "http://127.0.0.1:1", .edits = "{", .level = {false, 4}, .method = "auto", .count = 12});
  ASSERT_FALSE(record);
  EXPECT_NE(record.error().context.find("the coordinator's edits"), std::string::npos) << record.error().context;
}

TEST_F(two_agents, are_missed) {
  start_agents(1);
  const auto agents = load_agents::gather({.listen = {.listens = {endpoint}}, .count = 2, .patience_seconds = 0.5});
  ASSERT_FALSE(agents);
  EXPECT_NE(agents.error().context.find("expected 2 load agents, found 1"), std::string::npos);
}

TEST(load_report, cuts_what_was_sent_while_warming_up) {
  load_record record;
  record.windows = {{"4 clients", "auto", 100, 110}, {"4 clients", "regular", 200, 210}};
  for (const double sent : {100.0, 101.9, 102.0, 109.0})
    record.rows.push_back({.level = "4 clients", .method = "auto", .sent = sent});
  record.rows.push_back({.level = "4 clients", .method = "regular", .sent = 203});
  cut_warm_up(record, 2);
  EXPECT_EQ(record.rows.size(), 3U);
  EXPECT_EQ(record.windows[0].began, 102);
  EXPECT_EQ(record.windows[1].began, 202);
}

}  // namespace
}  // namespace redline::studies
