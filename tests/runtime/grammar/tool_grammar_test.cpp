#include "runtime/grammar/tool_grammar.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <string>

#include "runtime/grammar/automaton_store.hpp"
#include "runtime/grammar/json_schema.hpp"
#include "runtime/grammar/syntax/steps.hpp"
#include "runtime/grammar/tool_reader.hpp"
#include "tests/runtime/grammar/grammar_fixture.hpp"

namespace redline::grammar {
namespace {

using json = nlohmann::ordered_json;
using kind = answer_part::kind;

tools::tool_set two_tools() {
  tools::tool edit{.name = "edit", .description = "Edits."};
  edit.parameters = json::parse(R"({"type": "object", "description": "d", "properties": {
      "path": {"type": "string", "description": "where"}, "line": {"type": "integer", "minimum": 1},
      "text": {"type": "string"}}, "required": ["path", "text"]})");
  tools::tool longer{.name = "edit_file"};
  tools::tool_set set;
  set.all = {edit, longer};
  return set;
}

std::shared_ptr<const tool_automaton> compile(const tools::tool_set& set, const tools::call_format& format) {
  const auto c = tool_constraint(set, format);
  EXPECT_TRUE(c) << c.error().describe();
  auto compiled = compile_tools(c->text);
  EXPECT_TRUE(compiled) << compiled.error().describe();
  return *compiled;
}

/// A call in its format's markup. `arguments` are already written as the format has them.
std::string call_text(const tools::call_format& f, const std::string& name, const std::string& arguments,
                      bool is_further = false) {
  const bool in_list = is_further && !f.next.empty();
  return (in_list ? std::string(f.next) : std::string(f.begin) + std::string(f.before_name)) + name +
         std::string(f.after_name) + arguments + std::string(f.after_arguments);
}

bool takes(const byte_automaton& rules, const std::string& text) {
  automaton_state s = rules.begin();
  return std::ranges::all_of(text, [&](char c) { return rules.advance(s, static_cast<std::uint8_t>(c)); }) &&
         rules.is_accepting(s);
}

const std::string json_arguments =
    R"({"path": "a/b.c", "line": 12, "text": "x = \"<tool_call>\" \n [TOOL_CALLS] \u00e9"})";
const std::string element_arguments =
    "<parameter=path>\na/b.c\n</parameter>\n<parameter=line>\n12\n</parameter>\n"
    "<parameter=text>\nx = \"<tool_call>\" \\n [TOOL_CALLS] \xc3\xa9\n\n</parameter>\n";

std::string arguments_in(const tools::call_format& f) { return f.has_elements ? element_arguments : json_arguments; }

/// The parts that a reader makes of a text that comes in pieces of `piece` bytes, extended to whole characters.
std::vector<answer_part> read(const std::shared_ptr<const tool_automaton>& rules, const std::string& text,
                              std::size_t piece) {
  tool_reader reader(rules);
  std::vector<answer_part> all;
  const auto add = [&](std::vector<answer_part> parts) {
    for (auto& p : parts) {
      EXPECT_NO_THROW(static_cast<void>(json(p.text).dump())) << "whole characters";
      const bool is_more =
          !all.empty() && all.back().what == p.what && p.what != kind::call && p.what != kind::call_end;
      if (is_more)
        all.back().text += p.text;
      else
        all.push_back(std::move(p));
    }
  };
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(at + piece, text.size());
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    add(reader.feed(text.substr(at, end - at)));
    at = end;
  }
  add(reader.finish());
  return all;
}

/// The parts of a text, which are the same for every size of pieces.
std::vector<answer_part> read_in_any_pieces(const std::shared_ptr<const tool_automaton>& rules,
                                            const std::string& text) {
  const auto whole = read(rules, text, text.size());
  for (const std::size_t piece : {1, 2, 3, 7, 20}) EXPECT_EQ(read(rules, text, piece), whole) << text;
  return whole;
}

TEST(tool_reader, finds_calls_of_every_format_and_what_stands_around_them) {
  for (const auto& f : tools::all_formats()) {
    const auto rules = compile(two_tools(), f);
    const std::string said =
        f.has_channels ? "<|channel|>analysis<|message|>hm < ok<|end|><|start|>assistant" : "I look < at [it].\n\n";
    const auto parts = read_in_any_pieces(rules, said + call_text(f, "edit", arguments_in(f)) + std::string(f.end));
    ASSERT_EQ(parts.size(), 4U) << f.name;
    EXPECT_EQ(parts[0].what, f.has_channels ? kind::reasoning : kind::text) << f.name;
    EXPECT_EQ(parts[0].text, f.has_channels ? "hm < ok" : "I look < at [it].") << "blanks before a call are its own";
    EXPECT_EQ(parts[1], (answer_part{kind::call, "edit"})) << f.name;
    EXPECT_EQ(parts[2].what, kind::arguments);
    const auto arguments = json::parse(parts[2].text);
    EXPECT_EQ(arguments["path"], "a/b.c");
    EXPECT_EQ(arguments["line"], 12);
    EXPECT_TRUE(arguments["text"].get<std::string>().starts_with("x = \"<tool_call>\"")) << parts[2].text;
    EXPECT_EQ(parts[3].what, kind::call_end);
  }
}

