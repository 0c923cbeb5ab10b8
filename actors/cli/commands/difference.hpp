#pragma once

#include <string>
#include <string_view>

namespace redline::actors::cli {

/// The path as a patch contains it; `git apply` resolves it from the current folder.
std::string path_in_patch(const std::string& path);

/// Prints a patch for `git apply` and `patch -p1`, colored and escaped on a terminal. Without a difference, prints only
/// "no change" to standard error.
void print_difference(const std::string& path, std::string_view before, std::string_view after);

}  // namespace redline::actors::cli
