#include "runtime/draft/escaped_copy.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace redline::draft {
namespace {

const std::string file =
    "def load(path):\n    \"\"\"Reads \\ it.\"\"\"\n\twith open(path) as f:\n        return f.read()\n";
const std::string escaped =
    R"(def load(path):\n    \"\"\"Reads \\ it.\"\"\"\n\twith open(path) as f:\n        return f.read()\n)";

escaped_copy over(const std::vector<std::string>& texts) {
  return escaped_copy(std::make_shared<const text_lookup>(texts));
}

std::string ahead(const escaped_copy& c, std::size_t bytes = 1000) {
  const auto guess = c.ahead(bytes);
  return guess ? guess->bytes : "nothing";
}

TEST(escaped_copy, goes_on_with_a_known_text_as_json_spells_it) {
  for (std::size_t cut = 12; cut < escaped.size(); ++cut) {
    auto c = over({file});
    c.feed(R"({"path": "a.py", "content": ")" + escaped.substr(0, cut));
    if (!c.ahead(1000)) continue;  // the cut is within an escape
    EXPECT_EQ(ahead(c), escaped.substr(cut) + '"') << cut;
  }
  auto c = over({file});
  c.feed(R"({"content": ")" + escaped.substr(0, 30));
  EXPECT_EQ(ahead(c), escaped.substr(30) + '"');
}

TEST(escaped_copy, the_bytes_may_come_in_any_pieces) {
  auto one = over({file}), many = over({file});
  const std::string text = R"({"content": ")" + escaped.substr(0, 60);
  one.feed(text);
  for (const char c : text) many.feed(std::string_view(&c, 1));
  EXPECT_EQ(ahead(one), ahead(many));
}

TEST(escaped_copy, says_nothing_outside_of_values) {
  auto c = over({file});
  EXPECT_EQ(ahead(c), "nothing");
  c.feed("{\"def load(path)");
  EXPECT_EQ(ahead(c), "nothing") << "a name";
  c.feed("\": \"def load(path)");
  EXPECT_NE(ahead(c), "nothing");
  c.feed("\"");
  EXPECT_EQ(ahead(c), "nothing");
  escaped_copy without(nullptr);
  without.feed("{\"a\": \"def load(path)");
  EXPECT_EQ(ahead(without), "nothing");
}

TEST(escaped_copy, finds_its_way_back_after_a_change) {
  auto c = over({file});
  c.feed(R"({"content": "def load(path):\n    \"\"\"Loads)");
  c.feed(R"( \\ it.)");
  EXPECT_EQ(ahead(c, 12), R"(\"\"\"\n\twith op)");
}

TEST(escaped_copy, the_next_string_may_be_a_new_version_of_the_last) {
  auto c = over({file});
  c.feed(R"({"old": "with open(path) as f:\n        return", "new": ")");
  EXPECT_EQ(ahead(c, 4), "with");
  c.feed("with open(p");
  EXPECT_EQ(ahead(c, 4), "ath)");
}

TEST(escaped_copy, the_first_string_may_be_the_text_that_was_read_last) {
  auto c = over({"another text, which is older", file});
  c.feed(R"({"content": ")");
  EXPECT_EQ(ahead(c, 8), "def load");
  c.feed("an");
  EXPECT_EQ(ahead(c), "nothing") << "it is not";
}

TEST(escaped_copy, a_new_version_ends_where_the_last_did) {
  auto c = over({file});
  c.feed(R"({"old": "with open(path) as f:\n        return", "new": "with open(path))");
  EXPECT_EQ(ahead(c), R"( as f:\n        return")");
  auto longer = over({file});
  longer.feed(R"({"old": "with open(path) as f:\n        return", "new": "with open(path) as f:\n        return f)");
  EXPECT_EQ(ahead(longer), R"(.read()\n")") << "not this time";
}

