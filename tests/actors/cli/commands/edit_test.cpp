// `redline edit` as a process, with the demonstration model: what it prints and what becomes of the files.

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "actors/cli/application.hpp"
#include "actors/cli/command.hpp"
#include "tests/support/shell_call.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_data.hpp"

namespace redline::actors::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// A repository with files to edit.
class edit : public testing::Test {
 protected:
  edit() : before_(test::read_file(test::source_path("bench/demo_files/inventory.py"))) {
    for (const char* name : {"src/a.py", "src/deep/b.py", "src/with blank.py"}) write(name, before_);
    write(".gitignore", "ignored.py\n");
    write("src/ignored.py", before_);
    shell("git init -q . && git add -A && git -c user.name=n -c user.email=e commit -qm all");
  }
  void write(const std::string& name, const std::string& bytes) {
    fs::create_directories(fs::path(folder_ / name).parent_path());
    std::ofstream(folder_ / name) << bytes;
  }
  [[nodiscard]] std::string read(const std::string& name) const { return test::read_file(folder_ / name); }
  test::shell_result shell(const std::string& line) {
    return test::call_shell("cd " + test::shell_word(folder_.path()) + " && " + line);
  }
  /// Runs in the folder; standard error goes into the file "errors".
  [[nodiscard]] std::string command(const std::string& flags) const {
    return test::shell_word(sibling_executable("redline")) + " edit --model " +
           test::shell_word(test::source_path("bench/demo_models/demo-target.gguf")) +
           " --instruction 'Rename the variable `name` to `key`.' " + flags;
  }
  test::shell_result run(const std::string& flags) { return shell(command(flags) + " 2>errors </dev/null"); }
  /// Runs on a terminal with this input; `out` receives the terminal's output.
  test::shell_result run_on_terminal(const std::string& flags, const std::string& input) {
    write("command.sh", command(flags) + " 2>errors\n");
    return shell("printf '" + input + "' | script -qec 'sh command.sh' /dev/null");
  }
  [[nodiscard]] std::string errors() const { return read("errors"); }
  void SetUp() override {
    if (!test::has_program("git")) GTEST_SKIP() << "git is not installed";
  }

  test::temporary_folder folder_;
  std::string before_;
};

TEST_F(edit, of_one_file_shows_the_difference_and_changes_nothing) {
  const auto r = run("src/a.py");
  EXPECT_EQ(r.exit_code, 0) << errors();
  EXPECT_THAT(r.out, StartsWith("--- a/src/a.py\n+++ b/src/a.py\n@@ -17,14 +17,14 @@\n"));
  EXPECT_THAT(r.out, HasSubstr("\n+    def add(self, key, count):\n"));
  EXPECT_EQ(read("src/a.py"), before_);
  write("the.patch", r.out);
  EXPECT_EQ(shell("git apply --check the.patch 2>&1").out, "") << "it is a patch";
  EXPECT_EQ(run("src/a.py --write").exit_code, 0);
  EXPECT_THAT(errors(), HasSubstr("\nwrote src/a.py\n"));
  EXPECT_THAT(read("src/a.py"), HasSubstr("def add(self, key, count)"));
}

TEST_F(edit, that_changes_nothing_says_what_the_demonstration_model_knows) {
  const std::string hint = "this demonstration model knows few phrases; try one like:\n  Rename `old` to `new`.\n";
  for (const char* flags : {"src/a.py", "src/a.py src/deep/b.py"}) {
    const auto line = test::shell_word(sibling_executable("redline")) + " edit --model " +
                      test::shell_word(test::source_path("bench/demo_models/demo-target.gguf")) +
                      " --instruction 'Please leave everything as it is, thank you.' " + flags + " 2>errors </dev/null";
    EXPECT_EQ(shell(line).exit_code, 0) << errors();
    EXPECT_THAT(errors(), HasSubstr(hint));
  }
  EXPECT_EQ(run("src/a.py").exit_code, 0);
  EXPECT_THAT(errors(), Not(HasSubstr("few phrases"))) << "something was changed";
}

TEST_F(edit, that_is_too_long_names_the_file) {
  std::string text;
  for (int i = 0; i < 600; ++i) text += "NUMBER_" + std::to_string(i) + " = " + std::to_string(i) + "\n";
  write("src/long.py", text);
  EXPECT_EQ(run("src/long.py").exit_code, 1);
  EXPECT_THAT(errors(), HasSubstr("src/long.py is too long for the model: This model's maximum context length is 6144 "
                                  "tokens. However, "));
}