TEST(tool_reader, finds_several_calls_and_the_text_between_them) {
  for (const auto& f : tools::all_formats()) {
    if (f.ends_answer) continue;
    const auto rules = compile(two_tools(), f);
    const std::string none = f.has_elements ? "" : "{}";
    const bool is_list = !f.next.empty();
    std::string text = call_text(f, "edit", arguments_in(f)) + (is_list ? "" : "\nand \n") +
                       call_text(f, "edit_file", none, true) + std::string(f.end) + "\n\ndone\n";
    const auto parts = read_in_any_pieces(rules, text);
    std::vector<kind> kinds;
    for (const auto& p : parts) kinds.push_back(p.what);
    std::vector<kind> wanted{kind::call, kind::arguments, kind::call_end};
    if (!is_list) wanted.push_back(kind::text);
    for (const auto k : {kind::call, kind::arguments, kind::call_end, kind::text}) wanted.push_back(k);
    ASSERT_EQ(kinds, wanted) << f.name;
    EXPECT_EQ(parts[parts.size() - 4].text, "edit_file");
    EXPECT_EQ(parts[parts.size() - 3].text, "{}");
    EXPECT_EQ(parts.back().text, "done\n");
    if (!is_list) {
      EXPECT_EQ(parts[3].text, "and");
    }
  }
}

TEST(tool_reader, a_bare_object_that_names_a_tool_is_a_call_of_llama) {
  const auto rules = compile(two_tools(), *tools::find_format("llama3"));
  const auto parts = read_in_any_pieces(rules, R"({"name": "edit", "parameters": {"path": "p", "text": "t"}})");
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0], (answer_part{kind::call, "edit"}));
  EXPECT_EQ(parts[1].text, R"({"path": "p", "text": "t"})");
  for (const std::string text : {R"({"name": "other", "parameters": {}})", R"({"name": "edi)", "{}", "", "{\"nam",
                                 "no <|python_tag|", R"(say {"name": "edit", "parameters": {}})"}) {
    const auto plain = read_in_any_pieces(rules, text);
    EXPECT_EQ(plain, text.empty() ? std::vector<answer_part>{} : std::vector<answer_part>({{kind::text, text}}));
  }
}

TEST(tool_reader, gives_back_as_text_what_is_no_call) {
  for (const auto& f : tools::all_formats()) {
    if (f.has_channels) continue;
    const auto rules = compile(two_tools(), f);
    const std::string begin(f.begin);
    for (const std::string& text :
         {begin, begin.substr(0, begin.size() - 1), begin + "no", begin + std::string(f.before_name) + "unknown",
          begin + begin, std::string("plain \n text \n"), begin + std::string(f.before_name) + "edit"}) {
      std::string all;
      for (const auto& p : read_in_any_pieces(rules, text)) {
        EXPECT_EQ(p.what, kind::text);
        all += p.text;
      }
      EXPECT_EQ(all, text) << f.name;
    }
  }
}

TEST(tool_reader, tells_the_part_of_a_call_that_was_cut) {
  for (const auto& f : tools::all_formats()) {
    const auto rules = compile(two_tools(), f);
    const std::string text = call_text(f, "edit", arguments_in(f));
    const auto cut = text.find("a/b.c") + 3;
    const auto parts = read_in_any_pieces(rules, text.substr(0, cut));
    ASSERT_EQ(parts.size(), 2U) << f.name;
    EXPECT_EQ(parts[1].text, "{\"path\": \"a/b") << f.name;
  }
}

TEST(tool_reader, what_follows_a_message_of_a_channel_is_no_text) {
  const auto rules = compile(two_tools(), *tools::find_format("harmony"));
  const auto parts = read_in_any_pieces(rules,
                                        "<|channel|>analysis<|message|>think<|end|><|start|>assistant<|channel|>final"
                                        "<|message|>It is <b>so</b>.");
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0], (answer_part{kind::reasoning, "think"}));
  EXPECT_EQ(parts[1], (answer_part{kind::text, "It is <b>so</b>."}));
}

TEST(tool_grammar, every_state_of_an_answer_is_valid_and_survives_its_journey) {
  for (const auto& f : tools::all_formats()) {
    const auto rules = compile(two_tools(), f);
    automaton_state s = rules->begin();
    for (const char c : "text " + call_text(f, "edit", arguments_in(f)) + std::string(f.end)) {
      ASSERT_TRUE(rules->is_valid(s)) << f.name;
      ASSERT_TRUE(rules->advance(s, static_cast<std::uint8_t>(c))) << f.name << " before " << c;
    }
    EXPECT_TRUE(rules->is_valid(s));
    EXPECT_TRUE(rules->is_accepting(s));
    EXPECT_EQ(rules->is_terminated(s), f.ends_answer) << f.name;
  }
}

