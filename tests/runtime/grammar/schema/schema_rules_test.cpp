#include "runtime/grammar/schema/schema_rules.hpp"

#include <gmock/gmock.h>

#include <random>

#include "runtime/grammar/automata/rules_automaton.hpp"
#include "runtime/grammar/schema/schema_clauses.hpp"
#include "tests/support/grammar_texts.hpp"

namespace redline::grammar {
namespace {

using ::testing::HasSubstr;

result<std::shared_ptr<const rules_automaton>> compile(const json& schema) {
  step_count steps(4'000'000);
  REDLINE_TRY_ASSIGN(auto rules, write_schema_rules(schema, {&schema}, {}, steps));
  return rules_automaton::compile(std::move(rules.rules), steps);
}

struct example {
  const char* schema;
  std::vector<const char*> matching, others;
};

void expect_examples(const std::vector<example>& all) {
  for (const auto& [schema, matching, others] : all) {
    const auto m = compile(json::parse(schema));
    ASSERT_TRUE(m) << schema << " " << m.error().context;
    for (const char* text : matching) EXPECT_TRUE(accepts(**m, text)) << schema << " " << text;
    for (const char* text : others) EXPECT_FALSE(accepts(**m, text)) << schema << " " << text;
  }
}

TEST(schema_rules, hold_all_schemas_of_allOf_and_what_stands_beside_references) {
  expect_examples({
      {R"({"type":"object","allOf":[{"properties":{"a":{"type":"integer"}},"required":["a"]},
           {"properties":{"b":{"type":"string"},"a":{"minimum":3}}}]})",
       {R"({"a":3})", R"({"a": 4, "b": "x"})", R"({"a":3,"c":[]})"},
       {R"({"a":2})", R"({"b":"x"})", R"({"a":3,"b":1})", "{}"}},
      {R"({"$defs":{"t":{"type":"string"}},"$ref":"#/$defs/t","maxLength":2})", {R"("ab")"}, {R"("abc")", "1"}},
      {R"({"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"t":{"type":"string"}},
           "properties":{"a":{"$ref":"#/definitions/t","maxLength":2}},"type":"object"})",
       {R"({"a":"abc"})"},
       {R"({"a":1})"}},
      {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]})",
       {R"({"a":1})", R"({"b":1})", R"({"a":1,"b":1})"},
       {"{}", R"({"a":"x"})"}},
  });
}

TEST(schema_rules, allow_what_matches_exactly_one_of_alternatives_that_overlap) {
  expect_examples({
      {R"({"oneOf":[{"type":"integer","maximum":5},{"type":"integer","minimum":3}]})", {"2", "6"}, {"3", "5", "\"a\""}},
      {R"({"oneOf":[{"properties":{"k":{"const":"a"}},"required":["k"]},{"properties":{"k":{"const":"b"}},"required":["k"]}],
           "type":"object"})",
       {R"({"k":"a"})", R"({"k":"b","x":1})"},
       {R"({"k":"c"})", "{}"}},
      {R"({"oneOf":[{"required":["a"]},{"required":["b"]}],"type":"object"})",
       {R"({"a":1})", R"({"b":1})"},
       {R"({"a":1,"b":1})", "{}"}},
  });
}

TEST(schema_rules, exclude_what_not_and_if_exclude) {
  expect_examples({
      // The empty object matches both.
      {R"({"type":"object","oneOf":[{"additionalProperties":false,"properties":{"a":{"type":"integer"}}},
           {"additionalProperties":false,"properties":{"b":{"type":"integer"}}}]})",
       {R"({"a":1})", R"({"b":1})"},
       {"{}", R"({"a":1,"b":1})"}},
      {R"({"not":{"type":["integer","object"]}})", {"1.5", "\"a\"", "[]", "null", "true"}, {"1", "{}"}},
      {R"({"not":{"enum":["ab","a",null,true]},"type":["string","null","boolean"]})",
       {"\"\"", "\"b\"", "\"abc\"", "\"\\n\"", "\"\xc3\xa9\"", "false"},
       {"\"a\"", "\"ab\"", "null", "true"}},
      {R"({"type":"integer","not":{"const":50},"minimum":49,"maximum":51})", {"49", "51"}, {"50", "48", "52"}},
      {R"({"not":{"enum":[[],[1],{}]}})", {"1", "[1,1]", R"({"a":1})"}, {"[]", "[1]", "{}"}},
      {R"({"type":"object","if":{"properties":{"a":{"const":1}},"required":["a"]},"then":{"required":["b"]},
           "else":{"required":["c"]}})",
       {R"({"a":1,"b":2})", R"({"a":2,"c":1})", R"({"c":1})"},
       {R"({"a":1})", "{}"}},
      {R"({"type":"string","not":{"pattern":"^ab"}})", {"\"ba\"", "\"a\\n\""}, {"\"ab\"", "\"abc\""}},
      {R"({"type":"array","not":{"items":{"type":"integer"}}})", {"[\"a\"]", "[1, \"a\"]"}, {"[]", "[1]"}},
  });
}

