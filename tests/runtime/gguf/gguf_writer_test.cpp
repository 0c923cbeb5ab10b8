#include "runtime/gguf/gguf_writer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/support/test_data.hpp"

namespace redline::gguf {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using buffer = std::vector<std::byte>;

/// A test with a directory that is removed at the end.
class gguf_writer_test : public testing::Test {
 protected:
  gguf_writer_test() : folder_(fs::path(testing::TempDir()) / ("gguf_writer." + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~gguf_writer_test() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }

 private:
  fs::path folder_;
};

buffer counted(std::size_t size) {
  buffer out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<std::byte>(i * 7);
  return out;
}
/// Provides `bytes` in pieces of `piece` bytes.
payload_source in_pieces(buffer bytes, std::size_t piece) {
  return [bytes = std::move(bytes), piece](const payload_sink& put) -> result<void> {
    for (std::size_t i = 0; i < bytes.size(); i += piece) {
      REDLINE_TRY(put(std::span(bytes).subspan(i, std::min(piece, bytes.size() - i))));
    }
    return {};
  };
}
buffer file_bytes(const std::string& path) {
  const std::string text = test::read_file(path);
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

TEST_F(gguf_writer_test, a_streamed_file_has_the_bytes_of_one_made_in_memory) {
  gguf_writer copied, streamed;
  const std::vector<std::uint64_t> first = {5, 3}, second = {64}, third = {1};
  for (gguf_writer* out : {&copied, &streamed}) out->put_string("general.architecture", "llama");
  copied.add_tensor("first", tensor_type::f32, first, counted(60));
  copied.add_tensor("second", tensor_type::q8_0, second, counted(68));
  copied.add_tensor("third", tensor_type::f16, third, counted(2));
  streamed.add_tensor("first", tensor_type::f32, first, 60, in_pieces(counted(60), 7));
  streamed.add_tensor("second", tensor_type::q8_0, second, counted(68));
  streamed.add_tensor("third", tensor_type::f16, third, 2, in_pieces(counted(2), 100));
  std::vector<std::pair<std::uint64_t, std::uint64_t>> seen;
  ASSERT_TRUE(streamed.write(path("s.gguf"), [&](auto done, auto all) { seen.emplace_back(done, all); }));
  EXPECT_EQ(file_bytes(path("s.gguf")), copied.bytes());
  EXPECT_EQ(seen.back(), std::pair(std::uint64_t{130}, std::uint64_t{130}));
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_FALSE(fs::exists(path("s.gguf.tmp")));
}

TEST_F(gguf_writer_test, a_source_that_fails_leaves_the_old_file_alone) {
  std::ofstream(path("x.gguf")) << "old";
  gguf_writer out;
  const std::vector<std::uint64_t> size = {4};
  out.add_tensor("fine", tensor_type::f32, size, counted(16));
  out.add_tensor("bad", tensor_type::f32, size, 16, [](const payload_sink& put) -> result<void> {
    REDLINE_TRY(put(counted(8)));
    return failure{errc::file_malformed, "the shard ends"};
  });
  const auto written = out.write(path("x.gguf"));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error(), (failure{errc::file_malformed, "the shard ends"}));
  EXPECT_EQ(test::read_file(path("x.gguf")), "old");
  EXPECT_FALSE(fs::exists(path("x.gguf.tmp")));
}

TEST_F(gguf_writer_test, a_source_of_another_length_than_promised_is_refused_by_name) {
  for (const std::size_t given : {8U, 20U, 0U}) {
    gguf_writer out;
    const std::vector<std::uint64_t> size = {4};
    out.add_tensor("blk.0.short", tensor_type::f32, size, 16, in_pieces(counted(given), 4));
    const auto written = out.write(path("x.gguf"));
    ASSERT_FALSE(written);
    EXPECT_THAT(written.error().context,
                HasSubstr("'blk.0.short': expected 16 bytes, but its source gave " + std::to_string(given)));
    EXPECT_FALSE(fs::exists(path("x.gguf")));
  }
}

TEST_F(gguf_writer_test, a_place_that_cannot_be_written_is_named) {
  const auto written = gguf_writer().write(path("no/such/folder/x.gguf"));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, errc::io_error);
  EXPECT_THAT(written.error().context, HasSubstr("no/such/folder/x.gguf"));
  EXPECT_THAT(written.error().context, HasSubstr("No such file"));
}

TEST_F(gguf_writer_test, metadata_of_every_type_can_be_copied_from_another_file) {
  gguf_writer out;
  const auto raw = [&](std::string_view key, std::uint32_t type, std::initializer_list<int> bytes) {
    buffer payload;
    for (const int b : bytes) payload.push_back(static_cast<std::byte>(b));
    out.put_raw(key, type, payload);
  };
  raw("u8", 0, {200});
  raw("i8", 1, {200});
  raw("u16", 2, {1, 200});
  raw("i16", 3, {1, 200});
  out.put_u32("u32", 0xfffffff0);
  out.put_i32("i32", -7);
  out.put_f32("f32", 0.1F);
  out.put_bool("flag", true);
  out.put_string("text", "abc");
  out.put_u64("u64", ~std::uint64_t{0});
  raw("i64", 11, {1, 2, 3, 4, 5, 6, 7, 200});
  raw("f64", 12, {1, 2, 3, 4, 5, 6, 7, 60});
  out.put_strings("texts", std::vector<std::string>{"a", "", "bc"});
  out.put_f32s("reals", std::vector<float>{0.1F, -3});
  out.put_i32s("numbers", std::vector<std::int32_t>{-1, 9});
  raw("bytes", 9, {0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 7, 255});
  raw("flags", 9, {7, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0});
  raw("huge", 9, {10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 128});
  const auto file = gguf_file::from_bytes(out.bytes(), "a");
  ASSERT_TRUE(file) << file.error().describe();
  gguf_writer copy;
  for (const auto& [key, value] : (*file)->metadata()) copy.put_value(key, value);
  const auto again = gguf_file::from_bytes(copy.bytes(), "b");
  ASSERT_TRUE(again) << again.error().describe();
  gguf_writer twice;
  for (const auto& [key, value] : (*again)->metadata()) twice.put_value(key, value);
  EXPECT_EQ(copy.bytes(), twice.bytes());
  ASSERT_EQ((*again)->metadata().size(), (*file)->metadata().size());
  for (const auto& [key, value] : (*file)->metadata()) {
    const auto* other = (*again)->find(key);
    ASSERT_NE(other, nullptr) << key;
    EXPECT_EQ(other->type, value.type) << key;
    if (const auto* elements = std::get_if<array>(&value.data)) {
      const auto& copied = std::get<array>(other->data);
      EXPECT_EQ(copied.element_type, elements->element_type) << key;
      EXPECT_EQ(copied.numbers, elements->numbers) << key;
      EXPECT_EQ(copied.strings, elements->strings) << key;
    } else {
      EXPECT_EQ(other->data.index(), value.data.index()) << key;
    }
  }
  EXPECT_EQ((*again)->get_unsigned("u64").value(), ~std::uint64_t{0});
  EXPECT_EQ((*again)->get_float("f32").value(), double{0.1F});
  EXPECT_EQ(std::get<std::int64_t>((*again)->find("i16")->data), -14335);
}

TEST_F(gguf_writer_test, the_largest_64_bit_number_in_an_array_survives_its_double) {
  gguf_writer out;
  out.put_value("n", {value_type::array, array{value_type::u64, {}, {0x1p64, 3}}});
  out.put_value("m", {value_type::array, array{value_type::i64, {}, {0x1p63, -0x1p63}}});
  const auto file = gguf_file::from_bytes(out.bytes(), "a");
  ASSERT_TRUE(file);
  EXPECT_EQ((*file)->get_array("n").value()->numbers, (std::vector<double>{0x1.fffffffffffffp63, 3}));
  EXPECT_EQ((*file)->get_array("m").value()->numbers, (std::vector<double>{0x1.fffffffffffffp62, -0x1p63}));
}

}  // namespace
}  // namespace redline::gguf
