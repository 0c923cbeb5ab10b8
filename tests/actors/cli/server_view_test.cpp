#include "actors/cli/server_view.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace redline::actors::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json worker(const std::string& name, int batches, int held = 9) {
  return {{"worker", name},
          {"ready", true},
          {"running", 2},
          {"waiting", 1},
          {"pages", 8192},
          {"pages_held", held},
          {"batches_total", batches},
          {"rows_total", 4 * batches},
          {"busy_us_total", 1000 * batches},
          {"preempted_total", 3},
          {"cost_error_ratio", 0.08},
          {"batch_fill", 0.75},
          {"batches", json::array()}};
}
json event(int batches = 100, double tokens = 1000) {
  return {{"server", {{"version", "1.2"}, {"ready", true}, {"uptime_seconds", 200}, {"models", {"demo"}}}},
          {"answers", {{"running", 3}, {"waiting", 0}, {"edit_sessions", 1}}},
          {"schedulers", {worker("1", batches)}},
          {"tokens_total", tokens},
          {"drafted_total", 200},
          {"accepted_total", 150},
          {"sources", {{"lookup", {{"drafted", 100}, {"accepted", 70}}}}}};
}
std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const auto& line : lines) all += line + "\n";
  return all;
}
server_view view_of(const json& first, const json& second) {
  server_view view;
  view.take(*server_status::parse(first.dump()), 10);
  view.take(*server_status::parse(second.dump()), 12);
  return view;
}

TEST(server_view, shows_conflicts_about_names) {
  auto one = event();
  one["server"]["conflicts"] = {"model 'm' is not \x1b[2Kserved", 7};
  EXPECT_THAT(joined(view_of(one, one).lines(100, 0, worker_order::name)),
              HasSubstr("\nCONFLICT: model 'm' is not ?[2Kserved\n"));
}

TEST(server_view, makes_rates_of_totals) {
  const auto view = view_of(event(100, 1000), event(300, 1800));
  EXPECT_EQ(joined(view.lines(100, 0, worker_order::name)),
            "redline 1.2   ready   up 3 min   demo\n"
            "400 tokens/s   3 running   0 waiting   1 edit sessions\n"
            "drafts accepted 75 %   lookup 70 %\n"
            "KV pages 9/8192   100 passes/s   4.0 rows/pass   busy 10 %\n"
            "worker  running  waiting   pages  passes/s  rows/pass  fill  busy  preempted  cost off\n"
            "1             2        1  9/8192       100        4.0  75 %  10 %          3       8 %\n");
  EXPECT_EQ(view.line().size(), server_view::line_head.size());
  EXPECT_THAT(view.line(), HasSubstr("      400        3        0"));
}

TEST(server_view, calls_workers_by_their_names_and_knows_them_by_their_numbers) {
  auto first = event(100), second = event(300);
  for (auto* e : {&first, &second}) {
    (*e)["schedulers"][0]["name"] = "box:17";
    (*e)["schedulers"].push_back((*e)["schedulers"][0]);
    (*e)["schedulers"][1]["worker"] = "2";
  }
  second["schedulers"][1]["batches_total"] = 100;
  second["schedulers"][1]["rows_total"] = 400;
  const auto text = joined(view_of(first, second).lines(100, 0, worker_order::name));
  EXPECT_THAT(text, HasSubstr("\nbox:17        2        1  9/8192       100"));
  EXPECT_THAT(text, HasSubstr("\nbox:17        2        1  9/8192         0"));
}

TEST(server_view, fits_into_any_terminal) {
  const auto view = view_of(event(100), event(300));
  for (std::size_t width = 1; width < 120; ++width) {
    for (const std::size_t height : {std::size_t{0}, std::size_t{1}, std::size_t{5}}) {
      const auto lines = view.lines(width, height, worker_order::name);
      ASSERT_FALSE(lines.empty());
      if (height > 0) {
        ASSERT_LE(lines.size(), height);
      }
      for (const auto& line : lines) ASSERT_LE(line.size(), width);
    }
  }
  const auto narrow = joined(view.lines(20, 0, worker_order::name));
  EXPECT_THAT(narrow, HasSubstr("\n0 tokens/s\n"));
  EXPECT_THAT(narrow, HasSubstr("\nworker  running\n"));
}

