#include "runtime/gguf/gguf_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include "runtime/gguf/gguf_writer.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_data.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace redline::gguf {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using buffer = std::vector<std::byte>;

buffer filled(std::size_t size_bytes, int start) {
  buffer out(size_bytes);
  for (std::size_t i = 0; i < size_bytes; ++i) out[i] = static_cast<std::byte>(start + static_cast<int>(i));
  return out;
}

template<class Number>
buffer bytes_of(std::initializer_list<Number> numbers) {
  const auto bytes = std::as_bytes(std::span(numbers.begin(), numbers.size()));
  return {bytes.begin(), bytes.end()};
}

void add(gguf_writer& out, std::string_view name, tensor_type type, std::vector<std::uint64_t> dimensions,
         const buffer& payload) {
  out.add_tensor(name, type, dimensions, payload);
}

/// A file with one key of most kinds and three tensors.
gguf_writer good() {
  gguf_writer out;
  out.put_string("general.architecture", "llama");
  out.put_u32("u32", 7);
  out.put_u64("u64", 1ULL << 60);
  out.put_i32("i32", -3);
  out.put_f32("f32", 0.5F);
  out.put_bool("flag", true);
  out.put_strings("words", std::vector<std::string>{"a", "", "bc"});
  out.put_i32s("numbers", std::vector<std::int32_t>{-1, 0, 5});
  out.put_f32s("scores", std::vector<float>{-1.5F});
  add(out, "first", tensor_type::f32, {3, 2}, filled(24, 1));
  add(out, "second", tensor_type::q8_0, {64, 2}, filled(4 * 34, 50));
  add(out, "third", tensor_type::f16, {1}, filled(2, 9));
  return out;
}

std::shared_ptr<const gguf_file> opened(const buffer& bytes) {
  auto file = gguf_file::from_bytes(bytes, "test.gguf");
  EXPECT_TRUE(file) << (file ? "" : file.error().describe());
  return file ? *file : nullptr;
}

failure refused(const buffer& bytes) {
  auto file = gguf_file::from_bytes(bytes, "test.gguf");
  EXPECT_FALSE(file) << "the file was accepted";
  return file ? failure{} : file.error();
}

void overwrite(buffer& bytes, std::size_t offset, auto number) {
  ASSERT_LE(offset + sizeof number, bytes.size());
  std::memcpy(bytes.data() + offset, &number, sizeof number);
}

/// The first position of `text`; the length or count before it is 8 bytes earlier.
std::size_t find(const buffer& bytes, std::string_view text) {
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t at = all.find(text);
  EXPECT_NE(at, std::string_view::npos) << text;
  return at;
}

TEST(gguf_file, gives_back_what_the_writer_put_in) {
  const auto file = opened(good().bytes());
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file->version(), 3U);
  EXPECT_EQ(file->path(), "test.gguf");
  EXPECT_EQ(file->metadata().size(), 9U);
  EXPECT_EQ(file->get_string("general.architecture").value(), "llama");
  EXPECT_EQ(file->get_unsigned("u32").value(), 7U);
  EXPECT_EQ(file->get_unsigned("u64").value(), 1ULL << 60);
  EXPECT_EQ(std::get<std::int64_t>(file->find("i32")->data), -3);
  EXPECT_EQ(file->get_float("f32").value(), 0.5);
  EXPECT_EQ(file->get_float("i32").value(), -3.0);
  EXPECT_TRUE(file->get_bool("flag").value());
  EXPECT_THAT(file->get_array("words").value()->strings, testing::ElementsAre("a", "", "bc"));
  EXPECT_THAT(file->get_array("numbers").value()->numbers, testing::ElementsAre(-1, 0, 5));
  EXPECT_EQ(file->get_array("scores").value()->element_type, value_type::f32);

  ASSERT_EQ(file->tensors().size(), 3U);
  const tensor* second = file->find_tensor("second");
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->type, tensor_type::q8_0);
  EXPECT_THAT(second->dimensions, testing::ElementsAre(64, 2));
  EXPECT_EQ(second->element_count(), 128U);
  EXPECT_TRUE(std::ranges::equal(second->bytes, filled(4 * 34, 50)));
  EXPECT_EQ(file->find_tensor("absent"), nullptr);
  EXPECT_EQ(file->find("absent"), nullptr);
}

