#include "bench/studies/cache/pie_cases.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace redline::studies {
namespace {

using ::testing::HasSubstr;

const std::string row =
    R"({"id":"one","language":"python","target_line":"next","prefix_context":"a\nb\nc\nd\ne\n","tasks":[)"
    R"({"task":"insert","inverse":[{"start":1,"end":3,"text":[]}]},)"
    R"({"task":"multi","inverse":[{"start":2,"end":2,"text":["x\n","y\n"]},{"start":3,"end":4,"text":[]}]}]})";

TEST(pie_cases, lead_from_what_was_before_an_edit_to_the_context) {
  const auto contexts = parse_pie_contexts(row + "\n\n" + row + "\n", "f");
  ASSERT_TRUE(contexts) << contexts.error().describe();
  ASSERT_EQ(contexts->size(), 2U);
  const auto inserted = (*contexts)[1].cut("insert", 0);
  ASSERT_TRUE(inserted);
  EXPECT_EQ(inserted->before, "a\nd\ne\n");
  EXPECT_EQ(inserted->after, "a\nb\nc\nd\ne\n");
  EXPECT_EQ(inserted->next_line, "next");
  const auto both = (*contexts)[0].cut("multi", 2);
  ASSERT_TRUE(both);
  EXPECT_EQ(both->before, "x\ny\nc\ne\n");
  EXPECT_EQ(both->after, "c\nd\ne\n");
}

TEST(pie_cases, are_none_where_the_edit_lies_before_the_lines_that_are_left) {
  const auto contexts = parse_pie_contexts(row, "f");
  ASSERT_TRUE(contexts);
  EXPECT_TRUE((*contexts)[0].cut("insert", 1));
  EXPECT_FALSE((*contexts)[0].cut("insert", 2));
  EXPECT_FALSE((*contexts)[0].cut("multi", 3));
  EXPECT_FALSE((*contexts)[0].cut("delete", 0));
}

TEST(pie_cases, say_what_is_wrong_in_which_line) {
  const auto complaint = [](std::string bad, const std::string& from, const std::string& to) {
    bad.replace(bad.find(from), from.size(), to);
    const auto parsed = parse_pie_contexts(row + "\n" + bad, "f");
    return parsed ? std::string("nothing") : parsed.error().describe();
  };
  EXPECT_THAT(complaint(row, "{\"id\"", "{\"no\""), HasSubstr("f:2: expected a string 'id'"));
  EXPECT_THAT(complaint(row, "{", "["), HasSubstr("f:2: expected an object"));
  EXPECT_THAT(complaint(row, "\"end\":3", "\"end\":6"), HasSubstr("inside the context"));
  EXPECT_THAT(complaint(row, "\"start\":1", "\"start\":-1"), HasSubstr("'start'"));
  EXPECT_THAT(complaint(row, "\"start\":3", "\"start\":1"), HasSubstr("in order"));
  EXPECT_THAT(complaint(row, "\"x\\n\"", "7"), HasSubstr("lines as 'text'"));
}

TEST(pie_cases, measure_how_alike_two_lines_are) {
  EXPECT_EQ(similarity("", ""), 1);
  EXPECT_EQ(similarity("abc", "abc"), 1);
  EXPECT_EQ(similarity("abc", ""), 0);
  EXPECT_DOUBLE_EQ(similarity("kitten", "sitting"), 1 - 3.0 / 7);
}

}  // namespace
}  // namespace redline::studies
