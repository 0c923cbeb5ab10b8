// What a reviewer would otherwise have to look for: who includes whom, headers nobody needs, vector registers where
// they do not belong, leftovers. Reads the sources as text.

#include <gtest/gtest.h>

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

/// The folder that decides what a file may include.
std::string folder_of(const std::string& path) {
  const std::size_t first = path.find('/');
  const std::string top = path.substr(0, first);
  if (top != "runtime") return top;
  return path.substr(0, path.find('/', first + 1));
}

TEST(tidy, includes_follow_the_arrows) {
  // ARCHITECTURE.md: who may include whom. tests and bench may include anything.
  const std::map<std::string, std::set<std::string>> allowed = {
      {"kernels", {}},
      {"runtime/base", {}},
      {"runtime/actor", {"runtime/base"}},
      {"runtime/gguf", {"runtime/base"}},
      {"runtime/convert", {"runtime/base", "runtime/gguf", "kernels"}},
      {"runtime/kv", {"runtime/base", "kernels"}},
      {"runtime/text", {"runtime/base", "runtime/gguf"}},
      {"runtime/model", {"runtime/base", "runtime/gguf", "runtime/kv", "kernels"}},
      {"runtime/cost", {"runtime/base"}},
      {"runtime/draft", {"runtime/base", "runtime/cost", "runtime/kv", "runtime/text", "runtime/model", "kernels"}},
      {"runtime/copy", {"runtime/base", "runtime/text"}},
      {"runtime/grammar", {"runtime/base", "runtime/copy", "runtime/model", "runtime/text"}},
      {"scheduler", {"runtime/base", "runtime/cost"}},
      {"transport", {"runtime/base", "runtime/actor"}},
      {"actors",
       {"kernels", "runtime/base", "runtime/actor", "runtime/gguf", "runtime/kv", "runtime/text", "runtime/model",
        "runtime/cost", "runtime/draft", "runtime/convert", "runtime/copy", "runtime/grammar", "scheduler",
        "transport"}},
  };
  for (const source& s : sources()) {
    const std::string from = folder_of(s.path);
    if (from == "tests" || from == "bench") continue;
    ASSERT_TRUE(allowed.contains(from)) << s.path << ": a new folder needs a line here and in ARCHITECTURE.md";
    for (const std::string& to : s.ours) {
      if (folder_of(to) == from) continue;
      EXPECT_TRUE(allowed.at(from).contains(folder_of(to))) << s.path << " includes " << to;
    }
  }
}

TEST(tidy, libraries_stay_where_they_are_used) {
  const std::vector<std::pair<std::regex, std::regex>> homes = {
      {std::regex("^cblas\\.h$"), std::regex("^kernels/blas\\.cpp$")},
      {std::regex("^msgpack"), std::regex("^runtime/actor/codec\\.cpp$")},
      {std::regex("^boost/fiber"), std::regex("^runtime/actor/fiber_runner\\.cpp$")},
      {std::regex("^boost/beast"), std::regex("^transport/http_[a-z_]+\\.cpp$")},
      {std::regex("^boost/asio"), std::regex("^(transport/http_[a-z_]+|actors/http_gate)\\.cpp$")},
      {std::regex("^zmq"), std::regex("^transport/(zmq|curve)_[a-z_]+\\.cpp$")},
      {std::regex("^(sodium|pcre2)"),
       std::regex("^(actors/(api_keys|commands/key_files)|runtime/text/[a-z_]+)\\.cpp$")},
      {std::regex("^CLI/"), std::regex("^actors/(commands/command\\.hpp|redline\\.cpp)$")},
      {std::regex("^nlohmann/"),
       std::regex("^(actors/|runtime/convert/|runtime/grammar/json_schema|runtime/text/(jinja|chat_template)).*")},
  };
  for (const source& s : sources()) {
    if (folder_of(s.path) == "tests" || folder_of(s.path) == "bench") continue;
    for (const std::string& header : s.theirs) {
      for (const auto& [library, home] : homes) {
        if (std::regex_search(header, library)) {
          EXPECT_TRUE(std::regex_search(s.path, home)) << s.path << " includes <" << header << ">";
        }
      }
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