TEST(gguf_file, opens_version_2_which_has_the_same_layout) {
  buffer bytes = good().bytes();
  overwrite(bytes, 4, std::uint32_t{2});
  EXPECT_EQ(opened(bytes)->version(), 2U);
}

TEST(gguf_file, copies_its_metadata_as_a_file_without_tensors) {
  const auto whole = gguf_file::from_bytes(good().bytes(), "whole");
  ASSERT_TRUE(whole);
  const std::string header = (*whole)->copy_header();
  EXPECT_LT(header.size(), (*whole)->size_bytes());
  const auto bytes = std::as_bytes(std::span(header));
  const auto alone = gguf_file::from_bytes({bytes.begin(), bytes.end()}, "alone");
  ASSERT_TRUE(alone) << alone.error().describe();
  EXPECT_TRUE((*alone)->tensors().empty());
  ASSERT_EQ((*alone)->metadata().size(), (*whole)->metadata().size());
  for (const auto& [key, value] : (*whole)->metadata()) {
    ASSERT_NE((*alone)->find(key), nullptr) << key;
    EXPECT_EQ((*alone)->find(key)->type, value.type) << key;
  }
  EXPECT_EQ((*alone)->copy_header(), header);
}

TEST(gguf_file, copies_its_metadata_with_another_chat_template) {
  gguf_writer out;
  out.put_string("general.architecture", "llama");
  out.put_string("tokenizer.chat_template", "old");
  out.put_string("tokenizer.chat_template.tool_use", "old too");
  out.put_strings("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b"});
  const auto whole = gguf_file::from_bytes(out.bytes(), "whole");
  ASSERT_TRUE(whole) << whole.error().describe();
  const std::string header = (*whole)->copy_header("new");
  const auto bytes = std::as_bytes(std::span(header));
  const auto alone = gguf_file::from_bytes({bytes.begin(), bytes.end()}, "alone");
  ASSERT_TRUE(alone) << alone.error().describe();
  EXPECT_EQ(*(*alone)->get_string("tokenizer.chat_template"), "new");
  EXPECT_EQ((*alone)->find("tokenizer.chat_template.tool_use"), nullptr);
  EXPECT_EQ((*alone)->metadata().size(), 3U);
  EXPECT_NE((*alone)->find("tokenizer.ggml.tokens"), nullptr);
}

TEST(gguf_file, maps_a_file_and_drops_its_pages_without_losing_the_bytes) {
  gguf_writer out;
  add(out, "big", tensor_type::i8, {100000}, filled(100000, 3));
  const auto path = std::filesystem::temp_directory_path() / ("redline_gguf_" + std::to_string(::getpid()) + ".gguf");
  ASSERT_TRUE(out.write(path.string()));
  auto file = gguf_file::open(path.string());
  std::filesystem::remove(path);
  ASSERT_TRUE(file) << file.error().describe();
  const tensor& big = (*file)->tensors().front();
  EXPECT_TRUE(std::ranges::equal(big.bytes, filled(100000, 3)));
  (*file)->drop_from_memory(big);
  EXPECT_TRUE(std::ranges::equal(big.bytes, filled(100000, 3)));
}

TEST(gguf_file, says_which_path_cannot_be_opened) {
  const auto absent = gguf_file::open("/nonexistent/x.gguf");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, errc::file_unreadable);
  EXPECT_THAT(absent.error().context, AllOf(HasSubstr("/nonexistent/x.gguf"), HasSubstr("No such file")));
  const auto folder = gguf_file::open(std::filesystem::temp_directory_path().string());
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, errc::file_unreadable);
}

TEST(gguf_file, typed_access_names_the_key_and_both_kinds) {
  const auto file = opened(good().bytes());
  EXPECT_THAT(file->get_string("absent").error().context, HasSubstr("'absent' is missing"));
  EXPECT_THAT(file->get_string("u32").error().context, HasSubstr("'u32': expected a string, found u32"));
  EXPECT_THAT(file->get_unsigned("i32").error().context, HasSubstr("expected 0 or more, found -3"));
  EXPECT_THAT(file->get_unsigned("f32").error().context, HasSubstr("expected an integer, found f32"));
  EXPECT_THAT(file->get_float("words").error().context, HasSubstr("expected a number, found array"));
  EXPECT_THAT(file->get_bool("u32").error().context, HasSubstr("expected a boolean, found u32"));
  EXPECT_THAT(file->get_array("u32").error().context, HasSubstr("expected an array, found u32"));
}

