#include "runtime/text/file_form.hpp"

#include <gtest/gtest.h>

#include <random>

namespace redline::text {
namespace {

constexpr const char* mark = "\xEF\xBB\xBF";

TEST(file_form, a_model_is_shown_line_feeds_and_no_mark) {
  EXPECT_EQ(shown_text("\xEF\xBB\xBF"
                       "a\r\n\r\nb\rc\n"),
            "a\n\nb\rc\n");
  EXPECT_EQ(shown_text("a\nb"), "a\nb");
  EXPECT_EQ(shown_text("a\r\r\n"), "a\n");
  EXPECT_EQ(shown_text(""), "");
}

TEST(file_form, gives_an_edit_the_line_ends_the_mark_and_the_end_of_the_file) {
  const std::string windows = std::string(mark) + "LIMIT = 10\r\nSIZE = 3\r\n";
  const std::string wanted = std::string(mark) + "LIMIT = 64\r\nSIZE = 3\r\nMORE = 1\r\n";
  EXPECT_EQ(with_form_of(windows, "LIMIT = 64\nSIZE = 3\nMORE = 1\n"), wanted);
  EXPECT_EQ(with_form_of(windows, "LIMIT = 64\r\nSIZE = 3\nMORE = 1"), wanted) << "whatever the model wrote";
  EXPECT_EQ(with_form_of(windows, wanted), wanted) << "even with a byte order mark";
  EXPECT_EQ(with_form_of("a\nb", "a\nc\n"), "a\nc");
  EXPECT_EQ(with_form_of("a\nb\n", "a\nc"), "a\nc\n");
  EXPECT_EQ(with_form_of("a\n", "a\r\nb\r\n"), "a\nb\n") << "a file with line feeds gets no other line ends";
  EXPECT_EQ(with_form_of("a", "a\nb\n"), "a\nb");
  EXPECT_EQ(with_form_of("", "a\r\nb"), "a\nb");
  EXPECT_EQ(with_form_of("a\r\nb\r\n", ""), "");
}

TEST(file_form, lines_that_stay_keep_their_ends_in_a_file_of_several) {
  const std::string mixed = "one\r\ntwo\nthree\r\n}\nfour\r\n}\r\nlast";
  EXPECT_EQ(with_form_of(mixed, "one\ntwo\nTHREE\n}\nfour\n}\nlast\n"), "one\r\ntwo\nTHREE\r\n}\nfour\r\n}\r\nlast");
  EXPECT_EQ(with_form_of(mixed, "new\n" + shown_text(mixed)), "new\r\n" + mixed)
      << "a new line ends like the one before it";
}

std::string random_text(std::mt19937& random, std::initializer_list<const char*> pieces) {
  std::string out;
  for (unsigned i = random() % 14; i > 0; --i) out += pieces.begin()[random() % pieces.size()];
  return out;
}

TEST(file_form, what_a_model_copies_is_the_same_bytes) {
  std::mt19937 random(5);
  for (int i = 0; i < 20000; ++i) {
    const std::string file = random_text(random, {"a", "b", "\r", "\n", "\r\n", "\r\n", mark});
    ASSERT_EQ(with_form_of(file, shown_text(file)), file);
  }
}

TEST(file_form, many_differences_take_no_long_time_and_lose_nothing) {
  std::string before, after;
  for (int i = 0; i < 20000; ++i) {
    before += "a" + std::to_string(i) + (i % 2 == 0 ? "\r\n" : "\n");
    after += "b" + std::to_string(i) + "\n";
  }
  EXPECT_EQ(shown_text(with_form_of(before, after)), after);
}

TEST(file_form, tells_what_is_no_text) {
  EXPECT_EQ(text_complaint("caf\xC3\xA9\n"), std::nullopt);
  EXPECT_EQ(text_complaint(""), std::nullopt);
  EXPECT_EQ(text_complaint("caf\xE9\n"), "not text in UTF-8 (byte 3 is E9)");
  EXPECT_EQ(text_complaint(std::string("a\0b", 3)), "not text in UTF-8 (byte 1 is 00)");
  EXPECT_EQ(text_complaint("a\xC3"), "not text in UTF-8 (byte 1 is C3)");
}

}  // namespace
}  // namespace redline::text