TEST(schema_rules, deny_closed_objects_with_many_members) {
  json open = {{"type", "object"}, {"properties", json::object()}};
  for (int i = 0; i < 600; ++i) open["properties"]["m" + std::to_string(i)] = true;
  const json closed =
      json::parse(R"({"type":"object","additionalProperties":false,"properties":{"z":{}},"required":["z"]})");
  const auto m = compile({{"oneOf", json::array({open, closed})}});
  ASSERT_TRUE(m) << m.error().context;
  EXPECT_TRUE(accepts(**m, R"({"m0":1,"m599":2})"));
  EXPECT_FALSE(accepts(**m, R"({"z":1})")) << "it matches both";
}

TEST(schema_rules, name_members_by_patterns_and_count_them) {
  expect_examples({
      {R"({"type":"object","patternProperties":{"^x":{"type":"integer"}},"additionalProperties":false})",
       {"{}", R"({"x1":1})", R"({"x":1, "xy":2})"},
       {R"({"x1":"a"})", R"({"y":1})"}},
      {R"({"type":"object","properties":{"ab":{"type":"string"}},"additionalProperties":{"type":"integer"}})",
       {R"({"ab":"x"})", R"({"a":1})", R"({"abc":1})", R"({"ab":"x","b":1})", R"({"\n":1})"},
       {R"({"ab":1})", R"({"a":"x"})"}},
      {R"({"type":"object","propertyNames":{"pattern":"^[a-c]+$"}})", {"{}", R"({"ab":1})"}, {R"({"d":1})"}},
      {R"({"type":"object","minProperties":1,"maxProperties":2,"additionalProperties":{"type":"integer"}})",
       {R"({"a":1})", R"({"a":1,"b":2})"},
       {"{}", R"({"a":1,"b":2,"c":3})"}},
      {R"({"type":"object","properties":{"a":{},"b":{}},"minProperties":2,"additionalProperties":false})",
       {R"({"a":1,"b":1})"},
       {R"({"a":1})", "{}"}},
      {R"({"type":"object","required":["z"],"additionalProperties":{"type":"null"}})",
       {R"({"z":null})"},
       {"{}", R"({"z":1})"}},
      {R"({"type":"object","dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"maxProperties":1}}})",
       {"{}", R"({"a":1,"b":1})", R"({"b":1})", R"({"c":1})"},
       {R"({"a":1})", R"({"b":1,"c":1})"}},
  });
}

TEST(schema_rules, hold_items_by_their_place_and_by_what_must_be_among_them) {
  expect_examples({
      {R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":false,"minItems":1})",
       {"[1]", R"([1,"a"])"},
       {"[]", R"(["a"])", R"([1,"a",2])"}},
      {R"({"type":"array","items":[{"type":"integer"}],"additionalItems":{"type":"null"},"maxItems":2})",
       {"[]", "[1]", "[1,null]"},
       {"[null]", "[1,null,null]"}},
      {R"({"type":"array","contains":{"type":"integer"}})", {"[1]", R"(["a",1,"b"])", "[1,2]"}, {"[]", R"(["a"])"}},
      {R"({"type":"array","contains":{"const":1},"minContains":0,"maxContains":1})",
       {"[]", "[1]", "[2,1,3]", "[2]"},
       {"[1,1]", "[1,2,1]"}},
      {R"({"type":"array","contains":{"const":1},"minContains":2})", {"[1,1]", "[1,2,1]", "[1,1,1]"}, {"[1]", "[2,2]"}},
      {R"({"type":"array","contains":{"const":1},"minItems":2,"maxItems":3})",
       {"[1,2]", "[2,1]", "[2,2,1]", "[1, 1, 1]"},
       {"[1]", "[2,2]", "[2,2,2]", "[2,2,2,1]"}},
      {R"({"type":"array","contains":{"const":1},"minItems":2})", {"[1,2]", "[2,2,2,1]"}, {"[1]", "[2,2]", "[]"}},
      {R"({"type":"array","contains":{"const":1},"maxItems":2,"minContains":0,"maxContains":1})",
       {"[]", "[2]", "[1,2]", "[2,1]"},
       {"[1,1]", "[2,2,1]"}},
      {R"({"type":"array","prefixItems":[{"type":"string"},{"const":1}],"contains":{"type":"integer"},"minContains":2,
           "maxContains":2})",
       {R"(["a",1,2])", R"(["a",1,"b",3,"c"])"},
       {R"(["a",1])", R"([1,1])", R"(["a",1,2,3])"}},
      {R"({"type":["array","null"],"contains":{"const":1},"maxItems":0})", {"null"}, {"[]", "[1]"}},
  });
}

