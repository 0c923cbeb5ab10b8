#include "kernels/machine/cgroup.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace redline::kernels {
namespace {

class cgroup : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(::testing::TempDir()) /
            ("cgroup_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  std::filesystem::path root_;
};

TEST_F(cgroup, takes_the_tightest_quota_of_version_2_and_rounds_up) {
  write("a/b/cpu.max", "max 100000\n");
  write("a/cpu.max", "250000 100000\n");
  write("cpu.max", "800000 100000\n");
  EXPECT_EQ(cgroup_cpu_quota("0::/a/b\n", root_), 3U);
  EXPECT_EQ(cgroup_cpu_quota("0::/\n", root_), 8U);
  EXPECT_EQ(cgroup_cpu_quota("0::/not/here\n", root_), 8U) << "a container sees its own group as the root";
}

TEST_F(cgroup, reads_the_quota_of_version_1) {
  write("cpu/job/cpu.cfs_quota_us", "150000\n");
  write("cpu/job/cpu.cfs_period_us", "100000\n");
  write("cpu/cpu.cfs_quota_us", "-1\n");
  write("cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cpu_quota("5:memory:/job\n4:cpu,cpuacct:/job\n", root_), 2U);
  EXPECT_EQ(cgroup_cpu_quota("4:cpu:/\n", root_), 0U);
}

TEST_F(cgroup, finds_no_limit_in_what_it_does_not_understand) {
  write("cpu.max", "many\n");
  write("memory.max", "much\n");
  for (const char* text : {"", "0", "0:", "::", "0::", "garbage\n\n", "1:cpu:", "0::no/slash"}) {
    EXPECT_EQ(cgroup_cpu_quota(text, root_), 0U) << text;
    EXPECT_EQ(cgroup_memory_limit(text, root_), 0U) << text;
  }
}

TEST_F(cgroup, takes_the_tightest_memory_limit_of_either_version) {
  write("a/b/memory.max", "max\n");
  write("a/memory.max", "1073741824\n");
  write("memory/job/memory.limit_in_bytes", "536870912\n");
  write("memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(cgroup_memory_limit("0::/a/b\n", root_), 1U << 30);
  EXPECT_EQ(cgroup_memory_limit("0::/a/b\n5:memory:/job\n4:cpu:/\n", root_), 1U << 29);
  EXPECT_EQ(cgroup_memory_limit("5:memory:/\n", root_), 0U) << "the largest number means no limit";
}

}  // namespace
}  // namespace redline::kernels
