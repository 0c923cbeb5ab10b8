#include "actors/cli/phrase_hint.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace redline::actors::cli {
namespace {

TEST(phrase_hint, is_given_where_phrases_are_known_and_lets_nothing_through_that_a_terminal_would_obey) {
  EXPECT_EQ(phrase_hint({}), "");
  const std::vector<std::string> phrases{"Set `A` to 1.", "\x1b]0;x\x07"};
  EXPECT_EQ(phrase_hint(phrases),
            "this demonstration model knows few phrases; try one like:\n  Set `A` to 1.\n  \\x1b]0;x\\x07\n");
}

}  // namespace
}  // namespace redline::actors::cli
