#include "tests/support/repository.hpp"

#include <filesystem>

#include "tests/support/test_data.hpp"

namespace redline::test {

std::vector<std::string> repository_files() {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  const fs::path root = fs::path(source_path(""));
  for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator(); ++it) {
    const std::string name = it->path().filename().string();
    if (!it->is_directory()) {
      files.push_back(fs::relative(it->path(), root).generic_string());
    } else if (name == ".git" || name == ".cache" || name.starts_with("build") || name == "node_modules") {
      it.disable_recursion_pending();
    }
  }
  return files;
}

}  // namespace redline::test
