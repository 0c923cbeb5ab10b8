// Checks of comments and documents as prose: what a comment may begin with, words that the glossary replaces, and the
// length of lines in documents.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <sstream>

#include "tests/support/repository.hpp"
#include "tests/support/test_data.hpp"

namespace redline {
namespace {

constexpr std::size_t columns_max = 100;

bool has_ending(const std::string& path, std::initializer_list<const char*> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](const char* e) { return path.ends_with(e); });
}

/// Generated files, and the test that lists the words.
bool is_exempt(const std::string& path) {
  return path.starts_with("docs/reference/") || path == "tests/prose_test.cpp" ||
         path.find("package-lock") != std::string::npos;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Removes what stands in double quotes or backticks. A quote that does not end on the line keeps the rest.
std::string without_quotes(std::string line) {
  static const std::regex quoted(R"re("(\\.|[^"\\])*"|`[^`]*`)re");
  return std::regex_replace(line, quoted, "\"\"");
}

/// The comment of a line of a source: after `//`, or for scripts after `#`. Empty if there is none.
std::string comment_of(const std::string& path, const std::string& line) {
  if (has_ending(path, {".cpp", ".hpp", ".mjs", ".ts", ".c"})) {
    // A URL is no comment.
    static const std::regex slashes(R"((^|[^:])//+!?<? ?(.*)$)");
    std::smatch m;
    const std::string plain = without_quotes(line);
    return std::regex_search(plain, m, slashes) ? m[2].str() : std::string();
  }
  static const std::regex hash(R"(^\s*#+ ?(.*)$)");
  std::smatch m;
  return std::regex_search(line, m, hash) ? without_quotes(m[1].str()) : std::string();
}

bool is_source(const std::string& path) {
  return has_ending(path, {".cpp", ".hpp", ".mjs", ".ts", ".c", ".py", ".sh", ".cmake", "CMakeLists.txt", "Makefile"});
}

/// Lines of prose in a document: without fenced code, and without what is quoted.
std::vector<std::pair<std::size_t, std::string>> prose_of(const std::string& text) {
  std::vector<std::pair<std::size_t, std::string>> prose;
  bool is_fenced = false;
  const auto lines = lines_of(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].substr(std::min(lines[i].find_first_not_of(' '), lines[i].size())).starts_with("```")) {
      is_fenced = !is_fenced;
    } else if (!is_fenced && !lines[i].starts_with("    ")) {
      prose.emplace_back(i + 1, lines[i]);
    }
  }
  return prose;
}

/// What is wrong with a line of prose, or nothing.
std::string complaint_about(const std::string& prose) {
  // People may be "who": a user, an operator. Parts of a program may not.
  static const std::regex people(
      R"(\b(user|operator|developer|person|people|author|client|maintainer|tenant)s?\s+who\b)");
  static const std::map<std::string, std::regex> rules = [] {
    std::map<std::string, std::regex> all;
    const auto word = [&](const char* what, const char* instead) {
      all.emplace(std::string(what) + ": " + instead,
                  std::regex("\\b(" + std::string(what) + ")\\b", std::regex::icase));
    };
    word("nobody|somebody|anybody|everybody|whom|whoever", "name the part of the program, or say \"it\"");
    word("who", "parts of a program are \"it\", \"the session\", \"a caller\"");
    word("blanks", "say whitespace");
    word("anew", "say again");
    word("wish|wishes", "say request or preference");
    word("incarnation", "say process start");
    word("foreign", "say external, or name the other process");
    word("tokenise[ds]?|behaviour|licence", "American spelling");
    return all;
  }();
  const std::string checked = std::regex_replace(without_quotes(prose), people, "");
  for (const auto& [what, pattern] : rules) {
    if (std::regex_search(checked, pattern)) return what;
  }
  return {};
}

TEST(prose, complains_of_private_words_and_of_nothing_else) {
  EXPECT_THAT(complaint_about("a session that nobody hears"), testing::HasSubstr("nobody"));
  EXPECT_THAT(complaint_about("Whoever asks"), testing::HasSubstr("whoever"));
  EXPECT_THAT(complaint_about("the actor who asks"), testing::HasSubstr("\"it\""));
  EXPECT_THAT(complaint_about("computes it anew"), testing::HasSubstr("again"));
  EXPECT_EQ(complaint_about("a user who types, operators who restart"), "");
  EXPECT_EQ(complaint_about("`who` and \"nobody\" are quoted, whole is not who"), complaint_about("who"));
  EXPECT_EQ(complaint_about("a newly computed row"), "");
  EXPECT_EQ(comment_of("a.cpp", "int x;  // Of that"), "Of that");
  EXPECT_EQ(comment_of("a.cpp", "url = \"http://Of\";"), "");
  EXPECT_EQ(comment_of("a.sh", "  # Of that"), "Of that");
  EXPECT_EQ(comment_of("a.sh", "echo '# Of that'"), "");
}

TEST(prose, comments_and_documents_use_plain_words) {
  static const std::regex fronted(R"(^(Of|Whom|What of|For who)\b)");
  std::size_t comments = 0, documents = 0;
  for (const std::string& path : test::repository_files()) {
    if (is_exempt(path)) continue;
    const bool is_document = path.ends_with(".md");
    if (!is_document && !is_source(path)) continue;
    const std::string text = test::read_file(test::source_path(path));
    if (is_document) {
      ++documents;
      for (const auto& [number, line] : prose_of(text)) EXPECT_EQ(complaint_about(line), "") << path << ":" << number;
      continue;
    }
    const auto lines = lines_of(text);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::string comment = comment_of(path, lines[i]);
      comments += comment.empty() ? 0 : 1;
      // A line in the middle of a sentence may begin with "Of" only by chance: it would be lower case.
      EXPECT_FALSE(std::regex_search(comment, fronted)) << path << ":" << i + 1 << ": " << comment;
      EXPECT_EQ(complaint_about(comment), "") << path << ":" << i + 1 << ": " << comment;
    }
  }
  EXPECT_GT(comments, 5'000U);
  EXPECT_GT(documents, 50U);
}

TEST(prose, lines_of_documents_fit_a_screen) {
  for (const std::string& path : test::repository_files()) {
    if (is_exempt(path) || !path.ends_with(".md")) continue;
    for (const auto& [number, line] : prose_of(test::read_file(test::source_path(path)))) {
      // A table's row, a picture and a line that is mostly one link cannot break.
      const bool can_break = !line.starts_with("|") && !line.starts_with("[") && !line.starts_with("![") &&
                             line.find("](http") == std::string::npos;
      const auto columns = std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; });
      if (!can_break) continue;
      EXPECT_LE(static_cast<std::size_t>(columns), columns_max) << path << ":" << number;
    }
  }
}

/// The terms of the glossary, which has one line or more for each: `- **term, term** (path): meaning`.
TEST(prose, a_term_has_one_entry_in_the_glossary) {
  static const std::regex entry(R"(^- \*\*([^*]+)\*\*)");
  std::map<std::string, int> entries;
  for (const std::string& line : lines_of(test::read_file(test::source_path("docs/design/glossary.md")))) {
    std::smatch m;
    if (!std::regex_search(line, m, entry)) continue;
    std::istringstream terms(m[1]);
    for (std::string term; std::getline(terms, term, ',');) {
      ++entries[term.substr(std::min(term.find_first_not_of(' '), term.size()))];
    }
  }
  EXPECT_GE(entries.size(), 30U);
  for (const auto& [term, count] : entries) EXPECT_EQ(count, 1) << term;
}

}  // namespace
}  // namespace redline
