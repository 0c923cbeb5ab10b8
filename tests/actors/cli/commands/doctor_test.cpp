#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "actors/cli/command.hpp"
#include "actors/cli/commands/commands.hpp"
#include "actors/cli/commands/doctor_report.hpp"
#include "kernels/dispatch.hpp"
#include "tests/support/command_call.hpp"
#include "tests/support/test_data.hpp"

namespace redline::actors::cli {
namespace {

using nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

/// Returns what the command prints with --json, and its exit code.
std::pair<ordered_json, int> doctor(const std::string& model) {
  const auto called = test::call_command(add_doctor, "doctor --json --threads 2 --model " + model);
  return {ordered_json::parse(called.out), called.exit_code};
}

std::vector<std::string> keys_of(const ordered_json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, _] : object.items()) keys.push_back(key);
  return keys;
}

TEST(doctor, finds_this_machine_and_the_demonstration_model_well) {
  const auto [found, exit_code] = doctor(test::source_path("bench/demo_models/demo-target.gguf"));
  EXPECT_EQ(exit_code, 0) << found;
  EXPECT_THAT(keys_of(found), ::testing::ElementsAre("healthy", "cpu", "threads", "memory", "targets", "target_problem",
                                                     "bounds", "checks", "checks_problem", "checks_seconds", "model"));
  EXPECT_EQ(found["healthy"], true);
  EXPECT_EQ(found["threads"]["used"], 2);
  ASSERT_EQ(found["targets"].size(), kernels::list_targets().size());
  EXPECT_EQ(std::count_if(found["targets"].begin(), found["targets"].end(), [](const auto& t) { return t["chosen"]; }),
            1);
  ASSERT_EQ(found["bounds"].size(), 2U);
  EXPECT_EQ(found["bounds"][1]["threads"], 2);
  EXPECT_GT(found["bounds"][0]["read_gb_per_second"], 0);
  ASSERT_FALSE(found["checks"].empty());
  for (const auto& check : found["checks"]) EXPECT_EQ(check["holds"], true) << check;

  const ordered_json& model = found["model"];
  EXPECT_EQ(model["problem"], "");
  EXPECT_EQ(model["architecture"], "qwen2");
  EXPECT_GE(model["weight_bytes"], model["file_bytes"]["Q8_0"]);
  EXPECT_EQ(keys_of(model["kv_bytes_per_1000_tokens"]),
            (std::vector<std::string>{"f32", "f16", "bf16", "q8_0", "i16"}));
  ASSERT_EQ(model["passes"].size(), 2U);
  EXPECT_EQ(model["passes"][0]["rows"], 1);
  EXPECT_EQ(model["passes"][1]["rows"], 64);
  for (const auto& pass : model["passes"]) EXPECT_GT(pass["of_arithmetic_bound"], 0);
}

TEST(doctor, fails_when_the_model_does) {
  const auto [found, exit_code] = doctor("/not/here.gguf");
  EXPECT_EQ(exit_code, exit_failed);
  EXPECT_EQ(found["healthy"], false);
  EXPECT_THAT(found["model"]["problem"], HasSubstr("/not/here.gguf"));
  EXPECT_THAT(found["model"]["passes"], ::testing::IsEmpty());
}

doctor_findings some_findings() {
  doctor_findings f;
  f.cpus = {.online = 8, .affinity = 6, .quota = 3};
  f.memory = {.total_bytes = 8ULL << 30, .available_bytes = 4ULL << 30, .huge_pages = "madvise"};
  f.target = kernels::choose_table("scalar");
  f.checks = {{"scalar", "products with Q4_K weights", ""}, {"scalar", "products with Q5_K weights", "bits differ"}};
  return f;
}

std::string text_of(const doctor_findings& f) {
  std::ostringstream out;
  print_findings(f, out);
  return out.str();
}

TEST(doctor_report, names_the_check_that_failed) {
  doctor_findings f = some_findings();
  EXPECT_FALSE(f.healthy());
  EXPECT_THAT(text_of(f), HasSubstr("1 of 2 checks passed"));
  EXPECT_THAT(text_of(f), HasSubstr("FAILED products with Q5_K weights: bits differ"));
  EXPECT_EQ(json_of(f)["checks"][1]["problem"], "bits differ");
  f.checks.pop_back();
  EXPECT_TRUE(f.healthy());
  EXPECT_THAT(text_of(f), Not(HasSubstr("FAILED")));
}

TEST(doctor_report, is_not_well_without_a_target_a_self_test_or_the_model) {
  const auto healthy_but = [](auto spoil) {
    doctor_findings f = some_findings();
    f.checks.pop_back();
    spoil(f);
    return f.healthy();
  };
  EXPECT_TRUE(healthy_but([](auto&) {}));
  EXPECT_FALSE(healthy_but([](auto& f) { f.target = kernels::choose_table("abacus"); }));
  EXPECT_FALSE(healthy_but([](auto& f) { f.checks_problem = "no room for a file"; }));
  EXPECT_FALSE(healthy_but([](auto& f) { f.model.emplace().problem = "malformed"; }));
}

TEST(doctor_report, says_how_much_of_a_loaded_model_lies_in_huge_pages) {
  doctor_findings f = some_findings();
  f.model.emplace().config.kind = architecture::find_family("qwen2");
  EXPECT_THAT(text_of(f), Not(HasSubstr("loaded:")));
  f.model->held = {.resident_bytes = 600ULL << 20, .huge_bytes = 512ULL << 20};
  EXPECT_THAT(text_of(f), HasSubstr("are in huge pages"));
  EXPECT_EQ(json_of(f)["model"]["huge_page_bytes"], 512ULL << 20);
}

TEST(doctor_report, says_what_limits_the_threads) {
  doctor_findings f = some_findings();
  EXPECT_THAT(text_of(f), HasSubstr("3: the cgroup's quota grants 3 of 8 CPUs"));
  f.cpus.quota = 0;
  EXPECT_THAT(text_of(f), HasSubstr("6: the affinity mask has 6 of 8 CPUs"));
  f.cpus.affinity = 8;
  EXPECT_THAT(text_of(f), HasSubstr("8: one for each of the machine's CPUs"));
  f.threads_asked = 9;
  EXPECT_THAT(text_of(f), HasSubstr("9: as requested, which is more than the 8 CPUs"));
}

}  // namespace
}  // namespace redline::actors::cli
