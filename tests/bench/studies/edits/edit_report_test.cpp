#include "bench/studies/edits/edit_report.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace redline::studies {
namespace {

edit_run run_of(const std::string& edit, const std::string& method, double ratio, double seconds,
                std::uint32_t accepted) {
  return {.edit = edit,
          .method = method,
          .edit_ratio = ratio,
          .characters = 100,
          .tokens = 21,
          .seconds = seconds,
          .first_token_seconds = 0.5,
          .target_passes = 21 - accepted,
          .draft_passes = 3,
          .drafted = accepted + 1,
          .accepted = accepted,
          .least_rounds = 2,
          .steps = {{0, 0}, {accepted + 1, accepted}}};
}

std::vector<edit_run> some_runs() {
  return {run_of("a", "regular", 0.1, 10, 0),  run_of("a", "lookup", 0.1, 1, 17),  run_of("b", "regular", 0.5, 5, 0),
          run_of("b", "lookup", 0.5, 2.5, 11), run_of("c", "regular", 0.3, 10, 0), run_of("c", "lookup", 0.3, 2, 14)};
}

TEST(edit_report, compares_methods_with_regular) {
  const auto all = summarise(some_runs());
  ASSERT_EQ(all.size(), 2U);
  const method_summary& s = all[1];
  EXPECT_EQ(s.method, "lookup");
  EXPECT_EQ(s.edits, 3U);
  EXPECT_DOUBLE_EQ(s.mean_rate, (100 + 40 + 50) / 3.0);
  EXPECT_DOUBLE_EQ(s.worst_decile_rate, 42);
  EXPECT_DOUBLE_EQ(all[0].mean_rate, 40 / 3.0);
  EXPECT_DOUBLE_EQ(s.mean_speed_up, 190 / 40.0);
  EXPECT_DOUBLE_EQ(s.worst_decile_speed_up, 4.2);
  EXPECT_DOUBLE_EQ(all[0].mean_speed_up, 1);
  EXPECT_EQ(s.accepted, 42U);
  EXPECT_EQ(s.target_passes, 21U);
  EXPECT_DOUBLE_EQ(s.accepted_per_pass(), 2);
  EXPECT_DOUBLE_EQ(s.refused_share(), 3.0 / 45);
  EXPECT_EQ(s.rounds, 6U);
  EXPECT_EQ(s.least_rounds, 6U);
  EXPECT_TRUE(s.identical);
}

TEST(edit_report, leaves_the_prompt_out_of_decoding) {
  EXPECT_DOUBLE_EQ(run_of("a", "regular", 0, 10, 0).decoded_per_second(), 100 * 20 / 21.0 / 9.5);
  edit_run one = run_of("a", "regular", 0, 10, 0);
  one.tokens = 1;
  EXPECT_EQ(one.decoded_per_second(), 0);
}

TEST(edit_report, remembers_a_single_difference) {
  auto runs = some_runs();
  runs[3].identical = false;
  const auto all = summarise(runs);
  EXPECT_TRUE(all[0].identical);
  EXPECT_FALSE(all[1].identical);
}

TEST(edit_report, reads_what_it_wrote) {
  nlohmann::ordered_json root;
  for (const edit_run& r : some_runs()) root["runs"].push_back(json_of(r));
  const auto same = parse_edit_runs(root.dump(), "f.json");
  ASSERT_TRUE(same) << same.error().describe();
  ASSERT_EQ(same->size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(json_of((*same)[i]), root["runs"][i]);

  root["prediction_right"] = 0.9;
  root["draft_right"] = 0.8;
  root["runs"][0]["method"] = "auto";
  root["runs"][1]["method"] = "blazedit 4x80, 10-gram";
  const auto named = parse_edit_runs(root.dump(), "f.json");
  ASSERT_TRUE(named);
  EXPECT_EQ((*named)[0].method, "auto, draft 80 % right, 90 % right");
  EXPECT_EQ((*named)[1].method, "blazedit 4x80, 10-gram, draft 80 % right");
  EXPECT_EQ((*named)[3].method, "lookup");
}

TEST(edit_report, refuses_what_it_did_not_write) {
  for (const char* text : {"", "[]", "{}", R"({"runs": 3})", R"({"runs": [3]})", R"({"runs": [{"edit": "a"}]})"}) {
    const auto got = parse_edit_runs(text, "f.json");
    ASSERT_FALSE(got) << text;
    EXPECT_EQ(got.error().code, errc::file_malformed);
    EXPECT_NE(got.error().context.find("f.json"), std::string::npos);
  }
}

TEST(edit_report, gives_no_speed_up_without_regular) {
  const auto all = summarise({run_of("a", "lookup", 0.1, 1, 17)});
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].mean_speed_up, 0);
}

}  // namespace
}  // namespace redline::studies
