#include "actors/cli/commands/difference.hpp"

#include <filesystem>
#include <iostream>

#include "actors/cli/command.hpp"
#include "actors/cli/review/hunk.hpp"

namespace redline::actors::cli {

std::string path_in_patch(const std::string& path) {
  std::error_code ignored;
  const auto near = std::filesystem::absolute(path, ignored)
                        .lexically_normal()
                        .lexically_relative(std::filesystem::current_path(ignored));
  return near.empty() || near.string().starts_with("..") ? path : near.string();
}

void print_difference(const std::string& path, std::string_view before, std::string_view after) {
  const std::string patch = patch_of(path_in_patch(path), hunks_of(before, after), is_output_terminal());
  if (patch.empty())
    std::cerr << "no change\n";
  else
    std::cout << patch;
}

}  // namespace redline::actors::cli
