#include "runtime/huggingface/json_object.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.hpp"

namespace redline::huggingface {
namespace {

using testing::HasSubstr;

template<class T>
std::string refusal(const result<T>& of) {
  return of ? "none" : of.error().context;
}

TEST(json_object, members_are_read_by_kind) {
  const json document = parse_document(R"({"t":"x","n":5,"f":2.5,"b":true,"a":[1],"o":{"n":7},"z":null})", "f").value();
  const auto o = json_object::of(document, "f").value();
  EXPECT_EQ(o.text("t").value(), "x");
  EXPECT_EQ(o.whole("n", 1, 5).value(), 5U);
  EXPECT_EQ(o.positive("f").value(), 2.5);
  EXPECT_EQ(o.positive("n").value(), 5);
  EXPECT_TRUE(o.flag("b").value());
  EXPECT_EQ(o.array("a").value()->size(), 1U);
  EXPECT_EQ(o.object("o")->whole("n", 0, 9).value(), 7U);
  EXPECT_EQ(o.text_or("z", "none").value(), "none");
  EXPECT_FALSE(o.has("z"));
}

TEST(json_object, a_member_of_another_kind_is_refused_by_its_path) {
  const json document = parse_document(R"({"o":{"n":"five","f":0,"big":1e300,"minus":-1,"half":0.5}})", "f").value();
  const auto o = json_object::of(document, "f")->object("o").value();
  EXPECT_EQ(refusal(o.whole("n", 1, 5)), "f: o.n: expected a whole number from 1 to 5, found 'five'");
  EXPECT_EQ(refusal(o.whole("f", 1, 5)), "f: o.f: expected a whole number from 1 to 5, found 0");
  EXPECT_EQ(refusal(o.whole("minus", 0, 5)), "f: o.minus: expected a whole number from 0 to 5, found -1");
  EXPECT_EQ(refusal(o.whole("half", 0, 5)), "f: o.half: expected a whole number from 0 to 5, found 0.5");
  EXPECT_EQ(refusal(o.positive("f")), "f: o.f: expected a positive number, found 0");
  EXPECT_THAT(refusal(o.positive("big")), HasSubstr("f: o.big: expected a positive number"));
  EXPECT_EQ(refusal(o.text("absent")), "f: o.absent: expected a string, found nothing");
  EXPECT_EQ(refusal(o.flag_or("n", true)), "f: o.n: expected true or false, found 'five'");
  EXPECT_EQ(refusal(json_object::of(document["o"]["n"], "f", "x")), "f: x: expected an object, found 'five'");
}

TEST(json_object, documents_that_two_readers_could_take_differently_are_refused) {
  EXPECT_THAT(refusal(parse_document(R"({"a":1,"b":{"a":2},"a":3})", "f")),
              HasSubstr("f: not valid JSON: the member 'a'"));
  EXPECT_TRUE(parse_document(R"([{"a":1},{"a":2}])", "f"));
  EXPECT_THAT(refusal(parse_document(std::string(33, '[') + std::string(33, ']'), "f")),
              HasSubstr("nested deeper than 32"));
  EXPECT_TRUE(parse_document(std::string(32, '[') + std::string(32, ']'), "f"));
  for (const char* broken : {"", "{", "{}{}", "nul", "\"\xff\"", "[1e999]", "{\"a\" 1}"}) {
    EXPECT_THAT(refusal(parse_document(broken, "f")), HasSubstr("f: not valid JSON: ")) << broken;
  }
}

TEST(json_object, a_file_beyond_its_limit_is_refused) {
  const test::temporary_folder folder;
  std::ofstream(folder / "f") << "[1, 2]";
  EXPECT_EQ(read_document(folder / "f", 6).value(), json({1, 2}));
  EXPECT_THAT(refusal(read_document(folder / "f", 5)), HasSubstr("expected at most 5 bytes, found 6"));
  EXPECT_THAT(refusal(read_document(folder / "absent", 5)), HasSubstr("cannot be opened"));
}

}  // namespace
}  // namespace redline::huggingface
