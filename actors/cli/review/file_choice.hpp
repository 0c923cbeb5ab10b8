#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/folder_entry.hpp"
#include "runtime/base/result.hpp"

namespace redline::actors::cli {

/// What one command edits at most.
inline constexpr std::size_t edited_files_max = 256;
inline constexpr std::size_t edited_file_bytes_max = 1 << 20;
inline constexpr std::size_t edited_bytes_max = 16 << 20;

struct chosen_file {
  std::string path;  // as it was named, or below the folder that was
  std::string bytes;
  std::string folder;    // that was named; empty of a file that was
  std::string relative;  // the path in it

  /// Where it is now. Of a folder's file never outside of the folder, and not through a symbolic link.
  [[nodiscard]] result<folder_entry> place() const;
};

struct file_choice {
  std::vector<chosen_file> files;
  std::vector<std::string> left_out;  // "PATH: why", of what a folder holds
};

/// The files that these paths name. Of a folder those that git knows or would add, inside of a repository, else all but
/// hidden ones; of them the regular, not empty text files in UTF-8 that are not too large and not behind a symbolic
/// link. A path that names a file must be one of these itself, or a link to one. A file that is named twice is there
/// once. Nothing that a repository configures is run.
result<file_choice> choose_files(const std::vector<std::string>& paths);

/// The same of the files with staged changes below the current folder, or below these paths.
result<file_choice> choose_staged_files(const std::vector<std::string>& paths);

}  // namespace redline::actors::cli
