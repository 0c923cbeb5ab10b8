#include "actors/cli/processes/key_files.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/support/temporary_folder.hpp"

namespace redline::actors::cli {
namespace {

constexpr unsigned nobody = 65534;

bool load_as_worker(const std::string& folder) {
  transport::bridge_options options;
  return static_cast<bool>(load_peer_keys(folder, process_role::worker, options));
}

TEST(key_files, are_taken_only_where_no_other_can_read_the_secret) {
  const test::temporary_folder folder;
  ASSERT_TRUE(make_key_files(folder.path()));
  EXPECT_TRUE(load_as_worker(folder.path()));
  for (const mode_t mode : {0640, 0604, 0660, 0777}) {
    ASSERT_EQ(::chmod((folder / "worker.secret").c_str(), mode), 0);
    EXPECT_FALSE(load_as_worker(folder.path())) << std::oct << mode;
  }
}

TEST(key_files, may_be_roots_and_readable_for_the_group_of_a_process_that_is_not_root) {
  if (::geteuid() != 0) GTEST_SKIP() << "expected to run as root, which owns the file";
  const test::temporary_folder folder;
  ASSERT_TRUE(make_key_files(folder.path()));
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  ASSERT_EQ(::chown((folder / "worker.secret").c_str(), 0, nobody), 0);
  const auto loads_with = [&](mode_t mode) {
    EXPECT_EQ(::chmod((folder / "worker.secret").c_str(), mode), 0);
    bool is_taken = false;
    EXPECT_EXIT(
        {
          const bool is_nobody = ::setgid(nobody) == 0 && ::setuid(nobody) == 0;
          std::_Exit(!is_nobody ? 3 : load_as_worker(folder.path()) ? 0 : 1);
        },
        [&](int status) {
          is_taken = WIFEXITED(status) && WEXITSTATUS(status) == 0;
          return WIFEXITED(status) && WEXITSTATUS(status) <= 1;
        },
        "");
    return is_taken;
  };
  EXPECT_TRUE(loads_with(0440));
  EXPECT_FALSE(loads_with(0460)) << "the group may change it";
  EXPECT_FALSE(loads_with(0444)) << "every user may read it";
}

}  // namespace
}  // namespace redline::actors::cli
