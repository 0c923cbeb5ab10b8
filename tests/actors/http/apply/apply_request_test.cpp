#include "actors/http/apply/apply_request.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/http/fields/json.hpp"

namespace redline::apply {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

api::api_error refusal(const std::string& body) {
  const auto parsed = parse_apply(body);
  EXPECT_FALSE(parsed) << body;
  return parsed ? api::api_error{} : parsed.error();
}

TEST(apply_request, asks_for_the_whole_file_and_predicts_the_old_one) {
  const auto request = parse_apply(R"({"initialCode": "a = 1\nb = 2\n", "editSnippet": "a = ```3```\n# ...",
                                       "instruction": "Mind b.", "filePath": "x.py", "stream": false, "relace_metadata": {}})");
  ASSERT_TRUE(request) << request.error().message;
  ASSERT_EQ(request->messages.size(), 1U);
  EXPECT_THAT(request->messages[0]["content"].get<std::string>(),
              AllOf(HasSubstr("Mind b.\n````\na = ```3```\n# ...\n````\nThe file:\n```python\na = 1\nb = 2\n```")));
  EXPECT_EQ(request->prediction, "```python\na = 1\nb = 2\n```");
  EXPECT_EQ(request->sampling.temperature, 0);
  EXPECT_FALSE(request->stream);
  EXPECT_NE(request->shape, nullptr);
}

TEST(apply_request, takes_names_of_either_spelling) {
  const auto request = parse_apply(R"({"initial_code": "a", "edit_snippet": "b", "model": "m", "temperature": 0.5,
                                       "redline": {"speculation": {"method": "lookup"}}})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->model, "m");
  EXPECT_EQ(request->sampling.temperature, 0.5);
  EXPECT_EQ(request->speculation.method, draft::method::lookup);
}

TEST(apply_request, says_what_is_wrong) {
  EXPECT_EQ(refusal(R"({"editSnippet": "b"})").param, "initialCode");
  EXPECT_EQ(refusal(R"({"initialCode": "a"})").param, "editSnippet");
  EXPECT_EQ(refusal(R"({"initialCode": 7, "editSnippet": "b"})").param, "initialCode");
  EXPECT_EQ(refusal(R"({"initialCode": "a", "editSnippet": "b", "stream": true})").param, "stream");
  EXPECT_EQ(refusal(R"({"initialCode": "a", "editSnippet": "b", "temperature": 9})").param, "temperature");
  EXPECT_FALSE(parse_apply("["));
}

}  // namespace
}  // namespace redline::apply
