#pragma once

#include <string>
#include <vector>

namespace redline::test {

/// The repository's files by their paths from its root, without builds and what they download.
std::vector<std::string> repository_files();

}  // namespace redline::test