TEST(tool_grammar, holds_arguments_to_the_tools_schema) {
  const auto accepts = [](const tools::call_format& f, const std::string& name, const std::string& arguments) {
    const auto rules = compile(two_tools(), f);
    automaton_state s = rules->begin();
    const auto text = call_text(f, name, arguments) + std::string(f.end);
    return std::all_of(text.begin(), text.end(),
                       [&](char c) { return rules->advance(s, static_cast<std::uint8_t>(c)); });
  };
  const auto& hermes = *tools::find_format("hermes");
  EXPECT_TRUE(accepts(hermes, "edit", R"({"path": "a", "text": ""})"));
  EXPECT_FALSE(accepts(hermes, "edit", R"({"path": "a"})")) << "text is required";
  EXPECT_FALSE(accepts(hermes, "edit", R"({"path": 5, "text": ""})"));
  EXPECT_FALSE(accepts(hermes, "edit", R"({"path": "a", "line": 0, "text": ""})")) << "below the minimum";
  EXPECT_FALSE(accepts(hermes, "edit", R"("a")")) << "an object";
  EXPECT_FALSE(accepts(hermes, "edits", "{}")) << "no such tool";
  EXPECT_TRUE(accepts(hermes, "edit_file", R"({"anything": [1, null]})"));
  const auto& elements = *tools::find_format("qwen3-coder");
  const std::string path = "<parameter=path>\na\n</parameter>\n", text = "<parameter=text>\n\n</parameter>\n";
  EXPECT_TRUE(accepts(elements, "edit", path + text));
  EXPECT_FALSE(accepts(elements, "edit", path)) << "text is required";
  EXPECT_FALSE(accepts(elements, "edit", text + path)) << "in the schema's order";
  EXPECT_FALSE(accepts(elements, "edit", path + "<parameter=line>\nx\n</parameter>\n" + text));
  EXPECT_FALSE(accepts(elements, "edit", path + "<parameter=line>\n0\n</parameter>\n" + text));
  EXPECT_FALSE(accepts(elements, "edit", path + "<parameter=other>\nx\n</parameter>\n" + text));
}

TEST(tool_grammar, what_has_to_be_called_is_called_first_and_once_if_only_one_is_wanted) {
  for (const auto& f : tools::all_formats()) {
    auto set = two_tools();
    set.call = tools::choice::required;
    set.allowed = {"edit_file"};
    set.many = false;
    const auto rules = compile(set, f);
    automaton_state s = rules->begin();
    EXPECT_FALSE(rules->is_accepting(s)) << f.name;
    const std::string none = f.has_elements ? "" : "{}";
    const std::string opening = f.bare_begin.empty() ? std::string() : std::string(f.bare_begin);
    const std::string text =
        (opening.empty() ? call_text(f, "edit_file", none)
                         : opening + "edit_file" + std::string(f.after_name) + none + std::string(f.after_arguments)) +
        std::string(f.end);
    for (const char c : text) ASSERT_TRUE(rules->advance(s, static_cast<std::uint8_t>(c))) << f.name << " at " << c;
    EXPECT_TRUE(rules->is_terminated(s)) << f.name;
    automaton_state other = rules->begin();
    EXPECT_FALSE(rules->advance(other, 'x')) << f.name;
  }
}

TEST(tool_grammar, names_that_begin_alike_and_names_that_are_words_of_the_markup_are_told_apart) {
  tools::tool_set set;
  for (const char* name : {"a", "ab", "abc", "name", "arguments", "parameter", "function", "tool_call", "b:c/d.e-f"})
    set.all.push_back({.name = name});
  for (const auto& f : tools::all_formats()) {
    const auto rules = compile(set, f);
    for (const auto& t : set.all) {
      const auto parts = read(rules, call_text(f, t.name, f.has_elements ? "" : "{}") + std::string(f.end), 3);
      ASSERT_FALSE(parts.empty());
      EXPECT_EQ(parts[0], (answer_part{kind::call, t.name})) << f.name;
    }
  }
}

TEST(tool_grammar, a_schema_that_cannot_be_held_to_refuses_strict_tools_only) {
  for (const auto* format : {"hermes", "qwen3-coder"}) {
    tools::tool_set set;
    set.all.push_back({.name = "f"});
    set.all[0].parameters =
        json::parse(R"({"type": "object", "properties": {"a": {"type": "string", "contentEncoding": "x"},
        "b": {"type": "integer"}}, "required": ["b"]})");
    const auto& f = *tools::find_format(format);
    ASSERT_TRUE(tool_constraint(set, f)) << "held to its shape";
    const auto text = tool_constraint(set, f)->text;
    EXPECT_EQ(text.find("contentEncoding"), std::string::npos) << text;
    EXPECT_NE(text.find("required"), std::string::npos) << text;
    set.all[0].strict = true;
    const auto refused = tool_constraint(set, f);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().context.find("tool 'f'"), std::string::npos);
    EXPECT_NE(refused.error().context.find("contentEncoding"), std::string::npos);
    set.all[0].parameters = json::parse(R"({"type": "array"})");
    EXPECT_FALSE(tool_constraint(set, f)) << "arguments are an object";
    set.all[0].strict = false;
    EXPECT_TRUE(tool_constraint(set, f));
  }
}

