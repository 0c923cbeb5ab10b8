#include "bench/studies/load/load_trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace redline::studies {
namespace {

using nlohmann::ordered_json;
using ::testing::HasSubstr;

ordered_json body_of(const planned_request& r, const std::string& method = "auto") {
  return ordered_json::parse(question_of(r, {}, {}, method).body);
}

TEST(load_trace, asks_what_its_lines_say_when_they_say) {
  const auto trace = parse_trace(
      R"({"at": 2.5, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 9, "tenant": "a", "other": 1})"
      "\n\n"
      R"({"at": 0, "prompt": "def f", "max_tokens": 3, "temperature": 0.5, "session": "s", "think": 4})",
      "f", 2);
  ASSERT_TRUE(trace) << trace.error().describe();
  ASSERT_EQ(trace->size(), 2U);
  const auto& first = trace->at(0);
  EXPECT_EQ(first.due, 0);
  EXPECT_EQ(first.think, 2) << "twice as fast";
  EXPECT_EQ(first.session, "s");
  EXPECT_EQ(question_of(first, {}, {}, "lookup").path, "/v1/completions");
  EXPECT_EQ(body_of(first, "lookup"), ordered_json::parse(R"({"temperature": 0.5, "max_tokens": 3, "prompt": "def f",
      "stream": true, "stream_options": {"include_usage": true}, "redline": {"speculation": {"method": "lookup"}}})"));
  const auto& second = trace->at(1);
  EXPECT_EQ(second.due, 1.25);
  EXPECT_EQ(second.tenant, "a");
  EXPECT_EQ(question_of(second, {}, {}, "auto").path, "/v1/chat/completions");
  EXPECT_EQ(body_of(second)["messages"][0]["content"], "hi");
  EXPECT_NE(first.item, second.item);
}

TEST(load_trace, makes_prompts_up_that_begin_alike_in_a_session) {
  const auto trace = parse_trace(R"({"at": 0, "prompt_tokens": 40, "max_tokens": 1, "session": "s"}
{"at": 1, "prompt_tokens": 60, "max_tokens": 1, "session": "s"}
{"at": 1, "prompt_tokens": 60, "max_tokens": 1, "session": "other"})",
                                 "f", 1);
  ASSERT_TRUE(trace);
  const auto prompt = [&](std::size_t i) { return body_of(trace->at(i))["prompt"].get<std::string>(); };
  EXPECT_EQ(std::ranges::count(prompt(0), ' '), 40);
  EXPECT_TRUE(prompt(1).starts_with(prompt(0)));
  EXPECT_FALSE(prompt(2).starts_with(prompt(0)));
}

TEST(load_trace, names_the_line_and_the_field_that_is_wrong) {
  const auto problem = [](const std::string& line) {
    const auto trace = parse_trace("\n" + line, "f", 1);
    return trace ? std::string("none") : trace.error().context;
  };
  EXPECT_EQ(problem(R"({"at": 0, "prompt": "x", "max_tokens": 1})"), "none");
  EXPECT_THAT(problem("{"), HasSubstr("f, line 2: expected a JSON object"));
  EXPECT_THAT(problem(R"({"prompt": "x", "max_tokens": 1})"), HasSubstr("line 2, \"at\""));
  EXPECT_THAT(problem(R"({"at": -1, "prompt": "x", "max_tokens": 1})"), HasSubstr("\"at\": expected a number from 0"));
  EXPECT_THAT(problem(R"({"at": 1e300, "prompt": "x", "max_tokens": 1})"), HasSubstr("\"at\""));
  EXPECT_THAT(problem(R"({"at": 0, "prompt": "x"})"), HasSubstr("\"max_tokens\": expected a count"));
  EXPECT_THAT(problem(R"({"at": 0, "prompt": "x", "prompt_tokens": 3, "max_tokens": 1})"), HasSubstr("exactly one of"));
  EXPECT_THAT(problem(R"({"at": 0, "max_tokens": 1})"), HasSubstr("exactly one of"));
  EXPECT_THAT(problem(R"({"at": 0, "messages": "x", "max_tokens": 1})"), HasSubstr("an array"));
  EXPECT_THAT(problem(R"({"at": 0, "prompt_tokens": 99999999, "max_tokens": 1})"), HasSubstr("\"prompt_tokens\""));
  EXPECT_THAT(problem(R"({"at": 0, "prompt": 3, "max_tokens": 1})"), HasSubstr("\"prompt\": expected a string"));
  EXPECT_THAT(problem(""), HasSubstr("found none"));
}

TEST(load_trace, is_shared_by_whole_sessions_without_loss) {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    text += R"({"at": 0, "prompt": ")" + std::to_string(i) + R"(", "max_tokens": 1)" +
            (i % 2 == 0 ? R"(, "session": "s)" + std::to_string(i % 5) + "\"" : "") + "}\n";
  }
  const auto all = *parse_trace(text, "f", 1);
  std::multiset<std::string> items;
  std::map<std::string, std::set<std::size_t>> agents_of;
  for (std::size_t i = 0; i < 3; ++i) {
    for (const auto& r : share_of_trace(all, i, 3)) {
      items.insert(r.item);
      if (!r.session.empty()) agents_of[r.session].insert(i);
    }
  }
  EXPECT_EQ(items.size(), 40U);
  EXPECT_EQ(std::set<std::string>(items.begin(), items.end()).size(), 40U);
  for (const auto& [session, agents] : agents_of) EXPECT_EQ(agents.size(), 1U) << session;
}

TEST(tenant_doors, have_a_key_for_each_tenant) {
  const auto doors = tenant_doors::make("http://127.0.0.1:1", "own", "# keys\nalice:one\n\nbob:two:3\n");
  ASSERT_TRUE(doors) << doors.error().describe();
  EXPECT_EQ(doors->tenants(), (std::vector<std::string>{"alice", "bob"}));
  const auto key = [&](const std::string& tenant) { return doors->of(tenant).headers.back().value; };
  EXPECT_EQ(key("alice"), "Bearer one");
  EXPECT_EQ(key("bob"), "Bearer two:3");
  EXPECT_EQ(key(""), "Bearer own");
  EXPECT_EQ(key("eve"), "Bearer own");
  const auto bad = tenant_doors::make("http://127.0.0.1:1", "", "alice:one\nbob\n");
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().context, HasSubstr("line 2"));
}

}  // namespace
}  // namespace redline::studies
