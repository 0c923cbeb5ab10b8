#include "runtime/text/stop_matcher.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace redline::text {
namespace {

stop_matcher matcher(std::vector<std::string> stops) { return std::move(*stop_matcher::make(std::move(stops))); }

TEST(stop_matcher, passes_text_through_without_stops) {
  stop_matcher none = matcher({});
  EXPECT_EQ(none.feed("any text"), "any text");
  EXPECT_EQ(none.finish(), "");
  EXPECT_FALSE(none.matched());
}

TEST(stop_matcher, cuts_before_the_stop_string_across_pieces) {
  stop_matcher m = matcher({"END", "\n\n"});
  EXPECT_EQ(m.feed("one E"), "one ");
  EXPECT_EQ(m.held_bytes(), 1U);
  EXPECT_EQ(m.feed("N"), "");
  EXPECT_EQ(m.feed("D and more"), "");
  EXPECT_EQ(m.matched(), 0U);
  EXPECT_EQ(m.stop(*m.matched()), "END");
  EXPECT_EQ(m.feed("later"), "");
  EXPECT_EQ(m.finish(), "");
}

TEST(stop_matcher, lets_go_of_what_turns_out_not_to_match) {
  stop_matcher m = matcher({"```\n"});
  EXPECT_EQ(m.feed("``"), "");
  EXPECT_EQ(m.feed("` x"), "``` x");
  EXPECT_EQ(m.feed("``"), "");
  EXPECT_EQ(m.finish(), "``");
  EXPECT_FALSE(m.matched());
}

TEST(stop_matcher, finds_a_stop_string_that_begins_inside_a_failed_one) {
  stop_matcher m = matcher({"aab"});
  EXPECT_EQ(m.feed("aaaa"), "aa");
  EXPECT_EQ(m.feed("b!"), "");
  EXPECT_EQ(m.matched(), 0U);
}

TEST(stop_matcher, takes_the_stop_string_that_is_complete_first) {
  stop_matcher m = matcher({"abcd", "bc"});
  EXPECT_EQ(m.feed("abcd"), "a");
  EXPECT_EQ(m.matched(), 1U);
}

TEST(stop_matcher, takes_the_longest_of_those_complete_at_the_same_byte) {
  stop_matcher m = matcher({"c", "abc", "bc"});
  EXPECT_EQ(m.feed("xabc"), "x");
  EXPECT_EQ(m.matched(), 1U);
}

TEST(stop_matcher, refuses_unusable_stop_strings) {
  EXPECT_EQ(stop_matcher::make({"a", ""}).error().code, errc::invalid_argument);
  EXPECT_NE(stop_matcher::make({"a", ""}).error().context.find("string 1 has 0 bytes"), std::string::npos);
  EXPECT_FALSE(stop_matcher::make({std::string(stop_matcher::stop_bytes_max + 1, 'x')}));
  EXPECT_TRUE(stop_matcher::make({std::string(stop_matcher::stop_bytes_max, 'x')}));
  EXPECT_FALSE(stop_matcher::make(std::vector<std::string>(stop_matcher::stops_max + 1, "x")));
  EXPECT_TRUE(stop_matcher::make(std::vector<std::string>(stop_matcher::stops_max, "x")));
}

struct cut {
  std::string before;
  std::optional<std::size_t> stop;
};

/// What a server does that examines the whole text after every byte.
cut naive(const std::string& text, const std::vector<std::string>& stops) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    cut found;
    for (std::size_t i = 0; i < stops.size(); ++i) {
      if (!std::string_view(text).substr(0, end).ends_with(stops[i])) continue;
      if (found.stop && stops[i].size() <= stops[*found.stop].size()) continue;
      found = {text.substr(0, end - stops[i].size()), i};
    }
    if (found.stop) return found;
  }
  return {text, std::nullopt};
}

TEST(stop_matcher, agrees_with_a_naive_search_however_the_text_is_cut) {
  std::mt19937_64 random(99);
  const auto word = [&](std::size_t length_max) {
    std::string out;
    for (auto n = 1 + random() % length_max; n > 0; --n) out.push_back("ab"[random() % 2]);
    return out;
  };
  int matches = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> stops;
    for (auto n = random() % 4; n > 0; --n) stops.push_back(word(6));
    const std::string text = word(30);
    const cut wanted = naive(text, stops);
    matches += wanted.stop ? 1 : 0;
    stop_matcher m = matcher(stops);
    std::string shown;
    for (std::size_t at = 0; at < text.size();) {
      const std::string piece = text.substr(at, 1 + random() % 5);
      shown += m.feed(piece);
      at += piece.size();
      ASSERT_TRUE(wanted.before.starts_with(shown)) << "text was shown that belongs to a stop string";
      if (!m.matched()) {
        ASSERT_EQ(shown.size() + m.held_bytes(), at);
        // No text is withheld without need: withheld text begins some stop string.
        const std::string held = text.substr(shown.size(), m.held_bytes());
        ASSERT_TRUE(held.empty() || std::any_of(stops.begin(), stops.end(),
                                                [&](const std::string& stop) { return stop.starts_with(held); }));
      }
    }
    shown += m.finish();
    ASSERT_EQ(shown, wanted.before) << text;
    ASSERT_EQ(m.matched(), wanted.stop) << text;
  }
  EXPECT_GT(matches, 5000);
  EXPECT_LT(matches, 19000);
}

}  // namespace
}  // namespace redline::text
