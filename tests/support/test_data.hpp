#pragma once

#include <optional>
#include <string>

namespace redline::test {

/// A file of the repository, such as "bench/demo_models/vectors.json".
std::string source_path(const std::string& relative);
/// A file of the larger data collection, which does not ship with the project: $REDLINE_DATA_DIR/relative, or
/// ../shared/data/relative next to the checkout. Returns nullopt if absent; tests that need it are skipped.
std::optional<std::string> data_path(const std::string& relative);
/// Reads the whole file; throws if it cannot be read.
std::string read_file(const std::string& path);

}  // namespace redline::test
