#include "actors/cli/flags/config_print.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

#include "actors/cli/command.hpp"
#include "actors/cli/flags/command_line.hpp"
#include "tests/support/command_call.hpp"
#include "tests/support/temporary_folder.hpp"

namespace redline::actors::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct probe_values {
  std::string colour = "red", name, place;
  std::uint32_t size = 1;
  std::vector<std::string> words;
  bool loud = false;
  int runs = 0;

  [[nodiscard]] auto all() const { return std::tie(colour, name, place, size, words, loud); }
} values;

void add_probe(CLI::App& app, int& exit_code) {
  values = {};
  const command c(app, "probe", "");
  const command inner(c, "inner", "");
  inner.add("PLACE", values.place, "Where").require();
  inner.add("-s,--size", values.size, "How large").range(1, 10);
  inner.add("--colour", values.colour, "Which colour").one_of({"red", "blue"});
  inner.add("--name", values.name, "What it is called").require();
  inner.add("--word", values.words, "Words");
  inner.add_flag("--loud", values.loud, "Shout");
  inner.on_run(exit_code, [] { return ++values.runs, 0; });
}

class variable {
 public:
  variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

TEST(config_print, says_where_each_value_comes_from) {
  const test::temporary_folder folder;
  const std::string file = folder / "redline.toml";
  std::ofstream(file) << "[probe.inner]\nname = \"a # b\"\ncolour = \"blue\"\nsize = 4\n";
  const variable size("REDLINE_SIZE", "5");
  const auto r = test::call_command(add_probe, "--config " + file + " probe inner --loud here --print-config");
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_EQ(values.runs, 0);
  EXPECT_THAT(r.out, HasSubstr("\nlog-level = \"info\"  # default\n"));
  EXPECT_THAT(r.out, HasSubstr("\n[probe.inner]\n"));
  EXPECT_THAT(r.out, HasSubstr("\n# Where\nPLACE = \"here\"  # argument\n"));
  EXPECT_THAT(r.out, HasSubstr("\nsize = 5  # environment REDLINE_SIZE\n"));
  EXPECT_THAT(r.out, HasSubstr("\nname = \"a # b\"  # file " + file + ":2\n"));
  EXPECT_THAT(r.out, HasSubstr("\ncolour = \"blue\"  # file " + file + ":3\n"));
  EXPECT_THAT(r.out, HasSubstr("\nloud = true  # flag --loud\n"));
  EXPECT_THAT(r.out, HasSubstr("\n# word =   # not given\n"));
  EXPECT_THAT(r.out, Not(HasSubstr("config =")));
}

TEST(config_print, asks_for_nothing_that_the_command_needs) {
  const auto r = test::call_command(add_probe, "--print-config probe inner");
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_THAT(r.out, HasSubstr("# name =   # not given, but required by the command\n"));
  EXPECT_EQ(test::call_command(add_probe, "probe inner").exit_code, exit_usage);
}

TEST(config_print, is_read_back_to_the_same_options) {
  const test::temporary_folder folder;
  const std::string odd = "say \"hi\" # \\ [x], 'y'\n\tnext = 1";
  const std::string file = folder / "odd.toml";
  std::string printed;
  {
    const variable name("REDLINE_NAME", odd.c_str());
    printed = test::call_command(add_probe, "probe inner here --word a,b --word #c -s 7 --loud --print-config").out;
  }
  const auto wanted = values;
  EXPECT_EQ(wanted.name, odd);
  std::ofstream(file) << printed;
  EXPECT_EQ(test::call_command(add_probe, "--config " + file + " probe inner").exit_code, 0);
  EXPECT_EQ(values.runs, 1);
  EXPECT_EQ(values.all(), wanted.all());
  // A second printout differs only in the origins.
  const auto again = test::call_command(add_probe, "--config " + file + " probe inner --print-config").out;
  EXPECT_THAT(again, HasSubstr("\nsize = 7  # file " + file + ":"));
}

}  // namespace
}  // namespace redline::actors::cli
