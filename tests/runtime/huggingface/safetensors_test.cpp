#include "runtime/huggingface/safetensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "tests/support/hf_model.hpp"
#include "tests/support/temporary_folder.hpp"

namespace redline::huggingface {
namespace {

using test::safetensors_bytes;
using testing::HasSubstr;

std::string refusal(const std::string& bytes) {
  const auto file = safetensors_file::from_bytes(std::as_bytes(std::span(bytes)), "m.safetensors");
  if (file) return "none";
  EXPECT_TRUE(file.error().context.starts_with("m.safetensors: ")) << file.error().context;
  return file.error().context;
}
std::string refusal(const std::string& header, std::size_t data_bytes) {
  return refusal(safetensors_bytes(header, std::string(data_bytes, 'd')));
}
std::string entry(const std::string& type, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

TEST(safetensors, tensors_are_views_into_the_file) {
  const std::string bytes =
      safetensors_bytes(R"({"__metadata__":{"format":"pt"},"a":)" + entry("F16", "[1,2]", "[0,4]") + R"(,"n":)" +
                            entry("I64", "[]", "[4,12]") + R"(,"empty":)" + entry("F32", "[3,0]", "[4,4]") + "}   ",
                        "abcdefghijkl");
  const auto file = safetensors_file::from_bytes(std::as_bytes(std::span(bytes)), "m.safetensors").value();
  ASSERT_EQ(file->tensors().size(), 3U);
  const safetensor& a = file->tensors().at("a");
  EXPECT_EQ(a.type, "F16");
  EXPECT_EQ(a.shape, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(static_cast<const void*>(a.bytes.data()), bytes.data() + bytes.size() - 12);
  EXPECT_EQ(a.bytes.size(), 4U);
  EXPECT_TRUE(file->tensors().at("n").shape.empty());
  EXPECT_TRUE(file->tensors().at("empty").bytes.empty());
}

TEST(safetensors, a_file_is_mapped) {
  const test::temporary_folder folder;
  std::ofstream(folder / "f", std::ios::binary)
      << safetensors_bytes(R"({"a":)" + entry("U8", "[2]", "[0,2]") + "}", "xy");
  const auto file = safetensors_file::open(folder / "f").value();
  const safetensor& a = file->tensors().at("a");
  file->drop_from_memory(a);
  EXPECT_EQ(a.bytes[1], std::byte{'y'});
  EXPECT_FALSE(safetensors_file::open(folder / "absent"));
}

TEST(safetensors, header_lengths_beyond_the_file_or_the_limit_are_refused) {
  const std::string wanted = "header length: expected 1 to ";
  EXPECT_THAT(refusal(""), HasSubstr(wanted + "0"));
  EXPECT_THAT(refusal("1234567"), HasSubstr(wanted + "0"));
  EXPECT_THAT(refusal(std::string(8, '\0')), HasSubstr("found 0"));
  EXPECT_THAT(refusal(std::string(8, '\xff') + "{}"), HasSubstr(wanted + "2 (the bytes left in the file"));
  const std::uint64_t huge = 40U << 20;
  std::string bytes(huge + 8, ' ');
  std::memcpy(bytes.data(), &huge, sizeof huge);
  EXPECT_THAT(refusal(bytes), HasSubstr(wanted + "33554432"));
}

TEST(safetensors, headers_that_are_no_object_of_objects_are_refused) {
  EXPECT_THAT(refusal("[]", 0), HasSubstr("expected an object, found an array of 0"));
  EXPECT_THAT(refusal("{", 0), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("{} x", 0), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(R"({"a":1})", 0), HasSubstr("'a': expected an object, found 1"));
  EXPECT_THAT(refusal(std::string(1000, '['), 0), HasSubstr("nested deeper than 32 levels"));
  EXPECT_THAT(refusal("{\"a\xff\":1}", 0), HasSubstr("not valid JSON"));
  const std::string one = entry("U8", "[1]", "[0,1]");
  EXPECT_THAT(refusal(R"({"a":)" + one + R"(,"a":)" + one + "}", 1), HasSubstr("the member 'a' is repeated"));
  EXPECT_THAT(refusal(R"({"a\n\u001b":1})", 0), HasSubstr("'a\\x0a\\x1b'"));
}

TEST(safetensors, fields_that_are_missing_or_of_another_kind_are_refused) {
  const auto of = [](const std::string& object) { return refusal(R"({"a":)" + object + "}", 4); };
  EXPECT_THAT(of("{}"), HasSubstr("'a'.dtype: expected a string, found nothing"));
  EXPECT_THAT(of(R"({"dtype":3})"), HasSubstr("'a'.dtype: expected a string, found 3"));
  EXPECT_THAT(of(entry("Q9", "[1]", "[0,4]")), HasSubstr("'a'.dtype: unknown type 'Q9'"));
  EXPECT_THAT(of(entry("F32", "4", "[0,4]")), HasSubstr("'a'.shape: expected an array, found 4"));
  EXPECT_THAT(of(entry("F32", "[-1]", "[0,4]")), HasSubstr("'a'.shape: expected whole numbers, found -1"));
  EXPECT_THAT(of(entry("F32", "[1.0]", "[0,4]")), HasSubstr("'a'.shape: expected whole numbers, found 1.0"));
  EXPECT_THAT(of(entry("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]")), HasSubstr("expected at most 8 numbers, found 9"));
  EXPECT_THAT(of(entry("F32", "[1]", "[0]")), HasSubstr("expected a begin and an end within 4 bytes, found [0]"));
  EXPECT_THAT(of(entry("F32", "[1]", "[0,2,4]")), HasSubstr("expected at most 2 numbers"));
  EXPECT_THAT(of(entry("F32", "[1]", R"(["0",4])")), HasSubstr("expected whole numbers, found '0'"));
}

TEST(safetensors, ranges_that_do_not_fit_the_file_or_the_shape_are_refused) {
  const auto of = [](const std::string& object) { return refusal(R"({"a":)" + object + "}", 8); };
  EXPECT_THAT(of(entry("F32", "[1]", "[8,12]")), HasSubstr("within 8 bytes, found [8, 12]"));
  EXPECT_THAT(of(entry("F32", "[1]", "[4,0]")), HasSubstr("within 8 bytes, found [4, 0]"));
  EXPECT_THAT(of(entry("F32", "[1]", "[18446744073709551612,18446744073709551615]")), HasSubstr("within 8 bytes"));
  EXPECT_THAT(of(entry("F32", "[1]", "[0,8]")), HasSubstr("expected 4 bytes for F32 [1], found 8"));
  EXPECT_THAT(of(entry("BF16", "[2,2]", "[0,4]")), HasSubstr("expected 8 bytes for BF16 [2, 2], found 4"));
  EXPECT_THAT(of(entry("F32", "[4294967296,4294967296]", "[0,0]")), HasSubstr("expected fewer than 2^64 bytes"));
}

TEST(safetensors, tensors_must_cover_the_data_once) {
  const auto two = [](const std::string& a, const std::string& b, std::size_t bytes) {
    return refusal(R"({"a":)" + entry("U8", "[4]", a) + R"(,"b":)" + entry("U8", "[4]", b) + "}", bytes);
  };
  EXPECT_EQ(two("[4,8]", "[0,4]", 8), "none");
  EXPECT_THAT(two("[0,4]", "[2,6]", 6), HasSubstr("'b'.data_offsets: expected to begin at 4"));
  EXPECT_THAT(two("[0,4]", "[0,4]", 4), HasSubstr("'b'.data_offsets: expected to begin at 4"));
  EXPECT_THAT(two("[0,4]", "[5,9]", 9), HasSubstr("'b'.data_offsets: expected to begin at 4"));
  EXPECT_THAT(two("[0,4]", "[4,8]", 9), HasSubstr("found 1 bytes after it"));
}

TEST(safetensors, time_grows_no_faster_than_the_number_of_tensors) {
  const auto seconds = [](std::size_t count) {
    std::string header = "{";
    for (std::size_t i = 0; i < count; ++i) {
      header += (i == 0 ? "" : ",") + ("\"model.layers." + std::to_string(i) + ".weight\":") +
                entry("U8", "[1]", "[" + std::to_string(i) + "," + std::to_string(i + 1) + "]");
    }
    const std::string bytes = safetensors_bytes(header + "}", std::string(count, 'd'));
    const auto began = std::chrono::steady_clock::now();
    const auto file = safetensors_file::from_bytes(std::as_bytes(std::span(bytes)), "m.safetensors");
    EXPECT_TRUE(file && (*file)->tensors().size() == count);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  };
  const double few = seconds(5'000);
  EXPECT_LT(seconds(40'000), 40 * few + 0.5) << "eight times the tensors";
}

}  // namespace
}  // namespace redline::huggingface