TEST(gguf_file, a_default_serves_a_missing_key_but_not_a_wrong_type) {
  const auto file = opened(good().bytes());
  EXPECT_EQ(file->get_unsigned("absent", 4).value(), 4U);
  EXPECT_EQ(file->get_unsigned("u32", 4).value(), 7U);
  EXPECT_EQ(file->get_float("absent", 0.25).value(), 0.25);
  EXPECT_TRUE(file->get_bool("absent", true).value());
  EXPECT_FALSE(file->get_unsigned("words", 4));
  EXPECT_FALSE(file->get_float("words", 4));
  EXPECT_FALSE(file->get_bool("words", false));
}

TEST(gguf_file, opens_tensor_types_it_only_knows_the_size_of) {
  gguf_writer out;
  add(out, "w", static_cast<tensor_type>(20), {32}, filled(18, 0));
  const auto file = opened(out.bytes());
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(name_of(file->tensors().front().type), "IQ4_NL");
  EXPECT_EQ(name_of(tensor_type::q4_k), "Q4_K");
  EXPECT_EQ(name_of(static_cast<tensor_type>(99)), "type 99");
}

TEST(gguf_file, obeys_the_alignment_the_file_states) {
  gguf_writer out;
  out.put_u32("general.alignment", 256);
  out.align_to(256);
  add(out, "a", tensor_type::i8, {1}, filled(1, 5));
  add(out, "b", tensor_type::i8, {2}, filled(2, 8));
  const auto file = opened(out.bytes());
  ASSERT_NE(file, nullptr);
  EXPECT_TRUE(std::ranges::equal(file->find_tensor("b")->bytes, filled(2, 8)));
}

struct broken_file {
  const char* what;
  std::function<buffer()> make;
  errc code;
  std::vector<const char*> tokenizer;
};

buffer with_alignment(std::uint32_t alignment) {
  gguf_writer out;
  out.put_u32("general.alignment", alignment);
  return out.bytes();
}

buffer with_tensor(std::string_view name, std::uint32_t type, std::vector<std::uint64_t> dimensions,
                   std::size_t payload_bytes) {
  gguf_writer out;
  add(out, name, static_cast<tensor_type>(type), std::move(dimensions), buffer(payload_bytes));
  return out.bytes();
}

buffer with_raw(std::uint32_t type, const buffer& payload) {
  gguf_writer out;
  out.put_raw("key", type, payload);
  return out.bytes();
}

/// `good()` with one number replaced, `distance` bytes after the start of `text`.
template<class Number>
buffer changed(std::string_view text, std::ptrdiff_t distance, Number number) {
  buffer bytes = good().bytes();
  overwrite(bytes, static_cast<std::size_t>(static_cast<std::ptrdiff_t>(find(bytes, text)) + distance), number);
  return bytes;
}

template<class Number>
buffer changed(std::size_t offset, Number number) {
  buffer bytes = good().bytes();
  overwrite(bytes, offset, number);
  return bytes;
}

buffer with_two_keys() {
  gguf_writer out;
  out.put_u32("twice", 1);
  out.put_u32("twice", 2);
  return out.bytes();
}

buffer with_two_tensors() {
  gguf_writer out;
  add(out, "w", tensor_type::i8, {1}, filled(1, 0));
  add(out, "w", tensor_type::i8, {1}, filled(1, 0));
  return out.bytes();
}

