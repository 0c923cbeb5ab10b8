#include "runtime/grammar/json_schema.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "runtime/grammar/constraint.hpp"
#include "runtime/grammar/syntax/regex_dfa.hpp"
#include "runtime/grammar/syntax/steps.hpp"
#include "tests/runtime/grammar/grammar_fixture.hpp"
#include "tests/runtime/grammar/schema_samples.hpp"
#include "tests/support/rounds.hpp"

namespace redline::grammar {
namespace {

/// "complete", "incomplete", "wrong: " and the part up to the first refused byte, or "refused: " and the reason.
std::string outcome(const std::string& schema, const std::string& text) {
  const auto m = compile_schema(schema);
  if (!m) return "refused: " + m.error().context;
  automaton_state s = (*m)->begin();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!(*m)->advance(s, static_cast<std::uint8_t>(text[i]))) return "wrong: " + text.substr(0, i);
    EXPECT_TRUE((*m)->is_valid(s)) << text.substr(0, i + 1);
  }
  return (*m)->is_accepting(s) ? "complete" : "incomplete";
}

TEST(json_schema, an_empty_schema_allows_any_json) {
  for (const char* text : {"{}", "[]", "\"\"", "0", "-1.5e+3", "true", "null", R"({"a":[1,{"b":null}],"":""})",
                           "[ 1 , 2 ]", R"("\u00e9\n\"")", "\"\xc3\xa9\xf0\x9f\x99\x82\""}) {
    EXPECT_EQ(outcome("{}", text), "complete") << text;
    EXPECT_TRUE(nlohmann::json::accept(std::string(text))) << text;
  }
  for (const char* text : {"{]", "[1,]", "{\"a\"}", "{,", "01", "+1", "1.e", "nul!", "\"\n", "\"\\x", "\"\xff",
                           "\"\xc0\x80", "\"\xed\xa0", "\"\\ud800x", "{} ", "tru ", "-a", "[,", "{\"a\":1,}"}) {
    EXPECT_THAT(outcome("{}", text), testing::StartsWith("wrong")) << text;
  }
  for (const char* text : {"{", "[1", "\"a", "-", "1.", "1e", "tr", "{\"a\":"})
    EXPECT_EQ(outcome("{}", text), "incomplete") << text;
}

TEST(json_schema, objects_have_their_members_in_order) {
  const std::string schema =
      R"({"type":"object","properties":{"ab":{"type":"integer"},"abc":{"type":"string"},"z":{"type":"boolean"}},
                                 "required":["ab","z"],"additionalProperties":false})";
  EXPECT_EQ(outcome(schema, R"({"ab":1,"abc":"x","z":true})"), "complete");
  EXPECT_EQ(outcome(schema, R"({ "ab": -12 , "z": false })"), "complete");
  EXPECT_EQ(outcome(schema, R"({"abc")"), "wrong: {\"ab");
  EXPECT_EQ(outcome(schema, R"({"ab":1,"abc":"x"})"), R"(wrong: {"ab":1,"abc":"x")");
  EXPECT_EQ(outcome(schema, R"({"ab":1.5)"), R"(wrong: {"ab":1)");
  EXPECT_EQ(outcome(schema, R"({})"), "wrong: {");
  EXPECT_EQ(outcome(schema, R"({"ab":1,"z":true,)"), R"(wrong: {"ab":1,"z":true)");
}

TEST(json_schema, members_may_come_in_any_order_if_the_schema_says_so) {
  const std::string schema =
      R"({"redline:member_order":"any","type":"object","properties":{"ab":{"type":"integer"},"abc":{"type":"object",
          "properties":{"x":{},"y":{}},"additionalProperties":false},"z":{"type":"null"},"never":false},"required":["ab","z"]})";
  // Every order of every subset of the members, and another one.
  const std::vector<std::string> members = {"\"ab\":1", "\"abc\":{\"y\":1,\"x\":2}", "\"z\":null", "\"o\":7"};
  for (unsigned subset = 0; subset < 16; ++subset) {
    std::vector<std::string> some;
    for (unsigned i = 0; i < 4; ++i) {
      if ((subset >> i & 1) != 0) some.push_back(members[i]);
    }
    std::sort(some.begin(), some.end());
    const bool is_whole = (subset & 5) == 5;
    do {
      std::string text;
      for (const auto& one : some) text += (text.empty() ? "{" : ",") + one;
      if (text.empty()) text = "{";
      EXPECT_EQ(outcome(schema, text + "}") == "complete", is_whole) << text;
      for (const auto& one : some) {
        if (one == members[3]) continue;  // others may come twice
        EXPECT_THAT(outcome(schema, text + "," + one), testing::StartsWith("wrong")) << text << " then " << one;
      }
    } while (std::next_permutation(some.begin(), some.end()));
  }
  EXPECT_THAT(outcome(schema, R"({"never")"), testing::StartsWith("wrong"));
  EXPECT_EQ(
      outcome(R"({"redline:member_order":"declared","properties":{"a":{},"b":{}},"type":"object"})", R"({"b":1,"a")"),
      R"(wrong: {"b":1,"a)");
  std::string many = R"({"redline:member_order":"any","type":"object","properties":{"a":{},"b":{})";
  for (int i = 0; i < 30; ++i) many += ",\"" + std::to_string(i) + "\":{}";
  EXPECT_EQ(outcome(many + "}}", R"({"29":1,"b":1,"a":1})"), "complete");
  EXPECT_THAT(outcome(many + ",\"z\":{}}}", R"({"29":1,"b")"), testing::StartsWith("wrong")) << "33 members";
  EXPECT_THAT(outcome(R"({"redline:member_order":"some"})", ""), testing::HasSubstr("must be \"declared\" or \"any\""));
  EXPECT_THAT(outcome(R"({"items":{"redline:member_order":"any"}})", ""),
              testing::HasSubstr("schema.items: the keyword 'redline:member_order' is not supported"));
}