TEST(tool_grammar, arguments_are_objects_whatever_stands_beside_their_schema) {
  const auto& f = *tools::find_format("hermes");
  tools::tool_set set;
  set.all.push_back({.name = "f"});
  const auto allows = [&](const std::string& arguments) {
    const auto rules = compile(set, f);
    automaton_state s = rules->begin();
    for (const char c : call_text(f, "f", arguments)) {
      if (!rules->advance(s, static_cast<std::uint8_t>(c))) return false;
    }
    return true;
  };
  struct given {
    const char* schema;
    bool is_strict;
    const char* good;
    const char* bad;
  };
  const char* beside = R"({"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},
                           "additionalProperties":false,"anyOf":[{"required":["a"]},{"required":["b"]}]})";
  for (const auto& [schema, is_strict, good, bad] : {
           given{beside, false, R"({"a": "x"})", R"({"zzz": 1})"},
           given{R"({"properties":{"a":{}},"required":["a","b"],"allOf":[{}]})", false, R"({"a": 1, "b": 2})",
                 R"({"a": 1})"},
           given{R"({"properties":{"a":{"type":"string","enum":["x",3],"maxLength":1}}})", false, R"({"a": "x"})",
                 R"({"a": 3})"},
           given{R"({"type":["object","null"],"properties":{"a":{}}})", true, R"({"a": 1})", "null"},
           given{R"({"anyOf":[{"type":"null"},{"type":"object","properties":{"a":{}}}]})", true, R"({"a": 1})", "null"},
           given{R"({"anyOf":[{},{"type":"null"}]})", false, R"({"zzz": 1})", "7"},
           given{R"({"enum":[{},7]})", true, "{}", "7"},
           given{R"({"x-note":"only remarks"})", true, R"({"zzz": 1})", "7"},
           given{"true", true, R"({"zzz": 1})", "7"},
       }) {
    set.all[0].parameters = json::parse(schema);
    set.all[0].strict = is_strict;
    EXPECT_TRUE(allows(good)) << schema;
    EXPECT_FALSE(allows(bad)) << schema;
  }
  set.all[0].parameters = json::parse(beside);
  set.all[0].strict = true;
  EXPECT_TRUE(tool_constraint(set, f));
  const auto& elements = *tools::find_format("qwen3-coder");
  const auto rules = compile(set, elements);
  const std::string a = "<parameter=a>\nx\n</parameter>\n", b = "<parameter=b>\n1\n</parameter>\n";
  for (const auto& some : {a, b, a + b}) EXPECT_TRUE(takes(*rules, call_text(elements, "f", some))) << some;
  EXPECT_FALSE(takes(*rules, call_text(elements, "f", ""))) << "one of them is required";
}

TEST(tool_grammar, elements_say_what_they_cannot_be_held_to) {
  const auto& f = *tools::find_format("qwen3-coder");
  for (const auto& [schema, why] : std::vector<std::pair<std::string, std::string>>{
           {R"({"properties":{"a":{}},"maxProperties":1})", "schema: counts of members are not supported"},
           {R"({"properties":{"a>":{}}})", "schema.properties: has the name 'a>'"},
           {R"({"enum":[{},{"a":1}]})", "schema: listed objects are not supported"},
           {R"({"type":"array"})", "schema: expected type object"}}) {
    tools::tool_set set{.all = {{.name = "f", .strict = true}}};
    set.all[0].parameters = json::parse(schema);
    const auto refused = tool_constraint(set, f);
    ASSERT_FALSE(refused) << schema;
    EXPECT_NE(refused.error().context.find("tool 'f': " + why), std::string::npos) << refused.error().context;
  }
}

// A member that may be a text is one wherever it may stand, so that the call means the same whichever way it was read.
TEST(tool_grammar, elements_of_alternatives_are_read_in_one_way) {
  const auto& f = *tools::find_format("qwen3-coder");
  tools::tool_set set{.all = {{.name = "f", .strict = true}}};
  set.all[0].parameters = json::parse(
      R"({"anyOf":[{"properties":{"a":{"type":"string"},"b":{"const":1}},"required":["a","b"]},
                   {"properties":{"a":{"type":["integer","string"]},"b":{"const":2}},"required":["a","b"]},
                   {"properties":{"a":{"type":"integer"},"b":{"const":3}},"required":["a","b"]}]})");
  const auto rules = compile(set, f);
  for (const int b : {1, 2, 3}) {
    const auto text =
        call_text(f, "f", "<parameter=a>\n12\n</parameter>\n<parameter=b>\n" + std::to_string(b) + "\n</parameter>\n");
    EXPECT_EQ(takes(*rules, text), b < 3) << b;
    if (b < 3) {
      EXPECT_EQ(read_in_any_pieces(rules, text)[1].text, R"({"a": "12", "b": )" + std::to_string(b) + "}");
    }
  }
}

TEST(tool_grammar, references_stay_in_their_own_schema) {
  tools::tool_set set;
  for (const auto* type : {"string", "integer"}) {
    set.all.push_back({.name = std::string("f_") + type, .strict = true});
    set.all.back().parameters = json{
        {"$defs", {{"x", {{"type", type}}}}}, {"properties", {{"a", {{"$ref", "#/$defs/x"}}}}}, {"required", {"a"}}};
  }
  for (const auto* name : {"hermes", "qwen3-coder"}) {
    const auto& f = *tools::find_format(name);
    const auto rules = compile(set, f);
    const auto arguments = [&](const char* value) {
      return f.has_elements ? "<parameter=a>\n" + std::string(value) + "\n</parameter>\n"
                            : R"({"a": )" + std::string(value) + "}";
    };
    EXPECT_TRUE(takes(*rules, call_text(f, "f_string", arguments(R"("x")"))));
    EXPECT_TRUE(takes(*rules, call_text(f, "f_integer", arguments("7"))));
    EXPECT_FALSE(takes(*rules, call_text(f, "f_integer", arguments(R"("x")"))));
    EXPECT_EQ(takes(*rules, call_text(f, "f_string", arguments("7"))), f.has_elements) << "a text";
  }
}

