#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.hpp"

namespace redline::actors::cli {

/// What one command edits at most.
inline constexpr std::size_t edited_files_max = 256;
inline constexpr std::size_t edited_file_bytes_max = 1 << 20;
inline constexpr std::size_t edited_bytes_max = 16 << 20;

struct chosen_file {
  std::string path;  // as it was named, or below the folder that was
  std::string bytes;
};

struct file_choice {
  std::vector<chosen_file> files;
  std::vector<std::string> left_out;  // "PATH: why", of what a folder holds
};

/// The files that these paths name. Of a folder those that git knows or would add, inside of a repository, else all but
/// hidden ones; of them the regular, not empty text files in UTF-8 that are not too large. A path that names a file
/// must be one of these itself. A file that is named twice is there once.
result<file_choice> choose_files(const std::vector<std::string>& paths);

/// The same of the files with staged changes below the current folder, or below these paths.
result<file_choice> choose_staged_files(const std::vector<std::string>& paths);

/// Puts `bytes` in the place of the file in one step: a reader sees the old file or the new one. A symbolic
/// link is followed, the mode kept, and a file that is no longer `before` is left alone.
result<void> replace_edited(const std::string& named, const std::string& before, const std::string& bytes);

}  // namespace redline::actors::cli