TEST(json_schema, follows_arrays_enums_alternatives_and_references) {
  EXPECT_EQ(outcome(R"({"type":"array","items":{"type":"null"},"minItems":1,"maxItems":2})", "[null,null]"),
            "complete");
  EXPECT_EQ(outcome(R"({"type":"array","items":{"type":"null"},"minItems":1,"maxItems":2})", "[]"), "wrong: [");
  EXPECT_EQ(outcome(R"({"type":"array","items":{"type":"null"},"maxItems":2})", "[null,null,"), "wrong: [null,null");
  EXPECT_EQ(outcome(R"({"type":"array","items":{"enum":[1,12,"a",{"b":[]}]}})", R"([12,1,"a",{"b":[]}])"), "complete");
  EXPECT_EQ(outcome(R"({"enum":[1,12]})", "1"), "complete");
  EXPECT_EQ(outcome(R"({"enum":[1,12]})", "13"), "wrong: 1");
  EXPECT_EQ(outcome(R"({"const":"x"})", "\"x\""), "complete");
  EXPECT_EQ(outcome(R"({"type":["string","null"]})", "null"), "complete");
  EXPECT_EQ(outcome(R"({"type":["integer","number"]})", "1.5"), "complete");
  const std::string tree =
      R"({"$ref":"#/$defs/t","$defs":{"t":{"type":"object","properties":{"k":{"anyOf":[{"$ref":"#/$defs/t"},{"type":"null"}]}},"required":["k"]}}})";
  EXPECT_EQ(outcome(tree, R"({"k":{"k":null}})"), "complete");
  EXPECT_EQ(outcome(R"({"type":"object","additionalProperties":{"type":"integer"}})", R"({"a":1,"b":2})"), "complete");
  EXPECT_EQ(outcome(R"({"type":"object","additionalProperties":{"type":"integer"}})", R"({"a":")"), R"(wrong: {"a":)");
  EXPECT_EQ(outcome(R"({"type":"object","additionalProperties":false})", "{}"), "complete");
}

TEST(json_schema, has_each_item_once_where_they_are_unique) {
  const std::string names = R"({"type":"array","uniqueItems":true,"minItems":1,"items":{"enum":["a","ab","b"]}})";
  EXPECT_EQ(outcome(names, R"(["ab","a","b"])"), "complete");
  EXPECT_EQ(outcome(names, R"(["b"])"), "complete");
  EXPECT_EQ(outcome(names, R"(["a","a"])"), R"(wrong: ["a","a)");
  EXPECT_EQ(outcome(names, R"(["ab","ab"])"), R"(wrong: ["ab","a)");
  EXPECT_EQ(outcome(names, R"(["b","b"])"), R"(wrong: ["b",")");
  EXPECT_EQ(outcome(names, R"(["ab","a","b",)"), R"(wrong: ["ab","a","b")");
  const std::string numbers =
      R"({"type":"array","uniqueItems":true,"items":{"type":"integer","minimum":-1,"maximum":12}})";
  EXPECT_EQ(outcome(numbers, "[1,12,-1,10]"), "complete");
  EXPECT_EQ(outcome(numbers, "[12,1,0]"), "complete") << "12 is taken, its beginning is not";
  EXPECT_EQ(outcome(numbers, "[1,12,1"), "incomplete") << "1 is taken, 10 and 11 are not";
  EXPECT_EQ(outcome(numbers, "[1,12,1]"), "wrong: [1,12,1");
  EXPECT_EQ(outcome(numbers, "[12,12"), "wrong: [12,1");
  const std::string pairs =
      R"({"type":"array","items":{"type":"array","uniqueItems":true,"items":{"type":"boolean"},"maxItems":9}})";
  EXPECT_EQ(outcome(pairs, "[[true,false],[true]]"), "complete") << "each array for itself";
  EXPECT_EQ(outcome(pairs, "[[true,false,"), "wrong: [[true,false");
  EXPECT_EQ(outcome(R"({"type":"array","uniqueItems":false,"items":{}})", "[1,1]"), "complete");
  EXPECT_EQ(outcome(R"({"type":"array","uniqueItems":true,"maxItems":1})", "[{}]"), "complete");
  const std::string tens =
      R"({"type":"array","uniqueItems":true,"items":{"type":"integer","minimum":0,"maximum":90,"multipleOf":10}})";
  EXPECT_EQ(outcome(tens, "[90,0,90"), "wrong: [90,0,");
  const std::string wide =
      R"({"type":"array","uniqueItems":true,"items":{"type":"integer","minimum":-900000,"maximum":600000,"multipleOf":500000}})";
  EXPECT_EQ(outcome(wide, "[500000,-500000,0]"), "complete");
  EXPECT_EQ(outcome(wide, "[500000,-500000,0,"), "wrong: [500000,-500000,0");
}

TEST(json_schema, counts_the_characters_of_strings) {
  const std::string schema = R"({"type":"string","minLength":2,"maxLength":4})";
  EXPECT_EQ(outcome(schema, "\"ab\""), "complete");
  EXPECT_EQ(outcome(schema, "\"\xc3\xa9\\n\\u00e9\xf0\x9f\x99\x82\""), "complete");
  EXPECT_EQ(outcome(schema, "\"a\""), "wrong: \"a");
  EXPECT_EQ(outcome(schema, "\"abcde\""), "wrong: \"abcd");
  EXPECT_EQ(outcome(R"({"type":"string","maxLength":0})", "\"\""), "complete");
}

TEST(json_schema, keeps_whole_numbers_within_their_bounds) {
  const auto all_within = [](std::int64_t low, std::int64_t high, const std::string& schema) {
    for (std::int64_t n = low - 30; n <= high + 30; ++n) {
      const bool within = low <= n && n <= high;
      const std::string text = std::to_string(n);
      EXPECT_EQ(outcome(schema, text) == "complete", within) << schema << " " << text;
    }
  };
  all_within(0, 99, R"({"type":"integer","minimum":0,"maximum":99})");
  all_within(-105, -7, R"({"type":"integer","minimum":-105,"maximum":-7})");
  all_within(-1, 12, R"({"type":"integer","exclusiveMinimum":-2,"maximum":12.0})");
  all_within(95, 105, R"({"type":"integer","minimum":95,"exclusiveMaximum":106})");
  EXPECT_EQ(outcome(R"({"type":"integer","minimum":5})", "12345678901234567890"), "complete");
  EXPECT_EQ(outcome(R"({"type":"integer","minimum":5})", "123456789012345678901"), "wrong: 12345678901234567890");
  EXPECT_EQ(outcome(R"({"type":"integer","minimum":5})", "4"), "incomplete");
  EXPECT_EQ(outcome(R"({"type":"integer","maximum":5})", "-99999999999"), "complete");
  EXPECT_EQ(outcome(R"({"type":"integer","maximum":5})", "-0"), "wrong: -");
  EXPECT_EQ(outcome(R"({"type":"number","minimum":0})", "0.5"), "complete");
  EXPECT_EQ(outcome(R"({"type":"number","minimum":0})", "-"), "wrong: ");
  EXPECT_EQ(outcome(R"({"oneOf":[{"type":"integer","minimum":0},{"type":"null"}]})", "7"), "complete");
}

// Assertions next to `anyOf` and the like, or without `type`, are enforced, or refused with their path and name.
TEST(json_schema, drops_no_assertion_that_stands_beside_others) {
  struct beside {
    const char *schema, *good, *bad;
  };
  for (const auto& [schema, good, bad] : {
           beside{R"({"type":"object","properties":{"a":{"type":"integer"}},"anyOf":[{"required":["a"]}]})",
                  R"({"a":1})", "{}"},
           beside{R"({"items":{"oneOf":[{"type":"string"}],"maxLength":3}})", R"(["abc"])", R"(["abcd"])"},
           beside{R"({"$defs":{"a":{"type":"string"}},"$ref":"#/$defs/a","maxLength":2})", R"("ab")", R"("abc")"},
           beside{R"({"anyOf":[{"type":"integer"}],"enum":[1,"a"]})", "1", R"("a")"},
           beside{R"({"type":"string","enum":["a","abc"],"maxLength":2})", R"("a")", R"("abc")"},
           beside{R"({"type":"object","anyOf":[{}]})", "{}", "1"},
           beside{R"({"type":"integer","anyOf":[{"type":"number"}]})", "1", "1.5"},
           beside{R"({"minimum":3})", "3", "2"},
           beside{R"({"multipleOf":2})", "4", "3"},
           beside{R"({"required":["a"]})", R"({"a":1})", "{}"},
       }) {
    EXPECT_EQ(outcome(schema, good), "complete") << schema;
    EXPECT_NE(outcome(schema, bad), "complete") << schema;
  }
  struct refused {
    const char* schema;
    const char* why;
  };
  for (const auto& [schema, why] : {
           refused{R"({"$defs":{"a":{"type":"string"}},"$ref":"#/$defs/a","anyOf":[{"type":"null"}]})",
                   "no value matches"},
           refused{R"({"const":5,"minimum":6})", "no value matches"},
           refused{R"({"type":"string","enum":[1,null]})", "no value matches"},
           refused{R"({"const":1,"enum":[2]})", "no value matches"},
           refused{R"({"type":"integer","anyOf":[{"type":"string"},{"type":"null"}]})", "no value matches"},
           refused{R"({"anyOf":[{"type":"object","not":{}}],"title":"x"})", "no value matches"},
           refused{R"({"uniqueItems":true})", "schema.uniqueItems: needs items"},
           refused{R"({"type":"string","required":true})", "schema.required: must be a list of names"},
           refused{R"({"properties":{"a":{"$id":"x","$ref":"#/$defs/b"}},"$defs":{"b":{"type":"null"}}})",
                   "schema.properties.a.$ref: '#/$defs/b' is not in the schema"},
           refused{R"({"$defs":{"a/properties/b":{"type":"null"}},"$ref":"#/$defs/a/properties/b"})",
                   "is not in the schema"},
       }) {
    EXPECT_THAT(outcome(schema, ""), testing::HasSubstr(why)) << schema;
  }
  // `type` leaves only the values that have it.
  EXPECT_EQ(outcome(R"({"type":"string","enum":["a",1]})", "1"), "wrong: ");
  EXPECT_EQ(outcome(R"({"type":["integer","null"],"enum":["a",1.0,null,1.5]})", "1.0"), "complete");
  EXPECT_EQ(outcome(R"({"type":["integer","null"],"enum":["a",1.0,null,1.5]})", "1.5"), "wrong: 1.");
  EXPECT_EQ(outcome(R"({"const":2,"enum":[1,2]})", "1"), "wrong: ");
  EXPECT_EQ(outcome(R"({"enum":["a","b"],"properties":{"c":{}},"minimum":3})", "\"a\""), "complete")
      << "what is said of objects and numbers concerns no string";
  const std::string nullable =
      R"({"type":["object","null"],"oneOf":[{"$ref":"#/$defs/a"},{"type":"string"},{"enum":[null,7]}],)"
      R"("$defs":{"a":{"type":"object","properties":{"b":{"type":"null"}},"required":["b"]}}})";
  EXPECT_EQ(outcome(nullable, R"({"b":null})"), "complete");
  EXPECT_EQ(outcome(nullable, "null"), "complete");
  EXPECT_EQ(outcome(nullable, "7"), "wrong: ");
  EXPECT_EQ(outcome(nullable, "\""), "wrong: ");
  EXPECT_EQ(outcome(R"({"type":"object","$ref":"#/$defs/a","$defs":{"a":{"type":"object"}}})", "{}"), "complete");
  EXPECT_EQ(outcome(R"({"anyOf":[{"type":"null"}],"required":[],"properties":{}})", "null"), "complete")
      << "they assert nothing";
}

TEST(json_schema, holds_values_without_a_type_to_what_is_said_of_each) {
  const auto all = [](const std::string& schema, std::initializer_list<const char*> good,
                      std::initializer_list<const char*> bad) {
    for (const char* text : good) EXPECT_EQ(outcome(schema, text), "complete") << schema << " " << text;
    for (const char* text : bad) EXPECT_NE(outcome(schema, text), "complete") << schema << " " << text;
  };
  all(R"({"maxLength":2})", {"\"ab\"", "12.5", "null", "[1]", R"({"a":1})", "true"}, {"\"abc\""});
  all(R"({"pattern":"^a*$"})", {"\"aa\"", "7", "[]"}, {"\"b\""});
  all(R"({"format":"ipv4"})", {"\"10.0.0.1\"", "1"}, {"\"10.0.0.256\""});
  all(R"({"minItems":1})", {"[1]", "{}", "\"\""}, {"[]"});
  all(R"({"additionalProperties":false})", {"{}", "3"}, {R"({"a":1})"});
  all(R"({"minimum":0})", {"0.5", "\"x\""}, {"-1"});
  all(R"({"properties":{"a":{"type":"null"}},"required":["a"]})", {R"({"a":null})", "5"}, {"{}"});
  all(R"({"maxLength":2.0,"type":"string"})", {"\"ab\""}, {"\"abc\""});
}

TEST(json_schema, takes_what_asserts_nothing_for_an_annotation) {
  EXPECT_EQ(outcome(R"({"id":"x","x-order":3,"example":{"not":1},"markdownDescription":"d","type":"null"})", "null"),
            "complete");
  EXPECT_EQ(outcome(R"({"type":"integer","format":"int32","readonly":true})", "5"), "complete");
  EXPECT_EQ(outcome(R"({"type":"string","format":"password"})", "\"x\""), "complete") << "a name of no draft";
  EXPECT_EQ(outcome(R"({"$defs":{"a~b":{"const":1},"c/d":{"const":2},"e%f":{"const":3}},"type":"array","maxItems":3,)"
                    R"("items":{"anyOf":[{"$ref":"#/$defs/a~0b"},{"$ref":"#/$defs/c~1d"},{"$ref":"#/$defs/e%25f"}]}})",
                    "[1,2,3]"),
            "complete");
  for (const char* name :
       {"contentEncoding", "contentMediaType", "extends", "disallow", "divisibleBy", "redline:text"}) {
    const std::string schema = std::string(R"({"type":"array","items":{")") + name + R"(":"x"}})";
    EXPECT_THAT(outcome(schema, ""), testing::HasSubstr("schema.items: the keyword '" + std::string(name) + "'"));
  }
}

TEST(json_schema, allows_what_matches_one_alternative_of_oneOf_and_no_other) {
  struct meeting {
    const char *schema, *good, *bad;
  };
  for (const auto& [schema, good, bad] : {
           meeting{R"({"oneOf":[{"type":"integer"},{"type":"number"}]})", "1.5", "1"},
           meeting{R"({"oneOf":[{"enum":["a","b"]},{"enum":["b","c"]}]})", "\"a\"", "\"b\""},
           meeting{R"({"oneOf":[{"enum":[1,2]},{"enum":[2.0]}]})", "1", "2"},
           meeting{R"({"oneOf":[{"type":["string","null"]},{"type":"null"}]})", "\"\"", "null"},
           meeting{R"({"oneOf":[{"type":"null"},{}]})", "1", "null"},
           meeting{
               R"({"oneOf":[{"type":"integer","minimum":0,"maximum":5},{"type":"integer","minimum":5,"maximum":9}]})",
               "9", "5"},
           meeting{R"({"anyOf":[{"type":"null"},{"oneOf":[{"type":"integer"},{"type":"number"}]}]})", "null", "2"},
           meeting{R"({"oneOf":[{"anyOf":[{"type":"null"},{"const":"x"}]},{"enum":["x","y"]}]})", "\"y\"", "\"x\""},
       }) {
    EXPECT_EQ(outcome(schema, good), "complete") << schema;
    EXPECT_NE(outcome(schema, bad), "complete") << schema;
  }
  for (const char* schema : {R"({"oneOf":[{"const":[1]},{"const":[1.0]}]})",
                             R"({"oneOf":[{"const":0},{"const":-0.0}]})", R"({"oneOf":[true,true]})",
                             R"({"oneOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}],"$defs":{"a":{"type":"null"}}})"})
    EXPECT_THAT(outcome(schema, ""), testing::HasSubstr("no value matches")) << schema;
  const std::string apart =
      R"({"oneOf":[{"type":"object","properties":{"kind":{"const":"a"},"n":{"type":"integer"}},"required":["kind","n"]},)"
      R"({"type":"object","properties":{"kind":{"enum":["b","c"]}},"required":["kind"],"additionalProperties":false},)"
      R"({"type":"string"},{"enum":[1,null]}]})";
  for (const char* good : {R"({"kind":"a","n":1})", R"({"kind":"c"})", "\"a\"", "1", "null"})
    EXPECT_EQ(outcome(apart, good), "complete") << good;
  EXPECT_EQ(outcome(apart, R"({"kind":"b","n")"), R"(wrong: {"kind":"b")");
  const std::string by_name = R"({"type":"object","oneOf":[{"properties":{"a":{"type":"null"}},"required":["a"]},)"
                              R"({"properties":{"b":{"type":"null"}},"required":["b"]}]})";
  EXPECT_EQ(outcome(by_name, R"({"b":null})"), "complete");
  EXPECT_EQ(outcome(by_name, R"({"a":null,"b":null})"), R"(wrong: {"a":null,"b":)") << "no value of b would do";
  EXPECT_EQ(outcome(R"({"oneOf":[{"anyOf":[{"const":"a"},{"type":"string"}]},{"type":"null"}]})", "\"b\""), "complete");
  EXPECT_EQ(outcome(R"({"oneOf":[{"type":"integer","maximum":-1},{"type":"number","minimum":0}]})", "-5"), "complete");
}

TEST(json_schema, refuses_schemas_that_it_cannot_enforce) {
  struct wrong {
    const char* schema;
    const char* why;
  };
  for (const auto& [schema, why] : {
           wrong{"[", "schema: not valid JSON: at byte 2"},
           wrong{"3", "schema: must be an object"},
           wrong{R"({"type":"strin"})", "schema.type: 'strin' is not a type of JSON Schema"},
           wrong{R"x({"type":"object","properties":{"a":{"type":"string","pattern":"(?=x)"}}})x",
                 "schema.properties.a.pattern: look-around and flags are not supported"},
           wrong{R"({"type":"string","format":"idn-email"})",
                 "schema.format: 'idn-email' is not supported; expected date"},
           wrong{R"({"type":"string","pattern":"^ab$","minLength":3})", "no value matches"},
           wrong{R"({"type":"string","pattern":"a{900}b{900}"})", "at most 1024 states"},
           wrong{R"({"type":"array","uniqueItems":true})", "schema.uniqueItems: needs items of at most 32 values"},
           wrong{R"({"type":"array","uniqueItems":true,"items":{"type":"integer","minimum":0,"maximum":32}})",
                 "schema.uniqueItems: needs items of at most 32 values"},
           wrong{R"({"type":"array","uniqueItems":1})", "schema.uniqueItems: must be true or false"},
           wrong{R"({"redline:grammar":"root ::= \"a\""})", "schema: the keyword 'redline:grammar'"},
           wrong{R"({"redline:blanks":65})", "at most 64 blanks"},
           wrong{R"({"allOf":[]})", "schema.allOf: must be a list of schemas"},
           wrong{R"({"type":"string","minLength":3,"maxLength":2})", "no value matches"},
           wrong{R"({"type":"integer","minimum":3,"exclusiveMaximum":3})", "no value matches"},
           wrong{R"({"type":"integer","minimum":1e21})", "no value matches"},
           wrong{R"({"type":"integer","minimum":11,"maximum":13,"multipleOf":5})", "no value matches"},
           wrong{R"({"type":"integer","multipleOf":0})", "'multipleOf' must be more than 0"},
           wrong{R"({"type":"integer","maximum":"1"})", "schema.maximum: must be a number"},
           wrong{R"({"$ref":"#/$defs/none"})", "schema.$ref: '#/$defs/none' is not in the schema"},
           wrong{R"({"$ref":"#"})", "never end"},
           wrong{R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})", "no value matches"},
           wrong{R"({"type":"array","minItems":2,"maxItems":1})", "no value matches"},
           wrong{R"({"type":"array","minItems":-1})", "schema.minItems: must be a count"},
           wrong{R"({"enum":[]})", "schema.enum: must be a list of values"},
       }) {
    EXPECT_THAT(outcome(schema, ""), testing::HasSubstr(why)) << schema;
  }
  std::string deep = "{}";
  for (int i = 0; i < 70; ++i) deep = R"({"type":"array","items":)" + deep + "}";
  EXPECT_THAT(outcome(deep, ""), testing::HasSubstr("nested deeper"));
  const std::string brackets = std::string(16'000, '[') + std::string(16'000, ']');
  EXPECT_THAT(outcome("{\"const\":" + brackets + "}", ""), testing::HasSubstr("nested deeper than 64 levels"));
  EXPECT_THAT(outcome(std::string(schema_bytes_max + 1, ' '), ""), testing::HasSubstr("expected at most"));
}

TEST(json_schema, takes_the_bounds_of_a_doubles_whole_numbers_for_none) {
  const std::string zod = R"({"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991})";
  EXPECT_EQ(outcome(zod, "-123456789012345"), "complete");
  EXPECT_EQ(outcome(zod, "0"), "complete");
  EXPECT_EQ(outcome(R"({"type":"integer","minimum":0,"maximum":4102444800})", "4102444800"), "complete");
  EXPECT_EQ(outcome(R"({"type":"integer","minimum":0,"maximum":4102444800})", "4102444801"), "wrong: 410244480");
  EXPECT_EQ(outcome(R"({"type":"integer","minimum":4102444800})", "4102444799"), "incomplete");
}

TEST(json_schema, keeps_whole_numbers_to_multiples) {
  const std::string schema = R"({"type":"integer","minimum":-50,"maximum":120,"multipleOf":7})";
  for (int n = -70; n <= 150; ++n) {
    const bool within = n >= -50 && n <= 120 && n % 7 == 0;
    EXPECT_EQ(outcome(schema, std::to_string(n)) == "complete", within) << n;
  }
  EXPECT_EQ(outcome(R"({"type":"integer","multipleOf":1000})", "123000"), "complete");
  EXPECT_EQ(outcome(R"({"type":"integer","multipleOf":1000})", "12300"), "incomplete");
}

TEST(json_schema, lets_one_space_stand_between_tokens_unless_told_otherwise) {
  EXPECT_EQ(outcome("{}", R"({ "a": 1, "b": [ ] })"), "complete");
  EXPECT_EQ(outcome("{}", "{  "), "wrong: { ");
  EXPECT_EQ(outcome("{}", "{\n"), "wrong: {");
  EXPECT_EQ(outcome(R"({"redline:blanks":3})", "{\n  \"a\":1}"), "complete");
  EXPECT_EQ(outcome(R"({"redline:blanks":3})", "{\n   "), "wrong: {\n  ");
  EXPECT_EQ(outcome(R"({"redline:blanks":0,"type":"object"})", "{ "), "wrong: {");
}

TEST(json_schema, holds_strings_to_patterns_and_formats) {
  const auto fits = [](const std::string& schema, const std::string& content) {
    return outcome(schema, "\"" + content + "\"") == "complete";
  };
  const std::string part = R"({"type":"string","pattern":"b+"})";
  EXPECT_TRUE(fits(part, "abbc")) << "a part is enough";
  EXPECT_FALSE(fits(part, "ac"));
  const std::string whole = R"({"type":"string","pattern":"^(/[a-z_]+)+\\.py$"})";
  EXPECT_TRUE(fits(whole, "/a/b_c.py"));
  EXPECT_FALSE(fits(whole, "/a/b_c.py3"));
  const std::string bare = R"({"type":"string","pattern":"^\\S.$"})";
  EXPECT_TRUE(fits(bare, "ab"));
  for (const char* blank : {"\xc2\xa0", "\xe2\x80\x83", "\xe2\x80\xa9", "\xef\xbb\xbf"})
    EXPECT_FALSE(fits(bare, std::string(blank) + "b")) << "blanks are those of ECMA-262";
  EXPECT_FALSE(fits(bare, "a\\r")) << "and so are ends of lines";
  const std::string quote = R"({"type":"string","pattern":"^\"\\\\\n$"})";
  EXPECT_TRUE(fits(quote, R"(\"\\\n)")) << "what has to be escaped is";
  EXPECT_EQ(outcome(quote, "\"x"), "wrong: \"");
  const std::string counted = R"({"type":"string","pattern":"^[a-z]*$","minLength":2,"maxLength":3})";
  EXPECT_FALSE(fits(counted, "a"));
  EXPECT_TRUE(fits(counted, "abc"));
  EXPECT_EQ(outcome(counted, "\"abcd"), "wrong: \"abc");
  EXPECT_TRUE(fits(R"({"type":"string","pattern":"^[^a-z]{2}$"})", "\xc3\xa9\xf0\x9f\x99\x82"))
      << "characters, not bytes";

  const auto format = [&](const std::string& name, const std::string& content) {
    return fits(R"({"type":"string","format":")" + name + "\"}", content);
  };
  EXPECT_TRUE(format("date", "2026-11-23"));
  EXPECT_FALSE(format("date", "2026-13-23"));
  EXPECT_TRUE(format("date-time", "2026-11-23T04:30:00.5Z"));
  EXPECT_TRUE(format("time", "23:59:59+01:00"));
  EXPECT_TRUE(format("email", "a.b+c@example.org"));
  EXPECT_FALSE(format("email", "a@b"));
  EXPECT_TRUE(format("uuid", "123e4567-e89b-12d3-a456-426614174000"));
  EXPECT_TRUE(format("uri", "https://example.org/a?b=c#d"));
  EXPECT_TRUE(format("ipv4", "255.0.10.1"));
  EXPECT_FALSE(format("ipv4", "256.0.0.1"));
  EXPECT_TRUE(format("ipv6", "2001:db8::1"));
  for (const char* text : {"", "a/b?c#d", "//h/p", "/p", "?q", "#f", "http://a@h:1/", "./a:b", "../x"})
    EXPECT_TRUE(format("uri-reference", text)) << text;
  for (const char* text : {":a", "1:b", "a b", "/\xc3\xa9", "//[1]", "a%2"})
    EXPECT_FALSE(format("uri-reference", text)) << text;
  EXPECT_TRUE(format("iri", "http://\xc3\xa9.example/\xe2\x82\xac"));
  EXPECT_FALSE(format("iri", "/\xc3\xa9"));
  EXPECT_TRUE(format("iri-reference", "/\xc3\xa9#\xe4\xb8\xad"));
  for (const char* text : {"", "/a{?b,c*}", "{+x:30}/{/y.z}", "x{#h}"})
    EXPECT_TRUE(format("uri-template", text)) << text;
  for (const char* text : {"{", "a}", "{}", "{a:0}", "{=a}", "{a b}"})
    EXPECT_FALSE(format("uri-template", text)) << text;
  for (const char* text : {"", "/", "/a~0b/~1", "//0"}) EXPECT_TRUE(format("json-pointer", text)) << text;
  for (const char* text : {"a", "/~", "/~2", "#/a"}) EXPECT_FALSE(format("json-pointer", text)) << text;
  for (const char* text : {"0", "12#", "1/a/b"}) EXPECT_TRUE(format("relative-json-pointer", text)) << text;
  for (const char* text : {"01", "/a", "1#/a", "-1"}) EXPECT_FALSE(format("relative-json-pointer", text)) << text;
  for (const char* text : {"", "^[a-z0-9_-]+$", "(a|b(?:c*)?){2,}x+?", R"(\\d{4}\\.\\w)", "a|", "[^,]*"})
    EXPECT_TRUE(format("regex", text)) << text;
  for (const char* text : {"(", "a)", "[", "*a", "a**", "[z-a]", "a{2,1}", R"(\\)", "(?<n", "[]"})
    EXPECT_FALSE(format("regex", text)) << text;
  // zod 4 writes this for z.email(): the pattern looks around, and the format asserts the same.
  EXPECT_TRUE(fits(
      R"({"type":"string","format":"email","pattern":"^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$"})",
      "a@example.org"));
}