TEST(schema_rules, choose_members_in_order_and_each_once) {
  expect_examples({
      {R"({"type":"object","properties":{"a":{},"ab":{},"b":{},"c":{}},"required":["b"],"additionalProperties":false})",
       {R"({"a":1,"ab":2,"b":3,"c":4})", R"({"b":1})", R"({"ab":1, "b":2})"},
       {R"({"b":1,"a":2})", R"({"a":1})", R"({"b":1,"b":2})", R"({"a":1,"c":1})", R"({"ab":1,"a":1,"b":1})", "{}",
        R"({"b":1,})", R"({,"b":1})"}},
      {R"({"type":"object","properties":{"a":{},"z":{}},"required":["z","y"],"additionalProperties":{"type":"integer"}})",
       {R"({"z":[],"y":1})", R"({"a":[],"z":[],"y":1,"x":2,"x":3})"},
       {R"({"z":[]})", R"({"x":1,"z":[],"y":1})", R"({"z":[],"y":1,"a":[]})", R"({"z":[],"y":"a"})"}},
      // Members that can have no value are not begun either.
      {R"({"type":"object","properties":{"ab":{"$ref":"#/$defs/n"},"ac":{"type":"null"},"d":{"$ref":"#/$defs/n"}},
           "additionalProperties":false,"$defs":{"n":{"type":"array","minItems":1,"items":{"$ref":"#/$defs/n"}}}})",
       {R"({"ac":null})", "{}"},
       {R"({"ab":[)", R"({"ac":null,)", R"({"d":)"}},
      {R"({"type":"array","items":{"type":"object","properties":{"a":{"type":"array","items":{"type":"object",
           "properties":{"b":{},"c":{}},"additionalProperties":false}},"d":{}},"additionalProperties":false}})",
       {R"([{"a":[{"b":1,"c":2},{"c":3}],"d":4},{"d":5}])"},
       {R"([{"a":[{"c":1,"b":2}]}])", R"([{"a":[],"a":[]}])", R"([{"a":[{"b":1}],"a":[]}])"}},
  });
  const auto m = compile(json::parse(
      R"({"type":"object","properties":{"ab":{"$ref":"#/$defs/n"},"ac":{"type":"null"}},"additionalProperties":false,
          "$defs":{"n":{"type":"array","minItems":1,"items":{"$ref":"#/$defs/n"}}}})"));
  ASSERT_TRUE(m);
  automaton_state s = (*m)->begin();
  for (const char c : std::string_view("{\"a")) ASSERT_TRUE((*m)->advance(s, static_cast<std::uint8_t>(c)));
  EXPECT_FALSE((*m)->advance(s, 'b')) << "no dead end";
  EXPECT_THAT(
      compile(json::parse(R"({"type":"object","required":["a"],"properties":{"a":{"$ref":"#"}}})")).error().context,
      HasSubstr("no value matches"));
}

TEST(schema_rules, choose_items_that_differ_in_any_order) {
  expect_examples({
      {R"({"type":"array","uniqueItems":true,"minItems":2,"maxItems":3,"items":{"enum":[1,12,123,"1",[1],{"a":2}]}})",
       {"[12,1]", "[123, 12, 1]", "[[1],{\"a\":2}]", "[\"1\",1]"},
       {"[1]", "[1,1]", "[12,12]", "[1,12,123,\"1\"]", "[[1],[1]]", "[]"}},
      {R"({"type":"array","uniqueItems":true,"items":{"type":"integer","minimum":1,"maximum":32}})",
       {"[]", "[32,1,3,2,31]"},
       {"[33]", "[3,31,3]", "[1,2,1]"}},
  });
  const auto m = compile(json::parse(R"({"type":"array","uniqueItems":true,"items":{"enum":[1,12]}})"));
  automaton_state s = (*m)->begin();
  for (const char c : std::string_view("[12,1")) ASSERT_TRUE((*m)->advance(s, static_cast<std::uint8_t>(c)));
  for (const char c : std::string_view("2,")) {
    automaton_state after = s;
    EXPECT_FALSE((*m)->advance(after, static_cast<std::uint8_t>(c))) << c;
  }
}

TEST(schema_rules, count_items_with_values_of_any_kind) {
  const std::string schema = R"({"type":"array","items":{"type":"array","items":{"type":"object"}},"minItems":18,)"
                             R"("maxItems":20})";
  const auto m = compile(json::parse(schema));
  ASSERT_TRUE(m) << m.error().context;
  std::string items = "[[{}]";
  for (int count = 1; count < 24; ++count, items += ",[{\"a\":[1]},{}]")
    EXPECT_EQ(accepts(**m, items + "]"), count >= 18 && count <= 20) << count;
}

TEST(schema_rules, take_space_in_proportion_to_the_members) {
  const auto size_of = [](int members) {
    json schema = {{"type", "object"}};
    for (int i = 0; i < members; ++i) schema["properties"]["member_" + std::to_string(i)] = json{{"type", "integer"}};
    const auto m = compile(schema);
    EXPECT_TRUE(m) << m.error().context;
    return (*m)->size_bytes();
  };
  EXPECT_LT(size_of(1000), 12 * size_of(100));
}

// A peer may send any cells as a state. Those that pass are followed within the tables.
TEST(schema_rules, check_states_with_numbers) {
  const auto m = compile(json::parse(
      R"({"type":"object","properties":{"a":{"type":"array","uniqueItems":true,"items":{"enum":[1,2,3]}},
          "b":{"type":"array","items":{"type":"string"},"minItems":20,"maxItems":30},"c":{}},"required":["b"]})"));
  ASSERT_TRUE(m);
  std::mt19937 random(7);
  std::size_t valid = 0;
  for (const std::string text : {"{\"a\":[1,3", "{\"a\":[2],\"b\":[\"x\",\"y\",\"", "{\"a\":[],\"b"}) {
    automaton_state s = (*m)->begin();
    for (const char c : text) {
      ASSERT_TRUE((*m)->advance(s, static_cast<std::uint8_t>(c))) << text;
      ASSERT_TRUE((*m)->is_valid(s)) << text;
      for (int i = 0; i < 200; ++i) {
        std::vector<std::uint32_t> cells(s.cells().begin(), s.cells().end());
        auto& cell = cells[random() % cells.size()];
        cell = random() % 2 == 0 ? static_cast<std::uint32_t>(random()) >> random() % 32 : cell + random() % 5 - 2;
        automaton_state other{std::span<const std::uint32_t>(cells)};
        if (!(*m)->is_valid(other)) continue;
        ++valid;
        (void)(*m)->kinds_of_bytes(other);
        (void)(*m)->free_text_at(other);
        for (const char next : std::string_view("1,]\"b\":[\"x\",\"c\":{}}")) {
          if (!(*m)->advance(other, static_cast<std::uint8_t>(next))) break;
        }
      }
    }
  }
  EXPECT_GT(valid, 50U);
  std::vector<std::uint32_t> cells;
  automaton_state s = (*m)->begin();
  for (const char c : std::string_view("{\"a\":[1")) ASSERT_TRUE((*m)->advance(s, static_cast<std::uint8_t>(c)));
  cells.assign(s.cells().begin(), s.cells().end());
  for (auto& cell : cells) {
    const auto was = cell;
    cell = 0x7fffffff;
    EXPECT_FALSE((*m)->is_valid(automaton_state(std::span<const std::uint32_t>(cells))));
    cell = was;
  }
}

