#pragma once

#include <string>
#include <string_view>

namespace redline::actors::cli {

/// A path as a patch has it, which `git apply` takes from the current folder.
std::string path_in_patch(const std::string& path);

/// Prints a patch for `git apply` and `patch -p1`, in colours and escaped on a terminal; without a difference nothing
/// but "no change", which is no patch, on standard error.
void print_difference(const std::string& path, std::string_view before, std::string_view after);

}  // namespace redline::actors::cli