TEST(gguf_file, refuses_broken_files_and_says_why) {
  constexpr std::uint64_t huge = 0xFFFFFFFFFFFFFFF0ULL;
  // After a name of n bytes: the count of dimensions at n, the dimensions from n + 4, then type and offset.
  const std::vector<broken_file> table = {
      {"empty", [] { return buffer(); }, errc::file_malformed, {"the file is empty"}},
      {"magic", [] { return changed<char>(0, 'X'); }, errc::file_malformed, {"magic", "not a GGUF file"}},
      {"version", [] { return changed<std::uint32_t>(4, 9); }, errc::unsupported_format, {"version", "found 9"}},
      {"old version", [] { return changed<std::uint32_t>(4, 1); }, errc::unsupported_format, {"version", "found 1"}},
      {"big-endian", [] { return changed<std::uint32_t>(4, 0x03000000); }, errc::unsupported_format, {"big-endian"}},
      {"tensor count", [] { return changed(8, huge); }, errc::file_malformed, {"tensor count", "cannot fit"}},
      {"metadata count", [] { return changed(16, huge); }, errc::file_malformed, {"metadata count", "cannot fit"}},
      {"key length", [] { return changed(24, huge); }, errc::file_malformed, {"metadata key 0", "expected 18446744073709551600 bytes"}},
      {"value cut short", [] { return with_raw(0, {}); }, errc::file_malformed, {"'key'", "expected 1 bytes"}},
      {"empty key",
       [] {
         gguf_writer out;
         out.put_u32("", 1);
         return out.bytes();
       },
       errc::file_malformed,
       {"metadata key 0", "is empty"}},
      {"key with NUL", [] { return changed<char>("u32", 1, '\0'); }, errc::file_malformed, {"NUL", "'u\\x002'"}},
      {"overlong key",
       [] {
         gguf_writer out;
         out.put_u32(std::string(70000, 'k'), 1);
         return out.bytes();
       },
       errc::file_malformed,
       {"70000 bytes", "at most 65535"}},
      {"duplicate key", with_two_keys, errc::file_malformed, {"'twice'", "appears twice"}},
      {"value type", [] { return with_raw(77, {}); }, errc::file_malformed, {"'key'", "unknown value type 77"}},
      {"boolean", [] { return with_raw(7, bytes_of<char>({2})); }, errc::file_malformed, {"'key'", "found 2"}},
      {"string length",
       [] { return with_raw(8, bytes_of<std::uint64_t>({100})); },
       errc::file_malformed,
       {"'key'", "string length", "expected 100 bytes", "0 left"}},
      {"array of arrays",
       [] {
         return with_raw(9, bytes_of<std::uint32_t>({9, 1, 0, 0, 0, 0}));
       },
       errc::unsupported_format,
       {"'key'", "arrays of arrays"}},
      {"array element type",
       [] {
         return with_raw(9, bytes_of<std::uint32_t>({13, 1, 0}));
       },
       errc::file_malformed,
       {"'key'", "unknown value type 13"}},
      {"array length",
       [] {
         return with_raw(9, bytes_of<std::uint32_t>({4, 0xFFFFFFFF, 0xFFFFFFFF}));
       },
       errc::file_malformed,
       {"'key'", "array length 18446744073709551615"}},
      {"array of strings cut short",
       [] {
         return with_raw(9, bytes_of<std::uint32_t>({8, 2, 0, 0, 0, 9, 0, 0}));
       },
       errc::file_malformed,
       {"'key'", "string length", "expected 9 bytes"}},
      {"alignment 0", [] { return with_alignment(0); }, errc::file_malformed, {"general.alignment", "found 0"}},
      {"alignment 48", [] { return with_alignment(48); }, errc::file_malformed, {"general.alignment", "found 48"}},
      {"alignment 2^20",
       [] { return with_alignment(1 << 20); },
       errc::file_malformed,
       {"general.alignment", "1048576"}},
      {"alignment text",
       [] {
         gguf_writer out;
         out.put_string("general.alignment", "32");
         return out.bytes();
       },
       errc::file_malformed,
       {"general.alignment", "expected an integer, found string"}},
      {"unnamed tensor", [] { return with_tensor("", 0, {1}, 4); }, errc::file_malformed, {"tensor 0: name", "empty"}},
      {"overlong tensor name",
       [] { return with_tensor(std::string(65, 'n'), 0, {1}, 4); },
       errc::file_malformed,
       {"tensor 0: name", "65 bytes", "at most 64"}},
      {"tensor name with NUL",
       [] { return changed<char>("second", 2, '\0'); },
       errc::file_malformed,
       {"tensor 1: name", "NUL"}},
      {"duplicate tensor", with_two_tensors, errc::file_malformed, {"tensor 1 'w'", "appears twice"}},
      {"no dimensions", [] { return with_tensor("w", 0, {}, 64); }, errc::file_malformed, {"tensor 0 'w'", "found 0"}},
      {"five dimensions",
       [] {
         return with_tensor("w", 0, {1, 1, 1, 1, 1}, 4);
       },
       errc::file_malformed,
       {"tensor 0 'w'", "expected 1 to 4 dimensions, found 5"}},
      {"dimension 0",
       [] {
         return with_tensor("w", 0, {4, 0}, 4);
       },
       errc::file_malformed,
       {"'w'", "dimension of 0"}},
      {"elements overflow",
       [] {
         return with_tensor("w", 0, {1ULL << 40, 1ULL << 40}, 4);
       },
       errc::file_malformed,
       {"'w'", "dimensions overflows"}},
      {"bytes overflow",
       [] { return with_tensor("w", 28, {1ULL << 62}, 4); },
       errc::file_malformed,
       {"'w'", "size in bytes overflows"}},
      {"unknown type",
       [] { return with_tensor("w", 99, {32}, 64); },
       errc::unsupported_format,
       {"tensor 0 'w'", "unknown tensor type 99"}},
      {"broken block",
       [] { return with_tensor("w", 8, {48}, 64); },
       errc::file_malformed,
       {"'w'", "rows of 48 elements", "blocks of 32 (Q8_0)"}},
      {"misaligned offset",
       [] { return changed<std::uint64_t>("second", 6 + 4 + 16 + 4, 40); },
       errc::file_malformed,
       {"tensor 1 'second'", "offset 40", "alignment 32"}},
      {"offset outside",
       [] { return changed<std::uint64_t>("second", 6 + 4 + 16 + 4, 1 << 20); },
       errc::file_malformed,
       {"tensor 1 'second'", "offset 1048576", "exceed the data section"}},
      {"offset near the end of numbers",
       [] { return changed<std::uint64_t>("second", 6 + 4 + 16 + 4, 0xFFFFFFFFFFFFFFE0ULL); },
       errc::file_malformed,
       {"tensor 1 'second'", "exceed the data section"}},
      {"overlap",
       [] { return changed<std::uint64_t>("second", 6 + 4 + 16 + 4, 0); },
       errc::file_malformed,
       {"overlap", "'first'", "'second'"}},
      {"data missing",
       [] { return with_tensor("w", 0, {64}, 100); },
       errc::file_malformed,
       {"'w'", "256 bytes exceed"}},
  };
  for (const broken_file& row : table) {
    SCOPED_TRACE(row.what);
    const failure why = refused(row.make());
    EXPECT_EQ(why.code, row.code) << why.context;
    EXPECT_THAT(why.context, testing::StartsWith("test.gguf: "));
    for (const char* word : row.tokenizer) EXPECT_THAT(why.context, HasSubstr(word));
  }
}

