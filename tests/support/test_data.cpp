#include "tests/support/test_data.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace redline::test {

std::string source_path(const std::string& relative) { return std::string(REDLINE_SOURCE_DIR) + "/" + relative; }

std::optional<std::string> data_path(const std::string& relative) {
  const char* configured = std::getenv("REDLINE_DATA_DIR");
  const std::string root = configured != nullptr ? configured : source_path("../shared/data");
  std::string path = root + "/" + relative;
  if (!std::filesystem::exists(path)) return std::nullopt;
  return path;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

}  // namespace redline::test
