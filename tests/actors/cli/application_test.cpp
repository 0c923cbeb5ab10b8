#include "actors/cli/application.hpp"

#include <gmock/gmock.h>

#include "actors/cli/command.hpp"
#include "actors/cli/flags/command_line.hpp"
#include "tests/support/command_call.hpp"

namespace redline::actors::cli {
namespace {

using ::testing::StartsWith;

void add_probe(CLI::App& app, int& exit_code) {
  const command c(app, "probe", "");
  c.on_run(exit_code, [] { return report(failure{errc::unreachable, "nobody at 127.0.0.1:1"}); });
}

TEST(application, names_a_word_that_is_no_command) {
  const auto r = test::call_command(add_probe, "prob");
  EXPECT_EQ(r.exit_code, exit_usage);
  EXPECT_EQ(r.error, "redline: expected a command, found 'prob'; did you mean 'probe'? 'redline --help' lists them\n");
  EXPECT_EQ(test::call_command(add_probe, "zzz").error,
            "redline: expected a command, found 'zzz'; 'redline --help' lists them\n");
  EXPECT_EQ(test::call_command(add_probe, "").error, "redline: expected a command; 'redline --help' lists them\n");
}

TEST(application, suggests_what_an_unknown_option_may_mean) {
  const auto r = test::call_command(add_probe, "probe --log-lvel=debug");
  EXPECT_EQ(r.exit_code, exit_usage);
  EXPECT_EQ(
      r.error,
      "redline: 'redline probe' has no option --log-lvel; did you mean '--log-level'? 'redline probe --help' lists "
      "them\n");
  EXPECT_EQ(test::call_command(add_probe, "probe -x").error,
            "redline: 'redline probe' has no option -x; 'redline probe --help' lists them\n");
  EXPECT_EQ(
      test::call_command(add_probe, "probe more").error,
      "redline: 'redline probe' does not know what to do with 'more'; 'redline probe --help' shows what it takes\n");
}

TEST(application, tells_of_itself_without_a_command) {
  for (const char* line : {"--help", "--version", "probe --help", "--help probe"}) {
    const auto r = test::call_command(add_probe, line);
    EXPECT_EQ(r.exit_code, 0) << line;
    EXPECT_EQ(r.error, "") << line;
    EXPECT_NE(r.out, "") << line;
  }
}

TEST(application, says_which_configuration_cannot_be_read) {
  EXPECT_THAT(test::call_command(add_probe, "--config /nonexistent probe").error,
              StartsWith("redline: --config: /nonexistent"));
}

TEST(application, reports_a_failure_in_its_own_words) {
  const auto r = test::call_command(add_probe, "probe");
  EXPECT_EQ(r.exit_code, exit_unavailable);
  EXPECT_EQ(r.error, "redline: nobody at 127.0.0.1:1\n");
}

}  // namespace
}  // namespace redline::actors::cli
