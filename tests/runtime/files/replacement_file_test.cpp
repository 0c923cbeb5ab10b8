#include "runtime/files/replacement_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

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

}  // namespace
}  // namespace redline