TEST(json_schema, holds_strings_to_a_pattern_and_a_format_together) {
  const auto fits = [](const std::string& schema, const std::string& content) {
    return outcome(schema, "\"" + content + "\"") == "complete";
  };
  const std::string year = R"({"type":"string","format":"date","pattern":"^2"})";
  EXPECT_TRUE(fits(year, "2026-11-24"));
  EXPECT_FALSE(fits(year, "2"));
  EXPECT_FALSE(fits(year, "1999-11-24"));
  const std::string counted = R"({"type":"string","format":"ipv4","pattern":"^1","maxLength":8})";
  EXPECT_TRUE(fits(counted, "10.0.0.1"));
  EXPECT_FALSE(fits(counted, "10.0.0.10"));
  EXPECT_FALSE(fits(counted, "20.0.0.1"));
  EXPECT_TRUE(fits(R"({"type":"string","format":"no-draft-has-it","pattern":"^a"})", "ab"));
  for (const auto& [schema, why] : std::initializer_list<std::pair<const char*, const char*>>{
           {R"({"type":"string","format":"email","pattern":"\\bjoe\\b"})", "schema.pattern: '\\b' is not supported"},
           {R"({"type":"string","format":"email","pattern":"^.{5,900}@corp\\.example$"})", "schema.pattern: "},
           {R"({"type":"string","format":"time","pattern":"^[0-9]{2}:[0-9]{2}$"})", "no value matches"},
           {R"({"type":"string","format":"idn-email","pattern":"^a"})", "schema.format: 'idn-email' is not supported"},
       }) {
    EXPECT_THAT(outcome(schema, ""), testing::HasSubstr(why)) << schema;
  }
}

