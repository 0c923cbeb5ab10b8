#include "actors/cli/review/file_choice.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/support/shell_call.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_data.hpp"

namespace redline::actors::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class choice : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& bytes) {
    const std::string path = folder_ / name;
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  [[nodiscard]] std::string at(const std::string& name) const { return folder_ / name; }
  void git(const std::string& line) {
    const auto r = test::call_shell("cd " + test::shell_word(folder_.path()) + " && git " + line + " 2>&1");
    EXPECT_EQ(r.exit_code, 0) << line << ": " << r.out;
  }
  /// The chosen paths, relative to the folder.
  std::vector<std::string> names(const result<file_choice>& chosen) {
    std::vector<std::string> out;
    EXPECT_TRUE(chosen) << chosen.error().context;
    if (!chosen) return out;
    for (const auto& file : chosen->files)
      out.push_back(fs::path(file.path).lexically_relative(folder_.path()).string());
    return out;
  }

  test::temporary_folder folder_;
};

TEST_F(choice, takes_the_text_files_of_a_folder) {
  write("src/a.py", "a\n");
  write("src/deep/b.py", "\xC3\xA9\n");
  write("src/.hidden/c.py", "c\n");
  write("src/empty.py", "");
  write("src/binary", std::string("a\0b", 3));
  write("src/latin1.txt", "caf\xE9\n");
  write("src/large.txt", std::string(edited_file_bytes_max + 1, 'x'));
  fs::create_symlink(at("src/a.py"), at("src/link.py"));
  const auto chosen = choose_files({at("src")});
  EXPECT_THAT(names(chosen), ElementsAre("src/a.py", "src/deep/b.py"));
  EXPECT_EQ(chosen->files[0].bytes, "a\n");
  EXPECT_THAT(chosen->left_out, ElementsAre(at("src/binary") + ": not text in UTF-8 (byte 1 is 00)",
                                            at("src/large.txt") + ": larger than 1 MiB",
                                            at("src/latin1.txt") + ": not text in UTF-8 (byte 3 is E9)"));
}

TEST_F(choice, a_file_that_is_named_must_be_one_that_can_be_edited) {
  const auto a = write("a.py", "a\n");
  EXPECT_THAT(names(choose_files({a, at("./a.py"), at(".")})), ElementsAre("a.py"));  // named three times, chosen once
  EXPECT_THAT(choose_files({write("binary", std::string(1, '\0'))}).error().context, HasSubstr("not text in UTF-8"));
  EXPECT_THAT(choose_files({write("large", std::string(edited_file_bytes_max + 1, 'x'))}).error().context,
              HasSubstr("larger than 1 MiB"));
  EXPECT_THAT(choose_files({"/dev/null"}).error().context, HasSubstr("expected a file or a folder"));
}

TEST_F(choice, has_limits) {
  for (std::size_t i = 0; i <= edited_files_max; ++i) write("many/" + std::to_string(i), "x\n");
  EXPECT_THAT(choose_files({at("many")}).error().context,
              HasSubstr("expected at most 256 files with a total of 16 MiB"));
  for (std::size_t i = 0; i <= edited_bytes_max / edited_file_bytes_max; ++i) {
    write("large/" + std::to_string(i), std::string(edited_file_bytes_max, 'x'));
  }
  EXPECT_THAT(choose_files({at("large")}).error().context, HasSubstr("name fewer files"));
}

TEST_F(choice, leaves_out_what_git_ignores) {
  if (!test::has_program("git")) GTEST_SKIP() << "git is not installed";
  git("init -q .");
  write(".gitignore", "build/\n*.log\n");
  write("src/known.py", "a\n");
  write("src/new.py", "a\n");
  write("src/a.log", "a\n");
  write("src/build/b.py", "a\n");
  git("add src/known.py");
  write("src/gone.py", "a\n");
  git("add src/gone.py");
  fs::remove(at("src/gone.py"));
  EXPECT_THAT(names(choose_files({at("src")})), ElementsAre("src/known.py", "src/new.py"));
  EXPECT_THAT(names(choose_files({at("src/a.log")})), ElementsAre("src/a.log"));  // named explicitly
}

