#include "bench/studies/common/edit_corpus.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/test_data.hpp"

namespace redline::studies {
namespace {

using ::testing::HasSubstr;

TEST(edit_corpus, reads_one_edit_per_line) {
  const auto edits = parse_edits(
      "{\"id\": \"a\", \"path\": \"x.py\", \"instruction\": \"i\", \"before\": \"1\\n\", \"after\": \"2\\n\", "
      "\"more\": 3}\n\n"
      "{\"instruction\": \"j\", \"before\": \"1\\n\", \"after\": \"1\\n\"}",
      "f");
  ASSERT_TRUE(edits) << edits.error().describe();
  ASSERT_EQ(edits->size(), 2U);
  EXPECT_EQ(edits->at(0).id, "a");
  EXPECT_EQ(edits->at(0).task.path, "x.py");
  EXPECT_EQ(edits->at(0).after, "2\n");
  EXPECT_EQ(edits->at(0).edit_ratio, 1);
  EXPECT_EQ(edits->at(1).id, "line 3");
  EXPECT_EQ(edits->at(1).edit_ratio, 0);
}

TEST(edit_corpus, names_the_line_and_the_field_that_is_wrong) {
  const std::string good = R"({"instruction": "i", "before": "b", "after": "a"})"
                           "\n";
  const std::pair<std::string, std::string> cases[] = {
      {"", "at least one edit"},
      {"\n \n", "at least one edit"},
      {good + "{", "f, line 2: expected one JSON object, found no JSON"},
      {good + "[1]", "line 2: expected one JSON object, found array"},
      {R"({"before": "b", "after": "a"})", "line 1: expected \"instruction\" as a string of at most 4 MiB, found none"},
      {R"({"instruction": "i", "before": 7, "after": "a"})", "\"before\" as a string of at most 4 MiB, found number"},
      {R"({"instruction": "i", "before": "b", "after": null})", "\"after\" as a string of at most 4 MiB, found null"},
      {R"({"instruction": "i", "before": "b", "after": "a", "id": {}})",
       "\"id\" as a string of at most 4 MiB, found object"},
      {"{\"instruction\": \"\xff\", \"before\": \"b\", \"after\": \"a\"}", "found no JSON"},
      {R"({"instruction": "i", "before": "b", "after": ")" + std::string((4 << 20) + 1, 'x') + "\"}",
       "found 4194305 bytes"},
      {std::string(100'000, '['), "line 1: expected one JSON object, found no JSON"},
  };
  for (const auto& [text, why] : cases) {
    const auto edits = parse_edits(text, "f");
    ASSERT_FALSE(edits) << text.substr(0, 80);
    EXPECT_EQ(edits.error().code, errc::file_malformed);
    EXPECT_THAT(edits.error().context, HasSubstr(why));
  }
  EXPECT_EQ(read_edits("/not/here").error().code, errc::file_unreadable);
}

TEST(edit_corpus, counts_characters_of_changed_lines) {
  EXPECT_EQ(edit_ratio_of("", ""), 0);
  EXPECT_EQ(edit_ratio_of("", "new\n"), 1);
  EXPECT_DOUBLE_EQ(edit_ratio_of("same\nold\n", "same\nnew\n"), 8.0 / 18);
  EXPECT_DOUBLE_EQ(edit_ratio_of("\xc3\xa4\n",
                                 "\xc3\xa4\n"
                                 "b\n"),
                   2.0 / 6);  // an umlaut is one character
  EXPECT_EQ(characters_of("a\xc3\xa4\xff"), 3U);
}

TEST(edit_corpus, spreads_places_evenly) {
  EXPECT_EQ(spread(3, 0), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(spread(3, 9), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(spread(10, 2), (std::vector<std::size_t>{2, 7}));
  EXPECT_EQ(spread(10, 1), (std::vector<std::size_t>{5}));
  EXPECT_TRUE(spread(0, 4).empty());
}

TEST(edit_corpus, ships_edits_whose_answers_hold_their_results) {
  const auto edits = read_edits(test::source_path("bench/edits.jsonl"));
  ASSERT_TRUE(edits) << edits.error().describe();
  EXPECT_EQ(edits->size(), 8U);
  for (const known_edit& e : *edits) {
    EXPECT_GT(e.edit_ratio, 0) << e.id;
    const auto file = file_of_answer(e.task, {.text = answer_of(e.task, e.after), .is_whole = true});
    ASSERT_TRUE(file) << e.id;
    EXPECT_EQ(*file, e.after) << e.id;
  }
}

TEST(edit_corpus, answers_keep_or_add_the_final_line_feed) {
  for (const char* before : {"", "a", "a\n", "```\n"}) {
    for (const std::string after : {"b\n", "b", ""}) {
      const edit_task task{"x", before, "i"};
      const auto file = file_of_answer(task, {.text = answer_of(task, after), .is_whole = true});
      ASSERT_TRUE(file) << before << after;
      // A file whose last line had a line feed keeps it.
      const bool added = *before != 'a' || before[1] != 0;
      EXPECT_EQ(*file, added && after == "b" ? "b\n" : after) << before << "|" << after;
    }
  }
}

TEST(edit_corpus, damages_about_as_many_lines_as_asked) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "  line " + std::to_string(i) + " = x\n";
  EXPECT_EQ(damaged(text, 1, "a"), text);
  EXPECT_EQ(damaged(text, 0.9, "a"), damaged(text, 0.9, "a"));
  EXPECT_NE(damaged(text, 0.9, "a"), damaged(text, 0.9, "b"));
  const std::string some = damaged(text, 0.9, "a");
  std::size_t changed = 0;
  for (auto at = some.find("  changed_line"); at != std::string::npos; at = some.find("  changed_line", at + 1))
    ++changed;
  const auto missing = 1000 - static_cast<std::size_t>(std::count(some.begin(), some.end(), '\n'));
  EXPECT_NEAR(static_cast<double>(changed + missing), 100, 30);
  EXPECT_LE(missing - changed, 1U);
  EXPECT_EQ(damaged("a\n\n", 0, "a"), "changed_\n") << "a line without a word";
}

}  // namespace
}  // namespace redline::studies
