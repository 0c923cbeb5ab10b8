// Checks of sources and documents as text: includes between folders, headers that no file includes, vector registers
// where they do not belong, leftovers, and paths in documents that do not exist.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tests/support/repository.hpp"
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
        if (entry.path().string().find("/node_modules/") != std::string::npos) continue;  // a dependency of bench/peers
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

/// A row of ARCHITECTURE.md's table "Allowed includes".
struct room {
  std::set<std::string> may_include;                                        // including what those may include
  std::vector<std::pair<std::string, std::vector<std::string>>> libraries;  // header prefix, its files (none: any)
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

/// The longest folder with a row, or the top-level folder ("tests" and "bench" have no row and may include anything).
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
    EXPECT_TRUE(wanted.contains(path)) << path << " is included by no file";
  }
}

TEST(tidy, vector_registers_stay_in_the_kernels) {
  const std::regex wide(R"(\b(_mm\d*_|__m(128|256|512)|_tile_))");
  const std::regex home(
      R"(^kernels/(simd|ops|targets)/|^kernels/worker_team\.cpp$|^kernels/machine/cpu_features\.cpp$)");
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

/// Every file and folder of the repository by its path from the root, and each file also without its extensions,
/// because documents refer to `runtime/draft/book.hpp` and `book.cpp` by one name.
class tree {
 public:
  void add_file(const std::string& path) {
    insert(path);
    const std::size_t name = path.rfind('/') + 1;  // npos + 1 is 0
    insert(path.substr(0, path.find('.', name + 1)));
    for (std::string folder = path; folder.find('/') != std::string::npos;) {
      folder = folder.substr(0, folder.rfind('/'));
      insert(folder);
      folders_.insert(folder);
    }
  }
  bool has_folder(const std::string& path) const { return folders_.contains(path); }
  bool has(const std::string& path) const {
    if (path.find('*') == std::string::npos) return paths_.contains(path);
    return std::any_of(paths_.begin(), paths_.end(), [&](const std::string& p) { return fits_path(p, path); });
  }
  /// Whether some path ends with this one, starting at a slash.
  bool has_ending(const std::string& path) const {
    if (path.find('*') == std::string::npos) return endings_.contains(path);
    return std::any_of(endings_.begin(), endings_.end(), [&](const std::string& p) { return fits_path(p, path); });
  }

 private:
  void insert(const std::string& path) {
    if (!paths_.insert(path).second) return;
    endings_.insert(path);
    for (std::size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) {
      endings_.insert(path.substr(at + 1));
    }
  }
  /// `*` stands for any letters of one name.
  static bool fits_path(std::string_view path, std::string_view glob) {
    while (!glob.empty() && glob.front() != '*') {
      if (path.empty() || path.front() != glob.front()) return false;
      path.remove_prefix(1);
      glob.remove_prefix(1);
    }
    if (glob.empty()) return path.empty();
    glob.remove_prefix(1);
    for (std::size_t skipped = 0; skipped <= path.size(); ++skipped) {
      if (fits_path(path.substr(skipped), glob)) return true;
      if (skipped < path.size() && path[skipped] == '/') return false;
    }
    return false;
  }

  std::set<std::string> paths_;
  std::set<std::string> folders_;
  std::set<std::string> endings_;
};

/// The text between backticks outside of fenced blocks, split at whitespace.
std::vector<std::string> code_words(const std::string& document) {
  std::string prose;
  bool is_fenced = false;
  std::istringstream lines(document);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      is_fenced = !is_fenced;
    } else if (!is_fenced) {
      prose += line + "\n";
    }
  }
  std::vector<std::string> words;
  for (std::size_t at = prose.find('`'); at != std::string::npos; at = prose.find('`', at)) {
    const std::size_t begin = std::min(prose.find_first_not_of('`', at), prose.size());
    const std::string fence = prose.substr(at, begin - at);
    std::size_t end = prose.find(fence, begin);
    while (end != std::string::npos && prose[end + fence.size()] == '`') {  // prose ends with a line break
      end = prose.find(fence, std::min(prose.find_first_not_of('`', end), prose.size()));
    }
    at = begin;
    if (end == std::string::npos) continue;
    std::istringstream code(prose.substr(begin, end - begin));
    for (std::string word; code >> word;) words.push_back(word);
    at = end + fence.size();
  }
  return words;
}

/// Expands `a.{hpp,cpp}` to `a.hpp` and `a.cpp`.
std::vector<std::string> without_braces(const std::string& word) {
  static const std::regex braces(R"(^(.*)\{([^{}]*)\}(.*)$)");
  std::smatch m;
  if (!std::regex_match(word, m, braces)) return {word};
  std::vector<std::string> all;
  std::istringstream options(m[2]);
  for (std::string option; std::getline(options, option, ',');) {
    for (std::string& one : without_braces(m[1].str() + option + m[3].str())) all.push_back(std::move(one));
  }
  return all;
}

