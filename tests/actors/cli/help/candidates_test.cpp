#include "actors/cli/help/candidates.hpp"

#include <gmock/gmock.h>

#include "tests/actors/cli/help/probe_text.hpp"

namespace redline::actors::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string offered(const std::vector<std::string>& words) { return candidates(probe_text(), words); }

TEST(candidates, are_commands_with_what_they_do) {
  EXPECT_EQ(offered({""}), "serve\tServe [a model]: over HTTP\nsession\tSessions\nbench\tMeasure\n");
  EXPECT_EQ(offered({"session", ""}), "new\tOpen one\nclose\tClose one\n");
  // The value of an option is not a command.
  EXPECT_EQ(offered({"--log-level", "serve", ""}), offered({""}));
  EXPECT_EQ(offered({"--log-level=info", ""}), offered({""}));
  EXPECT_EQ(offered({}), "");
}

TEST(candidates, are_flags_of_the_command_and_the_program) {
  EXPECT_EQ(offered({"serve", "-"}),
            "-h\tPrint this help message and exit\n--help\tPrint this help message and exit\n"
            "-m\tThe model's file, .gguf\n--model\tThe model's file, .gguf\n--kv\tType of keys\n--keys\tA folder\n"
            "--rows\tHow \\many\n--json\tAs JSON\n--log-level\tdebug or info\n");
  EXPECT_THAT(offered({"serve", "-m", "a", "--json", "--kv=f16", "-"}),
              Not(testing::AnyOf(HasSubstr("--model"), HasSubstr("--json"), HasSubstr("--kv"))));
  EXPECT_THAT(offered({"serve", "--rows", "--json", "-"}), HasSubstr("--json"));  // --json was the value of --rows
  EXPECT_EQ(offered({"bench", "-"}), "");
  EXPECT_EQ(offered({"serve", "--", "-"}), "");
}

TEST(candidates, are_the_values_of_a_flag) {
  const std::string types = "f16\tdefault\nf32\nbf16\n";
  EXPECT_EQ(offered({"serve", "--kv", ""}), types);
  EXPECT_EQ(offered({"serve", "--kv=b"}), types);
  EXPECT_EQ(offered({"serve", "--kv", "=", "b"}), types);
  EXPECT_EQ(offered({"serve", "--kv", "="}), types);
  EXPECT_EQ(offered({"serve", "--rows", ""}), "");
  EXPECT_EQ(offered({"serve", "--none=", ""}), "");
  EXPECT_EQ(offered({"serve", "--none="}), "");
  EXPECT_EQ(offered({"serve", "--log-level", ""}), "debug\ninfo\tdefault\n");
}

TEST(candidates, leave_files_to_the_shell) {
  EXPECT_EQ(offered({"serve", "-m", "m"}), ":file\n");
  EXPECT_EQ(offered({"serve", "--keys", "m"}), ":folder\n");
  EXPECT_EQ(offered({"session", "new", "x", "m"}), ":file\n");
  EXPECT_EQ(offered({"session", "new", "--", "-m"}), ":file\n");
  EXPECT_EQ(offered({"bench", "m"}), ":file\n");
  EXPECT_EQ(offered({"serve", "m"}), "");
}

TEST(candidates, are_one_line_each) {
  command_text program{.name = "probe"};
  program.commands = {{.name = "a", .help = "two\nlines\tand a tab"}};
  EXPECT_EQ(candidates(program, std::vector<std::string>{""}), "a\ttwo lines and a tab\n");
}

}  // namespace
}  // namespace redline::actors::cli
