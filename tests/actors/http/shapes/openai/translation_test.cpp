#include "actors/http/shapes/openai/translation.hpp"

#include <gtest/gtest.h>

namespace redline::api {
namespace {

TEST(translation, copies_members_under_other_names) {
  json to;
  copy_members(json::parse(R"({"a": 1, "b": null, "c": [2]})"), to, {{"a", "x"}, {"b", "y"}, {"c", "z"}, {"d", "w"}});
  EXPECT_EQ(to, json::parse(R"({"x": 1, "z": [2]})"));
}

TEST(translation, joins_texts_of_the_types_that_it_knows) {
  std::optional<api_error> error;
  const json object =
      json::parse(R"({"a": "x", "b": [{"type": "text", "text": "x"}, {"type": "none"}, {"type": "text", "text": "y"}],
                                      "c": [{"type": "text", "text": "x"}, {"type": "image"}]})");
  field_reader fields(object, "", error);
  EXPECT_EQ(read_texts(fields, "a", {"text"}, {}, "+", error), "x");
  EXPECT_EQ(read_texts(fields, "b", {"text"}, {"none"}, "+", error), "x+y");
  EXPECT_EQ(read_texts(fields, "absent", {"text"}, {}, "+", error), "");
  EXPECT_FALSE(error);
  (void)read_texts(fields, "c", {"text"}, {}, "+", error);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->param, "c[1].type");
}

TEST(translation, names_errors_as_the_client_named_the_member) {
  const auto request =
      read_translated(json::parse(R"({"messages": [{"role": "user", "content": "x"}], "max_tokens": "x"})"), nullptr,
                      {{"length", "max_tokens"}}, {});
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().param, "length");
  EXPECT_TRUE(request.error().message.starts_with("'length'")) << request.error().message;
}

}  // namespace
}  // namespace redline::api