TEST(json_schema, formats_are_those_of_their_standards) {
  struct texts {
    const char* format;
    std::vector<std::string> good, bad;
  };
  const std::string label(63, 'a');
  for (const auto& [format, good, bad] : {
           texts{"date",
                 {"2024-02-29", "2000-02-29", "2021-12-31", "1999-04-30"},
                 {"2021-02-29", "1900-02-29", "2020-04-31", "2020-02-30", "2020-00-10", "2020-13-01", "2020-1-01"}},
           texts{"date-time",
                 {"1990-12-31T15:59:50.123-08:00", "2024-02-29T00:00:00Z"},
                 {"1990-02-31T15:59:59Z", "1990-12-31T24:00:00Z", "1990-12-31 15:59:59Z", "1990-12-31T15:59:59"}},
           texts{"duration",
                 {"P4DT12H30M5S", "P4Y", "PT0S", "P0D", "P1M", "PT1M", "PT36H", "P1DT12H", "P2W", "P1Y2M3D", "PT1H30M",
                  "PT5M"},
                 {"P", "PT", "P1YT", "P2D1Y", "P1D2H", "P1Y2D", "PT1H2S", "P1Y2W", "P1", "4DT12H", "P4Y3", "PT1D"}},
           texts{"ipv6",
                 {"::", "::1", "2001:db8::8a2e:370:7334", "::ffff:10.0.0.1", "d6::", "1:2:3:4:5:6:7:8", "::abef",
                  "1:d6::42", "1::d6:192.168.0.1", "1:2::192.168.0.1", "1:2:3:4:5:6:1.2.3.4"},
                 {"12345::", "1:1:1:1:1:1:1:1:1", "1:2:3:4:5:::8", "::laptop", ":2:3:4:5:6:7:8", "1:2:3:4:5:6:7:",
                  "1:2:3:4:5:6:7", "::1:2:3:4:5:6:7:8", "1.2.3.4", "1:2:3:4:5:6:7:1.2.3.4", "fe80::a%eth1", "1::2::3"}},
           texts{
               "uri",
               {"https://x.org/a%20b", "http://[2001:db8::7]/c=GB?a", "http://u:p@h.example:8080/p/?q=%41#f%20g",
                "mailto:joe@example.com", "urn:oasis:names:x", "http://x.org", "tel:+1-816-555-1212", "file:///etc/a"},
               {"//x.org/a", "/abc", "a b", "http://x.org/a%2", "http://x.org/a%zz", "http://[::1", "http://x.org/<>",
                "http://x.org/a#b#c", "http:// x.org", "1http://x.org", "http://x.org:port/", "http://[1::2::3]/",
                "x.org", "http://x.org/a[b]"}},
           texts{"hostname",
                 {"www.example.com", "a", "1host", "a-b.c", "a--b", label, label + ".example.org"},
                 {"-a", "a-", "a.-b", "a..b", "", "a_b", label + "a", "xn--x", "ab--c", ".a", "a.",
                  label + "." + label + "." + label + "." + label}},
           texts{"email", {"a.b@example.org"}, {"a@b", ".a@b.org", "a..b@c.org", "a@-b.org", "a@b-.org"}},
       }) {
    const std::string schema = std::string(R"({"type":"string","format":")") + format + "\"}";
    for (const auto& text : good) EXPECT_EQ(outcome(schema, "\"" + text + "\""), "complete") << format << " " << text;
    for (const auto& text : bad) EXPECT_NE(outcome(schema, "\"" + text + "\""), "complete") << format << " " << text;
  }
}

