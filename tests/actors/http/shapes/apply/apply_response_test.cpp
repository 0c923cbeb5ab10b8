#include "actors/http/shapes/apply/apply_response.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/http/fields/json.hpp"

namespace redline::apply {
namespace {

using api::json;
using ::testing::HasSubstr;

const api::usage_report usage{.prompt_tokens = 9, .completion_tokens = 3};

std::unique_ptr<api::answer_writer> writer_for(const std::string& before) {
  return merged_shape({.path = "x.py", .before = before, .instruction = ""}).make_writer({});
}

TEST(apply_response, is_the_file_without_its_fence) {
  const std::vector<api::choice> choices{{.text = "```python\na = 3\n```"}};
  const auto writer = writer_for("a = 1\n");
  EXPECT_EQ(writer->refusal(choices), std::nullopt);
  EXPECT_EQ(json::parse(writer->whole(choices, usage)), json::parse(R"({"mergedCode": "a = 3\n",
      "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}})"));
  EXPECT_EQ(json::parse(writer_for("a = 1")->whole(choices, usage))["mergedCode"], "a = 3")
      << "with the line end of the old file";
}

TEST(apply_response, is_a_chats_answer_in_inceptions_form) {
  const std::vector<api::choice> choices{{.text = "```\na = 3\n```"}};
  const auto writer = merged_shape({.path = "", .before = "a = 1", .instruction = ""}, merged_shape::form::chat)
                          .make_writer({.from = api::endpoint::chat, .id = "chatcmpl-1", .model = "m"});
  EXPECT_EQ(writer->refusal(choices), std::nullopt);
  const auto body = json::parse(writer->whole(choices, usage));
  EXPECT_EQ(body["object"], "chat.completion");
  EXPECT_EQ(body["choices"][0]["message"]["content"], "a = 3");
  EXPECT_EQ(body["usage"]["completion_tokens"], 3);
}

TEST(apply_response, is_no_file_that_was_cut_short) {
  for (const auto* text : {"```python\na = 3\n", "a = 3", "", "```\na\n```\nThat is it."}) {
    const std::vector<api::choice> choices{{.text = text}};
    const auto why = writer_for("a = 1\n")->refusal(choices);
    ASSERT_TRUE(why) << text;
    EXPECT_EQ(why->status, 422U);
    EXPECT_EQ(why->code, "unusable_answer");
    EXPECT_THAT(why->message, HasSubstr("The file could not be merged: the model's answer"));
  }
}

TEST(apply_response, is_no_answer_that_was_cut_behind_an_inner_fence) {
  for (const auto finish : {api::finish_reason::length, api::finish_reason::content_filter}) {
    const std::vector<api::choice> choices{{.text = "```\n# Title\n\nUsage:\n\n```\n", .finish = finish}};
    const auto why = writer_for("# Title\n")->refusal(choices);
    ASSERT_TRUE(why);
    EXPECT_EQ(why->status, 422U);
    EXPECT_THAT(why->message, HasSubstr("was cut before its end"));
  }
}

TEST(apply_response, keeps_the_form_of_the_file) {
  const std::vector<api::choice> choices{{.text = "```\na = 3\nb = 2\n```"}};
  const auto body = json::parse(writer_for("\xEF\xBB\xBF"
                                           "a = 1\r\nb = 2")
                                    ->whole(choices, usage));
  EXPECT_EQ(body["mergedCode"],
            "\xEF\xBB\xBF"
            "a = 3\r\nb = 2");
}

}  // namespace
}  // namespace redline::apply
