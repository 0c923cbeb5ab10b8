#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/folder_entry.hpp"
#include "runtime/base/result.hpp"

namespace redline::actors::cli {

/// Limits of what one command edits.
inline constexpr std::size_t edited_files_max = 256;
inline constexpr std::size_t edited_file_bytes_max = 1 << 20;
inline constexpr std::size_t edited_bytes_max = 16 << 20;

struct chosen_file {
  std::string path;  // as named, or below the named folder
  std::string bytes;
  std::string folder;    // the named folder; empty for a named file
  std::string relative;  // path inside the folder

  /// The file's present location. A folder's file is never outside the folder or reached through a symbolic link.
  [[nodiscard]] result<folder_entry> place() const;
};

struct file_choice {
  std::vector<chosen_file> files;
  std::vector<std::string> left_out;  // "PATH: why", for files of folders
};

/// The files that these paths name. A folder in a repository gives the files that git tracks or would add; another
/// folder gives all but hidden files. Of these, only regular, nonempty UTF-8 text files within the size limit and not
/// behind a symbolic link are chosen. A path to a file must name such a file or a link to one. Duplicates are removed.
/// Nothing that a repository configures is run.
result<file_choice> choose_files(const std::vector<std::string>& paths);

/// The same for the files with staged changes below the current folder, or below these paths.
result<file_choice> choose_staged_files(const std::vector<std::string>& paths);

}  // namespace redline::actors::cli
