#include "actors/http/request/event_id.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <random>

namespace redline::api {
namespace {

event_id some_id(std::size_t choices) {
  event_id id{.response_high = 0x0123456789abcdef,
              .response_low = ~std::uint64_t{0},
              .created_seconds = 1700000000,
              .request_digest = 0x8000000000000000,
              .model_digest = 0xffffffff,
              .usage_sent = choices % 2 == 0};
  for (std::size_t i = 0; i < choices; ++i) {
    id.choices.push_back({.text_bytes = i * 1000, .tokens_count = i, .is_begun = i % 3 != 0, .is_over = i % 5 == 0});
    if (i > 0) id.choices.back().text_digest = static_cast<std::uint32_t>(i * 0x9e3779b9);
    if (id.choices.back().is_begun) id.choices.back().numerics = static_cast<std::uint32_t>(i * 0x85ebca6b);
  }
  return id;
}

TEST(event_id, comes_back_from_its_text) {
  for (const std::size_t choices : {1, 2, 8, 64}) {
    const auto text = to_text(some_id(choices));
    EXPECT_THAT(text, testing::MatchesRegex("[A-Za-z0-9_-]+"));
    EXPECT_LE(text.size(), event_id_chars_max);
    EXPECT_EQ(parse_event_id(text), some_id(choices));
  }
}

TEST(event_id, of_one_choice_is_short) {
  auto id = some_id(1);
  id.choices[0] = {.text_bytes = 100'000, .tokens_count = 0, .text_digest = 1, .is_begun = true};
  EXPECT_LE(to_text(id).size(), 64u);
}

TEST(event_id, is_refused_when_it_is_none) {
  const auto good = to_text(some_id(2));
  for (std::size_t length = 0; length < good.size(); ++length) EXPECT_FALSE(parse_event_id(good.substr(0, length)));
  for (const std::string bad : {"", "1", "AAAA", "x y", "\n", "\xff"}) EXPECT_FALSE(parse_event_id(bad)) << bad;
  EXPECT_FALSE(parse_event_id(good + "A"));
  EXPECT_FALSE(parse_event_id(good + "AAAA"));
  EXPECT_FALSE(parse_event_id(good + "="));
  EXPECT_FALSE(parse_event_id(" " + good));
  for (int byte = 0; byte < 256; ++byte) {
    if (std::isalnum(byte) != 0 || byte == '-' || byte == '_') continue;
    auto strange = good;
    strange[good.size() / 2] = static_cast<char>(byte);
    EXPECT_FALSE(parse_event_id(strange)) << byte;
  }
  EXPECT_FALSE(parse_event_id(std::string(event_id_chars_max + 1, 'A')));
  EXPECT_FALSE(parse_event_id(to_text(some_id(0))));
  EXPECT_FALSE(parse_event_id(to_text(some_id(65))));
}

/// Every accepted id is what `to_text` writes, so each id has exactly one text form.
TEST(event_id, has_one_spelling) {
  std::mt19937 random(1);
  const auto good = to_text(some_id(3));
  for (int i = 0; i < 20'000; ++i) {
    auto text = good;
    for (int changes = 0; changes < 3; ++changes) {
      constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
      text[random() % text.size()] = letters[random() % letters.size()];
    }
    const auto id = parse_event_id(text);
    if (!id) continue;
    EXPECT_EQ(to_text(*id), text);
  }
}

TEST(event_id, knows_when_nothing_is_left) {
  event_id id{.choices = {{.is_over = true}, {.is_over = false}}};
  EXPECT_FALSE(id.is_all(false));
  id.choices[1].is_over = true;
  EXPECT_TRUE(id.is_all(false));
  EXPECT_FALSE(id.is_all(true));
  id.usage_sent = true;
  EXPECT_TRUE(id.is_all(true));
}

}  // namespace
}  // namespace redline::api