TEST(tool_grammar, schemas_of_many_tools_share_a_limit_of_work) {
  tools::tool_set set;
  for (int i = 0; i < 60; ++i) {
    tools::tool t{.name = "tool" + std::to_string(i)};
    const auto name = [&](int k) { return std::to_string(i) + "_" + std::to_string(k); };
    for (int k = 0; k < 50; ++k) t.parameters["dependentRequired"][name(k)] = {name(k + 1)};
    set.all.push_back(std::move(t));
  }
  step_count steps;
  const auto c = tool_constraint(set, *tools::find_format("hermes"), steps);
  ASSERT_TRUE(c) << "what takes too long is an object only";
  EXPECT_GT(steps.taken(), 2 * schema_steps_max);
  EXPECT_LT(steps.taken(), 6 * schema_steps_max);
  step_count again;
  EXPECT_TRUE(compile_tools(c->text, again)) << "the target does no more work";
}

TEST(tool_grammar, arguments_that_are_nested_too_deeply_are_lost) {
  const auto& f = *tools::find_format("hermes");
  const auto rules = compile(two_tools(), f);
  const auto after = [&](std::size_t depth) {
    automaton_state s = rules->begin();
    for (const char c : std::string(f.begin) + std::string(f.before_name) + "edit_file" + std::string(f.after_name) +
                            "{\"a\":" + std::string(depth, '['))
      EXPECT_TRUE(rules->advance(s, static_cast<std::uint8_t>(c))) << depth;
    return s;
  };
  EXPECT_FALSE(rules->is_lost(after(500)));
  EXPECT_TRUE(rules->is_valid(after(500)));
  EXPECT_TRUE(rules->is_lost(after(5000)));
}

