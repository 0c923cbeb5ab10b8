#include "runtime/grammar/json_schema.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "runtime/grammar/constraint.hpp"
#include "runtime/grammar/json_automaton.hpp"
#include "runtime/grammar/steps.hpp"
#include "tests/runtime/grammar/grammar_fixture.hpp"
#include "tests/runtime/grammar/schema_samples.hpp"
#include "tests/support/rounds.hpp"

namespace redline::grammar {
namespace {

/// "complete", "incomplete" (more must follow), or "wrong: " and the part up to the first refused byte.
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
                           "[ 1 ,\n2 ]", R"("\u00e9\n\"")", "\"\xc3\xa9\xf0\x9f\x99\x82\""}) {
    EXPECT_EQ(outcome("{}", text), "complete") << text;
    EXPECT_TRUE(nlohmann::json::accept(std::string(text))) << text;
  }
  for (const char* text : {"{]", "[1,]", "{\"a\"}", "{,", "01", "+1", "1.e", "nul!", "\"\n", "\"\\x", "\"\xff",
                           "\"\xc0\x80", "\"\xed\xa0", "\"\\ud800", "{} ", "tru ", "-a", "[,", "{\"a\":1,}"}) {
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
  EXPECT_EQ(outcome(schema, R"({ "ab" : -12 , "z" : false })"), "complete");
  EXPECT_EQ(outcome(schema, R"({"abc")"), "wrong: {\"ab");
  EXPECT_EQ(outcome(schema, R"({"ab":1,"abc":"x"})"), R"(wrong: {"ab":1,"abc":"x")");
  EXPECT_EQ(outcome(schema, R"({"ab":1.5)"), R"(wrong: {"ab":1)");
  EXPECT_EQ(outcome(schema, R"({})"), "wrong: {");
  EXPECT_EQ(outcome(schema, R"({"ab":1,"z":true,)"), R"(wrong: {"ab":1,"z":true)");
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
  EXPECT_EQ(outcome(R"({"type":"integer","minimum":5})", "123456789012345"), "complete");
  EXPECT_EQ(outcome(R"({"type":"integer","minimum":5})", "1234567890123456"), "wrong: 123456789012345");
  EXPECT_EQ(outcome(R"({"type":"integer","minimum":5})", "4"), "incomplete");
  EXPECT_EQ(outcome(R"({"type":"integer","maximum":5})", "-99999999999"), "complete");
  EXPECT_EQ(outcome(R"({"type":"integer","maximum":5})", "-0"), "wrong: -");
  EXPECT_EQ(outcome(R"({"type":"number","minimum":0})", "0.5"), "complete");
  EXPECT_EQ(outcome(R"({"type":"number","minimum":0})", "-"), "wrong: ");
  EXPECT_EQ(outcome(R"({"oneOf":[{"type":"integer","minimum":0},{"type":"null"}]})", "7"), "complete");
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
           wrong{R"({"type":"object","properties":{"a":{"type":"string","pattern":"x"}}})",
                 "schema.properties.a: the keyword 'pattern' is not supported"},
           wrong{R"({"allOf":[]})", "the keyword 'allOf'"},
           wrong{R"({"type":"string","minLength":3,"maxLength":2})", "minLength is more than maxLength"},
           wrong{R"({"type":"integer","minimum":3,"exclusiveMaximum":3})", "no number is within the bounds"},
           wrong{R"({"type":"integer","minimum":1e12})",
                 "schema.minimum: must be a whole number with an absolute value below"},
           wrong{R"({"type":"integer","maximum":"1"})", "schema.maximum: must be a whole number"},
           wrong{R"({"type":"number","minimum":1})", "schema: type number supports 'minimum' 0 and no other bound"},
           wrong{R"({"type":"integer","multipleOf":2})", "the keyword 'multipleOf'"},
           wrong{R"({"anyOf":[{"type":"integer"},{"enum":[1]}]})",
                 "schema.anyOf: alternatives that begin with the same character"},
           wrong{R"({"type":"object","required":["a"]})", "schema.required: 'a' is not among the properties"},
           wrong{R"({"$ref":"#/$defs/none"})", "schema.$ref: '#/$defs/none' is not in the schema's $defs"},
           wrong{R"({"$ref":"#"})", "never end"},
           wrong{R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})", "never end"},
           wrong{R"({"type":"array","minItems":2,"maxItems":1})", "minItems is more than maxItems"},
           wrong{R"({"type":"array","minItems":-1})", "schema.minItems: must be a count"},
           wrong{R"({"enum":[]})", "schema.enum: must be a list of values"},
       }) {
    EXPECT_THAT(outcome(schema, ""), testing::HasSubstr(why)) << schema;
  }
  std::string deep = "{}";
  for (int i = 0; i < 40; ++i) deep = R"({"type":"array","items":)" + deep + "}";
  EXPECT_THAT(outcome(deep, ""), testing::HasSubstr("nested deeper"));
  const std::string brackets = std::string(16'000, '[') + std::string(16'000, ']');
  EXPECT_THAT(outcome("{\"const\":" + brackets + "}", ""), testing::HasSubstr("nested deeper than 64 levels"));
  EXPECT_THAT(outcome(std::string(schema_bytes_max + 1, ' '), ""), testing::HasSubstr("expected at most"));
}

// However deep a value is, it can still be completed.
TEST(json_schema, random_bytes_under_the_grammar_make_valid_json) {
  const std::string schemas[] = {
      "{}", R"({"type":"object"})",
      R"({"type":"object","properties":{"s":{"type":"string"},"l":{"type":"array","items":{"$ref":"#"}},"e":{"enum":[1,10,100,"1"]},"n":{"type":["number","null"]}},"required":["s","e"]})",
      R"({"type":"array","items":{"anyOf":[{"type":"integer","minimum":-120,"maximum":1300},{"type":"string","minLength":3,"maxLength":5}]}})"};
  for (const auto& schema : schemas) {
    const auto m = *compile_schema(schema);
    std::mt19937 random(5);
    for (std::size_t i = 0; i < test::rounds(2000, 200); ++i) {
      automaton_state s = m->begin();
      std::string text;
      // Any byte for a while, then those that close soonest.
      for (std::size_t steps = 0; !m->is_terminated(s) && !(steps > 400 && m->is_accepting(s)); ++steps) {
        ASSERT_LT(steps, 6000u) << schema << "\n" << text;
        const bool closing = steps > 300;
        bool taken = false;
        const std::string closers = "\"}]:,0n\\tulsearf19{[ ";
        for (std::size_t tries = 0; !taken && tries < 4000; ++tries) {
          const auto closer = tries < closers.size() ? closers[tries] : static_cast<char>(tries);
          const auto byte = static_cast<std::uint8_t>(
              closing ? closer : static_cast<char>(random() % 4 == 0 ? random() : closers[random() % closers.size()]));
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

std::uint64_t count_steps(const std::string& schema) {
  const auto before = steps_taken;
  const auto made = compile_schema(schema);
  EXPECT_TRUE(made) << made.error().describe();
  return steps_taken - before;
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
  const auto before = steps_taken;
  EXPECT_EQ(outcome(schema, ""), "refused: schema: takes more than " + std::to_string(schema_steps_max) +
                                     " steps to compile; expected fewer or shorter names, values and references");
  EXPECT_LT(steps_taken - before, schema_steps_max + 4000);
  const auto few = compile_schema(R"({"enum":[1,2,3]})", 3);
  ASSERT_FALSE(few);
  EXPECT_THAT(few.error().context, testing::HasSubstr("more than 3 steps"));
}

}  // namespace
}  // namespace redline::grammar
