#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/result.hpp"

namespace redline {

/// A regular file's bytes, mapped read-only for as long as this object lives. Replacing the file by a rename is safe.
/// When it is cut shorter meanwhile, the next read of a missing byte ends the process with exit code 78 and a message
/// that names the file.
class mapped_file {
 public:
  /// Follows symbolic links. file_unreadable for what cannot be opened, mapped, or is no regular file.
  static result<std::unique_ptr<mapped_file>> open(const std::string& path);
  ~mapped_file();
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

  /// Fails when the file was written, cut or extended after it was opened: what was read may be half old, half new. A
  /// file that has lost its name to another cannot be looked at, and passes.
  [[nodiscard]] result<void> check_unchanged() const;

  /// Tells the kernel that `part`, a span inside of bytes(), will not be read again soon. Its neighbours stay.
  void drop_from_memory(std::span<const std::byte> part) const;

 private:
  explicit mapped_file(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::uint64_t device_ = 0, inode_ = 0;  // which file it is, whatever its name
  std::int64_t written_ns_ = 0;           // when it was last written
  std::span<const std::byte> bytes_;      // empty without a mapping: an empty file cannot be mapped
  std::size_t guard_ = 0;                 // its place among those whose loss is told
};

}  // namespace redline
