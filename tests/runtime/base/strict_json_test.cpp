#include "runtime/base/strict_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace redline {
namespace {

using ::testing::HasSubstr;
using json = nlohmann::ordered_json;

TEST(strict_json, parses_documents_in_their_order) {
  const auto parsed = parse_json<json>(R"( {"b": [1, -2, 3.5, true, null, "\u00e9\ud83d\ude00"], "a": {"c": {}}} )");
  ASSERT_TRUE(parsed) << parsed.error().describe();
  EXPECT_EQ(dump_json(*parsed), "{\"b\":[1,-2,3.5,true,null,\"\u00e9\U0001F600\"],\"a\":{\"c\":{}}}");
  EXPECT_EQ(*parse_json<json>("7"), 7);
}

TEST(strict_json, refuses_what_is_no_json) {
  const std::string table[] = {
      "",
      " ",
      "{",
      "}",
      "[1,]",
      "{\"a\":1,}",
      "{a:1}",
      "'a'",
      "nul",
      "1 2",
      "[1]x",
      "\"",
      "\"\n\"",
      "\"\\x\"",
      "01",
      "+1",
      ".5",
      "NaN",
      "1e999",
      "-",
      "// c\n1",
      "\"\xff\"",
      "\"\xc0\xaf\"",
      "\"\xed\xa0\x80\"",
      "\"\\ud800\"",
      "\"\\udc00x\"",
      std::string("\"a\0b\"", 5),
      std::string("\0", 1),
      std::string("{\"content\":\"x\"}\0 garbage }}}", 25),
      std::string("1\0", 2),
      "\"\xe2\x82\"",
  };
  for (const auto& text : table) {
    const auto parsed = parse_json<json>(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, errc::invalid_argument) << text;
  }
}

TEST(strict_json, refuses_repeated_names_at_any_depth) {
  const auto parsed = parse_json<json>(R"({"x": [{"a": 1, "b": {}, "a": 2}]})");
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().context, HasSubstr("the member 'a' is repeated"));
  EXPECT_TRUE(parse_json<json>(R"([{"a": 1}, {"a": {"a": 2}}])"));
  EXPECT_FALSE(parse_json<nlohmann::json>(R"({"x": [{"a": 1, "b": {}, "a": 2}]})"));
  EXPECT_TRUE(parse_json<nlohmann::json>(R"([{"a": 1}, {"a": {"a": 2}}])"));
}

TEST(strict_json, survives_depth_bombs) {
  for (const char* open : {"[", "{\"a\":", "[{\"a\":"}) {
    std::string bomb;
    while (bomb.size() < 1 << 20) bomb += open;
    const auto parsed = parse_json<json>(bomb);
    ASSERT_FALSE(parsed);
    EXPECT_THAT(parsed.error().context, HasSubstr("nested deeper than 64"));
  }
  const std::string deep = std::string(64, '[') + std::string(64, ']');
  EXPECT_TRUE(parse_json<json>(deep));
  EXPECT_FALSE(parse_json<json>("[" + deep + "]"));
}

TEST(strict_json, bounds_values_and_members) {
  json_limits limits;
  limits.values_max = 4;
  limits.members_max = 2;
  EXPECT_TRUE(parse_json<json>("[1,2,3]", limits));
  EXPECT_FALSE(parse_json<json>("[1,2,3,4]", limits));
  EXPECT_TRUE(parse_json<json>(R"({"a":1,"b":2})", limits));
  EXPECT_FALSE(parse_json<json>(R"({"a":1,"b":2,"c":3})", limits));
}

TEST(strict_json, finds_the_same_in_either_kind_of_document) {
  const std::string text = R"({"b":[1,{"d":null,"c":-2.5}],"a":{"z":"\u00e9","y":true}})";
  EXPECT_EQ(*parse_json<nlohmann::json>(text), nlohmann::json::parse(text));
  EXPECT_EQ(*parse_json<json>(text), json::parse(text));
}

TEST(strict_json, says_what_is_wrong_in_ascii) {
  EXPECT_THAT(parse_json<json>("[\xff]").error().context, HasSubstr("not valid JSON: at byte 2: "));
  EXPECT_THAT(parse_json<json>("[\xff]").error().context, testing::Not(HasSubstr("\xff")));
  EXPECT_THAT(parse_json<json>("{\"\u00e9\":1,\"\u00e9\":2}").error().context,
              HasSubstr("the member '\\xc3\\xa9' is repeated"));
}

TEST(strict_json, shows_values_shortly_and_plainly) {
  EXPECT_EQ(show_json(nlohmann::json("a\n")), "'a\\x0a'");
  EXPECT_EQ(show_json(nlohmann::json(std::string(500, 'x'))).size(), 165U);
  EXPECT_EQ(show_json({{"a", 1}}), "an object");
  EXPECT_EQ(show_json(nlohmann::json::array({1, 2})), "an array of 2");
  EXPECT_EQ(show_json(2.5), "2.5");
}

TEST(strict_json, writes_valid_utf8_whatever_it_holds) {
  EXPECT_EQ(dump_json(json("a\xff\xe2\x82")), "\"a\uFFFD\uFFFD\"");
}

TEST(strict_json, survives_mutated_documents) {
  const std::string seed =
      R"({"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"h\u00e9 \ud83d\ude00"}]}],"n":1e2})";
  std::mt19937 random(11);
  int parsed_count = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = seed;
    for (unsigned n = 1 + random() % 4; n > 0; --n) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + random() % 4);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 12));
          break;
      }
    }
    const auto parsed = parse_json<json>(text);
    if (!parsed) continue;
    ++parsed_count;
    ASSERT_EQ(*parse_json<json>(dump_json(*parsed)), *parsed) << text;
  }
  EXPECT_GT(parsed_count, 100);
}

}  // namespace
}  // namespace redline
