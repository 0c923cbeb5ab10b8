#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "runtime/base/result.hpp"

namespace redline {

/// The location of a file: an open descriptor of its folder, and its name there. A later replacement happens in the
/// same folder that was read, even if the path changes meanwhile.
class folder_entry {
 public:
  /// The entry at a path, where no file need exist. Only the folder's part of the path follows symbolic links.
  static result<folder_entry> at(const std::string& path);
  /// The file that a path names, through symbolic links.
  static result<folder_entry> of_file(const std::string& path);
  /// An entry below a folder. Fails with invalid_argument if the path leads out of it or through a symbolic link.
  static result<folder_entry> beneath(const std::string& folder, const std::string& relative);
  ~folder_entry();
  folder_entry(folder_entry&& other) noexcept
      : path_(std::move(other.path_)), name_(std::move(other.name_)), folder_(std::exchange(other.folder_, -1)) {}
  folder_entry& operator=(folder_entry&&) = delete;
  folder_entry(const folder_entry&) = delete;
  folder_entry& operator=(const folder_entry&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }  // for messages
  [[nodiscard]] const std::string& name() const { return name_; }
  /// An O_PATH descriptor, which can only look up files.
  [[nodiscard]] int folder() const { return folder_; }

  struct content {
    std::string bytes;
    std::pair<std::uint64_t, std::uint64_t> identity;  // device and inode: equal for two names of one file
  };
  /// Reads at most bytes_max first bytes of a regular file. Everything else, even a symbolic link, is file_unreadable.
  [[nodiscard]] result<content> read(std::size_t bytes_max) const;

 private:
  folder_entry(std::string path, std::string name, int folder)
      : path_(std::move(path)), name_(std::move(name)), folder_(folder) {}

  std::string path_, name_;
  int folder_;  // -1 after a move
};

}  // namespace redline
