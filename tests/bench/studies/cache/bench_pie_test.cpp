// 'bench pie' as a user calls it, on the demonstration model.

#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "actors/cli/command.hpp"
#include "bench/studies/commands.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_data.hpp"

namespace redline::studies {
namespace {

using nlohmann::json;

class bench_pie : public ::testing::Test {
 protected:
  int run(const std::string& more) {
    CLI::App app;
    int exit_code = 0;
    add_bench_pie(app, exit_code);
    testing::internal::CaptureStdout();
    std::vector<std::string> tokenizer;  // in reverse order, as the parser expects
    std::istringstream line("pie --threads 2 --model " + test::source_path("bench/demo_models/demo-target.gguf") +
                            more);
    for (std::string word; line >> word;) tokenizer.insert(tokenizer.begin(), word == "''" ? "" : word);
    app.parse(tokenizer);
    said_ = testing::internal::GetCapturedStdout();
    return exit_code;
  }
  void write_case() {
    std::string text;
    for (int i = 0; i < 30; ++i)
      text += "def f" + std::to_string(i) + "(x):\n    return x + " + std::to_string(i) + "\n\n";
    const json op = {{"start", 3}, {"end", 6}, {"text", json::array()}};
    const json row = {{"id", "one"},
                      {"language", "python"},
                      {"target_line", "def f30(x):"},
                      {"prefix_context", text},
                      {"tasks", {{{"task", "insert"}, {"inverse", {op}}}}}};
    std::ofstream(folder_ / "cases.jsonl") << row.dump() << "\n";
  }
  test::temporary_folder folder_;
  std::string said_;
};

TEST_F(bench_pie, compares_the_policies_and_says_what_they_cost) {
  write_case();
  ASSERT_EQ(run(" --cases " + (folder_ / "cases.jsonl") +
                " --tasks insert --lengths 64,256 --inserted 8 --samples 1 --json " + (folder_ / "p.json")),
            0)
      << said_;
  const auto found = json::parse(test::read_file(folder_ / "p.json"));
  ASSERT_EQ(found["quality"].size(), 1U);
  EXPECT_EQ(found["quality"][0]["edits"], 1);
  std::map<std::string, json> by;
  for (const auto& p : found["quality"][0]["policies"]) by[p["policy"]] = p;
  ASSERT_EQ(by.size(), 5U);
  for (const std::string name : {"exact", "pie+healing"}) {
    EXPECT_EQ(by[name]["identical"], 1) << name;
    EXPECT_EQ(by[name]["line_as_exact"], 1);
    EXPECT_EQ(by[name]["divergence"], 0);
    EXPECT_EQ(by[name]["line_similarity_to_file"], by["exact"]["line_similarity_to_file"]);
  }
  EXPECT_GE(by["exact"]["line_similarity_to_file"], by["exact"]["line_as_file"]);
  EXPECT_LE(by["exact"]["line_similarity_to_file"], 1);
  EXPECT_LT(by["pie"]["tokens_computed"], by["exact"]["tokens_computed"].get<double>() / 4);
  EXPECT_GT(by["pie"]["divergence"], 0);
  EXPECT_LT(by["pie"]["divergence"], by["conflict"]["divergence"]);
  EXPECT_GT(by["pie"]["key_cosine_by_layer"][0], 0.9999);
  EXPECT_LT(by["conflict"]["key_cosine_by_layer"][0], 0.99);
  ASSERT_EQ(found["times"].size(), 4U);
  for (const auto& t : found["times"]) EXPECT_GT(t["exact_ms"], 0) << t;
}

TEST_F(bench_pie, takes_the_contexts_of_one_language) {
  write_case();
  const std::string cases = " --cases " + (folder_ / "cases.jsonl") + " --tasks insert";
  ASSERT_EQ(run(cases + " --language python --json " + (folder_ / "p.json")), 0) << said_;
  EXPECT_EQ(json::parse(test::read_file(folder_ / "p.json"))["quality"][0]["edits"], 1);
  EXPECT_EQ(run(cases + " --language java"), exit_usage);
}

TEST_F(bench_pie, refuses_cases_that_are_none) {
  std::ofstream(folder_ / "bad.jsonl") << "{\"id\": 3}\n";
  EXPECT_EQ(run(" --cases " + (folder_ / "bad.jsonl")), exit_config);
  EXPECT_EQ(run(" --cases ''"), exit_usage);
  EXPECT_EQ(run(" --cases '' --lengths 1048576"), exit_usage);
}

}  // namespace
}  // namespace redline::studies
