#include "runtime/copy/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace redline::copy {
namespace {

using namespace std::string_literals;

const std::vector<document> one = {document("a\nb\r\nc\rd\nlast")};

std::string resolved(const std::string& text, const std::vector<document>& files = one) {
  const auto p = parse_program(text, shape_of(files));
  if (!p) return "refused: " + p.error().context;
  const auto bytes = resolve(*p, files);
  return bytes ? *bytes : "refused: " + bytes.error().context;
}

TEST(copy_program, resolves_bytes_as_they_are) {
  EXPECT_EQ(resolved("<copy lines=\"1-4\"/></program>"), "a\nb\r\nc\rd\nlast");
  EXPECT_EQ(resolved("<copy lines=\"2-2\"/><gen>x</gen><copy lines=\"1-1\"/><copy lines=\"1-1\"/></program>"),
            "b\r\nxa\na\n");
  EXPECT_EQ(resolved("</program>"), "");
  EXPECT_EQ(resolved("<gen>\0\xff\xfe\r</gen></program>"s), "\0\xff\xfe\r"s);
  EXPECT_EQ(resolved("<gen></gen></program>"), "");
}

TEST(copy_program, text_may_hold_the_tags_of_the_grammar) {
  EXPECT_EQ(resolved("<gen><copy lines=\"9-9\"/></program><gen></gen></program>"),
            "<copy lines=\"9-9\"/></program><gen>");
  EXPECT_EQ(resolved("<gen>a<\\/gen>b</gen></program>"), "a</gen>b");
  EXPECT_EQ(resolved("<gen><\\\\/gen><<\\x</ge</gen></program>"), "<\\/gen><<\\x</ge");
  for (const std::string& text :
       {"</gen>"s, "<\\/gen>"s, "<\\\\\\/gen></gen>"s, "<</gen>"s, "</gen"s, "<"s, "<\\"s, "</ge</gen>\n"s, ""s}) {
    const program p = {gen_op{text}};
    const auto back = parse_program(print_program(p, false), {});
    ASSERT_TRUE(back) << text << ": " << back.error().describe();
    EXPECT_EQ(*back, p) << text;
  }
}

TEST(copy_program, says_what_was_wanted_and_found) {
  struct wrong {
    const char* text;
    const char* why;
  };
  for (const auto& [text, why] : {
           wrong{"", "byte 0: expected '<', found the end"},
           wrong{" <gen>", "byte 0: expected '<', found ' <gen>'"},
           wrong{"<copy lines=\"0-1\"/></program>", "byte 13: expected a number from 1 to 4, found '0-1"},
           wrong{"<copy lines=\"01-1\"/></program>", "byte 13: expected a number from 1 to 4"},
           wrong{"<copy lines=\"1-5\"/></program>", "byte 15: expected a number from 1 to 4, found '5"},
           wrong{"<copy lines=\"3-2\"/></program>", "byte 15: expected a number from 3 to 4"},
           wrong{"<copy lines=\"3-\"/></program>", "byte 15: expected a number from 3 to 4"},
           wrong{"<copy tokens=\"1-1\"/></program>",
                 "byte 6: expected lines or tokens, if spans may use the unit and the file has any"},
           wrong{"<copy file=\"1\" lines=\"1-1\"/></program>", "byte 6: expected lines or tokens"},
           wrong{"<gen>text", "byte 9: expected '</gen>', found the end"},
           wrong{"</program> ", "byte 10: expected nothing more, found ' '"},
           wrong{"<copy lines=\"99999999999999999999999-1\"/>", "byte 13: expected a number from 1 to 4"},
       }) {
    EXPECT_THAT(resolved(text), testing::HasSubstr(why)) << text;
  }
  EXPECT_THAT(resolved("<copy lines=\"1-1\"/></program>", {document("")}),
              testing::HasSubstr("expected 'copy ', 'gen>' or '/program>'"));
}

TEST(copy_program, names_files_when_there_are_several) {
  const std::vector<document> two = {document("a\n"), document(""), document("b\nc\n")};
  EXPECT_EQ(resolved("<copy file=\"3\" lines=\"2-2\"/><copy file=\"1\" lines=\"1-1\"/></program>", two), "c\na\n");
  EXPECT_THAT(resolved("<copy file=\"2\" lines=\"1-1\"/>", two),
              testing::HasSubstr("byte 12: expected the number of a file that is not empty"));
  EXPECT_THAT(resolved("<copy lines=\"1-1\"/>", two), testing::HasSubstr("byte 6: expected 'file=\"'"));
  EXPECT_EQ(print_program({copy_op{3, unit::lines, 1, 2}}, true), "<copy file=\"3\" lines=\"1-2\"/></program>");
}

TEST(copy_program, copies_tokens_where_they_are_allowed) {
  const std::vector<document> files = {document("one two\n", {3, 7, 8})};
  const auto p = parse_program("<copy tokens=\"2-3\"/><copy lines=\"1-1\"/></program>", shape_of(files, true));
  ASSERT_TRUE(p) << p.error().describe();
  EXPECT_EQ(*resolve(*p, files), " two\none two\n");
  EXPECT_FALSE(parse_program("<copy tokens=\"2-4\"/></program>", shape_of(files, true)));
  EXPECT_FALSE(parse_program("<copy tokens=\"2-3\"/></program>", shape_of(files, false)));
}

TEST(copy_program, bounds_the_bytes_that_a_program_resolves_to) {
  const std::vector<document> big = {document(std::string(1000, 'x'))};
  program p(20, copy_op{1, unit::lines, 1, 1});
  EXPECT_TRUE(resolve(p, big, 20'000));
  EXPECT_FALSE(resolve(p, big, 19'999));
  EXPECT_FALSE(resolve({copy_op{2, unit::lines, 1, 1}}, big));
  EXPECT_FALSE(resolve({copy_op{1, unit::lines, 1, 2}}, big));
  EXPECT_FALSE(resolve({copy_op{1, unit::lines, 0, 1}}, big));
}

// A number is accepted exactly when it is in range.
TEST(copy_program, ranges_are_exact_digit_by_digit) {
  for (const std::uint32_t n : {1u, 9u, 10u, 23u, 101u}) {
    const program_machine machine(program_shape{.files = {{n, 0}}});
    for (std::uint32_t i = 0; i <= n + 12; ++i) {
      for (std::uint32_t j = 0; j <= n + 12; ++j) {
        program_state s;
        bool taken = true;
        for (const char c : "<copy lines=\"" + std::to_string(i) + "-" + std::to_string(j) + "\"/>") {
          taken = taken && machine.advance(s, c);
          if (taken) {
            EXPECT_TRUE(machine.is_valid(s));
          }
        }
        EXPECT_EQ(taken, i >= 1 && i <= j && j <= n) << i << "-" << j << " of " << n;
        if (taken) {
          EXPECT_EQ(s.at, program_state::step::span);
        }
      }
    }
  }
}

TEST(copy_document, counts_the_whole_units_that_bytes_hold) {
  const document file("one\ntwo\nthree");
  const auto count = [&](std::uint32_t first, std::size_t bytes) {
    return file.count_whole(unit::lines, first, bytes);
  };
  EXPECT_EQ(count(1, 3), 0u);
  EXPECT_EQ(count(1, 4), 1u);
  EXPECT_EQ(count(1, 12), 2u);
  EXPECT_EQ(count(2, 8), 1u);
  EXPECT_EQ(count(2, 9), 2u);
  EXPECT_EQ(count(3, 100), 1u);
}

TEST(copy_program, anchors_are_the_starts_of_lines) {
  EXPECT_EQ(anchor_of("  \tint x = 1;\r\n"), "int x = 1;");
  EXPECT_EQ(anchor_of("print(\"a\")\n"), "print(");
  EXPECT_EQ(anchor_of("\n"), "");
  EXPECT_EQ(anchor_of("0123456789012345678901234567"), "012345678901234567890123");
  EXPECT_EQ(anchor_of("0123456789012345678901\xc3\xa9\xc3\xa9"), "0123456789012345678901\xc3\xa9");
  EXPECT_EQ(anchor_of("01234567890123456789012\xc3\xa9"), "01234567890123456789012");

  const std::vector<document> files = {document("one\n  two\nthree\n")};
  const program p = {copy_op{1, unit::lines, 1, 2}, gen_op{"x"}, copy_op{1, unit::lines, 3, 3}};
  const auto text = print_anchored(p, files);
  EXPECT_EQ(text,
            "<copy lines=\"1-2\" first=\"one\" last=\"two\"/><gen>x</gen><copy lines=\"3-3\" first=\"three\" "
            "last=\"three\"/></program>");
  auto shape = shape_of(files);
  EXPECT_FALSE(parse_program(text, shape));
  shape.anchors = true;
  std::vector<anchor_pair> anchors;
  const auto back = parse_program(text, shape, &anchors);
  ASSERT_TRUE(back) << back.error().describe();
  EXPECT_EQ(*back, p);
  EXPECT_EQ(anchors, (std::vector<anchor_pair>{{"one", "two"}, {"three", "three"}}));
  EXPECT_FALSE(parse_program(print_program(p, false), shape));
}

}  // namespace
}  // namespace redline::copy