TEST(schema_rules, write_numbers_within_their_bounds_exactly) {
  std::mt19937 random(3);
  const auto text_of = [](int hundredths) {
    const std::string digits = std::to_string(std::abs(hundredths) / 100);
    std::string fraction = std::to_string(100 + std::abs(hundredths) % 100).substr(1);
    fraction.erase(fraction.find_last_not_of('0') + 1);
    return (hundredths < 0 ? "-" : "") + digits + (fraction.empty() ? "" : "." + fraction);
  };
  for (int run = 0; run < 60; ++run) {
    const int low = static_cast<int>(random() % 2400) - 1200, high = low + static_cast<int>(random() % 900);
    const bool is_low_open = random() % 2 == 0, is_high_open = random() % 2 == 0, is_whole = random() % 3 == 0;
    const std::string schema = std::string(R"({"type":")") + (is_whole ? "integer" : "number") + R"(",")" +
                               (is_low_open ? "exclusiveMinimum" : "minimum") + "\":" + text_of(low) + ",\"" +
                               (is_high_open ? "exclusiveMaximum" : "maximum") + "\":" + text_of(high) + "}";
    const auto m = compile(json::parse(schema));
    for (int n = low - 130; n <= high + 130; ++n) {
      const bool is_within =
          (is_low_open ? n > low : n >= low) && (is_high_open ? n < high : n <= high) && (!is_whole || n % 100 == 0);
      ASSERT_EQ(m && accepts(**m, text_of(n)), is_within) << schema << " " << text_of(n);
      if (!is_whole && n % 10 != 0 && m) {
        ASSERT_EQ(accepts(**m, text_of(n) + "0"), is_within) << schema << " " << n;
      }
    }
  }
  expect_examples({
      {R"({"type":"number","minimum":0.5})", {"0.5", "0.50", "12", "12.25"}, {"0.49", "0", "-1"}},
      {R"({"type":"number","maximum":-0.05})", {"-0.05", "-1", "-0.1"}, {"0", "-0.04", "1"}},
      // Bounds have as many digits as the numbers that are written: an answer may be narrower, never wider.
      {R"({"type":"number","minimum":1e-20,"maximum":1e-3})", {"0.001", "0.000000000000001"}, {"0", "0.0011"}},
      {R"({"type":"number","minimum":-1e-20})", {"0", "1"}, {"-0.000000000000001", "-1"}},
      {R"({"type":"number","maximum":0.99999999999999999e-2})", {"0.009", "-5"}, {"0.0100001", "1"}},
      {R"({"type":"number","multipleOf":0.25})", {"1", "1.5", "1.250", "-0.75"}, {"1.3", "0.1"}},
      {R"({"type":"number","multipleOf":0.01,"minimum":0,"exclusiveMaximum":100.5})",
       {"0", "0.01", "99.99", "100.490", "100"},
       {"-0.01", "0.001", "100.5", "100.51", "101"}},
      {R"({"type":"number","multipleOf":0.2,"minimum":-1.1,"maximum":-0.3})",
       {"-1", "-0.40"},
       {"-1.2", "-0.2", "-0.5"}},
      {R"({"type":"number","multipleOf":0.5,"exclusiveMinimum":0.5,"exclusiveMaximum":1.5})",
       {"1", "1.00"},
       {"0.5", "1.5"}},
      {R"({"type":"integer","multipleOf":2.5,"minimum":0,"maximum":20})", {"0", "5", "20"}, {"2", "25"}},
      {R"({"type":"integer","multipleOf":0.5,"minimum":0})", {"0", "7"}, {"-1", "0.5"}},
      {R"({"type":"integer","allOf":[{"multipleOf":4},{"multipleOf":6}]})", {"0", "12", "-24"}, {"4", "6", "18"}},
      {R"({"type":"number","allOf":[{"multipleOf":0.25},{"multipleOf":0.1}]})", {"0.5", "-3"}, {"0.25", "0.1"}},
      // Numbers of 64 bits, and the digits of any double.
      {R"({"type":"integer"})", {"18446744073709551615", "-9223372036854775808"}, {"123456789012345678901"}},
      {R"({"type":"integer","minimum":0,"maximum":9223372036854775807})",
       {"9223372036854775807", "1234567890123456789"},
       {"9223372036854775808"}},
      {R"({"type":"number","minimum":-180,"maximum":180})", {"1.5707963267948966", "0.30000000000000004"}, {"180.1"}},
      {R"({"type":"number"})", {"0.30000000000000004", "1.7976931348623157e+99"}, {}},
      // A double cannot tell these from a bound that is excluded.
      {R"({"type":"number","exclusiveMaximum":1})", {"0.999999999999999"}, {"0.99999999999999999"}},
      {R"({"type":"number","minimum":0.1,"exclusiveMaximum":0.2})",
       {"0.1999999999999999"},
       {"0.199999999999999999", "0.2"}},
      {R"({"type":"number","exclusiveMinimum":0.1,"maximum":0.2})", {"0.1000000000000001", "0.20"}, {"0.10"}},
      {R"({"type":"integer","multipleOf":7})", {"0", "7", "-21", "700"}, {"1", "22", "07"}},
      {R"({"type":"integer","multipleOf":7,"minimum":10,"maximum":30})", {"14", "28"}, {"7", "35", "15"}},
      {R"({"maximum":3,"exclusiveMaximum":true,"type":"integer"})", {"2"}, {"3"}},
  });
}