TEST(gguf_file, shows_control_bytes_of_names_escaped) {
  const failure why = refused(with_tensor("w\n\x1b", 99, {1}, 4));
  EXPECT_THAT(why.context, HasSubstr("'w\\x0a\\x1b'"));
}

TEST(gguf_file, refuses_every_truncation) {
  const buffer whole = good().bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto file = gguf_file::from_bytes({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}, "t");
    EXPECT_FALSE(file) << size << " of " << whole.size() << " bytes";
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(whole.data()), size);
  }
}

TEST(gguf_file, opens_or_refuses_thousands_of_mutations_by_name) {
  const buffer whole = good().bytes();
  std::mt19937_64 random(20240611);
  // Lengths, counts and types are the interesting targets; these values reach their limits.
  constexpr std::uint64_t interesting[] = {0,    1,      9,          12,         13,    0x7F,
                                           0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, ~0ULL, 1ULL << 63};
  constexpr int rounds = 20'000;
  int opened_count = 0;
  for (int round = 0; round < rounds; ++round) {
    buffer bytes = whole;
    const auto changes = 1 + random() % 4;
    for (std::uint64_t i = 0; i < changes; ++i) {
      const std::size_t at = random() % bytes.size();
      if (random() % 2 == 0) {
        bytes[at] ^= static_cast<std::byte>(1U << (random() % 8));
      } else {
        const std::uint64_t number = interesting[random() % std::size(interesting)];
        std::memcpy(bytes.data() + at, &number, std::min<std::size_t>(1ULL << (random() % 4), bytes.size() - at));
      }
    }
    if (random() % 8 == 0) bytes.resize(random() % bytes.size());
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    if (const auto file = gguf_file::from_bytes(bytes, "test.gguf")) {
      ++opened_count;
    } else {
      EXPECT_THAT(file.error().context, testing::StartsWith("test.gguf: "));
    }
  }
  EXPECT_GT(opened_count, 0) << "of some only the data changes";
  EXPECT_LT(opened_count, rounds);
}