/// The nonexistent paths in a document's backticks. A path is a word whose first name is a folder at the root, of the
/// document or between them, or a word that ends like a source. It is relative to any of these folders; a source may be
/// named by the end of its path.
std::vector<std::string> lost_paths(const std::string& document_path, const std::string& document,
                                    const tree& repository) {
  static const std::regex letters("[A-Za-z0-9_.*/-]+");
  static const std::regex source_name(R"(.*[^/]\.(cpp|hpp|mjs|ts|cmake|md))");
  std::vector<std::string> bases;
  for (std::string folder = document_path; folder.find('/') != std::string::npos;) {
    folder = folder.substr(0, folder.rfind('/'));
    bases.push_back(folder + "/");
  }
  bases.push_back("");
  std::vector<std::string> lost;
  for (const std::string& word : code_words(document)) {
    for (std::string path : without_braces(std::regex_replace(word, std::regex(":[0-9-]+$|/$"), ""))) {
      path = std::regex_replace(path, std::regex(R"(\bNAME\b)"), "*");
      if (!std::regex_match(path, letters) || path.starts_with("/")) continue;
      const auto from = [&](const std::string& base) {
        return fs::path(base + path).lexically_normal().generic_string();
      };
      const auto begins = [&](const std::string& base) {
        return repository.has_folder(base + path.substr(0, path.find('/')));
      };
      const bool is_source = std::regex_match(path, source_name);
      const bool is_inside = path.find('/') != std::string::npos && std::any_of(bases.begin(), bases.end(), begins);
      if (!is_source && !is_inside) continue;
      const bool is_there =
          std::any_of(bases.begin(), bases.end(), [&](const std::string& base) { return repository.has(from(base)); });
      if (!is_there && !(is_source && repository.has_ending(path))) lost.push_back(path);
    }
  }
  return lost;
}

TEST(tidy, architecture_is_read_in_one_sitting) {
  std::istringstream text(test::read_file(test::source_path("ARCHITECTURE.md")));
  const auto words = std::distance(std::istream_iterator<std::string>(text), {});
  EXPECT_LE(words, 2'500) << "details belong in docs/design";
}

TEST(tidy, finds_paths_that_lead_nowhere) {
  tree repository;
  for (const char* file : {"README.md", "runtime/README.md", "runtime/draft/book.hpp", "runtime/draft/book.cpp",
                           "docs/start.md", "kernels/targets/avx2.cpp", "kernels/ops/gemm.inl.hpp"}) {
    repository.add_file(file);
  }
  const auto lost = [&](const std::string& document) { return lost_paths("runtime/README.md", document, repository); };
  using testing::ElementsAre;
  using testing::IsEmpty;
  EXPECT_THAT(lost("`runtime/draft/book`, `draft/book.hpp`, `book.{hpp,cpp}`, `draft/`, `../docs/start.md`"),
              IsEmpty());
  EXPECT_THAT(lost("`runtime/draft/book.cpp:12`, `ops/gemm.inl.hpp`, `kernels/targets/NAME.cpp`, `kernels/*/gemm`"),
              IsEmpty());
  EXPECT_THAT(lost("`/v1/models`, `text/plain`, `draft`, `.cpp`, runtime/gone.cpp\n```\n`runtime/gone`\n```\n"),
              IsEmpty());
  EXPECT_THAT(lost("``a ` b`` `runtime/gone` ``runtime/`lost` ``"), ElementsAre("runtime/gone"));
  EXPECT_THAT(lost("`runtime/draft/boo`, `draft/boo`, `boo.hpp`, `book.{cpp,ts}`, `runtime/draft/book.cp`"),
              ElementsAre("runtime/draft/boo", "draft/boo", "boo.hpp", "book.ts", "runtime/draft/book.cp"));
  EXPECT_THAT(lost("`kernels/*/gone`, `kernels/*/ops/gemm`, `docs/`, `docs/draft`, `make runtime/base`"),
              ElementsAre("kernels/*/gone", "kernels/*/ops/gemm", "docs/draft", "runtime/base"));
}

TEST(tidy, paths_in_documents_exist) {
  tree repository;
  std::vector<std::string> documents;
  for (const std::string& path : test::repository_files()) {
    repository.add_file(path);
    if (path.ends_with(".md")) documents.push_back(path);
  }
  EXPECT_THAT(documents, testing::IsSupersetOf({"README.md", "docs/start.md", "runtime/grammar/README.md"}));
  for (const std::string& path : documents) {
    EXPECT_THAT(lost_paths(path, test::read_file(test::source_path(path)), repository), testing::IsEmpty()) << path;
  }
}

}  // namespace
}  // namespace redline
