#include "runtime/base/folder_entry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.hpp"

namespace redline {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

void write(const std::string& path, const std::string& bytes) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << bytes;
}

TEST(folder_entry, reads_regular_files_up_to_a_limit) {
  const test::temporary_folder folder;
  write(folder / "a", std::string(200'000, 'x'));
  const auto place = folder_entry::at(folder / "a");
  ASSERT_TRUE(place);
  EXPECT_EQ(place->read(1 << 20)->bytes, std::string(200'000, 'x'));
  EXPECT_EQ(place->read(70'000)->bytes.size(), 70'000U);
  EXPECT_EQ(place->read(0)->bytes, "");
  fs::create_symlink(folder / "a", folder / "link");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const auto* name : {"link", "pipe", "absent"}) {
    const auto found = folder_entry::at(folder / name)->read(10);
    ASSERT_FALSE(found) << name;
    EXPECT_EQ(found.error().code, errc::file_unreadable);
  }
  EXPECT_THAT(folder_entry::at(folder / "pipe")->read(10).error().context, HasSubstr("expected a regular file"));
  EXPECT_EQ(folder_entry::of_file(folder / "link")->read(1)->bytes, "x")
      << "a link that is named explicitly is followed";
  EXPECT_FALSE(folder_entry::of_file(folder / "absent"));
  EXPECT_FALSE(folder_entry::at(folder / "absent/a"));
}

TEST(folder_entry, never_leads_out_of_its_folder) {
  const test::temporary_folder folder;
  write(folder / "out/x", "secret");
  write(folder / "in/deep/x", "ours");
  fs::create_directory_symlink(folder / "out", folder / "in/link");
  const std::string in = folder / "in";
  EXPECT_EQ(folder_entry::beneath(in, "deep/x")->read(10)->bytes, "ours");
  EXPECT_EQ(folder_entry::beneath(in, "./deep//x")->read(10)->bytes, "ours");
  for (const std::string way : {"link/x", "../out/x", "deep/../../out/x", "/etc/passwd", "", ".", "deep/x/y"}) {
    const auto place = folder_entry::beneath(in, way);
    ASSERT_FALSE(place) << way;
    EXPECT_EQ(place.error().code, errc::invalid_argument) << way;
  }
  EXPECT_EQ(folder_entry::beneath(in, "absent/x").error().code, errc::io_error);
}

TEST(folder_entry, stays_in_the_folder_whatever_becomes_of_the_path) {
  const test::temporary_folder folder;
  write(folder / "a/x", "ours");
  write(folder / "b/x", "secret");
  const auto place = folder_entry::beneath(folder.path(), "a/x");
  fs::rename(folder / "a", folder / "moved");
  fs::create_directory_symlink(folder / "b", folder / "a");
  EXPECT_EQ(place->read(10)->bytes, "ours");
}

}  // namespace
}  // namespace redline