TEST(tool_grammar, descriptions_do_not_travel_but_properties_of_such_names_do) {
  auto set = two_tools();
  set.all[0].parameters["properties"]["description"] = json{{"type", "string"}, {"title", "gone"}};
  const auto text = tool_constraint(set, *tools::find_format("hermes"))->text;
  EXPECT_EQ(text.find("where"), std::string::npos) << text;
  EXPECT_EQ(text.find("gone"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("description":{"type":"string"})"), std::string::npos) << text;
}

TEST(tool_grammar, many_and_large_schemas_are_bounded_in_bytes_and_work) {
  tools::tool_set set;
  for (int i = 0; i < 128; ++i) {
    tools::tool t{.name = "tool" + std::to_string(i)};
    for (int k = 0; k < 200; ++k)
      t.parameters["properties"]["property_" + std::to_string(k)] =
          json{{"type", "array"}, {"items", {{"type", "string"}}}};
    set.all.push_back(std::move(t));
  }
  const auto c = tool_constraint(set, *tools::find_format("qwen3-coder"));
  ASSERT_TRUE(c) << "what does not fit is an object only";
  EXPECT_LE(c->text.size(), tools_bytes_max);
  step_count steps;
  ASSERT_TRUE(compile_tools(c->text, steps));
  EXPECT_LE(steps.taken(), 16 * tools_bytes_max * 2);
  for (auto& t : set.all) t.strict = true;
  EXPECT_FALSE(tool_constraint(set, *tools::find_format("hermes")));
}

TEST(tool_grammar, definitions_do_not_make_work_for_each_property) {
  tools::tool_set set{.all = {{.name = "tool"}}};
  auto& parameters = set.all[0].parameters;
  parameters["type"] = "object";
  for (int i = 0; i < 200; ++i)
    parameters["$defs"]["part" + std::to_string(i)] = {{"enum", {std::string(60, 'x') + std::to_string(i)}}};
  for (int i = 0; i < 300; ++i) parameters["properties"]["p" + std::to_string(i)] = {{"type", "integer"}};
  const auto steps_of = [&] {
    step_count steps;
    const auto c = tool_constraint(set, *tools::find_format("qwen3-coder"), steps);
    EXPECT_TRUE(c);
    return std::pair(steps.taken(), c ? c->text.size() : 0);
  };
  const auto [apart, size] = steps_of();
  EXPECT_GT(size, 20'000u) << "nothing refers to the definitions";
  EXPECT_LT(apart, 200'000u);
  for (int i = 0; i < 300; ++i) parameters["properties"]["p" + std::to_string(i)] = {{"$ref", "#/$defs/part7"}};
  const auto [referring, held] = steps_of();
  EXPECT_GT(held, 20'000u);
  EXPECT_LT(referring, 400'000u);
}

// In this format the grammar tells a text from a call by the names of all tools.
TEST(tool_grammar, says_that_names_are_too_many_and_too_long) {
  std::mt19937 random(3);
  tools::tool_set set;
  for (int i = 0; i < 170; ++i) {
    std::string name;
    for (int k = 0; k < 250; ++k) name += static_cast<char>('a' + random() % 26);
    set.all.push_back({.name = name});
  }
  EXPECT_TRUE(tool_constraint(set, *tools::find_format("hermes")));
  const auto refused = tool_constraint(set, *tools::find_format("llama3"));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().context.find("the tools' names are too long"), std::string::npos);
  set.all.resize(100);
  const auto rules = compile(set, *tools::find_format("llama3"));
  EXPECT_TRUE(takes(*rules, "any text, { or <"));
}

TEST(tool_grammar, tools_that_come_again_are_not_compiled_again) {
  automaton_store store;
  step_count steps;
  const auto first = tool_constraint(two_tools(), *tools::find_format("hermes"), steps, &store);
  ASSERT_TRUE(first);
  const auto known = store.find(*first);
  ASSERT_NE(known, nullptr);
  ASSERT_TRUE(tool_constraint(two_tools(), *tools::find_format("hermes"), steps, &store));
  EXPECT_EQ(store.find(*first), known);
  EXPECT_EQ(steps.taken(), 0U) << "the store has compiled them";
}

TEST(tool_grammar, refuses_malformed_texts) {
  for (const std::string text : {"", "{", "[]", "{}", R"({"format":"x","must_call":true,"many":true,"tools":{"a":{}}})",
                                 R"({"format":"hermes","must_call":1,"many":true,"tools":{"a":{}}})",
                                 R"({"format":"hermes","must_call":true,"many":true,"tools":{}})",
                                 R"({"format":"hermes","must_call":true,"many":true,"tools":{"":{}}})",
                                 R"({"format":"hermes","must_call":true,"many":true,"tools":{"a":{"type":"nope"}}})"}) {
    EXPECT_FALSE(compile_tools(text)) << text;
  }
}

/// The tiny tokenizer with control tokens of a format.
std::shared_ptr<const text::tokenizer> tokenizer_with(const std::vector<std::string>& controls) {
  auto m = test::make_tiny_model();
  auto& tokens = std::get<std::vector<std::string>>(m.metadata["tokenizer.ggml.tokens"]);
  auto& types = std::get<std::vector<std::int32_t>>(m.metadata["tokenizer.ggml.token_type"]);
  for (const auto& text : controls) {
    tokens.push_back(text);
    types.push_back(3);
  }
  return *text::tokenizer::from_file(*m.file());
}

const std::map<std::string, std::vector<std::string>>& controls_of_formats() {
  static const std::map<std::string, std::vector<std::string>> all = {
      {"hermes", {}},
      {"qwen3-coder", {}},
      {"mistral", {"[TOOL_CALLS]", "[TOOL_RESULTS]"}},
      {"mistral-args", {"[TOOL_CALLS]", "[ARGS]"}},
      {"deepseek",
       {"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>",
        "<｜tool▁calls▁end｜>"}},
      {"deepseek-v3.1",
       {"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>",
        "<｜tool▁calls▁end｜>"}},
      {"harmony", {"<|channel|>", "<|message|>", "<|constrain|>", "<|start|>"}},
      {"llama3", {"<|python_tag|>"}}};
  return all;
}

TEST(tool_grammar, tokens_of_a_call_with_control_tokens_are_accepted_and_masks_are_what_trying_each_gives) {
  for (const auto& [name, controls] : controls_of_formats()) {
    const auto& f = *tools::find_format(name);
    const auto tokenizer = tokenizer_with(controls);
    const auto trie = *token_trie::make(tokenizer);
    const compiled_grammar grammar(compile(two_tools(), f), trie);
    const auto& rules = grammar.automaton();
    automaton_state s = rules.begin();
    const auto text = "so < " + call_text(f, "edit", arguments_in(f)) + std::string(f.end);
    for (std::string_view left = text; !left.empty();) {
      const auto mask = token_masks(*trie, rules).find(s);
      for (token t = 0; t < static_cast<token>(tokenizer->size()); ++t) {
        automaton_state after = s;
        const bool may =
            tokenizer->is_end_of_generation(t) ? rules.is_accepting(s) : trie->accept_token(rules, after, t);
        ASSERT_EQ(may, (mask[static_cast<std::size_t>(t) / 64] >> (t % 64) & 1) != 0)
            << name << " before " << left << ": " << tokenizer->piece(t, true);
      }
      const auto control = trie->control_at(left);
      const bool in_markup = rules.is_markup(s);
      const auto only = grammar.jump_forward(s);
      const token t = only ? *only : in_markup && control ? *control : *trie->longest_token(rules, s, left);
      const auto piece = tokenizer->piece(t, true);
      ASSERT_TRUE(left.starts_with(piece)) << name << " before " << left << ": " << piece;
      ASSERT_TRUE(grammar.accept_token(s, t)) << name << " before " << left << ": " << piece;
      left.remove_prefix(piece.size());
    }
    EXPECT_TRUE(rules.is_accepting(s)) << name;
  }
}

TEST(tool_grammar, markup_is_decided_with_control_tokens_where_the_vocabulary_has_them) {
  for (const auto& [name, controls] : controls_of_formats()) {
    auto set = two_tools();
    set.call = tools::choice::required;
    set.allowed = {"edit_file"};
    set.many = false;
    const auto& f = *tools::find_format(name);
    const auto tokenizer = tokenizer_with(controls);
    const compiled_grammar grammar(compile(set, f), *token_trie::make(tokenizer));
    automaton_state s = grammar.automaton().begin();
    std::vector<token> decided;
    std::string text;
    step_count steps;
    while (const auto t = grammar.take_jump_forward(s, steps)) {
      decided.push_back(*t);
      text += tokenizer->piece(*t, true);
    }
    const std::string opening =
        f.bare_begin.empty() ? std::string(f.begin) + std::string(f.before_name) : std::string(f.bare_begin);
    // The model chooses the last token before a choice.
    const std::string whole = opening + "edit_file" + std::string(f.after_name) + (f.has_elements ? "" : "{");
    EXPECT_TRUE(text.starts_with(whole) || (whole.starts_with(text) && text.size() + 4 >= opening.size()))
        << name << ": " << text;
    for (const auto& control : controls) {
      if (text.find(control) == std::string::npos) continue;
      EXPECT_TRUE(
          std::any_of(decided.begin(), decided.end(), [&](token t) { return tokenizer->piece(t, true) == control; }))
          << name << ": " << control;
    }
  }
}

TEST(tool_grammar, in_text_every_token_may_come_and_no_mask_is_needed) {
  for (const auto& [name, controls] : controls_of_formats()) {
    grammar_cache cache(*token_trie::make(tokenizer_with(controls)));
    const auto c = *tool_constraint(two_tools(), *tools::find_format(name));
    const auto entry = *cache.find(c);
    grammar_matcher rows(*entry, c);
    EXPECT_TRUE(rows.next_token_mask().empty()) << name;
    EXPECT_TRUE(rows.accept_token(5)) << name;
    EXPECT_TRUE(rows.next_token_mask().empty()) << name;
  }
}

TEST(tool_grammar, every_valid_state_can_be_followed_safely) {
  std::mt19937 random(5);
  for (const auto& f : tools::all_formats()) {
    const auto rules = compile(two_tools(), f);
    std::vector<automaton_state> real{rules->begin()};
    for (const char c : "so " + call_text(f, "edit", arguments_in(f)) + std::string(f.end)) {
      real.push_back(real.back());
      ASSERT_TRUE(rules->advance(real.back(), static_cast<std::uint8_t>(c))) << f.name;
    }
    std::size_t valid = 0;
    for (int i = 0; i < 20'000; ++i) {
      automaton_state s = real[random() % real.size()];
      for (std::size_t changes = 1 + random() % 2; changes > 0; --changes) {
        auto& cell = s[random() % s.size()];
        cell = random() % 3 == 0 ? static_cast<std::uint32_t>(random()) : cell ^ std::uint32_t{1} << random() % 20;
      }
      if (!rules->is_valid(s)) continue;
      ++valid;
      static_cast<void>(rules->known_run(s));
      static_cast<void>(rules->free_text_at(s));
      static_cast<void>(rules->is_in_arguments(s));
      for (int step = 0; step < 6; ++step) {
        if (!rules->advance(s, static_cast<std::uint8_t>("<{\"}/pe\n>, ]12[="[random() % 16]))) break;
      }
    }
    EXPECT_GT(valid, 20U) << f.name;
  }
}

// The grammar and the reader do not share an automaton, so they are compared on answers that the grammar allows.
TEST(tool_grammar, the_reader_finds_the_calls_of_whatever_the_grammar_allows) {
  std::mt19937 random(11);
  constexpr std::string_view likely = "\"}\n</>,: ]1a\\";
  for (const auto& f : tools::all_formats()) {
    auto set = two_tools();
    set.call = tools::choice::required;
    const auto rules = compile(set, f);
    std::size_t whole = 0;
    for (int round = 0; round < 60; ++round) {
      automaton_state s = rules->begin();
      std::string text;
      bool was_free = false;
      while (text.size() < 600 && !rules->is_terminated(s) && !was_free) {
        std::string next(tools::element_end);  // which no random bytes would find
        automaton_state after = s;
        const auto fits = [&](char c) { return rules->advance(after, static_cast<std::uint8_t>(c)); };
        if (random() % 4 != 0 || !std::ranges::all_of(next, fits)) {
          std::string allowed, closing, wide;
          for (unsigned byte = 0; byte < 256; ++byte) {
            const char c = static_cast<char>(byte);
            after = s;
            if (!fits(c)) continue;
            (byte < 0x80 ? allowed : wide) += c;
            if (likely.find(c) != std::string_view::npos) closing += c;
          }
          if (allowed.empty()) allowed = wide;  // within a character of the markup
          ASSERT_FALSE(allowed.empty()) << f.name << ": a dead end after " << text;
          const auto& from = !closing.empty() && random() % 8 != 0 ? closing : allowed;
          next = from[random() % from.size()];
        }
        text += next;
        for (const char c : next) ASSERT_TRUE(rules->advance(s, static_cast<std::uint8_t>(c)));
        was_free = rules->is_free(s);  // a call is over
      }
      const auto parts = read_in_any_pieces(rules, text);
      ASSERT_FALSE(parts.empty()) << text;
      ASSERT_EQ(parts[0].what, kind::call) << f.name << ": " << text;
      if (!rules->is_accepting(s)) continue;
      ++whole;
      ASSERT_GE(parts.size(), 3U) << text;
      ASSERT_EQ(parts[2].what, kind::call_end) << text;
      const auto arguments = json::parse(parts[1].text, nullptr, false);
      ASSERT_TRUE(arguments.is_object()) << text;
      if (parts[0].text != "edit") continue;
      EXPECT_TRUE(arguments.at("path").is_string() && arguments.at("text").is_string()) << text;
      for (const auto& [name, value] : arguments.items()) {
        EXPECT_TRUE(name == "path" || name == "text" || (name == "line" && value.is_number_integer())) << text;
      }
    }
    EXPECT_GT(whole, 10U) << f.name;
  }
}

// ---- elements whose text a schema restricts -------------------------------------------------------------------------

tools::tool_set strict_text(const json& schema) {
  tools::tool one{.name = "edit"};
  one.parameters = {{"type", "object"}, {"properties", {{"text", schema}}}, {"required", {"text"}}};
  one.strict = true;
  return {.all = {std::move(one)}, .allowed = {}};
}

const std::vector<std::string> sample_texts = {"",
                                               "a",
                                               "ab",
                                               "red",
                                               "red\n",
                                               "red\n</parameter",
                                               "green \"x\\y\"",
                                               "two\nlines\n",
                                               "x1",
                                               "x12",
                                               "12",
                                               "2024-02-29",
                                               "2023-02-29",
                                               "\xc3\xa9\xc3\xa9",
                                               "\t\b\x01",
                                               "</parameter>",
                                               "nul" + std::string(1, '\0'),
                                               "\n",
                                               "\n\n</param",
                                               "0123456789"};

std::vector<json> text_schemas() {
  std::vector<json> all;
  for (const char* text : {
           R"({"enum": ["red", "red\n", "green \"x\\y\"", "two\nlines\n", "\t\b\u0001", ""]})",
           R"({"type": "string", "enum": ["red", "x1", 5]})",
           R"({"const": "two\nlines\n"})",
           R"({"type": "string", "pattern": "^[a-z][0-9]{1,2}$"})",
           R"({"type": "string", "pattern": "\n"})",
           R"({"type": "string", "minLength": 2, "maxLength": 4})",
           R"({"type": "string", "minLength": 4})",
           R"({"type": ["string", "null"], "maxLength": 3})",
           R"({"type": "string", "format": "date"})",
           R"({"anyOf": [{"type": "string", "minLength": 3}, {"type": "integer"}]})",
       }) {
    all.push_back(json::parse(text));
  }
  return all;
}

TEST(tool_grammar, texts_in_elements_are_those_that_the_same_schema_allows_as_json) {
  const auto &elements = *tools::find_format("qwen3-coder"), &hermes = *tools::find_format("hermes");
  for (const auto& schema : text_schemas()) {
    const auto as_text = compile(strict_text(schema), elements), as_json = compile(strict_text(schema), hermes);
    std::size_t allowed = 0;
    for (const auto& text : sample_texts) {
      const bool expected = takes(*as_json, call_text(hermes, "edit", R"({"text": )" + json(text).dump() + "}"));
      const std::string call =
          call_text(elements, "edit", "<parameter=text>\n" + text + "\n</parameter>\n") + std::string(elements.end);
      EXPECT_EQ(takes(*as_text, call), expected) << schema << " and " << json(text);
      if (!expected) continue;
      ++allowed;
      const auto parts = read_in_any_pieces(as_text, call);
      ASSERT_EQ(parts.size(), 3U) << schema << " and " << json(text);
      EXPECT_EQ(json::parse(parts[1].text)["text"], text);
    }
    EXPECT_GT(allowed, 0U) << schema;
    EXPECT_LT(allowed, sample_texts.size()) << schema;
  }
}

TEST(tool_grammar, a_text_by_a_schema_in_elements_can_always_be_completed_and_masks_say_what_its_bytes_do) {
  std::mt19937 random(7);
  const auto tokenizer = test::tiny_tokenizer();
  const auto trie = *token_trie::make(tokenizer);
  for (const auto& schema : text_schemas()) {
    auto set = strict_text(schema);
    set.call = tools::choice::required;
    const auto rules = compile(set, *tools::find_format("qwen3-coder"));
    for (int round = 0; round < 5; ++round) {
      automaton_state s = rules->begin();
      for (int step = 0; step < 100 && !rules->is_free(s); ++step) {
        ASSERT_TRUE(rules->is_valid(s)) << schema;
        if (const auto run = rules->known_run(s); !run.empty()) {
          for (unsigned byte = 0; byte < 256; ++byte) {
            automaton_state after = s;
            const bool is_known = byte == static_cast<std::uint8_t>(run.front());
            EXPECT_EQ(rules->advance(after, static_cast<std::uint8_t>(byte)), is_known) << schema << " byte " << byte;
          }
        }
        const auto mask = token_masks(*trie, *rules).find(s);
        for (token t = 0; t < static_cast<token>(tokenizer->size()); ++t) {
          const auto piece = tokenizer->piece(t, false);
          if (piece.empty()) continue;
          automaton_state after = s;
          const bool fits =
              std::ranges::all_of(piece, [&](char c) { return rules->advance(after, static_cast<std::uint8_t>(c)); });
          EXPECT_EQ((mask[static_cast<std::size_t>(t) / 64] >> (t % 64) & 1) != 0, fits) << schema << ": " << piece;
        }
        const token next = test::random_token(mask, random);
        ASSERT_GE(next, 0) << schema << ": a dead end";
        for (const char c : tokenizer->piece(next, false)) {
          ASSERT_TRUE(rules->advance(s, static_cast<std::uint8_t>(c)));
        }
      }
    }
  }
}

}  // namespace
}  // namespace redline::grammar