TEST(schema_rules, find_references_by_pointer_anchor_and_address) {
  expect_examples({
      {R"({"$defs":{"a/b%c":{"type":"integer"}},"properties":{"x":{"$ref":"#/$defs/a~1b%25c"},"y":{"$ref":"#/properties/x"}},
           "type":"object"})",
       {R"({"x":1,"y":2})"},
       {R"({"y":"a"})"}},
      {R"({"$id":"http://x.y/base/all","$defs":{"t":{"$id":"tree","type":"object","additionalProperties":false,
           "properties":{"kids":{"type":"array","items":{"$ref":"tree"}}}}},"$ref":"/base/tree"})",
       {"{}", R"({"kids":[{},{"kids":[]}]})"},
       {R"({"kids":[1]})"}},
      {R"({"$defs":{"t":{"$anchor":"here","type":"null"}},"$ref":"#here"})", {"null"}, {"1"}},
      {R"({"allOf":[{"$ref":"#/unknown/0"}],"unknown":[{"type":"null"}]})", {"null"}, {"1"}},
  });
}

TEST(schema_rules, follow_dynamic_references_that_can_mean_one_schema) {
  expect_examples({
      {R"({"$dynamicRef":"#t","$defs":{"x":{"$dynamicAnchor":"t","type":"null"},"y":{"$dynamicAnchor":"u"}}})",
       {"null"},
       {"1"}},
      {R"({"$dynamicRef":"#/$defs/x","$defs":{"x":{"type":"null"}}})", {"null"}, {"1"}},
      {R"({"$recursiveAnchor":true,"properties":{"a":{"$recursiveRef":"#"}},"type":"object"})",
       {R"({"a":{"a":{}}})"},
       {R"({"a":1})"}},
  });
}

TEST(schema_rules, hold_members_at_which_no_other_keyword_looked) {
  expect_examples({
      {R"({"type":"object","allOf":[{"properties":{"a":{}}},{"patternProperties":{"^x":{}}}],
           "properties":{"b":{}},"unevaluatedProperties":false})",
       {"{}", R"({"a":2,"b":1,"x1":3})"},
       {R"({"c":1})", R"({"a":1,"c":1})"}},
      {R"({"type":"object","properties":{"a":{}},"unevaluatedProperties":{"type":"null"}})",
       {R"({"a":1,"z":null})"},
       {R"({"z":1})"}},
      // Only what holds counts.
      {R"({"type":"object","anyOf":[{"properties":{"a":{"const":1}},"required":["a"]},
           {"properties":{"b":{"const":2}},"required":["b"]}],"unevaluatedProperties":false})",
       {R"({"a":1})", R"({"b":2})", R"({"a":1,"b":2})"},
       {R"({"a":1,"b":3})", R"({"b":2,"a":3})"}},
      {R"({"type":"object","if":{"properties":{"a":{"const":1}},"required":["a"]},"then":{"properties":{"b":{}}},
           "else":{"properties":{"c":{}}},"unevaluatedProperties":false})",
       {R"({"a":1,"b":1})", R"({"c":1})"},
       {R"({"a":1,"c":1})", R"({"b":1})", R"({"a":2})"}},
      // What is said beside a schema is not within it, and what 'not' looks at does not count.
      {R"({"type":"object","properties":{"a":{}},"allOf":[{"properties":{"b":{}},"unevaluatedProperties":false}]})",
       {R"({"b":1})"},
       {R"({"a":1})"}},
      {R"({"type":"object","not":{"not":{"properties":{"a":{}}}},"unevaluatedProperties":false})",
       {"{}"},
       {R"({"a":1})"}},
      // An inner schema has looked at all of them.
      {R"({"type":"object","allOf":[{"unevaluatedProperties":{"type":"null"}}],"unevaluatedProperties":false})",
       {R"({"a":null})"},
       {R"({"a":1})"}},
  });
}

