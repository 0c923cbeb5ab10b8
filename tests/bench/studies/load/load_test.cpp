// The parts of bench load: the plan of requests, the record and its figures, and a client with a misbehaving server.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "bench/studies/load/load_client.hpp"
#include "bench/studies/load/load_plan.hpp"
#include "bench/studies/load/load_report.hpp"
#include "bench/studies/load/replay.hpp"
#include "bench/studies/load/server_counts.hpp"

namespace redline::studies {
namespace {

using nlohmann::ordered_json;
using ::testing::HasSubstr;

std::vector<known_edit> some_edits() {
  return *parse_edits(R"({"id": "a", "instruction": "i", "before": "one\ntwo\n", "after": "1\n"})"
                      "\n"
                      R"({"id": "b", "instruction": "j", "before": "three", "after": "3"})",
                      "f");
}

TEST(load_plan, is_the_same_for_the_same_seed) {
  const auto edits = some_edits();
  const load_mix mix{.completions = 0.5};
  const auto items = [&](const load_level& level, std::uint64_t seed) {
    std::vector<std::string> out;
    for (const auto& r : plan_requests(level, 40, seed, edits, mix)) out.push_back(r.item);
    return out;
  };
  const load_level clients{false, 4};
  const load_level rate{true, 10};
  EXPECT_EQ(items(clients, 1), items(clients, 1));
  EXPECT_EQ(items(clients, 1), items(rate, 1));
  EXPECT_NE(items(clients, 1), items(clients, 2));
  const auto all = items(clients, 1);
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()),
            (std::set<std::string>{"edit a", "edit b", "completion a", "completion b"}));
}

TEST(replay, writes_the_known_answer_to_each_message) {
  const auto edits = some_edits();
  const auto script = ordered_json::parse(script_of(edits));
  ASSERT_EQ(script.size(), 2U);
  for (std::size_t i = 0; i < edits.size(); ++i) {
    const auto body = ordered_json::parse(question_of({.edit = i}, edits, {}, "auto").body);
    EXPECT_EQ(script[i]["when"][0], body["messages"][0]["content"]);
    EXPECT_THAT(script[i]["say"].get<std::string>(), HasSubstr(edits[i].after));
  }
}

TEST(replay, keeps_its_file_from_others_and_removes_it) {
  const auto edits = some_edits();
  std::string path;
  {
    const auto file = script_file::write(edits);
    ASSERT_TRUE(file) << file.error().describe();
    path = file->path();
    EXPECT_TRUE(std::filesystem::exists(path));
    EXPECT_EQ(std::filesystem::status(std::filesystem::path(path).parent_path()).permissions(),
              std::filesystem::perms::owner_all);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(server_counts, are_read_from_metrics_or_are_not_there) {
  const std::string metrics =
      "# HELP redline_steps_total x\nredline_steps_total 12\nredline_rows_total 84\nredline_step_seconds_total 1.5\n";
  EXPECT_EQ(parse_server_counts(metrics), (server_counts{12, 84, 1.5}));
  EXPECT_FALSE(parse_server_counts("vllm:steps 1\nredline_steps_total 12\n"));
}

TEST(load_report, tells_the_servers_passes) {
  load_record record;
  record.rows.push_back({.level = "2 clients", .method = "auto", .tokens = 10});
  record.windows.push_back({"2 clients", "auto", 100, 104, {.passes = 20, .rows = 60, .busy_seconds = 3}});
  const auto all = summarise(record, {});
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].rows_per_pass, 3);
  EXPECT_EQ(all[0].busy_share, 0.75);
  EXPECT_EQ(*parse_load_record(json_of(record).dump(), "f"), record);
}

TEST(load_plan, lets_rates_arrive_as_often_as_asked) {
  const auto plan = plan_requests({true, 10}, 4000, 7, some_edits(), {});
  double before = 0;
  for (const auto& r : plan) {
    EXPECT_GE(r.due, before);
    before = r.due;
    EXPECT_TRUE(r.is_edit);
  }
  EXPECT_NEAR(plan.back().due, 400, 25);  // the sum of 4,000 waits deviates by 6.3
  for (const auto& r : plan_requests({false, 10}, 5, 7, some_edits(), {})) EXPECT_EQ(r.due, 0);
}

