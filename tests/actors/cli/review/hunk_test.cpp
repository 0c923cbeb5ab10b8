#include "actors/cli/review/hunk.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "tests/support/shell_call.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_data.hpp"

namespace redline::actors::cli {
namespace {

using ::testing::HasSubstr;
using kind = text::diff_line::kind;

std::string numbered(int from, int to) {
  std::string out;
  for (int i = from; i <= to; ++i) out += "line " + std::to_string(i) + "\n";
  return out;
}

TEST(hunk, changes_whose_surroundings_meet_are_one) {
  const std::string before = numbered(1, 30);
  std::string after = before;
  after.replace(after.find("line 5\n"), 7, "FIVE\n");
  after.replace(after.find("line 11\n"), 8, "ELEVEN\n");
  after.replace(after.find("line 25\n"), 8, "");
  const auto hunks = hunks_of(before, after);
  ASSERT_EQ(hunks.size(), 2U);
  EXPECT_EQ(heading_of(hunks[0]), "@@ -2,13 +2,13 @@");
  EXPECT_EQ(heading_of(hunks[1]), "@@ -22,7 +22,6 @@");
  EXPECT_EQ(hunks_of(before, before).size(), 0U);
  EXPECT_EQ(with_hunks(before, hunks), after);
  EXPECT_EQ(with_hunks(before, {}), before);
  // Only the second hunk is applied.
  EXPECT_EQ(with_hunks(before, {hunks[1]}), numbered(1, 24) + numbered(26, 30));
}

TEST(hunk, a_patch_counts_the_lines_that_hunks_before_it_add) {
  const std::string before = numbered(1, 30);
  const std::string after = "new\nnewer\n" + numbered(1, 29) + "last";
  const auto hunks = hunks_of(before, after);
  EXPECT_EQ(patch_of("a.txt", hunks),
            "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,5 @@\n+new\n+newer\n line 1\n line 2\n line 3\n"
            "@@ -27,4 +29,4 @@\n line 27\n line 28\n line 29\n-line 30\n+last\n\\ No newline at end of file\n");
  EXPECT_EQ(patch_of("a.txt", {}), "");
}

TEST(hunk, on_a_terminal_control_bytes_are_shown) {
  const auto hunks = hunks_of("", "a\033[2Jb\tc\n");
  EXPECT_EQ(body_of(hunks[0], true), "\033[32m+a^[[2Jb\tc\033[0m\n");
  EXPECT_EQ(body_of(hunks[0], false), "+a\033[2Jb\tc\n");
}

/// Creates a repository with one file and lets git apply the patch from the folder of that file.
std::string applied_by_git(const std::string& name, const std::string& before, const std::string& patch) {
  const test::temporary_folder folder;
  std::filesystem::create_directories(folder / "sub");
  std::ofstream(folder / ("sub/" + name)) << before;
  std::ofstream(folder / "the.patch") << patch;
  const auto r = test::call_shell("cd " + test::shell_word(folder / "sub") +
                                  " && git init -q .. 2>&1 && git apply ../the.patch 2>&1");
  EXPECT_EQ(r.exit_code, 0) << r.out << patch;
  return test::read_file(folder / ("sub/" + name));
}

TEST(hunk, git_applies_the_patch) {
  if (!test::has_program("git")) GTEST_SKIP() << "git is not installed";
  struct change {
    std::string name, before, after;
  };
  for (const change& c :
       {change{"plain.txt", numbered(1, 30), numbered(3, 12) + "x\n" + numbered(14, 30)},
        change{"with blank.txt", "a\n", "b\n"}, change{"caf\xC3\xA9 \"q\" \\ tab\t.txt", "a\n", "b\n"},
        change{"no_end.txt", "a\nb", "a\nc"}, change{"end_added.txt", "a\nb", "a\nb\n"},
        change{"end_taken.txt", "a\nb\n", "a\nb"}, change{"emptied.txt", "a\nb\n", ""},
        change{"filled.txt", "", "a\nb\n"}, change{"returns.txt", "a\r\nb\r\n", "a\r\nc\r\n"}}) {
    const auto patch = patch_of(c.name, hunks_of(c.before, c.after));
    if (c.after.empty() || c.before.empty())
      continue;  // git applies a patch without a header only to an existing, non-empty file
    EXPECT_EQ(applied_by_git(c.name, c.before, patch), c.after) << c.name;
  }
}

TEST(hunk, any_choice_of_hunks_makes_the_file_that_its_patch_makes) {
  if (!test::has_program("git")) GTEST_SKIP() << "git is not installed";
  std::mt19937 random(7);
  for (int round = 0; round < 12; ++round) {
    std::string before;
    std::string after;
    for (int i = 0; i < 60; ++i) {
      const std::string line = "line " + std::to_string(random() % 20) + "\n";
      before += line;
      const auto what = random() % 12;
      if (what != 0) after += line;
      if (what == 1) after += "new\n";
    }
    std::vector<hunk> taken;
    for (const hunk& h : hunks_of(before, after)) {
      if (random() % 2 == 0) taken.push_back(h);
    }
    if (taken.empty()) continue;
    EXPECT_EQ(applied_by_git("file.txt", before, patch_of("file.txt", taken)), with_hunks(before, taken));
  }
}

TEST(hunk, an_edited_body_is_read) {
  const std::string before = "a\nb\n\nc\n";
  const auto h = hunks_of(before, "a\nB\n\nc\n").front();
  const auto same = read_body(h, "# a comment\n" + body_of(h));
  ASSERT_TRUE(same);
  EXPECT_EQ(same->lines, h.lines);
  // The editor removed the space of the empty line, and the user kept 'b' and added two lines.
  const auto changed = read_body(h, "@@ -1 +1 @@\n a\n b\n+x\n+y\n\n c\n");
  ASSERT_TRUE(changed) << changed.error().context;
  EXPECT_EQ(with_hunks(before, {*changed}), "a\nb\nx\ny\n\nc\n");
}

TEST(hunk, a_body_keeps_that_a_file_has_no_last_line_feed) {
  const auto h = hunks_of("a\nb", "a\nc").front();
  const auto same = read_body(h, body_of(h));
  ASSERT_TRUE(same);
  EXPECT_EQ(same->lines, h.lines);
}

TEST(hunk, an_edited_body_that_does_not_fit_the_file_is_refused) {
  const auto h = hunks_of("a\nb\n", "a\nB\n").front();
  EXPECT_THAT(read_body(h, "").error().context, HasSubstr("found no lines"));
  EXPECT_THAT(read_body(h, "# only\n").error().context, HasSubstr("found no lines"));
  EXPECT_THAT(read_body(h, " a\n-z\n+B\n").error().context, HasSubstr("expected 'b\\x0a', found 'z\\x0a'"));
  EXPECT_THAT(read_body(h, " a\n").error().context, HasSubstr("found the end of the hunk"));
  EXPECT_THAT(read_body(h, "?a\n-b\n").error().context, HasSubstr("expected each line to begin with"));
}

}  // namespace
}  // namespace redline::actors::cli
