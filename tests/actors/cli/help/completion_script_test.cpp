#include "actors/cli/help/completion_script.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/actors/cli/help/probe_text.hpp"
#include "tests/support/shell_call.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_data.hpp"

namespace redline::actors::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

/// A folder with the script and a few paths to complete.
class completion : public testing::Test {
 protected:
  completion() {
    std::filesystem::create_directory(folder_ / "models");
    std::ofstream(folder_ / "main file.txt") << "x";
    for (const auto shell : shells) {
      const std::string name = shell == "zsh" ? "_probe" : "probe." + std::string(shell);
      std::ofstream(folder_ / name) << completion_script(probe_text(), shell);
    }
  }
  /// What bash offers; `words` as bash splits them, the last is the one at the cursor.
  std::vector<std::string> bash(const std::vector<std::string>& words) {
    std::string array;
    for (const std::string& word : words) array += " " + test::shell_word(word);
    const std::string program = "source ./probe.bash; COMP_WORDS=(" + array +
                                "); COMP_CWORD=" + std::to_string(words.size() - 1) +
                                "; _probe; [ ${#COMPREPLY[@]} = 0 ] || printf '%s\\n' \"${COMPREPLY[@]}\"";
    const auto r = in_folder("bash --norc --noprofile -u -c " + test::shell_word(program) + " 2>&1");
    EXPECT_EQ(r.exit_code, 0) << r.out;
    return lines_of(r.out);
  }
  std::vector<std::string> fish(const std::string& line) {
    const auto r = in_folder("HOME=$PWD fish --no-config -c " +
                             test::shell_word("source ./probe.fish; complete -C " + test::shell_word(line)) + " 2>&1");
    EXPECT_EQ(r.exit_code, 0) << r.out;
    auto all = lines_of(r.out);
    for (std::string& one : all) one = one.substr(0, one.find('\t'));
    return all;
  }
  std::vector<std::string> zsh(const std::string& line) {
    const auto r = in_folder("HOME=$PWD TERM=dumb timeout 60 zsh -f " +
                             test::shell_word(test::source_path("tests/actors/cli/help/zsh_capture.zsh")) +
                             " \"$PWD\" " + test::shell_word(line) + " 2>&1");
    EXPECT_EQ(r.exit_code, 0) << r.out;
    return lines_of(r.out);
  }
  test::shell_result in_folder(const std::string& command) {
    return test::call_shell("cd " + test::shell_word(folder_.path()) + " && " + command);
  }

 private:
  test::temporary_folder folder_;
};

TEST_F(completion, bash_offers_commands_and_flags) {
  EXPECT_THAT(bash({"probe", ""}), ElementsAre("serve", "session", "bench"));
  EXPECT_THAT(bash({"probe", "se"}), ElementsAre("serve", "session"));
  EXPECT_THAT(bash({"probe", "session", ""}), ElementsAre("new", "close"));
  EXPECT_THAT(bash({"probe", "serve", "--k"}), ElementsAre("--kv", "--keys"));
  // The program's own flags may stand after a command, and their values are no commands.
  EXPECT_THAT(bash({"probe", "serve", "--log-l"}), ElementsAre("--log-level"));
  EXPECT_THAT(bash({"probe", "--log-level", "info", "ser"}), ElementsAre("serve"));
}

TEST_F(completion, bash_offers_values) {
  EXPECT_THAT(bash({"probe", "serve", "--kv", ""}), ElementsAre("f16", "f32", "bf16"));
  EXPECT_THAT(bash({"probe", "serve", "--kv", "f"}), ElementsAre("f16", "f32"));
  EXPECT_THAT(bash({"probe", "serve", "--kv", "=", "b"}), ElementsAre("bf16"));
  EXPECT_THAT(bash({"probe", "serve", "--kv", "="}), ElementsAre("f16", "f32", "bf16"));
  EXPECT_THAT(bash({"probe", "serve", "--kv=b"}), ElementsAre("--kv=bf16"));
  EXPECT_THAT(bash({"probe", "serve", "--rows", ""}), IsEmpty());
}

TEST_F(completion, bash_offers_files_and_folders) {
  EXPECT_THAT(bash({"probe", "serve", "-m", "m"}), UnorderedElementsAre("main file.txt", "models"));
  EXPECT_THAT(bash({"probe", "serve", "--keys", "m"}), ElementsAre("models"));
  EXPECT_THAT(bash({"probe", "session", "new", "x", "mai"}), ElementsAre("main file.txt"));
  EXPECT_THAT(bash({"probe", "bench", "mai"}), ElementsAre("main file.txt"));
  EXPECT_THAT(bash({"probe", "serve", "mai"}), IsEmpty());
  EXPECT_THAT(bash({"probe", "session", "new", "--", "mai"}), ElementsAre("main file.txt"));
}

TEST_F(completion, fish_offers_the_same) {
  if (!test::has_program("fish")) GTEST_SKIP() << "fish is not installed";
  EXPECT_THAT(fish("probe "), UnorderedElementsAre("serve", "session", "bench"));
  EXPECT_THAT(fish("probe --log-level info s"), UnorderedElementsAre("serve", "session"));
  EXPECT_THAT(fish("probe session "), UnorderedElementsAre("new", "close"));
  EXPECT_THAT(fish("probe serve --k"), UnorderedElementsAre("--kv", "--keys"));
  EXPECT_THAT(fish("probe serve --kv "), UnorderedElementsAre("f16", "f32", "bf16"));
  EXPECT_THAT(fish("probe serve --log-level d"), ElementsAre("debug"));
  EXPECT_THAT(fish("probe serve --model mai"), ElementsAre("main file.txt"));
  EXPECT_THAT(fish("probe serve --keys m"), ElementsAre("models/"));
  EXPECT_THAT(fish("probe session new mai"), ElementsAre("main file.txt"));
}

TEST_F(completion, zsh_offers_the_same) {
  if (!test::has_program("zsh")) GTEST_SKIP() << "zsh is not installed";
  EXPECT_THAT(zsh("probe "), UnorderedElementsAre("serve", "session", "bench"));
  EXPECT_THAT(zsh("probe session "), UnorderedElementsAre("new", "close"));
  EXPECT_THAT(zsh("probe serve --kv "), UnorderedElementsAre("f16", "f32", "bf16"));
  EXPECT_THAT(zsh("probe serve --kv=b"), UnorderedElementsAre("bf16"));
  EXPECT_THAT(zsh("probe serve --keys mod"), Contains("models"));
  EXPECT_THAT(zsh("probe session new mai"), Contains("main\\ file.txt"));
  EXPECT_THAT(zsh("probe serve --k"), Not(Contains("--json")));
}

}  // namespace
}  // namespace redline::actors::cli
