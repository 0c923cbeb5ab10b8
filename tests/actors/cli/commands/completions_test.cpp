// Runs the scripts of `redline completions` in the installed shells, with the redline that was built.

#include "actors/cli/help/completion_script.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "actors/cli/command.hpp"
#include "actors/cli/commands/commands.hpp"
#include "tests/support/command_call.hpp"
#include "tests/support/shell_call.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_data.hpp"

namespace redline::actors::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

/// A folder with the scripts and a few paths to complete.
class completions : public testing::Test {
 protected:
  completions() {
    std::filesystem::create_directory(folder_ / "models");
    std::ofstream(folder_ / "main file.txt") << "x";
    for (const auto shell : shells) {
      const std::string name = shell == "zsh" ? "_redline" : "redline." + std::string(shell);
      std::ofstream(folder_ / name) << completion_script(shell);
    }
  }
  /// Returns what bash offers; `words` are split as bash does it, and the last one is at the cursor.
  std::vector<std::string> bash(const std::vector<std::string>& words) {
    std::string array;
    for (const std::string& word : words) array += " " + test::shell_word(word);
    const std::string program = "source ./redline.bash; COMP_WORDS=(" + array +
                                "); COMP_CWORD=" + std::to_string(words.size() - 1) +
                                "; _redline; [ ${#COMPREPLY[@]} = 0 ] || printf '%s\\n' \"${COMPREPLY[@]}\"";
    const auto r = in_folder("bash --norc --noprofile -u -c " + test::shell_word(program) + " 2>&1");
    EXPECT_EQ(r.exit_code, 0) << r.out;
    return lines_of(r.out);
  }
  std::vector<std::string> fish(const std::string& line) {
    const auto r =
        in_folder("HOME=$PWD fish --no-config -c " +
                  test::shell_word("source ./redline.fish; complete -C " + test::shell_word(line)) + " 2>&1");
    EXPECT_EQ(r.exit_code, 0) << r.out;
    auto all = lines_of(r.out);
    for (std::string& one : all) one = one.substr(0, one.find('\t'));
    return all;
  }
  std::vector<std::string> zsh(const std::string& line) {
    const auto r = in_folder("HOME=$PWD TERM=dumb timeout 60 zsh -f " +
                             test::shell_word(test::source_path("tests/actors/cli/commands/zsh_capture.zsh")) +
                             " \"$PWD\" " + test::shell_word(line) + " 2>&1");
    EXPECT_EQ(r.exit_code, 0) << r.out;
    return lines_of(r.out);
  }

 private:
  test::shell_result in_folder(const std::string& command) {
    const std::filesystem::path built = sibling_executable("redline");
    return test::call_shell("cd " + test::shell_word(folder_.path()) +
                            " && PATH=" + test::shell_word(built.parent_path().string()) + ":$PATH && " + command);
  }

  test::temporary_folder folder_;
};

TEST_F(completions, are_printed_for_the_shells_there_are) {
  const auto r = test::call_command(add_completions, "completions bash");
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_THAT(r.out, HasSubstr("complete -F _redline redline\n"));
  EXPECT_EQ(test::call_command(add_completions, "completions tcsh").exit_code, exit_usage);
}

// Unfinished or wrong words, on the command line or in the environment, cause no error.
TEST_F(completions, are_asked_for_without_the_parser) {
  ::setenv("REDLINE_LOG_LEVEL", "none", 1);
  const auto r = test::call_command(add_completions, "complete --nothing --config /nonexistent completions x");
  ::unsetenv("REDLINE_LOG_LEVEL");
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_EQ(r.out, "bash\nzsh\nfish\n");
  EXPECT_EQ(r.error, "");
  EXPECT_EQ(test::call_command(add_completions, "complete").out, "");
}