TEST(json_schema, tells_objects_apart_by_a_member_with_values_of_its_own) {
  // z.discriminatedUnion("kind", ...), with the member first, last, and by reference.
  const std::string schema = R"({"anyOf":[
      {"type":"object","properties":{"kind":{"type":"string","const":"move"},"to":{"type":"integer"}},"required":["kind","to"],"additionalProperties":false},
      {"type":"object","properties":{"text":{"type":"string"},"kind":{"const":"say"}},"required":["text","kind"],"additionalProperties":false},
      {"$ref":"#/$defs/stop"},{"type":"null"}],
      "$defs":{"stop":{"type":"object","properties":{"kind":{"enum":["stop","stay"]},"for":{"type":"integer"}},"required":["kind"]}}})";
  for (const char* good : {R"({"kind":"move","to":5})", R"({"text": "hi", "kind": "say"})", R"({"kind":"stop"})",
                           R"({"kind":"stay","for":3})", "null"}) {
    EXPECT_EQ(outcome(schema, good), "complete") << good;
  }
  EXPECT_EQ(outcome(schema, R"({"kind":"move","text")"), R"(wrong: {"kind":"move","t)");
  EXPECT_EQ(outcome(schema, R"({"kind":"say"})"), R"(wrong: {"kind":"s)") << "after the text only";
  EXPECT_EQ(outcome(schema, R"({"kind":"sit)"), R"(wrong: {"kind":"s)");
  EXPECT_EQ(outcome(schema, "{}"), "wrong: {");
}

TEST(json_schema, tells_objects_apart_by_the_name_of_their_first_member) {
  const std::string schema = R"({"type":"array","items":{"anyOf":[
      {"type":"object","properties":{"path":{"type":"string"},"line":{"type":"integer"}},"required":["path","line"]},
      {"type":"object","properties":{"pattern":{"type":"string"}},"required":["pattern"],"additionalProperties":false}]}})";
  EXPECT_EQ(outcome(schema, R"([{"path":"a","line":1},{"pattern":"b"}])"), "complete");
  EXPECT_EQ(outcome(schema, R"([{"path":"a"})"), R"(wrong: [{"path":"a")");
  EXPECT_EQ(outcome(schema, R"([{"pattern":"b","line")"), R"(wrong: [{"pattern":"b")");
  EXPECT_EQ(outcome(schema, R"([{})"), "wrong: [{");
}

