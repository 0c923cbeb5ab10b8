#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/result.hpp"

namespace redline {

/// A regular file's bytes, mapped read-only while this object exists. Replacing the file by a rename is safe. If the
/// file is truncated, the next read of a missing byte ends the process with exit code 78 and a message that names the
/// file.
class mapped_file {
 public:
  /// Follows symbolic links. file_unreadable if the file cannot be opened or mapped, or is not a regular file.
  static result<std::unique_ptr<mapped_file>> open(const std::string& path);
  ~mapped_file();
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

  /// Fails if the file was written, truncated or extended after it was opened: the bytes read may mix old and new. A
  /// file whose name now belongs to another cannot be checked, and passes.
  [[nodiscard]] result<void> check_unchanged() const;

  /// Advises the kernel that `part`, a span inside bytes(), will not be read again soon. Adjacent data stays.
  void drop_from_memory(std::span<const std::byte> part) const;

 private:
  explicit mapped_file(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::uint64_t device_ = 0, inode_ = 0;  // identify the file, whatever its name
  std::int64_t written_ns_ = 0;           // when it was last written
  std::span<const std::byte> bytes_;      // empty without a mapping, because an empty file cannot be mapped
  std::size_t guard_ = 0;                 // index of its SIGBUS guard
};

}  // namespace redline