TEST(load_plan, finds_the_highest_rate_that_holds) {
  std::vector<double> tried;
  const auto search = [&](double first, double limit) {
    tried.clear();
    return find_highest_rate(first, [&](double rate) -> result<bool> {
      tried.push_back(rate);
      return rate <= limit;
    });
  };
  EXPECT_EQ(*search(1, 11), 11);
  EXPECT_EQ(tried, (std::vector<double>{1, 2, 4, 8, 16, 12, 10, 11, 11.5}));
  EXPECT_EQ(*search(8, 3.1), 3) << "even below the first rate";
  EXPECT_EQ(*search(1, 0), 0);
  EXPECT_EQ(tried.size(), 5U);
  EXPECT_EQ(*search(1, 1e9), 65536) << "no limit is found";
  const auto fails = find_highest_rate(1, [](double) -> result<bool> { return failure{errc::unreachable, "gone"}; });
  EXPECT_FALSE(fails);
}

TEST(load_plan, asks_what_the_interface_knows) {
  const auto edits = some_edits();
  const auto edit = question_of({.item = "", .is_edit = true, .edit = 0}, edits, {.tokens_max = 9}, "lookup");
  EXPECT_EQ(edit.path, "/v1/chat/completions");
  const auto body = ordered_json::parse(edit.body);
  EXPECT_EQ(body["max_tokens"], 9);
  EXPECT_EQ(body["redline"]["speculation"]["method"], "lookup");
  EXPECT_FALSE(body.contains("prediction"));
  const auto predicted = question_of({.item = "", .is_edit = true, .edit = 0}, edits, {.predict = true}, "auto");
  EXPECT_EQ(ordered_json::parse(predicted.body)["prediction"]["content"], "one\ntwo\n");
  const auto completion = question_of({.item = "", .is_edit = false, .edit = 1}, edits, {}, "auto");
  EXPECT_EQ(completion.path, "/v1/completions");
  EXPECT_EQ(ordered_json::parse(completion.body)["prompt"], "three");
}

load_row row_of(const std::string& method, double first_ms, double total_ms, std::uint64_t tokens,
                const std::string& error = "") {
  return {.level = "2 clients",
          .method = method,
          .item = "edit a",
          .sent = 100,
          .first_ms = first_ms,
          .total_ms = total_ms,
          .characters = 3 * tokens,
          .tokens = tokens,
          .target_passes = 2,
          .drafts = {10, 6},
          .sources = {{"lookup", {10, 6}}},
          .answer = "d",
          .error = error};
}

load_record some_record() {
  load_record r;
  r.windows = {{"2 clients", "auto", 100, 102}, {"2 clients", "regular", 102, 106}};
  r.rows = {row_of("auto", 100, 200, 11), row_of("auto", 300, 1300, 11), row_of("auto", 1, 1, 0, "gone"),
            row_of("regular", 50, 2050, 11)};
  return r;
}

TEST(load_report, adds_up) {
  const auto all = summarise(some_record(), {.first_ms = 200, .per_token_ms = 50});
  ASSERT_EQ(all.size(), 2U);
  const load_summary& s = all[0];
  EXPECT_EQ(s.method, "auto");
  EXPECT_EQ(s.requests, 3U);
  EXPECT_EQ(s.errors, 1U);
  EXPECT_DOUBLE_EQ(s.seconds, 2);
  EXPECT_DOUBLE_EQ(s.first_ms.p50, 200);
  EXPECT_DOUBLE_EQ(s.first_ms.p99, 298);
  EXPECT_DOUBLE_EQ(s.per_token_ms.p50, 55);  // 100 ms and 1,000 ms for ten tokens
  EXPECT_DOUBLE_EQ(s.characters_per_second, 33);
  EXPECT_DOUBLE_EQ(s.tokens_per_second, 11);
  EXPECT_DOUBLE_EQ(s.goodput, 0.5);  // one of them is within the target in two seconds
  EXPECT_DOUBLE_EQ(s.good_share, 1.0 / 3);
  EXPECT_DOUBLE_EQ(s.accepted_per_pass, 3);
  EXPECT_DOUBLE_EQ(s.accepted_per_pass_by_source.at("lookup"), 3);
  EXPECT_EQ(all[1].method, "regular");
  EXPECT_DOUBLE_EQ(all[1].good_share, 0);
}

TEST(load_report, merges_processes_that_ran_together) {
  load_record both = some_record();
  load_record other = some_record();
  for (auto& w : other.windows) w.began += 1, w.ended += 1;
  ASSERT_TRUE(both.add(other));
  const auto all = summarise(both, {});
  EXPECT_EQ(all[0].requests, 6U);
  EXPECT_DOUBLE_EQ(all[0].seconds, 3);
  EXPECT_DOUBLE_EQ(all[0].tokens_per_second, 44.0 / 3);
  EXPECT_FALSE(both.add(some_record()));
}

