#include "runtime/actor/codec.hpp"

#include <gtest/gtest.h>

#include <random>

#include "runtime/actor/frame.hpp"

namespace redline::actor {
namespace {

enum class colour : std::uint8_t { red, green, blue, last_ };

struct inner {
  std::int32_t number = -1;
  std::string text;
  bool operator==(const inner&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.number, self.text); }
};

/// One field of every kind that a message may have.
struct everything {
  bool flag = false;
  std::uint8_t small = 0;
  std::uint16_t word = 0;
  std::uint32_t large = 0;
  std::uint64_t huge = 0;
  std::int32_t negative = 0;
  std::int64_t most_negative = 0;
  float real = 0;
  double precise = 0;
  std::string bytes;
  colour paint = colour::red;
  session_id session;
  page_id page;
  std::vector<std::int32_t> numbers;
  std::vector<inner> things;
  std::optional<std::uint32_t> maybe;
  std::optional<std::vector<inner>> maybe_things;
  std::pair<std::int32_t, float> both;
  failure why;
  inner nested;
  bool operator==(const everything&) const = default;
  static constexpr auto fields(auto& self) {
    return std::tie(self.flag, self.small, self.word, self.large, self.huge, self.negative, self.most_negative,
                    self.real, self.precise, self.bytes, self.paint, self.session, self.page, self.numbers, self.things,
                    self.maybe, self.maybe_things, self.both, self.why, self.nested);
  }
};

everything sample() {
  everything e;
  e.flag = true;
  e.small = 255;
  e.word = 65535;
  e.large = 0xffffffff;
  e.huge = 0xffffffffffffffff;
  e.negative = std::numeric_limits<std::int32_t>::min();
  e.most_negative = std::numeric_limits<std::int64_t>::min();
  e.real = 0.1F;
  e.precise = -1e300;
  e.bytes = std::string("\0\xff\xfe not UTF-8", 14);
  e.paint = colour::blue;
  e.session = {0x123456789abcdef0};
  e.page = {7};
  e.numbers = {0, -1, 2147483647};
  e.things = {{1, "a"}, {-2, ""}};
  e.maybe = 0;
  e.maybe_things = std::vector<inner>{{3, "c"}};
  e.both = {-5, 0.5F};
  e.why = {errc::cancelled, "enough"};
  e.nested = {9, "z"};
  return e;
}

struct first_version {
  std::uint32_t a = 1;
  static constexpr auto fields(auto& self) { return std::tie(self.a); }
};
struct second_version {
  std::uint32_t a = 1;
  std::string b = "default";
  std::optional<bool> c = true;
  static constexpr auto fields(auto& self) { return std::tie(self.a, self.b, self.c); }
};

struct tree {
  std::vector<tree> children;
  static constexpr auto fields(auto& self) { return std::tie(self.children); }
};

struct with_failure {
  failure why;
  static constexpr auto fields(auto& self) { return std::tie(self.why); }
};
struct with_pair {
  std::pair<std::uint32_t, std::string> why;
  static constexpr auto fields(auto& self) { return std::tie(self.why); }
};

template<class T>
std::string refusal(std::string_view bytes, const codec_limits& limits = {}) {
  const auto got = decode<T>(bytes, limits);
  if (got) return {};
  EXPECT_EQ(got.error().code, errc::malformed_message);
  return got.error().context;
}

TEST(codec, gives_back_every_kind_of_field) {
  const auto back = decode<everything>(encode(sample()));
  ASSERT_TRUE(back) << back.error().describe();
  EXPECT_EQ(*back, sample());
  const auto empty = decode<everything>(encode(everything{}));
  ASSERT_TRUE(empty);
  EXPECT_EQ(*empty, everything{});
}

TEST(codec, keeps_defaults_of_fields_that_an_old_writer_lacks) {
  const auto got = decode<second_version>(encode(first_version{.a = 5}));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->a, 5u);
  EXPECT_EQ(got->b, "default");
  EXPECT_EQ(got->c, true);
}

TEST(codec, ignores_fields_that_a_new_writer_added) {
  const auto got = decode<first_version>(encode(second_version{.a = 6, .b = "more"}));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->a, 6u);
}

TEST(codec, skips_unread_fields_of_a_nested_value) {
  // The first member of the second pair is longer than the reader expects.
  const auto got = decode<std::vector<first_version>>(encode(std::vector<second_version>{{.a = 1}, {.a = 2}}));
  ASSERT_TRUE(got);
  ASSERT_EQ(got->size(), 2u);
  EXPECT_EQ((*got)[1].a, 2u);
}

TEST(codec, refuses_values_of_other_kinds_and_says_so) {
  EXPECT_EQ(refusal<bool>(encode(std::uint32_t{1})), "expected a boolean, found an integer");
  EXPECT_EQ(refusal<std::uint32_t>(encode(std::string("x"))), "expected an unsigned integer, found a string");
  EXPECT_EQ(refusal<std::string>(encode(true)), "expected a string, found a boolean");
  EXPECT_EQ(refusal<double>(encode(std::string("1"))), "expected a number, found a string");
  EXPECT_EQ(refusal<first_version>(encode(std::uint32_t{1})), "expected an array, found an integer");
  EXPECT_EQ(refusal<std::vector<double>>(encode(0.5)), "expected an array, found a float");
  EXPECT_EQ(refusal<std::uint32_t>(encode(std::optional<bool>{})), "expected an unsigned integer, found nil");
  EXPECT_NE(refusal<first_version>("\x81\x01\x02"), "");  // this is a map
}

