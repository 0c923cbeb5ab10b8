// What a reviewer would otherwise have to look for: who includes whom, headers nobody needs, vector registers where
// they do not belong, leftovers. Reads the sources as text.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tests/support/test_data.hpp"

namespace redline {
namespace {

namespace fs = std::filesystem;

struct source {
  std::string path;  // from the root, as in an include line
  std::string text;
  std::vector<std::string> ours;    // included from the project
  std::vector<std::string> theirs;  // included from outside
};

const std::vector<source>& sources() {
  static const std::vector<source> all = [] {
    std::vector<source> found;
    const fs::path root = fs::path(test::source_path(""));
    const std::regex include(R"(^\s*#include\s+(["<])([^">]+)[">])");
    for (const char* folder : {"kernels", "runtime", "scheduler", "transport", "actors", "tests", "bench"}) {
      for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
        const auto extension = entry.path().extension();
        if (entry.path().string().find("/node_modules/") != std::string::npos) continue;  // of bench/peers, not ours
        if (extension != ".cpp" && extension != ".hpp") continue;
        source s{fs::relative(entry.path(), root).generic_string(), test::read_file(entry.path().string()), {}, {}};
        std::istringstream lines(s.text);
        for (std::string line; std::getline(lines, line);) {
          std::smatch m;
          if (!std::regex_search(line, m, include)) continue;
          (m[1] == "\"" ? s.ours : s.theirs).push_back(m[2]);
        }
        found.push_back(std::move(s));
      }
    }
    return found;
  }();
  return all;
}

/// A row of ARCHITECTURE.md's table "Who may include whom".
struct room {
  std::set<std::string> may_include;                                        // with what those may include
  std::vector<std::pair<std::string, std::vector<std::string>>> libraries;  // header's beginning, files; none: any file
};

std::vector<std::string> quoted(const std::string& text) {
  static const std::regex word("`([^`]+)`");
  std::vector<std::string> all;
  for (std::sregex_iterator it(text.begin(), text.end(), word), end; it != end; ++it) all.push_back((*it)[1]);
  return all;
}

const std::map<std::string, room>& rooms() {
  static const std::map<std::string, room> all = [] {
    std::map<std::string, room> found;
    std::istringstream lines(test::read_file(test::source_path("ARCHITECTURE.md")));
    const std::regex row(R"(^\| `([a-z/]+)` \|([^|]*)\|([^|]*)\|$)");
    const std::regex library(R"(`([^`]+)`( \(([^)]*)\))?)");
    for (std::string line; std::getline(lines, line);) {
      std::smatch m;
      if (!std::regex_match(line, m, row)) continue;
      room r;
      for (const std::string& other : quoted(m[2])) {
        EXPECT_TRUE(found.contains(other)) << m[1] << " may include " << other << ", which has no row above";
        r.may_include.insert(other);
        r.may_include.insert(found[other].may_include.begin(), found[other].may_include.end());
      }
      const std::string libraries = m[3];
      for (std::sregex_iterator it(libraries.begin(), libraries.end(), library), end; it != end; ++it) {
        r.libraries.emplace_back((*it)[1], quoted((*it)[3]));
      }
      found[m[1]] = r;
    }
    return found;
  }();
  return all;
}

/// The longest folder with a row; "tests" and "bench" for what has none and may include anything.
std::string room_of(const std::string& path) {
  for (std::string folder = path; folder.find('/') != std::string::npos;) {
    folder = folder.substr(0, folder.rfind('/'));
    if (rooms().contains(folder)) return folder;
  }
  return path.substr(0, path.find('/'));
}
bool is_free(const std::string& room) { return room == "tests" || room == "bench"; }

TEST(tidy, includes_follow_the_arrows) {
  ASSERT_GT(rooms().size(), 20U);
  for (const source& s : sources()) {
    const std::string from = room_of(s.path);
    if (is_free(from)) continue;
    ASSERT_TRUE(rooms().contains(from)) << s.path << ": a new folder needs a row in ARCHITECTURE.md";
    for (const std::string& to : s.ours) {
      if (room_of(to) == from) continue;
      EXPECT_TRUE(rooms().at(from).may_include.contains(room_of(to))) << s.path << " includes " << to;
    }
  }
}

/// `*` stands for any letters.
bool fits(const std::string& name, const std::string& glob) {
  std::string pattern = std::regex_replace(glob, std::regex(R"(\.)"), R"(\.)");
  pattern = std::regex_replace(pattern, std::regex(R"(\*)"), ".*");
  return std::regex_match(name, std::regex(pattern));
}

TEST(tidy, libraries_stay_where_they_are_used) {
  std::set<std::string> known;
  for (const auto& [name, r] : rooms()) {
    for (const auto& [library, files] : r.libraries) known.insert(library);
  }
  ASSERT_TRUE(known.contains("msgpack"));
  for (const source& s : sources()) {
    const std::string from = room_of(s.path);
    if (is_free(from)) continue;
    const std::string file = s.path.substr(s.path.rfind('/') + 1);
    for (const std::string& header : s.theirs) {
      const bool is_ours_to_mind =
          std::any_of(known.begin(), known.end(), [&](const std::string& l) { return header.starts_with(l); });
      if (!is_ours_to_mind) continue;
      const auto& allowed = rooms().at(from).libraries;
      EXPECT_TRUE(std::any_of(allowed.begin(), allowed.end(),
                              [&](const auto& one) {
                                return header.starts_with(one.first) &&
                                       (one.second.empty() ||
                                        std::any_of(one.second.begin(), one.second.end(),
                                                    [&](const std::string& glob) { return fits(file, glob); }));
                              }))
          << s.path << " includes <" << header << ">";
    }
  }
}

TEST(tidy, every_header_exists_and_is_needed) {
  std::set<std::string> known;
  std::set<std::string> wanted;
  for (const source& s : sources()) {
    known.insert(s.path);
    wanted.insert(s.ours.begin(), s.ours.end());
  }
  for (const std::string& header : wanted) EXPECT_TRUE(known.contains(header)) << header << " does not exist";
  for (const std::string& path : known) {
    if (!path.ends_with(".hpp")) continue;
    EXPECT_TRUE(wanted.contains(path)) << path << " is included by nobody";
  }
}

TEST(tidy, vector_registers_stay_in_the_kernels) {
  const std::regex wide(R"(\b(_mm\d*_|__m(128|256|512)|_tile_))");
  const std::regex home(R"(^kernels/(simd|ops|targets)/|^kernels/worker_team\.cpp$|^kernels/cpu_features\.cpp$)");
  for (const source& s : sources()) {
    if (std::regex_search(s.path, home) || s.path == "tests/tidy_test.cpp") continue;
    EXPECT_FALSE(std::regex_search(s.text, wide)) << s.path;
  }
}

TEST(tidy, nothing_is_left_over) {
  const std::regex leftover(R"(\b(TODO|FIXME|XXX|HACK)\b|#if 0\b)");
  for (const source& s : sources()) {
    if (s.path == "tests/tidy_test.cpp") continue;
    EXPECT_FALSE(std::regex_search(s.text, leftover)) << s.path;
  }
}

}  // namespace
}  // namespace redline
