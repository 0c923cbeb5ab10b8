#include "actors/cli/application.hpp"

#include <gmock/gmock.h>

#include "actors/cli/command.hpp"
#include "actors/cli/flags/command_line.hpp"
#include "actors/cli/flags/model_flags.hpp"
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
  EXPECT_EQ(test::call_command(add_probe, "probe more").error,
            "redline: 'redline probe' takes no argument 'more'; 'redline probe --help' lists its arguments\n");
}

TEST(application, suggests_the_command_though_options_follow) {
  EXPECT_EQ(test::call_command(add_probe, "prob --model x").error,
            "redline: expected a command, found 'prob'; did you mean 'probe'? 'redline --help' lists them\n");
}

void add_listener(CLI::App& app, int& exit_code) {
  static std::string where;
  const command c(app, "serve", "");
  c.add("--listen", where, "");
  c.add("--port-file", where, "");
  c.on_run(exit_code, [] { return 0; });
}

TEST(application, knows_what_other_servers_call_the_address) {
  const auto says = [](const std::string& line) { return test::call_command(add_listener, "serve " + line).error; };
  EXPECT_THAT(says("--port 8099"), testing::HasSubstr("has no option --port; did you mean '--listen 127.0.0.1:8099'?"));
  EXPECT_THAT(says("--port=8099"), testing::HasSubstr("did you mean '--listen 127.0.0.1:8099'?"));
  EXPECT_THAT(says("--host 0.0.0.0"), testing::HasSubstr("did you mean '--listen 0.0.0.0:8080'?"));
  EXPECT_THAT(says("--port"), testing::HasSubstr("did you mean '--listen 127.0.0.1:PORT'?"));
  EXPECT_THAT(says("--por 1"), testing::Not(testing::HasSubstr("127.0.0.1")));
  EXPECT_THAT(test::call_command(add_probe, "probe --port 1").error, testing::Not(testing::HasSubstr("--listen")));
}

void add_place(CLI::App& app, int& exit_code) {
  static std::string model, server;
  model = server = "";
  const command c(app, "place", "");
  const option m = c.add("--model", model, "");
  const option s = c.add("--server", server, "");
  c.on_run(exit_code, [m, s] {
    if (const auto chosen = choose_model_or_server(m, model, s, server); !chosen) return report(chosen);
    return model.empty() ? server.empty() ? 10 : 11 : server.empty() ? 12 : 13;
  });
}

TEST(application, lets_a_flag_go_before_the_environment_where_one_of_two_is_meant) {
  constexpr int is_server = 11, is_model = 12;
  const auto place = [](const std::string& line) { return test::call_command(add_place, "place " + line).exit_code; };
  EXPECT_EQ(place("--model m"), is_model);
  EXPECT_EQ(place("--server s"), is_server);
  EXPECT_EQ(place("--model m --server s"), exit_usage);
  ::setenv("REDLINE_SERVER", "s", 1);
  EXPECT_EQ(place("--model m"), is_model);
  ::setenv("REDLINE_MODEL", "m", 1);
  EXPECT_EQ(place(""), is_server);
  EXPECT_EQ(place("--model m"), is_model);
  ::unsetenv("REDLINE_SERVER");
  EXPECT_EQ(place("--server s"), is_server);
  EXPECT_EQ(place(""), is_model);
  ::unsetenv("REDLINE_MODEL");
}

TEST(application, tells_of_itself_without_a_command) {
  for (const char* line : {"--help", "--version", "probe --help", "--help probe", "help", "help probe"}) {
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
