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
  EXPECT_EQ(r.error, "redline: expected a command, found 'prob'; 'redline --help' lists them\n");
  EXPECT_EQ(test::call_command(add_probe, "").error, "redline: expected a command; 'redline --help' lists them\n");
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