TEST(server_view, sorts_workers) {
  json first = event(), second = event();
  first["schedulers"] = {worker("b", 10, 5), worker("a", 10, 7)};
  second["schedulers"] = {worker("b", 30, 5), worker("a", 20, 7)};
  const auto view = view_of(first, second);
  const auto first_of = [&](worker_order order) { return view.lines(100, 0, order).at(5).substr(0, 1); };
  EXPECT_EQ(first_of(worker_order::name), "a");
  EXPECT_EQ(first_of(worker_order::pages), "a");
  EXPECT_EQ(first_of(worker_order::rate), "b");
}

TEST(server_view, has_no_rates_of_a_worker_that_was_restarted) {
  const auto text = joined(view_of(event(300, 2000), event(10, 100)).lines(100, 0, worker_order::name));
  EXPECT_THAT(text, HasSubstr("0 tokens/s"));
  EXPECT_THAT(text, HasSubstr("0 passes/s"));
}

TEST(server_view, shows_a_server_without_a_scheduler) {
  json nobody = event();
  nobody["schedulers"] = json::array();
  nobody["server"]["ready"] = false;
  const auto text = joined(view_of(nobody, nobody).lines(100, 0, worker_order::name));
  EXPECT_THAT(text, HasSubstr("NOT READY"));
  EXPECT_THAT(text, HasSubstr("no scheduler is responding"));
}

TEST(server_status, lets_nothing_through_that_a_terminal_would_obey) {
  json bad = event();
  bad["server"]["version"] = "\x1b[2J\x07";
  bad["server"]["models"] = {"\x1b]0;title\x07", std::string(100'000, 'm')};
  bad["schedulers"][0]["worker"] = "\u009b31m\n";
  bad["sources"]["\x1b[31m"] = {{"drafted", 1}, {"accepted", 1}};
  for (const auto& line : view_of(bad, bad).lines(200, 0, worker_order::name)) {
    for (const char c : line) ASSERT_TRUE(c >= 0x20 && c < 0x7f) << line;
  }
}

TEST(server_status, takes_members_of_any_type_and_nothing_that_is_no_status) {
  for (const char* text : {"", "[]", "null", "{", "{}", R"({"server": 1, "schedulers": []})", R"({"server": {}})"}) {
    EXPECT_FALSE(server_status::parse(text)) << text;
  }
  for (const char* wrong : {"[]", "\"x\"", "null", "-1e308", "1e308", "{}"}) {
    for (const char* name : {"answers", "tokens_total", "sources", "drafted_total"}) {
      json one = event();
      one[name] = json::parse(wrong);
      EXPECT_TRUE(server_status::parse(one.dump())) << name << wrong;
    }
    json one = event();
    for (auto& m : one["schedulers"][0]) m = json::parse(wrong);
    EXPECT_FALSE(view_of(one, event()).lines(80, 0, worker_order::rate).empty());
  }
  json many = event();
  many["schedulers"] = json::array();
  for (int i = 0; i < 1000; ++i) many["schedulers"].push_back(worker(std::to_string(i), 1));
  EXPECT_EQ(server_status::parse(many.dump())->workers.size(), server_view::workers_max);
}

TEST(server_view, explains_each_word_over_the_workers) {
  const auto all = server_view::legend(100, 0);
  for (const char* word : {"running", "waiting", "passes/s", "rows/pass", "fill", "busy", "preempted", "cost off"}) {
    EXPECT_TRUE(std::ranges::any_of(all, [&](const auto& line) { return line.starts_with(word); })) << word;
  }
  EXPECT_EQ(server_view::legend(100, 3).size(), 3U);
  for (const auto& line : server_view::legend(9, 0)) EXPECT_LE(line.size(), 9U);
}

}  // namespace
}  // namespace redline::actors::cli