TEST(json_schema, joins_alternatives_of_which_one_has_the_other) {
  EXPECT_EQ(outcome(R"({"anyOf":[{"const":"a"},{"type":"string"},{"const":null}]})", "\"abc\""), "complete");
  EXPECT_EQ(outcome(R"({"anyOf":[{"const":"a"},{"type":"string"},{"const":null}]})", "null"), "complete");
  EXPECT_EQ(outcome(R"({"anyOf":[{"const":"a"},{"enum":["ab",5]}]})", "\"ab\""), "complete");
  EXPECT_EQ(outcome(R"({"anyOf":[{"type":"integer"},{"type":"number"}]})", "1.5"), "complete");
}

// A value can be completed, however deep it is.
TEST(json_schema, random_bytes_under_the_grammar_make_valid_json) {
  const std::string schemas[] = {
      "{}",
      R"({"type":"object"})",
      R"({"type":"object","properties":{"s":{"type":"string"},"l":{"type":"array","items":{"$ref":"#"}},"e":{"enum":[1,10,100,"1"]},"n":{"type":["number","null"]}},"required":["s","e"]})",
      R"({"type":"array","uniqueItems":true,"minItems":3,"items":{"enum":["a","ab","abc",1,12,1213,null,[],[1]]}})",
      R"({"type":"array","items":{"anyOf":[{"type":"integer","minimum":-120,"maximum":1300},{"type":"string","minLength":3,"maxLength":5}]}})",
      R"({"type":"object","properties":{"d":{"type":"string","format":"date-time"},"p":{"type":"string","pattern":"^[a-f]{2}(-[0-9]+)?$"},"m":{"type":"integer","minimum":-900,"maximum":1700,"multipleOf":13},"u":{"anyOf":[{"type":"object","properties":{"k":{"const":"a"},"x":{"type":"integer"}},"required":["k","x"]},{"type":"object","properties":{"k":{"const":"b"}},"required":["k"]}]}},"required":["d","p","m","u"]})"};
  for (const auto& schema : schemas) {
    const auto m = *compile_schema(schema);
    std::mt19937 random(5);
    for (std::size_t i = 0; i < test::rounds(2000, 200); ++i) {
      automaton_state s = m->begin();
      std::string text;
      // Takes any byte for a while, then those that close soonest.
      for (std::size_t steps = 0; !m->is_terminated(s) && !(steps > 400 && m->is_accepting(s)); ++steps) {
        ASSERT_LT(steps, 6000u) << schema << "\n" << text;
        const bool closing = steps > 300;
        bool taken = false;
        const std::string closers = "\"}]:,0n\\tulsearf19{[ ";
        for (std::size_t tries = 0; !taken && tries < 4000; ++tries) {
          const auto closer = tries < closers.size() ? closers[tries] : static_cast<char>(tries);
          const auto byte = static_cast<std::uint8_t>(
              closing || tries > 2000
                  ? closer
                  : static_cast<char>(random() % 4 == 0 ? random() : closers[random() % closers.size()]));
          automaton_state after = s;
          taken = m->advance(after, byte);
          if (!taken) continue;
          s = after;
          text += static_cast<char>(byte);
        }
        if (!taken && m->is_accepting(s)) break;
        ASSERT_TRUE(taken) << schema << ": a dead end after " << text;
      }
      ASSERT_TRUE(nlohmann::json::accept(text)) << schema << "\n" << text;
    }
  }
}