TEST(load_report, tells_answers_that_differ) {
  load_record r = some_record();
  EXPECT_TRUE(differing_items(r).empty());
  r.rows[2].answer = "another";  // this request failed
  EXPECT_TRUE(differing_items(r).empty());
  r.rows[3].answer = "another";
  EXPECT_EQ(differing_items(r), std::vector<std::string>{"edit a"});
}

TEST(load_report, comes_back_as_it_was_written) {
  const auto back = parse_load_record(json_of(some_record()).dump(), "f");
  ASSERT_TRUE(back) << back.error().describe();
  EXPECT_EQ(*back, some_record());
}

TEST(load_report, names_the_entry_and_the_field_that_is_wrong) {
  const auto problem = [](auto spoil) {
    ordered_json j = json_of(some_record());
    spoil(j);
    const auto back = parse_load_record(j.dump(), "f");
    return back ? std::string("none") : back.error().context;
  };
  EXPECT_EQ(problem([](auto&) {}), "none");
  EXPECT_THAT(problem([](auto& j) { j = 3; }), HasSubstr("found no list \"windows\""));
  EXPECT_THAT(problem([](auto& j) { j.erase("requests"); }), HasSubstr("found no list \"requests\""));
  EXPECT_THAT(problem([](auto& j) { j["windows"][1] = "x"; }),
              HasSubstr("f, windows[1]: expected an object, found string"));
  EXPECT_THAT(problem([](auto& j) { j["requests"][2].erase("item"); }),
              HasSubstr("f, requests[2], \"item\": expected a value"));
  EXPECT_THAT(problem([](auto& j) { j["requests"][0]["tokens"] = -1; }), HasSubstr("\"tokens\": expected a count"));
  EXPECT_THAT(problem([](auto& j) { j["requests"][0]["total_ms"] = 1e300; }),
              HasSubstr("\"total_ms\": expected a number"));
  EXPECT_THAT(problem([](auto& j) { j["requests"][0]["sources"]["lookup"] = 1; }),
              HasSubstr("requests[0], sources, lookup: expected an object"));
  EXPECT_EQ(parse_load_record("{", "f").error().code, errc::file_malformed);
}

TEST(load_client, asks_every_planned_request_once) {
  for (const load_level& level : {load_level{false, 3}, load_level{true, 2000}}) {
    const auto plan = plan_requests(level, 20, 3, some_edits(), {});
    std::vector<std::atomic<int>> asked(plan.size());
    std::atomic<std::size_t> done{0};
    const auto record = run_level(
        level, "auto", plan,
        [&](std::size_t i, const std::vector<past_turn>&) {
          ++asked[i];
          return load_row{.tokens = i};
        },
        done);
    EXPECT_EQ(done, plan.size());
    ASSERT_EQ(record.rows.size(), plan.size());
    for (std::size_t i = 0; i < plan.size(); ++i) {
      EXPECT_EQ(asked[i], 1);
      EXPECT_EQ(record.rows[i].tokens, i);
      EXPECT_EQ(record.rows[i].item, plan[i].item);
      EXPECT_EQ(record.rows[i].level, level.name());
    }
    ASSERT_EQ(record.windows.size(), 1U);
    EXPECT_LE(record.windows[0].began, record.windows[0].ended);
  }
}

TEST(load_client, asks_a_conversation_in_turns_with_time_to_think_and_what_was_said) {
  const load_mix mix{.turns = 3, .think_seconds = 0.01};
  for (const load_level& level : {load_level{false, 2}, load_level{true, 1000}}) {
    const auto plan = plan_requests(level, 12, 3, some_edits(), mix);
    std::mutex mutex;
    std::map<std::string, std::vector<std::size_t>> order;
    std::map<std::string, std::chrono::steady_clock::time_point> answered;
    std::atomic<std::size_t> done{0};
    const auto record = run_level(
        level, "auto", plan,
        [&](std::size_t i, const std::vector<past_turn>& before) {
          const std::lock_guard lock(mutex);
          auto& mine = order[plan[i].session];
          EXPECT_EQ(before.size(), mine.size());
          for (std::size_t t = 0; t < before.size(); ++t) {
            EXPECT_EQ(before[t].edit, plan[mine[t]].edit);
            EXPECT_EQ(before[t].answer, "answer " + std::to_string(mine[t]));
          }
          const auto now = std::chrono::steady_clock::now();
          if (!mine.empty()) {
            EXPECT_GE(now - answered[plan[i].session], std::chrono::duration<double>(plan[i].think));
          }
          answered[plan[i].session] = now;
          mine.push_back(i);
          return load_row{.text = "answer " + std::to_string(i)};
        },
        done);
    EXPECT_EQ(done, 12U);
    ASSERT_EQ(order.size(), 4U);
    for (const auto& [session, asked] : order) EXPECT_TRUE(std::ranges::is_sorted(asked)) << session;
  }
}