TEST_F(edit, of_a_folder_prints_a_patch_that_git_applies) {
  const auto r = run("src");
  EXPECT_EQ(r.exit_code, 0) << errors();
  EXPECT_THAT(errors(), HasSubstr("3 of 3 files"));
  EXPECT_THAT(errors(), HasSubstr("no file was changed"));
  for (const char* name : {"src/a.py", "src/deep/b.py", "src/with blank.py", "src/ignored.py"})
    EXPECT_EQ(read(name), before_);
  write("the.patch", r.out);
  EXPECT_EQ(shell("git apply the.patch 2>&1").out, "");
  EXPECT_THAT(read("src/with blank.py"), HasSubstr("def add(self, key, count)"));
  EXPECT_EQ(read("src/ignored.py"), before_);

  // Each file is edited as if it were the only one.
  write("src/a.py", before_);
  write("src/deep/b.py", before_);
  run("src/deep/b.py --write");
  const std::string alone = read("src/deep/b.py");
  shell("git checkout -q . && git apply the.patch");
  EXPECT_EQ(read("src/deep/b.py"), alone);
}

TEST_F(edit, writes_the_patch_from_the_folder_it_is_in) {
  const auto r = shell("cd src && " + command("a.py --patch ../the.patch") + " 2>&1 && git apply ../the.patch 2>&1");
  EXPECT_EQ(r.exit_code, 0) << r.out;
  EXPECT_THAT(read("the.patch"), StartsWith("--- a/a.py\n+++ b/a.py\n@@ -17,14 +17,14 @@\n"));
  EXPECT_THAT(read("src/a.py"), HasSubstr("def add(self, key, count)"));
}

TEST_F(edit, takes_everything_with_yes) {
  fs::permissions(folder_ / "src/a.py", fs::perms::owner_all);
  EXPECT_EQ(run("src --yes").exit_code, 0) << errors();
  for (const char* name : {"src/a.py", "src/deep/b.py", "src/with blank.py"}) {
    EXPECT_THAT(read(name), HasSubstr("def add(self, key, count)")) << name;
    EXPECT_THAT(errors(), HasSubstr(std::string("wrote ") + name + "\n"));
  }
  EXPECT_EQ(fs::status(folder_ / "src/a.py").permissions(), fs::perms::owner_all);
}

TEST_F(edit, takes_staged_files) {
  write("src/a.py", before_ + "# staged\n");
  shell("git add src/a.py");
  const auto r = run("--staged --patch -");
  EXPECT_EQ(r.exit_code, 0) << errors();
  EXPECT_THAT(r.out, StartsWith("--- a/src/a.py\n"));
  EXPECT_THAT(r.out, Not(HasSubstr("b.py\n")));
  shell("git reset -q --hard");
  EXPECT_EQ(run("--staged").exit_code, exit_usage);
  EXPECT_THAT(errors(), HasSubstr("expected text files with staged changes, found none"));
}

TEST_F(edit, asks_about_each_hunk_on_a_terminal) {
  if (!test::has_program("script")) GTEST_SKIP() << "script is not installed";
  auto r = run_on_terminal("src", "y\\nn\\nq\\n");
  EXPECT_EQ(r.exit_code, 0) << r.out << errors();
  EXPECT_THAT(r.out, HasSubstr("Take this hunk [y,n,a,d,e,q,?]? "));
  EXPECT_THAT(read("src/a.py"), HasSubstr("def add(self, key, count)"));
  EXPECT_EQ(read("src/deep/b.py"), before_);
  EXPECT_EQ(read("src/with blank.py"), before_);

  write("editor.sh", "sed -i 's/key/label/g' \"$1\"\n");
  ::setenv("VISUAL", "sh ./editor.sh", 1);
  r = run_on_terminal("src/deep/b.py --review", "e\\n");
  ::unsetenv("VISUAL");
  EXPECT_THAT(read("src/deep/b.py"), HasSubstr("def add(self, label, count)")) << r.out;
}

TEST_F(edit, says_what_it_cannot_edit_and_goes_on_with_the_rest) {
  write("src/binary", std::string("a\0b", 3));
  std::string large;
  while (large.size() < 900'000) large += before_;
  write("src/large.py", large);  // more than the model's context
  const auto r = run("src --patch -");
  EXPECT_NE(r.exit_code, 0);
  EXPECT_THAT(errors(), HasSubstr("redline: left out src/binary: not text in UTF-8 (byte 1 is 00)\n"));
  EXPECT_THAT(errors(), HasSubstr("redline: src/large.py: "));
  EXPECT_THAT(r.out, HasSubstr("+++ b/src/deep/b.py\n"));
  EXPECT_EQ(run("src/binary src/a.py").exit_code, exit_usage);
  EXPECT_EQ(run("--yes").exit_code, exit_usage);
  EXPECT_THAT(errors(), HasSubstr("expected a FILE to edit or --staged"));
  EXPECT_EQ(run("src --review").exit_code, exit_usage);
  EXPECT_THAT(errors(), HasSubstr("expected a terminal"));
}

TEST_F(edit, prints_a_json_object_for_each_file) {
  const auto r = run("src/a.py src/deep --json");
  EXPECT_EQ(r.exit_code, 0) << errors();
  EXPECT_THAT(r.out, StartsWith("{\"path\":\"src/a.py\",\"text\":"));
  EXPECT_THAT(r.out, HasSubstr("}\n{\"path\":\"src/deep/b.py\",\"text\":"));
}

}  // namespace
}  // namespace redline::actors::cli
