#include "actors/cli/flags/config_file.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <fstream>

#include "actors/cli/command.hpp"
#include "actors/cli/flags/command_line.hpp"
#include "tests/support/command_call.hpp"
#include "tests/support/temporary_folder.hpp"

namespace redline::actors::cli {
namespace {

using ::testing::HasSubstr;

void add_probe(CLI::App& app, int& exit_code) {
  static std::uint32_t size = 1;
  static std::string colour = "red";
  const command c(app, "probe", "");
  c.add("--size", size, "").range(1, 10);
  c.add("--colour", colour, "").one_of({"red", "blue"});
  c.on_run(exit_code, [] { return size == 7 && colour == "blue" ? 0 : 1; });
}

test::command_result probe(const std::string& text, const std::string& flags = "") {
  const test::temporary_folder folder;
  std::ofstream(folder / "redline.toml") << text;
  return test::call_command(add_probe, "--config " + (folder / "redline.toml") + " probe " + flags);
}

TEST(config_file, gives_options_their_values) {
  EXPECT_EQ(probe("# a comment\n[probe]\nsize = 7\ncolour = \"blue\"\n").exit_code, 0);
}

TEST(config_file, gives_way_to_the_environment) {
  ::setenv("REDLINE_SIZE", "7", 1);
  EXPECT_EQ(probe("[probe]\nsize = 3\ncolour = \"blue\"\n").exit_code, 0);
  ::unsetenv("REDLINE_SIZE");
}

TEST(config_file, a_wrong_value_is_named_with_its_line_and_what_was_expected) {
  const auto out_of_range = probe("[probe]\ncolour = \"blue\"\nsize = 11\n");
  EXPECT_EQ(out_of_range.exit_code, exit_usage);
  EXPECT_THAT(out_of_range.error, HasSubstr("redline.toml:3: size = 11: expected a number from 1 to 10\n"));
  EXPECT_THAT(
      probe("\n[probe]\nsize = many\n").error,
      HasSubstr("redline.toml: line 3: expected TOML such as threads = 2 or model = \"FILE\", found 'size = many' ("));
  EXPECT_THAT(probe("\n[probe]\nsize = \"many\" # or few\n").error,
              HasSubstr("redline.toml:3: size = \"many\" # or few: expected a number from 1 to 10\n"));
  EXPECT_THAT(probe("[probe]\ncolour = \"green\"\n").error, HasSubstr(":2: colour = \"green\": expected one of "));
  EXPECT_THAT(probe("[probe]\nsizes = 3\n").error, HasSubstr(":2: sizes = 3: expected an option of the command"));
  EXPECT_THAT(probe("[prob]\nsize = 3\n").error, HasSubstr(":1: [prob]: expected the name of a command"));
  EXPECT_THAT(probe("\n\n[probe\nsize = 3\n").error, HasSubstr("line 3: expected a section such as [serve]"));
}

TEST(config_file, what_the_command_line_says_is_not_blamed_on_the_file) {
  const auto r = probe("[probe]\nsize = 3\n", "--size 11");
  EXPECT_EQ(r.exit_code, exit_usage);
  EXPECT_EQ(r.error.find("redline.toml"), std::string::npos) << r.error;
  EXPECT_THAT(r.error, HasSubstr("--size"));
}

TEST(config_file, what_the_environment_says_is_not_blamed_on_the_file) {
  ::setenv("REDLINE_SIZE", "11", 1);
  const auto r = probe("[probe]\nsize = 3\ncolour = \"blue\"\n");
  const auto flag = probe("[probe]\nsize = 3\n", "--size 12");
  ::unsetenv("REDLINE_SIZE");
  EXPECT_EQ(r.exit_code, exit_usage);
  EXPECT_EQ(r.error, "redline: REDLINE_SIZE in the environment: expected a number from 1 to 10\n");
  EXPECT_THAT(flag.error, testing::Not(HasSubstr("in the environment"))) << flag.error;
}

TEST(config_file, suggests_what_an_unknown_key_may_mean) {
  const auto r = probe("[probe]\ncolor = \"blue\"\n");
  EXPECT_EQ(r.exit_code, exit_usage);
  EXPECT_THAT(r.error, HasSubstr(":2: color = \"blue\": expected an option of the command (its --help lists them), "
                                 "without the '--'; did you mean 'colour'?"));
  EXPECT_THAT(probe("[probe]\nzzzzzz = 1\n").error, testing::Not(HasSubstr("did you mean")));
}

TEST(config_file, deep_nesting_and_large_files_are_refused_before_they_are_parsed) {
  std::string deep = "a";
  for (int i = 0; i < 1500; ++i) deep += ".a";
  EXPECT_THAT(probe("[" + deep + "]\n").error, HasSubstr("line 1: expected section names of at most 4 parts"));
  EXPECT_THAT(probe("[probe]\n" + deep + " = 1\n").error,
              HasSubstr("line 2: expected section names of at most 4 parts"));
  EXPECT_THAT(probe("[" + std::string(80'000, 'a') + "]\n").error, HasSubstr("expected at most 65536 bytes"));
  EXPECT_THAT(probe("[" + std::string(5'000, 'a') + "]\n").error, HasSubstr("line 1: expected at most 4096 bytes"));
}

}  // namespace
}  // namespace redline::actors::cli
