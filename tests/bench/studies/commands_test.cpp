// The studies as a user calls them, with the demonstration models.

#include "bench/studies/commands.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "actors/cli/command.hpp"
#include "actors/cli/flags/generation_flags.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_data.hpp"

namespace redline::studies {
namespace {

using nlohmann::ordered_json;
using ::testing::HasSubstr;

const std::string models = " --model " + test::source_path("bench/demo_models/demo-target.gguf") + " --draft " +
                           test::source_path("bench/demo_models/demo-draft.gguf");
const std::string edits = " --edits " + test::source_path("bench/edits.jsonl");

struct printed {
  std::string text;
  int exit_code = 0;
};

printed call(void (*add)(CLI::App&, int&), const std::string& line) {
  CLI::App app;
  printed out;
  add(app, out.exit_code);
  testing::internal::CaptureStdout();
  app.parse(line);
  out.text = testing::internal::GetCapturedStdout();
  return out;
}

class benches : public ::testing::Test {
 protected:
  [[nodiscard]] ordered_json json_at(const std::string& file) const {
    return ordered_json::parse(test::read_file(folder_ / file));
  }
  test::temporary_folder folder_;
};

class bench_edit : public benches {
 protected:
  ordered_json run(const std::string& more) {
    said_ = call(add_bench_edit, "edit --threads 2 --json " + (folder_ / "e.json") + models + edits + more);
    EXPECT_EQ(said_.exit_code, 0) << said_.text;
    return json_at("e.json");
  }
  printed said_;
};

TEST_F(benches, copy_executes_programs_and_measures_what_bounds_them) {
  const auto said =
      call(add_bench_copy,
           "copy --threads 2 --context-tokens 64 --runs 1,8,64 --seconds 0 --execute 1 --users 1,2 "
           "--perturb 2 --trials 2 --self-written 2 --model " +
               test::source_path("bench/demo_models/demo-target.gguf") + edits + " --json " + (folder_ / "c.json"));
  ASSERT_EQ(said.exit_code, 0) << said.text;
  const auto all = json_at("c.json");
  EXPECT_EQ(all["prices"]["runs"].size(), 3u);
  EXPECT_GE(all["prices"]["masks"].size(), 8u);
  const auto& corpus = all["corpora"].at(0);
  EXPECT_GT(corpus["coverage"].at(0)["share"], 0.5);
  ASSERT_EQ(corpus["executed"].size(), 2u);
  for (const auto& t : corpus["executed"]) EXPECT_EQ(t["exact"], t["edits"]);
  EXPECT_EQ(corpus["moved"].at(0)["forced"], 1.0);
  EXPECT_EQ(corpus["moved"].at(0)["auto_confidence"], 1.0);
  // One mode of trust applies to all spans of a program; text that no mask constrains has no spans.
  std::map<std::string, ordered_json> own;
  for (const auto& o : corpus["own"]) own[o["written"]] = o;
  ASSERT_EQ(own.size(), 5u);
  EXPECT_EQ(own["as text"]["forced"], 0);
  EXPECT_EQ(own["as text"]["verified"], 0);
  EXPECT_GT(own["forced"]["forced"], 0);
  EXPECT_EQ(own["forced"]["verified"], 0);
  EXPECT_EQ(own["verified"]["forced"], 0);
  EXPECT_GT(own["verified"]["verified"], 0);
  EXPECT_THAT(said.text, HasSubstr("REPLAYED"));
}

TEST_F(bench_edit, tries_every_combination_of_blazedits_parameters) {
  // Whole drafts: the length of adaptive drafts depends on the machine's other load.
  const auto found = run(
      " --limit 1 --max-tokens 40 --methods blazedit,regular --grid-runs 1,3 --grid-micro 8,40 --draft-length whole");
  std::vector<std::string> names;
  std::vector<std::uint64_t> target_passes;
  for (const auto& m : found["methods"]) {
    names.push_back(m["method"]);
    target_passes.push_back(m["target_passes"]);
    EXPECT_EQ(m["identical"], true) << m;
  }
  EXPECT_THAT(names, testing::ElementsAre("regular", "blazedit 1x8, 10-gram", "blazedit 1x40, 10-gram",
                                          "blazedit 3x8, 10-gram", "blazedit 3x40, 10-gram"));
  EXPECT_GT(target_passes[1], target_passes[3]) << "three micro-drafts are longer than one";
  EXPECT_GT(target_passes[1], target_passes[2]) << "40 tokens are longer than 8";
}

TEST_F(bench_edit, reads_a_prediction_as_right_as_asked) {
  const auto passes_at = [&](const std::string& right) {
    // The fastest of three, because on a busy machine a draft may come too late for its pass.
    const auto found =
        run(" --limit 1 --max-tokens 60 --repeat 3 --methods prediction --replay --draft-length whole "
            "--prediction-right " +
            right);
    EXPECT_EQ(found["prediction_right"], std::stod(right));
    return found["methods"][0]["target_passes"].get<int>();
  };
  const int passes = passes_at("1");
  EXPECT_LE(passes, 2) << "the prompt's chunks, the last with the answer as its draft";
  EXPECT_GT(passes_at("0.1"), passes);
}

TEST_F(bench_edit, compares_all_methods_and_its_counts_add_up) {
  const auto found = run(" --limit 2 --max-tokens 60 --repeat 2");
  EXPECT_EQ(found["replayed"], false);
  const std::size_t methods = method_names().size() - 1;  // the model has no MTP layer
  ASSERT_EQ(found["methods"].size(), methods);
  ASSERT_EQ(found["runs"].size(), 2 * methods);
  EXPECT_EQ(found["methods"][0]["method"], "regular");
  EXPECT_EQ(found["methods"][0]["speed_up"], 1);
  for (const auto& m : found["methods"]) {
    EXPECT_EQ(m["identical"], true) << m;
    EXPECT_EQ(m["tokens"], found["methods"][0]["tokens"]);
  }
  for (const auto& r : found["runs"]) {
    std::uint64_t drafted = 0;
    std::uint64_t accepted = 0;
    for (const auto& step : r["steps"])
      drafted += step[0].get<std::uint64_t>(), accepted += step[1].get<std::uint64_t>();
    EXPECT_EQ(r["drafted"], drafted) << r;
    EXPECT_EQ(r["accepted"], accepted);
    // A pass gives a token of its own and the accepted ones; an end token is not part of the answer.
    EXPECT_GE(r["steps"].size() + accepted, r["tokens"].get<std::uint64_t>());
    EXPECT_GT(r["characters_per_second"], 0);
  }
}

TEST_F(bench_edit, replays_known_results_and_says_so) {
  const auto found = run(" --limit 3 --replay --methods blazedit,regular,lookup --draft-length whole");
  EXPECT_EQ(found["replayed"], true);
  EXPECT_THAT(said_.text, HasSubstr("REPLAYED"));
  ASSERT_EQ(found["methods"].size(), 3U);
  EXPECT_EQ(found["methods"][0]["method"], "regular");
  for (const auto& m : found["methods"]) {
    EXPECT_EQ(m["as_wanted"], 3) << m;
    EXPECT_EQ(m["identical"], true);
  }
  EXPECT_LT(found["methods"][2]["target_passes"], found["methods"][0]["target_passes"]);
}

TEST_F(bench_edit, leaves_out_methods_without_a_draft_model) {
  const auto said =
      call(add_bench_edit, "edit --threads 2 --limit 1 --max-tokens 20 --json " + (folder_ / "e.json") +
                               models.substr(0, models.find(" --draft")) + edits + " --methods assisted,lookup");
  EXPECT_EQ(said.exit_code, 0);
  const auto found = json_at("e.json");
  ASSERT_EQ(found["methods"].size(), 1U);
  EXPECT_EQ(found["methods"][0]["method"], "lookup");
}

TEST_F(bench_edit, refuses_bad_edits) {
  std::ofstream(folder_ / "bad.jsonl") << "{\"instruction\": 3}\n";
  EXPECT_EQ(call(add_bench_edit, "edit" + models + " --edits " + (folder_ / "bad.jsonl")).exit_code, exit_config);
}

/// Sends requests to a `redline serve` that the study starts.
class bench_load : public benches {
 protected:
  printed run(const std::string& more) {
    return call(add_bench_load, "load" + models + edits + " --max-tokens 24 --json " + (folder_ / "l.json") + more);
  }
};

TEST_F(bench_load, serves_clients_and_rates_and_its_counts_add_up) {
  const auto said = run(" --concurrency 1,3 --rate 50 --requests 6 --mix 0.3 --methods auto,regular,juggling");
  EXPECT_EQ(said.exit_code, 0) << said.text;
  EXPECT_THAT(said.text, HasSubstr("identical answers to equal requests: yes"));
  const auto found = json_at("l.json");
  EXPECT_EQ(found["windows"].size(), 6U);
  EXPECT_EQ(found["requests"].size(), 36U);
  ASSERT_EQ(found["summary"].size(), 6U);
  EXPECT_TRUE(found["differing_items"].empty());
  for (const auto& s : found["summary"]) {
    EXPECT_EQ(s["requests"], 6);
    EXPECT_EQ(s["errors"], 0) << s;
    EXPECT_GT(s["tokens_per_second"], 0);
    EXPECT_GE(s["total_ms"]["p50"], s["ttft_ms"]["p50"]);
  }
  EXPECT_EQ(found["summary"][1]["method"], "regular");
  EXPECT_EQ(found["summary"][1]["accepted_per_pass"], 0);
  EXPECT_GT(found["summary"][0]["accepted_per_pass"], 0);

  std::filesystem::copy(folder_ / "l.json", folder_ / "first.json");
  EXPECT_EQ(run(" --concurrency 3 --requests 6").exit_code, 0);
  const auto merged = call(add_bench_load, "load --json " + (folder_ / "m.json") + " --merge " +
                                               (folder_ / "first.json") + " " + (folder_ / "l.json"));
  EXPECT_EQ(merged.exit_code, 0) << merged.text;
  EXPECT_EQ(json_at("m.json")["requests"].size(), 48U);
  EXPECT_EQ(json_at("m.json")["summary"][2]["requests"], 12);
}

TEST(bench_load_flags, need_somebody_to_ask) { EXPECT_EQ(call(add_bench_load, "load").exit_code, exit_usage); }

TEST_F(benches, prompts_that_begin_alike_are_found_and_answered_alike) {
  const auto said =
      call(add_bench_prefix, "prefix --threads 2 --prefix-tokens 96 --repeat 2 --json " + (folder_ / "p.json") +
                                 " --model " + test::source_path("bench/demo_models/demo-draft.gguf"));
  EXPECT_EQ(said.exit_code, 0) << said.text;
  const auto found = json_at("p.json");
  EXPECT_EQ(found["identical"], true);
  EXPECT_EQ(found["cached_tokens"], 2 * 96);
}

TEST_F(benches, evictions_are_timed_and_judged) {
  const auto said =
      call(add_bench_evict, "evict --threads 2 --window 64 --tokens 20 --n-discard 16 --text-tokens 200 --text " +
                                test::source_path("bench/demo_files/inventory.py") + " --json " + (folder_ / "v.json") +
                                " --model " + test::source_path("bench/demo_models/demo-draft.gguf"));
  EXPECT_EQ(said.exit_code, 0) << said.text;
  const auto found = json_at("v.json");
  std::map<std::pair<std::string, int>, ordered_json> quality;
  for (const auto& row : found["quality"]) quality[{row["policy"], row["n_discard"]}] = row;
  std::map<std::pair<std::string, int>, ordered_json> pace;
  for (const auto& row : found["rows"]) pace[{row["policy"], row["n_discard"]}] = row;
  for (const std::string policy : {"reevaluate", "shift", "lazy"}) {
    // 16 is the requested value, 32 is half of the window.
    const auto& often = pace[{policy, 16}];
    const auto& seldom = pace[{policy, 32}];
    EXPECT_GE(often["evictions"], seldom["evictions"]);
    EXPECT_GE(seldom["evictions"], 1);
    EXPECT_GT(often["ms_per_token"], 0);
  }
  EXPECT_EQ(pace.size(), 6u);
  // Only recomputing costs rows, and fewer if more is discarded at a time. Rotated and unchanged keys are equivalent.
  const auto rows = [&](const char* policy, int n_discard) {
    return quality.at({policy, n_discard})["rows_per_token"].get<double>();
  };
  EXPECT_EQ(rows("lazy", 16), rows("shift", 16));
  EXPECT_GT(rows("reevaluate", 16), rows("reevaluate", 32));
  EXPECT_GT(rows("reevaluate", 32), rows("lazy", 32));
  const auto perplexity = [&](const char* policy) { return quality.at({policy, 16})["perplexity"].get<double>(); };
  EXPECT_NEAR(perplexity("lazy") / perplexity("shift"), 1, 0.02);
}

const std::string curve = " --model-curve " + test::source_path("bench/results/data/curve-demo-1-thread.json");

TEST_F(benches, simulate_prints_a_table_or_the_same_json_for_the_same_seed) {
  const std::string line = "simulate --workers 4 --sessions 50 --minutes 0.2 --loss-per-minute 2" + curve;
  const auto table = call(add_bench_simulate, line);
  EXPECT_EQ(table.exit_code, 0);
  EXPECT_THAT(table.text, HasSubstr("4 workers, 50 users"));
  EXPECT_THAT(table.text, HasSubstr("from a worker's end to the next token"));
  const auto json = call(add_bench_simulate, line + " --json -");
  EXPECT_EQ(json.text, call(add_bench_simulate, line + " --json -").text);
  EXPECT_NE(json.text, call(add_bench_simulate, line + " --json - --seed 7").text);
  EXPECT_EQ(ordered_json::parse(json.text)["options"]["workers"], 4);
}

TEST_F(benches, plan_prints_every_trial_and_the_number_of_machines) {
  const auto said =
      call(add_bench_plan, "plan --users 100 --minutes 0.5 --think-seconds 10 --slo-ttft-ms 2000 --json " +
                               (folder_ / "plan.json") + curve);
  EXPECT_EQ(said.exit_code, 0);
  const auto json = json_at("plan.json");
  EXPECT_GT(json["machines"], json["machines_if_none_is_lost"]);
  EXPECT_FALSE(json["trials"].empty());
  EXPECT_THAT(said.text, HasSubstr("take " + std::to_string(json["machines"].get<int>()) + ", so that"));
}

}  // namespace
}  // namespace redline::studies
