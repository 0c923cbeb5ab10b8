#include "runtime/base/replacement_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_data.hpp"

namespace redline {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::size_t count_files(const test::temporary_folder& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()));
}

TEST(replacement_file, is_seen_when_it_is_complete) {
  const test::temporary_folder folder;
  std::ofstream(folder / "f") << "old";
  ::chmod((folder / "f").c_str(), 0640);
  {
    auto file = std::move(*replacement_file::create(folder / "f"));
    ASSERT_TRUE(file.write(std::as_bytes(std::span(std::string_view("new")))));
    EXPECT_EQ(test::read_file(folder / "f"), "old");
    ASSERT_TRUE(file.commit());
  }
  EXPECT_EQ(test::read_file(folder / "f"), "new");
  struct stat info {};
  ASSERT_EQ(::stat((folder / "f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640u);
  EXPECT_EQ(count_files(folder), 1u);
  ASSERT_TRUE(replace_file(folder / "g", std::string(3 << 20, 'x')));
  EXPECT_EQ(fs::file_size(folder / "g"), 3u << 20);
}

TEST(replacement_file, leaves_nothing_when_it_is_given_up_or_the_process_is_killed) {
  const test::temporary_folder folder;
  { auto file = std::move(*replacement_file::create(folder / "f")); }
  EXPECT_EQ(count_files(folder), 0u);
  const pid_t child = ::fork();
  if (child == 0) {
    auto file = std::move(*replacement_file::create(folder / "f"));
    const std::vector<std::byte> much(5 << 20);
    (void)file.write(much);
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(count_files(folder), 0u);
}

TEST(replacement_file, refuses_what_is_no_regular_file) {
  const test::temporary_folder folder;
  std::ofstream(folder / "victim") << "precious";
  fs::create_symlink(folder / "victim", folder / "link");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const std::pair<std::string, const char*> strange[] = {{folder / "link", "found a symbolic link"},
                                                         {folder / "pipe", "found a device, pipe or socket"},
                                                         {"/dev/null", "found a device, pipe or socket"},
                                                         {folder.path(), "found a folder"},
                                                         {folder / "absent/f", "cannot be written"}};
  for (const auto& [path, why] : strange) {
    const auto outcome = replace_file(path, "new");
    ASSERT_FALSE(outcome) << path;
    EXPECT_THAT(outcome.error().context, HasSubstr(why));
  }
  EXPECT_EQ(test::read_file(folder / "victim"), "precious");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_TRUE(fs::is_fifo(folder / "pipe"));
}

TEST(replacement_file, a_link_under_a_name_that_was_once_used_for_temporary_files_is_left_alone) {
  const test::temporary_folder folder;
  std::ofstream(folder / "victim") << "precious";
  fs::create_symlink(folder / "victim", folder / "f.tmp");
  ASSERT_TRUE(replace_file(folder / "f", "new"));
  EXPECT_EQ(test::read_file(folder / "victim"), "precious");
  EXPECT_EQ(test::read_file(folder / "f"), "new");
}

TEST(replacement_file, two_writers_do_not_meet) {
  const test::temporary_folder folder;
  auto one = std::move(*replacement_file::create(folder / "f"));
  auto two = std::move(*replacement_file::create(folder / "f"));
  ASSERT_TRUE(one.write(std::as_bytes(std::span(std::string_view("one")))));
  ASSERT_TRUE(two.write(std::as_bytes(std::span(std::string_view("two")))));
  ASSERT_TRUE(one.commit());
  EXPECT_EQ(test::read_file(folder / "f"), "one");
  ASSERT_TRUE(two.commit());
  EXPECT_EQ(test::read_file(folder / "f"), "two");
}

TEST(replacement_file, a_lack_of_room_is_told) {
  const test::temporary_folder folder;
  struct rlimit limit {};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    limit.rlim_cur = 1000;
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto outcome = replace_file(folder / "f", std::string(5000, 'x'));
    ::_exit(!outcome && outcome.error().code == errc::io_error ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(count_files(folder), 0u);
}

// ---- files with a user's work --------------------------------------------------------------------------------------

result<void> edit(const std::string& path, std::string_view before, std::string_view after) {
  auto place = folder_entry::of_file(path);
  return place ? replace_edited(std::move(*place), before, after) : result<void>(place.error());
}

struct stat info_of(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return info;
}

TEST(replace_edited, keeps_the_mode_through_links_and_only_of_an_unchanged_file) {
  const test::temporary_folder folder;
  const std::string path = folder / "a.sh";
  std::ofstream(path) << "old\n";
  ::chmod(path.c_str(), 04751);
  fs::create_symlink(path, folder / "link");
  ASSERT_TRUE(edit(folder / "link", "old\n", "new\n"));
  EXPECT_EQ(test::read_file(path), "new\n");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(info_of(path).st_mode & 07777, 04751U);
  EXPECT_THAT(edit(path, "old\n", "newer\n").error().context, HasSubstr("was changed by another program"));
  EXPECT_THAT(edit(path, "new", "newer\n").error().context, HasSubstr("was changed by another program"));
  EXPECT_EQ(test::read_file(path), "new\n");
  fs::remove(path);
  EXPECT_FALSE(edit(path, "new\n", "newer\n"));
  EXPECT_FALSE(fs::exists(path));
}

TEST(replace_edited, keeps_the_owner_and_the_set_id_bits_with_it) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may give files away";
  const test::temporary_folder folder;
  const std::string path = folder / "own.py";
  std::ofstream(path) << "old\n";
  ASSERT_EQ(::chown(path.c_str(), 65534, 65533), 0);
  ::chmod(path.c_str(), 06755);
  ASSERT_TRUE(edit(path, "old\n", "new\n"));
  const auto info = info_of(path);
  EXPECT_EQ(info.st_uid, 65534U);
  EXPECT_EQ(info.st_gid, 65533U);
  EXPECT_EQ(info.st_mode & 07777, 06755U);
  ASSERT_TRUE(replace_file(path, "written"));
  EXPECT_EQ(info_of(path).st_uid, 65534U) << "outputs keep it as well";
  EXPECT_EQ(info_of(path).st_mode & 07777, 06755U);
}

/// Runs in a child process as user 65534, in a folder that every user may write to.
int as_nobody(const std::function<bool()>& holds) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::setgid(65534) == 0 && ::setuid(65534) == 0 && holds() ? 0 : 1);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST(replace_edited, refuses_where_the_owner_cannot_be_kept) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs two users";
  const test::temporary_folder folder;
  ::chmod(folder.path().c_str(), 0777);
  std::ofstream(folder / "a") << "old\n";
  ::chmod((folder / "a").c_str(), 04666);
  EXPECT_EQ(as_nobody([&] {
              const auto outcome = edit(folder / "a", "old\n", "new\n");
              return !outcome && outcome.error().context.find("belongs to user 0") != std::string::npos;
            }),
            0);
  EXPECT_EQ(test::read_file(folder / "a"), "old\n");
  EXPECT_EQ(as_nobody([&] { return replace_file(folder / "a", "output").has_value(); }), 0);
  EXPECT_EQ(info_of(folder / "a").st_uid, 65534U);
  EXPECT_EQ(info_of(folder / "a").st_mode & 07777, 0666U) << "no other user's set-id bit";
  EXPECT_EQ(count_files(folder), 1U);
}

TEST(replace_edited, refuses_a_file_with_several_names) {
  const test::temporary_folder folder;
  std::ofstream(folder / "a") << "old\n";
  fs::create_hard_link(folder / "a", folder / "b");
  EXPECT_THAT(edit(folder / "a", "old\n", "new\n").error().context, HasSubstr("has 2 names (hard links)"));
  EXPECT_EQ(test::read_file(folder / "b"), "old\n");
  EXPECT_EQ(fs::hard_link_count(folder / "a"), 2U);
}

TEST(replace_edited, keeps_attributes_and_access_control_lists) {
  const test::temporary_folder folder;
  const std::string path = folder / "a";
  std::ofstream(path) << "old\n";
  if (::setxattr(path.c_str(), "user.note", "mine", 4, 0) != 0) GTEST_SKIP() << "no attributes on this file system";
  // Version 2; owner rw, user 65534 r, group r, mask r, others none.
  struct entry {
    std::uint16_t tag, permissions;
    std::uint32_t id;
  };
  struct {
    std::uint32_t version = 2;
    entry entries[5] = {{1, 6, ~0U}, {2, 4, 65534}, {4, 4, ~0U}, {16, 4, ~0U}, {32, 0, ~0U}};
  } list;
  const bool has_lists = ::setxattr(path.c_str(), "system.posix_acl_access", &list, sizeof list, 0) == 0;
  ASSERT_TRUE(edit(path, "old\n", "new\n"));
  char note[8] = {};
  EXPECT_EQ(::getxattr(path.c_str(), "user.note", note, sizeof note), 4);
  EXPECT_STREQ(note, "mine");
  if (!has_lists) GTEST_SKIP() << "no access control lists on this file system";
  decltype(list) kept;
  ASSERT_EQ(::getxattr(path.c_str(), "system.posix_acl_access", &kept, sizeof kept), static_cast<ssize_t>(sizeof kept));
  EXPECT_EQ(std::memcmp(&kept, &list, sizeof kept), 0);
}

}  // namespace
}  // namespace redline
