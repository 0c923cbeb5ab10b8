#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "runtime/base/result.hpp"

namespace redline {

/// Where a file is: its folder, held open, and its name there. What is read and what is put in its place later are in
/// one folder, whatever becomes of the path meanwhile.
class folder_entry {
 public:
  /// Where a path leads; nothing need be there. Only the folder's part of it follows symbolic links.
  static result<folder_entry> at(const std::string& path);
  /// The file that a path names, through symbolic links.
  static result<folder_entry> of_file(const std::string& path);
  /// The same below a folder. invalid_argument where the path leads out of it, or through a symbolic link on the way.
  static result<folder_entry> beneath(const std::string& folder, const std::string& relative);
  ~folder_entry();
  folder_entry(folder_entry&& other) noexcept
      : path_(std::move(other.path_)), name_(std::move(other.name_)), folder_(std::exchange(other.folder_, -1)) {}
  folder_entry& operator=(folder_entry&&) = delete;
  folder_entry(const folder_entry&) = delete;
  folder_entry& operator=(const folder_entry&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }  // for messages
  [[nodiscard]] const std::string& name() const { return name_; }
  /// A descriptor that only finds files.
  [[nodiscard]] int folder() const { return folder_; }

  struct content {
    std::string bytes;
    std::pair<std::uint64_t, std::uint64_t> identity;  // device and number: the same of two names of one file
  };
  /// The first bytes of a regular file, at most so many. file_unreadable for everything else, symbolic links too.
  [[nodiscard]] result<content> read(std::size_t bytes_max) const;

 private:
  folder_entry(std::string path, std::string name, int folder)
      : path_(std::move(path)), name_(std::move(name)), folder_(folder) {}

  std::string path_, name_;
  int folder_;  // -1 once moved from
};

}  // namespace redline
