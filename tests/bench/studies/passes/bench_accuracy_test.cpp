#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

#include <fstream>
#include <nlohmann/json.hpp>

#include "actors/cli/command.hpp"
#include "bench/studies/commands.hpp"
#include "runtime/convert/synth.hpp"
#include "tests/support/temporary_folder.hpp"

namespace redline::studies {
namespace {

using nlohmann::ordered_json;

class bench_accuracy : public ::testing::Test {
 protected:
  void SetUp() override {
    write_model("f32", "f32.gguf");
    write("prompts.json", R"({"cases": [{"text": "def add(a, b):\n    return a + b\n"}, {"text": "x"}]})");
  }
  void write(const std::string& file, const std::string& text) { std::ofstream(folder_ / file) << text; }
  void write_model(const std::string& type, const std::string& file) {
    convert::synth_options options{.shape = *convert::find_shape("tiny"), .type = *convert::output_type::parse(type)};
    kernels::worker_team team(1);
    ASSERT_TRUE(convert::write_synthetic(options, folder_ / file, team));
  }

  /// Returns the first model's entry and the command's exit code.
  std::pair<ordered_json, int> compare(const std::string& model, const std::string& more = "") {
    CLI::App app;
    int exit_code = 0;
    add_bench_accuracy(app, exit_code);
    testing::internal::CaptureStdout();
    app.parse("accuracy --json - --threads 1 --reference " + (folder_ / "f32.gguf") + " --prompts " +
              (folder_ / "prompts.json") + " --model " + (folder_ / model) + more);
    const std::string text = testing::internal::GetCapturedStdout();
    return {text.empty() ? ordered_json() : ordered_json::parse(text)["models"][0], exit_code};
  }

  test::temporary_folder folder_;
};

TEST_F(bench_accuracy, finds_no_error_in_the_reference_itself) {
  const auto [found, exit_code] = compare("f32.gguf");
  EXPECT_EQ(exit_code, 0);
  EXPECT_EQ(found["largest_error"], 0);
  EXPECT_EQ(found["rms_error"], 0);
  EXPECT_EQ(found["same_token"], 1);
  EXPECT_GT(found["positions"], 10);
}

TEST_F(bench_accuracy, orders_formats_and_caches_by_their_bits) {
  for (const char* type : {"f16", "q8_0", "q4_0"}) write_model(type, std::string(type) + ".gguf");
  double before = 0;
  for (const char* file : {"f16.gguf", "q8_0.gguf", "q4_0.gguf"}) {
    const auto found = compare(file).first;
    EXPECT_GT(found["rms_error"], before) << file;
    EXPECT_GT(found["largest_error"], found["rms_error"]);
    before = found["rms_error"];
  }
  const double f16 = compare("f32.gguf", " --kv f16").first["rms_error"];
  EXPECT_GT(f16, 0);
  EXPECT_GT(compare("f32.gguf", " --kv bf16").first["rms_error"], f16);
}

TEST_F(bench_accuracy, refuses_what_is_no_list_of_prompts) {
  for (const char* text : {"", "[]", "{}", R"({"cases": 3})", R"({"cases": [{}]})", R"({"cases": [{"text": 3}]})"}) {
    write("prompts.json", text);
    EXPECT_EQ(compare("f32.gguf").second, exit_config) << text;
  }
}

}  // namespace
}  // namespace redline::studies