TEST(schema_rules, hold_items_at_which_no_other_keyword_looked) {
  expect_examples({
      {R"({"type":"array","allOf":[{"prefixItems":[{"const":1},{"const":2}]}],"prefixItems":[true],"unevaluatedItems":false})",
       {"[]", "[1]", "[1,2]"},
       {"[2]", "[1,2,3]"}},
      {R"({"type":"array","prefixItems":[true],"unevaluatedItems":{"type":"null"}})", {"[1,null]"}, {"[1,2]"}},
      {R"({"type":"array","allOf":[{"items":{"type":"integer"}}],"unevaluatedItems":false})", {"[1,2]"}, {"[null]"}},
      {R"({"type":"array","$ref":"#/$defs/p","unevaluatedItems":false,"$defs":{"p":{"prefixItems":[{"const":1}]}}})",
       {"[1]"},
       {"[1,1]"}},
  });
}

TEST(schema_rules, say_what_cannot_be_enforced_and_where) {
  for (const auto& [schema, why] : std::vector<std::pair<const char*, const char*>>{
           {R"({"not":{"properties":{"a":{"not":{"unevaluatedItems":false}}}}})", "not supported within 'not'"},
           {R"({"enum":[[1],2],"unevaluatedItems":false})",
            "schema.unevaluatedItems: is not supported for values that are listed"},
           {R"({"$dynamicRef":"#a","$defs":{"x":{"$dynamicAnchor":"a"},"y":{"$id":"y","$dynamicAnchor":"a"}}})",
            "schema.$dynamicRef: '#a' may mean several schemas"},
           {R"({"type":"number","multipleOf":0.3})", "'multipleOf' of a fraction is supported where it divides 1"},
           {R"({"multipleOf":-0.5})", "'multipleOf' must be more than 0"},
           {R"({"items":{"$ref":"other.json"}})", "schema.items.$ref: 'other.json' is not in the schema"},
           {R"({"type":"array","uniqueItems":true})", "schema.uniqueItems: needs items of at most 32 values"},
           {R"({"type":"string","enum":[1]})", "no value matches all that stands at 'schema'"},
           {R"({"allOf":[{"type":"string"},{"type":"null"}]})", "no value matches"},
           {R"({"$ref":"#"})", "references and combinations that never end"},
           {R"({"$schema":"http://json-schema.org/draft-03/schema","extends":{}})", "'extends' is not supported"},
           {R"({"format":"idn-email"})", "schema.format: 'idn-email' is not supported; expected date"},
           {R"({"pattern":"(?=a)b"})", "schema.pattern: look-around"},
           {R"({"anyOf":[]})", "schema.anyOf: must be a list of schemas"},
           {R"({"properties":[]})", "schema.properties: must be an object"},
           {R"({"minLength":-1})", "schema.minLength: must be a count"},
           {R"({"type":"text"})", "schema.type: 'text' is not a type of JSON Schema"},
           {R"({"allOf":[3]})", "must be an object, true or false"},
       }) {
    const auto made = compile(json::parse(schema));
    ASSERT_FALSE(made) << schema;
    EXPECT_THAT(made.error().context, HasSubstr(why)) << schema;
  }
}

TEST(schema_rules, refuse_in_bounded_space_what_would_be_written_out_too_often) {
  json schema = {{"type", "object"}};
  for (int i = 0; i < 300; ++i)
    schema["properties"][std::string(50, static_cast<char>('a' + i % 26)) + std::to_string(i)] = true;
  for (int i = 0; i < 400; ++i) schema["not"]["required"].push_back("n" + std::to_string(i));
  json numbers = {{"type", "number"}};
  for (int i = 0; i < 5000; ++i) numbers["not"]["enum"].push_back(i * 1e-300);
  for (const json& one : {schema, numbers}) {
    const auto made = compile(one);
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error().context, HasSubstr("too large to be written out"));
  }
}

/// Schemas made by chance of keywords that meet in all ways.
class random_schema {
 public:
  explicit random_schema(std::mt19937& random) : random_(random) {}
  json make(int depth) {
    if (depth == 0 || pick(8) == 0) return simple();
    json s = json::object();
    for (int i = pick(3); i >= 0; --i) add_keyword(s, depth);
    return s;
  }

 private:
  int pick(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }
  json simple() {
    static const char* all[] = {"true",
                                "false",
                                R"({"type":"integer"})",
                                R"({"type":["string","null"]})",
                                R"({"const":1})",
                                R"({"enum":["a",2,null]})",
                                R"({"minimum":2})",
                                R"({"maxLength":1})",
                                R"({"type":"object"})",
                                R"({"required":["a"]})",
                                R"({"maxItems":1})",
                                R"({"pattern":"a"})",
                                R"({"type":"number"})",
                                R"({"enum":[[1],[],{"b":2}]})",
                                R"({"const":{"a":1}})",
                                R"({"multipleOf":0.5})",
                                R"({"minimum":-1.5,"maximum":2.25})",
                                R"({"type":"array","uniqueItems":true,"maxItems":1})"};
    return json::parse(all[pick(std::size(all))]);
  }
  void add_keyword(json& s, int depth) {
    const auto list = [&] {
      json l = json::array();
      for (int i = 1 + pick(2); i >= 0; --i) l.push_back(make(depth - 1));
      return l;
    };
    switch (pick(18)) {
      case 0:
        s["allOf"] = list();
        break;
      case 1:
        s["anyOf"] = list();
        break;
      case 2:
        s["oneOf"] = list();
        break;
      case 3:
        s["not"] = make(depth - 1);
        break;
      case 4:
        s["if"] = make(depth - 1);
        s[pick(2) == 0 ? "then" : "else"] = make(depth - 1);
        break;
      case 5:
        s["properties"] = {{"a", make(depth - 1)}, {"b", make(depth - 1)}};
        break;
      case 6:
        s["required"] = pick(2) == 0 ? json{"a"} : json{"a", "c"};
        break;
      case 7:
        s["additionalProperties"] = make(depth - 1);
        break;
      case 8:
        s["patternProperties"] = {{pick(2) == 0 ? "^a" : "b", make(depth - 1)}};
        break;
      case 9:
        s["items"] = make(depth - 1);
        break;
      case 10:
        s["prefixItems"] = list();
        break;
      case 11:
        s["contains"] = make(depth - 1);
        break;
      case 12:
        s[pick(2) == 0 ? "minItems" : "maxItems"] = 1 + pick(2);
        break;
      case 13:
        s[pick(2) == 0 ? "minProperties" : "maxProperties"] = 1 + pick(2);
        break;
      case 14:
        s[pick(2) == 0 ? "exclusiveMinimum" : "maximum"] = pick(4);
        break;
      case 15:
        s["type"] = json::parse(R"(["object","array","string","integer"])")[static_cast<std::size_t>(pick(4))];
        break;
      case 16:
        s["propertyNames"] = json::parse(
            R"([{"pattern":"a"},{"enum":["a","b"]},{"maxLength":1},true])")[static_cast<std::size_t>(pick(4))];
        break;
      default:
        s["dependentRequired"] = {{"a", {"b"}}};
        break;
    }
  }
  std::mt19937& random_;
};

/// The same value, whose parts are allocated in the opposite order.
json made_from_its_end(const json& value) {
  if (!value.is_structured()) return value;
  json out = value.is_array() ? json::array() : json::object();
  for (const auto& [name, unused] : value.items()) {
    if (value.is_array())
      out.push_back(nullptr);
    else
      out[name] = nullptr;
  }
  std::vector<json*> parts;
  for (auto& part : out) parts.push_back(&part);
  for (auto i = parts.size(); i-- > 0;) *parts[i] = made_from_its_end(*std::next(value.begin(), static_cast<int>(i)));
  return out;
}

TEST(schema_rules, are_the_same_wherever_a_schema_lies_in_memory) {
  const json schema = json::parse(R"({"type":"object","properties":{"x":{"type":"object","properties":{"b":{}}}},
      "patternProperties":{"^x":{"properties":{"a":{}}}}})");
  for (const json& one : {schema, made_from_its_end(schema)}) {
    const auto m = compile(one);
    ASSERT_TRUE(m);
    EXPECT_TRUE(accepts(**m, R"({"x":{"b":1,"a":2}})"));
    EXPECT_FALSE(accepts(**m, R"({"x":{"a":1,"b":2}})")) << "members come in the order in which they are declared";
  }
}