TEST(load_client, asks_nothing_more_in_a_conversation_that_failed) {
  const auto plan = plan_requests({false, 1}, 6, 3, some_edits(), {.turns = 3});
  std::atomic<std::size_t> done{0};
  std::atomic<int> asked{0};
  const auto record = run_level(
      {false, 1}, "auto", plan,
      [&](std::size_t i, const std::vector<past_turn>&) {
        ++asked;
        return load_row{.error = i == 1 ? "no" : ""};
      },
      done);
  EXPECT_EQ(asked, 5);
  EXPECT_EQ(record.rows[2].error_kind, "not sent");
  EXPECT_EQ(record.rows[3].error, "");
}

TEST(load_plan, gives_conversations_to_tenants_by_turns) {
  const auto plan = plan_requests({true, 5}, 12, 3, some_edits(), {.turns = 2, .tenants = {"a", "b", "c"}});
  for (std::size_t i = 0; i < plan.size(); ++i) {
    EXPECT_EQ(plan[i].tenant, std::string(1, static_cast<char>('a' + i / 2 % 3)));
    EXPECT_EQ(plan[i].session, plan[i / 2 * 2].session);
    EXPECT_EQ(plan[i].due, plan[i / 2 * 2].due) << "the rate counts conversations";
  }
  EXPECT_NE(plan[1].item, plan[3].item);
  const std::vector<past_turn> before{{0, "said"}};
  const auto body = ordered_json::parse(question_of(plan[1], some_edits(), {}, "auto", before).body);
  ASSERT_EQ(body["messages"].size(), 3U);
  EXPECT_EQ(body["messages"][1], (ordered_json{{"role", "assistant"}, {"content", "said"}}));
}

TEST(load_report, counts_errors_by_kind_and_tenants_apart) {
  load_record r;
  r.windows = {{"2 clients", "auto", 100, 102}};
  r.rows = {row_of("auto", 100, 1000, 10),   row_of("auto", 200, 1000, 10),   row_of("auto", 300, 1000, 30),
            row_of("auto", 1, 1, 0, "busy"), row_of("auto", 1, 1, 0, "busy"), row_of("auto", 1, 1, 0, "gone")};
  const char* tenants[] = {"a", "a", "b", "b", "b", ""};
  for (std::size_t i = 0; i < r.rows.size(); ++i) r.rows[i].tenant = tenants[i];
  r.rows[3].error_kind = r.rows[4].error_kind = "http 429";
  r.rows[5].error_kind = "broken off";
  const auto s = summarise(r, {}).at(0);
  EXPECT_EQ(s.errors_by_kind, (std::map<std::string, std::size_t>{{"http 429", 2}, {"broken off", 1}}));
  ASSERT_EQ(s.tenants.size(), 2U) << "one request has no tenant";
  EXPECT_EQ(s.tenants.at("a").requests, 2U);
  EXPECT_DOUBLE_EQ(s.tenants.at("a").first_ms_p50, 150);
  EXPECT_DOUBLE_EQ(s.tenants.at("a").tokens_per_second, 10);
  EXPECT_EQ(s.tenants.at("b").errors, 2U);
  EXPECT_DOUBLE_EQ(s.fairness, 40.0 * 40 / (2 * (10 * 10 + 30 * 30)));
  const auto back = parse_load_record(json_of(r).dump(), "f");
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, r);
  auto old = json_of(r);
  for (auto& row : old["requests"]) {
    row.erase("tenant");
    row.erase("error_kind");
  }
  EXPECT_TRUE(parse_load_record(old.dump(), "f")) << "the format of earlier versions";
}

TEST(load_client, says_that_nobody_answers) {
  const auto server = server_address::parse("http://127.0.0.1:1/v1/", "");
  ASSERT_TRUE(server);
  EXPECT_EQ(server->url.target, "");
  const auto row = ask(*server, {"/v1/completions", "{}"});
  EXPECT_NE(row.error, "");
  EXPECT_EQ(row.error_kind, "no connection");
}

}  // namespace
}  // namespace redline::studies