/// Parts of a model, each of which contains one tensor with its own name.
class split_gguf : public testing::Test {
 protected:
  void write(std::uint32_t part, std::uint32_t says_part, std::uint32_t says_count, const std::string& tensor,
             std::int32_t tensors = 3) {
    gguf_writer out;
    if (part == 1) out.put_string("general.name", "whole");
    put_u16(out, "split.no", says_part - 1);
    put_u16(out, "split.count", says_count);
    out.put_i32("split.tensors.count", tensors);
    const std::vector<std::uint64_t> dimensions{4};
    out.add_tensor(tensor, tensor_type::f32, dimensions, filled(16, static_cast<int>(part)));
    ASSERT_TRUE(out.write(name(part)));
  }
  static void put_u16(gguf_writer& out, std::string_view key, std::uint32_t n) {
    out.put_raw(key, static_cast<std::uint32_t>(value_type::u16),
                bytes_of<std::uint16_t>({static_cast<std::uint16_t>(n)}));
  }
  [[nodiscard]] std::string name(std::uint32_t part) const {
    return folder_ / ("m-0000" + std::to_string(part) + "-of-00003.gguf");
  }
  [[nodiscard]] std::string refusal(const std::string& path) const {
    const auto file = gguf_file::open(path);
    return file ? "opened" : file.error().context;
  }

 private:
  test::temporary_folder folder_;
};

TEST_F(split_gguf, is_one_model_whichever_part_is_named) {
  for (const std::uint32_t part : {1U, 2U, 3U}) write(part, part, 3, "t" + std::to_string(part));
  for (const std::uint32_t part : {1U, 2U, 3U}) {
    const auto file = gguf_file::open(name(part));
    ASSERT_TRUE(file) << file.error().describe();
    EXPECT_EQ((*file)->get_string("general.name").value(), "whole");
    ASSERT_EQ((*file)->tensors().size(), 3U);
    for (int t = 1; t <= 3; ++t) {
      const tensor* found = (*file)->find_tensor("t" + std::to_string(t));
      ASSERT_NE(found, nullptr);
      EXPECT_EQ(found->bytes.front(), static_cast<std::byte>(t));
      (*file)->drop_from_memory(*found);
    }
    EXPECT_GT((*file)->size_bytes(), std::filesystem::file_size(name(1)) * 2);
    EXPECT_TRUE((*file)->check_unchanged());
  }
}

TEST_F(split_gguf, is_refused_where_its_parts_do_not_fit_together) {
  write(1, 1, 3, "t1");
  write(2, 2, 3, "t2");
  EXPECT_THAT(refusal(name(1)), HasSubstr("00003-of-00003.gguf"));  // this part is missing
  write(3, 2, 3, "t3");
  EXPECT_THAT(refusal(name(1)), HasSubstr("expected part 3 of 3, found 2 of 3"));
  write(3, 3, 3, "t2");
  EXPECT_THAT(refusal(name(1)), HasSubstr("tensor 't2': another file of the model also contains it"));
  write(3, 3, 3, "t3");
  EXPECT_EQ(refusal(name(1)), "opened");
  write(1, 1, 3, "t1", 4);
  EXPECT_THAT(refusal(name(1)), HasSubstr("split.tensors.count"));
  write(1, 1, 60000, "t1");
  EXPECT_THAT(refusal(name(1)), HasSubstr("-00001-of-60000.gguf"));
  std::filesystem::rename(name(1), name(1) + ".gguf");
  EXPECT_THAT(refusal(name(1) + ".gguf"), HasSubstr("restore the original names"));
}

TEST(gguf_file, opens_the_demonstration_model) {
  const std::string path = test::source_path("bench/demo_models/demo-target.gguf");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
  auto file = gguf_file::open(path);
  ASSERT_TRUE(file) << file.error().describe();
  EXPECT_EQ((*file)->tensors().size(), 2 + 12 * (*file)->get_unsigned("qwen2.block_count").value());
  EXPECT_EQ((*file)->get_unsigned("qwen2.embedding_length").value(), 384U);
}

}  // namespace
}  // namespace redline::gguf