// The second opinion is `hold`, which looks at a value and knows nothing of rules.
TEST(schema_rules, agree_with_a_validator_on_schemas_by_chance) {
  std::vector<json> values;
  for (const char* text : {"null", "true", "1", "2", "3", "2.5", R"("a")", R"("b")", R"("ab")", R"("")", "[]", "{}"})
    values.push_back(json::parse(text));
  const auto simple = values;
  for (const auto& v : simple) {
    values.push_back(json::array({v}));
    for (const char* name : {"a", "b", "c", "ab"}) values.push_back(json::object({{name, v}}));
    for (const auto& w : simple) {
      values.push_back(json::array({v, w}));
      values.push_back(json::object({{"a", v}, {"b", w}}));
      values.push_back(json::object({{"a", v}, {"c", w}}));
    }
  }
  std::mt19937 random(29);
  std::size_t compiled = 0, matching = 0, accepted = 0;
  for (int run = 0; run < 2500; ++run) {
    const json schema = random_schema(random).make(3);
    const auto m = compile(schema);
    // Other addresses make the same tables, to which the states that travel refer.
    const json elsewhere = made_from_its_end(schema);
    const auto again = compile(elsewhere);
    ASSERT_EQ(!m, !again) << schema;
    const schema_document document(schema);
    step_count steps;
    schema_reader reader(document, steps);
    compiled += m ? 1 : 0;
    for (std::size_t i = random() % 5; i < values.size(); i += 5) {
      const bool holds = reader.hold({{&schema}}, values[i]);
      ASSERT_FALSE(reader.why() && m) << schema << reader.why()->context;
      const bool is_taken = m && accepts(**m, values[i].dump());
      ASSERT_TRUE(holds || !is_taken) << schema << " " << values[i];
      if (!m) continue;
      matching += holds ? 1 : 0;
      accepted += is_taken ? 1 : 0;
      if (is_taken) {
        const std::string text = values[i].dump();
        const std::string_view half = std::string_view(text).substr(0, text.size() / 2);
        ASSERT_EQ(*after(**m, half), *after(**again, half)) << schema << " " << half;
      }
    }
  }
  EXPECT_GT(compiled, 2000u);
  EXPECT_GT(accepted, matching * 96 / 100) << "few answers are left out";
}

}  // namespace
}  // namespace redline::grammar