TEST(escaped_copy, a_value_is_probably_the_one_of_the_same_name) {
  const std::string path = "source/runtime/files/loader.py";
  auto c = escaped_copy(std::make_shared<const text_lookup>(std::vector{path, file}, text_lookup::bytes_default,
                                                            text_lookup::name_indices{{"path", 0}}));
  c.feed(R"({"path": ")");
  EXPECT_EQ(ahead(c), path + '"');
  EXPECT_GT(c.ahead(10)->matched, 0U) << "its name suggests it";
  c.feed(path + R"(", "content": ")");
  EXPECT_EQ(ahead(c, 8), "def load") << "no new version of the path";
}

TEST(escaped_copy, a_word_replaces_a_word) {
  auto c = over({file});
  const std::string begun = R"({"content": "def load(path):\n    \"\"\")";
  c.feed(begun + "Loads");
  EXPECT_EQ(ahead(c, 6), R"( \\ it.)");
  c.feed(" and");
  EXPECT_EQ(ahead(c, 6), R"( \\ it.)") << "more words instead of the one";
}

TEST(escaped_copy, lines_that_were_put_in_lead_back_to_where_they_stand) {
  const std::string two = "class a:\n        self.first = 1\n        self.second = 2\n        self.third = 3\n";
  auto c = over({two});
  c.feed(R"({"content": "class a:\n        self.first = 1\n        )");
  EXPECT_EQ(ahead(c, 11), "self.second");
  c.feed(R"(print(1)\n        print(2)\n        )");
  EXPECT_EQ(ahead(c, 11), "self.second") << "indentation alone gives no new position";
}

TEST(escaped_copy, goes_on_inside_of_an_escape) {
  auto c = over({file});
  c.feed(R"({"content": "def load(path):\)");
  EXPECT_EQ(ahead(c, 6), R"(n    \")");
  c.feed("t");
  EXPECT_EQ(ahead(c, 4), R"(\n   )") << "a tab was put in";
}

TEST(escaped_copy, puts_blanks_as_the_text_does) {
  auto c = over({file});
  c.feed(R"({"a":)");
  EXPECT_TRUE(c.wants_whitespace()) << "as templates write it";
  c.feed(R"("b",)");
  EXPECT_TRUE(c.wants_whitespace()) << "commas are still unknown";
  c.feed(R"("c":)");
  EXPECT_FALSE(c.wants_whitespace());
  c.reset();
  c.feed(R"({"a":)");
  EXPECT_FALSE(c.wants_whitespace()) << "the same style";
  c.feed(R"( "b": )");
  EXPECT_FALSE(c.wants_whitespace()) << "one is enough";
  c.feed(R"("b", "c":)");
  EXPECT_TRUE(c.wants_whitespace());
}

TEST(escaped_copy, reads_characters_that_are_spelled_by_number) {
  auto c = over({"caf\xc3\xa9 and more of it"});
  c.feed(R"({"a": "caf\u00e9 and )");
  EXPECT_EQ(ahead(c), "more of it\"");
}

TEST(escaped_copy, whatever_is_fed_it_says_pieces_of_the_texts) {
  std::mt19937 random(11);
  const std::vector<std::string> texts{file, escaped, std::string(200, 'a')};
  auto c = over(texts);
  std::string spelled;  // all texts as JSON has them
  for (const auto& text : texts) spelled += nlohmann::json(text).dump() + "\n";
  const std::string alphabet = "\"\\u09afgn{}:,[] \n" + file;
  int said = 0;
  for (int i = 0; i < 50'000; ++i) {
    const char byte = alphabet[random() % alphabet.size()];
    c.feed(std::string_view(&byte, 1));
    const std::size_t most = random() % 50;
    if (const auto guess = c.ahead(most)) {
      ++said;
      EXPECT_LE(guess->bytes.size(), 2 * most + 1) << "an escape has two bytes, and a quote may end the string";
      EXPECT_LE(guess->matched, text_lookup::matched_max);
      const std::string_view without_end(guess->bytes.data(), guess->bytes.size() - (guess->bytes.back() == '"'));
      EXPECT_TRUE(spelled.find(guess->bytes) != std::string::npos || spelled.find(without_end) != std::string::npos)
          << guess->bytes;
    }
    if (random() % 500 == 0) c.reset();
  }
  EXPECT_GT(said, 0);
}

}  // namespace
}  // namespace redline::draft
