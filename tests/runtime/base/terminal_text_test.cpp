#include "runtime/base/terminal_text.hpp"

#include <gtest/gtest.h>

namespace redline {
namespace {

TEST(terminal_text, leaves_a_terminal_nothing_to_obey) {
  EXPECT_EQ(shown_on_terminal("a\tb\nc \xC3\xA9 \xE6\xBC\xA2 \xF0\x9F\x8D\x95"),
            "a\tb\nc \xC3\xA9 \xE6\xBC\xA2 \xF0\x9F\x8D\x95");
  EXPECT_EQ(shown_on_terminal("\x1b[1A\r\x7f\b"), "^[[1A^M^?^H");
  EXPECT_EQ(shown_on_terminal("\xC2\x9B"
                              "2K\xC2\x80\xC2\x9F\xC2\xA0"),
            "<U+009B>2K<U+0080><U+009F>\xC2\xA0");
  EXPECT_EQ(shown_on_terminal("\xE2\x80\xAE\xE2\x81\xA6\xE2\x81\xA9\xE2\x80\x8F\xD8\x9C\xE2\x80\xAF"),
            "<U+202E><U+2066><U+2069><U+200F><U+061C>\xE2\x80\xAF");
  EXPECT_EQ(shown_on_terminal("\x9B"
                              "1A caf\xE9"),
            "<9B>1A caf<E9>");
}

}  // namespace
}  // namespace redline
