// 'copy oracle', 'copy resolve' and 'copy check' as a user calls them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "actors/cli/commands/commands.hpp"
#include "tests/support/command_call.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_data.hpp"

namespace redline::actors::cli {
namespace {

using ::testing::HasSubstr;

class copy_command : public ::testing::Test {
 protected:
  static test::command_result call(const std::string& line) { return test::call_command(add_copy, "copy " + line); }
  std::string file(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  test::temporary_folder folder_;
};

TEST_F(copy_command, gives_back_the_new_file_whatever_its_bytes) {
  const std::string nasty[] = {
      "", "\n", "a", std::string("a\0b\r\nc\rd", 9), "\xff\xfe\n</gen><copy <\\/gen>", "x\n</program>\n\n"};
  for (const auto& before : nasty) {
    for (const auto& after : nasty) {
      const auto old = file("old", before);
      const auto program = call("oracle " + old + " " + file("new", after));
      ASSERT_EQ(program.exit_code, 0) << program.error;
      const auto back = call("resolve " + old + " " + file("program", program.out));
      EXPECT_EQ(back.exit_code, 0) << back.error;
      EXPECT_EQ(back.out, after) << program.out;
    }
  }
}

TEST_F(copy_command, names_several_files_and_counts_tokens) {
  // The lines are longer than an op, because writing shorter ones would be cheaper.
  const std::string first = std::string(60, 'a') + "\n", second = std::string(60, 'b') + "\n";
  const auto one = file("one", first + "x\n");
  const auto two = file("two", second + "y\n");
  const auto wanted = file("new", second + first);
  const auto lines = call("oracle " + one + " " + two + " " + wanted);
  EXPECT_EQ(lines.out, "<copy file=\"2\" lines=\"1-1\"/><copy file=\"1\" lines=\"1-1\"/></program>\n");
  EXPECT_EQ(call("resolve " + one + " " + two + " " + file("p", lines.out)).out, second + first);

  const std::string tokens = " --spans tokens --tokenizer " + test::source_path("bench/demo_models/demo-target.gguf");
  const auto long_old = file("long", "def of_many_words(alpha, beta):\n    return alpha + beta\n");
  const auto long_new = file("longer", "def of_many_words(alpha, beta):\n    return alpha - beta\n");
  const auto by_tokens = call("oracle" + tokens + " " + long_old + " " + long_new);
  EXPECT_THAT(by_tokens.out, HasSubstr("<copy tokens=\"1-"));
  EXPECT_EQ(call("resolve" + tokens + " " + long_old + " " + file("p", by_tokens.out)).out, test::read_file(long_new));
}

TEST_F(copy_command, checks_a_program_and_says_what_is_wrong) {
  const auto old = file("old", "one\ntwo\nthree\n");
  const auto good = call("check " + old + " " + file("p", "<copy lines=\"1-2\"/><gen>x\n</gen></program>\n"));
  EXPECT_EQ(good.exit_code, 0);
  EXPECT_EQ(good.out, "valid: 1 copies, 1 texts; 8 of 10 bytes are copied\n");
  const auto bad = call("check --json " + old + " " + file("p", "<copy lines=\"1-4\"/></program>"));
  EXPECT_NE(bad.exit_code, 0);
  EXPECT_EQ(nlohmann::json::parse(bad.out)["valid"], false);
  EXPECT_THAT(bad.error, HasSubstr("redline: "));
  const auto off =
      call("check --anchors " + old + " " + file("p", "<copy lines=\"1-2\" first=\"one\" last=\"three\"/></program>"));
  EXPECT_THAT(off.out, HasSubstr("1 copies have anchors of other lines"));
  EXPECT_NE(call("oracle --spans tokens " + old + " " + old).exit_code, 0)
      << "it is unclear which vocabulary has the tokens";
}

}  // namespace
}  // namespace redline::actors::cli