/// The byte as it stands inside of a JSON string.
std::string spelled(std::uint8_t byte) {
  static const std::map<std::uint8_t, std::string> escapes = {
      {'"', "\\\""}, {'\\', "\\\\"}, {'\b', "\\b"}, {'\f', "\\f"}, {'\n', "\\n"}, {'\r', "\\r"}, {'\t', "\\t"}};
  const auto known = escapes.find(byte);
  return known != escapes.end() ? known->second : std::string(1, static_cast<char>(byte));
}

/// A slow decider of texts of an expression with a length: which bytes of one can be completed.
struct measured_texts {
  const regex_dfa& texts;
  text_length length;
  std::map<std::pair<std::uint32_t, std::uint32_t>, bool> known = {};

  bool ends(std::uint32_t at, std::uint32_t count) const {
    return texts.accepts(at) && count >= length.least && count <= length.most;
  }
  /// Longer texts than the least length of any number have as many ways as that.
  std::uint32_t after(std::uint32_t count, std::uint8_t byte) const {
    const auto then = count + ((byte & 0xC0) == 0x80 ? 0U : 1U);
    return length.most == UINT32_MAX ? std::min(then, length.least) : then;
  }
  bool can_end(std::uint32_t at, std::uint32_t count) {
    if (count > length.most) return false;
    const auto [one, is_new] =
        known.try_emplace({at, count}, false);  // a way that comes back here is no way to the end
    if (!is_new) return one->second;
    bool can = ends(at, count);
    for (unsigned byte = 0; byte < 256 && !can; ++byte) {
      const auto to = texts.next(at, static_cast<std::uint8_t>(byte));
      can = to != regex_dfa::dead && can_end(to, after(count, static_cast<std::uint8_t>(byte)));
    }
    return known[{at, count}] = can;
  }
};

TEST(json_schema, a_pattern_and_lengths_hold_together) {
  const struct {
    std::string pattern;
    text_length length;
  } all[] = {{"^[a-c]+(x[a-c]+)*$", {3, 7}},
             {"^(ab)*$", {5, 12}},
             {"^(ab|cde)*$", {0, 11}},
             {"^(abc)*$", {4, UINT32_MAX}},
             {"^(a|b{5})$", {2, 9}},
             {"^a*$", {0, 4}},
             {"^a*b?$", {3, UINT32_MAX}},
             {"b", {0, 3}},
             {"", {1, 2}},
             {"[\u00e9\"\\\\\n]x?$", {2, 3}},
             {"^.{2}$|^x+$", {2, 30}},
             {"^(\u20ac|ab)+$", {3, 6}}};
  std::mt19937 random(5);
  for (const auto& [pattern, length] : all) {
    nlohmann::json schema{{"type", "string"}, {"pattern", pattern}, {"minLength", length.least}};
    if (length.most != UINT32_MAX) schema["maxLength"] = length.most;
    const auto m = *compile_schema(schema.dump());
    const auto texts = *regex_dfa::compile(pattern, {.how = regex_dfa::match::anywhere, .is_json = true});
    measured_texts reference{texts, length};
    const auto take = [&](automaton_state& s, const std::string& bytes) {
      return std::ranges::all_of(bytes,
                                 [&](char c) { return m->advance(s, static_cast<std::uint8_t>(c)) && m->is_valid(s); });
    };
    for (std::size_t i = 0; i < test::rounds(60, 15); ++i) {
      automaton_state s = m->begin();
      ASSERT_TRUE(take(s, "\""));
      auto at = texts.begin();
      std::uint32_t count = 0;
      for (int step = 0; step < 20; ++step) {
        std::vector<std::uint8_t> can;
        for (unsigned byte = 0; byte < 256; ++byte) {
          automaton_state after = s;
          const auto to = texts.next(at, static_cast<std::uint8_t>(byte));
          const bool is_allowed =
              to != regex_dfa::dead && reference.can_end(to, reference.after(count, static_cast<std::uint8_t>(byte)));
          ASSERT_EQ(take(after, spelled(static_cast<std::uint8_t>(byte))), is_allowed)
              << schema << " byte " << byte << " at step " << step;
          if (is_allowed) can.push_back(static_cast<std::uint8_t>(byte));
        }
        automaton_state end = s;
        ASSERT_EQ(take(end, "\""), reference.ends(at, count)) << schema << " at step " << step;
        if (can.empty()) break;
        const auto byte = can[random() % can.size()];
        ASSERT_TRUE(take(s, spelled(byte)));
        at = texts.next(at, byte);
        count = reference.after(count, byte);
      }
    }
  }
}