TEST_F(completions, are_offered_by_bash) {
  EXPECT_THAT(bash({"redline", ""}), IsSupersetOf({"serve", "session", "bench"}));
  EXPECT_THAT(bash({"redline", "--log-level", "info", "se"}), UnorderedElementsAre("serve", "session"));
  EXPECT_THAT(bash({"redline", "session", ""}), IsSupersetOf({"new", "close"}));
  EXPECT_THAT(bash({"redline", "serve", "--kv-m"}), ElementsAre("--kv-mib"));
  EXPECT_THAT(bash({"redline", "serve", "--log-l"}), ElementsAre("--log-level"));
  EXPECT_THAT(bash({"redline", "completions", ""}), UnorderedElementsAre("bash", "zsh", "fish"));
  EXPECT_THAT(bash({"redline", "serve", "--kv", ""}), IsSupersetOf({"f16", "f32", "bf16"}));
  EXPECT_THAT(bash({"redline", "serve", "--kv", "b"}), ElementsAre("bf16"));
  EXPECT_THAT(bash({"redline", "serve", "--kv", "=", "b"}), ElementsAre("bf16"));
  EXPECT_THAT(bash({"redline", "serve", "--kv", "="}), IsSupersetOf({"f16", "f32", "bf16"}));
  EXPECT_THAT(bash({"redline", "serve", "--kv=b"}), ElementsAre("--kv=bf16"));
  EXPECT_THAT(bash({"redline", "serve", "--threads", ""}), IsEmpty());
}

TEST_F(completions, of_files_and_folders_are_bash_s_own) {
  EXPECT_THAT(bash({"redline", "serve", "-m", "m"}), UnorderedElementsAre("main file.txt", "models"));
  EXPECT_THAT(bash({"redline", "serve", "-m", "=", "mai"}), ElementsAre("main file.txt"));
  EXPECT_THAT(bash({"redline", "man", "--write", "m"}), ElementsAre("models"));
  EXPECT_THAT(bash({"redline", "edit", "x", "mai"}), ElementsAre("main file.txt"));
  EXPECT_THAT(bash({"redline", "bench", "mai"}), ElementsAre("main file.txt"));
  EXPECT_THAT(bash({"redline", "serve", "mai"}), IsEmpty());
  EXPECT_THAT(bash({"redline", "edit", "--", "mai"}), ElementsAre("main file.txt"));
}

TEST_F(completions, are_none_where_the_program_does_not_run) {
  EXPECT_THAT(bash({"./no/redline", ""}), IsEmpty());
  EXPECT_THAT(bash({"redline", "serve", "--nothing=", "x"}), IsEmpty());
}

TEST_F(completions, are_offered_by_fish) {
  if (!test::has_program("fish")) GTEST_SKIP() << "fish is not installed";
  EXPECT_THAT(fish("redline "), IsSupersetOf({"serve", "session", "bench"}));
  EXPECT_THAT(fish("redline --log-level info ses"), ElementsAre("session"));
  EXPECT_THAT(fish("redline session "), IsSupersetOf({"new", "close"}));
  EXPECT_THAT(fish("redline serve --kv"), IsSupersetOf({"--kv", "--kv-mib"}));
  EXPECT_THAT(fish("redline serve --kv "), IsSupersetOf({"f16", "f32", "bf16"}));
  EXPECT_THAT(fish("redline serve --kv=b"), ElementsAre("--kv=bf16"));
  EXPECT_THAT(fish("redline serve --log-level d"), ElementsAre("debug"));
  EXPECT_THAT(fish("redline serve --model mai"), ElementsAre("main file.txt"));
  EXPECT_THAT(fish("redline serve --model=mai"), ElementsAre("--model=main file.txt"));
  EXPECT_THAT(fish("redline man --write m"), ElementsAre("models/"));
  EXPECT_THAT(fish("redline edit mai"), ElementsAre("main file.txt"));
  EXPECT_THAT(fish("./no/redline "), IsEmpty());
}

TEST_F(completions, are_offered_by_zsh) {
  if (!test::has_program("zsh")) GTEST_SKIP() << "zsh is not installed";
  EXPECT_THAT(zsh("redline "), IsSupersetOf({"serve", "session", "bench"}));
  EXPECT_THAT(zsh("redline session "), IsSupersetOf({"new", "close"}));
  EXPECT_THAT(zsh("redline serve --kv "), IsSupersetOf({"f16", "f32", "bf16"}));
  EXPECT_THAT(zsh("redline serve --kv=b"), ElementsAre("bf16"));
  EXPECT_THAT(zsh("redline man --write mod"), Contains("models"));
  EXPECT_THAT(zsh("redline edit mai"), Contains("main\\ file.txt"));
  EXPECT_THAT(zsh("redline serve --model=mai"), Contains("main\\ file.txt"));
  EXPECT_THAT(zsh("redline serve --k"), AllOf(IsSupersetOf({"--kv", "--kv-mib"}), Not(Contains("--json"))));
}

}  // namespace
}  // namespace redline::actors::cli