TEST_F(choice, does_not_guess_where_git_cannot_tell) {
  if (!test::has_program("git")) GTEST_SKIP() << "git is not installed";
  write("src/a.py", "a\n");
  write(".git", "no repository\n");
  EXPECT_THAT(choose_files({at("src")}).error().context, HasSubstr("git could not list the files"));
}

TEST_F(choice, takes_files_with_staged_changes) {
  if (!test::has_program("git")) GTEST_SKIP() << "git is not installed";
  git("init -q .");
  write("src/staged.py", "a\n");
  write("src/other.py", "a\n");
  write("docs/staged.md", "a\n");
  git("add src/staged.py docs/staged.md");
  const fs::path here = fs::current_path();
  fs::current_path(folder_.path());
  const auto all = choose_staged_files({});
  const auto below = choose_staged_files({"src"});
  fs::current_path(here);
  ASSERT_TRUE(all && below);
  ASSERT_EQ(all->files.size(), 2U);
  EXPECT_EQ(all->files[0].path, "docs/staged.md");
  EXPECT_EQ(all->files[1].path, "src/staged.py");
  ASSERT_EQ(below->files.size(), 1U);
  EXPECT_EQ(below->files[0].path, "src/staged.py");
}

TEST_F(choice, leaves_out_what_is_behind_a_link) {
  if (!test::has_program("git")) GTEST_SKIP() << "git is not installed";
  write("out/x.py", "SECRET\n");
  write("repo/a/x.py", "ours\n");
  write("repo/b.py", "ours\n");
  git("init -q repo");
  git("-C repo add -A");
  fs::remove_all(at("repo/a"));
  fs::create_directory_symlink(at("out"), at("repo/a"));
  const auto chosen = choose_files({at("repo")});
  EXPECT_THAT(names(chosen), ElementsAre("repo/b.py"));
  ASSERT_EQ(chosen->left_out.size(), 1U);
  EXPECT_THAT(chosen->left_out[0], HasSubstr("repo/a/x.py: it is reached by a symbolic link"));
}

TEST_F(choice, writes_nothing_behind_a_link_that_came_meanwhile) {
  write("out/x.py", "ours\n");
  write("in/a/x.py", "ours\n");
  const auto chosen = choose_files({at("in")});
  ASSERT_EQ(chosen->files.size(), 1U);
  EXPECT_TRUE(chosen->files[0].place());
  fs::remove_all(at("in/a"));
  fs::create_directory_symlink(at("out"), at("in/a"));
  EXPECT_FALSE(chosen->files[0].place());
}

TEST_F(choice, runs_nothing_that_a_repository_configures) {
  if (!test::has_program("git")) GTEST_SKIP() << "git is not installed";
  git("init -q .");
  write("a.py", "a\n");
  git("add a.py");
  const std::string ran = at("PWNED");
  for (const std::string key : {"core.fsmonitor", "diff.external", "core.sshCommand", "core.pager", "filter.x.clean"}) {
    git("config " + key + " " + test::shell_word("touch " + test::shell_word(ran) + "; false"));
  }
  write("hooks/post-index-change", "#!/bin/sh\ntouch " + test::shell_word(ran) + "\n");
  fs::permissions(at("hooks/post-index-change"), fs::perms::owner_all);
  git("-c core.fsmonitor=false config core.hooksPath hooks");
  EXPECT_THAT(names(choose_files({folder_.path()})), ElementsAre("a.py", "hooks/post-index-change"));
  const fs::path here = fs::current_path();
  fs::current_path(folder_.path());
  EXPECT_TRUE(choose_staged_files({}));
  fs::current_path(here);
  EXPECT_FALSE(fs::exists(ran));
}

}  // namespace
}  // namespace redline::actors::cli