TEST(json_schema, names_have_the_lengths_and_the_values_that_propertyNames_asks_for) {
  const std::string listed = R"({"type":"object","propertyNames":{"enum":["a",1,"bc",null]}})";
  EXPECT_EQ(outcome(listed, R"({"a":1,"bc":2})"), "complete");
  EXPECT_EQ(outcome(listed, R"({"b":1})"), R"(wrong: {"b)");
  EXPECT_EQ(outcome(R"({"type":"object","propertyNames":{"enum":[1]}})", "{}"), "complete");
  EXPECT_EQ(outcome(R"({"type":"object","propertyNames":{"enum":[1]}})", "{\""), "wrong: {");
  EXPECT_EQ(outcome(R"({"type":"object","propertyNames":{"enum":[""]}})", R"({"":1})"), "complete");
  const std::string counted =
      R"({"type":"object","properties":{"ab":{}},"allOf":[{"propertyNames":{"minLength":2}},{"propertyNames":{"maxLength":3}}]})";
  for (const char* text : {R"({"xy":1})", R"({"ab":1,"abc":2})", "{\"\xc3\xa9\xc3\xa9\xc3\xa9\":1}"})
    EXPECT_EQ(outcome(counted, text), "complete") << text;
  for (const char* text : {R"({"x":1})", R"({"abcd":1})", R"({"xy":1,"ab":2})", "{\"\xc3\xa9\":1}"})
    EXPECT_THAT(outcome(counted, text), testing::StartsWith("wrong")) << text;
  const std::string both = R"({"type":"object","propertyNames":{"pattern":"^(ab)*$","minLength":3,"maxLength":5}})";
  EXPECT_EQ(outcome(both, R"({"abab":1})"), "complete");
  EXPECT_EQ(outcome(both, R"({"ab")"), R"(wrong: {"ab)");
}

TEST(json_schema, excluded_texts_stand_beside_lengths_and_patterns) {
  const std::string length = R"({"type":"string","minLength":1,"maxLength":3,"not":{"enum":["ab","\u00e9","abcd",7]}})";
  for (const char* text : {"\"a\"", "\"abc\"", "\"\xc3\xa8\"", "\"\\n\""})
    EXPECT_EQ(outcome(length, text), "complete") << text;
  for (const char* text : {"\"\"", "\"ab\"", "\"\xc3\xa9\"", "\"abcd\""})
    EXPECT_THAT(outcome(length, text), testing::StartsWith("wrong")) << text;
  const std::string pattern = R"({"type":"string","pattern":"^[ab]*$","not":{"enum":["ab","x"]},"maxLength":3})";
  for (const char* text : {"\"\"", "\"a\"", "\"aba\""}) EXPECT_EQ(outcome(pattern, text), "complete") << text;
  for (const char* text : {"\"ab\"", "\"x\"", "\"abab\""})
    EXPECT_THAT(outcome(pattern, text), testing::StartsWith("wrong")) << text;
  EXPECT_THAT(outcome(R"({"type":"string","pattern":"^a$","not":{"const":"a"}})", ""),
              testing::HasSubstr("no value matches"));
}

TEST(json_schema, a_length_that_a_pattern_never_has_is_no_value) {
  EXPECT_THAT(outcome(R"({"type":"string","pattern":"^(abc)*$","minLength":4,"maxLength":5})", ""),
              testing::HasSubstr("no value matches"));
  EXPECT_EQ(outcome(R"({"type":["string","null"],"pattern":"^(abc)*$","minLength":4,"maxLength":5})", "null"),
            "complete");
  EXPECT_EQ(outcome(R"({"type":"string","format":"email","maxLength":1024})", R"("a@b.example")"), "complete");
  EXPECT_EQ(outcome(R"({"type":"string","pattern":"^[0-9a-z]*$","maxLength":2000000000})", R"("a0")"), "complete");
  EXPECT_THAT(outcome(R"({"type":"string","pattern":"^(ab)*$","minLength":2000000000,"maxLength":2000000000})", ""),
              testing::HasSubstr("too long to compile"));
}

TEST(json_schema, a_count_of_characters_from_which_a_text_has_no_end_is_no_state) {
  const auto m = *compile_schema(R"({"type":"string","pattern":"^(ab)*$","minLength":6,"maxLength":6})");
  automaton_state s = m->begin();
  for (const char c : std::string_view("\"aba")) ASSERT_TRUE(m->advance(s, static_cast<std::uint8_t>(c)));
  std::vector<std::uint32_t> cells(s.cells().begin(), s.cells().end());
  ASSERT_EQ(cells.back(), 3u);
  for (std::uint32_t count = 0; count < 12; ++count) {
    cells.back() = count;
    EXPECT_EQ(m->is_valid(automaton_state(cells)), count % 2 == 1 && count < 6) << count;
  }
}

std::uint64_t count_steps(const std::string& schema) {
  step_count steps(schema_steps_max);
  const auto made = compile_schema(schema, {}, steps);
  EXPECT_TRUE(made) << made.error().describe();
  return steps.taken();
}

TEST(json_schema, compiling_takes_steps_in_proportion_to_the_bytes) {
  for (const auto& [name, make] : test::large_schemas()) {
    const std::string small = make(1000);
    const double per_byte = static_cast<double>(count_steps(small)) / static_cast<double>(small.size());
    for (const std::size_t bytes : {4'000, 16'000, 30'000}) {
      const std::string schema = make(bytes);
      ASSERT_GT(schema.size(), bytes - bytes / 8) << name;
      EXPECT_LT(static_cast<double>(count_steps(schema)), 2 * per_byte * static_cast<double>(schema.size())) << name;
    }
  }
}

TEST(json_schema, compiling_a_chain_of_references_takes_steps_in_proportion_to_its_links) {
  EXPECT_LT(count_steps(test::chained_schema(240)), 12 * count_steps(test::chained_schema(24)));
}

TEST(json_schema, refuses_what_takes_too_many_steps_to_compile) {
  // Every part is named by a path of 1,800 bytes.
  std::string schema, end;
  for (int depth = 0; depth < 23; ++depth) {
    schema += "{\"properties\":{\"" + std::string(64, 'a') + "\":";
    end += "}}";
  }
  schema += "{\"anyOf\":[{}";
  while (schema.size() < 30'000) schema += ",{}";
  schema += "]}" + end;
  EXPECT_THAT(outcome(schema, ""), testing::HasSubstr("combinations of alternatives"));
  step_count few(1000);
  const auto made = compile_schema(schema, {}, few);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().context, testing::HasSubstr("takes more than 1000 steps"));
  EXPECT_LT(few.taken(), 5000);
  step_count three(3);
  const auto none = compile_schema(R"({"enum":[1,2,3]})", {}, three);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().context, testing::HasSubstr("more than 3 steps"));
}

}  // namespace
}  // namespace redline::grammar
