#include "runtime/tools/call_format.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>

namespace redline::tools {
namespace {

bool may_be_in_a_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_-.:/").find(c) != std::string_view::npos;
}

TEST(call_format, what_begins_a_call_has_its_first_byte_once) {
  for (const auto& f : all_formats())
    EXPECT_EQ(std::count(f.begin.begin(), f.begin.end(), f.begin.front()), 1) << f.name;
  EXPECT_EQ(std::count(element_end.begin(), element_end.end(), element_end.front()), 1);
}

TEST(call_format, a_name_ends_where_no_name_goes_on) {
  for (const auto& f : all_formats()) {
    ASSERT_FALSE(f.after_name.empty()) << f.name;
    EXPECT_FALSE(may_be_in_a_name(f.after_name.front())) << f.name;
  }
}

TEST(call_format, a_list_of_calls_has_an_end) {
  for (const auto& f : all_formats()) EXPECT_EQ(f.next.empty(), f.end.empty()) << f.name;
}

TEST(call_format, is_recognised_by_what_templates_say) {
  const auto name = [](std::string_view source) {
    const auto* const f = recognise_format(source);
    return f == nullptr ? std::string_view("none") : f->name;
  };
  EXPECT_EQ(name("{{ '<tool_call>\n{\"name\": \"' + c.name + '\", \"arguments\": ' }}"), "hermes");
  EXPECT_EQ(name("<tool_call>\n{\\\"name\\\": <name>, \\\"arguments\\\": <object>}"), "hermes");
  EXPECT_EQ(name("<tool_call>\n<function=example>\n<parameter=a>\nb\n</parameter>"), "qwen3-coder");
  EXPECT_EQ(name("{{- \"[TOOL_CALLS] [\" }}"), "mistral-blank");
  EXPECT_EQ(name("{{ '[TOOL_CALLS][' }}"), "mistral");
  EXPECT_EQ(name("{{- '[TOOL_CALLS]' + name + '[ARGS]' }}"), "mistral-args");
  EXPECT_EQ(name("{{- \"<|start|>assistant to=functions.\" }} <|channel|>commentary"), "harmony");
  EXPECT_EQ(name("{{- \"<|start|>assistant to=\" }}{{- \"functions.\" + c.name + \"<|channel|>commentary \" }}"),
            "harmony");
  EXPECT_EQ(name("'<|start_of_role|>' 'respond only with <|tool_call|>'"), "granite");
  EXPECT_EQ(name("'<｜tool▁calls▁begin｜>' '```json'"), "deepseek");
  EXPECT_EQ(name("'<｜tool▁calls▁begin｜>'"), "deepseek-v3.1");
  EXPECT_EQ(name("<|start_header_id|> <|python_tag|>"), "llama3");
  EXPECT_EQ(name("<|start_header_id|> '\", \"parameters\": '"), "llama3");
  EXPECT_EQ(name("{{ '<tool_call>' + c.name }}<arg_key>"), "none") << "GLM's form is another one";
  EXPECT_EQ(name("{{ messages }}"), "none");
}

TEST(call_format, ids_of_calls_are_the_same_for_the_same_answer_and_else_differ) {
  std::set<std::string> all;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    for (std::uint32_t number = 0; number < 20; ++number) all.insert(make_call_id(seed, number, false));
  }
  EXPECT_EQ(all.size(), 1000U);
  EXPECT_EQ(make_call_id(7, 3, false), make_call_id(7, 3, false));
  EXPECT_TRUE(make_call_id(7, 3, false).starts_with("call_"));
}

TEST(call_format, short_ids_have_nine_letters_and_digits) {
  for (const auto& id : {make_call_id(1, 2, true), shorten_call_id("call_abc"), shorten_call_id("")}) {
    EXPECT_EQ(id.size(), 9U);
    EXPECT_TRUE(std::all_of(id.begin(), id.end(), [](unsigned char c) { return std::isalnum(c) != 0; })) << id;
  }
  EXPECT_EQ(shorten_call_id("abcDEF123"), "abcDEF123") << "one that is short already stays unchanged";
  EXPECT_NE(shorten_call_id("call_a"), shorten_call_id("call_b"));
}

}  // namespace
}  // namespace redline::tools