TEST(codec, refuses_numbers_out_of_range) {
  EXPECT_EQ(refusal<std::uint8_t>(encode(std::uint32_t{256})), "expected an integer up to 255, found 256");
  EXPECT_NE(refusal<std::uint32_t>(encode(std::int32_t{-1})), "");
  EXPECT_NE(refusal<std::int32_t>(encode(std::int64_t{1} << 31)), "");
  EXPECT_NE(refusal<std::int32_t>(encode(-(std::int64_t{1} << 31) - 1)), "");
  EXPECT_NE(refusal<page_id>(encode(std::uint64_t{1} << 32)), "");
  EXPECT_NE(refusal<colour>(encode(std::uint32_t{3})), "");
  EXPECT_TRUE(decode<colour>(encode(std::uint32_t{2})));
}

TEST(codec, reads_an_unknown_error_code_as_internal) {
  const auto got = decode<with_failure>(encode(with_pair{.why = {250, "from the future"}}));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->why.code, errc::internal);
  EXPECT_EQ(got->why.context, "from the future");
  EXPECT_NE(refusal<with_failure>(encode(std::vector<first_version>{{}})), "");
}

TEST(codec, refuses_what_is_too_large_before_it_allocates) {
  EXPECT_NE(refusal<std::string>(encode(std::string(100, 'x')), {.message_bytes_max = 50}), "");
  EXPECT_NE(refusal<std::string>(encode(std::string(100, 'x')), {.string_bytes_max = 50}), "");
  EXPECT_NE(refusal<std::vector<int>>(encode(std::vector<int>(100)), {.array_count_max = 50}), "");
  // These headers claim four billion entries or bytes.
  using namespace std::string_literals;
  EXPECT_NE(refusal<std::vector<int>>("\xdd\xff\xff\xff\xff"s), "");
  EXPECT_NE(refusal<std::string>("\xc6\xff\xff\xff\xff"s), "");
  // The count is within the limits, but the entries are missing.
  EXPECT_NE(refusal<std::vector<int>>("\xdd\x00\x0f\xff\xff"s), "");
}

TEST(codec, reserves_no_more_for_elements_than_their_bytes_can_be) {
  constexpr std::size_t count = 100'000;
  encoder empty_things;
  empty_things.array(count);
  for (std::size_t i = 0; i < count; ++i) empty_things.array(0);  // each would be an `everything` with its defaults
  const auto refused = decode<std::vector<everything>>(empty_things.take());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().context, "expected a message that is at most 32 times its bytes in memory");

  const std::vector<everything> smallest(count / 100);
  EXPECT_EQ(decode<std::vector<everything>>(encode(smallest)).value(), smallest);
}

TEST(codec, refuses_what_nests_too_deep) {
  EXPECT_NE(refusal<tree>(std::string(100'000, '\x91') + '\x90'), "");
  tree flat;
  flat.children.resize(3);
  EXPECT_TRUE(decode<tree>(encode(flat)));
}

TEST(codec, refuses_every_truncation_and_anything_after_the_end) {
  const std::string whole = encode(sample());
  for (std::size_t n = 0; n < whole.size(); ++n) {
    EXPECT_NE(refusal<everything>(std::string_view(whole).substr(0, n)), "") << n << " bytes";
  }
  EXPECT_NE(refusal<everything>(whole + '\xc0'), "");
}

TEST(codec, never_breaks_on_mutated_bytes) {
  std::mt19937_64 chance(1);
  const std::string good = encode(sample());
  int accepted = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string bytes = good;
    for (std::uint64_t n = 1 + chance() % 4; n > 0; --n) {
      const std::size_t at = chance() % bytes.size();
      switch (chance() % 4) {
        case 0:
          bytes[at] = static_cast<char>(chance());
          break;
        case 1:
          bytes.erase(at, 1 + chance() % 8);
          break;
        case 2:
          bytes.insert(at, 1 + chance() % 4, static_cast<char>(chance()));
          break;
        default:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << chance() % 8));
      }
      if (bytes.empty()) bytes = "\x90";
    }
    const auto got = decode<everything>(bytes);
    if (!got) {
      EXPECT_FALSE(got.error().context.empty());
      continue;
    }
    ++accepted;
    EXPECT_LT(static_cast<int>(got->paint), static_cast<int>(colour::last_));
    // A decoded message can be encoded and decoded again.
    const std::string again = encode(*got);
    const auto twice = decode<everything>(again);
    ASSERT_TRUE(twice);
    EXPECT_EQ(encode(*twice), again);
  }
  EXPECT_GT(accepted, 100);  // some mutations must stay valid
}

/// The bytes are refused with a reason, or what was read of them can be written and read again.
template<class T>
void expect_read_or_refused(std::string_view bytes) {
  const auto got = decode<T>(bytes);
  if (!got) {
    EXPECT_NE(refusal<T>(bytes), "");
    return;
  }
  const std::string again = encode(*got);
  const auto twice = decode<T>(again);
  ASSERT_TRUE(twice) << twice.error().describe();
  EXPECT_EQ(encode(*twice), again);
}

TEST(codec, never_breaks_on_random_bytes) {
  std::mt19937_64 chance(2);
  for (int i = 0; i < 50'000 && !HasFailure(); ++i) {
    std::string bytes(chance() % 64, 0);
    for (char& c : bytes) c = static_cast<char>(chance());
    expect_read_or_refused<envelope>(bytes);
    expect_read_or_refused<tree>(bytes);
    expect_read_or_refused<everything>("\x94" + bytes);
  }
}

}  // namespace
}  // namespace redline::actor
