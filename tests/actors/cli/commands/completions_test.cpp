#include <gmock/gmock.h>

#include "actors/cli/command.hpp"
#include "actors/cli/commands/commands.hpp"
#include "tests/support/command_call.hpp"

namespace redline::actors::cli {
namespace {

using ::testing::HasSubstr;

TEST(completions, are_printed_for_the_program_that_runs) {
  const auto r = test::call_command(add_completions, "completions bash");
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_THAT(r.out, HasSubstr("complete -F _redline redline\n"));
  EXPECT_THAT(r.out, HasSubstr("'completions:'1) echo 'choice bash zsh fish'"));
  EXPECT_EQ(test::call_command(add_completions, "completions tcsh").exit_code, exit_usage);
}

}  // namespace
}  // namespace redline::actors::cli
