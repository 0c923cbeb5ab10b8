#include "runtime/copy/oracle.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "tests/support/rounds.hpp"
#include "tests/support/test_data.hpp"

namespace redline::copy {
namespace {

std::string round_trip(const std::vector<std::string>& olds, const std::string& after,
                       const oracle_options& options = {}) {
  std::vector<document> files;
  for (const auto& o : olds) files.emplace_back(o);
  const std::string text = print_program(shortest_program(files, document(after), options), files.size() > 1);
  const auto p = parse_program(text, shape_of(files));
  if (!p) return "refused: " + p.error().context;
  const auto back = resolve(*p, files);
  EXPECT_TRUE(back && *back == after) << text;
  return text;
}

/// The fewest bytes, found by trying everything: spans of lines anywhere, and text of any lines.
std::size_t fewest_bytes(const std::vector<std::string>& before, const std::vector<std::string>& after,
                         std::size_t from, std::vector<std::size_t>& known) {
  if (from == after.size()) return 0;
  if (known[from] != 0) return known[from];
  std::size_t best = ~std::size_t{0} / 2;
  std::string text;
  for (std::size_t end = from + 1; end <= after.size(); ++end) {
    text += after[end - 1];
    best = std::min(best, 11 + escape_text(text).size() + fewest_bytes(before, after, end, known));
  }
  for (std::size_t i = 0; i < before.size(); ++i) {
    for (std::size_t n = 1;
         from + n <= after.size() && i + n <= before.size() && before[i + n - 1] == after[from + n - 1]; ++n) {
      const std::size_t op = ("<copy lines=\"" + std::to_string(i + 1) + "-" + std::to_string(i + n) + "\"/>").size();
      best = std::min(best, op + fewest_bytes(before, after, from + n, known));
    }
  }
  return known[from] = best;
}

TEST(copy_oracle, finds_the_program_that_a_person_would_write) {
  EXPECT_EQ(round_trip({"a long line\nb\n"}, "a long line\nb\n"), "<copy lines=\"1-2\"/></program>");
  EXPECT_EQ(
      round_trip({"first long line here\nx\nlast long line here\n"}, "first long line here\ny\nlast long line here\n"),
      "<copy lines=\"1-1\"/><gen>y\n</gen><copy lines=\"3-3\"/></program>");
  EXPECT_EQ(round_trip({"kept\n"}, ""), "</program>");
  EXPECT_EQ(round_trip({""}, "new"), "<gen>new</gen></program>");
  // A line that is shorter than the op that copies it is written out.
  EXPECT_EQ(round_trip({"}\n"}, "}\n"), "<gen>}\n</gen></program>");
  // Lines that exchanged their order are copied too.
  EXPECT_EQ(round_trip({"function one() {\nfunction two() {\n"}, "function two() {\nfunction one() {\n"),
            "<copy lines=\"2-2\"/><copy lines=\"1-1\"/></program>");
  EXPECT_EQ(round_trip({"nothing here\n", "a short line\n"}, "a short line\n"), "<gen>a short line\n</gen></program>");
  EXPECT_EQ(
      round_trip({"nothing here\n", "the long line that both files want\n"}, "the long line that both files want\n"),
      "<copy file=\"2\" lines=\"1-1\"/></program>");
}

TEST(copy_oracle, no_program_is_shorter) {
  std::mt19937 random(7);
  const std::string pool[] = {
      "\n", "}\n", "a line of some length\n", "another line, longer than that one\n", "</gen> tag\n", "x <\\/gen>\n"};
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> before(1 + random() % 14), after(random() % 12);
    for (auto& l : before) l = pool[random() % 6];
    for (auto& l : after)
      l = random() % 3 == 0 && !after.empty() ? "new " + std::to_string(random() % 9) + "\n" : pool[random() % 6];
    std::string a, b;
    for (const auto& l : before) a += l;
    for (const auto& l : after) b += l;
    std::vector<std::size_t> known(after.size() + 1, 0);
    const std::size_t fewest = fewest_bytes(before, after, 0, known);
    EXPECT_EQ(round_trip({a}, b).size(), fewest + std::string("</program>").size()) << a << "----\n" << b;
  }
}

TEST(copy_oracle, is_still_correct_when_work_is_bounded) {
  std::string a, b;
  for (int i = 0; i < 400; ++i) {
    a += i % 2 == 0 ? "\n" : "line " + std::to_string(i) + "\n";
    if (i % 7 != 0) b += i % 2 == 0 ? "\n" : "line " + std::to_string(i) + "\n";
  }
  b += a.substr(0, a.size() / 2);  // a line difference cannot copy it twice
  const auto best = round_trip({a}, b);
  const auto whole_runs = round_trip({a}, b, {.work_max = 40'000});
  const auto difference = round_trip({a}, b, {.work_max = 100});
  EXPECT_LE(best.size(), whole_runs.size());
  EXPECT_LT(best.size(), difference.size());
}

TEST(copy_oracle, respects_the_minimum_length_of_spans) {
  const std::string before = "a rather long line\nb\nanother rather long line\nand a third of them\n";
  const std::string after = "a rather long line\nX\nanother rather long line\nand a third of them\n";
  EXPECT_EQ(round_trip({before}, after, {.span_min = 2}),
            "<gen>a rather long line\nX\n</gen><copy lines=\"3-4\"/></program>");
}

std::string random_text(std::mt19937& random) {
  static const std::string parts[] = {"a",
                                      "bc",
                                      "</gen>",
                                      "<\\/gen>",
                                      "<copy lines=\"1-1\"/>",
                                      "</program>",
                                      "<gen>",
                                      "<",
                                      "\\",
                                      "/gen>",
                                      "\r\n",
                                      "\n",
                                      "\n",
                                      "\r",
                                      std::string(1, '\0'),
                                      "\xff",
                                      "\xc3",
                                      "line of text",
                                      "  "};
  std::string out;
  for (std::size_t n = random() % 40; n > 0; --n) out += parts[random() % std::size(parts)];
  return out;
}

// REDLINE_COPY_PAIRS=1000000 makes a long run.
TEST(copy_oracle, any_pair_of_files_round_trips) {
  const char* count = std::getenv("REDLINE_COPY_PAIRS");
  const std::size_t pairs = count != nullptr ? std::strtoull(count, nullptr, 10) : test::rounds(1000, 200);
  std::mt19937 random(1);
  for (std::size_t i = 0; i < pairs && !testing::Test::HasFailure(); ++i) {
    const std::string before = random_text(random);
    std::string after = random() % 4 == 0 ? random_text(random) : before;
    for (std::size_t n = random() % 3; n > 0; --n)
      after.insert(random() % (after.size() + 1), random_text(random).substr(0, 20));
    if (random() % 3 == 0) after.erase(random() % (after.size() + 1), random() % 10);
    round_trip({before}, after);
    if (i % 4 == 0) round_trip({before, random_text(random)}, after);
  }
}

TEST(copy_oracle, recorded_edits_round_trip) {
  std::size_t pairs = 0;
  for (const char* name : {"blazedit_like", "git_edits", "hevalfix_python", "hevalfix_javascript", "editeval",
                           "quixbugs_python", "polyglot_python", "polyglot_javascript", "polyglot_java"}) {
    const auto path = test::data_path("edits/" + std::string(name) + ".jsonl");
    if (!path) continue;
    std::istringstream lines(test::read_file(*path));
    for (std::string line; std::getline(lines, line) && !testing::Test::HasFailure();) {
      const auto row = nlohmann::json::parse(line);
      round_trip({row["before"].get<std::string>()}, row["after"].get<std::string>());
      ++pairs;
    }
  }
  if (pairs == 0) GTEST_SKIP() << "the edit collection is absent";
  RecordProperty("pairs", static_cast<int>(pairs));
}

}  // namespace
}  // namespace redline::copy
