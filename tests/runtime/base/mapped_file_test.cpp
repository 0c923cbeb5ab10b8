#include "runtime/base/mapped_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "tests/support/temporary_folder.hpp"

namespace redline {
namespace {

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(mapped_file, holds_the_bytes_of_a_file_and_of_what_a_link_points_to) {
  const test::temporary_folder folder;
  std::ofstream(folder / "f") << "some bytes";
  std::filesystem::create_symlink(folder / "f", folder / "link");
  EXPECT_EQ(text_of((*mapped_file::open(folder / "f"))->bytes()), "some bytes");
  EXPECT_EQ(text_of((*mapped_file::open(folder / "link"))->bytes()), "some bytes");
}

TEST(mapped_file, an_empty_file_has_no_bytes) {
  const test::temporary_folder folder;
  std::ofstream(folder / "f").close();
  EXPECT_TRUE((*mapped_file::open(folder / "f"))->bytes().empty());
}

TEST(mapped_file, what_is_no_regular_file_is_refused_without_waiting) {
  const test::temporary_folder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const std::string& path : {folder / "absent", folder.path(), folder / "pipe"}) {
    const auto opened = mapped_file::open(path);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, errc::file_unreadable);
    EXPECT_TRUE(opened.error().context.starts_with(path + ": "));
  }
}

TEST(mapped_file, bytes_that_were_dropped_can_be_read_again) {
  const test::temporary_folder folder;
  std::ofstream(folder / "f") << std::string(100000, 'x');
  const auto file = mapped_file::open(folder / "f").value();
  file->drop_from_memory(file->bytes().subspan(5, 50000));
  file->drop_from_memory(file->bytes().subspan(99999, 1));
  EXPECT_EQ(text_of(file->bytes()), std::string(100000, 'x'));
}

TEST(mapped_file, a_file_that_was_cut_ends_the_process_with_words) {
  const test::temporary_folder folder;
  const std::string path = folder / "model.gguf";
  std::ofstream(path) << std::string(100000, 'x');
  const auto file = mapped_file::open(path).value();
  EXPECT_TRUE(file->check_unchanged());
  std::filesystem::resize_file(path, 10);
  EXPECT_EQ(file->check_unchanged().error().code, errc::file_unreadable);
  EXPECT_EXIT(std::_Exit(text_of(file->bytes()).find('y') == 3 ? 1 : 2), ::testing::ExitedWithCode(78),
              "model.gguf: expected 100000 bytes as when it was opened");
}

TEST(mapped_file, a_file_that_is_written_while_it_is_read_is_noticed) {
  const test::temporary_folder folder;
  std::ofstream(folder / "f") << "some bytes";
  const auto file = mapped_file::open(folder / "f").value();
  const auto later = std::filesystem::last_write_time(folder / "f") + std::chrono::seconds(1);
  std::filesystem::last_write_time(folder / "f", later);
  EXPECT_THAT(file->check_unchanged().error().context, ::testing::HasSubstr("was written while it was read"));
  const auto again = mapped_file::open(folder / "f").value();
  std::filesystem::rename(folder / "f", folder / "g");
  std::ofstream(folder / "f") << "other";
  EXPECT_TRUE(again->check_unchanged()) << "a rename leaves the mapped file unchanged";
}

}  // namespace
}  // namespace redline
